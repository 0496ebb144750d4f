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

/// True if nobody can connect to the member.
fn is_client(config: &FederationConfig) -> bool {
    let network = &config.network;
    network.listen.is_empty() && !network.multicast
}

/// The sessions of the members and routers to which a session has a link.
pub(crate) fn linked_sessions(session: &Session) -> impl Iterator<Item = String> + use<> {
    let info = session.info();
    let linked = info.routers_zid().wait().chain(info.peers_zid().wait());
    linked.map(|id| id.to_string())
}

/// When a session is opened again that shall connect and does not reach others.
///
/// Two faults of Zenoh 1.10 need it. It notes which endpoint a link belongs to after it has opened the link: a link that breaks in between
/// belongs to none, and Zenoh does not connect to its endpoint again. And a router learns that another one has gone up to 0.1 s later: if
/// that one is back before, the two do not tell each other their subscriptions and members anew.
#[derive(Debug)]
pub(crate) struct LinkWatch {
    /// Since when it has not reached them.
    apart_since_ns: Option<u64>,
    /// How long it may; doubles each time.
    patience_ns: u64,
}

impl LinkWatch {
    /// Looks again. True when the session shall be opened again.
    pub(crate) fn look(&mut self, is_joined: bool, now_ns: u64) -> bool {
        if is_joined {
            *self = Self::default();
            return false;
        }
        let since_ns = *self.apart_since_ns.get_or_insert(now_ns);
        let is_over = now_ns.saturating_sub(since_ns) >= self.patience_ns;
        if is_over {
            self.apart_since_ns = Some(now_ns);
            self.patience_ns = (2 * self.patience_ns).min(PATIENCE_NS_MAX);
        }
        is_over
    }
}

impl Default for LinkWatch {
    fn default() -> Self {
        Self {
            apart_since_ns: None,
            patience_ns: PATIENCE_NS_MIN,
        }
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
    // Routers pass on what others send, in any form of network; peers only if each is connected to each. Nobody connects to a member that does
    // not listen, so it is a client: it has one link at a time, and a router tells a client everything anew when it connects again.
    let mode = if is_client(config) {
        "client"
    } else {
        "router"
    };
    set("mode", &quoted(mode))?;
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

/// Longer than the longest pause before Zenoh connects again, and the 10 s that an attempt may take.
const PATIENCE_NS_MIN: u64 = 15_000_000_000;
/// Where nobody is there, each try costs a new session.
const PATIENCE_NS_MAX: u64 = 120_000_000_000;

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
        assert_eq!(get(&made, "mode"), "\"client\"");
        assert_eq!(get(&made, "scouting/multicast/enabled"), "false");
        assert!(!get(&made, "listen/endpoints").contains("tcp"));
        config.network.listen = vec!["tcp/127.0.0.1:0".to_owned()];
        config.congestion = FederationCongestion::Block(std::time::Duration::from_secs(2));
        let made = zenoh_config(&config).expect("it is accepted");
        assert_eq!(get(&made, "mode"), "\"router\"");
        assert!(get(&made, "listen/endpoints").contains("tcp/127.0.0.1:0"));
        let key = "transport/link/tx/queue/congestion_control/block/wait_before_close";
        assert_eq!(get(&made, key), "2000000");
    }

    #[test]
    fn a_session_that_reaches_nobody_is_opened_again_after_longer_and_longer_waits() {
        let mut watch = LinkWatch::default();
        let mut opened = Vec::new();
        for second in 0..600 {
            if watch.look(false, second * 1_000_000_000) {
                opened.push(second);
            }
        }
        assert_eq!(opened, [15, 45, 105, 225, 345, 465, 585]);
        // Once it is joined, it is patient for the shortest time again, from the next look at which it is not.
        assert!(!watch.look(true, 700_000_000_000));
        assert!(!watch.look(false, 900_000_000_000));
        assert!(!watch.look(false, 914_999_999_999));
        assert!(watch.look(false, 915_000_000_000));
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
