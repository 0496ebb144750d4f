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
    is_silent: bool,
    next_ns: u64,
}

impl FollowedScheduler {
    pub(super) fn new(scheduler: Scheduler) -> Self {
        Self {
            scheduler,
            known: None,
            is_silent: false,
            next_ns: 0,
        }
    }

    /// Asks the scheduler, at most once a second, and changes the channel if it has another schedule. If the channel cannot make
    /// a change, a message says so once.
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
                if !self.is_silent {
                    warn(format!(
                        "the scheduler does not tell its schedule: {exception}"
                    ));
                }
                self.is_silent = true;
                return;
            }
        };
        self.is_silent = false;
        if self.known.as_ref() == Some(&asked) {
            return;
        }
        match channel.reorder(&asked) {
            Ok(()) if self.known.is_some() => note!("the channel follows a new schedule"),
            Ok(()) => {}
            Err(part) => warn(format!("the channel keeps its order: {part}")),
        }
        self.known = Some(asked);
    }
}

const ASK_EVERY_NS: u64 = 1_000_000_000;
