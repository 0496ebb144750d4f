//! Lanes that get more or fewer threads while they serve: which threads serve what, when they end, and what is refused.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rtorb::rt::{LanedThreadpool, RequestBuffering, RequestOrder, Reservation, ThreadpoolLane};
use rtorb::{DispatchStrategy, ExceptionKind, Limits, Orb, SystemException};
use rtorb_tests::relay::{Served, has_priorities};
use rtorb_tests::running::until;
use rtorb_tests::skip;
use rtorb_tests::stubs::exchange::{Party, PartyServant};

use super::pools::{
    Pooled, alone_with_names, call, fifo, lane, number_of, priority, raw_client, seen_by_a_client,
    served, set_level, threads_named, until_begun,
};

/// Requests wait in their connections, or in a queue of the lane.
const BUFFERINGS: [Option<RequestBuffering>; 2] = [
    None,
    Some(RequestBuffering {
        max_buffered_requests: 0,
        max_request_buffer_size: 0,
    }),
];

fn lanes(lanes: &[ThreadpoolLane], request_buffering: Option<RequestBuffering>) -> LanedThreadpool {
    LanedThreadpool {
        lanes: lanes.to_vec(),
        request_buffering,
        ..LanedThreadpool::default()
    }
}

/// Changes the threads of the lane of that priority.
fn change(pool: &Pooled, lane: i16, threads: u32) -> Result<(), SystemException> {
    let rt_orb = pool.orb.rt_orb();
    rt_orb.change_lane_threads(Some(pool.pool), priority(lane), threads)
}

/// The numbers of static threads.
fn threads(pool: &Pooled) -> Vec<u32> {
    let lanes = pool.orb.rt_orb().lanes(Some(pool.pool));
    lanes.iter().map(|lane| lane.static_threads).collect()
}

#[test]
fn a_lane_grows_while_its_only_thread_serves_and_shrinks_when_no_request_is_in_progress() {
    let _alone = alone_with_names();
    let mut number = 40;
    for buffering in BUFFERINGS {
        number += 1;
        let Some(builder) = fifo() else { return };
        let both = lanes(&[lane(4, 1), lane(7, 1)], buffering);
        let pool = Pooled::numbered(number, builder, both);
        let named = |lane| threads_named(&format!("rtorb-p{number}l{lane}-"));
        let workers = || {
            let all = named(0).into_iter();
            all.filter(|who| !who.contains("-io "))
                .collect::<BTreeSet<_>>()
        };
        let others = named(1);
        let (party, gate) = pool.party(4);
        // One client sends all its requests before it has a reply, on a connection from before the change.
        let mut pipelining = raw_client(&party);
        pipelining.send(&set_level(&party, 0));
        until_begun(&gate, 1);
        change(&pool, 4, 3).expect("there is room");
        assert_eq!(threads(&pool), [3, 1]);
        assert_eq!(workers().len(), 3);
        let scheduled = |who: &String| who.ends_with("SCHED_FIFO 4");
        assert!(workers().iter().all(scheduled), "{:?}", workers());
        let mut calls: Vec<_> = [1, 2].map(|value| call(&party, value)).into();
        until_begun(&gate, 3);
        calls.push(call(&party, 3));
        for id in [4, 5] {
            pipelining.send(&set_level(&party, id));
        }
        // The threads end when they have served what they serve.
        change(&pool, 4, 1).expect("fewer");
        assert_eq!(threads(&pool), [1, 1]);
        assert_eq!(workers().len(), 3, "all serve");
        gate.open();
        assert_eq!(pipelining.answers(3), BTreeSet::from([0, 4, 5]));
        calls.into_iter().for_each(served);
        until("two threads have ended", || {
            (workers().len() == 1).then_some(())
        });
        assert_eq!(gate.begun().len(), 6);
        let serves: BTreeSet<_> = (0..5).map(|_| party.name().expect("served")).collect();
        assert_eq!(serves.len(), 1);
        assert_eq!(others, named(1), "the other lane does not notice it");
        // Idle threads end too, and new ones have names of their own.
        change(&pool, 4, 2).expect("there is room");
        assert_eq!(workers().len(), 2);
        change(&pool, 4, 1).expect("fewer");
        until("one thread has ended", || {
            (workers().len() == 1).then_some(())
        });
    }
}

#[test]
fn a_thread_that_is_one_too_many_serves_while_another_may_need_it() {
    for buffering in BUFFERINGS {
        let pool = Pooled::flat(lanes(&[lane(1, 2)], buffering));
        let (party, gate) = pool.party(1);
        let held = call(&party, 0);
        until_begun(&gate, 1);
        change(&pool, 1, 1).expect("fewer");
        // A nested call of the servant that is held would come so.
        for _ in 0..20 {
            party.name().expect("another thread serves");
        }
        // It stays if it is wanted again.
        change(&pool, 1, 2).expect("no thread is added");
        gate.open();
        served(held);
        let names = gate.threads();
        assert!(names.iter().all(|who| number_of(who) <= 2), "{names:?}");
        gate.close();
        let calls = [1, 2].map(|value| call(&party, value));
        until_begun(&gate, 3);
        gate.open();
        calls.into_iter().for_each(served);
    }
}

#[test]
fn a_servant_that_calls_its_own_lane_is_not_left_alone() {
    /// Asks the object of the same lane that it knows, if it knows one.
    struct Circle(Arc<Mutex<Option<Party>>>);
    impl PartyServant for Circle {
        fn name(&self) -> Result<String, SystemException> {
            let next = self.0.lock().expect("no panic").clone();
            next.map_or_else(|| Ok("last".to_owned()), |next| next.name())
        }
        fn level(&self) -> Result<i32, SystemException> {
            Ok(0)
        }
        fn set_level(&self, _: i32) -> Result<(), SystemException> {
            Ok(())
        }
    }
    let pool = Pooled::flat(lanes(&[lane(1, 1), lane(2, 2)], None));
    let next = Arc::new(Mutex::new(None));
    let first = pool.activate(1, Circle(Arc::clone(&next)));
    let (last, _) = pool.party(2);
    drop(last);
    let own = pool.orb.object_to_string(first.as_object());
    let own = pool.orb.string_to_object(&own).expect("a reference");
    let client = seen_by_a_client(&pool.orb, first.as_object());
    let call = |to: Option<Party>| {
        *next.lock().expect("no panic") = to;
        // The nested call is the last one.
        client.level().and_then(|_| client.name())
    };
    assert_eq!(call(None).as_deref(), Ok("last"));
    let alone = call(Some(Party::unchecked_narrow(own.clone())));
    let alone = alone.expect_err("its only thread would wait for itself");
    assert_eq!(alone.kind, ExceptionKind::BadInvOrder);
    let refused = change(&pool, 2, 1).and(change(&pool, 1, 2));
    refused.expect("there is room");
    // Two threads serve it, and the third call would need another: it ends by its deadline.
    let within = client.with_timeout(Duration::from_millis(200));
    *next.lock().expect("no panic") = Some(Party::unchecked_narrow(own));
    within.name().expect_err("it calls itself for ever");
    next.lock().expect("no panic").take();
    let refused = change(&pool, 1, 1).expect_err("it calls itself");
    assert!(
        refused.to_string().contains("leave it 2 threads"),
        "{refused}"
    );
    assert_eq!(threads(&pool), [2, 1]);
}

#[test]
fn a_number_of_threads_that_cannot_be_had_is_refused_with_the_reason_and_changes_nothing() {
    let limits = Limits::with(|limits| limits.pool_threads_max = 8);
    let builder = || Orb::builder().limits(limits.clone());
    if !has_priorities() {
        return;
    }
    let ordered = ThreadpoolLane {
        order: RequestOrder::EarliestDeadline,
        ..lane(10, 1)
    };
    let dynamic = ThreadpoolLane {
        dynamic_threads: 1,
        ..lane(20, 1)
    };
    let pool = Pooled::start(builder(), lanes(&[lane(1, 2), ordered, dynamic], None));
    let said = |lane, threads| {
        let refused = change(&pool, lane, threads).expect_err("it is wrong");
        (refused.kind, refused.to_string())
    };
    for (number, threads, kind, words) in [
        (1, 0, ExceptionKind::BadParam, "needs at least 1"),
        (2, 1, ExceptionKind::BadParam, "it has 1, 10, 20"),
        (10, 2, ExceptionKind::BadParam, "order earliest_deadline"),
        (20, 2, ExceptionKind::BadParam, "has dynamic threads"),
        (1, 6, ExceptionKind::NoResources, "pool_threads_max"),
    ] {
        let (found, text) = said(number, threads);
        assert!(found == kind && text.contains(words), "{words} in {text}");
    }
    assert_eq!(threads(&pool), [2, 1, 1]);
    change(&pool, 1, 5).expect("there is room");
    let rt_orb = pool.orb.rt_orb();
    let other = || rt_orb.create_threadpool_with_lanes(lanes(&[lane(1, 2)], None));
    let full = other().expect_err("there is no room");
    assert_eq!(full.kind, ExceptionKind::NoResources);
    // Threads that are to end count no more.
    change(&pool, 1, 2).expect("fewer");
    let id = other().expect("there is room again");
    rt_orb.destroy_threadpool(id).expect("unused");
    change(&pool, 1, 5).expect("there is room again");

    let queue = Pooled::flat(lanes(&[lane(1, 1)], BUFFERINGS[1]));
    let refused = change(&queue, 1, 66).expect_err("there is no memory for it");
    assert!(refused.to_string().contains("65 threads"), "{refused}");
    change(&queue, 1, 65).expect("there is memory for it");

    // The ORB's own lanes have room beside the bound.
    let own = builder()
        .dispatch(DispatchStrategy::Lanes)
        .lanes(vec![lane(1, 4)]);
    let own = Served::by(own);
    let rt_orb = own.orb.rt_orb();
    let change = |threads| {
        until("the ORB runs", || {
            let changed = rt_orb.change_lane_threads(None, priority(1), threads);
            match changed {
                Err(refused) if refused.to_string().contains("run the ORB") => None,
                changed => Some(changed),
            }
        })
    };
    for threads in [1, 12, 1, 12] {
        change(threads).expect("there is room");
    }
    let refused = change(13).expect_err("there is no room");
    assert_eq!(refused.kind, ExceptionKind::NoResources);
}

#[test]
fn threads_that_the_host_refuses_leave_the_lane_as_it_was() {
    let half = Duration::from_millis(50);
    let reserved = ThreadpoolLane {
        reservation: Some(Reservation {
            runtime: half,
            deadline: 2 * half,
            period: 2 * half,
        }),
        ..lane(1, 1)
    };
    let _alone = alone_with_names();
    // Other programs may have the time of the CPUs.
    let pool = Pooled::try_numbered(43, Orb::builder(), lanes(&[reserved], None));
    let Ok(pool) = pool else {
        return skip("no SCHED_DEADLINE");
    };
    let named = || threads_named("rtorb-p43l0-").len();
    // The kernel reserves less than all of the CPUs.
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let refused = change(&pool, 1, 2 * cpus as u32 + 1);
    refused.expect_err("the CPUs have no such time");
    assert_eq!(threads(&pool), [1]);
    until("those that were started have ended", || {
        (named() == 1).then_some(())
    });
    let (party, _) = pool.party(1);
    party.name().expect("served");
}

#[test]
fn a_pool_ends_while_its_lanes_change() {
    for buffering in BUFFERINGS {
        let pool = Pooled::flat(lanes(&[lane(1, 1)], buffering));
        let rt_orb = pool.orb.rt_orb();
        thread::scope(|scope| {
            let changes = scope.spawn(|| {
                let numbers = [4, 1, 2, 3, 1].into_iter().cycle();
                numbers
                    .map(|threads| {
                        rt_orb.change_lane_threads(Some(pool.pool), priority(1), threads)
                    })
                    .take(10_000_000)
                    .find_map(Result::err)
            });
            let (party, gate) = pool.party(1);
            gate.open();
            for value in 0..200 {
                party.set_level(value).expect("served");
            }
            assert_eq!(pool.orb.destroy(), Ok(()));
            let refused = changes.join().expect("no panic").expect("it has ended");
            let kinds = [ExceptionKind::BadInvOrder, ExceptionKind::BadParam];
            assert!(kinds.contains(&refused.kind), "{refused}");
        });
    }
}
