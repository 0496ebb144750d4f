//! A scheduler in another process, whose changes a channel follows.

use rtorb::ExceptionKind;
use rtorb_os::clock::monotonic_ns;
use rtorb_services::events::Channel;
use rtorb_services::scheduling::Schedule;
use rtorb_services::stubs::rtec_scheduler::rtec_scheduler::Scheduler;

use crate::output::{note, warn};

/// A scheduler, and the schedule that the channel has of it.
pub(super) struct FollowedScheduler {
    scheduler: Scheduler,
    known: Option<Schedule>,
    /// What the last warning was of, which is not repeated.
    warned: Option<Trouble>,
    next_ns: u64,
}

/// Why the channel does not follow.
#[derive(PartialEq)]
enum Trouble {
    /// The scheduler does not answer.
    Silent,
    /// The channel cannot change this.
    Refused(String),
}

impl FollowedScheduler {
    pub(super) fn new(scheduler: Scheduler) -> Self {
        Self {
            scheduler,
            known: None,
            warned: None,
            next_ns: 0,
        }
    }

    /// Asks the scheduler, at most once a second, and changes the channel if it has another schedule. What the channel cannot change is
    /// said once, and tried again each time.
    pub(super) fn look(&mut self, channel: &Channel) {
        if monotonic_ns() < self.next_ns {
            return;
        }
        self.next_ns = monotonic_ns() + ASK_EVERY_NS;
        let asked = match Schedule::ask(&self.scheduler) {
            Ok(asked) => asked,
            // It has computed nothing yet.
            Err(exception) if exception.kind == ExceptionKind::BadInvOrder => return,
            Err(exception) => {
                let text = format!("the scheduler does not tell its schedule: {exception}");
                return self.warn_once(Trouble::Silent, text);
            }
        };
        if self.known.as_ref() != Some(&asked) {
            if let Err(part) = channel.reorder(&asked) {
                let text = format!("the channel keeps its order: {part}");
                return self.warn_once(Trouble::Refused(part.to_string()), text);
            }
            if self.known.replace(asked).is_some() {
                note!("the channel follows a new schedule");
            }
        }
        self.warned = None;
    }

    fn warn_once(&mut self, trouble: Trouble, text: String) {
        if self.warned.as_ref() != Some(&trouble) {
            warn(text);
            self.warned = Some(trouble);
        }
    }
}

const ASK_EVERY_NS: u64 = 1_000_000_000;
