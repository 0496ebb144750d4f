//! Admission and changes of running systems: what breaks a deadline is refused and changes nothing, and a change loses nothing.

use super::events::setup::{
    PATIENCE, Served, Serving, Supplier, event, number, orb_for, subscription,
};
use core::sync::atomic::{AtomicBool, Ordering};
use rtorb::exception::local;
use rtorb::rt::Priority;
use rtorb::{Orb, PoaError, SystemException};
use rtorb_os::clock::{monotonic_ns, sleep_until};
use rtorb_os::sync::Mutex;
use rtorb_services::events::{Channel, ChannelConfig, Dispatching, PrioritySource, WhenFull};
use rtorb_services::scheduling::{
    Admission, Description, RemoteScheduler, Scheduling, SchedulingConfig, SchedulingError,
    ServantSchedule, SystemChangeError,
};
use rtorb_services::stubs::rtec_event::rtec_event_channel_admin::{
    ProxyPushConsumerConnectPushSupplierError, ProxyPushSupplierConnectPushConsumerError,
    SupplierQos,
};
use rtorb_services::stubs::rtec_event::rtec_event_comm::{
    Event, PushConsumer, PushConsumerServant,
};
use rtorb_services::stubs::rtec_scheduler::rtorb_scheduling;
use rtorb_services::stubs::rtec_scheduler::rtorb_scheduling::{
    ChangeableScheduler, ChangeableSchedulerApplyError,
};
use rtorb_tests::snapshots::robot::{Motor, MotorServant, MotorTurnError, PartServant};
use std::sync::Arc;
use std::time::Duration;

fn described(text: &str) -> Description {
    Description::of_text("the test", text).expect("a description")
}

/// A supplier of 1 kHz and its two consumers; the one with the shorter deadline is more urgent.
fn modes(a_deadline: &str, b_deadline: &str) -> String {
    format!(
        r#"
strategy = "dms"
priorities = {{ least_urgent = 28, most_urgent = 30 }}

[[operation]]
name = "source"
period = "1ms"
worst = "10us"
calls = [{{ to = "a", way = "one-way" }}, {{ to = "b", way = "one-way" }}]

[[operation]]
name = "a"
worst = "10us"
deadline = "{a_deadline}"

[[operation]]
name = "b"
worst = "10us"
deadline = "{b_deadline}"
"#
    )
}

const SOURCE: i32 = 1;
const A: i32 = 2;
const B: i32 = 3;

/// The display runs once in 40 ms, and cannot run each 10 ms.
const FULL: &str = r#"
[[operation]]
name = "sensor"
period = "10ms"
worst = "1ms"

[[operation]]
name = "control"
period = "10ms"
worst = "1ms"

[[operation]]
name = "display"
period = "40ms"
worst = "8ms"
"#;

/// A channel and the scheduling service that it asks, in one process.
struct System {
    service: Scheduling,
    served: Served,
}

impl System {
    fn new(description: Description, dispatching: Dispatching) -> Self {
        Self::with_source(description, dispatching, |service| {
            Arc::new(service.clone())
        })
    }

    fn with_source(
        description: Description,
        dispatching: Dispatching,
        source: impl FnOnce(&Scheduling) -> Arc<dyn PrioritySource>,
    ) -> Self {
        let config = ChannelConfig {
            dispatching,
            lanes: [30, 29, 28]
                .map(|it| Priority::new(it).expect("a priority"))
                .to_vec(),
            when_full: WhenFull::Wait {
                at_most: Duration::from_secs(30),
            },
            ..ChannelConfig::default()
        };
        let orb = orb_for(&config);
        let scheduling = SchedulingConfig {
            description: Some(description),
            ..SchedulingConfig::default()
        };
        let service = Scheduling::serve(&orb, scheduling).expect("an admitted system");
        let channel = Channel::serve_with(&orb, config, source(&service)).expect("a channel");
        service.reorder_channel(&channel);
        Self {
            service,
            served: Served {
                channel,
                serving: Serving::new(orb),
            },
        }
    }

    /// The service as a client with that ORB has it.
    fn scheduler(&self, orb: &Orb) -> ChangeableScheduler {
        let text = self.service.reference().as_object().to_string();
        let object = orb.string_to_object(&text).expect("a reference");
        ChangeableScheduler::narrow(&object).expect("a service that changes")
    }

    fn supplier(&self, event_type: i32, rt_info: i32) -> Result<(), SystemException> {
        let orb = Orb::builder().build().expect("an ORB");
        let channel = self.served.for_client(&orb);
        let admin = channel
            .for_suppliers()
            .expect("it answers")
            .expect("an admin");
        let proxy = admin
            .obtain_push_consumer()
            .expect("room")
            .expect("a proxy");
        let mut qos = SupplierQos {
            publications: Vec::new(),
            is_gateway: false,
        };
        let publications = rtorb_services::events::subscribe::Publications::new();
        qos.publications.extend(
            publications
                .event(1, event_type, rt_info)
                .supplier_qos()
                .publications,
        );
        let connected = proxy.connect_push_supplier(None, &qos);
        connected.map_err(|error| match error {
            ProxyPushConsumerConnectPushSupplierError::System(exception) => exception,
            other => panic!("{other}"),
        })
    }

    fn consumer(&self, event_type: i32, rt_info: i32) -> Result<TimedConsumer, SystemException> {
        let serving = Serving::of_a_client();
        let arrivals = Arc::new(Arrivals::default());
        let poa = serving.orb.root_poa().expect("it listens");
        let reference: PushConsumer = poa.activate(Arc::clone(&arrivals)).expect("activated");
        let channel = self.served.for_client(&serving.orb);
        let admin = channel
            .for_consumers()
            .expect("it answers")
            .expect("an admin");
        let proxy = admin
            .obtain_push_supplier()
            .expect("room")
            .expect("a proxy");
        let qos = subscription(&[(event_type, 0)], rt_info);
        let connected = proxy.connect_push_consumer(Some(&reference), &qos);
        connected.map_err(|error| match error {
            ProxyPushSupplierConnectPushConsumerError::System(exception) => exception,
            other => panic!("{other}"),
        })?;
        Ok(TimedConsumer {
            arrivals,
            _serving: serving,
        })
    }
}

/// The number of each event and when it came.
#[derive(Default)]
struct Arrivals(Mutex<Vec<(u32, u64)>>);

impl PushConsumerServant for Arrivals {
    fn push(&self, events: &[Event]) -> Result<(), SystemException> {
        let now_ns = monotonic_ns();
        let events = events.iter().map(|event| (number(event), now_ns));
        self.0.lock().extend(events);
        Ok(())
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

struct TimedConsumer {
    arrivals: Arc<Arrivals>,
    _serving: Serving,
}

#[test]
fn a_system_that_misses_a_deadline_is_not_served() {
    let overloaded = FULL.replace("8ms", "40ms");
    let orb = Orb::builder().build().expect("an ORB");
    let config = SchedulingConfig {
        description: Some(described(&overloaded)),
        ..SchedulingConfig::default()
    };
    let refused = Scheduling::serve(&orb, config.clone())
        .expect_err("2 ms in each 10 ms, and 40 ms in each 40 ms");
    let SchedulingError::NotAdmitted(refused) = refused else {
        panic!("{refused}");
    };
    assert_eq!(refused.refusal.operation, "display");
    let words = refused.to_string();
    assert!(words.contains("deadline of 40ms"), "{words}");
    assert!(words.contains("What would help: "), "{words}");
    let anyway = SchedulingConfig {
        admission: Admission::AdmitAnyway,
        ..config
    };
    let service = Scheduling::serve(&orb, anyway).expect("it was wanted");
    assert!(service.priority("display").is_some());
}

#[test]
fn a_change_over_the_wire_changes_all_or_nothing() {
    let system = System::new(described(&modes("5ms", "8ms")), Dispatching::Lanes);
    let orb = Orb::builder().build().expect("an ORB");
    let scheduler = system.scheduler(&orb);
    let refuse = rtorb_scheduling::Admission::RefuseUnproven;
    let priorities = || [SOURCE, A, B].map(|handle| scheduler.priority(handle).expect("known").0);
    assert_eq!(priorities(), [30, 29, 28]);
    // b before a, and a new operation with a handle of its own.
    let new = modes("8ms", "5ms")
        + "[[operation]]\nname = \"c\"\nperiod = \"1s\"\nworst = \"1us\"\ndeadline = \"8ms\"\n";
    let change = scheduler.apply(&new, refuse).expect("it holds");
    assert_eq!(
        (change.operations_changed, change.is_proven),
        (3, true),
        "a, b and c"
    );
    assert!(
        (1..8_000_000).contains(&change.longest_old_job),
        "{change:?}"
    );
    assert_eq!(priorities(), [30, 28, 29]);
    assert_eq!(scheduler.lookup("c").expect("known"), 4);

    let overloaded = new.replace("worst = \"10us\"", "worst = \"400us\"");
    match scheduler.apply(&overloaded, refuse) {
        Err(ChangeableSchedulerApplyError::NotAdmitted(refused)) => {
            assert!(!refused.what_helps.is_empty(), "{refused:?}");
            let said = scheduler.last_refusal().expect("it answers");
            assert!(said.contains(&refused.operation), "{said}");
        }
        other => panic!("{other:?}"),
    }
    match scheduler.apply("[[operation]]\nname = \"x\"\nworst = \"1\"\n", refuse) {
        Err(ChangeableSchedulerApplyError::WrongFile(wrong)) => {
            assert!(wrong.reason.contains(":3: "), "{}", wrong.reason);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(priorities(), [30, 28, 29], "nothing has changed");
    assert!(
        scheduler.lookup("x").is_err(),
        "a refused file leaves no name"
    );
}

#[test]
fn consumers_that_share_a_lane_cannot_part() {
    let system = System::new(described(&modes("5ms", "5ms")), Dispatching::Lanes);
    let _a = system.consumer(16, A).expect("admitted");
    let _b = system.consumer(16, B).expect("admitted");
    let apart = described(&modes("5ms", "8ms"));
    match system.service.apply(apart, Admission::RefuseUnproven) {
        Err(SystemChangeError::Fixed(part)) => assert!(part.contains("share a lane"), "{part}"),
        other => panic!("{other:?}"),
    }
    let lanes = system.served.channel.statistics().consumers;
    let lanes: Vec<i16> = lanes.iter().map(|it| it.lane).collect();
    assert_eq!(lanes, [29, 29]);
}

/// Makes the source of priorities of a channel from a service.
type Source = fn(&Scheduling) -> Arc<dyn PrioritySource>;

#[test]
fn events_that_would_break_a_deadline_are_refused() {
    let sources: [Source; 2] = [
        |service| Arc::new(service.clone()),
        |service| {
            let orb = Orb::builder().build().expect("an ORB");
            let text = service.reference().as_object().to_string();
            let object = orb.string_to_object(&text).expect("a reference");
            let scheduler =
                rtorb_services::stubs::rtec_scheduler::rtec_scheduler::Scheduler::unchecked_narrow(
                    object,
                );
            Arc::new(RemoteScheduler(scheduler))
        },
    ];
    let [sensor, control, display] = [1, 2, 3];
    for source in sources {
        let description = described(&FULL.replace("[[operation]]\nname = \"sensor\"", "priorities = { least_urgent = 28, most_urgent = 30 }\n[[operation]]\nname = \"sensor\""));
        let system = System::with_source(description, Dispatching::Lanes, source);
        // The sensor runs the control too: 1 ms more in each 10 ms.
        system.supplier(16, sensor).expect("nobody listens");
        let _control = system
            .consumer(16, control)
            .expect("3 ms in each 10 ms, and 8 ms in each 40 ms");
        let refused = system
            .consumer(16, display)
            .err()
            .expect("8 ms in each 10 ms");
        assert_eq!(refused.minor, local::NOT_ADMITTED.minor, "{refused}");
        let said = system
            .scheduler(&Orb::builder().build().expect("an ORB"))
            .last_refusal();
        let said = said.expect("it answers");
        assert!(
            said.contains("display") || said.contains("control"),
            "{said}"
        );
        // And the other way round: the consumer is there before the supplier.
        let _idle = system.consumer(17, display).expect("nobody sends 17");
        let refused = system.supplier(17, sensor).expect_err("8 ms in each 10 ms");
        assert_eq!(refused.minor, local::NOT_ADMITTED.minor, "{refused}");
    }
}

/// A motor of 2 ms in each 50 ms.
struct Idle;

impl PartServant for Idle {
    fn temperature(&self) -> Result<f32, SystemException> {
        Ok(20.0)
    }

    fn stop(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn rest(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

impl MotorServant for Idle {
    fn turn(&self, angle: i32, _reasons: &[String]) -> Result<i32, MotorTurnError> {
        Ok(angle)
    }

    fn speed(&self) -> Result<i32, SystemException> {
        Ok(0)
    }

    fn set_speed(&self, _speed: i32) -> Result<(), SystemException> {
        Ok(())
    }
}

#[test]
fn a_servant_that_would_break_a_deadline_is_not_activated() {
    // One level of 50 ms in any order: with three motors of 2 ms, a turn is done after 40 ms, its deadline.
    let system = "[[operation]]\nname = \"control\"\nperiod = \"50ms\"\nworst = \"34ms\"\n";
    let schedule = ServantSchedule::new(described(system)).expect("a schedule");
    let orb = Orb::builder()
        .servant_admission(Arc::new(schedule))
        .build()
        .expect("an ORB");
    let poa = orb.root_poa().expect("it listens");
    let activate = || poa.activate::<Motor, _>(Idle);
    let motors: Vec<Motor> = (0..3).map(|_| activate().expect("there is room")).collect();
    let refused = match activate() {
        Err(PoaError::System(refused)) => refused,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused.minor, local::NOT_ADMITTED.minor);
    let reason = refused.detail().expect("the reason");
    assert!(
        reason.contains("Robot::Motor::turn of servant 1 misses its deadline of 40ms"),
        "{reason}"
    );
    // One that is gone makes room.
    poa.deactivate(motors[1].as_object())
        .expect("it was active");
    activate().expect("there is room again");
    assert!(activate().is_err());
}

#[test]
fn changes_under_calls_and_events_lose_nothing() {
    for dispatching in [
        Dispatching::Lanes,
        Dispatching::Priority,
        Dispatching::Reactive,
    ] {
        let outcome = run(dispatching, 60, 3_000_000);
        assert_eq!(outcome.changes, 60);
    }
}

/// Prints how many events came after their deadline, with changes and without.
#[test]
#[ignore = "a measurement of half a minute"]
fn a_thousand_changes_under_calls_and_events() {
    let steady = run(Dispatching::Lanes, 0, 10_000_000);
    let changing = run(Dispatching::Lanes, 1_000, 10_000_000);
    assert_eq!(changing.changes, 1_000);
    let mut out = std::io::stdout();
    for (name, outcome) in [("without changes", steady), ("1,000 changes", changing)] {
        use std::io::Write as _;
        writeln!(out, "{name}: {outcome:?}").expect("written");
    }
}

#[derive(Debug)]
#[expect(dead_code, reason = "the measurement prints it")]
struct Outcome {
    changes: u32,
    calls: u32,
    events: u32,
    /// Events that came later than the shorter one of their deadlines, 5 ms.
    late: usize,
    longest_us: u64,
}

/// Sends events to two consumers and calls the service 1,000 times a second, and exchanges the consumers' priorities meanwhile.
fn run(dispatching: Dispatching, changes: u32, gap_ns: u64) -> Outcome {
    let both = [modes("5ms", "8ms"), modes("8ms", "5ms")].map(|text| described(&text));
    let system = System::new(both[0].clone(), dispatching);
    let consumers = [A, B].map(|rt_info| system.consumer(16, rt_info).expect("admitted"));
    let has_ended = AtomicBool::new(false);
    let (sent_ns, calls) = std::thread::scope(|scope| {
        let sending = scope.spawn(|| send(&system, &has_ended));
        let calling = scope.spawn(|| call(&system, &has_ended));
        let start_ns = monotonic_ns();
        for change in 1..=u64::from(changes) {
            sleep_until(start_ns + change * gap_ns);
            let next = both[(change % 2) as usize].clone();
            let changed = system.service.apply(next, Admission::RefuseUnproven);
            assert_eq!(changed.expect("it holds").unproven, None);
            let expected = if change % 2 == 1 { [28, 29] } else { [29, 28] };
            assert_eq!(lanes(&system), expected);
        }
        if changes == 0 {
            sleep_until(start_ns + 1_000 * gap_ns);
        }
        has_ended.store(true, Ordering::SeqCst);
        (
            sending.join().expect("it does not panic"),
            calling.join().expect("it does not panic"),
        )
    });
    let events = u32::try_from(sent_ns.len()).expect("few");
    let mut longest_ns = 0;
    let mut late = 0;
    for consumer in &consumers {
        let arrivals = wait_for(&consumer.arrivals, sent_ns.len());
        let numbers: Vec<u32> = arrivals.iter().map(|(number, _)| *number).collect();
        assert_eq!(
            numbers,
            (0..events).collect::<Vec<_>>(),
            "each once, in order"
        );
        for ((_, came_ns), sent_ns) in arrivals.iter().zip(&sent_ns) {
            let response_ns = came_ns - sent_ns;
            longest_ns = longest_ns.max(response_ns);
            late += usize::from(response_ns > 5_000_000);
        }
    }
    Outcome {
        changes,
        calls,
        events,
        late,
        longest_us: longest_ns / 1_000,
    }
}

/// The priorities of the lanes of both consumers.
fn lanes(system: &System) -> [i16; 2] {
    let mut consumers = system.served.channel.statistics().consumers;
    consumers.sort_by_key(|it| it.number);
    [consumers[0].lane, consumers[1].lane]
}

/// Sends an event each millisecond, and returns when it sent each.
fn send(system: &System, has_ended: &AtomicBool) -> Vec<u64> {
    let supplier = Supplier::connect(&system.served);
    let mut sent_ns = Vec::new();
    let start_ns = monotonic_ns();
    for count in 0.. {
        if has_ended.load(Ordering::SeqCst) {
            break;
        }
        sleep_until(start_ns + u64::from(count) * 1_000_000);
        sent_ns.push(monotonic_ns());
        supplier.push(event(16, 1, count));
    }
    sent_ns
}

/// Calls the service each millisecond, and returns how often. Each answer is that of the old mode or of the new one.
fn call(system: &System, has_ended: &AtomicBool) -> u32 {
    let orb = Orb::builder().build().expect("an ORB");
    let scheduler = system.scheduler(&orb);
    let start_ns = monotonic_ns();
    let mut calls = 0;
    while !has_ended.load(Ordering::SeqCst) {
        let (priority, ..) = scheduler.priority(A).expect("an answer");
        assert!((28..=29).contains(&priority), "{priority}");
        let schedule = system.service.schedule().expect("a schedule");
        let both = [A, B].map(|handle| schedule.priority_of(handle).expect("known").get());
        assert!(both == [29, 28] || both == [28, 29], "{both:?}");
        calls += 1;
        sleep_until(start_ns + u64::from(calls) * 1_000_000);
    }
    calls
}

fn wait_for(arrivals: &Arrivals, count: usize) -> Vec<(u32, u64)> {
    let late_ns = monotonic_ns() + PATIENCE.as_nanos() as u64;
    loop {
        let came = arrivals.0.lock();
        if came.len() >= count {
            return came.clone();
        }
        let got = came.len();
        drop(came);
        assert!(monotonic_ns() < late_ns, "{got} of {count} events came");
        std::thread::sleep(Duration::from_millis(2));
    }
}
