//! Planted bugs: each is one line of the ORB that a run can turn on, to show that the simulation finds it.

use std::sync::atomic::{AtomicUsize, Ordering};

/// A planted bug.
#[derive(Debug)]
pub(crate) struct Plant {
    pub(crate) name: &'static str,
    /// What it does wrong.
    pub(crate) what: &'static str,
    /// The system that finds it.
    pub(crate) system: &'static str,
    /// Within so many seeds from 0.
    pub(crate) seeds: u64,
}

pub(crate) const PLANTS: &[Plant] = &[
    Plant {
        name: "wake-lost",
        what: "wakes no thread that is about to sleep for its reply",
        system: "calls",
        seeds: 1000,
    },
    Plant {
        name: "lead-kept",
        what: "never passes the lead on",
        system: "calls",
        seeds: 100,
    },
    Plant {
        name: "reply-swapped",
        what: "delivers replies to other requests",
        system: "calls",
        seeds: 100,
    },
    Plant {
        name: "timeout-forgotten",
        what: "ends no wait whose deadline has passed",
        system: "calls",
        seeds: 100,
    },
    Plant {
        name: "shorter-timeout-unheard",
        what: "does not look at a timeout that is shorter than all before",
        system: "calls",
        seeds: 1000,
    },
    Plant {
        name: "sent-twice",
        what: "sends a request again that the server may have carried out",
        system: "calls",
        seeds: 1000,
    },
    Plant {
        name: "completion-untrue",
        what: "says that a call was not carried out if it does not know",
        system: "calls",
        seeds: 100,
    },
    Plant {
        name: "priority-kept",
        what: "keeps the priority of a call after the call",
        system: "lanes",
        seeds: 100,
    },
    Plant {
        name: "priority-not-taken",
        what: "does not take the priority of a call",
        system: "lanes",
        seeds: 100,
    },
    Plant {
        name: "outbox-forgotten",
        what: "does not send what a client did not take at once",
        system: "calls",
        seeds: 100,
    },
    Plant {
        name: "slow-client-kept",
        what: "sets no timer for clients that do not read",
        system: "calls",
        seeds: 5000,
    },
    Plant {
        name: "client-unheard",
        what: "accepts no client after the first one",
        system: "calls",
        seeds: 1000,
    },
    Plant {
        name: "strangers-kept-out",
        what: "forgets new clients that were held back when their next period begins",
        system: "calls",
        seeds: 100,
    },
    Plant {
        name: "stop-unheard",
        what: "does not wake the threads that wait for clients when the server ends",
        system: "calls",
        seeds: 100,
    },
    Plant {
        name: "recheck-forgotten",
        what: "ignores an event that came while another thread held the connection",
        system: "calls",
        seeds: 1000,
    },
    Plant {
        name: "notification-lost",
        what: "notifies nobody if several threads wait",
        system: "calls",
        seeds: 1000,
    },
    Plant {
        name: "inheritance-lost",
        what: "lets nobody inherit the priority of a thread that waits for a lock",
        system: "lanes",
        seeds: 5000,
    },
    Plant {
        name: "help-unwanted",
        what: "does not say that a lane wants a thread",
        system: "lanes",
        seeds: 5000,
    },
    Plant {
        name: "helper-unrung",
        what: "does not wake the thread that lends threads when its pool ends",
        system: "lanes",
        seeds: 1000,
    },
    Plant {
        name: "refused-kept",
        what: "keeps the connection of a client that it refuses",
        system: "calls",
        seeds: 1000,
    },
    Plant {
        name: "message-cut",
        what: "ends a message that arrives slowly after the time for silent connections",
        system: "calls",
        seeds: 100,
    },
    Plant {
        name: "leaving-forgotten",
        what: "forgets connections that give way when the server ends",
        system: "calls",
        seeds: 2000,
    },
    Plant {
        name: "unsent-kept",
        what: "has event loops that have ended keep connections to send",
        system: "callbacks",
        seeds: 10000,
    },
    Plant {
        name: "consumers-kept",
        what: "keeps the consumers that wait in a lane when the channel ends",
        system: "events",
        seeds: 100,
    },
    Plant {
        name: "commit-unsynced",
        what: "acknowledges changes of names that are not on the disk",
        system: "naming",
        seeds: 100,
    },
    Plant {
        name: "commit-in-parts",
        what: "commits each effect of a change of names alone",
        system: "naming",
        seeds: 1000,
    },
    Plant {
        name: "store-name-unsynced",
        what: "forgets to make the name of a new store stable",
        system: "naming",
        seeds: 1000,
    },
    Plant {
        name: "found-store-unsynced",
        what: "does not make the name of a store stable that another service has made",
        system: "naming",
        seeds: 10000,
    },
    Plant {
        name: "late-change-denied",
        what: "says that a change of names was not begun that is being committed",
        system: "naming",
        seeds: 1000,
    },
    Plant {
        name: "followers-asleep",
        what: "does not wake those whose changes of names were committed for them",
        system: "naming",
        seeds: 100,
    },
    Plant {
        name: "deadline-uninherited",
        what: "lets no nested call inherit the end time of its request",
        system: "calls",
        seeds: 100,
    },
    Plant {
        name: "cancel-misplaced",
        what: "takes another request for the one that a client has given up",
        system: "calls",
        seeds: 1000,
    },
    Plant {
        name: "socket-file-kept",
        what: "does not replace the socket file of a server that was killed",
        system: "calls",
        seeds: 1000,
    },
    Plant {
        name: "gateway-loss-uncounted",
        what: "does not count events that a gateway loses with its channel",
        system: "gateways",
        seeds: 1000,
    },
    Plant {
        name: "call-unwatched",
        what: "does not look at a deadline that is earlier than all before",
        system: "started",
        seeds: 100,
    },
    Plant {
        name: "release-missed",
        what: "forgets the oldest request that is to be released",
        system: "held",
        seeds: 100,
    },
    Plant {
        name: "release-unordered",
        what: "reports released requests in the order of their arrival",
        system: "held",
        seeds: 1000,
    },
    Plant {
        name: "held-kept",
        what: "keeps the held requests of a connection that has ended",
        system: "held",
        seeds: 100,
    },
    Plant {
        name: "budget-unrenewed",
        what: "does not renew the budget of strangers in the next period",
        system: "budgets",
        seeds: 100,
    },
    Plant {
        name: "budget-ignored",
        what: "begins the turns of strangers without a budget",
        system: "budgets",
        seeds: 1000,
    },
    Plant {
        name: "overrun-unwatched",
        what: "does not watch how long a servant executes",
        system: "budgets",
        seeds: 100,
    },
    Plant {
        name: "slow-sender-kept",
        what: "keeps connections whose messages do not arrive",
        system: "hostile",
        seeds: 100,
    },
];

/// The place of the one that is on, and 1; 0 for none.
static ON: AtomicUsize = AtomicUsize::new(0);

/// Turns a bug on.
pub(crate) fn plant(name: &str) -> Option<&'static Plant> {
    let place = PLANTS.iter().position(|plant| plant.name == name)?;
    ON.store(place + 1, Ordering::Relaxed);
    PLANTS.get(place)
}

/// Turns all off.
pub(crate) fn clear() {
    ON.store(0, Ordering::Relaxed);
}

/// Prints all.
pub(crate) fn list() {
    for Plant {
        name,
        what,
        system,
        seeds,
    } in PLANTS
    {
        println!("{name}: {what}; found in `{system}` within {seeds} seeds");
    }
}

pub(crate) fn is_planted(name: &str) -> bool {
    let on = ON.load(Ordering::Relaxed).checked_sub(1);
    on.and_then(|place| PLANTS.get(place))
        .is_some_and(|plant| plant.name == name)
}
