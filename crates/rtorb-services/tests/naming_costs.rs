//! What a name costs, and that this does not depend on how many there are.

use rtorb::{ObjectRef, Orb};
use rtorb_instruments::heap::{CountingAllocator, process_heap_calls};
use rtorb_os::clock::{monotonic_ns, thread_cpu_ns};
use rtorb_os::sync::process_lock_calls;
use rtorb_services::naming::{NamingConfig, NamingService};
use rtorb_services::stubs::naming::cos_naming::{NameComponent, NamingContextExt};
use rtorb_tests::asleep::until_others_sleep;
use rtorb_tests::ours::absent_object;
use std::path::Path;
use std::thread;

#[global_allocator]
static HEAP: CountingAllocator = CountingAllocator;

fn main() {
    if std::env::args().any(|word| word == "--ignored") {
        return what_names_cost_here();
    }
    rtorb_tests::alone::run(
        "a_name_costs_the_same_however_many_there_are",
        a_name_costs_the_same_however_many_there_are,
    );
}

fn a_name_costs_the_same_however_many_there_are() {
    serve(NamingConfig::default(), |root, client| {
        bind(root, client, 0..10);
        let few = count(root);
        bind(root, client, 10..5_000);
        assert_eq!(count(root), few);
    });
}

/// Heap calls and locks of both sides, for a number of names resolved: the fewest of some batches. The ORBs may do something else in one, as
/// at the deadline of a call that has ended.
fn count(root: &NamingContextExt) -> (u64, u64) {
    let resolve = |number: u32| {
        let resolved = root.resolve(&name(number)).expect("bound");
        assert!(resolved.is_some());
    };
    (0..100).for_each(|call| resolve(call % 10));
    // A thread may begin late.
    until_others_sleep();
    let batches = (0..5).map(|_| {
        let before = (process_heap_calls(), process_lock_calls().all);
        (0..1_000).for_each(|call| resolve(call % 10));
        (
            process_heap_calls() - before.0,
            process_lock_calls().all - before.1,
        )
    });
    batches.min().expect("there are some")
}

/// A measurement, which asserts nothing of time: `cargo test -p rtorb-services --release --test naming_costs -- --ignored` on a
/// quiet machine.
fn what_names_cost_here() {
    let directory = tempfile::tempdir().expect("a directory");
    let config = NamingConfig::stored_at(directory.path().join("names"));
    for clients in [1, 8] {
        serve(config.clone(), |root, client| {
            let before = monotonic_ns();
            let numbers = clients * 1_000..clients * 1_200;
            let count = numbers.len();
            bind_by(clients, root, client, numbers);
            let each_us = (monotonic_ns() - before) / 1_000 / count as u64;
            println!("bind on the disk, {clients} clients: {each_us} us a change");
        });
    }
    let place = directory.path().join("many");
    for names in [10, 100_000] {
        fill(&place, names);
        let config = NamingConfig::stored_at(&place);
        let octets = place.metadata().expect("a file").len();
        let begun = (monotonic_ns(), thread_cpu_ns());
        serve(config, |root, _| {
            let loaded_us = (monotonic_ns() - begun.0) / 1_000;
            let cpu_us = (thread_cpu_ns() - begun.1) / 1_000;
            println!(
                "{names} names, {octets} octets: served after {loaded_us} us, {cpu_us} us of the CPU"
            );
            let mut times: Vec<u64> = (0..20_000)
                .map(|call: u32| {
                    let name = name(call.wrapping_mul(2_654_435_761) % names);
                    let before = monotonic_ns();
                    root.resolve(&name).expect("bound");
                    monotonic_ns() - before
                })
                .collect();
            times.sort_unstable();
            let (median, p99) = (times[times.len() / 2], times[times.len() / 100 * 99]);
            println!("{names} names: resolve {median} ns, p99 {p99} ns");
        });
    }
}

/// A store of so many names, made in memory where the host has that: the disk is timed elsewhere.
fn fill(place: &Path, names: u32) {
    let memory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    let memory = memory.expect("a directory");
    let made = memory.path().join("names");
    serve(NamingConfig::stored_at(&made), |root, client| {
        bind_by(8, root, client, 0..names);
    });
    std::fs::copy(&made, place).expect("copied");
}

/// Serves names as long as `use_it` runs.
fn serve(config: NamingConfig, use_it: impl FnOnce(&NamingContextExt, &Orb)) {
    let orb = Orb::builder().listen("iiop://127.0.0.1:0");
    let orb = orb.build().expect("an ORB");
    let service = NamingService::serve(&orb, config).expect("a service");
    orb.root_poa().expect("an adapter").manager().activate();
    let client = Orb::builder().build().expect("a client");
    let root = client.string_to_object(&service.reference().as_object().to_string());
    let root = NamingContextExt::unchecked_narrow(root.expect("a reference"));
    thread::scope(|scope| {
        let running = scope.spawn(|| orb.run());
        use_it(&root, &client);
        service.end();
        orb.shutdown();
        running.join().expect("a thread").expect("served");
    });
}

fn bind_by(clients: u32, root: &NamingContextExt, client: &Orb, numbers: std::ops::Range<u32>) {
    let part = numbers.len() as u32 / clients;
    thread::scope(|scope| {
        for index in 0..clients {
            let begin = numbers.start + index * part;
            let end = if index + 1 == clients {
                numbers.end
            } else {
                begin + part
            };
            scope.spawn(move || bind(root, client, begin..end));
        }
    });
}

fn bind(root: &NamingContextExt, client: &Orb, numbers: std::ops::Range<u32>) {
    for number in numbers {
        let object = object(client, number);
        root.bind(&name(number), Some(&object)).expect("bound");
    }
}

fn name(number: u32) -> [NameComponent; 1] {
    [NameComponent {
        id: format!("name-{number:06}"),
        kind: "object".to_owned(),
    }]
}

fn object(orb: &Orb, number: u32) -> ObjectRef {
    absent_object(orb, &format!("Adapter/object-{number}"))
}
