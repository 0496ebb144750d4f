//! What an agent starts for whoever reaches it: the servers of this program that are measured, and nothing else.
//!
//! None of them runs a program, reads or writes a file, or listens elsewhere than over TCP.

use crate::contestants::demux::Kind;

/// Whether an agent starts this.
///
/// # Errors
/// Why not.
pub fn allow(role: &[String]) -> Result<(), String> {
    let words: Vec<&str> = role.iter().map(String::as_str).collect();
    let is_number = |word: &str, max: usize| word.parse().is_ok_and(|number: usize| number <= max);
    let allowed = match words[..] {
        ["raw-server", "tcp", _] => true,
        ["cubit-server", endpoint] => is_tcp(endpoint),
        [
            "declared-lane-server" | "propagated-lane-server",
            endpoint,
            priority,
        ] => is_tcp(endpoint) && is_number(priority, PRIORITY_MAX),
        ["demux-server", endpoint, operations, objects] => {
            let kinds = [Kind::Single, Kind::Large].map(|kind| kind.operations().to_string());
            let is_kind = kinds.iter().any(|known| known == operations);
            is_tcp(endpoint) && is_kind && is_number(objects, OBJECTS_MAX)
        }
        ["rate-server", endpoint, _, ref objects @ ..] => {
            is_tcp(endpoint) && objects.len() <= RATE_OBJECTS_MAX
        }
        _ => false,
    };
    if allowed {
        Ok(())
    } else {
        Err(format!(
            "an agent starts the laboratory's servers over TCP, and not {:?}",
            words.join(" ")
        ))
    }
}

fn is_tcp(endpoint: &str) -> bool {
    endpoint.starts_with("iiop://")
}

const PRIORITY_MAX: usize = 99;
/// As many as `orb/demux` has, which is a hundred megabytes.
const OBJECTS_MAX: usize = 1_000_000;
const RATE_OBJECTS_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str) -> Result<(), String> {
        let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
        allow(&words)
    }

    #[test]
    fn servers_over_tcp_are_started() {
        for role in [
            "raw-server tcp 10.0.0.1:0",
            "cubit-server iiop://10.0.0.1:0",
            "declared-lane-server iiop://10.0.0.1:0 50",
            "propagated-lane-server iiop://10.0.0.1:0 0",
            "demux-server iiop://10.0.0.1:0 300 1000000",
            "rate-server iiop://10.0.0.1:0 tao 60 10w",
        ] {
            assert_eq!(asked(role), Ok(()), "{role}");
        }
    }

    #[test]
    fn nothing_else_is() {
        for role in [
            "exec sh -c true",
            "exec true",
            "cubit-server uiop:///tmp/x",
            "raw-server unix /tmp/x",
            "raw-server futex /dev/shm/x",
            "demux-server iiop://10.0.0.1:0 1 1000001",
            "demux-server iiop://10.0.0.1:0 7 1",
            "demux-server uiop:///tmp/x 1 1",
            "declared-lane-server iiop://10.0.0.1:0 100",
            "rate-server uiop:///tmp/x tao",
            "probe",
            "cubit-client IOR:00",
            "",
        ] {
            let why = asked(role).unwrap_err();
            assert!(why.contains("not"), "{role}: {why}");
        }
    }
}
