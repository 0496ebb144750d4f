//! Watches the lanes whose threads are all busy, for the relief thread.
//!
//! When the last thread of a lane becomes busy, it has the pool's relief thread watch the lane. The relief thread wakes when a
//! request waits there. This costs one system call when the last thread becomes busy and one when the first is idle again: two
//! a request in a lane of one thread. Lanes that can get no help pay nothing.

use super::standby::Standby;
use crate::dispatch::pool::lane::Lane;
use crate::server::{Bell, Event, EventLoop};
use core::mem::MaybeUninit;
use core::time::Duration;
use rustix::io::Errno;

/// What the relief thread waits for.
#[derive(Debug)]
pub(crate) struct Relief {
    /// Reports the event loops of the lanes that can get help, each only while all its threads are busy.
    events: EventLoop,
    /// Rung when a lane asks for help, and when the pool stops.
    bell: Bell,
}

impl Relief {
    /// For these lanes; `None` when none of them may get help.
    pub(crate) fn of(lanes: &[Lane]) -> Result<Option<Self>, Errno> {
        let relieved = || lanes.iter().filter(|lane| lane.is_relieved());
        if relieved().next().is_none() {
            return Ok(None);
        }
        let events = EventLoop::new(Duration::ZERO)?;
        let bell = Bell::new()?;
        events.add_help(&bell)?;
        for lane in relieved() {
            events.add_loop(lane.number, &lane.events)?;
        }
        Ok(Some(Self { events, bell }))
    }

    /// Watches a lane while, and only while, all its threads are busy.
    ///
    /// A thread calls this when it changes that. Two threads could reach the kernel in the wrong order, so each checks again.
    pub(super) fn watch_while_busy(&self, lane: &Lane, standby: &Standby) {
        loop {
            let has_idle = standby.has_idle();
            self.events.await_loop(lane.number, &lane.events, !has_idle);
            if has_idle {
                standby.give_up_help();
            }
            if standby.has_idle() == has_idle {
                return;
            }
        }
    }

    /// Asks the relief thread to help a lane.
    pub(super) fn ask(&self, standby: &Standby) {
        if standby.begin_asking() {
            self.ring();
        }
    }

    /// Wakes the relief thread.
    pub(crate) fn ring(&self) {
        self.bell.ring();
    }

    /// Waits for a lane that needs help; `None` when the bell was rung.
    ///
    /// # Panics
    /// When epoll itself fails, which only a bug can cause.
    pub(super) fn next(&self) -> Option<usize> {
        let mut room = [MaybeUninit::uninit()];
        let events = self.events.wait(&mut room, None);
        let event = events
            .expect("an epoll set of its own can be waited for")
            .first()?;
        match self.events.event(event, &[]) {
            Some(Event::Loop(number)) => Some(number),
            _ => None,
        }
    }
}
