//! What a user knows of the clocks of several hosts.

use std::fmt;
use std::str::FromStr;

/// How a moment of an agent's host is converted to the time of this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clocks {
    /// CLOCK_REALTIME of all hosts is disciplined, by PTP for example.
    Disciplined {
        /// The clocks of two hosts are never further apart.
        error_ns: u64,
    },
    /// Nothing is known of the clocks: the other host sends a datagram, and this host's kernel stamps it.
    Datagram,
}

impl FromStr for Clocks {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || {
            format!(
                "{text:?} says nothing of the clocks; write datagram, or disciplined with the largest error: disciplined:500ns, disciplined:2us or disciplined:1ms"
            )
        };
        if text == DATAGRAM {
            return Ok(Self::Datagram);
        }
        let error = text.strip_prefix(DISCIPLINED).ok_or_else(refused)?;
        let units = [("ns", 1), ("us", 1_000), ("ms", 1_000_000)];
        let found = units.iter().find_map(|(unit, ns)| {
            let count: u64 = error.strip_suffix(unit)?.parse().ok()?;
            count.checked_mul(*ns)
        });
        match found {
            Some(error_ns) if error_ns <= ERROR_NS_MAX => Ok(Self::Disciplined { error_ns }),
            Some(_) | None => Err(refused()),
        }
    }
}

impl fmt::Display for Clocks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disciplined { error_ns } => write!(formatter, "{DISCIPLINED}{error_ns}ns"),
            Self::Datagram => formatter.write_str(DATAGRAM),
        }
    }
}

const DATAGRAM: &str = "datagram";
const DISCIPLINED: &str = "disciplined:";
/// With a larger error no latency could be told.
const ERROR_NS_MAX: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_read_with_their_unit() {
        let read = |text: &str| text.parse::<Clocks>();
        assert_eq!(read("datagram"), Ok(Clocks::Datagram));
        let disciplined = |error_ns| Ok(Clocks::Disciplined { error_ns });
        assert_eq!(read("disciplined:2us"), disciplined(2_000));
        assert_eq!(read("disciplined:700ns"), disciplined(700));
        let written = Clocks::Disciplined { error_ns: 40 }.to_string();
        assert_eq!(read(&written), disciplined(40));
    }

    #[test]
    fn what_bounds_nothing_is_refused() {
        for text in [
            "",
            "ptp",
            "disciplined",
            "disciplined:2",
            "disciplined:-1us",
            "disciplined:99999999999ms",
        ] {
            let why = text.parse::<Clocks>().unwrap_err();
            assert!(why.contains("disciplined:2us"), "{why}");
        }
    }
}
