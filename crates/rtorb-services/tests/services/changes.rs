//! Admission and changes of running systems: what breaks a deadline is refused and changes nothing, and a change loses nothing.

use super::events::setup::{
    PATIENCE, Served, Serving, Supplier, event, number, orb_for, subscription,
};
use core::sync::atomic::{AtomicBool, Ordering};
use rtorb::exception::local;
use rtorb::rt::Priority;
use rtorb::{Orb, PoaError, SystemException};
use rtorb_os::clock::{monotonic_ns, sleep_until};
use rtorb_os::memory::lock_all;
use rtorb_os::sched::{SchedPolicy, allowed, current_affinity, current_policy};
use rtorb_os::sync::Mutex;
use rtorb_os::thread::ThreadConfig;
use rtorb_services::events::{Channel, ChannelConfig, Dispatching, PrioritySource, WhenFull};
use rtorb_services::scheduling::{
    Admission, Description, RemoteScheduler, Schedule, Scheduling, SchedulingConfig,
    SchedulingError, ServantSchedule, SystemChangeError,
};
use rtorb_services::stubs::rtec_event::rtec_event_channel_admin::{
    ProxyPushConsumerConnectPushSupplierError, ProxyPushSupplier,
    ProxyPushSupplierConnectPushConsumerError, SupplierQos,
};
use rtorb_services::stubs::rtec_event::rtec_event_comm::{
    Event, PushConsumer, PushConsumerServant,
};
use rtorb_services::stubs::rtec_scheduler::rtec_scheduler::Scheduler;
use rtorb_services::stubs::rtec_scheduler::rtorb_scheduling;
use rtorb_services::stubs::rtec_scheduler::rtorb_scheduling::{
    ChangeableScheduler, ChangeableSchedulerApplyError,
};
use rtorb_tests::skip;
use rtorb_tests::snapshots::robot::{Motor, MotorServant, MotorTurnError, PartServant};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
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

/// The calls of the service, in the more urgent level of the consumers.
const ASK: &str = r#"
[[operation]]
name = "ask"
period = "1ms"
worst = "100us"
deadline = "5ms"
"#;

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
        let system = Self::with_source(description, dispatching, |service| {
            Arc::new(service.clone())
        });
        system.service.reorder_channel(&system.served.channel);
        system
    }

    fn with_source(
        description: Description,
        dispatching: Dispatching,
        source: impl FnOnce(&Scheduling) -> Arc<dyn PrioritySource>,
    ) -> Self {
        let config = config(dispatching);
        let orb = orb_for(&config);
        let scheduling = SchedulingConfig {
            system: Some(description.into()),
            ..SchedulingConfig::default()
        };
        let service = Scheduling::serve(&orb, scheduling).expect("an admitted system");
        let channel = Channel::serve_with(&orb, config, source(&service)).expect("a channel");
        Self {
            service,
            served: Served {
                channel,
                serving: Serving::new(orb),
            },
        }
    }

    /// Another channel that asks the same service.
    fn beside(&self, source: impl FnOnce(&Scheduling) -> Arc<dyn PrioritySource>) -> Self {
        let config = config(Dispatching::Lanes);
        let orb = orb_for(&config);
        let source = source(&self.service);
        Self {
            service: self.service.clone(),
            served: Served {
                channel: Channel::serve_with(&orb, config, source).expect("a channel"),
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
            proxy,
            _serving: serving,
        })
    }
}

fn config(dispatching: Dispatching) -> ChannelConfig {
    ChannelConfig {
        dispatching,
        lanes: [30, 29, 28]
            .map(|it| Priority::new(it).expect("a priority"))
            .to_vec(),
        when_full: WhenFull::Wait {
            at_most: Duration::from_secs(30),
        },
        // At its end, a channel gives back what was admitted for it once it has told its clients.
        goodbye_timeout: PATIENCE,
        ..ChannelConfig::default()
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
    proxy: ProxyPushSupplier,
    _serving: Serving,
}

#[test]
fn a_system_that_misses_a_deadline_is_not_served() {
    let overloaded = FULL.replace("8ms", "40ms");
    let orb = Orb::builder().build().expect("an ORB");
    let config = SchedulingConfig {
        system: Some(described(&overloaded).into()),
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
    assert_eq!(service.unproven(), Some(refused));
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

/// The service as a source of priorities in another process has it.
fn remote(service: &Scheduling) -> Arc<dyn PrioritySource> {
    let orb = Orb::builder().build().expect("an ORB");
    let text = service.reference().as_object().to_string();
    let object = orb.string_to_object(&text).expect("a reference");
    Arc::new(RemoteScheduler(Scheduler::unchecked_narrow(object)))
}

#[test]
fn a_channel_with_a_remote_scheduler_changes_when_its_program_asks() {
    let first = described(&modes("5ms", "8ms"));
    let system = System::with_source(first, Dispatching::Lanes, remote);
    let _a = system.consumer(16, A).expect("admitted");
    let _b = system.consumer(16, B).expect("admitted");
    let orb = Orb::builder().build().expect("an ORB");
    let scheduler = Scheduler::from(system.scheduler(&orb));
    let follow = || {
        let asked = Schedule::ask(&scheduler).expect("it answers");
        system.served.channel.reorder(&asked)
    };
    assert_eq!(lanes(&system), [29, 28]);
    let exchanged = described(&modes("8ms", "5ms"));
    let changed = system.service.apply(exchanged, Admission::RefuseUnproven);
    changed.expect("it holds");
    assert_eq!(lanes(&system), [29, 28], "it has not asked yet");
    follow().expect("lanes exchange their priorities");
    assert_eq!(lanes(&system), [28, 29]);
    // Both in one level: each has a lane of its own, so the channel keeps its order.
    let one_level = described(&modes("5ms", "5ms"));
    let changed = system.service.apply(one_level, Admission::RefuseUnproven);
    changed.expect("it holds, and no channel of this process follows");
    let refused = follow().expect_err("two lanes").to_string();
    assert!(refused.contains("lanes of their own"), "{refused}");
    assert_eq!(lanes(&system), [28, 29]);
}

/// Makes the source of priorities of a channel from a service.
type Source = fn(&Scheduling) -> Arc<dyn PrioritySource>;

#[test]
fn events_that_would_break_a_deadline_are_refused() {
    let sources: [Source; 2] = [|service| Arc::new(service.clone()), remote];
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

/// The sensor and each event of it run the control for that time; both are once in 10 ms.
fn control_of(worst: &str) -> Description {
    let control = "name = \"control\"\nperiod = \"10ms\"\nworst = \"";
    let text = FULL.replace(&format!("{control}1ms"), &format!("{control}{worst}"));
    described(&format!(
        "priorities = {{ least_urgent = 28, most_urgent = 30 }}\n{text}"
    ))
}

#[test]
fn the_events_of_all_channels_count_together_until_their_consumers_leave() {
    let sources: [Source; 2] = [|service| Arc::new(service.clone()), remote];
    let [sensor, control] = [1, 2];
    for source in sources {
        let first = System::with_source(control_of("1500us"), Dispatching::Lanes, source);
        let second = first.beside(source);
        for system in [&first, &second] {
            system.supplier(16, sensor).expect("nobody listens");
        }
        let near = first
            .consumer(16, control)
            .expect("it ends 8 ms after the sensor's arrival");
        let connect = || second.consumer(16, control);
        let refused = connect()
            .err()
            .expect("it would end 11 ms after the sensor's arrival");
        assert_eq!(refused.minor, local::NOT_ADMITTED.minor, "{refused}");
        // A consumer that leaves makes room, for one.
        near.proxy
            .disconnect_push_supplier()
            .expect("it was connected");
        let late_ns = monotonic_ns() + PATIENCE.as_nanos() as u64;
        let _far = loop {
            match connect() {
                Ok(consumer) => break consumer,
                Err(refused) => assert!(monotonic_ns() < late_ns, "{refused}"),
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        assert!(
            first.consumer(16, control).is_err(),
            "it would end 11 ms after the sensor's arrival"
        );
        // So does a channel that ends.
        second.served.channel.destroy();
        let _near = first
            .consumer(16, control)
            .expect("it ends 8 ms after the sensor's arrival");
    }
}

/// The service of `control_of("1500us")`, which keeps so many flows, and its reference as another ORB has it.
fn asked_over_the_wire(
    flows_max: usize,
) -> (rtorb_tests::relay::Served, Scheduling, ChangeableScheduler) {
    let served = rtorb_tests::relay::Served::by(Orb::builder());
    let config = SchedulingConfig {
        system: Some(control_of("1500us").into()),
        dependencies_max: flows_max,
        ..SchedulingConfig::default()
    };
    let service = Scheduling::serve(&served.orb, config).expect("it holds");
    served.root.manager().activate();
    let text = service.reference().as_object().to_string();
    let client = Orb::builder().build().expect("an ORB");
    let object = client.string_to_object(&text).expect("a reference");
    let scheduler = ChangeableScheduler::narrow(&object).expect("it answers");
    (served, service, scheduler)
}

/// One event of the sensor runs the control once: the sensor is 1, the control 2.
const FLOW: rtorb_scheduling::EventFlow = rtorb_scheduling::EventFlow {
    supplier: 1,
    consumer: 2,
    count: 1,
};

#[test]
fn flows_that_a_client_repeats_count_together() {
    let (_served, _service, scheduler) = asked_over_the_wire(40_000);
    scheduler
        .admit_channel("c", &[FLOW])
        .expect("it ends 8 ms after the sensor's arrival");
    scheduler
        .admit_channel("c", &[FLOW, FLOW])
        .expect_err("it would end 11 ms after the sensor's arrival");
    scheduler
        .admit(&[FLOW])
        .expect_err("it would end 11 ms after the sensor's arrival, beside the channel");
    scheduler
        .admit_channel("c", &[FLOW])
        .expect("the channel has it");
    let most = rtorb_scheduling::EventFlow {
        count: u32::MAX,
        ..FLOW
    };
    scheduler
        .admit_channel("c", &[FLOW, most])
        .expect_err("a sum ends at the most");
}

#[test]
fn a_client_passes_the_bound_neither_with_flows_that_the_channel_has_nor_without_a_name() {
    let (_served, _service, scheduler) = asked_over_the_wire(2);
    let unknown = |supplier| rtorb_scheduling::EventFlow { supplier, ..FLOW };
    // Flows of operations that the schedule does not have break no deadline, and are kept.
    let known = [unknown(7), unknown(8)];
    scheduler.admit_channel("c", &known).expect("there is room");
    let refusal = || scheduler.last_refusal().expect("it answers");
    scheduler
        .admit_channel("c", &[unknown(7); 3])
        .expect_err("there are more flows than the service keeps");
    assert!(refusal().contains("dependencies_max"), "{}", refusal());
    scheduler
        .admit_channel("d", &known[..1])
        .expect_err("the other channel has all the room");
    scheduler
        .admit_channel("c", &known[..1])
        .expect("it has it");
    scheduler.admit(&known[..1]).expect("there is room");
    scheduler
        .admit(&known)
        .expect_err("there are more flows than the service keeps");
    scheduler
        .admit_channel("d", &known[..1])
        .expect("there is room");
}

#[test]
fn a_change_keeps_the_deadlines_under_the_events_of_channels() {
    let source: Source = |service| Arc::new(service.clone());
    let [sensor, control] = [1, 2];
    let system = System::with_source(control_of("1500us"), Dispatching::Lanes, source);
    let apply = |worst| {
        system
            .service
            .apply(control_of(worst), Admission::RefuseUnproven)
    };
    apply("2500us").expect("nobody sends");
    apply("1500us").expect("nobody sends");
    system.supplier(16, sensor).expect("nobody listens");
    let _control = system
        .consumer(16, control)
        .expect("it ends 8 ms after the sensor's arrival");
    match apply("2500us") {
        Err(SystemChangeError::NotAdmitted(refused)) => {
            let words = refused.to_string();
            assert!(words.contains("events of the channels"), "{words}");
        }
        other => panic!("it would end 12 ms after the sensor's arrival: {other:?}"),
    }
    let changed = apply("1500us").expect("it is the system that runs");
    assert_eq!(changed.unproven, None);
    let anyway = system
        .service
        .apply(control_of("2500us"), Admission::AdmitAnyway);
    let unproven = anyway.expect("it was wanted").unproven;
    assert!(unproven.is_some(), "with the events it does not hold");
    assert_eq!(system.service.unproven(), unproven);
    // What does not hold cannot be broken.
    let _another = system.consumer(16, control).expect("it is admitted");
}

#[test]
fn a_channel_runs_no_consumer_whose_level_must_preempt() {
    let text = r#"
strategy = "edf"
priorities = { least_urgent = 28, most_urgent = 30 }
operation = [
    { name = "a", period = "10ms", worst = "5ms" },
    { name = "b", period = "14ms", worst = "6ms" },
]
"#;
    let source: Source = |service| Arc::new(service.clone());
    let system = System::with_source(described(text), Dispatching::Lanes, source);
    assert!(system.service.needs_preemption());
    let unknown = 9;
    system.supplier(16, unknown).expect("nobody listens");
    let refused = system.consumer(16, 2).err().expect("its lane is fifo");
    assert_eq!(refused.minor, local::NOT_ADMITTED.minor, "{refused}");
    let asked = system.scheduler(&Orb::builder().build().expect("an ORB"));
    let said = asked.last_refusal().expect("it answers");
    assert!(said.contains("preempts"), "{said}");
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
        assert_eq!(outcome.changes.len(), 60);
    }
}

/// Changes a system of 1,000 calls and events a second 1,000 times. Each answer must come until the deadline that is proven for its
/// time: that of the mode, or during a change the shorter one of both modes. One may be later if the host kept its CPUs from the most
/// urgent threads for as long. The system is a program of its own, whose pages are in memory: here other tests share its pages, and
/// the kernel's lock of them, which does not inherit priority.
#[test]
fn nothing_is_later_during_changes_than_the_analysis_says() {
    if allowed(SchedPolicy::Fifo(WITNESS)).is_err() {
        return skip("no real-time priorities");
    }
    if std::env::var_os(IS_ALONE).is_some() {
        if lock_all().is_err() {
            return skip("no right to lock memory");
        }
        return nothing_is_late();
    }
    let program = std::env::current_exe().expect("this program");
    let name = "changes::nothing_is_later_during_changes_than_the_analysis_says";
    let mut alone = Command::new(program);
    alone
        .args([name, "--exact", "--nocapture"])
        .env(IS_ALONE, "1");
    assert!(alone.status().expect("it can be started").success());
}

/// Set for a program that runs one test alone.
const IS_ALONE: &str = "RTORB_TEST_IS_ALONE";

fn nothing_is_late() {
    let has_ended = &AtomicBool::new(false);
    let (outcome, stalls) = std::thread::scope(|scope| {
        let cpus = current_affinity().into_iter();
        let witnesses: Vec<_> = cpus
            .map(|cpu| scope.spawn(move || watch(cpu, has_ended)))
            .collect();
        let outcome = scope.spawn(|| {
            // All threads that it starts inherit that.
            take(SchedPolicy::Fifo(CLIENTS), Vec::new());
            run(Dispatching::Lanes, 1_000, 8_000_000)
        });
        let outcome = outcome.join();
        has_ended.store(true, Ordering::SeqCst);
        let stalls: Vec<_> = witnesses
            .into_iter()
            .flat_map(|witness| witness.join().expect("it does not panic"))
            .collect();
        (outcome.expect("it does not panic"), stalls)
    });
    assert_eq!(outcome.changes.len(), 1_000);
    assert!(outcome.answers.len() > 15_000, "{}", outcome.answers.len());
    let late = outcome
        .answers
        .iter()
        .filter(|answer| answer.lateness_ns(&outcome.changes) > 0);
    for answer in late {
        let in_its_time = stalls
            .iter()
            .filter(|stall| stall.from_ns < answer.came_ns && answer.sent_ns < stall.until_ns);
        let stalled_ns: u64 = in_its_time
            .map(|stall| stall.until_ns - stall.from_ns)
            .sum();
        let lateness_ns = answer.lateness_ns(&outcome.changes);
        assert!(
            stalled_ns >= lateness_ns,
            "{lateness_ns} ns late, and the host kept its CPUs for {stalled_ns} ns: {answer:?}"
        );
    }
}

/// What a run of changes saw.
struct Outcome {
    changes: Vec<ModeChange>,
    answers: Vec<Answer>,
}

/// A change, from the request to the end of the last job of the old mode.
#[derive(Clone, Copy, Debug)]
struct ModeChange {
    from_ns: u64,
    until_ns: u64,
    /// The deadlines of both consumers after it.
    deadlines_ns: [u64; 2],
}

/// An event that came to a consumer, or a call that was answered.
#[derive(Clone, Copy, Debug)]
struct Answer {
    sent_ns: u64,
    came_ns: u64,
    /// The consumer; `None` for a call, whose deadline is that of all modes.
    consumer: Option<usize>,
}

impl Answer {
    /// Returns by how much it is later than the analysis allows.
    fn lateness_ns(&self, changes: &[ModeChange]) -> u64 {
        let Some(consumer) = self.consumer else {
            return (self.came_ns - self.sent_ns).saturating_sub(SHORT_NS);
        };
        let before = changes.partition_point(|change| change.until_ns <= self.sent_ns);
        let is_in_a_change = changes
            .get(before)
            .is_some_and(|next| next.from_ns < self.came_ns);
        let deadline_ns = match before.checked_sub(1) {
            _ if is_in_a_change => SHORT_NS,
            Some(last) => changes[last].deadlines_ns[consumer],
            None => FIRST_NS[consumer],
        };
        (self.came_ns - self.sent_ns).saturating_sub(deadline_ns)
    }
}

const SHORT_NS: u64 = 5_000_000;
const LONG_NS: u64 = 8_000_000;
/// The deadlines of both consumers at the start.
const FIRST_NS: [u64; 2] = [SHORT_NS, LONG_NS];
/// The priority of all threads but those of lanes, below these.
const CLIENTS: u8 = 27;
/// The priority of the thread that changes the system.
const CHANGES: u8 = 20;
/// A thread of the least priority of the system waits, as the system does, for the host and for all more urgent threads of others.
const WITNESS: u8 = CLIENTS;

/// A time in which a CPU did not run its most urgent thread, or did not pass its packet on.
#[derive(Clone, Copy, Debug)]
struct Stall {
    from_ns: u64,
    until_ns: u64,
}

/// Wakes twice a millisecond on a CPU, sends itself a byte over the loopback device, and returns when that took long. A busy host
/// leaves packets to a thread without real-time priority.
fn watch(cpu: usize, has_ended: &AtomicBool) -> Vec<Stall> {
    take(SchedPolicy::Fifo(WITNESS), vec![cpu]);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("it is bound");
    let mut near = TcpStream::connect(address).expect("it listens");
    near.set_nodelay(true).expect("an option of TCP");
    let (mut far, _) = listener.accept().expect("it is connected");
    let mut stalls = Vec::new();
    let mut next_ns = monotonic_ns();
    while !has_ended.load(Ordering::SeqCst) {
        next_ns += 500_000;
        sleep_until(next_ns);
        near.write_all(&[0]).expect("it is connected");
        far.read_exact(&mut [0]).expect("it is connected");
        let woken_ns = monotonic_ns();
        if woken_ns > next_ns + 100_000 {
            stalls.push(Stall {
                from_ns: next_ns,
                until_ns: woken_ns,
            });
            next_ns = woken_ns;
        }
    }
    stalls
}

/// Gives the calling thread a policy and CPUs.
fn take(policy: SchedPolicy, affinity: Vec<usize>) {
    let config = ThreadConfig {
        policy: Some(policy),
        affinity,
        ..ThreadConfig::default()
    };
    config.apply_here().expect("it is granted");
}

/// Sends events to two consumers and calls the service 1,000 times a second, and exchanges the consumers' priorities meanwhile.
fn run(dispatching: Dispatching, changes: u32, gap_ns: u64) -> Outcome {
    let both = [modes("5ms", "8ms"), modes("8ms", "5ms")].map(|text| described(&(text + ASK)));
    let system = System::new(both[0].clone(), dispatching);
    let consumers = [A, B].map(|rt_info| system.consumer(16, rt_info).expect("admitted"));
    let has_ended = AtomicBool::new(false);
    let mut made = Vec::new();
    let (sent_ns, mut answers) = std::thread::scope(|scope| {
        let sending = scope.spawn(|| send(&system, &consumers, &has_ended));
        let calling = scope.spawn(|| call(&system, &has_ended));
        if let SchedPolicy::Fifo(_) = current_policy() {
            // The analysis of a change is not part of the system.
            take(SchedPolicy::Fifo(CHANGES), Vec::new());
        }
        let start_ns = monotonic_ns();
        for change in 1..=u64::from(changes) {
            sleep_until(start_ns + change * gap_ns);
            let from_ns = monotonic_ns();
            let next = both[(change % 2) as usize].clone();
            let changed = system.service.apply(next, Admission::RefuseUnproven);
            let changed = changed.expect("it holds");
            assert_eq!(changed.unproven, None);
            let (expected, deadlines_ns) = if change % 2 == 1 {
                ([28, 29], [LONG_NS, SHORT_NS])
            } else {
                ([29, 28], FIRST_NS)
            };
            assert_eq!(lanes(&system), expected);
            let longest_ns = changed.longest_old_job_ns.expect("it is bounded");
            made.push(ModeChange {
                from_ns,
                until_ns: monotonic_ns() + longest_ns,
                deadlines_ns,
            });
        }
        has_ended.store(true, Ordering::SeqCst);
        (
            sending.join().expect("it does not panic"),
            calling.join().expect("it does not panic"),
        )
    });
    let events = u32::try_from(sent_ns.len()).expect("few");
    for (index, consumer) in consumers.iter().enumerate() {
        let arrivals = wait_for(&consumer.arrivals, sent_ns.len());
        let numbers: Vec<u32> = arrivals.iter().map(|(number, _)| *number).collect();
        assert_eq!(
            numbers,
            (0..events).collect::<Vec<_>>(),
            "each once, in order"
        );
        // The first event may wait for the channel's keeper, which has no real-time priority, to connect to the consumer.
        let both = arrivals.iter().zip(&sent_ns).skip(1);
        answers.extend(both.map(|((_, came_ns), sent_ns)| Answer {
            sent_ns: *sent_ns,
            came_ns: *came_ns,
            consumer: Some(index),
        }));
    }
    Outcome {
        changes: made,
        answers,
    }
}

/// The priorities of the lanes of both consumers.
fn lanes(system: &System) -> [i16; 2] {
    let mut consumers = system.served.channel.statistics().consumers;
    consumers.sort_by_key(|it| it.number);
    [consumers[0].lane, consumers[1].lane]
}

/// Sends an event each millisecond once the first has come to the consumers, and returns when it sent each.
fn send(system: &System, consumers: &[TimedConsumer], has_ended: &AtomicBool) -> Vec<u64> {
    let supplier = Supplier::connect(&system.served);
    let mut sent_ns = vec![monotonic_ns()];
    supplier.push(event(16, 1, 0));
    for consumer in consumers {
        wait_for(&consumer.arrivals, 1);
    }
    let start_ns = monotonic_ns();
    for count in 1.. {
        if has_ended.load(Ordering::SeqCst) {
            break;
        }
        sleep_until(start_ns + u64::from(count) * 1_000_000);
        sent_ns.push(monotonic_ns());
        supplier.push(event(16, 1, count));
    }
    sent_ns
}

/// Calls the service each millisecond, and returns when. Each answer is that of the old mode or of the new one.
fn call(system: &System, has_ended: &AtomicBool) -> Vec<Answer> {
    let orb = Orb::builder().build().expect("an ORB");
    let scheduler = system.scheduler(&orb);
    let start_ns = monotonic_ns();
    let mut answers = Vec::new();
    while !has_ended.load(Ordering::SeqCst) {
        let sent_ns = monotonic_ns();
        let (priority, ..) = scheduler.priority(A).expect("an answer");
        answers.push(Answer {
            sent_ns,
            came_ns: monotonic_ns(),
            consumer: None,
        });
        assert!((28..=29).contains(&priority), "{priority}");
        let schedule = system.service.schedule().expect("a schedule");
        let both = [A, B].map(|handle| schedule.priority_of(handle).expect("known").get());
        assert!(both == [29, 28] || both == [28, 29], "{both:?}");
        sleep_until(start_ns + answers.len() as u64 * 1_000_000);
    }
    answers
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
