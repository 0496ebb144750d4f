//! The operations: what they are, and how Linux's are timed.

use rtorb_results::statistics::Statistics;

use crate::experiments::os_context_switch::probe::Test;
use crate::experiments::os_services::probe::Service;

/// An operation of a kernel, or a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    /// The value of the label `operation`.
    pub(super) name: &'static str,
    /// The value of the label `kind` of its ratio.
    pub(super) kind: &'static str,
    pub(super) measured: Measured,
    /// What counts of a round.
    pub(super) by: fn(&Statistics) -> f64,
}

/// Whose probe times it on Linux.
#[derive(Clone, Copy, Debug)]
pub(super) enum Measured {
    Service(Service),
    WakeUp,
    Own,
}

/// What everything is compared with.
pub(super) const YIELD: &str = "yield";
/// The kinds of operations: the columns of P0 Table 1 and P2 Table 1; others of a kernel; calls.
pub(super) const SWITCH: &str = "switch";
pub(super) const KERNEL: &str = "kernel";
pub(super) const CALL: &str = "call";

/// Every one. [`OF_LINUX`] of them are timed on Linux too.
pub(super) const ALL: [Operation; 21] = [
    switch(Test::SuspendResume),
    switch(Test::Yield),
    switch(Test::Synchronized),
    kernel("mutex", Measured::Own),
    kernel("inheritance", Measured::Service(Service::PiLock)),
    kernel("semaphore", Measured::Service(Service::Futex)),
    kernel("message", Measured::Service(Service::Unix)),
    WAKE_UP,
    call("cube_void"),
    call("cube_oneway"),
    call("cube_octet"),
    call("cube_short"),
    call("cube_long"),
    call("cube_struct"),
    call("cube_union"),
    call("cube_any"),
    call("cube_long_sequence"),
    call("cube_octet_sequence"),
    call("cube_many_sequence"),
    // Of Linux, os/wakeup under loads and os/clock-overhead have them.
    Operation {
        name: "wakeup_under_interrupts",
        ..WAKE_UP
    },
    kernel("tick", Measured::Own),
];
pub(super) const OF_LINUX: usize = 19;
const WAKE_UP: Operation = Operation {
    by: |round| round.max,
    ..kernel("wakeup", Measured::WakeUp)
};

const fn switch(test: Test) -> Operation {
    Operation {
        name: test.label(),
        kind: SWITCH,
        measured: Measured::Service(Service::Switch(test)),
        by: |round| round.p50,
    }
}

const fn kernel(name: &'static str, measured: Measured) -> Operation {
    Operation {
        name,
        kind: KERNEL,
        measured,
        by: |round| round.p50,
    }
}

const fn call(name: &'static str) -> Operation {
    Operation {
        name,
        kind: CALL,
        measured: Measured::Own,
        by: |round| round.p50,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_of_the_embedded_cubit_is_an_operation() {
        let named: Vec<&str> = ALL
            .iter()
            .filter(|operation| operation.kind == CALL)
            .map(|operation| operation.name)
            .collect();
        let calls = rtorb_embedded_cubit::calls::CALLS;
        let calls: Vec<&str> = calls.iter().map(|call| call.operation).collect();
        assert_eq!(named, calls);
    }
}
