//! Tasks that await calls, and servants whose calls are tasks.

use rtorb::rt::{Policy, Priority, PriorityModel};
use rtorb::thread::ThreadConfig;
use rtorb::{
    ConnectionStrategy, Deferring, DispatchStrategy, ExceptionKind, Executor as _, Limits, Orb,
    PoaPolicies, SystemException, TaskServant, WaitStrategy,
};
use rtorb_tests::crane::{
    AmiMachineHandler, Machine, MachineAsyncServant, Overload, Winch, WinchAsyncServant,
    WinchLiftError,
};
use rtorb_tests::ours::Ours;
use rtorb_tests::raw::{Connection, Request};
use rtorb_tests::running::until;
use rtorb_tokio::{TaskExecutor, TaskLane, TaskLanes, read_replies};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::{Notify, Semaphore};
use tokio::time::timeout;

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(30);

/// Calls of which one at least comes in time on a busy host.
const TRIES: usize = 100;

/// A servant that waits for permits.
struct Hoist {
    permits: Semaphore,
    waiting: AtomicUsize,
    dropped: Arc<AtomicUsize>,
    nudged: AtomicI32,
}

/// Counts the calls that end without a permit.
struct Waiting(Arc<AtomicUsize>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Hoist {
    fn with_permits(permits: usize) -> Arc<Self> {
        Arc::new(Self {
            permits: Semaphore::new(permits),
            waiting: AtomicUsize::new(0),
            dropped: Arc::default(),
            nudged: AtomicI32::new(0),
        })
    }
}

impl MachineAsyncServant for Hoist {
    async fn hours(&self) -> Result<i32, SystemException> {
        let waiting = Waiting(Arc::clone(&self.dropped));
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let permit = self.permits.acquire().await.expect("it is open");
        permit.forget();
        core::mem::forget(waiting);
        Ok(41)
    }

    async fn start_(&self) -> Result<(), SystemException> {
        panic!("a task that panics has dropped its responder");
    }
}

impl WinchAsyncServant for Hoist {
    /// Answers with the name of its thread.
    async fn lift(&self, kilograms: i32, who: String) -> Result<(i32, String), WinchLiftError> {
        if kilograms > 1000 {
            return Err(Overload { limit: 1000 }.into());
        }
        tokio::task::yield_now().await;
        let thread = thread::current();
        let name = thread.name().unwrap_or_default();
        Ok((kilograms, format!("{who}: {name}")))
    }

    fn nudge(&self, turns: i32) -> Result<(), SystemException> {
        self.nudged.fetch_add(turns, Ordering::SeqCst);
        Ok(())
    }

    async fn speed(&self) -> Result<f64, SystemException> {
        Ok(f64::from(self.nudged.load(Ordering::SeqCst)))
    }

    async fn set_speed(&self, value: f64) -> Result<(), SystemException> {
        assert_eq!(value, 2.5);
        Ok(())
    }
}

fn runtime() -> Runtime {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.expect("the host has descriptors")
}

fn client() -> Orb {
    client_with(WaitStrategy::LeaderFollowers)
}

fn client_with(wait: WaitStrategy) -> Orb {
    let shared = ConnectionStrategy::Multiplexed { wait };
    Orb::builder().connection(shared).build().expect("an ORB")
}

/// The hoist as an object of this server, and a reference to it of that client.
fn winch(ours: &Ours, client: &Orb, hoist: &Arc<Hoist>, executor: TaskExecutor) -> Winch {
    let servant = TaskServant::new(Arc::clone(hoist), executor);
    let winch: Winch = ours.poa.activate(Deferring(servant)).expect("room");
    let reference = client.string_to_reference(&winch.to_string());
    reference.expect("it is there")
}

#[test]
fn a_hundred_tasks_await_calls_of_a_servant_of_tasks() {
    for (name, dispatch) in DispatchStrategy::ALL {
        let ours = Ours::serve_as(Orb::builder().dispatch(dispatch));
        let (client, hoist) = (client(), Hoist::with_permits(0));
        runtime().block_on(async {
            tokio::spawn(read_replies(&client).expect("leaders read"));
            let winch = winch(&ours, &client, &hoist, Handle::current().into());
            let calls: Vec<_> = (0..100)
                .map(|_| tokio::spawn(winch.start().hours()))
                .collect();
            timeout(LONG, async {
                while hoist.waiting.load(Ordering::SeqCst) < 100 {
                    tokio::task::yield_now().await;
                }
            })
            .await
            .expect("all calls are in progress at once");
            hoist.permits.add_permits(100);
            for call in calls {
                let hours = timeout(LONG, call).await.expect("it has a permit");
                assert_eq!(hours.expect("no panic"), Ok(41), "{name}");
            }
        });
    }
}

/// Passes on what it is told.
struct Hours(UnboundedSender<Result<i32, SystemException>>);

impl AmiMachineHandler for Hours {
    fn get_hours(&self, ami_return_val: i32) {
        self.0.send(Ok(ami_return_val)).expect("the test listens");
    }

    fn get_hours_excep(&self, excep_holder: SystemException) {
        self.0.send(Err(excep_holder)).expect("the test listens");
    }

    fn start_(&self) {
        panic!("nobody calls it");
    }

    fn start__excep(&self, _: SystemException) {
        panic!("nobody calls it");
    }
}

#[test]
fn the_task_that_reads_tells_handlers_whoever_reads_from_the_connections() {
    for wait in [
        WaitStrategy::LeaderFollowers,
        WaitStrategy::Reactor,
        WaitStrategy::ConnectionThread,
    ] {
        let (ours, client, hoist) = (Ours::serve(), client_with(wait), Hoist::with_permits(3));
        runtime().block_on(async {
            tokio::spawn(read_replies(&client).expect("threads share connections"));
            let machine: Machine = winch(&ours, &client, &hoist, Handle::current().into()).into();
            let (sender, mut told) = unbounded_channel();
            let handler = Arc::new(Hours(sender));
            for _ in 0..3 {
                machine.sendc_get_hours(&handler).expect("it is sent");
                let hours = timeout(LONG, told.recv()).await;
                assert_eq!(hours.expect("it is told"), Some(Ok(41)), "{wait:?}");
            }
        });
    }
}

#[test]
fn a_servant_of_tasks_has_every_kind_of_operation() {
    let (ours, client, hoist) = (Ours::serve(), client(), Hoist::with_permits(0));
    let tasks = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build();
    let tasks = tasks.expect("the host has descriptors");
    let winch = winch(&ours, &client, &hoist, tasks.handle().clone().into());
    let (kilograms, who) = winch.lift(90, "Ada").expect("it is light");
    assert_eq!((kilograms, who.starts_with("Ada: ")), (90, true), "{who}");
    let overload = WinchLiftError::from(Overload { limit: 1000 });
    assert_eq!(winch.lift(1001, "Ada"), Err(overload));
    assert_eq!(winch.set_speed(2.5), Ok(()));
    winch.nudge(3).expect("it is sent");
    until("the oneway has come", || {
        (winch.speed() == Ok(3.0)).then_some(())
    });
    let panicked = winch.start_().expect_err("it panics");
    assert_eq!(panicked.kind, ExceptionKind::NoResponse);
    drop(tasks);
    let ended = winch.speed().expect_err("the runtime has ended");
    assert_eq!(ended.kind, ExceptionKind::NoResponse);
}

#[test]
fn a_call_that_is_given_up_ends_its_task_where_it_waits() {
    let (ours, client, hoist) = (Ours::serve(), client(), Hoist::with_permits(0));
    runtime().block_on(async {
        tokio::spawn(read_replies(&client).expect("leaders read"));
        let winch = winch(&ours, &client, &hoist, Handle::current().into());
        let waiting = || hoist.waiting.load(Ordering::SeqCst);
        let all_ended = async || {
            let all = async {
                while hoist.dropped.load(Ordering::SeqCst) < waiting() {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            };
            timeout(LONG, all).await.expect("its server is told");
        };
        // On a busy host, the time may pass before the servant is called.
        for _ in 0..TRIES {
            let call = winch.start().hours();
            let late = timeout(Duration::from_millis(100), call).await;
            assert!(late.is_err(), "nobody gives a permit");
            if waiting() > 0 {
                break;
            }
        }
        let given_up = waiting();
        assert_ne!(given_up, 0, "the servant is called");
        all_ended().await;
        // A deadline does the same.
        for _ in 0..TRIES {
            let late = winch.with_deadline(Duration::from_millis(100));
            let late = late.start().hours().await.expect_err("nobody permits it");
            assert_eq!(late.kind, ExceptionKind::Timeout);
            if waiting() > given_up {
                break;
            }
        }
        assert!(waiting() > given_up, "the servant is called");
        all_ended().await;
    });
    assert_eq!(ours.orb.deferred_replies().undelivered, 0);
}

#[test]
fn the_calls_of_a_client_that_is_gone_end_where_they_wait() {
    let tasks = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build();
    let tasks = tasks.expect("the host has descriptors");
    for (name, dispatch) in DispatchStrategy::ALL {
        // A call that does not end keeps the next one out.
        let limits = Limits::with(|limits| limits.deferred_replies_max = 1);
        let ours = Ours::serve_as(Orb::builder().dispatch(dispatch).limits(limits));
        let (client, hoist) = (client(), Hoist::with_permits(0));
        let winch = winch(&ours, &client, &hoist, tasks.handle().clone().into());
        let key = ours.key(winch.as_object());
        let hours = Request::two_way(&key, "_get_hours").empty();
        for calls in 1..=3 {
            let mut raw = Connection::to(ours.address());
            raw.send(&hours);
            until("the call is in progress", || {
                (hoist.waiting.load(Ordering::SeqCst) == calls).then_some(())
            });
            drop(raw);
            until("the task ends", || {
                let is_dropped = hoist.dropped.load(Ordering::SeqCst) == calls;
                (is_dropped && ours.orb.deferred_replies().outstanding == 0).then_some(())
            });
        }
        assert_eq!(ours.orb.requests_refused(), 0, "{name}");
    }
}

#[test]
fn tasks_get_what_arrives_when_a_thread_that_reads_has_gone() {
    let (ours, client, hoist) = (Ours::serve(), client(), Hoist::with_permits(0));
    let servants = runtime();
    let ended = Arc::new(Notify::new());
    let winch = winch(&ours, &client, &hoist, servants.handle().clone().into());
    let serving = thread::spawn({
        let ended = Arc::clone(&ended);
        move || servants.block_on(ended.notified())
    });
    let waiting = |count| {
        until("the calls are in progress", || {
            (hoist.waiting.load(Ordering::SeqCst) == count).then_some(())
        });
    };
    runtime().block_on(async {
        tokio::spawn(read_replies(&client).expect("leaders read"));
        for round in 0..50 {
            // The thread leads, and takes its own reply and perhaps that of the task.
            let blocking = tokio::task::spawn_blocking({
                let winch = winch.clone();
                move || winch.hours()
            });
            waiting(2 * round + 1);
            let call = tokio::spawn(winch.start().hours());
            waiting(2 * round + 2);
            hoist.permits.add_permits(2);
            let hours = timeout(LONG, call).await.expect("somebody reads");
            assert_eq!(hours.expect("no panic"), Ok(41));
            assert_eq!(blocking.await.expect("no panic"), Ok(41));
        }
    });
    ended.notify_one();
    serving.join().expect("no panic");
}

fn priority(number: i16) -> Priority {
    Priority::new(number).expect("it is in range")
}

fn lane(number: i16) -> TaskLane {
    TaskLane {
        priority: priority(number),
        thread: ThreadConfig::default(),
    }
}

#[test]
fn a_task_runs_on_the_thread_of_its_lane() {
    let lanes = TaskLanes::start(vec![lane(20), lane(10)]).expect("two threads");
    let executor = lanes.executor();
    for (called, thread) in [(5, 10), (10, 10), (19, 10), (20, 20), (40, 20)] {
        let policies = PoaPolicies::default().with(Policy::PriorityModel {
            model: PriorityModel::ServerDeclared,
            server_priority: priority(called),
        });
        let ours = Ours::serve_in(Orb::builder().best_effort(), |orb| {
            let root = orb.root_poa().expect("it listens");
            root.create_poa("declared", policies).expect("a name")
        });
        let (client, hoist) = (client(), Hoist::with_permits(0));
        let winch = winch(&ours, &client, &hoist, executor.clone());
        let answer = winch.lift(1, "").expect("it is light");
        assert_eq!(answer.1, format!(": rtorb-tasks-{thread}"), "{called}");
    }
    // Without a priority, in the lowest.
    let (ours, client, hoist) = (Ours::serve(), client(), Hoist::with_permits(0));
    let winch = winch(&ours, &client, &hoist, executor);
    assert_eq!(winch.lift(1, "").expect("light").1, ": rtorb-tasks-10");
    let machine: Machine = winch.clone().into();
    let call = client_thread(machine);
    until("it is in progress", || {
        (hoist.waiting.load(Ordering::SeqCst) == 1).then_some(())
    });
    drop(lanes);
    let ended = call.join().expect("no panic").expect_err("its lane ends");
    assert_eq!(ended.kind, ExceptionKind::NoResponse);
    assert_eq!(hoist.dropped.load(Ordering::SeqCst), 1);
}

fn client_thread(machine: Machine) -> thread::JoinHandle<Result<i32, SystemException>> {
    thread::spawn(move || machine.hours())
}

#[test]
fn the_end_of_lanes_does_not_wait_for_blocking_work() {
    let lanes = TaskLanes::start(vec![lane(10)]).expect("a thread");
    let (begin, begun) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let (end, ended) = mpsc::channel();
    lanes.executor().spawn(None, async move {
        let work = move || {
            begin.send(()).expect("the test waits");
            released.recv().expect("the test releases it");
            end.send(()).expect("the test waits");
        };
        drop(tokio::task::spawn_blocking(work));
    });
    begun.recv().expect("it begins");
    drop(lanes);
    release.send(()).expect("it waits");
    ended.recv().expect("it goes on");
}

#[test]
fn what_cannot_be_is_said() {
    let none = TaskLanes::start(Vec::new()).expect_err("there is no lane");
    assert!(none.to_string().contains("give one"), "{none}");
    let twice = TaskLanes::start(vec![lane(7), lane(3), lane(7)]).expect_err("7 twice");
    assert_eq!(twice.to_string(), "two lanes have priority 7");
    runtime().block_on(async {
        let exclusive = Orb::builder().build().expect("an ORB");
        let refused = read_replies(&exclusive)
            .map(drop)
            .expect_err("threads read");
        assert!(
            refused.to_string().contains("leader_followers"),
            "{refused}"
        );
    });
}
