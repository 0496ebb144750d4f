//! What an ORB does about a call that exceeds its annotated times: the choices, and their texts in options and files.

use crate::realtime::NativePriority;
use crate::strategies::PeriodScope;
use core::fmt;
use core::str::FromStr;
use std::time::Duration;

/// What happens to a call whose servant executes longer than its `@worst_case_time`. Each overrun is counted, whatever is chosen.
///
/// Everything but `Count` needs a thread that watches the calls: it starts when a servant with a worst case is activated, and costs at
/// most one more system call for each call of such an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Overrun {
    /// It is counted when the servant has returned, and reported to the hook.
    #[default]
    Count,
    /// Until its servant returns, the serving thread has this native priority, if that is lower than its own; 0 is that of SCHED_OTHER.
    Demote(NativePriority),
    /// The servant is asked to stop: [`CurrentCall::check`](crate::CurrentCall::check) returns TIMEOUT, COMPLETED_MAYBE, from then on. It
    /// keeps its priority until it stops.
    Stop,
}

/// What happens to a call that arrives less than a `@period` after the one before. Each is counted, whatever is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum EarlyCalls {
    /// It is served at once.
    #[default]
    Count,
    /// It is refused with TRANSIENT, COMPLETED_NO, and does not count as the call before the next one.
    Refuse,
    /// It waits on its thread until the period is over, at most this long after its arrival. It is refused if the period ends later,
    /// and with TIMEOUT if its deadline passes before the period ends.
    ///
    /// Only a thread that serves one client may wait: that of [`ThreadPerConnection`](crate::DispatchStrategy::ThreadPerConnection), or
    /// the calling thread of a collocated call. Other dispatch strategies refuse the activation with INV_POLICY.
    Delay(Duration),
}

/// What an object adapter does about calls beyond their annotated times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Enforcement {
    pub(crate) overrun: Overrun,
    pub(crate) early: EarlyCalls,
    pub(crate) scope: PeriodScope,
}

impl FromStr for Overrun {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let priority = text.strip_prefix("demote:").map(str::parse);
        match (text, priority) {
            ("count", _) => Ok(Self::Count),
            ("stop", _) => Ok(Self::Stop),
            (_, Some(Ok(priority @ 0..=99))) => Ok(Self::Demote(priority)),
            _ => Err(format!(
                "`{text}` is none of count, stop and demote:PRIORITY, where the priority is the host's, 0 to 99"
            )),
        }
    }
}

impl fmt::Display for Overrun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count => f.write_str("count"),
            Self::Demote(priority) => write!(f, "demote:{priority}"),
            Self::Stop => f.write_str("stop"),
        }
    }
}

impl FromStr for EarlyCalls {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let delay_ms = text.strip_prefix("delay:").map(str::parse);
        match (text, delay_ms) {
            ("count", _) => Ok(Self::Count),
            ("refuse", _) => Ok(Self::Refuse),
            (_, Some(Ok(ms @ 1..=DELAY_MS_MAX))) => Ok(Self::Delay(Duration::from_millis(ms))),
            _ => Err(format!(
                "`{text}` is none of count, refuse and delay:MS, where MS is the longest delay, 1 to {DELAY_MS_MAX}"
            )),
        }
    }
}

impl fmt::Display for EarlyCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count => f.write_str("count"),
            Self::Refuse => f.write_str("refuse"),
            Self::Delay(most) => write!(f, "delay:{}", most.as_millis()),
        }
    }
}

/// The longest delay of an early call, in milliseconds: a day, as for the other times of an ORB.
const DELAY_MS_MAX: u64 = 86_400_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_read_as_it_is_written() {
        for overrun in [
            Overrun::Count,
            Overrun::Demote(0),
            Overrun::Demote(99),
            Overrun::Stop,
        ] {
            assert_eq!(overrun.to_string().parse(), Ok(overrun));
        }
        let delay = EarlyCalls::Delay(Duration::from_millis(20));
        for early in [EarlyCalls::Count, EarlyCalls::Refuse, delay] {
            assert_eq!(early.to_string().parse(), Ok(early));
        }
    }

    #[test]
    fn a_wrong_choice_is_refused_with_the_right_ones() {
        for wrong in ["", "demote", "demote:", "demote:100", "demote:-1", "halt"] {
            let refused = wrong.parse::<Overrun>().expect_err(wrong);
            assert!(refused.contains("demote:PRIORITY"), "{refused}");
        }
        for wrong in ["", "delay", "delay:0", "delay:86400001", "queue"] {
            let refused = wrong.parse::<EarlyCalls>().expect_err(wrong);
            assert!(refused.contains("delay:MS"), "{refused}");
        }
    }
}
