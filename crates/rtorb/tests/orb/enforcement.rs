//! Calls beyond their annotated times, by each policy: what happens to them, to their threads and to other threads, and what is counted.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rtorb::exception::local;
use rtorb::rt::{Policy, PriorityModel, ThreadpoolLane};
use rtorb::thread::{SchedPolicy, ThreadConfig};
use rtorb::timing::TimingSide::Server;
use rtorb::timing::{EarlyCalls, ExecutionClock, OperationCounts, Overrun, PeriodScope};
use rtorb::{
    CompletionStatus, CurrentCall, DispatchStrategy, Limits, Orb, OrbBuilder, PoaError,
    PoaPolicies, SystemException, with_deadline,
};
use rtorb_os::clock::{monotonic_ns, thread_cpu_ns};
use rtorb_os::sched::{apply_affinity, current_affinity, current_policy};
use rtorb_tests::clockwork::{Works, counted, execute};
use rtorb_tests::relay::{Served, has_priorities, priority};
use rtorb_tests::running::until;
use rtorb_tests::stubs::timing::{Clockwork, ClockworkServant};

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(20);

/// The worst case of `execute`.
const WORST: Duration = Duration::from_millis(60);

/// The native priority of the threads that serve.
const SERVING: u8 = 20;

fn fifo(priority: u8, cpu: usize) -> ThreadConfig {
    ThreadConfig {
        policy: Some(SchedPolicy::Fifo(priority)),
        affinity: vec![cpu],
        ..ThreadConfig::default()
    }
}

fn client(served: &Served, works: Works) -> (Orb, Clockwork) {
    let object: Clockwork = served.root.activate(works).expect("there is room");
    client_of(&object)
}

fn client_of(object: &Clockwork) -> (Orb, Clockwork) {
    let orb = Orb::builder().build().expect("an ORB");
    let object = orb.string_to_object(&object.as_object().to_string());
    (
        orb,
        Clockwork::unchecked_narrow(object.expect("a reference")),
    )
}

/// Works until the servant is asked to stop, and returns what it is asked with.
fn until_stopped() -> Result<(), SystemException> {
    let call = CurrentCall::get().expect("a servant executes");
    let end_ns = monotonic_ns() + LONG.as_nanos() as u64;
    while monotonic_ns() < end_ns {
        call.check()?;
    }
    Ok(())
}

/// What a server has counted of three calls, the second of which it asks to stop.
fn stopped_once(builder: OrbBuilder, name: &str) -> OperationCounts {
    let served = Served::by(builder.overrun(Overrun::Stop));
    let (_orb, object) = client(
        &served,
        Works::executing(|us| if us == 0 { Ok(()) } else { until_stopped() }),
    );
    object.execute(0).expect("it is short");
    let stopped = object.execute(1).expect_err("it is asked to stop");
    let expected = local::STOPPED_BY_BUDGET.with_completion(CompletionStatus::Maybe);
    assert_eq!(stopped, expected, "{name}");
    object.execute(0).expect("it is short, too");
    counted(&served.orb, ("execute", Server), 3)
}

#[test]
fn a_servant_beyond_its_worst_case_is_asked_to_stop_and_counted() {
    for (name, dispatch) in DispatchStrategy::ALL {
        for clock in [ExecutionClock::Cpu, ExecutionClock::Elapsed] {
            // On a busy host, more time may elapse in a short call, too.
            let counts = until(&format!("{name}, {clock:?}: one call is stopped"), || {
                let builder = Orb::builder().dispatch(dispatch).execution_clock(clock);
                let counts = stopped_once(builder, name);
                ((counts.stops, counts.overruns) == (1, 1)).then_some(counts)
            });
            assert_eq!((counts.demotions, counts.refusals), (0, 0), "{name}");
            assert!(counts.worst_execution >= Some(WORST), "{counts:?}");
        }
    }
}

#[test]
fn a_servant_that_waits_or_panics_or_is_only_counted_is_not_stopped() {
    let served = Served::by(Orb::builder().overrun(Overrun::Stop));
    let works = Works::executing(|us| match us {
        // Without a message, which takes time.
        0 => std::panic::resume_unwind(Box::new(())),
        _ => {
            // It waits for longer than its worst case, and executes for less.
            thread::sleep(3 * WORST);
            execute(WORST / 30);
            CurrentCall::get().expect("a servant executes").check()
        }
    });
    let (_orb, object) = client(&served, works);
    object.execute(1).expect("waiting is no execution");
    object.execute(0).expect_err("it panics");
    object.execute(1).expect("the panic has ended the budget");
    let counts = counted(&served.orb, ("execute", Server), 3);
    assert_eq!((counts.stops, counts.overruns), (0, 0), "{counts:?}");

    let counting = PoaPolicies::default().with_overrun(Overrun::Count);
    let adapter = served.root.create_poa("Counting", counting);
    let object = adapter.expect("a name").activate(Works::executing(|us| {
        execute(Duration::from_micros(us.into()));
        CurrentCall::get().expect("a servant executes").check()
    }));
    let (_orb, object) = client_of(&object.expect("there is room"));
    let us = 2 * WORST.as_micros() as u32;
    object.execute(us).expect("its adapter only counts");
    let counts = counted(&served.orb, ("execute", Server), 4);
    assert_eq!((counts.stops, counts.overruns), (0, 1), "{counts:?}");
}

#[test]
fn a_call_within_another_is_part_of_its_budget() {
    let served = Served::collocated(Orb::builder().overrun(Overrun::Stop));
    let inner: Clockwork = served
        .root
        .activate(Works::executing(|_| until_stopped()))
        .expect("there is room");
    let outer: Clockwork = served
        .root
        .activate(Works::executing(move |us| inner.execute(us)))
        .expect("there is room");
    let stopped = outer.execute(1).expect_err("the outer one is too long");
    assert_eq!(stopped.minor, local::STOPPED_BY_BUDGET.minor);
    let counts = counted(&served.orb, ("execute", Server), 2);
    assert_eq!(counts.stops, 1, "{counts:?}");
}

/// A servant that executes until a thread of a lower priority on the same CPU has run, and notes the policies of its thread.
struct Starving {
    cpu: usize,
    /// The policy of the serving thread at the end of each call.
    policies: Arc<Mutex<Vec<SchedPolicy>>>,
}

impl Starving {
    fn new(cpu: usize) -> Self {
        Self {
            cpu,
            policies: Arc::default(),
        }
    }

    fn works(&self) -> Works {
        let (cpu, policies) = (self.cpu, Arc::clone(&self.policies));
        Works::executing(move |us| {
            if us > 0 {
                starve(cpu);
            }
            policies.lock().expect("no panic").push(current_policy());
            Ok(())
        })
    }

    fn seen(&self) -> Vec<SchedPolicy> {
        core::mem::take(&mut *self.policies.lock().expect("no panic"))
    }
}

/// Executes until a less urgent thread has run on this CPU.
fn starve(cpu: usize) {
    let has_run = AtomicBool::new(false);
    let (now_ns, cpu_began_ns) = (monotonic_ns(), thread_cpu_ns());
    thread::scope(|scope| {
        scope.spawn(|| {
            fifo(SERVING / 2, cpu).apply_here().expect("it is allowed");
            has_run.store(true, Ordering::Release);
        });
        while !has_run.load(Ordering::Acquire) {
            assert!(monotonic_ns() - now_ns < LONG.as_nanos() as u64, "it runs");
        }
    });
    let executed_ns = thread_cpu_ns() - cpu_began_ns;
    assert!(
        executed_ns >= WORST.as_nanos() as u64 * 9 / 10,
        "{executed_ns}"
    );
}

#[test]
fn a_demoted_servant_lets_less_urgent_threads_run_and_its_thread_gets_its_priority_back() {
    if !has_priorities() {
        return;
    }
    let cpu = *current_affinity().first().expect("one at least");
    for (name, dispatch) in DispatchStrategy::ALL {
        let lane = ThreadpoolLane {
            lane_priority: priority(SERVING.into()),
            ..ThreadpoolLane::default()
        };
        let builder = Orb::builder().dispatch(dispatch).lanes([lane]);
        let builder = builder.server_threads(fifo(SERVING, cpu));
        let served = Served::by(builder.overrun(Overrun::Demote(1)));
        let starving = Starving::new(cpu);
        let (_orb, object) = client(&served, pinned(&starving));
        for us in [0, 1, 0] {
            object.execute(us).expect("it is served");
        }
        let own = SchedPolicy::Fifo(SERVING);
        assert_eq!(starving.seen(), [own, SchedPolicy::Fifo(1), own], "{name}");
        let counts = counted(&served.orb, ("execute", Server), 3);
        assert_eq!((counts.demotions, counts.overruns), (1, 1), "{name}");
        assert_eq!(counts.stops, 0, "{name}");
    }
}

/// The servant, on its CPU: the threads of lanes are not bound to one.
fn pinned(starving: &Starving) -> Works {
    let (cpu, works) = (starving.cpu, starving.works());
    Works::executing(move |us| {
        apply_affinity(&[cpu]).expect("it is allowed");
        works.execute(us)
    })
}

#[test]
fn a_thread_that_took_the_priority_of_the_call_gets_it_back_after_a_demotion() {
    if !has_priorities() {
        return;
    }
    let cpu = *current_affinity().first().expect("one at least");
    for dispatch in [
        DispatchStrategy::ThreadPerConnection,
        DispatchStrategy::WorkerPool,
    ] {
        let served = Served::by(
            Orb::builder()
                .dispatch(dispatch)
                .overrun(Overrun::Demote(0)),
        );
        let declared = Policy::PriorityModel {
            model: PriorityModel::ServerDeclared,
            server_priority: priority(SERVING.into()),
        };
        let adapter = served.adapter("Declared", &[declared]);
        let starving = Starving::new(cpu);
        let object = adapter
            .expect("they go together")
            .activate(pinned(&starving));
        let (_orb, object) = client_of(&object.expect("there is room"));
        for us in [1, 0, 1] {
            object.execute(us).expect("it is served");
        }
        let low = SchedPolicy::Other;
        assert_eq!(starving.seen(), [low, SchedPolicy::Fifo(SERVING), low]);
    }
}

#[test]
fn a_demoted_servant_does_not_get_a_higher_priority_by_its_own_calls() {
    if !has_priorities() {
        return;
    }
    let cpu = *current_affinity().first().expect("one at least");
    let served = Served::collocated(Orb::builder().overrun(Overrun::Demote(2)));
    let declared = |native: i16| {
        let policy = Policy::PriorityModel {
            model: PriorityModel::ServerDeclared,
            server_priority: priority(native),
        };
        let adapter = served.adapter(&format!("Declared{native}"), &[policy]);
        adapter.expect("they go together")
    };
    let (inner, outer) = (Starving::new(cpu), Starving::new(cpu));
    let urgent: Clockwork = declared(40).activate(inner.works()).expect("room");
    let (works, current) = (outer.works(), served.orb.rt_current());
    let works = Works::executing(move |us| {
        works.execute(us)?;
        urgent.execute(0)?;
        current.set_the_priority(priority(50))?;
        works.execute(0)
    });
    let object: Clockwork = declared(SERVING.into()).activate(works).expect("room");
    let calling = thread::spawn(move || {
        fifo(SERVING / 2 + 1, cpu).apply_here().expect("allowed");
        object.execute(1).expect("it is served");
        let after_demotion = current_policy();
        object.execute(0).expect("it is served");
        (after_demotion, current_policy())
    });
    let own = SchedPolicy::Fifo(SERVING / 2 + 1);
    assert_eq!(calling.join().ok(), Some((own, own)));
    let (demoted, urgent) = (SchedPolicy::Fifo(2), SchedPolicy::Fifo(50));
    let serving = SchedPolicy::Fifo(SERVING);
    assert_eq!(outer.seen(), [demoted, demoted, serving, urgent]);
    assert_eq!(inner.seen(), [demoted, SchedPolicy::Fifo(40)]);
}

/// Two servants on the calling thread, where overruns are demoted to 2: `outer` at [`SERVING`] executes `works`, and calls one at 1.
fn demoted_around_a_low_call(
    cpu: usize,
    works: impl Fn(&dyn Fn(u32), &Starving) + Send + Sync + 'static,
) -> (Vec<SchedPolicy>, SchedPolicy, OperationCounts) {
    let served = Served::collocated(Orb::builder().overrun(Overrun::Demote(2)));
    let declared = |native: i16| {
        let policy = Policy::PriorityModel {
            model: PriorityModel::ServerDeclared,
            server_priority: priority(native),
        };
        let adapter = served.adapter(&format!("Declared{native}"), &[policy]);
        adapter.expect("they go together")
    };
    let inner = Works::executing(|us| {
        execute(WORST * us);
        assert_eq!(current_policy(), SchedPolicy::Fifo(1));
        Ok(())
    });
    let low: Clockwork = declared(1).activate(inner).expect("room");
    let outer = Arc::new(Starving::new(cpu));
    let of_servant = Arc::clone(&outer);
    let call_low = move |times| low.execute(times).expect("it is served");
    let works = Works::executing(move |_| {
        works(&call_low, &of_servant);
        Ok(())
    });
    let object: Clockwork = declared(SERVING.into()).activate(works).expect("room");
    let calling = thread::spawn(move || {
        fifo(SERVING / 2 + 1, cpu).apply_here().expect("allowed");
        object.execute(1).expect("it is served");
        current_policy()
    });
    let after = calling.join().expect("no panic");
    (
        outer.seen(),
        after,
        counted(&served.orb, ("execute", Server), 2),
    )
}

#[test]
fn a_servant_whose_overrun_is_found_in_a_call_of_low_priority_is_demoted_when_that_call_returns() {
    if !has_priorities() {
        return;
    }
    let cpu = *current_affinity().first().expect("one at least");
    let (seen, after, counts) = demoted_around_a_low_call(cpu, |call_low, outer| {
        call_low(3);
        outer.works().execute(0).expect("it is noted");
    });
    assert_eq!(seen, [SchedPolicy::Fifo(2)]);
    assert_eq!(after, SchedPolicy::Fifo(SERVING / 2 + 1));
    assert_eq!(counts.demotions, 1, "{counts:?}");
}

#[test]
fn a_demoted_servant_has_the_priority_of_its_demotion_again_after_a_call_of_a_lower_one() {
    if !has_priorities() {
        return;
    }
    let cpu = *current_affinity().first().expect("one at least");
    let (seen, after, counts) = demoted_around_a_low_call(cpu, |call_low, outer| {
        outer.works().execute(1).expect("it is demoted");
        call_low(0);
        outer.works().execute(0).expect("it is noted");
    });
    assert_eq!(seen, [SchedPolicy::Fifo(2); 2]);
    assert_eq!(after, SchedPolicy::Fifo(SERVING / 2 + 1));
    assert_eq!(counts.demotions, 1, "{counts:?}");
}

#[test]
fn a_demoted_thread_that_takes_the_priority_of_its_own_call_returns_to_the_one_before_the_demotion()
{
    if !has_priorities() {
        return;
    }
    let cpu = *current_affinity().first().expect("one at least");
    let builder = Orb::builder().server_threads(fifo(SERVING, cpu));
    let served = Served::collocated(builder.overrun(Overrun::Demote(2)));
    let declared = Policy::PriorityModel {
        model: PriorityModel::ServerDeclared,
        server_priority: priority(40),
    };
    let adapter = served.adapter("Declared", &[declared]);
    let (inner, outer) = (Starving::new(cpu), Starving::new(cpu));
    let urgent: Clockwork = (adapter.expect("they go together"))
        .activate(inner.works())
        .expect("room");
    let works = outer.works();
    let works = Works::executing(move |us| {
        works.execute(us)?;
        urgent.execute(0)
    });
    let (_orb, object) = client(&served, works);
    for us in [1, 0] {
        object.execute(us).expect("it is served");
    }
    let (demoted, own) = (SchedPolicy::Fifo(2), SchedPolicy::Fifo(SERVING));
    assert_eq!(outer.seen(), [demoted, own]);
    assert_eq!(inner.seen(), [demoted, SchedPolicy::Fifo(40)]);
}

#[test]
fn the_callers_own_thread_is_demoted_and_gets_its_priority_back() {
    if !has_priorities() {
        return;
    }
    let cpu = *current_affinity().first().expect("one at least");
    let served = Served::collocated(Orb::builder().overrun(Overrun::Demote(3)));
    let starving = Starving::new(cpu);
    let object: Clockwork = served
        .root
        .activate(starving.works())
        .expect("there is room");
    let calling = thread::spawn(move || {
        fifo(SERVING, cpu).apply_here().expect("it is allowed");
        object.execute(1).expect("it is served");
        current_policy()
    });
    assert_eq!(calling.join().ok(), Some(SchedPolicy::Fifo(SERVING)));
    assert_eq!(starving.seen(), [SchedPolicy::Fifo(3)]);
}

#[test]
fn a_thread_at_the_stated_priority_or_below_is_not_changed() {
    let served = Served::by(Orb::builder().overrun(Overrun::Demote(10)));
    let works = Works::executing(|us| {
        execute(Duration::from_micros(us.into()));
        assert_eq!(current_policy(), SchedPolicy::Other);
        Ok(())
    });
    let (_orb, object) = client(&served, works);
    let us = 2 * WORST.as_micros() as u32;
    object.execute(us).expect("it is served");
    let counts = counted(&served.orb, ("execute", Server), 1);
    assert_eq!((counts.demotions, counts.overruns), (0, 1), "{counts:?}");
}

/// What `orb` has counted of `again`, once it has refused so many calls: a server counts behind its reply.
fn counted_refusals(orb: &Orb, refusals: u64) -> OperationCounts {
    let is_again = |counts: &OperationCounts| {
        counts.side == Server && counts.operation.name() == "Timing::Clockwork::again"
    };
    let counts = until(&format!("{refusals} refusals"), || {
        let counts = orb.timing().into_iter().find(is_again)?;
        (counts.refusals >= refusals).then_some(counts)
    });
    assert_eq!(counts.refusals, refusals);
    counts
}

#[test]
fn early_calls_are_refused_for_each_servant_and_are_no_calls() {
    for (name, dispatch) in DispatchStrategy::ALL {
        let builder = Orb::builder().dispatch(dispatch);
        let served = Served::by(builder.early_calls(EarlyCalls::Refuse));
        let (_orb, one) = client(&served, Works::default());
        let (_orb, another) = client(&served, Works::default());
        one.again().expect("it is the first");
        for _ in 0..3 {
            let refused = one.again().expect_err("the period is 100 s");
            assert_eq!(refused, local::CALLED_TOO_SOON, "{name}");
        }
        another.again().expect("it is the first of its own");
        let _ = counted(&served.orb, ("again", Server), 2);
        one.plain().expect("it has no period");
        let counts = counted_refusals(&served.orb, 3);
        assert_eq!((counts.calls, counts.early_arrivals), (2, 3), "{name}");
        assert_eq!(counts.delays, 0, "{name}");
    }
}

#[test]
fn a_client_that_calls_too_often_takes_no_call_from_others_where_periods_are_of_connections() {
    for (name, dispatch) in DispatchStrategy::ALL {
        let builder = Orb::builder().dispatch(dispatch);
        let builder = builder.period_scope(PeriodScope::Connection);
        let served = Served::by(builder.early_calls(EarlyCalls::Refuse));
        let object: Clockwork = served.root.activate(Works::default()).expect("room");
        let clients = [client_of(&object), client_of(&object)];
        for (_orb, object) in &clients {
            object.again().expect("it is the first of this client");
            let refused = object.again().expect_err("the period is 100 s");
            assert_eq!(refused, local::CALLED_TOO_SOON, "{name}");
        }
        let _ = counted(&served.orb, ("again", Server), 2);
        let counts = counted_refusals(&served.orb, 2);
        assert_eq!((counts.calls, counts.early_arrivals), (2, 2), "{name}");
    }
}

#[test]
fn an_adapter_chooses_whose_calls_its_periods_separate_within_the_bound_of_a_connection() {
    let limits = Limits::with(|limits| limits.client_periods_max = 1);
    let served = Served::by(
        Orb::builder()
            .limits(limits)
            .early_calls(EarlyCalls::Refuse),
    );
    let policies = PoaPolicies::default().with_period_scope(PeriodScope::Connection);
    let adapter = served
        .root
        .create_poa("Connections", policies)
        .expect("a name");
    let activated = [Works::default(), Works::default()].map(|works| adapter.activate(works));
    let [one, another] = activated.map(|object| object.expect("room"));
    let (orb, one) = client_of(&one);
    one.again().expect("it is the first");
    let another = orb.string_to_object(&another.as_object().to_string());
    let another = Clockwork::unchecked_narrow(another.expect("a reference"));
    let refused = another
        .again()
        .expect_err("the connection tracks one period");
    assert_eq!(refused, local::TOO_MANY_PERIODS);
    let (_orb, other_client) = client_of(&another);
    other_client
        .again()
        .expect("its connection tracks another one");
    let _ = counted(&served.orb, ("again", Server), 2);
    let counts = counted_refusals(&served.orb, 1);
    assert_eq!((counts.calls, counts.early_arrivals), (2, 0));
}

#[test]
fn early_calls_are_delayed_up_to_a_bound_where_a_thread_serves_one_client() {
    let delay = EarlyCalls::Delay(Duration::from_millis(1));
    let served = Served::by(Orb::builder().early_calls(delay));
    let (_orb, object) = client(&served, Works::default());
    object.again().expect("it is the first");
    let refused = object.again().expect_err("the period is 100 s");
    assert_eq!(refused, local::CALLED_TOO_SOON);
    let counts = counted_refusals(&served.orb, 1);
    assert_eq!((counts.calls, counts.early_arrivals), (1, 1));
}

#[test]
fn a_call_whose_deadline_is_before_its_time_is_refused_at_once_and_counted_as_expired() {
    let delay = EarlyCalls::Delay(Duration::from_secs(200));
    let served = Served::by(Orb::builder().early_calls(delay));
    let (_orb, object) = client(&served, Works::default());
    object.again().expect("it is the first");
    let refused = with_deadline(LONG, || object.again()).expect_err("the period is 100 s");
    assert_eq!(refused, local::EXPIRED);
    assert_eq!(served.orb.requests_expired(), 1);
    let counts = counted_refusals(&served.orb, 1);
    assert_eq!((counts.calls, counts.delays), (1, 0));
}

fn refused_activation(builder: OrbBuilder, policies: PoaPolicies) -> SystemException {
    let orb = builder.build().expect("an ORB");
    let root = orb.root_poa().expect("a port");
    let adapter = root.create_poa("Adapter", policies).expect("a name");
    let activated = adapter.activate::<Clockwork, _>(Works::default());
    match activated {
        Err(PoaError::System(refused)) => refused,
        other => panic!("a system exception, not {:?}", other.err()),
    }
}

#[test]
fn a_server_whose_threads_may_not_wait_refuses_to_delay_calls() {
    let delay = PoaPolicies::default().with_early_calls(EarlyCalls::Delay(LONG));
    for (name, dispatch) in DispatchStrategy::ALL {
        if dispatch != DispatchStrategy::ThreadPerConnection {
            let refused = refused_activation(Orb::builder().dispatch(dispatch), delay.clone());
            assert_eq!(refused, local::NO_THREAD_TO_WAIT, "{name}");
        }
    }
}

#[test]
fn a_host_that_refuses_the_enforcing_thread_refuses_the_activation() {
    let impossible = ThreadConfig {
        affinity: vec![1000],
        ..ThreadConfig::default()
    };
    for overrun in [Overrun::Stop, Overrun::Demote(0)] {
        let builder = Orb::builder().enforcing_thread(impossible.clone());
        let policies = PoaPolicies::default().with_overrun(overrun);
        let refused = refused_activation(builder, policies);
        assert_eq!(refused.minor, local::PRIORITY_REFUSED.minor, "{refused}");
    }
    // Without a budget there is no such thread.
    let orb = Orb::builder().enforcing_thread(impossible).build();
    let orb = orb.expect("an ORB");
    let root = orb.root_poa().expect("a port");
    let _: Clockwork = root.activate(Works::default()).expect("it is only counted");
}
