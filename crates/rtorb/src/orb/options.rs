//! The `-ORB...` options that every CORBA program takes on its command line (CORBA 3, 4.5.1).

use super::builder::OrbError;
use super::config::{OPTIONS, OrbConfig};
use super::config_file;
use crate::suggest;
use serde::Deserialize as _;
use std::path::Path;
use toml::{Table, Value};

/// An option for a setting of [`OrbConfig`].
#[derive(Debug)]
pub(super) struct ConfigOption {
    /// Its name behind `-ORB`.
    pub(super) name: &'static str,
    /// The values that there are, or the form of a value.
    pub(super) value: &'static str,
    /// The key of the setting in a file.
    pub(super) key: &'static str,
    /// Converts the text of a value to the value that a file would have, after earlier ones of the same command line.
    pub(super) read: fn(&str, Option<Value>) -> Result<Value, String>,
}

/// The error for an unknown option: it names the one that is like it, or else all.
fn unknown(name: &str) -> String {
    let own = OPTIONS.iter().map(|option| (option.name, option.value));
    let all = || {
        [("ConfigFile", "FILE"), ("id", "NAME")]
            .into_iter()
            .chain(own.clone())
    };
    if let Some(near) = suggest::closest(name, all().map(|(name, _)| name)) {
        let value = all().find(|(name, _)| *name == near);
        let value = value.map_or("", |(_, value)| value);
        return format!("there is no such option; did you mean -ORB{near} {value}?");
    }
    let names: Vec<String> = all().map(|(name, _)| format!("-ORB{name}")).collect();
    suggest::wrapped(&format!(
        "there is no such option; there are {}",
        names.join(" ")
    ))
}

/// A command line: its options and the other arguments.
#[derive(Default)]
pub(super) struct CommandLine {
    /// The configurations of the files and then of the options, wherever the files are named: an option is for this run, a file
    /// for all runs.
    pub(super) configs: Vec<OrbConfig>,
    /// The arguments that are no options.
    pub(super) remaining: Vec<String>,
    /// The options that are wrong.
    pub(super) mistakes: Vec<OrbError>,
}

impl CommandLine {
    /// Separates the options from the other arguments.
    pub(super) fn parse(arguments: impl IntoIterator<Item = String>) -> Self {
        let mut line = Self::default();
        let mut values = Table::new();
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let Some(option) = argument.strip_prefix("-ORB") else {
                line.remaining.push(argument);
                continue;
            };
            let mut value = || {
                let value = arguments.next();
                value.ok_or_else(|| "its value is missing".to_owned())
            };
            let set = value().and_then(|first| match option {
                "ConfigFile" => {
                    line.read_file(Path::new(&first));
                    Ok(())
                }
                // TAO uses two arguments.
                "LaneListenEndpoints" if !first.contains('=') => {
                    set(&mut values, option, &format!("{first}={}", value()?))
                }
                _ => set(&mut values, option, &first),
            });
            let wrong = set.map_err(|reason| OrbError::Option {
                option: argument,
                reason,
            });
            line.mistakes.extend(wrong.err());
        }
        // Each value was read alone before; together they are right too.
        line.configs.extend(config(values).ok());
        line
    }

    fn read_file(&mut self, path: &Path) {
        match config_file::read(path) {
            Ok(config) => self.configs.push(config),
            Err(error) => self.mistakes.push(error),
        }
    }
}

/// Sets an option's value, if it is right.
fn set(values: &mut Table, name: &str, text: &str) -> Result<(), String> {
    let name = match name {
        // CORBA names an ORB to find it again in its process. Here each ORB is a value, so the name has no effect.
        "id" | "Id" => return Ok(()),
        "Endpoint" | "endPoint" => "ListenEndpoints",
        // The names of TAO and of omniORB.
        "NativeCharCodeset" | "nativeCharCodeSet" => "NativeCharCodeSet",
        other => other,
    };
    let option = OPTIONS.iter().find(|option| option.name == name);
    let option = option.ok_or_else(|| unknown(name))?;
    let value = (option.read)(text, values.get(option.key).cloned())?;
    config(Table::from_iter([(option.key.to_owned(), value.clone())]))?;
    values.insert(option.key.to_owned(), value);
    Ok(())
}

/// Reads the values as those of a file are read.
fn config(values: Table) -> Result<OrbConfig, String> {
    OrbConfig::deserialize(values).map_err(|error| config_file::reason(&error))
}

pub(super) fn text(text: &str, _: Option<Value>) -> Result<Value, String> {
    Ok(text.into())
}

pub(super) fn number(text: &str, _: Option<Value>) -> Result<Value, String> {
    let number: Result<i64, _> = text.parse();
    let wrong = |_| format!("`{text}` is not a whole number; write digits only, such as 2000");
    number.map(Value::Integer).map_err(wrong)
}

pub(super) fn yes_or_no(text: &str, _: Option<Value>) -> Result<Value, String> {
    match text {
        "yes" => Ok(true.into()),
        "no" => Ok(false.into()),
        _ => Err(suggest::unknown(text, "choice", &["yes", "no"])),
    }
}

/// Reads `ENDPOINT[;ENDPOINT...]`. They are added to those of earlier options.
pub(super) fn endpoints(text: &str, earlier: Option<Value>) -> Result<Value, String> {
    let all = list(earlier).chain(each(text, ';').map(Value::from));
    let all: Vec<Value> = all.collect();
    if all.is_empty() {
        return Err("there is no endpoint; name at least one, as iiop://127.0.0.1:0".to_owned());
    }
    Ok(all.into())
}

/// Reads `POOL:LANE=ENDPOINT[;ENDPOINT...]`. They are added to those of earlier options.
pub(super) fn lane_endpoints(text: &str, earlier: Option<Value>) -> Result<Value, String> {
    let (lane, endpoints) = text.split_once('=').unwrap_or((text, ""));
    let endpoints =
        each(endpoints, ';').map(|endpoint| table([("lane", lane), ("endpoint", endpoint)]));
    Ok(Value::Array(list(earlier).chain(endpoints).collect()))
}

/// Reads `NAME=REFERENCE`, and adds it to those of earlier options.
pub(super) fn reference(text: &str, earlier: Option<Value>) -> Result<Value, String> {
    let both = text.split_once('=');
    let both = both.filter(|(name, reference)| !name.is_empty() && !reference.is_empty());
    let (name, reference) = both.ok_or("expected NAME=REFERENCE")?;
    let mut all: Table = earlier
        .and_then(|all| all.try_into().ok())
        .unwrap_or_default();
    all.insert(name.to_owned(), reference.into());
    Ok(all.into())
}

/// Reads `60:1,10:2+4,5:3/earliest_deadline`: the lane of priority 60 has one thread; that of 10 has two, and up to four more while
/// they are busy; that of 5 has three levels.
pub(super) fn lanes(text: &str, _: Option<Value>) -> Result<Value, String> {
    let lane = |text| {
        let (priority, threads) = str::split_once(text, ':')?;
        let (threads, order) = threads.split_once('/').unwrap_or((threads, "fifo"));
        let (fixed, dynamic) = threads.split_once('+').unwrap_or((threads, "0"));
        Some(table([
            ("priority", integer(priority)?.into()),
            (
                "static_threads",
                integer(fixed).filter(|fixed| *fixed > 0)?.into(),
            ),
            ("dynamic_threads", integer(dynamic)?.into()),
            ("order", Value::from(order)),
        ]))
    };
    let wrong = |lane| {
        format!(
            "`{lane}` is not a lane; write PRIORITY:STATIC[+DYNAMIC][/ORDER], as 60:1, 10:2+4 or 5:3/earliest_deadline; if STATIC is 0, give it at \
             least 1"
        )
    };
    let lanes = each(text, ',').map(|text| lane(text).ok_or_else(|| wrong(text)));
    lanes.collect::<Result<_, _>>().map(Value::Array)
}

/// Reads `0-10,11-99`.
pub(super) fn bands(text: &str, _: Option<Value>) -> Result<Value, String> {
    let band = |text| {
        let (low, high) = str::split_once(text, '-')?;
        Some(table([("low", integer(low)?), ("high", integer(high)?)]))
    };
    let wrong = |band| format!("`{band}` is not a band; write LOW-HIGH, as 0-10");
    let bands = each(text, ',').map(|text| band(text).ok_or_else(|| wrong(text)));
    bands.collect::<Result<_, _>>().map(Value::Array)
}

fn integer(text: &str) -> Option<i64> {
    text.parse().ok()
}

fn table<const N: usize>(entries: [(&str, impl Into<Value>); N]) -> Value {
    let entries = entries.map(|(key, value)| (key.to_owned(), value.into()));
    Value::Table(entries.into_iter().collect())
}

fn list(earlier: Option<Value>) -> impl Iterator<Item = Value> {
    let values: Vec<Value> = earlier
        .and_then(|list| list.try_into().ok())
        .unwrap_or_default();
    values.into_iter()
}

fn each(list: &str, separator: char) -> impl Iterator<Item = &str> {
    list.split(separator).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::builder::OrbBuilder;
    use super::super::config_file::known_keys;
    use super::super::ranges::Count;
    use super::*;
    use crate::realtime::PriorityBand;
    use crate::strategies::{
        ConnectionStrategy, DispatchStrategy, RequestOrder, Strategies, WaitStrategy,
    };
    use rtorb_tests::pages::{check_part, comment_before};

    fn builder(arguments: &[&str]) -> OrbBuilder {
        OrbBuilder::default().args(arguments.iter().map(ToString::to_string))
    }

    fn strategies(arguments: &[&str]) -> Strategies {
        let orb = builder(arguments).build().expect("right options");
        orb.strategies()
    }

    fn refusal(builder: OrbBuilder) -> String {
        let refused = builder.build().map(|_| ());
        refused.expect_err("wrong options").to_string()
    }

    #[test]
    fn options_are_taken_and_the_rest_is_left() {
        let arguments = ["program", "-ORBPreset", "tao", "-v", "-ORBid", "x", "file"];
        assert_eq!(strategies(&arguments), Strategies::TAO);
        let builder = builder(&arguments);
        assert_eq!(builder.remaining_arguments(), ["program", "-v", "file"]);
    }

    #[test]
    fn one_axis_goes_before_the_preset_wherever_it_stands() {
        let connection = ConnectionStrategy::Multiplexed {
            wait: WaitStrategy::Read,
        };
        let expected = Strategies::new(connection, DispatchStrategy::Reactive);
        let axes = ["-ORBWait", "read", "-ORBDispatch", "reactive"];
        let preset = ["-ORBPreset", "minicool"];
        assert_eq!(strategies(&[&axes[..], &preset].concat()), expected);
        assert_eq!(strategies(&[&preset[..], &axes].concat()), expected);
    }

    #[test]
    fn strategies_that_do_not_work_together_are_refused_whatever_names_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("orb.toml");
        std::fs::write(&path, "wait = \"reactor\"\n").expect("it is written");
        let path = path.display().to_string();
        for arguments in [
            &["-ORBWait", "reactor"][..],
            &["-ORBConfigFile", &path],
            &["-ORBPreset", "minicool", "-ORBConnection", "exclusive"],
        ] {
            let text = refusal(builder(arguments));
            for words in ["exclusive", "choose the wait strategy read"] {
                assert!(text.contains(words), "{arguments:?}: {text}");
            }
        }
        // Of two places, each alone may be wrong.
        let connection = ConnectionStrategy::Banded {
            wait: WaitStrategy::Reactor,
        };
        let both = strategies(&["-ORBConnection", "banded", "-ORBConfigFile", &path]);
        assert_eq!(both.connection, connection);
    }

    #[test]
    fn lanes_bands_and_their_scheduling_are_read() {
        let config = builder(&[
            "-ORBLanes",
            "60:1/least_laxity,10:2+4",
            "-ORBBands",
            "0-10,11-60",
            "-ORBSchedPolicy",
            "SCHED_RR",
            "-ORBPriorityMapping",
            "direct",
            "-ORBPoolThreads",
            "3",
        ])
        .config;
        let lanes = config.lanes.iter().flatten().map(|lane| {
            let threads = (lane.static_threads, lane.dynamic_threads);
            (lane.lane_priority.get(), threads, lane.order)
        });
        let orders = [RequestOrder::LeastLaxity, RequestOrder::Fifo];
        let expected = [(60, (1, 0), orders[0]), (10, (2, 4), orders[1])];
        assert_eq!(lanes.collect::<Vec<_>>(), expected);
        let bands = config
            .bands
            .iter()
            .flatten()
            .map(|band| (band.low, band.high));
        assert_eq!(bands.collect::<Vec<_>>(), [(0, 10), (11, 60)]);
        assert!(config.sched_policy.is_some_and(|policy| policy.0));
        assert_eq!(config.pool_threads.map(Count::get), Some(3));
    }

    #[test]
    fn lanes_without_a_priority_on_this_host_are_refused() {
        let linear = ["-ORBLanes", "200:1", "-ORBPriorityMapping", "linear"];
        assert!(builder(&linear).build().is_ok());
        let text = refusal(builder(&linear[..2]));
        for words in ["-ORBLanes", "200", "NativeMapping", "-ORBPriorityMapping"] {
            assert!(text.contains(words), "{text}");
        }
    }

    #[test]
    fn a_clients_bands_that_hold_nothing_are_refused_in_code_too() {
        let band = PriorityBand { low: 9, high: 1 };
        let policy = crate::realtime::Policy::PriorityBandedConnection(vec![band]);
        let text = refusal(OrbBuilder::default().client_policies([policy]));
        assert!(text.contains("9 to 1"), "{text}");
    }

    #[test]
    fn an_endpoint_of_a_lane_is_read_in_our_form_and_in_that_of_tao() {
        for arguments in [
            &["-ORBLaneListenEndpoints", "1:0=iiop://127.0.0.1:2810"][..],
            &["-ORBLaneListenEndpoints", "1:0", "iiop://127.0.0.1:2810"],
        ] {
            let endpoints = builder(arguments).config.lane_endpoints;
            let endpoints = endpoints.expect("an endpoint of a lane");
            let of_lane = endpoints.of_lane(&[], crate::realtime::ThreadpoolId(1), 0);
            let of_lane = of_lane.expect("the lane has an endpoint");
            let expected = "iiop://127.0.0.1:2810".parse().expect("an endpoint");
            assert_eq!(of_lane, [expected], "{arguments:?}");
        }
    }

    #[test]
    fn code_before_a_file_before_options_before_code() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("orb.toml");
        let file = "preset = \"minicool\"\npool_threads = 7\nlisten = [\"iiop://127.0.0.1:7\"]\n";
        std::fs::write(&path, file).expect("it is written");
        let path = path.display().to_string();
        let arguments = ["-ORBPoolThreads", "8", "-ORBConfigFile", &path];
        let arguments = arguments.map(str::to_owned);
        let builder = OrbBuilder::default()
            .pool_threads(6)
            .strategies(Strategies::TAO)
            .listen("iiop://127.0.0.1:6")
            .args(arguments);
        let threads = |builder: &OrbBuilder| builder.config.pool_threads.map(Count::get);
        assert_eq!(threads(&builder), Some(8));
        assert_eq!(builder.config.strategies(), Ok(Strategies::MINICOOL));
        let listen = ["iiop://127.0.0.1:7".parse().expect("one")];
        assert_eq!(builder.config.listen.as_deref(), Some(&listen[..]));
        assert_eq!(threads(&builder.pool_threads(9)), Some(9));
    }

    #[test]
    fn what_is_wrong_is_told_with_what_is_right() {
        let rows = [
            (&["-ORBPreset", "fancy"][..], "corbaplus"),
            (&["-ORBPreset"], "missing"),
            (&["-ORBWait", "readd"], "did you mean `read`?"),
            (&["-ORBFullCallTable", "weit"], "did you mean `wait`?"),
            (&["-ORBDispatch", "lane"], "did you mean `lanes`?"),
            (
                &["-ORBPriorityMapping", "contineous"],
                "did you mean `continuous`?",
            ),
            (
                &["-ORBSchedPolicy", "SCHED_RRR"],
                "did you mean `SCHED_RR`?",
            ),
            (&["-ORBTlsClients", "requird"], "did you mean `required`?"),
            (&["-ORBRecorder", "yess"], "did you mean `yes`?"),
            (
                &["-ORBRecordCalls", "4096", "-ORBRecorder", "no"],
                "leave out -ORBRecorder no",
            ),
            (&["-ORBLanes", "60:1/ffo"], "did you mean `fifo`?"),
            (&["-ORBNativeCharCodeSet", "UTF8"], "did you mean `UTF-8`?"),
            (&["-ORBOverrun", "demot"], "demote:PRIORITY"),
            (&["-ORBFancy", "1"], "-ORBPreset"),
            (&["-ORBPoolThreads", "0"], "from 1 to 4294967295, not 0"),
            (&["-ORBLanes", "60"], "60:1"),
            (&["-ORBLanes", "60:0"], "at least 1"),
            (&["-ORBLanes", "60:1,60:1"], "two lanes"),
            (&["-ORBLanes", "60:1/edf"], "earliest_deadline"),
            (&["-ORBLanes", "60:1+1/least_laxity"], "dynamic threads"),
            (&["-ORBLanes", "60:2/least_laxity,62:1"], "60 to 62"),
            (&["-ORBLanes", "98:2/least_laxity"], "from 1 to 99"),
            (&["-ORBLanes", "-1:1"], "0 to 32767"),
            (&["-ORBLanes", ","], "at least one"),
            (&["-ORBBands", "5"], "LOW-HIGH"),
            (&["-ORBBands", "9-1"], "9 to 1"),
            (&["-ORBPriorityMapping", "log"], "linear"),
            (&["-ORBSchedPolicy", "SCHED_OTHER"], "SCHED_RR"),
            (&["-ORBBestEffort", "maybe"], "yes"),
            (&["-ORBNativeCharCodeSet", "EBCDIC"], "ISO-8859-1"),
            (&["-ORBRoundTripTimeoutMs", "2s"], "2000"),
            (
                &["-ORBConnectTimeoutMs", "0"],
                "from 1 to 86400000 ms, not 0",
            ),
            (&["-ORBListenEndpoints", "ftp://x"], "iiop://"),
            (&["-ORBListenEndpoints", ";"], "at least one"),
            (&["-ORBLaneListenEndpoints", "1=iiop://:1"], "POOL:LANE"),
            (&["-ORBLaneListenEndpoints", "1:0"], "missing"),
            (&["-ORBInitRef", "NameService"], "NAME=REFERENCE"),
            (&["-ORBConfigFile", "/nowhere.toml"], "/nowhere.toml"),
        ];
        for (arguments, words) in rows {
            let text = refusal(builder(arguments));
            assert!(text.contains(words), "{arguments:?}: {text}");
            let is_named = text.contains(arguments[0]) || arguments[0] == "-ORBConfigFile";
            assert!(is_named, "{arguments:?}: {text}");
        }
    }

    #[test]
    fn the_bound_of_threads_concerns_only_the_strategies_that_have_so_many() {
        let limits = crate::Limits {
            pool_threads_max: 3,
            ..crate::Limits::default()
        };
        for (name, is_refused) in [
            ("thread_per_connection", false),
            ("reactive", false),
            ("worker_pool", true),
            ("leader_followers", true),
        ] {
            let dispatch = name.parse().expect("a strategy");
            let builder = OrbBuilder::default()
                .limits(limits.clone())
                .dispatch(dispatch);
            match builder.clone().build() {
                Ok(_) => assert!(!is_refused, "{name}"),
                Err(error) => {
                    let text = error.to_string();
                    assert!(is_refused && text.contains("-ORBPoolThreads"), "{text}");
                }
            }
            builder.pool_threads(3).build().expect("they are enough");
        }
    }

    #[test]
    fn code_and_a_file_refuse_the_same_limits() {
        let zero = std::time::Duration::ZERO;
        let limits = crate::Limits {
            message_bytes_max: 0,
            connections_max: 0,
            connections_per_address_max: 0,
            objects_max: 0,
            adapters_max: 0,
            bound_keys_max: 0,
            thread_connections_max: 0,
            shared_connections_max: 0,
            started_calls_max: 0,
            deferred_replies_max: 0,
            deferred_replies_per_connection_max: 0,
            fragment_chains_max: 0,
            pool_threads_max: 0,
            idle_thread_time: zero,
            queued_requests_max: 0,
            client_periods_max: 0,
            forwards_max: 0,
            collocated_depth_max: 0,
            idle_buffer_time: zero,
            spare_buffers_max: 0,
            receive_timeout: zero,
            deferred_reply_time: zero,
            send_timeout: zero,
            stranger_turns_max: 0,
            stranger_period: zero,
        };
        let text = refusal(OrbBuilder::default().limits(limits));
        let source = include_str!("../limits.rs");
        for key in known_keys("[limits]") {
            let name = key.trim_end_matches("_ms");
            let in_file = toml::from_str::<OrbConfig>(&format!("[limits]\n{key} = 0"));
            let in_code = text.contains(&format!("limits.{name}: must be "));
            assert_eq!(in_code, in_file.is_err(), "{name}: {text}");
            if name.ends_with("_max") {
                let comment = comment_before(source, &format!("pub {name}:"));
                let is_explained = comment.contains("With 0, ");
                assert_eq!(is_explained, !in_code, "{name}: {comment}");
            }
        }
        let limits =
            crate::Limits::with(|limits| limits.idle_thread_time = std::time::Duration::MAX);
        OrbBuilder::default()
            .limits(limits)
            .build()
            .expect("a thread may stay");
    }

    #[test]
    fn all_mistakes_are_told_at_once() {
        let day = std::time::Duration::from_secs(86_400);
        let limits = crate::Limits::with(|limits| {
            limits.queued_requests_max = 0;
            limits.send_timeout = day * 2;
            limits.idle_buffer_time = day / 86_400 / 1000;
        });
        let builder = OrbBuilder::default()
            .listen("ftp://x")
            .connect_timeout(std::time::Duration::from_micros(999))
            .pool_threads(0)
            .shared_memory_ring_bytes(1 << 30)
            .fragment_bytes(23)
            .max_giop_version(rtorb_wire::giop::Version { major: 2, minor: 0 })
            .limits(limits)
            .args(
                [
                    "-ORBFancy",
                    "1",
                    "-ORBWait",
                    "fast",
                    "-ORBDispatch",
                    "lanes",
                ]
                .map(str::to_owned),
            )
            .config_file("/nowhere.toml");
        let text = refusal(builder);
        let told: Vec<&str> = text.lines().collect();
        let expected = [
            "iiop://",
            "connect_timeout: must be from 1 to 86400000 ms, not 999µs",
            "pool_threads: must be from 1 to 4294967295, not 0",
            "shared_memory_ring_bytes: must be from 4096 to 67108864, not 1073741824",
            "fragment_bytes: must be 24 or more, not 23",
            "max_giop_version: must be from 1.0 to 1.2, not 2.0",
            "limits.queued_requests_max: must be from 1 to 65536, not 0",
            "limits.send_timeout: must be from 1 to 86400000 ms, not 172800s",
            "limits.idle_buffer_time: must be from 10 to 86400000 ms, not 1ms",
            "-ORBFancy: there is no such option; there are",
            "-ORBWait: `fast` is not a wait strategy",
            "/nowhere.toml: ",
        ];
        for words in expected {
            assert!(
                told.iter().any(|line| line.contains(words)),
                "{words}: {text}"
            );
        }
    }

    #[test]
    fn the_options_on_the_pages_are_those_of_the_code() {
        let source = include_str!("config.rs");
        let mut table = "| option | value | in a file | meaning |\n|---|---|---|---|\n\
            | `-ORBConfigFile` | `FILE` | | The file. In code: `OrbBuilder::config_file`. |\n"
            .to_owned();
        for key in known_keys("") {
            let option = OPTIONS.iter().find(|option| option.key == key);
            let (name, value) = option.map_or_else(Default::default, |option| {
                (format!("`-ORB{}`", option.name), shown(option.value))
            });
            let meaning = comment_before(source, &format!("{key}:"));
            let place = place(&key);
            table += &format!("| {name} | {value} | {place} | {meaning} |\n");
        }
        table += "| `-ORBid` | `NAME` | | Accepted and ignored. |\n";
        check_part("reference/options.md", "options", &table);
        for option in OPTIONS {
            assert!(
                table.contains(&format!("`-ORB{}`", option.name)),
                "{option:?}"
            );
        }
    }

    /// The values of an option, or their form.
    fn shown(value: &str) -> String {
        let values: Vec<_> = value.split('|').map(|value| format!("`{value}`")).collect();
        values.join(", ")
    }

    /// How a file names a setting: a key, or a table with its keys.
    fn place(key: &str) -> String {
        let example = include_str!("../../../../examples/orb.toml");
        let table = [format!("[[{key}]]"), format!("[{key}]")];
        let Some(table) = table.iter().find(|table| example.contains(table.as_str())) else {
            return format!("`{key}`");
        };
        // References have names of the application; the limits have a page.
        if ["initial_references", "limits"].contains(&key) {
            return format!("`{table}`");
        }
        let keys = known_keys(table);
        let keys: Vec<_> = keys.iter().map(|key| format!("`{key}`")).collect();
        format!("`{table}` {}", keys.join(", "))
    }
}
