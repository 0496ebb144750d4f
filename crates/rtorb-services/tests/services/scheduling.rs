//! A scheduling service, asked over the wire: every operation of RtecScheduler::Scheduler.

use rtorb::{ExceptionKind, ObjectKeyError, Orb, SystemException};
use rtorb_services::events::{DispatchOrder, PrioritySource, UrgencyError};
use rtorb_services::scheduling::analysis::Strategy;
use rtorb_services::scheduling::{
    RemoteScheduler, Schedule, Scheduling, SchedulingConfig, SchedulingError,
};
use rtorb_services::stubs::rtec_event::rtec_event_comm::{PushSupplier, PushSupplierServant};
use rtorb_services::stubs::rtec_scheduler::rtec_base::{DependencyEnabledTypeT, DependencyTypeT};
use rtorb_services::stubs::rtec_scheduler::rtec_scheduler::*;
use rtorb_tests::fake::{FakeServer, reply};
use std::thread::JoinHandle;
use std::time::Duration;

/// A service that runs until it is dropped, with a client ORB beside it.
struct Serving {
    service: Scheduling,
    /// As a client has it.
    scheduler: Scheduler,
    orb: Orb,
    thread: Option<JoinHandle<()>>,
}

impl Serving {
    fn new(config: SchedulingConfig) -> Self {
        let orb = Orb::builder().build().expect("an ORB");
        let service = Scheduling::serve(&orb, config).expect("a scheduling service");
        orb.root_poa().expect("a root adapter").manager().activate();
        let running = orb.clone();
        let thread = std::thread::spawn(move || running.run().expect("an ORB that runs"));
        let client = Orb::builder().build().expect("a client");
        let text = service.reference().as_object().to_string();
        let object = client.string_to_object(&text).expect("a reference");
        Self {
            service,
            scheduler: Scheduler::narrow(&object).expect("a Scheduler"),
            orb,
            thread: Some(thread),
        }
    }

    /// An operation with times in milliseconds.
    fn operation(&self, name: &str, period_ms: i32, worst_ms: u64) -> i32 {
        let handle = self.scheduler.create(name).expect("a new name");
        self.set(handle, period_ms, worst_ms, CriticalityT::MediumCriticality);
        handle
    }

    fn set(&self, handle: i32, period_ms: i32, worst_ms: u64, criticality: CriticalityT) {
        let worst = worst_ms * MS;
        let set = self.scheduler.set(
            handle,
            criticality,
            worst,
            worst,
            worst,
            period_ms * i32::try_from(MS).expect("small"),
            ImportanceT::MediumImportance,
            0,
            0,
            InfoTypeT::Operation,
        );
        set.expect("a known handle");
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.orb.shutdown();
        if let Some(thread) = self.thread.take() {
            thread.join().expect("an ORB that ended");
        }
    }
}

/// In units of 100 ns.
const MS: u64 = 10_000;

#[test]
fn rates_become_priorities_that_can_be_asked_for() {
    let serving = Serving::new(SchedulingConfig::default());
    let scheduler = &serving.scheduler;
    let slow = serving.operation("slow", 100, 10);
    let fast = serving.operation("fast", 25, 5);
    let called = serving.operation("called", 0, 1);
    assert_eq!([slow, fast, called], [1, 2, 3]);
    assert_eq!(scheduler.lookup("fast").expect("known"), fast);
    assert!(matches!(
        scheduler.create("fast"),
        Err(SchedulerCreateError::DuplicateName(_))
    ));
    assert!(matches!(
        scheduler.lookup("nobody"),
        Err(SchedulerLookupError::UnknownTask(_))
    ));
    assert!(matches!(
        scheduler.priority(fast),
        Err(SchedulerPriorityError::NotScheduled(_))
    ));
    assert!(matches!(
        scheduler.get_config_infos(),
        Err(SchedulerGetConfigInfosError::NotScheduled(_))
    ));
    scheduler
        .add_dependency(slow, called, 2, DependencyTypeT::TwoWayCall)
        .expect("known handles");
    let (infos, dependencies, configs, anomalies) =
        scheduler.compute_scheduling(1, 30).expect("a schedule");
    assert_eq!(anomalies, []);
    assert_eq!((infos.len(), dependencies.len()), (3, 1));
    assert_eq!(
        infos[2].preemption_priority, 1,
        "called runs in its caller's level"
    );
    assert_eq!(infos[0].dependencies, dependencies);
    assert_eq!(configs.len(), 2);
    assert_eq!(
        (configs[0].thread_priority, &configs[0].timer_periods[..]),
        (30, &[250_000][..])
    );
    assert_eq!(scheduler.priority(fast).expect("scheduled"), (30, 0, 0));
    assert_eq!(
        scheduler.entry_point_priority("slow").expect("scheduled"),
        (29, 0, 1)
    );
    assert_eq!(scheduler.last_scheduled_priority().expect("scheduled"), 1);
    let (priority, dispatching) = scheduler.dispatch_configuration(1).expect("a level");
    assert_eq!(
        (priority, dispatching),
        (29, DispatchingTypeT::StaticDispatching)
    );
    assert!(matches!(
        scheduler.dispatch_configuration(2),
        Err(SchedulerDispatchConfigurationError::UnknownPriorityLevel(_))
    ));
    assert_eq!(
        serving.service.priority("fast").map(|found| found.get()),
        Some(30)
    );
    what_others_read_is_the_same(&serving, fast);
}

/// What another process reads of the schedule is what this one has.
fn what_others_read_is_the_same(serving: &Serving, fast: i32) {
    let scheduler = &serving.scheduler;
    let asked = Schedule::ask(scheduler).expect("a schedule");
    let own = serving.service.schedule().expect("a schedule");
    assert_eq!(asked.levels(), own.levels());
    assert_eq!(asked.operations(), own.operations());
    let remote = RemoteScheduler(scheduler.clone());
    for source in [&serving.service as &dyn PrioritySource, &asked, &remote] {
        let urgency = source.urgency(fast).expect("scheduled");
        assert_eq!(urgency.priority.get(), 30, "{source:?}");
        assert_eq!(urgency.order, DispatchOrder::Arrival);
        assert_eq!(urgency.deadline, Duration::from_millis(25));
        assert_eq!(urgency.execution, Duration::from_millis(5));
        assert_eq!(source.urgency(77), Err(UrgencyError::UnknownRtInfo(77)));
    }
}

#[test]
fn a_priority_that_is_not_told_has_its_reason() {
    let serving = Serving::new(SchedulingConfig::default());
    let fast = serving.operation("fast", 10, 1);
    let remote = RemoteScheduler(serving.scheduler.clone());
    let error = serving.service.urgency(fast).unwrap_err();
    assert_eq!(reason(&error), "nothing is scheduled yet");
    let error = remote.urgency(fast).unwrap_err();
    assert_eq!(reason(&error), "RtecScheduler::NOT_SCHEDULED");
    drop(serving);
    let error = remote.urgency(fast).unwrap_err();
    assert!(reason(&error).contains("TRANSIENT"), "{error}");
}

fn reason(error: &UrgencyError) -> &str {
    match error {
        UrgencyError::NotTold { reason, .. } => reason,
        other => panic!("{other}"),
    }
}

/// An object that is no scheduling service.
struct Other;

impl PushSupplierServant for Other {
    fn disconnect_push_supplier(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

#[test]
fn a_service_whose_key_is_taken_leaves_nothing_and_can_be_served_later() {
    const KEY: &str = "ScheduleService";
    let orb = Orb::builder().build().expect("an ORB");
    let poa = orb.root_poa().expect("a root adapter");
    let other: PushSupplier = poa.activate(Other).expect("activated");
    let bound = orb.bind_object_key(KEY, other.as_object());
    bound.expect("the key is free");
    let refused = Scheduling::serve(&orb, SchedulingConfig::default()).map(drop);
    let is_taken = matches!(refused, Err(SchedulingError::Key(ObjectKeyError::Taken)));
    assert!(is_taken, "{refused:?}");
    assert!(orb.unbind_object_key(KEY), "it is the other's");
    Scheduling::serve(&orb, SchedulingConfig::default()).expect("its adapter is gone");
}

#[test]
fn too_few_priorities_are_an_exception_and_the_schedule_before_stays() {
    let serving = Serving::new(SchedulingConfig::default());
    let fast = serving.operation("fast", 10, 1);
    serving
        .scheduler
        .recompute_scheduling(5, 5)
        .expect("one level");
    serving.operation("slow", 20, 1);
    assert!(matches!(
        serving.scheduler.recompute_scheduling(5, 5),
        Err(SchedulerRecomputeSchedulingError::InsufficientThreadPriorityLevels(_))
    ));
    assert_eq!(serving.scheduler.priority(fast).expect("still").0, 5);
    // Where lower numbers are more urgent.
    let anomalies = serving.scheduler.recompute_scheduling(255, 0);
    assert_eq!(anomalies.expect("a schedule"), []);
    assert_eq!(serving.scheduler.priority(fast).expect("scheduled").0, 0);
}

#[test]
fn anomalies_are_told_in_words() {
    let serving = Serving::new(SchedulingConfig::default());
    let scheduler = &serving.scheduler;
    let first = serving.operation("first", 10, 8);
    let second = serving.operation("second", 0, 4);
    let told = |wanted: AnomalySeverity, words: &str| {
        let anomalies = scheduler.recompute_scheduling(1, 99).expect("an answer");
        let found = anomalies
            .iter()
            .any(|known| known.severity == wanted && known.description.contains(words));
        assert!(found, "{words}: {anomalies:?}");
    };
    told(AnomalySeverity::AnomalyError, "second never runs");
    // By a oneway, who depends on it is called.
    scheduler
        .add_dependency(second, first, 1, DependencyTypeT::OneWayCall)
        .expect("known handles");
    told(AnomalySeverity::AnomalyError, "120.0000 %");
    scheduler
        .add_dependency(first, second, 1, DependencyTypeT::OneWayCall)
        .expect("known handles");
    told(AnomalySeverity::AnomalyFatal, "cycle");
    scheduler
        .set_dependency_enable_state(
            first,
            second,
            1,
            DependencyTypeT::OneWayCall,
            DependencyEnabledTypeT::DependencyDisabled,
        )
        .expect("a known dependency");
    serving.set(second, 0, 1, CriticalityT::MediumCriticality);
    let anomalies = scheduler.recompute_scheduling(1, 99).expect("a schedule");
    assert!(
        anomalies
            .iter()
            .all(|known| known.severity != AnomalySeverity::AnomalyFatal),
        "{anomalies:?}"
    );
}

#[test]
fn dependencies_come_and_go_by_all_that_they_are() {
    let serving = Serving::new(SchedulingConfig::default());
    let scheduler = &serving.scheduler;
    let (a, b) = (serving.operation("a", 10, 1), serving.operation("b", 0, 1));
    let way = DependencyTypeT::TwoWayCall;
    scheduler.add_dependency(a, b, 3, way).expect("known");
    assert!(matches!(
        scheduler.remove_dependency(a, b, 2, way),
        Err(SchedulerRemoveDependencyError::UnknownTask(_))
    ));
    let mut known = scheduler.get_dependency_set().expect("an answer");
    known[0].enabled = DependencyEnabledTypeT::DependencyNonVolatile;
    scheduler
        .set_dependency_enable_state_seq(&known)
        .expect("known");
    assert_eq!(scheduler.get_dependency_set().expect("an answer"), known);
    scheduler.remove_dependency(a, b, 3, way).expect("known");
    assert_eq!(scheduler.get_dependency_set().expect("an answer"), []);
    let error = scheduler.add_dependency(a, b, 0, way).unwrap_err();
    assert!(
        matches!(&error, SchedulerAddDependencyError::System(exception)
            if exception.kind == ExceptionKind::BadParam),
        "{error:?}"
    );
    assert!(matches!(
        scheduler.add_dependency(a, 77, 1, way),
        Err(SchedulerAddDependencyError::UnknownTask(_))
    ));
}

#[test]
fn infos_are_set_all_or_none() {
    let serving = Serving::new(SchedulingConfig::default());
    let scheduler = &serving.scheduler;
    let (a, b) = (serving.operation("a", 10, 1), serving.operation("b", 20, 2));
    let mut infos = scheduler.get_rt_info_set().expect("an answer");
    infos[0].period = 777;
    infos[1].handle = 99;
    assert!(matches!(
        scheduler.set_seq(&infos),
        Err(SchedulerSetSeqError::UnknownTask(_))
    ));
    assert_eq!(
        scheduler.get(a).expect("known").period,
        100_000,
        "untouched"
    );
    infos[1].handle = b;
    infos[1].quantum = 5 * MS;
    scheduler.reset_seq(&infos).expect("known handles");
    assert_eq!(scheduler.get(a).expect("known").period, 777);
    assert_eq!(scheduler.get(b).expect("known").quantum, 5 * MS);
    scheduler.replace_seq(&infos[..1]).expect("a known handle");
    assert_eq!(scheduler.get(b).expect("known").period, 0, "as it was made");
    infos[0].period = -1;
    let error = scheduler.set_seq(&infos).unwrap_err();
    assert!(
        matches!(&error, SchedulerSetSeqError::System(exception)
            if exception.kind == ExceptionKind::BadParam),
        "{error:?}"
    );
}

#[test]
fn what_is_disabled_is_not_scheduled() {
    let serving = Serving::new(SchedulingConfig::default());
    let scheduler = &serving.scheduler;
    let (a, b) = (serving.operation("a", 10, 1), serving.operation("b", 20, 2));
    let pair = |handle, enabled| RtInfoEnableStatePair { handle, enabled };
    let pairs = [
        pair(a, RtInfoEnabledTypeT::RtInfoDisabled),
        pair(99, RtInfoEnabledTypeT::RtInfoEnabled),
    ];
    assert!(matches!(
        scheduler.set_rt_info_enable_state_seq(&pairs),
        Err(SchedulerSetRtInfoEnableStateSeqError::UnknownTask(_))
    ));
    scheduler.recompute_scheduling(1, 9).expect("a schedule");
    assert_eq!(scheduler.priority(a).expect("scheduled").0, 9);
    scheduler
        .set_rt_info_enable_state(a, RtInfoEnabledTypeT::RtInfoDisabled)
        .expect("known");
    scheduler.recompute_scheduling(1, 9).expect("a schedule");
    assert!(matches!(
        scheduler.priority(a),
        Err(SchedulerPriorityError::NotScheduled(_))
    ));
    assert_eq!(scheduler.priority(b).expect("scheduled").0, 9);
    let asked = Schedule::ask(scheduler).expect("a schedule");
    assert_eq!(asked.operations().len(), 1);
}

#[test]
fn strategies_differ_in_what_goes_first() {
    for (strategy, first) in [
        (Strategy::RateMonotonic, "fast"),
        (Strategy::DeadlineMonotonic, "urgent"),
        (Strategy::MaximumUrgencyFirst, "critical"),
    ] {
        let serving = Serving::new(SchedulingConfig {
            strategy: Some(strategy),
            ..SchedulingConfig::default()
        });
        serving.operation("fast", 20, 1);
        let urgent = serving.operation("urgent", 50, 1);
        let critical = serving.operation("critical", 100, 1);
        serving.set(critical, 100, 1, CriticalityT::VeryHighCriticality);
        let mut info = serving.scheduler.get(urgent).expect("known");
        info.quantum = 10 * MS;
        serving.scheduler.set_seq(&[info]).expect("known");
        let anomalies = serving.scheduler.recompute_scheduling(1, 99);
        assert_eq!(anomalies.expect("a schedule"), [], "{strategy}");
        let place = serving
            .scheduler
            .entry_point_priority(first)
            .expect("scheduled");
        assert_eq!((place.0, place.2), (99, 0), "{strategy}: {first}");
    }
}

#[test]
fn the_table_has_bounds() {
    let serving = Serving::new(SchedulingConfig {
        infos_max: 2,
        dependencies_max: 1,
        ..SchedulingConfig::default()
    });
    let (a, b) = (serving.operation("a", 10, 1), serving.operation("b", 0, 1));
    let full = |kind: ExceptionKind| kind == ExceptionKind::NoResources;
    let error = serving.scheduler.create("c").unwrap_err();
    assert!(
        matches!(&error, SchedulerCreateError::System(exception) if full(exception.kind)),
        "{error:?}"
    );
    let add = || {
        serving
            .scheduler
            .add_dependency(a, b, 1, DependencyTypeT::TwoWayCall)
    };
    add().expect("room for one");
    let error = add().unwrap_err();
    assert!(
        matches!(&error, SchedulerAddDependencyError::System(exception) if full(exception.kind)),
        "{error:?}"
    );
    let long = "x".repeat(10_000);
    assert!(serving.scheduler.create(&long).is_err());
    let orb = Orb::builder().build().expect("an ORB");
    let wrong = SchedulingConfig {
        infos_max: 0,
        ..SchedulingConfig::default()
    };
    let said = Scheduling::serve(&orb, wrong).unwrap_err().to_string();
    assert!(said.contains("infos_max"), "{said}");
}

#[test]
fn a_query_of_several_calls_ends_within_one_timeout() {
    let slow = FakeServer::new(|_, mut peer| {
        while let Some(id) = peer.request() {
            std::thread::sleep(TIMEOUT * 3 / 4);
            // Three numbers, or an empty sequence.
            peer.send(&reply(id, 0, |body| {
                body.ulong(0).ulong(0).ulong(0);
            }));
        }
    });
    let builder = Orb::builder().round_trip_timeout(Some(TIMEOUT));
    let orb = builder.build().expect("an ORB");
    let object = orb.string_to_object(&slow.reference()).expect("legal");
    let scheduler = Scheduler::unchecked_narrow(object);
    let late = Schedule::ask(&scheduler).expect_err("its second call is late");
    assert_eq!(late.kind, ExceptionKind::Timeout, "{late}");
    let late = RemoteScheduler(scheduler).urgency(1);
    let late = late.expect_err("its second call is late").to_string();
    assert!(late.contains("TIMEOUT"), "{late}");
}

/// Two replies of a slow server take longer.
const TIMEOUT: Duration = Duration::from_millis(200);
