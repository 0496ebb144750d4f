//! Activities and objects that have the priorities of their names in a schedule; distributable threads that others cancel.

use rtorb::rt::{EarliestDeadlineFirst, Priority};
use rtorb::{ExceptionKind, Orb, PoaPolicies, SystemException};
use rtorb_os::sched::current_policy;
use rtorb_services::scheduling::{
    ClientScheduler, CosSchedulingError, Description, Schedule, ServerScheduler, serve_cancellation,
};
use rtorb_services::stubs::distributable_threads::DistributableThreads;
use rtorb_tests::relay::{Served, has_priorities};
use rtorb_tests::scratch::Scratch;
use rtorb_tests::stubs::{Relay, RelayServant, Seen};
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::Duration;

/// Two operations: priority 12 for the fast one, 11 for the slow one.
fn schedule() -> Schedule {
    let scratch = Scratch::new();
    let file = scratch.join("described.toml");
    let text = r#"
priorities = { least_urgent = 10, most_urgent = 12 }
operation = [
    { name = "fast", period = "5ms", worst = "10us" },
    { name = "slow", period = "50ms", worst = "10us" },
]
"#;
    std::fs::write(&file, text).expect("written");
    let described = Description::read(&file).expect("it is right");
    Schedule::compute(&described)
        .expect("it can be met")
        .schedule
}

//= RT-CORBA 1.2 §Scheduling Service
//% test
#[test]
fn an_activity_has_the_priority_of_its_name() {
    if !has_priorities() {
        return;
    }
    // A priority stays with its thread.
    let checked = thread::spawn(|| {
        let orb = Orb::builder().build().expect("an ORB");
        let scheduler = ClientScheduler::new(&orb, schedule());
        for (name, priority) in [("fast", 12), ("slow", 11)] {
            scheduler.schedule_activity(name).expect("it is known");
            let has = orb.rt_current().the_priority().map(Priority::get);
            assert_eq!(has, Ok(priority));
        }
        let unknown = scheduler.schedule_activity("other");
        assert!(matches!(unknown, Err(CosSchedulingError::UnknownName(name)) if name == "other"));
        assert_eq!(orb.rt_current().the_priority().map(Priority::get), Ok(11));
    });
    checked.join().expect("no panic");
}

//= RT-CORBA 1.2 §Scheduling Service
//% test
#[test]
fn an_object_runs_at_the_priority_of_its_name_whatever_its_client_has() {
    if !has_priorities() {
        return;
    }
    let served = Served::by(Orb::builder());
    let scheduler = ServerScheduler::new(&served.orb, schedule()).expect("a pool");
    let poa = scheduler.create_poa(&served.root, "Scheduled", PoaPolicies::default());
    let poa = poa.expect("a free name");
    poa.manager().activate();
    let client = Orb::builder().build().expect("an ORB");
    for (name, priority) in [("fast", 12), ("slow", 11)] {
        let relay: Relay = scheduler
            .schedule_object(&poa, served.relayer(name), name)
            .expect("it is known");
        let text = relay.as_object().to_string();
        let relay = Relay::unchecked_narrow(client.string_to_object(&text).expect("a reference"));
        let seen = &relay.pass_on().expect("a way")[0];
        assert_eq!((seen.corba, seen.kernel), (priority, priority), "{name}");
    }
    let unknown: Result<Relay, _> =
        scheduler.schedule_object(&poa, served.relayer("other"), "other");
    assert!(matches!(unknown, Err(CosSchedulingError::UnknownName(_))));
}

/// A servant that sends the native priority of its thread, and ends when the other end of its channel is dropped.
struct Held {
    begun: mpsc::Sender<u32>,
    end: Mutex<mpsc::Receiver<()>>,
}

impl RelayServant for Held {
    fn pass_on(&self) -> Result<Vec<Seen>, SystemException> {
        let _ = self.begun.send(current_policy().priority().into());
        let _ = self.end.lock().expect("no panic").recv();
        Ok(Vec::new())
    }

    fn shutdown(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

#[test]
fn the_lane_of_a_schedule_by_deadline_preempts_for_an_earlier_deadline() {
    if !has_priorities() {
        return;
    }
    let text = r#"
strategy = "edf"
priorities = { least_urgent = 10, most_urgent = 12 }
operation = [
    { name = "long", period = "600s", worst = "290s" },
    { name = "short", period = "500s", worst = "250s" },
]
"#;
    let described = Description::of_text("the test", text).expect("it is right");
    let computed = Schedule::compute(&described).expect("it can be met");
    assert!(computed.analysis.needs_preemption());
    let served = Served::by(Orb::builder());
    let scheduler = ServerScheduler::new(&served.orb, computed.schedule).expect("a pool");
    let poa = scheduler.create_poa(&served.root, "Scheduled", PoaPolicies::default());
    let poa = poa.expect("a free name");
    poa.manager().activate();
    let (begun, begins) = mpsc::channel();
    let client = Orb::builder().build().expect("an ORB");
    let held = [("long", 600), ("short", 500)].map(|(name, seconds)| {
        let (keep, end) = mpsc::channel();
        let servant = Held {
            begun: begun.clone(),
            end: Mutex::new(end),
        };
        let relay: Relay = (scheduler.schedule_object(&poa, servant, name)).expect("it is known");
        let text = relay.as_object().to_string();
        let object = client.string_to_object(&text).expect("a reference");
        let object = object.with_deadline(Duration::from_secs(seconds));
        (Relay::unchecked_narrow(object), keep)
    });
    thread::scope(move |scope| {
        let mut kept = Vec::new();
        // The first is in progress when the second comes.
        for (native, (relay, keep)) in (12..).zip(held) {
            kept.push(keep);
            scope.spawn(move || relay.pass_on().expect("it is served"));
            let begun = begins.recv_timeout(Duration::from_secs(30));
            assert_eq!(begun, Ok(native));
        }
    });
}

#[test]
fn a_server_scheduler_needs_a_level() {
    let orb = Orb::builder().build().expect("an ORB");
    let scratch = Scratch::new();
    let file = scratch.join("computed.toml");
    std::fs::write(&file, "level = []\n").expect("written");
    let none = Schedule::read(&file).expect("it has no level, and no operation");
    let refused = ServerScheduler::new(&orb, none)
        .map(|_| ())
        .map_err(|it| it.kind);
    assert_eq!(refused, Err(ExceptionKind::BadParam));
}

#[test]
fn another_process_cancels_a_distributable_thread_by_its_identity() {
    let served = Served::by(Orb::builder());
    serve_cancellation(&served.orb).expect("it is served once");
    served.root.manager().activate();
    let client = Orb::builder().build().expect("an ORB");
    let endpoint = served.orb.endpoints()[0].to_string();
    let address = endpoint.trim_start_matches("iiop://");
    let text = format!("corbaloc::{address}/DistributableThreads");
    let threads: DistributableThreads = client.string_to_reference(&text).expect("it is there");
    let current = served.orb.scheduling_current(EarliestDeadlineFirst);
    current
        .begin_scheduling_segment("long", None, None)
        .expect("a segment");
    let id = current.id().expect("a thread").to_bytes();
    // On another thread: a cancelled one makes no calls.
    let ask = |id| {
        thread::scope(|scope| {
            scope
                .spawn(|| threads.cancel(&id))
                .join()
                .expect("no panic")
        })
    };
    assert_eq!(ask([7; 16]), Ok(false));
    assert_eq!(current.check(), Ok(()));
    assert_eq!(ask(id), Ok(true));
    let is_cancelled = current.check().map_err(|it| it.kind);
    assert_eq!(is_cancelled, Err(ExceptionKind::ThreadCancelled));
    let ended = current.end_scheduling_segment("long").map_err(|it| it.kind);
    assert_eq!(ended, Err(ExceptionKind::ThreadCancelled));
    assert_eq!(current.id(), None);
}
