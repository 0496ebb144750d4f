//! A client that calls while something fails, and what it may see: each call that returned was executed once, each that failed with
//! COMPLETED_NO never, each other at most once, and all ended in time.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rtorb::{CompletionStatus, Orb, SystemException};
use rtorb_tests::ledger::Notes;
use rtorb_tests::running::Running;
use rtorb_tests::scratch::Scratch;
use rtorb_tests::stubs::ledgers::Ledger;

/// The round-trip timeout of calls that meet a fault.
pub(crate) const TIMEOUT: Duration = Duration::from_millis(300);
/// What a loaded machine may add to it, and the timeout of calls that are to return: less than the 30 s of an ORB without a timeout of
/// its own.
pub(crate) const SLACK: Duration = Duration::from_secs(20);
/// The time between two calls.
const PACE: Duration = Duration::from_millis(1);

/// A server of a ledger, which can be started again at its endpoint.
#[derive(Debug)]
pub(crate) struct Server {
    endpoint: String,
    scratch: Scratch,
    /// The calls that it executed, in all its lives.
    pub(crate) notes: Notes,
}

impl Server {
    pub(crate) fn at(endpoint: impl Into<String>) -> Self {
        let scratch = Scratch::new();
        Self {
            endpoint: endpoint.into(),
            notes: Notes::open(&scratch.join("count")),
            scratch,
        }
    }

    /// At a socket file of its own.
    pub(crate) fn at_file(scheme: &str) -> Self {
        let mut server = Self::at("");
        server.endpoint = format!("{scheme}://{}", server.file("socket").display());
        server
    }

    fn file(&self, name: &str) -> PathBuf {
        self.scratch.join(name)
    }

    /// Starts it; answers the process and the reference of the ledger.
    pub(crate) fn start(&self) -> (Running, String) {
        let ior = self.file("ior");
        let _ = std::fs::remove_file(&ior);
        let mut command = Command::new(env!("CARGO_BIN_EXE_warm-calls"));
        command.arg("serve-ledger").arg(&ior).arg(&self.endpoint);
        command.arg("leader_followers").arg(self.file("count"));
        Running::until_written(&mut command, &ior)
    }
}

/// A reference with the timeout of these tests, of an ORB of its own.
pub(crate) fn ledger(reference: &str) -> Ledger {
    let orb = Orb::builder().build().expect("an ORB can be built");
    let object = orb.string_to_object(reference).expect("it is a reference");
    Ledger::unchecked_narrow(object).with_timeout(TIMEOUT)
}

/// How the calls of a client ended.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    pub(crate) returned: u32,
    /// Those that failed, by exception and completion status.
    pub(crate) failed: BTreeMap<String, u32>,
    /// Those that may have been executed, or not.
    pub(crate) maybe: u32,
    pub(crate) longest: Duration,
    /// Calls that returned after the last that failed.
    pub(crate) returned_since: u32,
}

impl Ends {
    /// Calls until `enough`, a call after the other.
    pub(crate) fn of_calls(ledger: &Ledger, mut enough: impl FnMut(&Self) -> bool) -> Self {
        let mut ends = Self::default();
        while !enough(&ends) {
            let number = ends.returned.cast_signed();
            let begun = Instant::now();
            let end = ledger.note(number);
            ends.longest = ends.longest.max(begun.elapsed());
            ends.add(number, end);
            thread::sleep(PACE);
        }
        ends
    }

    fn add(&mut self, number: i32, end: Result<i32, SystemException>) {
        match end {
            Ok(cube) => {
                assert_eq!(cube, number.wrapping_pow(3), "the reply is of another call");
                self.returned += 1;
                self.returned_since += 1;
            }
            Err(failed) => {
                self.maybe += u32::from(failed.completed != CompletionStatus::No);
                self.returned_since = 0;
                let name = format!("{:?} {:?}", failed.kind, failed.completed);
                *self.failed.entry(name).or_default() += 1;
            }
        }
    }

    pub(crate) fn failures(&self) -> u32 {
        self.failed.values().sum()
    }

    /// Adds the calls that were made after these.
    pub(crate) fn join(&mut self, later: Self) {
        self.returned += later.returned;
        self.maybe += later.maybe;
        self.longest = self.longest.max(later.longest);
        self.returned_since = later.returned_since;
        for (way, calls) in later.failed {
            *self.failed.entry(way).or_default() += calls;
        }
    }

    /// Checks what always holds, and that the calls failed in no other way than one of `ways`; prints the row.
    pub(crate) fn check(&self, row: &str, executed: u32, ways: &[&str]) {
        println!("{row}: {self:?}, executed {executed}");
        let may = self.returned..=self.returned + self.maybe;
        assert!(
            may.contains(&executed),
            "{row}: {executed} executed, {self:?}"
        );
        assert!(self.longest < TIMEOUT + SLACK, "{row}: {self:?}");
        for way in self.failed.keys() {
            assert!(ways.contains(&way.as_str()), "{row}: {way}, {self:?}");
        }
    }
}
