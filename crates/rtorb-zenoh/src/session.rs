//! The session in Zenoh: its configuration, the scheduling of its threads, and when it is opened again.

use rtorb_os::thread::spawn;
use zenoh::{Config, Session, Wait};

use crate::config::{FederationConfig, FederationCongestion, FederationError};

/// Opens a session from a thread with the scheduling of `config.zenoh_thread`, which the threads of Zenoh inherit.
///
/// # Errors
/// An endpoint that Zenoh refuses or cannot listen at, or a host that refuses the thread.
pub(crate) fn open(config: &FederationConfig) -> Result<Session, FederationError> {
    let zenoh_config = zenoh_config(config).map_err(refused)?;
    let opening = move || zenoh::open(zenoh_config).wait();
    let thread = spawn("rtorb-zenoh", &config.zenoh_thread, opening)?;
    match thread.join() {
        Ok(Some(opened)) => opened.map_err(|error| refused(error.to_string())),
        _ => Err(refused("it panicked".to_owned())),
    }
}

/// The sessions of the members and routers to which a session has a link.
pub(crate) fn linked_sessions(session: &Session) -> impl Iterator<Item = String> + use<> {
    let info = session.info();
    let linked = info.routers_zid().wait().chain(info.peers_zid().wait());
    linked.map(|id| id.to_string())
}

/// What a member reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Others, as far as it knows.
    Joined,
    /// It has a link to a session that was a member and seems not to be one any more.
    Silent,
    /// It shall connect, and reaches nobody: it has no link, or it saw members and sees none now.
    Nobody,
}

/// When a session is opened again that does not reach others.
///
/// Two faults of Zenoh 1.10 need it. A router learns that another one has gone up to 0.1 s later: if that one is back before, the two do not
/// tell each other their subscriptions and members anew. And a session notes which endpoint a link belongs to after it has opened the link: a
/// link that breaks in between belongs to none, and Zenoh does not connect to its endpoint again.
#[derive(Debug)]
pub(crate) struct LinkWatch {
    /// How long a neighbour may be silent.
    silent_ns_max: u64,
    /// Since when it is not joined.
    apart_since_ns: Option<u64>,
    /// Since when a neighbour is silent.
    silent_since_ns: Option<u64>,
    /// How often the session was opened again since it was joined.
    times: u32,
}

impl LinkWatch {
    /// Others may have links to a member that listens: it leaves it to them for longer to begin anew.
    pub(crate) fn new(listens: bool) -> Self {
        Self {
            silent_ns_max: if listens {
                SILENT_TO_MANY_NS_MAX
            } else {
                SILENT_NS_MAX
            },
            apart_since_ns: None,
            silent_since_ns: None,
            times: 0,
        }
    }

    /// Looks again. True when the session shall be opened again.
    pub(crate) fn look(&mut self, reach: Reach, now_ns: u64) -> bool {
        if reach == Reach::Joined {
            (self.apart_since_ns, self.silent_since_ns) = (None, None);
            self.times = 0;
            return false;
        }
        let apart_since_ns = *self.apart_since_ns.get_or_insert(now_ns);
        if reach == Reach::Silent {
            self.silent_since_ns.get_or_insert(now_ns);
        } else {
            self.silent_since_ns = None;
        }
        let is_over = |since_ns: u64, patience_ns: u64| {
            let patience_ns = (patience_ns << self.times).min(PATIENCE_NS_MAX);
            now_ns.saturating_sub(since_ns) >= patience_ns
        };
        let is_silent = |since_ns| is_over(since_ns, self.silent_ns_max);
        let opens =
            is_over(apart_since_ns, APART_NS_MAX) || self.silent_since_ns.is_some_and(is_silent);
        if opens {
            (self.apart_since_ns, self.silent_since_ns) = (None, None);
            self.times = (self.times + 1).min(TIMES_MAX);
        }
        opens
    }
}

fn refused(why: String) -> FederationError {
    FederationError::Zenoh(why)
}

/// The configuration of a session, which depends on nothing but the member's: no file and no variable of the environment, but for
/// `ZENOH_RUNTIME`, which sets the numbers of threads.
fn zenoh_config(config: &FederationConfig) -> Result<Config, String> {
    let network = &config.network;
    let mut made = Config::default();
    let mut set = |key: &str, value: &str| {
        let inserted = made.insert_json5(key, value);
        inserted.map_err(|error| format!("{key} {value}: {error}"))
    };
    // Routers pass on what others send, in any form of network; peers only if each is connected to each.
    set("mode", "\"router\"")?;
    set("connect/endpoints", &list(&network.connect))?;
    // Without multicast, nobody would find an endpoint that the host chooses.
    let found = ["tcp/0.0.0.0:0".to_owned()];
    let listen = if network.listen.is_empty() && network.multicast {
        &found[..]
    } else {
        &network.listen
    };
    set("listen/endpoints", &list(listen))?;
    // Whoever is not there yet is connected to in the background.
    set("connect/timeout_ms", "-1")?;
    set("connect/exit_on_failure", "false")?;
    set("connect/retry", RETRY)?;
    set("scouting/multicast/enabled", &network.multicast.to_string())?;
    set("scouting/multicast/autoconnect", r#"["router"]"#)?;
    set("transport/link/tx/lease", &milliseconds(network.lease))?;
    let (key, wait) = match config.congestion {
        FederationCongestion::Drop(wait) => ("drop/wait_before_drop", wait),
        FederationCongestion::Block(wait) => ("block/wait_before_close", wait),
    };
    let key = format!("transport/link/tx/queue/congestion_control/{key}");
    set(&key, &wait.as_micros().to_string())?;
    // A router also passes on what is not for this member, such as pictures of ROS 2.
    set("transport/link/rx/max_message_size", MESSAGE_BYTES_MAX)?;
    Ok(made)
}

/// How long it waits before it connects again.
const RETRY: &str = "{period_init_ms: 200, period_max_ms: 2000, period_increase_factor: 2}";

/// Members tell of themselves within some tenths of a second.
const SILENT_NS_MAX: u64 = 3_000_000_000;
const SILENT_TO_MANY_NS_MAX: u64 = 8_000_000_000;
/// Longer than the longest pause before Zenoh connects again, and the 10 s that an attempt may take.
const APART_NS_MAX: u64 = 15_000_000_000;
/// All double each time up to this: each time costs a session.
const PATIENCE_NS_MAX: u64 = 120_000_000_000;
/// Enough for the longest.
const TIMES_MAX: u32 = 6;

/// The greatest message that a session accepts: 64 MiB.
const MESSAGE_BYTES_MAX: &str = "67108864";

fn milliseconds(duration: std::time::Duration) -> String {
    duration.as_millis().to_string()
}

fn list(endpoints: &[String]) -> String {
    let quoted: Vec<String> = endpoints.iter().map(|endpoint| quoted(endpoint)).collect();
    format!("[{}]", quoted.join(","))
}

/// A text of JSON. An endpoint has no character that is written in another way, but for these two.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_is_accepted_and_silent_on_the_network_by_default() {
        let mut config = FederationConfig::new("plant", "press");
        let made = zenoh_config(&config).expect("it is accepted");
        let get = |made: &Config, key: &str| made.get_json(key).expect("it is there");
        assert_eq!(get(&made, "mode"), "\"router\"");
        assert_eq!(get(&made, "scouting/multicast/enabled"), "false");
        assert!(!get(&made, "listen/endpoints").contains("tcp"));
        config.network.listen = vec!["tcp/127.0.0.1:0".to_owned()];
        config.congestion = FederationCongestion::Block(std::time::Duration::from_secs(2));
        let made = zenoh_config(&config).expect("it is accepted");
        assert!(get(&made, "listen/endpoints").contains("tcp/127.0.0.1:0"));
        let key = "transport/link/tx/queue/congestion_control/block/wait_before_close";
        assert_eq!(get(&made, key), "2000000");
    }

    /// The seconds at which a session is opened again.
    fn opened_at(watch: &mut LinkWatch, reach: Reach, seconds: std::ops::Range<u64>) -> Vec<u64> {
        let mut at = |&second: &u64| watch.look(reach, second * 1_000_000_000);
        seconds.filter(|second| at(second)).collect()
    }

    #[test]
    fn a_session_that_reaches_nobody_is_opened_again_after_longer_and_longer_waits() {
        let mut watch = LinkWatch::new(false);
        let opened = opened_at(&mut watch, Reach::Nobody, 0..500);
        assert_eq!(opened, [15, 46, 107, 228, 349, 470]);
        // Once it is joined, it is patient for the shortest time again.
        assert!(!watch.look(Reach::Joined, 600_000_000_000));
        assert_eq!(opened_at(&mut watch, Reach::Silent, 700..720), [703, 710]);
        let mut hub = LinkWatch::new(true);
        assert_eq!(opened_at(&mut hub, Reach::Silent, 0..20), [8]);
    }

    #[test]
    fn a_neighbour_that_is_silent_now_and_then_does_not_make_a_session_wait_for_ever() {
        let mut watch = LinkWatch::new(false);
        let reach = |second| match second % 4 {
            0 | 1 => Reach::Silent,
            _ => Reach::Nobody,
        };
        let at = |&second: &u64| watch.look(reach(second), second * 1_000_000_000);
        let opened: Vec<u64> = (0..40).filter(at).collect();
        assert_eq!(opened, [15]);
    }

    #[test]
    fn a_wrong_endpoint_is_named() {
        for wrong in ["nowhere", "a\"b", "carrier-pigeon"] {
            let mut config = FederationConfig::new("plant", "press");
            config.network.connect = vec![wrong.to_owned()];
            let error = zenoh_config(&config).expect_err(wrong);
            assert!(error.contains("connect/endpoints"), "{error}");
        }
    }
}
