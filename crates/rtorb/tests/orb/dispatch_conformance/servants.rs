//! What servants may do: panic, take long, call their own server, be deactivated.

use super::Case;
use rtorb::exception::OMG;
use rtorb::{ExceptionKind, Orb, SystemException};
use rtorb_tests::good::Good;
use rtorb_tests::ours::{Ours, check_nested};
use rtorb_tests::running::{PATIENCE, until};
use rtorb_tests::servants::Cubes;
use rtorb_tests::stubs::Cubit;
use rtorb_tests::stubs::exchange::{Desk, Party, PartyServant};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// More than any pool of this suite has threads.
const CALLERS: usize = 10;

pub(crate) fn a_panic_is_unknown_for_its_caller_and_nothing_for_others(case: Case) {
    let ours = case.serve();
    let gated = activate(&ours, &Arc::default());
    let mut good = Good::to(&ours);
    // More often than there are threads, so that it would be seen if each took one along.
    for _ in 0..3 * CALLERS {
        let failed = gated.name().expect_err("the servant panics");
        assert_eq!(failed.kind, ExceptionKind::Unknown, "{failed}");
        good.call();
    }
    assert_eq!(ours.cubit.cube_long(3), Ok(27), "on the same connection");
}

pub(crate) fn a_call_that_takes_long_holds_up_no_more_than_its_thread(case: Case) {
    let ours = case.serve();
    let gate = Arc::new(Gate::default());
    gate.close();
    let gated = activate(&ours, &gate);
    let mut good = Good::to(&ours);
    thread::scope(|scope| {
        let held = case.spare_threads();
        let callers: Vec<_> = (0..held).map(|_| scope.spawn(|| gated.level())).collect();
        until("all are in the servant", || {
            (gate.entered() == held).then_some(())
        });
        for _ in 0..100 {
            good.call();
        }
        Good::to(&ours).call();
        gate.open();
        for caller in callers {
            assert_eq!(caller.join().expect("no panic"), Ok(1));
        }
    });
    good.call();
}

pub(crate) fn more_calls_than_threads_are_all_answered(case: Case) {
    let ours = case.serve();
    let gate = Arc::new(Gate::default());
    gate.close();
    let gated = activate(&ours, &gate);
    thread::scope(|scope| {
        let callers: Vec<_> = (0..CALLERS)
            .map(|_| scope.spawn(|| gated.level()))
            .collect();
        let at_once = case.threads as usize;
        let inside = if at_once == 0 { CALLERS } else { at_once };
        until("every thread is in the servant", || {
            (gate.entered() == inside).then_some(())
        });
        // A client that comes now waits for its turn, too.
        let late = scope.spawn(|| Good::to(&ours).call());
        gate.open();
        for caller in callers {
            assert_eq!(caller.join().expect("no panic"), Ok(1));
        }
        late.join().expect("it is served");
    });
    assert_eq!(gate.entered(), CALLERS, "each was carried out once");
}

pub(crate) fn a_servant_may_call_its_server_where_another_thread_serves(case: Case) {
    // Where no other thread serves, the call would wait for itself: until its time is over, if nobody notices before.
    let waits_for_itself = case.spare_threads() == 0 && !case.is_reactive();
    let time = if waits_for_itself {
        Duration::from_millis(500)
    } else {
        PATIENCE
    };
    let ours = case.serve_as(case.builder().round_trip_timeout(Some(time)));
    let client = Orb::builder().build().expect("the ORB can be built");
    let object = client.string_to_object(&ours.text(ours.desk.as_object()));
    let desk = Desk::unchecked_narrow(object.expect("a reference"));
    if case.spare_threads() > 0 {
        check_nested(&desk);
    } else {
        let failed = desk
            .level_of(Some(&Party::from(&desk)))
            .expect_err("nobody could answer");
        let refused = (failed.kind, failed.minor) == (ExceptionKind::BadInvOrder, OMG | 3);
        let late = failed.kind == ExceptionKind::Timeout;
        assert!(refused || late, "{failed}");
        assert!(refused || !case.is_reactive(), "{failed}");
    }
    Good::to(&ours).call();
}

pub(crate) fn an_object_that_goes_answers_right_or_is_gone(case: Case) {
    let ours = case.serve();
    let root = &ours.poa;
    for _ in 0..50 {
        let servant = Cubes {
            orb: ours.orb.clone(),
        };
        let cubit: Cubit = root.activate(servant).expect("there is room");
        let caller = cubit.clone();
        let calling = thread::spawn(move || call_until_it_fails(&caller));
        root.deactivate(cubit.as_object()).expect("it is active");
        let failed = calling.join().expect("no panic");
        assert_eq!(failed.kind, ExceptionKind::ObjectNotExist, "{failed}");
    }
    assert_eq!(ours.cubit.cube_long(3), Ok(27));
}

pub(crate) fn a_call_in_progress_is_answered_although_its_object_goes(case: Case) {
    let ours = case.serve();
    let root = &ours.poa;
    let gate = Arc::new(Gate::default());
    gate.close();
    let servant = Arc::new(Gated::at(&gate));
    let seen = Arc::downgrade(&servant);
    let gated: Party = root.activate(servant).expect("room");
    thread::scope(|scope| {
        let caller = scope.spawn(|| gated.level());
        until("it is in the servant", || {
            (gate.entered() == 1).then_some(())
        });
        root.deactivate(gated.as_object()).expect("it is active");
        gate.open();
        assert_eq!(caller.join().expect("no panic"), Ok(1));
    });
    let gone = gated.level().expect_err("it is not active");
    assert_eq!(gone.kind, ExceptionKind::ObjectNotExist, "{gone}");
    until("the servant is dropped", || {
        (seen.strong_count() == 0).then_some(())
    });
}

pub(crate) fn activate(ours: &Ours, gate: &Arc<Gate>) -> Party {
    let root = &ours.poa;
    root.activate(Gated::at(gate))
        .expect("there is room for a servant")
}

pub(crate) fn call_until_it_fails(cubit: &Cubit) -> SystemException {
    loop {
        match cubit.cube_long(3) {
            Ok(cubed) => assert_eq!(cubed, 27),
            Err(failed) => return failed,
        }
    }
}

/// Where calls wait until a test lets them pass.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    is_closed: AtomicBool,
    /// How often it was opened: a call that waits then passes, though the gate may be closed again before it looks.
    opened: AtomicUsize,
    entered: AtomicUsize,
}

impl Gate {
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
    }

    pub(crate) fn open(&self) {
        self.is_closed.store(false, Ordering::SeqCst);
        self.opened.fetch_add(1, Ordering::SeqCst);
    }

    /// How many calls have come to the gate.
    pub(crate) fn entered(&self) -> usize {
        self.entered.load(Ordering::SeqCst)
    }

    fn pass(&self) {
        let before = self.opened.load(Ordering::SeqCst);
        self.entered.fetch_add(1, Ordering::SeqCst);
        until("the gate is opened", || {
            let is_opened = self.opened.load(Ordering::SeqCst) != before;
            (is_opened || !self.is_closed.load(Ordering::SeqCst)).then_some(())
        });
    }
}

/// A servant whose `level` waits at a gate, and whose `name` panics.
#[derive(Debug)]
pub(crate) struct Gated {
    gate: Arc<Gate>,
}

impl Gated {
    pub(crate) fn at(gate: &Arc<Gate>) -> Self {
        Self {
            gate: Arc::clone(gate),
        }
    }
}

impl PartyServant for Gated {
    fn name(&self) -> Result<String, SystemException> {
        panic!("as the test wants it");
    }

    fn level(&self) -> Result<i32, SystemException> {
        self.gate.pass();
        Ok(1)
    }

    fn set_level(&self, _: i32) -> Result<(), SystemException> {
        Ok(())
    }
}
