//! A thread that waits in a lane, and whose priority is raised before it is called to a more urgent lane.
//!
//! If the thread raised itself after it woke, any thread between the two priorities could delay it. So the caller raises it
//! first. Something else may wake the thread, so it checks after each wait whether it was raised.

use crate::realtime::Priority;
use rtorb_os::sched::{SchedPolicy, apply_policy_to};
use rtorb_os::sync::Mutex;
use rtorb_os::thread::thread_id;

/// One waiting thread of a lane that lends threads.
#[derive(Debug, Default)]
pub(super) struct WaitingThread {
    /// Held while the thread is raised or lowered, so that it does not continue its work meanwhile.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Its kernel thread id while it waits.
    thread: Option<u32>,
    /// The priority of the lane for which it was raised.
    raised_to: Option<Priority>,
}

impl WaitingThread {
    /// Notes that the calling thread is about to wait.
    pub(super) fn begin(&self) {
        self.state.lock().thread = Some(thread_id());
    }

    /// Notes that the calling thread stops waiting; true if it was raised meanwhile, which it must undo itself.
    pub(super) fn end(&self) -> bool {
        let mut state = self.state.lock();
        state.thread = None;
        state.raised_to.take().is_some()
    }

    /// Raises the thread for a lane of that priority, if it waits.
    ///
    /// If the host refuses, the thread responds at its own priority.
    pub(super) fn raise(&self, priority: Option<Priority>, policy: SchedPolicy) {
        let mut state = self.state.lock();
        if let Some(thread) = state.thread
            && state.raised_to < priority
            && apply_policy_to(thread, policy).is_ok()
        {
            state.raised_to = priority;
        }
    }

    /// Lowers the waiting thread to its own priority, unless it `is_called`.
    pub(super) fn lower(&self, own: SchedPolicy, is_called: impl FnOnce() -> bool) {
        let mut state = self.state.lock();
        if let Some(thread) = state.thread
            && state.raised_to.is_some()
            // Checked under the lock: a caller sets the flag before it raises.
            && !is_called()
            && apply_policy_to(thread, own).is_ok()
        {
            state.raised_to = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rtorb_os::sched::{allowed, current_policy};
    use rtorb_os::thread::{ThreadConfig, spawn};
    use std::sync::Arc;
    use std::sync::mpsc::channel;

    /// What a thread of FIFO 1 runs as, and whether it knows that it was raised, after `meanwhile` was done while it waited.
    fn woken_after(meanwhile: impl FnOnce(&WaitingThread)) -> Option<(SchedPolicy, bool)> {
        if let Err(refused) = allowed(SchedPolicy::Fifo(9)) {
            println!("skipped: {refused}");
            return None;
        }
        let waiting = Arc::new(WaitingThread::default());
        let (its, config) = (
            Arc::clone(&waiting),
            ThreadConfig {
                policy: Some(OWN),
                ..ThreadConfig::default()
            },
        );
        let ((tell, told), (wake, woken)) = (channel(), channel::<()>());
        let thread = spawn("waiting", &config, move || {
            its.begin();
            tell.send(()).expect("it is awaited");
            woken.recv().expect("it is woken");
            let is_raised = its.end();
            (current_policy(), is_raised)
        });
        let thread = thread.expect("it is allowed");
        told.recv().expect("it waits");
        meanwhile(&waiting);
        wake.send(()).expect("it waits");
        Some(thread.join().expect("no panic").expect("it was begun"))
    }

    const OWN: SchedPolicy = SchedPolicy::Fifo(1);

    fn raise(waiting: &WaitingThread, priority: u8) {
        let lane = Priority::new(i16::from(priority)).ok();
        waiting.raise(lane, SchedPolicy::Fifo(priority));
    }

    #[test]
    fn a_thread_wakes_as_the_most_urgent_lane_that_called_it() {
        let seen = woken_after(|waiting| {
            raise(waiting, 5);
            raise(waiting, 7);
            raise(waiting, 6);
        });
        assert!(seen.is_none_or(|seen| seen == (SchedPolicy::Fifo(7), true)));
    }

    #[test]
    fn a_thread_that_is_called_no_more_wakes_as_it_fell_asleep() {
        let seen = woken_after(|waiting| {
            raise(waiting, 5);
            waiting.lower(OWN, || false);
        });
        assert!(seen.is_none_or(|seen| seen == (OWN, false)));
        let seen = woken_after(|waiting| {
            raise(waiting, 5);
            waiting.lower(OWN, || true);
        });
        assert!(seen.is_none_or(|seen| seen == (SchedPolicy::Fifo(5), true)));
    }

    #[test]
    fn a_thread_that_does_not_wait_is_not_raised() {
        let seen = woken_after(|waiting| {
            waiting.end();
            raise(waiting, 5);
        });
        assert!(seen.is_none_or(|seen| seen == (OWN, false)));
    }
}
