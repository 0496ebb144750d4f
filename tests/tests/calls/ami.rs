//! CORBA Messaging by generated code: replies that handlers are told, and replies that pollers ask for.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rtorb::{
    ConnectionStrategy, ExceptionKind, Orb, OrbBuilder, ReplyDriver, SystemException, WaitStrategy,
};
use rtorb_tests::crane::{
    AmiMachineHandler, AmiWinchHandler, Machine, Overload, Winch, WinchLiftError,
};
use rtorb_tests::ours::Ours;

use crate::started::Hoist;

/// Says what it was told.
struct Log(Mutex<Sender<String>>);

impl Log {
    fn new() -> (Arc<Self>, Receiver<String>) {
        let (sender, told) = channel();
        (Arc::new(Self(Mutex::new(sender))), told)
    }

    fn note(&self, told: impl ToString) {
        self.0.lock().unwrap().send(told.to_string()).unwrap();
    }
}

impl AmiMachineHandler for Log {
    fn get_hours(&self, ami_return_val: i32) {
        self.note(format!("{ami_return_val} hours"));
    }

    fn get_hours_excep(&self, excep_holder: SystemException) {
        self.note(excep_holder);
    }

    fn start_(&self) {
        self.note("started");
    }

    fn start__excep(&self, excep_holder: SystemException) {
        self.note(excep_holder);
    }
}

impl AmiWinchHandler for Log {
    fn lift(&self, ami_return_val: i32, state: String) {
        self.note(format!("{ami_return_val}, {state}"));
    }

    fn lift_excep(&self, excep_holder: WinchLiftError) {
        match excep_holder {
            WinchLiftError::Overload(Overload { limit }) => self.note(format!("limit {limit}")),
            WinchLiftError::System(exception) => self.note(exception),
        }
    }

    fn get_speed(&self, ami_return_val: f64) {
        self.note(format!("speed {ami_return_val}"));
    }

    fn get_speed_excep(&self, excep_holder: SystemException) {
        self.note(excep_holder);
    }

    fn set_speed(&self) {
        self.note("speed set");
    }

    fn set_speed_excep(&self, excep_holder: SystemException) {
        self.note(excep_holder);
    }
}

fn shared(wait: WaitStrategy) -> OrbBuilder {
    Orb::builder().connection(ConnectionStrategy::Multiplexed { wait })
}

const WAITS: [WaitStrategy; 3] = [
    WaitStrategy::LeaderFollowers,
    WaitStrategy::Reactor,
    WaitStrategy::ConnectionThread,
];

/// A server, and the winch as a client sees it.
fn winch(wait: WaitStrategy) -> (Ours, Winch) {
    let ours = Ours::serve();
    let served: Winch = ours.poa.activate(Hoist::default()).unwrap();
    let orb = shared(wait).build().unwrap();
    let winch = orb.string_to_reference(&served.to_string()).unwrap();
    (ours, winch)
}

/// Runs the driver until a handler was told something.
fn next(replies: &ReplyDriver, told: &Receiver<String>) -> String {
    loop {
        if let Ok(next) = told.try_recv() {
            return next;
        }
        replies.run_once(None);
    }
}

fn is_told_each_reply(winch: &Winch) {
    let replies = winch.as_object().orb().reply_driver().unwrap();
    let (log, told) = Log::new();
    let next = || next(&replies, &told);
    winch.sendc_lift(&log, 7, "Ada").unwrap();
    assert_eq!(next(), "8, lifted by Ada");
    winch.sendc_lift(&log, 1001, "Ada").unwrap();
    assert_eq!(next(), "limit 1000");
    winch.sendc_set_speed(&log, 2.5).unwrap();
    assert_eq!(next(), "speed set");
    winch.sendc_get_speed(&log).unwrap();
    assert_eq!(next(), "speed 2.5");
    // Inherited calls, and those of the base.
    winch.sendc_get_hours(&log).unwrap();
    assert_eq!(next(), "41 hours");
    Machine::from(winch.clone()).sendc_start_(&log).unwrap();
    assert_eq!(next(), "started");
    assert!(told.try_recv().is_err(), "each reply is told once");
    assert_eq!(Arc::strong_count(&log), 1, "no handler is kept");
}

#[test]
fn a_handler_is_told_each_reply_on_the_thread_of_the_driver() {
    for wait in WAITS {
        let (_ours, winch) = winch(wait);
        is_told_each_reply(&winch);
    }
}

#[test]
fn objects_of_the_same_orb_are_called_too() {
    let builder = shared(WaitStrategy::LeaderFollowers);
    let ours = Ours::serve_collocated(builder);
    let winch: Winch = ours.poa.activate(Hoist::default()).unwrap();
    is_told_each_reply(&winch);
}

#[test]
fn a_poller_returns_the_reply_once() {
    for wait in WAITS {
        let (_ours, winch) = winch(wait);
        let mut lifted = winch.sendp_lift(7, "Ada");
        let mut overloaded = winch.sendp_lift(1001, "Ada");
        let mut hours = winch.sendp_get_hours();
        winch.sendp_set_speed(2.5).set_speed(None).unwrap();
        let mut speed = winch.sendp_get_speed();
        let told = (speed.operation_name(), speed.operation_target());
        assert_eq!(told, ("_get_speed", winch.as_object()));
        assert_eq!(speed.get_speed(None), Ok(2.5));
        let long = Duration::from_secs(30);
        assert_eq!(lifted.is_ready(long), Ok(true));
        assert_eq!(lifted.lift(long), Ok((8, "lifted by Ada".to_owned())));
        let refused = overloaded.lift(None).unwrap_err();
        assert_eq!(refused, WinchLiftError::from(Overload { limit: 1000 }));
        assert_eq!(hours.get_hours(None), Ok(41));
        // It was taken.
        let again = lifted.lift(Duration::ZERO).unwrap_err();
        let WinchLiftError::System(again) = again else {
            panic!("{again:?}");
        };
        assert_eq!(again.kind, ExceptionKind::ObjectNotExist, "{again}");
        assert_eq!(lifted.is_ready(Duration::ZERO), Err(again));
    }
}

#[test]
fn a_poller_of_another_operation_keeps_its_reply() {
    let (_ours, winch) = winch(WaitStrategy::LeaderFollowers);
    let mut speed = winch.sendp_get_speed();
    let refused = speed.set_speed(None).unwrap_err();
    assert_eq!(refused.kind, ExceptionKind::BadOperation, "{refused}");
    assert_eq!(speed.get_speed(None), Ok(0.0));
}
