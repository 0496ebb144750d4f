//! The calls of a run, and what must hold for each.

use rtorb_wire::connection::{Deadline, ReplyError};
use rtorb_wire::exception::CompletionStatus;

/// One call.
pub(crate) struct Call {
    pub(crate) body_bytes: usize,
    pub(crate) is_oneway: bool,
    pub(crate) deadline: Deadline,
    /// True once it was sent again on a new connection.
    pub(crate) is_retried: bool,
    pub(crate) outcome: Option<Outcome>,
    /// How often the server carried it out.
    pub(crate) executed: u32,
}

/// How a call ended at the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The result came, or the oneway was sent.
    Done,
    /// The server's exception came.
    Exception(CompletionStatus),
    /// No reply came that could be used.
    Failed(ReplyError),
}

impl Outcome {
    pub(crate) fn completion(self) -> CompletionStatus {
        match self {
            Self::Done => CompletionStatus::Yes,
            Self::Exception(completion) => completion,
            Self::Failed(error) => error.completion(),
        }
    }
}

/// All calls of a run.
pub(crate) struct Calls {
    pub(crate) calls: Vec<Call>,
    /// A hash of all outcomes and their times.
    pub(crate) hash: u64,
}

impl Calls {
    /// Gives a call its outcome.
    pub(crate) fn end(&mut self, number: usize, outcome: Outcome, now_ns: u64) {
        let call = &mut self.calls[number];
        assert_eq!(
            call.outcome, None,
            "call {number} has a second outcome: {outcome:?}"
        );
        if let Some(deadline_ns) = call.deadline.at_ns() {
            assert!(
                now_ns <= deadline_ns,
                "call {number} ends after its deadline: {outcome:?}"
            );
        }
        if matches!(
            outcome,
            Outcome::Failed(ReplyError::TimedOut | ReplyError::SendTimedOut | ReplyError::NotSent)
        ) {
            assert_eq!(
                call.deadline.at_ns(),
                Some(now_ns),
                "call {number} gives up at its deadline"
            );
        }
        call.outcome = Some(outcome);
        self.hash = (self.hash ^ now_ns ^ (number as u64) << 32 ^ outcome.completion() as u64)
            .wrapping_mul(0x0100_0000_01b3);
        self.check();
    }

    /// The server carries a call out.
    pub(crate) fn execute(&mut self, number: usize) {
        self.calls[number].executed += 1;
        self.check();
    }

    /// What the server did never contradicts what the client reports.
    pub(crate) fn check(&self) {
        for (number, call) in self.calls.iter().enumerate() {
            assert!(
                call.executed <= 1,
                "call {number} was carried out {} times",
                call.executed
            );
            let Some(outcome) = call.outcome else {
                continue;
            };
            match outcome.completion() {
                CompletionStatus::No => {
                    assert_eq!(call.executed, 0, "call {number} ran: {outcome:?}")
                }
                CompletionStatus::Yes if !call.is_oneway => {
                    assert_eq!(call.executed, 1, "call {number} did not run: {outcome:?}");
                }
                CompletionStatus::Yes | CompletionStatus::Maybe => {}
            }
        }
    }

    pub(crate) fn are_done(&self) -> bool {
        self.calls.iter().all(|call| call.outcome.is_some())
    }
}

/// A byte of a call's body, which both directions carry.
pub(crate) fn filler(number: usize) -> u8 {
    (number as u8).wrapping_mul(31) ^ 0x5a
}
