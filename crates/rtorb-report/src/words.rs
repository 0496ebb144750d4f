//! The words of the page that not every reader knows. They stand below the overview, in which most of them appear first.

/// A word, and what it means.
pub(crate) const WORDS: [(&str, &str); 12] = [
    (
        "`cube_long`, `cube_void`, ...",
        "the calls of the benchmark Cubit: a client sends a value, here a 32-bit integer (`long`), and the object returns its cube. `oneway` \
         has no reply",
    ),
    ("IIOP", "the messages of CORBA over TCP"),
    (
        "`raw`",
        "two processes that exchange the same bytes as the call and do nothing else, over the same transport",
    ),
    (
        "above raw",
        "the time of a call less that of the raw exchange: what the ORB takes. Where the host disturbed the raw exchange more than the \
         call, it is less than nothing",
    ),
    (
        "`default`",
        "the architecture that an ORB has without options: a thread for each connection",
    ),
    (
        "`tao`",
        "an architecture that shares nothing between priorities: a connection and a lane of threads for each",
    ),
    (
        "`mt_orbix`, `minicool`, `corbaplus`",
        "architectures of ORBs of the nineties, in which calls of all priorities share connections or queues",
    ),
    (
        "yield",
        "one switch to another thread of the same priority, by sched_yield(2). A time of 8.68 yields is 8.68 times as long as that on the \
         same system; so systems of different speed can be compared",
    ),
    (
        "`htb`, `prio`",
        "how Linux orders packets for a slow link (tc-htb(8), tc-prio(8)): by classes with a rate for each, or urgent packets first",
    ),
    (
        "median, p50",
        "half of the samples are at most this: the ordinary case. Where there were rounds, it is the median of the rounds' medians",
    ),
    (
        "p99, p99.9, max",
        "99 of 100 samples, or 999 of 1,000, are at most this; max, or worst, is the largest. Deadlines depend on these",
    ),
    (
        "not judged",
        "the run cannot tell whether the claim holds, for a reason that stands beside it",
    ),
];
