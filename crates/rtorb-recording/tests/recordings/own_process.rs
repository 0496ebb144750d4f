//! A recording of this process.

use std::cell::Cell;
use std::fs;
use std::hint::black_box;
use std::process;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use rtorb::Orb;
use rtorb_host::kernel_trace::TraceEventKind;
use rtorb_recording::gathering::{Wanted, record};

/// Where the host has tracefs.
#[test]
fn page_faults_of_a_thread_that_begins_during_the_recording_are_recorded() {
    let _orb = Orb::builder().recorder().build().unwrap();
    let wanted = Wanted {
        processes: vec![process::id()],
        duration: Duration::from_secs(5),
        kernel: true,
    };
    let (ends, rounds, id) = (
        AtomicBool::new(false),
        AtomicUsize::new(0),
        AtomicI32::new(0),
    );
    let touch = || {
        // PID/task/TID (proc_thread-self(5)).
        let own = fs::read_link("/proc/thread-self").unwrap();
        let own = own.file_name().unwrap().to_str().unwrap();
        id.store(own.parse().unwrap(), Ordering::Relaxed);
        while !ends.load(Ordering::Relaxed) {
            // More memory than the heap keeps, so that its pages are new and the first write to each is a fault.
            black_box(vec![1_u8; 64 << 20]);
            rounds.fetch_add(1, Ordering::Relaxed);
        }
    };
    let recording = thread::scope(|scope| {
        let looks = Cell::new(0);
        let enough = Cell::new(usize::MAX);
        // Two looks after the thread has begun, and a whole round of it later.
        let is_over = || {
            match looks.replace(looks.get() + 1) {
                0 => drop(scope.spawn(touch)),
                2 => enough.set(rounds.load(Ordering::Relaxed) + 2),
                _ => {}
            }
            rounds.load(Ordering::Relaxed) >= enough.get()
        };
        let recording = record(&wanted, is_over);
        ends.store(true, Ordering::Relaxed);
        recording.unwrap()
    });
    let record = match &recording.hosts[0].kernel {
        Ok(record) => record,
        Err(why) => {
            eprintln!("not run: {why}");
            return;
        }
    };
    let thread = id.load(Ordering::Relaxed);
    let mut all = record.events.values().flatten();
    let is_found = all.any(|event| event.kind == TraceEventKind::PageFault { thread });
    assert!(is_found, "{} events were lost", record.lost);
}
