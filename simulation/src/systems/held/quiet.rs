//! A manager that holds the requests of one client, while nobody else calls: what is held, refused, dropped and served is known exactly.

use super::HoldingServer;
use crate::random::Random;
use crate::systems::call_end::fail;
use crate::systems::raw::{Answer, RawClient, RawOutcome, RawTarget, cancel};
use crate::systems::worker::Ledger;
use rtorb_wire::giop::MessageType;
use std::ops::Range;
use std::time::Duration;

/// A server whose other clients are gone.
pub(super) struct Quiet<'s> {
    pub(super) server: &'s HoldingServer,
    pub(super) ledger: &'s Ledger,
    /// The number of requests that are held.
    pub(super) requests: u32,
    /// No more may be held.
    pub(super) is_full: bool,
    /// Requests are served in the order of their arrival.
    pub(super) is_ordered: bool,
}

/// What ends the hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Release {
    Activate,
    Discard,
    Deactivate,
    Shutdown,
}

/// The calls of the client that goes away have numbers from here on.
const LEAVING: u32 = 500_000;
const CANCELLED: u32 = 600_000;
const REFUSED: u32 = 700_000;
/// Those of the client whose requests are released.
const HELD: u32 = 800_000;
const FREE: u32 = 900_000;

/// Longer than an answer takes if nothing breaks.
const PATIENCE: Duration = Duration::from_secs(10);

impl Quiet<'_> {
    pub(super) fn run(&self, random: &mut Random) {
        self.server.manager.hold_requests();
        let target = RawTarget::of(self.server.held.as_object());
        self.leave(&target, random.one_in(3));
        let mut client = connect(&target);
        self.cancel(&target, &mut client);
        let calls = HELD..HELD + self.requests;
        self.hold(&target, &mut client, calls.clone());
        if self.is_full {
            self.exceed(&target, &mut client);
        }
        self.release(&mut client, &calls, random);
    }

    /// The requests of a client leave with its connection, or when it says that it sends nothing more.
    fn leave(&self, target: &RawTarget, ends_sending: bool) {
        let calls = LEAVING..LEAVING + self.requests;
        let mut client = connect(target);
        self.hold(target, &mut client, calls.clone());
        let leaves = if ends_sending {
            client.end_sending();
            Some(client)
        } else {
            drop(client);
            None
        };
        self.server
            .await_held(0, "a held request of a gone connection stays");
        drop(leaves);
        self.check_times(calls, 0);
    }

    /// A request leaves when its client cancels it.
    fn cancel(&self, target: &RawTarget, client: &mut RawClient) {
        self.hold(target, client, CANCELLED..CANCELLED + 1);
        client.send(&cancel(CANCELLED));
        self.server
            .await_held(0, "a held request that its client has cancelled stays");
        self.check_times(CANCELLED..CANCELLED + 1, 0);
    }

    /// Sends requests, one behind the other. Each is held.
    fn hold(&self, target: &RawTarget, client: &mut RawClient, calls: Range<u32>) {
        for (call, held) in calls.zip(1..) {
            client.send(&target.work(call));
            self.server.await_held(held, "a request is not held");
        }
    }

    /// Each of these calls was carried out so many times.
    fn check_times(&self, mut calls: Range<u32>, times: u32) {
        if let Some(call) = calls.find(|call| self.ledger.of(*call).times != times) {
            let ran = self.ledger.of(call).times;
            fail(&format!("call {call} ran {ran} times instead of {times}"));
        }
    }

    /// One request more than the limit allows is refused, and those that are held stay.
    fn exceed(&self, target: &RawTarget, client: &mut RawClient) {
        for call in [REFUSED, REFUSED + 1] {
            client.send(&target.work(call));
            match client.answer(PATIENCE) {
                Answer::Reply { call: of, outcome }
                    if of == call && outcome.is_refusal("TRANSIENT") => {}
                other => fail(&format!("a request beyond the limit got {other:?}")),
            }
        }
        self.check_times(REFUSED..REFUSED + 2, 0);
        let (held, limit) = (self.server.manager.held_requests(), self.requests);
        if held != limit {
            fail(&format!(
                "{held} requests are held, and the limit is {limit}"
            ));
        }
    }

    /// The hold ends: each request ends once, as the new state says.
    fn release(&self, client: &mut RawClient, calls: &Range<u32>, random: &mut Random) {
        use Release::{Activate, Deactivate, Discard, Shutdown};
        let HoldingServer { manager, orb, .. } = self.server;
        let how = random.choose(&[Activate, Activate, Discard, Deactivate, Shutdown]);
        match how {
            Activate => manager.activate(),
            Discard => manager.discard_requests(),
            Deactivate => manager.deactivate(),
            Shutdown => orb.shutdown(),
        }
        if how == Shutdown {
            check_dropped(client);
            return self.check_times(calls.clone(), 0);
        }
        let mut ended = Vec::new();
        for _ in calls.clone() {
            match client.answer(PATIENCE) {
                Answer::Reply { call, outcome } if is_true(how, &outcome) => ended.push(call),
                other => fail(&format!("a held request got {other:?} behind {how:?}")),
            }
        }
        let in_order: Vec<u32> = calls.clone().collect();
        if self.is_ordered && ended != in_order {
            fail(&format!(
                "requests that were held in order ended as {ended:?}"
            ));
        }
        ended.sort_unstable();
        if ended != in_order {
            fail(&format!(
                "each request ends once, and these ended: {ended:?}"
            ));
        }
        self.check_times(calls.clone(), u32::from(how == Activate));
        self.server
            .await_held(0, "requests are held that have ended");
        self.check_no_more(client);
    }

    /// Nothing comes before the reply to another request.
    fn check_no_more(&self, client: &mut RawClient) {
        client.send(&RawTarget::of(self.server.free.as_object()).work(FREE));
        let expected = Answer::Reply {
            call: FREE,
            outcome: RawOutcome::Done,
        };
        let answer = client.answer(PATIENCE);
        if answer != expected {
            fail(&format!("a request that is not held got {answer:?}"));
        }
    }
}

fn connect(target: &RawTarget) -> RawClient {
    let client = RawClient::connect(target.address);
    client.unwrap_or_else(|| fail("the server does not listen"))
}

/// True if that is what becomes of a held request.
fn is_true(how: Release, outcome: &RawOutcome) -> bool {
    match how {
        Release::Activate => *outcome == RawOutcome::Done,
        Release::Discard => outcome.is_refusal("TRANSIENT"),
        Release::Deactivate => outcome.is_refusal("OBJ_ADAPTER"),
        Release::Shutdown => false,
    }
}

/// CloseConnection says that requests without a reply were not carried out.
fn check_dropped(client: &mut RawClient) {
    let mut was_told = false;
    let is_closed = client.await_close(PATIENCE, |message| match message {
        Answer::Other(MessageType::CloseConnection) => was_told = true,
        other => fail(&format!("a server that ends sent {other:?}")),
    });
    if !is_closed || !was_told {
        fail("a client whose requests were held does not learn that its server ends");
    }
}
