//! Lanes that serve requests in the order of their deadlines: which request runs, and at which priority.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rtorb::rt::{
    FixedPriority, LanedThreadpool, PriorityModel, RequestOrder, Reservation, SchedulingParameter,
    ThreadpoolLane,
};
use rtorb::thread::{SchedPolicy, ThreadConfig};
use rtorb::{ExceptionKind, Orb, PoaPolicies, SystemException};
use rtorb_os::sched::{allowed, current_affinity, current_policy};
use rtorb_tests::relay::priority;
use rtorb_tests::skip;
use rtorb_tests::stubs::exchange::{Party, PartyServant};

/// Longer than any test needs.
const PATIENCE: Duration = Duration::from_secs(20);

/// A servant whose `set_level` is a function, and whose other operations no test calls.
struct SetLevel<F>(F);

impl<F> PartyServant for SetLevel<F>
where
    F: Fn(i32) -> Result<(), SystemException> + Send + Sync + 'static,
{
    fn name(&self) -> Result<String, SystemException> {
        Ok(String::new())
    }

    fn level(&self) -> Result<i32, SystemException> {
        Ok(0)
    }

    fn set_level(&self, value: i32) -> Result<(), SystemException> {
        (self.0)(value)
    }
}

/// A servant whose calls keep the CPU busy until a given number of calls has begun.
#[derive(Clone, Debug, Default)]
struct Busy(Arc<(Mutex<Calls>, Condvar)>);

#[derive(Debug, Default)]
struct Calls {
    /// The values of the calls, in the order in which they began, and the threads that served them.
    begun: Vec<(i32, SchedPolicy)>,
    ended: Vec<i32>,
    /// Calls end when so many have begun.
    awaited: usize,
}

impl Busy {
    fn await_calls(&self, awaited: usize) {
        self.0.0.lock().expect("no panic").awaited = awaited;
    }

    /// Waits until so many calls have begun.
    fn until_begun(&self, count: usize) {
        let calls = self.0.0.lock().expect("no panic");
        let few = |calls: &mut Calls| calls.begun.len() < count;
        let waited = self.0.1.wait_timeout_while(calls, PATIENCE, few);
        assert!(!waited.expect("no panic").1.timed_out(), "{count} calls");
    }

    fn begun(&self) -> Vec<(i32, SchedPolicy)> {
        self.0.0.lock().expect("no panic").begun.clone()
    }

    fn ended(&self) -> Vec<i32> {
        self.0.0.lock().expect("no panic").ended.clone()
    }
}

impl Busy {
    /// The servant of these calls.
    fn servant(&self) -> impl PartyServant + use<> {
        let busy = self.clone();
        SetLevel(move |value| busy.serve(value))
    }

    fn serve(&self, value: i32) -> Result<(), SystemException> {
        let (calls, changed) = &*self.0;
        let begun = (value, current_policy());
        calls.lock().expect("no panic").begun.push(begun);
        changed.notify_all();
        let end = Instant::now() + PATIENCE;
        loop {
            let mut now = calls.lock().expect("no panic");
            if now.begun.len() >= now.awaited || Instant::now() > end {
                now.ended.push(value);
                return Ok(());
            }
            drop(now);
            core::hint::spin_loop();
        }
    }
}

fn lane(order: RequestOrder, number: i16, static_threads: u32) -> ThreadpoolLane {
    ThreadpoolLane {
        lane_priority: priority(number),
        static_threads,
        order,
        ..ThreadpoolLane::default()
    }
}

/// An object in such a lane, whose threads share one CPU, as a client with an ORB of its own sees it.
fn party(orb: &Orb, lane: ThreadpoolLane, servant: impl PartyServant + 'static) -> Party {
    let rt = orb.rt_orb();
    let pool = rt.create_threadpool_with_lanes(LanedThreadpool {
        lanes: vec![lane],
        ..LanedThreadpool::default()
    });
    let model = rt.create_priority_model_policy(PriorityModel::ServerDeclared, lane.lane_priority);
    let policies = PoaPolicies::default()
        .with(model)
        .with(rt.create_threadpool_policy(pool.expect("the host lets it start")));
    let root = orb.root_poa().expect("it listens");
    let poa = root.create_poa("lane", policies).expect("a new name");
    let party: Party = poa.activate(servant).expect("room");
    let client = Orb::builder().build().expect("the ORB can be built");
    let text = orb.object_to_string(party.as_object());
    Party::unchecked_narrow(client.string_to_object(&text).expect("a reference"))
}

/// A call with that deadline, on a thread, and so a connection, of its own.
fn call(
    party: &Party,
    value: i32,
    deadline: Duration,
) -> thread::JoinHandle<Result<(), SystemException>> {
    let party = Party::unchecked_narrow(party.as_object().with_deadline(deadline));
    thread::spawn(move || party.set_level(value))
}

#[test]
fn a_request_with_an_earlier_deadline_preempts_on_the_next_level() {
    const LOWEST: u8 = 7;
    if allowed(SchedPolicy::Fifo(LOWEST + 3)).is_err() {
        return skip("no real-time priorities");
    }
    let one_cpu = ThreadConfig {
        affinity: current_affinity().into_iter().take(1).collect(),
        ..ThreadConfig::default()
    };
    let orb = Orb::builder().server_threads(one_cpu).build();
    let orb = orb.expect("the ORB can be built");
    let busy = Busy::default();
    let levels = lane(RequestOrder::EarliestDeadline, LOWEST.into(), 3);
    let party = party(&orb, levels, busy.servant());
    busy.await_calls(3);
    // Each call keeps the one CPU busy until the third has begun. So that one begins by preemption, or not at all.
    let mut calls = Vec::new();
    for (value, seconds) in [(1, 600), (2, 500), (3, 400)] {
        calls.push(call(&party, value, Duration::from_secs(seconds)));
        if value == 1 {
            busy.until_begun(1);
            // Less urgent, so it waits, though two levels are free.
            calls.push(call(&party, 4, Duration::from_secs(700)));
        }
        busy.until_begun(value as usize);
    }
    for call in calls {
        call.join().expect("no panic").expect("it is served");
    }
    let at = |level: u8| SchedPolicy::Fifo(LOWEST + level);
    assert_eq!(
        busy.begun(),
        [(1, at(0)), (2, at(1)), (3, at(2)), (4, at(0))]
    );
    assert_eq!(busy.ended(), [3, 2, 1, 4]);
    orb.destroy().expect("it ends");
}

#[test]
fn a_lane_that_sheds_in_the_order_of_arrival_serves_by_all_its_threads_at_its_priority() {
    const PRIORITY: u8 = 7;
    if allowed(SchedPolicy::Fifo(PRIORITY + 1)).is_err() {
        return skip("no real-time priorities");
    }
    let orb = Orb::builder().build().expect("the ORB can be built");
    let busy = Busy::default();
    let shedding = lane(RequestOrder::FifoShedding, PRIORITY.into(), 2);
    let party = party(&orb, shedding, busy.servant());
    busy.await_calls(2);
    // Neither ends before the other has begun. The later deadline does not matter.
    let calls = [(1, 500), (2, 600)].map(|(value, seconds)| {
        let calling = call(&party, value, Duration::from_secs(seconds));
        busy.until_begun(value as usize);
        calling
    });
    for call in calls {
        call.join().expect("no panic").expect("it is served");
    }
    let at = SchedPolicy::Fifo(PRIORITY);
    assert_eq!(busy.begun(), [(1, at), (2, at)]);
    orb.destroy().expect("it ends");
}

/// A small reservation, and the policy of its threads.
fn reservation() -> (Reservation, SchedPolicy) {
    let reservation = Reservation {
        runtime: Duration::from_micros(500),
        deadline: Duration::from_millis(10),
        period: Duration::from_millis(20),
    };
    let policy = SchedPolicy::Deadline {
        runtime_ns: 500_000,
        deadline_ns: 10_000_000,
        period_ns: 20_000_000,
    };
    (reservation, policy)
}

#[test]
fn a_lane_with_a_reservation_has_its_share_of_the_cpu() {
    let (reservation, policy) = reservation();
    let probe = ThreadConfig {
        policy: Some(policy),
        ..ThreadConfig::default()
    };
    if rtorb_os::thread::spawn("probe", &probe, || ()).is_err() {
        return skip("no SCHED_DEADLINE");
    }
    let orb = Orb::builder().build().expect("the ORB can be built");
    let reserved = ThreadpoolLane {
        reservation: Some(reservation),
        ..lane(RequestOrder::Fifo, 40, 2)
    };
    let busy = Busy::default();
    let party = party(&orb, reserved, busy.servant());
    for value in 0..3 {
        party.set_level(value).expect("it is served");
    }
    assert_eq!(busy.begun(), [(0, policy), (1, policy), (2, policy)]);
    // The lane's threads may make others, which have no reservation.
    let made = rtorb_os::thread::spawn("reserved", &probe, || {
        thread::spawn(current_policy).join().expect("no panic")
    });
    let made = made.expect("the host allows it").join();
    assert_eq!(made.expect("no panic"), Some(SchedPolicy::Other));
    orb.destroy().expect("it ends");
}

/// What a servant does to the priority of its thread.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// It waits.
    None,
    /// It sets another priority, and then the one that it had.
    Restored,
    /// It begins and ends a segment with a priority.
    Segment,
    /// An object of the same ORB that it calls sets another priority.
    Called,
    /// The same, by a request.
    Requested,
    /// It leaves another priority.
    Left,
    /// It leaves a segment with a priority open.
    LeftSegment,
}

impl Change {
    const ALL: [Self; 7] = [
        Self::None,
        Self::Restored,
        Self::Segment,
        Self::Called,
        Self::Requested,
        Self::Left,
        Self::LeftSegment,
    ];
}

/// A servant that changes the priority of its thread, and tells its policies before and after that. `set_level` takes a place in
/// [`Change::ALL`].
struct Changing {
    orb: Orb,
    setting: Party,
    tells: Mutex<Sender<[SchedPolicy; 2]>>,
    /// Where it waits.
    end: Mutex<Receiver<()>>,
}

/// The native priority that servants set.
const OTHER: i16 = 50;

impl Changing {
    fn change(&self, change: Change) -> Result<(), SystemException> {
        let (current, segments) = (
            self.orb.rt_current(),
            self.orb.scheduling_current(FixedPriority),
        );
        let begin = || {
            let parameter = SchedulingParameter::Priority(priority(OTHER));
            let begun = segments.begin_scheduling_segment("other", parameter, None);
            begun.expect("it is a priority");
        };
        match change {
            Change::None => self.end.lock().expect("no panic").recv().expect("it ends"),
            Change::Restored => {
                let own = current.the_priority()?;
                current.set_the_priority(priority(OTHER))?;
                current.set_the_priority(own)?;
            }
            Change::Segment => {
                begin();
                segments.end_scheduling_segment("other")?;
            }
            Change::Called => self.setting.set_level(0)?,
            Change::Requested => {
                let object = self.setting.as_object();
                object.invoke("_set_level", |w| w.primitive(0_i32), |_| Ok(()))?;
            }
            Change::Left => current.set_the_priority(priority(OTHER))?,
            Change::LeftSegment => begin(),
        }
        Ok(())
    }
}

impl Changing {
    fn serve(&self, value: i32) -> Result<(), SystemException> {
        let begun = current_policy();
        self.tells
            .lock()
            .expect("no panic")
            .send([begun; 2])
            .expect("the test listens");
        self.change(Change::ALL[value as usize])?;
        let told = [begun, current_policy()];
        self.tells
            .lock()
            .expect("no panic")
            .send(told)
            .expect("the test listens");
        Ok(())
    }
}

/// Calls servants of a lane that change the priority of their threads, while so many others wait. All have to begin with `policy`.
fn check_changes(lane: ThreadpoolLane, waiting: usize, policy: SchedPolicy) {
    let orb = Orb::builder().build().expect("the ORB can be built");
    let root = orb.root_poa().expect("it listens");
    let (tells, told) = channel();
    let (ends, end) = channel();
    let client = orb.clone();
    let setting = SetLevel(move |_| {
        // A thread of its own would have none.
        client.rt_current().the_priority()?;
        client.rt_current().set_the_priority(priority(OTHER))
    });
    let changing = Changing {
        setting: root.activate(setting).expect("room"),
        orb: orb.clone(),
        tells: Mutex::new(tells),
        end: Mutex::new(end),
    };
    let party = party(&orb, lane, SetLevel(move |value| changing.serve(value)));
    let told = || told.recv_timeout(PATIENCE).expect("the servant tells it");
    let call = |change: Change, seconds| call(&party, change as i32, Duration::from_secs(seconds));
    let held: Vec<_> = (0..waiting)
        .map(|_| {
            let held = call(Change::None, 600);
            told();
            held
        })
        .collect();
    for change in Change::ALL.into_iter().skip(1) {
        // The second time, it is seen what the first one has left.
        for _ in 0..2 {
            let called = call(change, 500);
            assert_eq!(told()[0], policy, "{change:?}");
            let [_, after] = told();
            called.join().expect("no panic").expect("it is served");
            if matches!(change, Change::Segment | Change::Called | Change::Requested) {
                assert_eq!(after, policy, "{change:?}");
            }
        }
    }
    for _ in &held {
        ends.send(()).expect("it waits");
    }
    for held in held {
        held.join().expect("no panic").expect("it is served");
    }
    orb.destroy().expect("it ends");
}

#[test]
fn the_thread_of_a_level_gets_its_priority_back_from_what_servants_set() {
    const LOWEST: u8 = 7;
    if allowed(SchedPolicy::Fifo(OTHER as u8 + 1)).is_err() {
        return skip("no real-time priorities");
    }
    let levels = lane(RequestOrder::EarliestDeadline, LOWEST.into(), 2);
    check_changes(levels, 1, SchedPolicy::Fifo(LOWEST + 1));
}

#[test]
fn a_thread_with_a_reservation_gets_it_back_from_what_servants_set() {
    let (reservation, policy) = reservation();
    let probe = ThreadConfig {
        policy: Some(policy),
        ..ThreadConfig::default()
    };
    if rtorb_os::thread::spawn("probe", &probe, || ()).is_err() {
        return skip("no SCHED_DEADLINE");
    }
    let reserved = ThreadpoolLane {
        reservation: Some(reservation),
        ..lane(RequestOrder::Fifo, 40, 1)
    };
    check_changes(reserved, 0, policy);
}

#[test]
fn levels_that_the_host_or_the_pool_does_not_have_are_refused() {
    let orb = Orb::builder().build().expect("the ORB can be built");
    let edf = lane(RequestOrder::EarliestDeadline, 40, 3);
    let mut growing = edf;
    growing.dynamic_threads = 1;
    let fifo = |number| lane(RequestOrder::Fifo, number, 1);
    let reserved = ThreadpoolLane {
        reservation: Some(Reservation {
            runtime: Duration::from_millis(1),
            deadline: Duration::from_millis(2),
            period: Duration::from_millis(3),
        }),
        ..edf
    };
    let mut borrowing = LanedThreadpool {
        lanes: vec![edf, fifo(10)],
        allow_borrowing: true,
        ..LanedThreadpool::default()
    };
    let refuse = |pool: &LanedThreadpool, words: &str| {
        let refused = orb.rt_orb().create_threadpool_with_lanes(pool.clone());
        let refused = refused.expect_err(words);
        assert_eq!(refused.kind, ExceptionKind::BadParam, "{refused}");
        assert!(refused.to_string().contains(words), "{refused}");
    };
    refuse(&borrowing, "do not allow borrowing");
    borrowing.allow_borrowing = false;
    for (lanes, words) in [
        (vec![growing], "dynamic threads"),
        (vec![reserved], "neither levels"),
        (vec![edf, fifo(43)], "40 to 43"),
        (vec![lane(RequestOrder::LeastLaxity, 0, 1)], "from 1 to 99"),
        (vec![lane(RequestOrder::LeastLaxity, 98, 2)], "from 1 to 99"),
    ] {
        borrowing.lanes = lanes;
        refuse(&borrowing, words);
    }
}
