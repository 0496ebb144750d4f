//! The configuration file of an ORB: TOML, with the names of the `-ORB` options in snake case.

use super::builder::OrbError;
use super::config::{Mapping, OrbConfig, RoundRobin, check_bands, check_lanes, check_protocols};
use super::ranges::{Count, Milliseconds};
use crate::dispatch::pool::endpoints::LaneEndpoints;
use crate::endpoint::ListenEndpoint;
use crate::realtime::{Priority, PriorityBand, Protocol, Reservation, ThreadpoolLane};
use crate::strategies::{
    Collocation, ConnectionStrategy, DeadlineForm, Deadlines, DispatchStrategy, FullCallTable,
    RequestOrder, SharedMemoryWait, Strategies, WaitStrategy,
};
use crate::suggest;
use crate::timing::{EarlyCalls, Overrun, PeriodScope};
use rtorb_os::sched::SchedPolicy;
use rtorb_os::thread::ThreadConfig;
use rtorb_wire::cdr::CharCodeSet;
use serde::de::{Deserialize, Deserializer, Error};
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use std::time::Duration;

/// The largest file with a reference or with options.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Reads the configuration in a file.
pub(super) fn read(path: &Path) -> Result<OrbConfig, OrbError> {
    let wrong = |line, reason| OrbError::ConfigFile {
        path: path.to_owned(),
        line,
        reason,
    };
    let text = read_bounded(path).map_err(|error| {
        let reason = format!("{error}; name a TOML file that this program may read");
        wrong(None, reason)
    })?;
    parse(&text).map_err(|(line, reason)| wrong(line, reason))
}

/// Reads the text of a file with a bound. A named pipe is refused, because it may never have a writer.
pub(super) fn read_bounded(path: &Path) -> io::Result<String> {
    let is_of_shell = path.starts_with("/dev") || path.starts_with("/proc");
    if std::fs::metadata(path)?.file_type().is_fifo() && !is_of_shell {
        return Err(io::Error::other("it is a named pipe"));
    }
    let mut text = String::new();
    let mut bounded = File::open(path)?.take(FILE_BYTES_MAX + 1);
    if bounded.read_to_string(&mut text)? as u64 > FILE_BYTES_MAX {
        let reason = format!("it has more than {FILE_BYTES_MAX} bytes");
        return Err(io::Error::other(reason));
    }
    Ok(text)
}

/// Parses a file; the error has the line and the reason.
fn parse(text: &str) -> Result<OrbConfig, (Option<usize>, String)> {
    toml::from_str(text).map_err(|error| {
        let line = error.span().map(|span| line_of(text, span.start));
        (line, reason(&error))
    })
}

/// The reason of an error. For an unknown key or word, it names the known one that is like it instead of all of them.
pub(super) fn reason(error: &toml::de::Error) -> String {
    let reason = error.message().replace('\n', "; ");
    let mut quoted = reason.split('`').skip(1).step_by(2);
    let is_unknown = reason.starts_with("unknown ");
    let Some(wrong) = quoted.next().filter(|_| is_unknown) else {
        return reason;
    };
    match (
        reason.split_once(", expected"),
        suggest::closest(wrong, quoted),
    ) {
        (Some((unknown, _)), Some(near)) => format!("{unknown}: did you mean `{near}`?"),
        _ => suggest::wrapped(&reason),
    }
}

fn line_of(text: &str, byte: usize) -> usize {
    let before = text.as_bytes().iter().take(byte);
    1 + before.filter(|byte| **byte == b'\n').count()
}

/// Reads values from the texts that options have too.
macro_rules! read_from_text {
    ($($type:ty),*) => {
        $(impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
                let text = Cow::<str>::deserialize(value)?;
                text.parse().map_err(Error::custom)
            }
        })*
    };
}

read_from_text!(Strategies, ConnectionStrategy, WaitStrategy);
read_from_text!(
    DispatchStrategy,
    SharedMemoryWait,
    Collocation,
    DeadlineForm,
    Deadlines,
    FullCallTable,
    RequestOrder
);
read_from_text!(ListenEndpoint, Mapping, RoundRobin);
read_from_text!(Overrun, EarlyCalls, PeriodScope);

/// `native_char_code_set = "UTF-8"`.
pub(super) fn code_set<'de, D: Deserializer<'de>>(
    value: D,
) -> Result<Option<CharCodeSet>, D::Error> {
    let text = Cow::<str>::deserialize(value)?;
    let known = ["UTF-8", "ISO-8859-1", "ISO-8859-15"];
    let code_set = text.parse().map(Some);
    code_set.map_err(|_| Error::custom(suggest::unknown(&text, "code set", &known)))
}

/// `[[lanes]]`: `priority`, `static_threads` (1 if not given), `dynamic_threads` (0), `order` (fifo), and for each static thread
/// a `reservation` with `runtime_us`, `deadline_us` and `period_us`.
pub(super) fn lanes<'de, D: Deserializer<'de>>(
    value: D,
) -> Result<Option<Vec<ThreadpoolLane>>, D::Error> {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct LaneTable {
        priority: PriorityNumber,
        static_threads: Option<Count<1, { u32::MAX as u64 }>>,
        #[serde(default)]
        dynamic_threads: u32,
        #[serde(default)]
        order: RequestOrder,
        reservation: Option<ReservationTable>,
    }
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct ReservationTable {
        runtime_us: u32,
        deadline_us: u32,
        period_us: u32,
    }
    let time = |us: u32| Duration::from_micros(us.into());
    let reservation = |table: ReservationTable| Reservation {
        runtime: time(table.runtime_us),
        deadline: time(table.deadline_us),
        period: time(table.period_us),
    };
    let lane = |table: LaneTable| ThreadpoolLane {
        lane_priority: priority(table.priority),
        static_threads: table
            .static_threads
            .map_or(1, |threads| threads.get() as u32),
        dynamic_threads: table.dynamic_threads,
        order: table.order,
        reservation: table.reservation.map(reservation),
    };
    checked_list(value, lane, check_lanes)
}

/// `[[bands]]`: `low` and `high`.
pub(super) fn bands<'de, D: Deserializer<'de>>(
    value: D,
) -> Result<Option<Vec<PriorityBand>>, D::Error> {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct BandTable {
        low: PriorityNumber,
        high: PriorityNumber,
    }
    let band = |table: BandTable| PriorityBand {
        low: priority(table.low).get(),
        high: priority(table.high).get(),
    };
    checked_list(value, band, check_bands)
}

/// `[[client_protocols]]`: `protocol`, best first, and the properties of that one.
pub(super) fn client_protocols<'de, D: Deserializer<'de>>(
    value: D,
) -> Result<Option<Vec<Protocol>>, D::Error> {
    checked_list(value, |protocol| protocol, check_protocols)
}

/// `[[lane_endpoints]]`: `lane = "POOL:LANE"` and `endpoint`.
pub(super) fn lane_endpoints<'de, D: Deserializer<'de>>(
    value: D,
) -> Result<Option<LaneEndpoints>, D::Error> {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct LaneEndpointTable {
        lane: String,
        endpoint: ListenEndpoint,
    }
    let tables: Vec<LaneEndpointTable> = Vec::deserialize(value)?;
    let mut endpoints = LaneEndpoints::default();
    for LaneEndpointTable { lane, endpoint } in tables {
        endpoints.add(&lane, endpoint).map_err(Error::custom)?;
    }
    Ok(Some(endpoints))
}

/// `[server_threads]`: `policy`, `priority` (the host's, 1 to 99), `cpus`, `stack_bytes`.
pub(super) fn threads<'de, D: Deserializer<'de>>(
    value: D,
) -> Result<Option<ThreadConfig>, D::Error> {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct ThreadTable {
        policy: Option<String>,
        priority: Option<u8>,
        #[serde(default)]
        cpus: Vec<usize>,
        stack_bytes: Option<Count<1>>,
    }
    let table = ThreadTable::deserialize(value)?;
    Ok(Some(ThreadConfig {
        policy: policy(table.policy.as_deref(), table.priority).map_err(Error::custom)?,
        affinity: table.cpus,
        stack_bytes: table.stack_bytes.map(Count::get),
    }))
}

fn policy(name: Option<&str>, priority: Option<u8>) -> Result<Option<SchedPolicy>, String> {
    match (name, priority) {
        (None, None) => Ok(None),
        (Some("SCHED_OTHER"), None) => Ok(Some(SchedPolicy::Other)),
        (Some("SCHED_FIFO"), Some(priority @ 1..=99)) => Ok(Some(SchedPolicy::Fifo(priority))),
        (Some("SCHED_RR"), Some(priority @ 1..=99)) => Ok(Some(SchedPolicy::RoundRobin(priority))),
        _ => Err(
            "`policy` and `priority` do not go together; write policy = \"SCHED_FIFO\" or \"SCHED_RR\" with \
             priority = 1 to 99, or policy = \"SCHED_OTHER\" without"
                .to_owned(),
        ),
    }
}

/// `round_trip_timeout_ms`: 0 is no timeout.
pub(super) fn call_timeout<'de, D: Deserializer<'de>>(
    value: D,
) -> Result<Option<Option<Duration>>, D::Error> {
    let time = Milliseconds::<0, { u64::MAX }>::deserialize(value)?.get();
    Ok(Some((time > Duration::ZERO).then_some(time)))
}

/// Reads a list of tables, converts each and checks the result.
fn checked_list<'de, D: Deserializer<'de>, Table: Deserialize<'de>, T>(
    value: D,
    convert: impl Fn(Table) -> T,
    check: impl Fn(&[T]) -> Result<(), String>,
) -> Result<Option<Vec<T>>, D::Error> {
    let list: Vec<T> = Vec::deserialize(value)?.into_iter().map(convert).collect();
    check(&list).map_err(Error::custom)?;
    Ok(Some(list))
}

/// The number of a CORBA priority.
type PriorityNumber = Count<0, { i16::MAX as u64 }>;

fn priority(number: PriorityNumber) -> Priority {
    let number = i16::try_from(number.get()).map(Priority::new);
    number.ok().and_then(Result::ok).unwrap_or(Priority::MAX)
}

/// The keys that a table of a file may have, as the error for another key lists them. The table of the file itself is "".
#[cfg(test)]
pub(super) fn known_keys(table: &str) -> Vec<String> {
    // The keys of a protocol depend on the protocol: TCP has the most.
    let first = if table == "[[client_protocols]]" {
        "protocol = \"tcp\"\n"
    } else {
        ""
    };
    let (_, reason) = parse(&format!("{table}\n{first}x = 1")).expect_err("there is no x");
    let known = reason.split('`').skip(3).step_by(2);
    first
        .split_whitespace()
        .take(1)
        .chain(known)
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::orb::OrbBuilder;
    use crate::realtime::{TcpProtocolProperties, UnixDomainProtocolProperties};

    #[test]
    fn a_file_with_everything_is_read() {
        let config = parse(include_str!("../../../../examples/orb.toml")).expect("it is right");
        assert_eq!(config.preset, Some(Strategies::TAO));
        assert_eq!(config.connection, Some(ConnectionStrategy::Exclusive));
        assert_eq!(config.wait, Some(WaitStrategy::Read));
        assert_eq!(config.dispatch, Some(DispatchStrategy::Lanes));
        let lanes = config.lanes.as_deref().unwrap_or_default();
        let threads = lanes.iter().map(|lane| {
            let threads = (lane.static_threads, lane.dynamic_threads);
            (lane.lane_priority.get(), threads)
        });
        assert_eq!(threads.collect::<Vec<_>>(), [(60, (1, 0)), (10, (2, 4))]);
        let marked = TcpProtocolProperties {
            enable_network_priority: true,
            ..TcpProtocolProperties::default()
        };
        let protocols = config.client_protocols.unwrap_or_default();
        let unix = Protocol::UnixDomain(UnixDomainProtocolProperties::default());
        assert_eq!(protocols, [unix, Protocol::Tcp(marked)]);
        let server_threads = config.server_threads.expect("a table");
        assert_eq!(server_threads.policy, Some(SchedPolicy::Fifo(50)));
        assert_eq!(server_threads.affinity, [2, 3]);
        assert_eq!(
            config.initial_references,
            [(
                "NameService".to_owned(),
                "corbaloc::localhost:2809/NameService".to_owned()
            )]
            .into()
        );
    }

    #[test]
    fn the_example_names_everything() {
        let example = include_str!("../../../../examples/orb.toml");
        for table in [
            "",
            "[limits]",
            "[[lanes]]",
            "[[bands]]",
            "[server_threads]",
            "[[client_protocols]]",
        ] {
            let (_, part) = example.split_once(table).expect("it has that table");
            for name in known_keys(table) {
                let is_value = part.contains(&format!("\n{name} ="));
                let is_table = part.contains(&format!("[{name}]"));
                assert!(
                    is_value || is_table,
                    "examples/orb.toml does not name {name}"
                );
            }
        }
    }

    #[test]
    fn an_empty_file_chooses_nothing() {
        let before = OrbBuilder::default().strategies(Strategies::TAO);
        let config = parse("# nothing\n").expect("it is right");
        let after = before.clone().config(config);
        assert_eq!(format!("{after:?}"), format!("{before:?}"));
    }

    /// Wrong files, the line of the mistake in each, and words of its reason.
    const WRONG: &[(&str, usize, &str)] = &[
        ("\npreset = \"fancy\"", 2, "corbaplus"),
        (
            "presets = \"tao\"",
            1,
            "unknown field `presets`: did you mean `preset`?",
        ),
        ("colour = \"red\"", 1, "expected one of `preset`"),
        ("dispatch = \"lane\"", 1, "did you mean `lanes`?"),
        ("wait = \"read\"\nwait = \"read\"", 2, "duplicate"),
        ("pool_threads = 0", 1, "1 to 4294967295, not 0"),
        ("pool_threads = \"4\"", 1, "string \"4\""),
        (
            "listen = [\n  \"iiop://127.0.0.1:0\",\n  \"ftp://x\"\n]",
            1,
            "uiop:///",
        ),
        ("[[lanes]]\npriority = 40000", 2, "0 to 32767"),
        (
            "[[lanes]]\npriority = 1\nstatic_threads = 0",
            3,
            "1 to 4294967295, not 0",
        ),
        (
            "[[lanes]]\nstatic_threads = 1",
            1,
            "missing field `priority`",
        ),
        (
            "[[lanes]]\npriority = 1\n[[lanes]]\npriority = 1",
            1,
            "two lanes",
        ),
        (
            "[[lanes]]\npriority = 1\nreservation = { runtime_us = 5, deadline_us = 4, period_us = 100 }",
            1,
            "runtime <= deadline",
        ),
        (
            "[[lanes]]\npriority = 1\nreservation = { runtime_us = 5, deadline_us = 9, period_us = 99 }",
            1,
            "100µs to 4s",
        ),
        ("[[bands]]\nlow = 9\nhigh = 1", 1, "9 to 1"),
        ("connect_timeout_ms = 0", 1, "1 to 86400000 ms, not 0"),
        ("shm_ring_bytes = 4095", 1, "4096 to 67108864, not 4095"),
        ("[limits]\nobjects_max = 0", 2, "1 or more, not 0"),
        (
            "[limits]\nsend_timeout_ms = -1",
            2,
            "1 to 86400000 ms, not -1",
        ),
        ("[limits]\nqueued_requests_max = 65537", 2, "1 to 65536"),
        (
            "[[client_protocols]]\nprotocol = \"udp\"",
            2,
            "`tcp`, `unix`, `shm`",
        ),
        (
            "[[client_protocols]]\nprotocol = \"unix\"\nno_delay = true",
            1,
            "`no_delay`, expected",
        ),
        (
            "[[client_protocols]]\nprotocol = \"tcp\"\n[[client_protocols]]\nprotocol = \"tcp\"",
            1,
            "twice",
        ),
        (
            "[[lane_endpoints]]\nlane = \"1\"\nendpoint = \"iiop://:1\"",
            1,
            "POOL:LANE",
        ),
        ("[server_threads]\npolicy = \"SCHED_FIFO\"", 1, "1 to 99"),
        ("[server_threads]\npriority = 300", 2, "300"),
        ("[limits]\nconnection_max = 1", 2, "`connections_max`"),
        ("priority_mapping = \"logarithmic\"", 1, "continuous"),
        ("sched_policy = \"SCHED_IDLE\"", 1, "SCHED_RR"),
        ("wait = read", 1, ""),
        ("shm_group = -1", 1, "0 to 4294967295"),
        ("shm_group = \"no such\"", 1, "getent group"),
        ("shm_group = true", 1, "the number or the name"),
    ];

    #[test]
    fn what_is_wrong_is_told_with_its_line_and_what_is_right() {
        for &(text, line, words) in WRONG {
            let (where_it_is, reason) = parse(text).expect_err(text);
            assert_eq!(where_it_is, Some(line), "{text}: {reason}");
            assert!(reason.contains(words), "{text}: {reason}");
            let longest = reason.lines().map(str::len).max();
            assert!(longest < Some(300), "{text}: {reason}");
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_told_by_its_name() {
        let error = read(Path::new("/nowhere/orb.toml"));
        let text = error.map(|_| ()).expect_err("it is not there").to_string();
        assert!(text.starts_with("/nowhere/orb.toml: "), "{text}");
    }
}
