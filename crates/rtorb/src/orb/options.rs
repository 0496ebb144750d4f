//! The `-ORB...` options that every CORBA program takes on its command line (CORBA 3, 4.5.1).

use super::builder::{OrbBuilder, OrbError};
use super::config_file;
use super::settings::{Settings, check_bands, check_lanes};
use crate::dispatch::pool::endpoints::LaneEndpoints;
use crate::endpoint::ListenEndpoint;
use crate::realtime::{Priority, PriorityBand, ThreadpoolLane};
use crate::suggest;
use core::fmt;
use core::num::{NonZeroU64, NonZeroUsize};
use core::str::FromStr;
use std::path::Path;

/// An option for a setting that files have too.
#[derive(Debug)]
struct SettingOption {
    /// Its name behind `-ORB`.
    name: &'static str,
    /// The values that there are, or the form of a value.
    value: &'static str,
    /// The key of the setting in a file.
    #[cfg(test)]
    key: &'static str,
    set: fn(&mut Settings, &str) -> Result<(), String>,
}

macro_rules! options {
    ($($name:ident $value:literal => $key:ident by $set:ident,)*) => {
        const OPTIONS: &[SettingOption] = &[$(SettingOption {
            name: stringify!($name),
            value: $value,
            #[cfg(test)]
            key: stringify!($key),
            set: |settings, value| $set(&mut settings.$key, value),
        },)*];
    };
}

options! {
    Preset "default|corbaplus|minicool|mt_orbix|tao" => preset by choice,
    Connection "exclusive|multiplexed|banded" => connection by choice,
    Wait "read|reactor|leader_followers|connection_thread" => wait by choice,
    Dispatch "thread_per_connection|reactive|worker_pool|leader_followers|filter_chain|lanes" => dispatch by choice,
    PoolThreads "N" => pool_threads by threads,
    Lanes "PRIORITY:STATIC[+DYNAMIC],..." => lanes by lanes,
    Bands "LOW-HIGH,..." => bands by bands,
    BindPriorityBands "yes|no" => bind_priority_bands by yes_or_no,
    PriorityMapping "native|linear|continuous" => priority_mapping by choice,
    SchedPolicy "SCHED_FIFO|SCHED_RR" => sched_policy by choice,
    BestEffort "yes|no" => best_effort by yes_or_no,
    ConnectTimeoutMs "N" => connect_timeout_ms by positive_milliseconds,
    RoundTripTimeoutMs "N" => round_trip_timeout_ms by milliseconds,
    Collocation "direct|transport" => collocation by choice,
    ShmWait "futex|yield|spin|adaptive" => shm_wait by choice,
    ShmRingBytes "N" => shm_ring_bytes by bytes,
    ShmGroup "GROUP" => shm_group by choice,
    ListenEndpoints "ENDPOINT[;ENDPOINT...]" => listen by listen,
    LaneListenEndpoints "POOL:LANE=ENDPOINT" => lane_endpoints by lane_endpoints,
    InitRef "NAME=REFERENCE" => initial_references by initial_reference,
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
    let mut listed = "there is no such option; there are".to_owned();
    let mut line_begins = 0;
    for (name, _) in all() {
        let separator = if listed.len() - line_begins + name.len() > LINE_BYTES_MAX {
            line_begins = listed.len();
            "\n  "
        } else {
            " "
        };
        listed.extend([separator, "-ORB", name]);
    }
    listed
}

/// The bytes of a line of a list, about.
const LINE_BYTES_MAX: usize = 90;

/// Removes the options from `arguments` and applies them; returns the builder and the remaining arguments.
///
/// Options replace settings of files, wherever the files are named: an option is for this run, a file for all runs.
pub(super) fn take(
    builder: OrbBuilder,
    arguments: impl IntoIterator<Item = String>,
) -> Result<(OrbBuilder, Vec<String>), OrbError> {
    let mut left = Vec::new();
    let mut files = Vec::new();
    let mut settings = Settings::default();
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        let Some(option) = argument.strip_prefix("-ORB") else {
            left.push(argument);
            continue;
        };
        let mut value = || {
            let value = arguments.next();
            value.ok_or_else(|| "its value is missing".to_owned())
        };
        let taken = value().and_then(|first| match option {
            "ConfigFile" => {
                files.push(config_file::read(Path::new(&first)));
                Ok(())
            }
            // TAO uses two arguments.
            "LaneListenEndpoints" if !first.contains('=') => {
                set(&mut settings, option, &format!("{first}={}", value()?))
            }
            _ => set(&mut settings, option, &first),
        });
        taken.map_err(|reason| OrbError::Option {
            option: argument,
            reason,
        })?;
    }
    let mut places = files.into_iter().collect::<Result<Vec<_>, _>>()?;
    places.push(settings);
    Ok((Settings::apply_all(places, builder)?, left))
}

fn set(settings: &mut Settings, name: &str, value: &str) -> Result<(), String> {
    let name = match name {
        // CORBA names an ORB to find it again in its process. Here each ORB is a value, so the name has no effect.
        "id" | "Id" => return Ok(()),
        "Endpoint" | "endPoint" => "ListenEndpoints",
        other => other,
    };
    let option = OPTIONS.iter().find(|option| option.name == name);
    (option.ok_or_else(|| unknown(name))?.set)(settings, value)
}

fn choice<T: FromStr<Err: fmt::Display>>(
    setting: &mut Option<T>,
    value: &str,
) -> Result<(), String> {
    *setting = Some(parsed(value)?);
    Ok(())
}

fn threads(setting: &mut Option<NonZeroUsize>, value: &str) -> Result<(), String> {
    let threads = value.parse();
    *setting =
        Some(threads.map_err(|_| format!("`{value}` is no number of threads; write 1 or more"))?);
    Ok(())
}

fn bytes(setting: &mut Option<NonZeroUsize>, value: &str) -> Result<(), String> {
    let bytes = value.parse();
    *setting = Some(bytes.map_err(|_| format!("`{value}` is no number of bytes; write 262144"))?);
    Ok(())
}

fn listen(setting: &mut Option<Vec<ListenEndpoint>>, value: &str) -> Result<(), String> {
    let listen = setting.get_or_insert_default();
    for endpoint in each(value, ';') {
        listen.push(parsed(endpoint)?);
    }
    if listen.is_empty() {
        return Err("there is no endpoint; name at least one, as iiop://127.0.0.1:0".to_owned());
    }
    Ok(())
}

fn lane_endpoints(setting: &mut Option<LaneEndpoints>, value: &str) -> Result<(), String> {
    let (lane, endpoints) = value.split_once('=').unwrap_or((value, ""));
    let given = setting.get_or_insert_default();
    each(endpoints, ';').try_for_each(|endpoint| given.add(lane, parsed(endpoint)?))
}

fn initial_reference(setting: &mut Vec<(String, String)>, value: &str) -> Result<(), String> {
    match value.split_once('=') {
        Some((id, reference)) if !id.is_empty() && !reference.is_empty() => {
            setting.push((id.to_owned(), reference.to_owned()));
            Ok(())
        }
        _ => Err("its value is no NAME=REFERENCE".to_owned()),
    }
}

/// Parses `60:1,10:2+4`: the lane of priority 60 has one thread; that of 10 has two, and up to four more while they are busy.
fn lanes(setting: &mut Option<Vec<ThreadpoolLane>>, value: &str) -> Result<(), String> {
    let wrong =
        |lane| format!("`{lane}` is no lane; write PRIORITY:STATIC[+DYNAMIC], as 60:1 or 10:2+4");
    let lane = |text| {
        let (number, threads) = str::split_once(text, ':').ok_or_else(|| wrong(text))?;
        let (fixed, dynamic) = threads.split_once('+').unwrap_or((threads, "0"));
        Ok(ThreadpoolLane {
            lane_priority: priority(number)?,
            static_threads: fixed.parse().map_err(|_| wrong(text))?,
            dynamic_threads: dynamic.parse().map_err(|_| wrong(text))?,
        })
    };
    let lanes: Vec<_> = each(value, ',').map(lane).collect::<Result<_, String>>()?;
    check_lanes(&lanes)?;
    *setting = Some(lanes);
    Ok(())
}

/// Parses `0-10,11-99`.
fn bands(setting: &mut Option<Vec<PriorityBand>>, value: &str) -> Result<(), String> {
    let band = |text| {
        let (low, high) = str::split_once(text, '-')
            .ok_or_else(|| format!("`{text}` is no band; write LOW-HIGH, as 0-10"))?;
        Ok(PriorityBand {
            low: priority(low)?.get(),
            high: priority(high)?.get(),
        })
    };
    let bands: Vec<_> = each(value, ',').map(band).collect::<Result<_, String>>()?;
    check_bands(&bands)?;
    *setting = Some(bands);
    Ok(())
}

fn priority(text: &str) -> Result<Priority, String> {
    let number = text.parse::<i16>().ok().map(Priority::new);
    match number {
        Some(Ok(priority)) => Ok(priority),
        _ => Err(format!("`{text}` is no CORBA priority; write 0 to 32767")),
    }
}

fn milliseconds(setting: &mut Option<u64>, value: &str) -> Result<(), String> {
    let number = value.parse();
    *setting = Some(number.map_err(|_| {
        format!("`{value}` is no number of milliseconds; write 2000 for two seconds")
    })?);
    Ok(())
}

fn positive_milliseconds(setting: &mut Option<NonZeroU64>, value: &str) -> Result<(), String> {
    let mut number = None;
    milliseconds(&mut number, value)?;
    *setting = number.and_then(NonZeroU64::new);
    setting.map_or_else(
        || Err("a connection is not open at once; write 1 or more".to_owned()),
        |_| Ok(()),
    )
}

fn yes_or_no(setting: &mut Option<bool>, value: &str) -> Result<(), String> {
    *setting = Some(match value {
        "yes" => true,
        "no" => false,
        _ => return Err(format!("`{value}` is neither yes nor no")),
    });
    Ok(())
}

fn parsed<T: FromStr<Err: fmt::Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

fn each(list: &str, separator: char) -> impl Iterator<Item = &str> {
    list.split(separator).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::config_file::known_keys;
    use super::*;
    use crate::strategies::{ConnectionStrategy, DispatchStrategy, Strategies, WaitStrategy};
    use rtorb_tests::pages::{check_part, comment_before};

    fn taken(arguments: &[&str]) -> Result<(OrbBuilder, Vec<String>), OrbError> {
        let arguments = arguments.iter().map(ToString::to_string);
        take(OrbBuilder::default(), arguments)
    }

    fn builder(arguments: &[&str]) -> OrbBuilder {
        taken(arguments).expect("right options").0
    }

    #[test]
    fn options_are_taken_and_the_rest_is_left() {
        let (builder, left) = taken(&["program", "-ORBPreset", "tao", "-v", "-ORBid", "x", "file"])
            .expect("right options");
        assert_eq!(builder.strategies, Strategies::TAO);
        assert_eq!(left, ["program", "-v", "file"]);
    }

    #[test]
    fn one_axis_goes_before_the_preset_wherever_it_stands() {
        let connection = ConnectionStrategy::Multiplexed {
            wait: WaitStrategy::Read,
        };
        let expected = Strategies::new(connection, DispatchStrategy::Reactive);
        let axes = ["-ORBWait", "read", "-ORBDispatch", "reactive"];
        let preset = ["-ORBPreset", "minicool"];
        assert_eq!(builder(&[&axes[..], &preset].concat()).strategies, expected);
        assert_eq!(builder(&[&preset[..], &axes].concat()).strategies, expected);
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
            let refused = taken(arguments).map(|_| ()).expect_err("not together");
            let text = refused.to_string();
            for words in ["exclusive", "choose the wait strategy read"] {
                assert!(text.contains(words), "{arguments:?}: {text}");
            }
        }
        // Of two places, each alone may be wrong.
        let connection = ConnectionStrategy::Banded {
            wait: WaitStrategy::Reactor,
        };
        let both = builder(&["-ORBConnection", "banded", "-ORBConfigFile", &path]);
        assert_eq!(both.strategies.connection, connection);
    }

    #[test]
    fn lanes_bands_and_their_scheduling_are_read() {
        let builder = builder(&[
            "-ORBLanes",
            "60:1,10:2+4",
            "-ORBBands",
            "0-10,11-60",
            "-ORBSchedPolicy",
            "SCHED_RR",
            "-ORBPriorityMapping",
            "direct",
            "-ORBPoolThreads",
            "3",
        ]);
        let lanes = builder.lanes.iter().map(|lane| {
            let threads = (lane.static_threads, lane.dynamic_threads);
            (lane.lane_priority.get(), threads)
        });
        assert_eq!(lanes.collect::<Vec<_>>(), [(60, (1, 0)), (10, (2, 4))]);
        assert_eq!(builder.client_policies.len(), 1);
        assert!(builder.round_robin);
        assert_eq!(builder.pool_threads, 3);
    }

    #[test]
    fn lanes_without_a_priority_on_this_host_are_refused() {
        let linear = ["-ORBLanes", "200:1", "-ORBPriorityMapping", "linear"];
        assert!(builder(&linear).build().is_ok());
        let error = builder(&linear[..2]).build().map(|_| ());
        let text = error.expect_err("no such native priority").to_string();
        for words in ["-ORBLanes", "200", "NativeMapping", "-ORBPriorityMapping"] {
            assert!(text.contains(words), "{text}");
        }
    }

    #[test]
    fn a_clients_bands_that_hold_nothing_are_refused_in_code_too() {
        let band = PriorityBand { low: 9, high: 1 };
        let policy = crate::realtime::Policy::PriorityBandedConnection(vec![band]);
        let built = OrbBuilder::default().client_policies([policy]).build();
        let text = built.map(|_| ()).expect_err("nothing in it").to_string();
        assert!(text.contains("9 to 1"), "{text}");
    }

    #[test]
    fn an_endpoint_of_a_lane_is_read_in_our_form_and_in_that_of_tao() {
        for arguments in [
            &["-ORBLaneListenEndpoints", "1:0=iiop://127.0.0.1:2810"][..],
            &["-ORBLaneListenEndpoints", "1:0", "iiop://127.0.0.1:2810"],
        ] {
            let endpoints = builder(arguments).lane_endpoints;
            let of_lane = endpoints.of_lane(&[], crate::realtime::ThreadpoolId(1), 0);
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
            .and_then(|builder| builder.args(arguments))
            .expect("all is right");
        assert_eq!(builder.pool_threads, 8);
        assert_eq!(builder.strategies, Strategies::MINICOOL);
        assert_eq!(builder.listen, ["iiop://127.0.0.1:7".parse().expect("one")]);
        assert_eq!(builder.pool_threads(9).pool_threads, 9);
    }

    #[test]
    fn what_is_wrong_is_told_with_what_is_right() {
        let rows = [
            (&["-ORBPreset", "fancy"][..], "corbaplus"),
            (&["-ORBPreset"], "missing"),
            (&["-ORBFancy", "1"], "-ORBPreset"),
            (&["-ORBPoolThreads", "0"], "1 or more"),
            (&["-ORBLanes", "60"], "60:1"),
            (&["-ORBLanes", "60:0"], "at least 1"),
            (&["-ORBLanes", "60:1,60:1"], "two lanes"),
            (&["-ORBLanes", "-1:1"], "0 to 32767"),
            (&["-ORBLanes", ","], "at least one"),
            (&["-ORBBands", "5"], "LOW-HIGH"),
            (&["-ORBBands", "9-1"], "9 to 1"),
            (&["-ORBPriorityMapping", "log"], "linear"),
            (&["-ORBSchedPolicy", "SCHED_OTHER"], "SCHED_RR"),
            (&["-ORBBestEffort", "maybe"], "yes"),
            (&["-ORBRoundTripTimeoutMs", "2s"], "2000"),
            (&["-ORBConnectTimeoutMs", "0"], "1 or more"),
            (&["-ORBListenEndpoints", "ftp://x"], "iiop://"),
            (&["-ORBListenEndpoints", ";"], "at least one"),
            (&["-ORBLaneListenEndpoints", "1=iiop://:1"], "POOL:LANE"),
            (&["-ORBLaneListenEndpoints", "1:0"], "missing"),
            (&["-ORBInitRef", "NameService"], "NAME=REFERENCE"),
            (&["-ORBConfigFile", "/nowhere.toml"], "/nowhere.toml"),
        ];
        for (arguments, words) in rows {
            let error = taken(arguments).map(|_| ()).expect_err(words);
            let text = error.to_string();
            assert!(text.contains(words), "{arguments:?}: {text}");
            let is_named = text.contains(arguments[0]) || arguments[0] == "-ORBConfigFile";
            assert!(is_named, "{arguments:?}: {text}");
        }
    }

    #[test]
    fn the_options_on_the_pages_are_those_of_the_code() {
        let source = include_str!("settings.rs");
        let mut table = "| option | value | in a file | meaning |\n|---|---|---|---|\n\
            | `-ORBConfigFile` | `FILE` | | The file. In code: `OrbBuilder::config_file`. |\n"
            .to_owned();
        for key in known_keys("") {
            let option = OPTIONS.iter().find(|option| option.key == key);
            let (name, value) = option.map_or_else(Default::default, |option| {
                (format!("`-ORB{}`", option.name), shown(option.value))
            });
            let meaning = comment_before(source, &format!("pub(super) {key}:"));
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
