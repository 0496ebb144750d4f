//! Thread pools of adapters: every kind is served by one engine, in another of its ways.

use rtorb::rt::{
    LanedThreadpool, Policy, PriorityModel, RequestBuffering, RequestOrder, Threadpool,
    ThreadpoolLane,
};
use rtorb::{Orb, Poa, PoaPolicies};
use rtorb_tests::relay::priority;

/// How a pool has its threads.
#[derive(Clone, Copy)]
pub(crate) enum Pool {
    /// All of them from the beginning.
    Plain,
    /// One from the beginning, the others when they are needed.
    Growing,
    /// All of them from the beginning, and requests wait in a queue while they are busy.
    Buffering,
    /// All of them from the beginning, in one of two lanes.
    Lanes,
    /// A lane of three levels, which serves requests in the order of their deadlines, beside another one.
    Deadlines,
    /// One in an urgent lane, which borrows the others from a less urgent one.
    Borrowing,
}

impl Pool {
    /// A new adapter with such a pool.
    pub(crate) fn adapter(self, orb: &Orb, threads: u32) -> Poa {
        let plain = |static_threads, dynamic_threads, request_buffering| {
            let pool = orb.rt_orb().create_threadpool(Threadpool {
                static_threads,
                dynamic_threads,
                request_buffering,
                ..Threadpool::default()
            });
            Policy::Threadpool(pool.expect("the pool is started"))
        };
        let lanes = |lanes, allow_borrowing| {
            let pool = orb.rt_orb().create_threadpool_with_lanes(LanedThreadpool {
                lanes,
                allow_borrowing,
                ..LanedThreadpool::default()
            });
            Policy::Threadpool(pool.expect("the pool is started"))
        };
        let buffering = RequestBuffering {
            max_buffered_requests: 1000,
            max_request_buffer_size: 0,
        };
        let policy = match self {
            Self::Plain => plain(threads, 0, None),
            Self::Growing => plain(1, threads - 1, None),
            Self::Buffering => plain(threads, 0, Some(buffering)),
            Self::Lanes => lanes(vec![lane(30, 1), lane(URGENT, threads)], false),
            Self::Deadlines => {
                let levels = ThreadpoolLane {
                    order: RequestOrder::EarliestDeadline,
                    ..lane(URGENT, 3)
                };
                lanes(vec![lane(30, 1), levels], false)
            }
            Self::Borrowing => lanes(vec![lane(URGENT, 1), lane(0, threads - 1)], true),
        };
        let model = Policy::PriorityModel {
            model: PriorityModel::ServerDeclared,
            server_priority: priority(URGENT),
        };
        let root = orb.root_poa().expect("the ORB can listen");
        let policies = PoaPolicies::default().with(policy).with(model);
        root.create_poa("Pool", policies).expect("they go together")
    }
}

/// The priority of the objects.
const URGENT: i16 = 20;

/// A lane whose threads are there from the beginning.
pub(crate) fn lane(number: i16, static_threads: u32) -> ThreadpoolLane {
    ThreadpoolLane {
        lane_priority: priority(number),
        static_threads,
        ..ThreadpoolLane::default()
    }
}
