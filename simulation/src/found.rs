//! Bugs that the simulation found: the seed, one sentence, and the plant that brings the bug back.
//!
//! A seed means the same run only as long as its system draws the same. Whoever changes what a system draws looks for new seeds with
//! `--plant`.

/// A bug that is mended.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) system: &'static str,
    pub(crate) seed: u64,
    pub(crate) plant: &'static str,
    /// What happened.
    pub(crate) what: &'static str,
}

pub(crate) const FOUND: &[Found] = &[
    Found {
        system: "calls",
        seed: 292,
        plant: "leaving-forgotten",
        what: "a server ended while a connection that gave way had a reply to send: the connection and the ORB stayed for ever, and the \
               client waited",
    },
    Found {
        system: "calls",
        seed: 8,
        plant: "message-cut",
        what: "a message that arrived in parts for 10 ms ended its connection, because the look for it came with each look for silent \
               connections, however long a message may take",
    },
    Found {
        system: "events",
        seed: 25,
        plant: "consumers-kept",
        what: "a channel ended while a consumer that departed was queued in its lane: the consumer, its connections and the ORB stayed \
               for ever",
    },
    Found {
        system: "naming",
        seed: 2172,
        plant: "found-store-unsynced",
        what: "a service was killed after it had made its store and before the name of the store was stable: the next service did not make it \
               stable either, and a loss of power took all acknowledged names",
    },
    Found {
        system: "held",
        seed: 17,
        plant: "release-unordered",
        what: "a thread that was less urgent than the lanes released their requests in an order of chance: a less urgent lane served its requests \
               before an urgent one",
    },
    Found {
        system: "callbacks",
        seed: 5406,
        plant: "unsent-kept",
        what: "a thread called over a bidirectional connection while its ORB ended: the event loop, which no thread waited in any more, kept the \
               rest of the request, and the connection and the ORB stayed for ever",
    },
];
