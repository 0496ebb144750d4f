//! Processes whose calls are recorded, with delays that are planted: for tests of what recordings say about them.
//!
//! Each takes a CPU and a priority of SCHED_FIFO for all of its threads, and writes FILE when it is ready.
//! `planted CPU PRIORITY serve FILE ENDPOINT [NEXT]` serves a Ledger whose `note(n)` executes 0.2 ms: with n = 1 it executes 30 ms more, with n = 2 it
//! touches a new mapping for as long, with n = 3 it sleeps for as long. With NEXT it passes the call on before.
//! `planted CPU PRIORITY call FILE REFERENCE N some` calls `note(0)` every 5 ms for ten seconds, and `note(N)` each second; with `all` instead of
//! `some`, it calls `note(N)` each time.
//! `planted CPU PRIORITY hog FILE` keeps the CPU for 30 ms, three times a second.
#![forbid(unsafe_code)]

use std::error::Error;
use std::fs;
use std::io;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use rtorb::{DispatchStrategy, Orb, SystemException};
use rtorb_os::clock::{monotonic_ns, thread_cpu_ns};
use rtorb_os::sched::{SchedPolicy, apply_affinity, apply_policy};
use rtorb_os::shared_words::{SharedWords, WritableWordsOfOther};
use rtorb_tests::stubs::ledgers::{Ledger, LedgerServant};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let [cpu, priority, ref role @ ..] = arguments[..] else {
        return Err(USAGE.into());
    };
    apply_affinity(&[cpu.parse()?])?;
    apply_policy(SchedPolicy::Fifo(priority.parse()?))?;
    match *role {
        ["serve", file, endpoint] => serve(file, endpoint, None),
        ["serve", file, endpoint, next] => serve(file, endpoint, Some(next)),
        ["call", file, reference, number, which] => {
            call(file, reference, (number.parse()?, which == "all"))
        }
        ["hog", file] => hog(file),
        _ => Err(USAGE.into()),
    }
}

/// One thread serves the requests that another reads, so that they wait in a queue while it executes.
fn serve(file: &str, endpoint: &str, next: Option<&str>) -> Result<(), Box<dyn Error>> {
    let builder = Orb::builder().listen(endpoint).recorder();
    let builder = builder.dispatch(DispatchStrategy::WorkerPool);
    let orb = builder.pool_threads(1).build()?;
    let next = next.map(|reference| ledger(&orb, reference)).transpose()?;
    let pages = Pages::populated()?;
    let ledger: Ledger = orb.root_poa()?.activate(Delayed { next, pages })?;
    ready(file, &orb.object_to_string(ledger.as_object()))?;
    Ok(orb.run()?)
}

fn ledger(orb: &Orb, reference: &str) -> Result<Ledger, Box<dyn Error>> {
    Ok(Ledger::unchecked_narrow(orb.string_to_object(reference)?))
}

fn call(file: &str, reference: &str, (number, is_each): (i32, bool)) -> Result<(), Box<dyn Error>> {
    let orb = Orb::builder().recorder().build()?;
    let ledger = ledger(&orb, reference)?;
    // The connections are open, and the pages of all threads are there.
    for _ in 0..20 {
        ledger.note(0)?;
    }
    ready(file, "ready")?;
    for count in 0..CALLS {
        let is_it = is_each || count % PLANTED_EACH == 0;
        ledger.note(if is_it { number } else { 0 })?;
        thread::sleep(BETWEEN_CALLS);
    }
    Ok(())
}

fn hog(file: &str) -> Result<(), Box<dyn Error>> {
    ready(file, "ready")?;
    loop {
        thread::sleep(Duration::from_millis(300));
        execute(LONG);
    }
}

#[derive(Debug)]
struct Delayed {
    next: Option<Ledger>,
    pages: Pages,
}

impl LedgerServant for Delayed {
    fn note(&self, n: i32) -> Result<i32, SystemException> {
        if let Some(next) = &self.next {
            return next.note(n);
        }
        execute(SHORT);
        match n {
            1 => execute(LONG),
            2 => self.pages.touch(LONG),
            3 => thread::sleep(LONG),
            _ => {}
        }
        Ok(n)
    }
}

/// Executes for that time, however often the thread is preempted.
fn execute(time: Duration) {
    let end_ns = thread_cpu_ns() + time.as_nanos() as u64;
    while thread_cpu_ns() < end_ns {
        std::hint::spin_loop();
    }
}

/// A few pages of a file in memory, which are mapped again and again: the host of a virtual machine may take 40 us for a page that was not used for
/// some seconds, and a record takes page faults that are so far apart for execution.
#[derive(Debug)]
struct Pages(SharedWords);

impl Pages {
    fn populated() -> Result<Self, Box<dyn Error>> {
        let pages = Self(SharedWords::create("touched", PAGES * WORDS_OF_PAGE)?);
        pages.touch_each()?;
        Ok(pages)
    }

    /// Touches new mappings for that time: a page fault for each page.
    fn touch(&self, time: Duration) {
        let begin_ns = monotonic_ns();
        while monotonic_ns() - begin_ns < time.as_nanos() as u64 {
            self.touch_each().expect("the file can be mapped");
        }
    }

    fn touch_each(&self) -> io::Result<()> {
        let mapped = WritableWordsOfOther::open(&self.0)?;
        let pages = mapped.words().iter().step_by(WORDS_OF_PAGE);
        pages.for_each(|word| word.store(1, Ordering::Relaxed));
        Ok(())
    }
}

fn ready(file: &str, text: &str) -> Result<(), Box<dyn Error>> {
    let draft = format!("{file}.draft");
    fs::write(&draft, text)?;
    Ok(fs::rename(draft, file)?)
}

const USAGE: &str = "usage: planted CPU PRIORITY serve FILE ENDPOINT [NEXT] | call FILE REFERENCE N some|all | hog FILE";
const PAGES: usize = 256;
/// Of 4 KiB.
const WORDS_OF_PAGE: usize = 512;
const SHORT: Duration = Duration::from_micros(200);
const LONG: Duration = Duration::from_millis(30);
const CALLS: u32 = 2_000;
const PLANTED_EACH: u32 = 200;
const BETWEEN_CALLS: Duration = Duration::from_millis(5);
