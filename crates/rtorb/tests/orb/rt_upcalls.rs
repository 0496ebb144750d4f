//! Priorities that a server declares are what its servants see, and the mutex keeps to the order of priorities.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rtorb::rt::{PriorityModel, RtMutex};
use rtorb::{DispatchStrategy, Orb};
use rtorb_os::clock::thread_cpu_ns;
use rtorb_os::sched::{SchedPolicy, apply_affinity, apply_policy, current_affinity};
use rtorb_tests::relay::{Served, has_priorities, model, priority, relay, way};
use rtorb_tests::running::until;
use rtorb_tests::stubs::Relay;

use PriorityModel::ServerDeclared;

//= RT-CORBA 1.2 §Real-Time CORBA Priority Models
//% test
#[test]
fn a_declared_priority_is_the_servants() {
    if !has_priorities() {
        return;
    }
    for (name, dispatch) in DispatchStrategy::ALL {
        let served = Served::by(Orb::builder().dispatch(dispatch));
        let poa = served
            .adapter("declared", &[model(ServerDeclared, 7)])
            .expect("free");
        let of_adapter: Relay = poa.activate(served.relayer("a")).expect("room");
        let own: Relay = poa
            .activate_with_priority(served.relayer("b"), priority(9))
            .expect("room");
        for of in [None, Some(20)] {
            let seen = |relay| way(Orb::builder(), relay, of);
            assert_eq!(seen(&of_adapter), Ok(vec![(7, 7)]), "{name}");
            assert_eq!(seen(&own), Ok(vec![(9, 9)]), "{name}");
        }
        let plain = relay(&served, "plain", &[]);
        let seen = way(Orb::builder(), &plain, Some(20)).expect("it answers");
        assert_eq!(seen[0].1, 0, "{name}: it has no model, and is as it was");
    }
}

/// An urgent thread waits for the mutex of a less urgent one, beside which a third would use the CPU up.
//= RT-CORBA 1.2 §Mutex Interface
//% test
#[test]
fn whoever_holds_the_mutex_runs_before_whom_its_waiter_runs_before() {
    if !has_priorities() {
        return;
    }
    let mutex = Orb::builder()
        .build()
        .expect("an ORB")
        .rt_orb()
        .create_mutex(());
    let (urgent_waits, urgent_is_done) = (AtomicBool::new(false), AtomicBool::new(false));
    let (is_held, held) = mpsc::channel();
    let (go, gone) = mpsc::channel();
    let cpu = current_affinity()[0];
    let on_one_cpu = |number| {
        apply_affinity(&[cpu]).expect("it is ours");
        apply_policy(SchedPolicy::Fifo(number)).expect("it is allowed");
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            on_one_cpu(10);
            let guard = mutex.lock();
            is_held.send(()).expect("they listen");
            until("the urgent thread waits", || {
                urgent_waits.load(Ordering::SeqCst).then_some(())
            });
            guard.unlock();
        });
        held.recv().expect("it is held");
        let (on_one_cpu, urgent_is_done) = (&on_one_cpu, &urgent_is_done);
        let spinner = scope.spawn(move || {
            on_one_cpu(20);
            gone.recv().expect("it begins");
            // What this bound stops is what the mutex must not need.
            while !urgent_is_done.load(Ordering::SeqCst) && thread_cpu_ns() < SPIN_NS {
                core::hint::spin_loop();
            }
            urgent_is_done.load(Ordering::SeqCst)
        });
        scope.spawn(|| {
            on_one_cpu(30);
            go.send(()).expect("it listens");
            urgent_waits.store(true, Ordering::SeqCst);
            use_it(&mutex);
            urgent_is_done.store(true, Ordering::SeqCst);
        });
        let saw_the_urgent_one_done = spinner.join().expect("no panic");
        assert!(
            saw_the_urgent_one_done,
            "the spinner kept the holder from the CPU"
        );
    });
}

/// Processor time of a thread that keeps others from the CPU, in nanoseconds: far below what the kernel throttles.
const SPIN_NS: u64 = 200_000_000;

fn use_it(mutex: &RtMutex) {
    mutex.lock().unlock();
}

#[test]
fn a_named_mutex_is_opened_by_its_name_while_it_is_in_use() {
    let [orb, other] = [(), ()].map(|()| Orb::builder().build().expect("an ORB"));
    let (mutex, is_new) = orb.rt_orb().create_named_mutex("gate");
    assert!(is_new);
    let same = orb.rt_orb().open_named_mutex("gate").expect("it is in use");
    let held = mutex.lock();
    thread::scope(|scope| {
        scope.spawn(|| assert!(same.try_lock(Duration::ZERO).is_none(), "it is another"));
    });
    held.unlock();
    let failed = other.rt_orb().open_named_mutex("gate");
    let failed = failed.expect_err("it is another ORB's").to_string();
    assert!(failed.contains("`gate`"), "{failed}");
    drop((mutex, same));
    let ended = orb.rt_orb().open_named_mutex("gate");
    ended.expect_err("nobody uses it any more");
}
