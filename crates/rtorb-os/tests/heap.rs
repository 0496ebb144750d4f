//! A reserved heap faults no page. A program of its own without the test harness, whose threads have arenas already.

use rtorb_os::memory::{PageFaults, reserve_heap, thread_page_faults};
use rtorb_os::thread::{ThreadConfig, spawn};

/// Takes, fills and gives back `bytes` of the heap; answers the page faults of it.
fn faults_of_using(bytes: usize) -> PageFaults {
    let before = thread_page_faults();
    let mut memory: Vec<u8> = Vec::with_capacity(bytes);
    memory.resize(bytes, 1);
    core::hint::black_box(&mut memory);
    drop(memory);
    thread_page_faults().since(before)
}

fn main() {
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
