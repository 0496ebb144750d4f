//! A pool of threads. The leader waits for all connections. It makes another thread the leader before it calls the servant
//! (miniCOOL, P1 2.2.2).
//!
//! No request changes threads. The leader takes the next request, whatever its priority. If all threads are in servants, an
//! urgent request waits until one of them is done.

use super::pool::{Intake, LaneConfig, PoolConfig};
use super::serve::Serve;
use crate::server::ServerCore;
use rtorb_os::sync::Mutex;

/// A lane of `threads` threads, one of which leads.
pub(super) fn config(orb: &ServerCore, threads: u32) -> PoolConfig {
    let lane = LaneConfig::plain(orb, "rtorb-lf", threads);
    PoolConfig::own(vec![lane], Intake::Leader)
}

/// The loop of a thread of the group. The leader has the lock `lead`. The others wait for it in the order of their priorities.
///
/// A leader does not linger: it would only take the CPU from the thread that serves.
pub(super) fn run(mut thread: impl Serve, lead: &Mutex<()>) {
    while !thread.is_stopping() {
        let mut leading = Some(lead.lock());
        thread.wait(|thread, client| {
            if thread.serve(&client) {
                // Another thread becomes the leader before the servant is called.
                leading = None;
                thread.call(&client);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::serve::tests::Step::{Call, Serve, Wait};
    use super::super::serve::tests::{Script, in_place, pipelining};
    use super::*;

    #[test]
    fn a_thread_leads_while_it_waits_and_reads_and_not_in_a_servant() {
        let lead = Mutex::new(());
        let waits = [vec![pipelining(1)], vec![in_place(2)], vec![]];
        let mut script = Script::new(waits, || lead.try_lock().is_none());
        run(&mut script, &lead);
        let expected = [
            (Wait, true),
            (Serve(1), true),
            (Call(1), false),
            (Wait, true),
            (Serve(2), true),
            (Wait, true),
        ];
        assert_eq!(script.steps, expected);
        assert!(lead.try_lock().is_some(), "another thread leads");
    }
}
