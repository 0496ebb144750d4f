//! One thread, that of `Orb::run`, waits for all connections and calls all servants.
//!
//! No request changes threads, and no thread waits for a lock. Requests are served in order of arrival, whatever their priority.

use super::pool::{Intake, LaneConfig, PoolConfig};
use super::serve::Serve;
use crate::server::ServerCore;

/// A lane of one thread.
pub(super) fn config(orb: &ServerCore) -> PoolConfig {
    let lane = LaneConfig::plain(orb, "rtorb-reactor", 1);
    PoolConfig::own(vec![lane], Intake::Direct)
}

/// The loop of a thread that serves what it reads. The threads of a lane all wait for its connections at once.
pub(super) fn run(mut thread: impl Serve) {
    while !thread.is_stopping() {
        match thread.linger() {
            Some(client) => serve(&mut thread, client),
            None => thread.wait(serve),
        }
    }
}

#[inline(always)]
fn serve<S: Serve>(thread: &mut S, client: S::Client) {
    if thread.serve(&client) {
        // Several threads serve the connection. Another one reads it meanwhile.
        thread.call(&client);
    }
}

#[cfg(test)]
mod tests {
    use super::super::serve::tests::Step::{Call, Serve, Wait};
    use super::super::serve::tests::{Script, in_place, pipelining};
    use super::*;

    #[test]
    fn a_client_that_calls_again_at_once_is_served_before_the_thread_waits() {
        let waits = [vec![in_place(1), pipelining(2)], vec![in_place(1)]];
        let mut script = Script::new(waits, || true);
        script.lingering = [in_place(3), pipelining(4)].into();
        run(&mut script);
        let steps: Vec<_> = script.steps.iter().map(|(step, _)| *step).collect();
        let expected = [
            Serve(3),
            Serve(4),
            Call(4),
            Wait,
            Serve(1),
            Serve(2),
            Call(2),
            Wait,
            Serve(1),
        ];
        assert_eq!(steps, expected);
    }
}
