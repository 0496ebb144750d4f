//! A reserved heap faults no page. A program of its own without the test harness, whose threads have arenas already.

use rtorb_instruments::usage::{PageFaults, of_thread};
use rtorb_os::memory::reserve_heap;
use rtorb_os::thread::{ThreadConfig, spawn};
use std::fs;

/// Takes, fills and gives back `bytes` of the heap; returns the page faults.
fn faults_of_using(bytes: usize) -> PageFaults {
    let before = of_thread().page_faults;
    let mut memory: Vec<u8> = Vec::with_capacity(bytes);
    memory.resize(bytes, 1);
    core::hint::black_box(&mut memory);
    drop(memory);
    of_thread().page_faults.since(before)
}

/// Takes `bytes` of the heap without touching them, and gives them back; returns the bytes of addresses that the process has more then, in
/// pages. `None` if the host does not give as much.
fn pages_kept_of(bytes: usize) -> Option<u64> {
    let pages = || {
        let text = fs::read_to_string("/proc/self/statm").expect("it is Linux");
        text.split(' ').next()?.parse::<u64>().ok()
    };
    let before = pages()?;
    let mut memory: Vec<u8> = Vec::new();
    memory.try_reserve_exact(bytes).ok()?;
    drop(core::hint::black_box(memory));
    Some(pages()?.saturating_sub(before))
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
    // As much as a number of 32 bits with a sign cannot be.
    match pages_kept_of(1 << 31) {
        Some(kept) => assert!(kept > 0, "the kernel has it back"),
        None => println!("skipped: the host gives no 2 GiB"),
    }
    println!("a reserved heap faults no page on any thread");
}
