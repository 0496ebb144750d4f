//! Recordings of this process.

use std::cell::Cell;
use std::fs;
use std::hint::black_box;
use std::net::TcpListener;
use std::process;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rtorb::{ExceptionKind, ObjectRef, Orb};
use rtorb_host::kernel_trace::TraceEventKind;
use rtorb_recording::gathering::{DeadlineMiss, MissRecorder, WaitEnd, Wanted, record};
use rtorb_recording::{CallOutcome, CallSide, Recording};

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

/// An object at a port of this host. Nothing replies there.
fn object_at(orb: &Orb, port: u16) -> ObjectRef {
    let url = format!("corbaloc::127.0.0.1:{port}/Object");
    orb.string_to_object(&url).unwrap()
}

/// Calls an operation of an object that does not reply, and returns how that ends.
fn call(object: &ObjectRef, operation: &str) -> ExceptionKind {
    let called = object.invoke(operation, |_| Ok(()), |_| Ok(()));
    called.unwrap_err().kind
}

/// The recorded calls with that name, and how they ended.
fn outcomes(recording: &Recording, operation: &str) -> Vec<CallOutcome> {
    let threads = recording.hosts[0].processes[0].threads.iter();
    let calls = threads.flat_map(|thread| &thread.calls);
    let calls = calls.filter(|call| call.operation == operation);
    calls.map(|call| call.outcome).collect()
}

#[test]
fn a_missed_deadline_ends_the_wait_and_the_recording_has_it_with_what_was_before_and_after() {
    let builder = Orb::builder().recorder();
    let orb = builder.round_trip_timeout(Some(Duration::from_millis(20)));
    let orb = orb.build().unwrap();
    // It takes connections, and nobody reads them.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = object_at(&orb, listener.local_addr().unwrap().port());
    // It fails at once, which is no miss.
    let patient = Orb::builder().recorder().build().unwrap();
    let refusing = object_at(&patient, 1);
    let wanted = Wanted {
        processes: vec![process::id()],
        // However long a busy host takes for the steps of this test.
        duration: Duration::from_secs(60),
        kernel: false,
    };
    assert_eq!(call(&silent, "too_early"), ExceptionKind::Timeout);
    let mut recorder = MissRecorder::begin(&wanted).unwrap();
    for (number, last) in [("first", false), ("second", true)] {
        let patience = Instant::now() + Duration::from_secs(60);
        let looks = Cell::new(0);
        let ended = recorder.wait(|| {
            match looks.replace(looks.get() + 1) {
                0 => drop(refusing.non_existent()),
                3 => assert_eq!(call(&silent, number), ExceptionKind::Timeout),
                _ => {}
            }
            (Instant::now() > patience).then_some("the miss is not found")
        });
        let miss = DeadlineMiss {
            process: process::id(),
            name: fs::read_to_string("/proc/self/comm")
                .unwrap()
                .trim()
                .to_owned(),
            operation: Some((CallSide::Client, number.to_owned())),
        };
        let missed = vec![miss];
        assert_eq!(ended, WaitEnd::Missed(missed.clone()));
        assert_eq!(recorder.begun_before(&missed), None, "it began in the wait");
        let after = Cell::new(0);
        recorder.look_on(|| match after.replace(after.get() + 1) {
            0 => {
                drop(refusing.non_existent());
                false
            }
            after => after > 1,
        });
        let recording = recorder.recording();
        assert_eq!(outcomes(&recording, number), [CallOutcome::Timeout]);
        assert!(outcomes(&recording, "too_early").is_empty());
        let others = outcomes(&recording, "_non_existent");
        assert_eq!(others.len(), if last { 4 } else { 2 }, "{others:?}");
    }
    let ended = recorder.wait(|| Some("enough"));
    assert_eq!(ended, WaitEnd::Stopped("enough"));
    let recording = recorder.into_recording();
    assert_eq!(outcomes(&recording, "second"), [CallOutcome::Timeout]);
    assert_eq!(
        recording.hosts[0].kernel,
        Err("it was not wanted".to_owned())
    );
}
