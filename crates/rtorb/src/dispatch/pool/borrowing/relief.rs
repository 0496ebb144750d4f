//! Watches the lanes whose threads are all busy, for the relief thread.
//!
//! When the last thread of a lane becomes busy, it has the pool's relief thread watch the lane. The relief thread wakes when a
//! request waits there. This costs one system call when the last thread becomes busy and one when the first is idle again: two
//! a request in a lane of one thread. Lanes that can get no help pay nothing.

use super::standby::Standby;
use crate::dispatch::pool::lane::Lane;
use crate::poller::{Polled, Poller, Token};
use core::mem::MaybeUninit;
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;

/// What the relief thread waits for.
#[derive(Debug)]
pub(crate) struct Relief {
    /// Reports the event loops of the lanes that can get help, each only while all its threads are busy. The bell is rung when a
    /// lane asks for help, and when the pool stops.
    poller: Poller,
}

impl Relief {
    /// For these lanes; `None` when none of them may get help.
    pub(crate) fn of(lanes: &[Lane]) -> Result<Option<Self>, Errno> {
        let relieved = || lanes.iter().filter(|lane| lane.is_relieved());
        if relieved().next().is_none() {
            return Ok(None);
        }
        let poller = Poller::new()?;
        for lane in relieved() {
            poller.add(&lane.events, token_of(lane), EventFlags::empty())?;
        }
        Ok(Some(Self { poller }))
    }

    /// Watches a lane while, and only while, all its threads are busy. A thread calls this when it changes that.
    pub(super) fn watch_while_busy(&self, lane: &Lane, standby: &Standby) {
        standby.loans.report_idle(|has_idle| {
            let interest = if has_idle {
                EventFlags::empty()
            } else {
                EventFlags::IN | EventFlags::ONESHOT
            };
            // It cannot fail: the lane was added.
            let _ = self.poller.change(&lane.events, token_of(lane), interest);
        });
    }

    /// Asks the relief thread to help a lane.
    pub(super) fn ask(&self, standby: &Standby) {
        if standby.loans.ask() {
            self.ring();
        }
    }

    /// Wakes the relief thread.
    pub(crate) fn ring(&self) {
        #[cfg(simulation)]
        if rtorb_os::simulation::is_planted("relief-unrung") {
            return;
        }
        self.poller.ring();
    }

    /// Waits for a lane that needs help; `None` when the bell was rung.
    pub(super) fn next(&self) -> Option<usize> {
        let mut room = [MaybeUninit::uninit()];
        let event = self.poller.wait(&mut room, None).first()?;
        match Polled::of(event) {
            Polled::Numbered(number) => Some(number as usize),
            _ => None,
        }
    }
}

fn token_of(lane: &Lane) -> Token {
    Token::number(lane.number as u32)
}
