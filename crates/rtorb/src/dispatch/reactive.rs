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
        if let Some(client) = thread.linger() {
            serve(&mut thread, client);
            continue;
        }
        thread.wait(serve);
        if let Some(client) = thread.deferred() {
            serve(&mut thread, client);
        }
    }
}

/// Serves a connection for one turn.
// Called in several places, it would not be inlined otherwise: 30 instructions a request.
#[inline(always)]
pub(super) fn serve<S: Serve>(thread: &mut S, client: S::Client) {
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
    fn a_client_that_calls_again_at_once_comes_first_and_one_with_bulk_replies_last() {
        let waits = [vec![in_place(1), pipelining(2)], vec![in_place(1)]];
        let mut script = Script::new(waits, || true);
        script.lingering = [in_place(3), pipelining(4)].into();
        script.deferred = [in_place(5), in_place(6)].into();
        run(&mut script);
        let steps: Vec<_> = script.steps.iter().map(|(step, _)| *step).collect();
        let first = [
            Serve(3),
            Serve(4),
            Call(4),
            Wait,
            Serve(1),
            Serve(2),
            Call(2),
        ];
        assert_eq!(
            steps,
            [&first[..], &[Serve(5), Wait, Serve(1), Serve(6)]].concat()
        );
    }
}
