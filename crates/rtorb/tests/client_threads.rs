//! The scheduling of the threads that all calls of a client wait for: it does not depend on the thread that starts them.
//!
//! The threads are found by their names, so this is the only test of its program.

use std::thread;

use rtorb::rt::{LanedThreadpool, Priority, ThreadpoolLane};
use rtorb::thread::{SchedPolicy, ThreadConfig};
use rtorb::{ConnectionStrategy, Orb, OrbBuilder, WaitStrategy};
use rtorb_os::sched::{allowed, apply_policy};
use rtorb_tests::ours::Ours;
use rtorb_tests::running::until;
use rtorb_tests::scheduling::{Task, tasks};

#[test]
fn client_threads_run_as_the_builder_of_the_orb_and_above_all_lanes() {
    if let Err(refused) = allowed(SchedPolicy::Fifo(70)) {
        println!("skipped: {refused}");
        return;
    }
    let ours = Ours::serve();
    let text = ours.text(ours.cubit.as_object());
    let rows = [
        ("rtorb-watchdog", ConnectionStrategy::Exclusive),
        ("rtorb-reactor", multiplexed(WaitStrategy::Reactor)),
        (
            "rtorb-client-1",
            multiplexed(WaitStrategy::ConnectionThread),
        ),
    ];
    for (name, connection) in rows {
        let orb = Orb::builder().connection(connection).build();
        let orb = orb.expect("an ORB");
        call_at(30, &orb, &text);
        await_only(name, 0, "the builder's, not the caller's");
        let pool = orb.rt_orb().create_threadpool_with_lanes(lane(60));
        pool.expect("the host allows it");
        await_only(name, 61, "above the lane");
        let current = orb.rt_current();
        thread::scope(|scope| {
            let urgent = || current.set_the_priority(Priority::new(69).expect("legal"));
            let set = scope.spawn(urgent).join();
            set.expect("no panic").expect("allowed");
        });
        await_only(name, 70, "above a thread");
        orb.destroy().expect("not in a servant");
    }
    let chosen = ThreadConfig {
        policy: Some(SchedPolicy::Fifo(20)),
        ..ThreadConfig::default()
    };
    let rows: [(OrbBuilder, u32); 2] = [
        (Orb::builder(), 61),
        (Orb::builder().watchdog_thread(chosen), 20),
    ];
    for (builder, priority) in rows {
        let orb = builder.build().expect("an ORB");
        let pool = orb.rt_orb().create_threadpool_with_lanes(lane(60));
        pool.expect("the host allows it");
        call_at(0, &orb, &text);
        await_only("rtorb-watchdog", priority, "as it is chosen");
        orb.destroy().expect("not in a servant");
    }
}

fn multiplexed(wait: WaitStrategy) -> ConnectionStrategy {
    ConnectionStrategy::Multiplexed { wait }
}

fn lane(priority: i16) -> LanedThreadpool {
    LanedThreadpool {
        lanes: vec![ThreadpoolLane {
            lane_priority: Priority::new(priority).expect("legal"),
            static_threads: 1,
            ..ThreadpoolLane::default()
        }],
        ..LanedThreadpool::default()
    }
}

/// Calls from a thread of that native priority, which has not set its CORBA priority.
fn call_at(native: u8, orb: &Orb, text: &str) {
    let object = orb.string_to_object(text).expect("a reference");
    thread::scope(|scope| {
        let called = scope.spawn(|| {
            if native > 0 {
                apply_policy(SchedPolicy::Fifo(native)).expect("allowed");
            }
            object.is_a("IDL:Any:1.0")
        });
        assert_eq!(called.join().expect("no panic"), Ok(false));
    });
}

/// Waits until the only thread of that name has that priority: one of an ORB before is listed a moment longer than it runs.
fn await_only(name: &str, priority: u32, what: &str) {
    let expected = [Task::new(name, priority)];
    until(&format!("{expected:?}: {what}"), || {
        let mut all = tasks(std::process::id());
        all.retain(|task| task.name == name);
        (all == expected).then_some(())
    });
}
