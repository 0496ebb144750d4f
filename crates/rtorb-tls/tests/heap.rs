//! Heap calls of warm calls over TLS, on both sides: a few, which do not grow.

#[path = "tls/pki.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod pki;

use pki::{Pki, orb, serving};
use rtorb_instruments::heap::{CountingAllocator, process_heap_calls};
use rtorb_tests::ours::Ours;
use rtorb_tests::stubs::Cubit;

#[global_allocator]
static HEAP: CountingAllocator = CountingAllocator;

const WARM_UP: usize = 300;
const CALLS: u64 = 1000;

/// The heap calls of a call, of both sides and for request and reply: rustls has memory of its own for each record that it seals, and for each
/// that it opens.
const HEAP_CALLS_MAX: u64 = 9;

fn main() {
    rtorb_tests::alone::run("warm_calls_over_tls_make_few_heap_calls", || {
        let pki = Pki::new();
        let ours = Ours::serve_as(serving(pki.server()));
        let client = orb(pki.client()).build().expect("an ORB");
        let object = client.string_to_object(&ours.text(ours.cubit.as_object()));
        let cubit = Cubit::unchecked_narrow(object.expect("a reference"));
        for _ in 0..WARM_UP {
            assert_eq!(cubit.cube_long(3), Ok(27));
        }
        let before = process_heap_calls();
        for _ in 0..CALLS {
            assert_eq!(cubit.cube_long(3), Ok(27));
        }
        let each = (process_heap_calls() - before) as f64 / CALLS as f64;
        println!("{each} heap calls a call");
        assert!(each <= HEAP_CALLS_MAX as f64, "{each}");
    });
}
