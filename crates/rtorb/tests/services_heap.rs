//! Heap calls and locks of what the services need of the ORB: oneways that wait for nothing, objects without activation, bound
//! keys.

use rtorb::rt::Policy;
use rtorb::{ConnectionStrategy, ObjectRef, Orb, PoaPolicies, SyncScope, WaitStrategy};
use rtorb_instruments::heap::{CountingAllocator, process_heap_calls};
use rtorb_os::sync::{process_lock_calls, thread_lock_calls};
use rtorb_tests::asleep::until_others_sleep;
use rtorb_tests::ours::Ours;
use rtorb_tests::servants::Cubes;
use rtorb_tests::stubs::Cubit;

#[global_allocator]
static HEAP: CountingAllocator = CountingAllocator;

const WARM_UP: usize = 100;
const CALLS: usize = 1000;
/// After so many a call waits until the server has read them.
const ONEWAYS_AHEAD: usize = 50;

fn main() {
    rtorb_tests::alone::run(
        "warm_calls_of_services_make_no_heap_call",
        warm_calls_of_services_make_no_heap_call,
    );
}

/// One test, since the counters of the process count whatever runs beside it.
fn warm_calls_of_services_make_no_heap_call() {
    let ours = Ours::serve();
    oneways_that_wait_for_nothing(&ours);
    objects_without_activation(&ours);
}

fn oneways_that_wait_for_nothing(ours: &Ours) {
    for connection in [
        ConnectionStrategy::Exclusive,
        ConnectionStrategy::Multiplexed {
            wait: WaitStrategy::Read,
        },
    ] {
        let orb = Orb::builder().connection(connection).build();
        let orb = orb.expect("legal");
        let own =
            object(&orb, ours.cubit.as_object()).set_policy_overrides(&[Policy::PrivateConnection]);
        let own = own.expect("a client may").with_sync_scope(SyncScope::None);
        let cubit = Cubit::unchecked_narrow(own);
        // A reply tells the server's side that the code set is known, so that no request has to tell it again.
        assert_eq!(cubit.cube_long(3), Ok(27));
        let before = thread_lock_calls().all;
        assert_eq!(cubit.cube_long(3), Ok(27));
        let locks_of_a_call = thread_lock_calls().all - before;
        let counted = count(|call| {
            // A server that is far behind would take more memory than it had while warming up.
            if call % ONEWAYS_AHEAD == 0 {
                assert_eq!(cubit.cube_long(3), Ok(27));
            }
            while cubit.as_object().flush() != Ok(true) {}
            cubit.cube_oneway().expect("the server reads");
        });
        // That of the connection, for the oneway and for flush.
        let locks = match connection {
            ConnectionStrategy::Exclusive => 0,
            _ => 2,
        };
        assert_eq!(counted.heap_calls, 0, "{connection}");
        let of_calls = locks_of_a_call * (CALLS / ONEWAYS_AHEAD) as u64;
        let expected = locks * CALLS as u64 + of_calls;
        assert_eq!(counted.locks_here, expected, "{connection}");
    }
}

fn objects_without_activation(ours: &Ours) {
    let root = ours.orb.root_poa().expect("the ORB runs");
    let poa = root
        .create_poa("Located", PoaPolicies::PERSISTENT)
        .expect("it is free");
    let server = ours.orb.clone();
    let set = poa.set_servant_locator::<Cubit, _, _>(move |_| {
        let orb = server.clone();
        Ok(Cubes { orb })
    });
    set.expect("it has none");
    let orb = Orb::builder().build().expect("it can be built");
    let many: Vec<Cubit> = (0..100)
        .map(|number| {
            let id = format!("context-{number:03}");
            let own: Cubit = poa.create_reference_with_id(id).expect("it is persistent");
            Cubit::unchecked_narrow(object(&orb, own.as_object()))
        })
        .collect();
    let bound = poa.create_reference_with_id::<Cubit>("root");
    ours.orb
        .bind_object_key("Root", bound.expect("it is persistent").as_object())
        .expect("it is free");
    let url = format!("corbaloc:iiop:1.2@{}/Root", ours.address());
    let root = Cubit::unchecked_narrow(orb.string_to_object(&url).expect("a URL"));
    assert_eq!(root.cube_long(3), Ok(27));
    let counted = count(|call| {
        assert_eq!(many[call % many.len()].cube_long(3), Ok(27));
        assert_eq!(root.cube_long(3), Ok(27));
    });
    assert_eq!(counted, Counted::default());
}

fn object(orb: &Orb, of_server: &ObjectRef) -> ObjectRef {
    let object = orb.string_to_object(&of_server.to_string());
    object.expect("a reference")
}

/// Of all counted calls.
#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Counted {
    /// In the whole process, which is both sides.
    heap_calls: u64,
    locks_here: u64,
    locks_elsewhere: u64,
}

/// Counts the calls of a round, of three the one with the fewest: another thread may do something of its own in one of them.
fn count(mut call: impl FnMut(usize)) -> Counted {
    (0..WARM_UP).for_each(&mut call);
    let rounds = [(); 3].map(|()| count_once(&mut call));
    rounds.into_iter().min().expect("three")
}

fn count_once(call: impl FnMut(usize)) -> Counted {
    until_others_sleep();
    let (heap, here, all) = (
        process_heap_calls(),
        thread_lock_calls().all,
        process_lock_calls().all,
    );
    (0..CALLS).for_each(call);
    let heap_calls = process_heap_calls() - heap;
    let locks_here = thread_lock_calls().all - here;
    Counted {
        heap_calls,
        locks_here,
        locks_elsewhere: process_lock_calls().all - all - locks_here,
    }
}
