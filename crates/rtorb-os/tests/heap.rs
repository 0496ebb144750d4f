//! A reserved heap faults no page. A program of its own without the test harness, whose threads have arenas already.

use rtorb_instruments::usage::{PageFaults, of_thread};
use rtorb_os::memory::reserve_heap;
use rtorb_os::thread::{ThreadConfig, spawn};

/// Takes, fills and gives back `bytes` of the heap; returns the page faults.
fn faults_of_using(bytes: usize) -> PageFaults {
    let before = of_thread().page_faults;
    let mut memory: Vec<u8> = Vec::with_capacity(bytes);
    memory.resize(bytes, 1);
    core::hint::black_box(&mut memory);
    drop(memory);
    of_thread().page_faults.since(before)
}

fn main() {
    if cfg!(any(thread_sanitizer, address_sanitizer)) {
        println!("skipped: a sanitizer has a heap of its own");
        return;
    }
    let config = ThreadConfig::default();
    assert!(
        faults_of_using(2 << 20).minor > 0,
        "else this shows nothing"
    );
    reserve_heap(16 << 20).expect("16 MiB of memory");
    assert_eq!(faults_of_using(8 << 20), PageFaults::default());
    assert_eq!(faults_of_using(8 << 20), PageFaults::default());
    let thread = spawn("second", &config, || faults_of_using(8 << 20)).expect("a thread");
    let faults = thread.join().expect("no panic").expect("it was begun");
    assert_eq!(faults, PageFaults::default());
    println!("a reserved heap faults no page on any thread");
}
