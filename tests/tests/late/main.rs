//! Delays that are planted in running processes, and what their recording says made the calls late.
//!
//! A client calls a servant that passes the call on to another: three processes. `RTORB_LATE_RUNS` has the number of runs of each delay.
//! The tests run one after another, because each has a CPU for itself.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rtorb_os::clock::{monotonic_ns, sleep_until};
use rtorb_os::sched::{SchedPolicy, apply_affinity, apply_policy, current_affinity};
use rtorb_recording::gathering::{Wanted, record};
use rtorb_recording::joins::Joins;
use rtorb_recording::late::{Judged, LateCall, late_calls};
use rtorb_recording::parts::Cause;
use rtorb_recording::{CallSide, Recording};
use rtorb_tests::alone::run_each;
use rtorb_tests::faulty_link::{Link, SERVER};
use rtorb_tests::relay::has_priorities;
use rtorb_tests::running::Running;
use rtorb_tests::scratch::Scratch;
use rtorb_tests::skip;

fn main() {
    run_each(&[
        ("a_longer_execution_is_named", longer_execution),
        ("a_busy_neighbour_is_named", busy_neighbour),
        ("a_full_queue_is_named", full_queue),
        ("page_faults_are_named", page_faults),
        ("a_slow_network_is_named", slow_network),
    ]);
}

fn longer_execution() {
    each_run(|plant| {
        let seen = plant.recorded(1, &|| ());
        plant.check(&seen, Cause::Execution);
        arrows_join(&seen.recording, plant);
        without_evidence(&seen, plant);
    });
}

fn busy_neighbour() {
    each_run(|plant| {
        let file = plant.scratch.join("hog");
        let mut command = planted(plant.cpu, HOG, "hog");
        let (_hog, _) = Running::until_written(command.arg(&file), &file);
        let seen = plant.recorded(0, &|| ());
        let Some(longest) = plant.check(&seen, Cause::Preempted) else {
            return;
        };
        let hog = format!("priority {HOG}");
        let preempted = &longest.evidence[0];
        assert!(
            preempted.contains("planted") && preempted.contains(&hog),
            "{longest:#?}"
        );
    });
}

fn full_queue() {
    each_run(|plant| {
        let file = plant.scratch.join("other");
        let mut command = planted(plant.cpu, SERVERS, "call");
        // Another client's long calls go to the last servant directly, all the time. They leave the CPU to the thread that reads requests.
        let (_other, _) = Running::until_written(
            command
                .args([&file, Path::new(&plant.server_reference)])
                .args(["3", "all"]),
            &file,
        );
        let seen = plant.recorded(0, &|| ());
        plant.check(&seen, Cause::Queue);
    });
}

fn page_faults() {
    each_run(|plant| {
        let seen = plant.recorded(2, &|| ());
        let Some(longest) = plant.late(&seen) else {
            return;
        };
        // Under some hypervisors, a page that is mapped anew also costs time that the kernel does not see: the thread then seems to execute.
        let is_seen = |part: &str| {
            longest
                .evidence
                .iter()
                .take(2)
                .any(|one| one.starts_with(part))
        };
        let is_named = longest.cause == Cause::PageFault
            || longest.cause == Cause::Execution && is_seen("page_fault");
        let seen_ns = longest.parts_ns[&Cause::PageFault];
        assert!(is_named && seen_ns > FAULTS_NS_MIN, "{longest:#?}");
    });
}

fn slow_network() {
    for _ in 0..runs() {
        let started = Link::to_server(1, || Plant::start(&format!("iiop://{SERVER}:0")));
        let (link, plant) = match started {
            Ok((link, plant)) => (link, plant),
            Err(refused) => {
                skip(&format!("no network namespaces or tunnels here: {refused}"));
                return;
            }
        };
        let Some(plant) = plant else { return };
        let slow = || {
            link.faults.delay_us.store(20_000, Ordering::Relaxed);
        };
        let seen = plant.recorded(0, &slow);
        plant.check(&seen, Cause::Network);
    }
}

/// A process of `planted`.
fn planted(cpu: usize, priority: u8, role: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_planted"));
    command.args([&cpu.to_string(), &priority.to_string(), role]);
    command
}

fn each_run(run: impl Fn(&Plant)) {
    for _ in 0..runs() {
        match Plant::start("iiop://127.0.0.1:0") {
            Some(plant) => run(&plant),
            None => return,
        }
    }
}

fn runs() -> u32 {
    let number = std::env::var("RTORB_LATE_RUNS").ok();
    number.and_then(|number| number.parse().ok()).unwrap_or(2)
}

/// A recording, and the times in which the host kept a CPU from its most urgent thread.
#[derive(Clone)]
struct Seen {
    recording: Recording,
    stalls: Vec<(u64, u64)>,
}

impl Seen {
    /// Whether the host had a part in what a call took: it held a virtual CPU, or it limits real-time threads.
    fn is_disturbed(&self, late: &LateCall) -> bool {
        let kernel_ns = late.parts_ns.get(&Cause::Kernel);
        let end_ns = late.begin_ns + late.response_ns;
        let mut stalls = self.stalls.iter();
        kernel_ns.is_some_and(|ns| *ns >= LIMIT_NS)
            || stalls.any(|(from_ns, until_ns)| *from_ns < end_ns && late.begin_ns < *until_ns)
    }
}

/// Wakes again and again as the most urgent thread of a CPU, and returns when that took long.
fn watch(cpu: usize, has_ended: &AtomicBool) -> Vec<(u64, u64)> {
    apply_affinity(&[cpu]).expect("it is ours");
    apply_policy(SchedPolicy::Fifo(99)).expect("tests may have priorities");
    let mut stalls = Vec::new();
    while !has_ended.load(Ordering::Acquire) {
        let next_ns = monotonic_ns() + 2_000_000;
        sleep_until(next_ns);
        let woken_ns = monotonic_ns();
        if woken_ns > next_ns + LIMIT_NS / 2 {
            stalls.push((next_ns, woken_ns));
        }
    }
    stalls
}

/// Two servants, one of which passes calls on to the other.
struct Plant {
    scratch: Scratch,
    /// Their CPU.
    cpu: usize,
    servers: [Running; 2],
    reference: String,
    server_reference: String,
}

impl Plant {
    /// Starts them; `None` where tests may not have priorities.
    fn start(endpoint: &str) -> Option<Self> {
        if !has_priorities() {
            return None;
        }
        let scratch = Scratch::new();
        let cpu = *current_affinity().last().expect("a CPU");
        let start = |name: &str, next: Option<&str>| {
            let file = scratch.join(name);
            let mut command = planted(cpu, SERVERS, "serve");
            command.arg(&file).arg(endpoint).args(next);
            Running::until_written(&mut command, &file)
        };
        let (server, server_reference) = start("server", None);
        let (middle, reference) = start("middle", Some(&server_reference));
        Some(Self {
            cpu,
            servers: [middle, server],
            reference,
            server_reference,
            scratch,
        })
    }

    /// Records until a call was late without a part of the host in that.
    fn recorded(&self, number: i32, meanwhile: &(dyn Fn() + Sync)) -> Seen {
        for _ in 0..REPEATS {
            let seen = self.recorded_once(number, meanwhile);
            if self.longest(&seen).is_some() {
                return seen;
            }
        }
        panic!("no call of the client was late but those that the host delayed")
    }

    /// Records the three processes while the client calls, and `meanwhile` is done. The recording went through a file.
    fn recorded_once(&self, number: i32, meanwhile: &(dyn Fn() + Sync)) -> Seen {
        let file = self.scratch.join("client");
        // That of the recording before.
        let _ = fs::remove_file(&file);
        let client_cpu = current_affinity()[0];
        let mut command = planted(client_cpu, CLIENT, "call");
        command
            .args([&file, Path::new(&self.reference)])
            .args([&number.to_string(), "some"]);
        let (client, _) = Running::until_written(&mut command, &file);
        let processes = self.servers.iter().chain([&client]).map(Running::id);
        let wanted = Wanted {
            processes: processes.collect(),
            duration: Duration::from_millis(2_500),
            kernel: true,
        };
        let has_ended = &AtomicBool::new(false);
        let (recording, stalls) = thread::scope(|scope| {
            let witnesses =
                [client_cpu, self.cpu].map(|cpu| scope.spawn(move || watch(cpu, has_ended)));
            scope.spawn(meanwhile);
            let recording = record(&wanted, || false);
            has_ended.store(true, Ordering::Release);
            let stalls = witnesses.map(|witness| witness.join().expect("no panic"));
            let recording = recording.expect("the recorders can be read");
            (recording, stalls.concat())
        });
        let file = self.scratch.join("recording.pftrace");
        assert_eq!(recording.write(&file).expect("it can be written"), 0);
        let recording = Recording::read(&file).expect("it was written just now");
        Seen { recording, stalls }
    }

    /// The client's call that took longest, of those in the recording in which the host had no part.
    fn longest(&self, seen: &Seen) -> Option<LateCall> {
        let recording = &seen.recording;
        let judged = Judged::ByLimit(Some(LIMIT_NS));
        let late = late_calls(recording, &Joins::of(recording), &judged);
        let servers = self.servers.each_ref().map(Running::id);
        let kernel = recording.hosts[0].kernel.as_ref();
        let begin_ns = kernel.map_or(0, |record| record.begin_ns + AT_ENDS_NS);
        let (_, end_ns) = span(recording);
        let of_client = late.into_iter().filter(|late| {
            let is_within = begin_ns <= late.begin_ns && late.begin_ns + late.response_ns <= end_ns;
            is_within && !servers.contains(&late.pid) && !seen.is_disturbed(late)
        });
        of_client.max_by_key(|late| late.response_ns)
    }

    /// Checks what made the longest call late, and returns the call; `None` without a record of the kernel.
    fn check(&self, seen: &Seen, cause: Cause) -> Option<LateCall> {
        let longest = self.late(seen)?;
        assert_eq!(longest.cause, cause, "{longest:#?}");
        Some(longest)
    }

    /// The longest call; `None` without a record of the kernel.
    fn late(&self, seen: &Seen) -> Option<LateCall> {
        if let Err(why) = &seen.recording.hosts[0].kernel {
            skip(&format!("no record of the kernel: {why}"));
            return None;
        }
        Some(self.longest(seen).expect("it was recorded until then"))
    }
}

/// The time of which all processes have their calls: the recorders were read one after another, maybe with long pauses.
fn span(recording: &Recording) -> (u64, u64) {
    let spans = recording.hosts[0].processes.iter().map(|process| {
        let calls = || process.threads.iter().flat_map(|thread| &thread.calls);
        let begin_ns = calls().map(|call| call.first_ns).min();
        let end_ns = calls().map(|call| call.last_ns).max();
        (begin_ns.unwrap_or(0), end_ns.unwrap_or(0))
    });
    spans.fold((0, u64::MAX), |whole, part| {
        (whole.0.max(part.0), whole.1.min(part.1))
    })
}

/// Every call of the client joins the servant's, and that the nested one, unless it is at an end of the recording; and nothing is lost.
fn arrows_join(recording: &Recording, plant: &Plant) {
    let joins = Joins::of(recording);
    let (begin_ns, end_ns) = span(recording);
    let (begin_ns, end_ns) = (begin_ns + AT_ENDS_NS, end_ns - AT_ENDS_NS);
    let mut checked = 0;
    for (place, call) in recording.places() {
        let is_servers = plant
            .servers
            .iter()
            .any(|server| server.id() == recording.process(place).pid);
        let is_within = begin_ns <= call.first_ns && call.last_ns <= end_ns;
        if call.side != CallSide::Client || is_servers || !is_within {
            continue;
        }
        let middle = joins.server_of.get(&place).expect("its server is recorded");
        let nested = joins
            .nested
            .get(middle)
            .unwrap_or_else(|| panic!("{:?} has no nested call", recording.call(*middle)));
        assert_eq!(nested.len(), 1, "{call:?}");
        assert!(joins.server_of.contains_key(&nested[0]), "{call:?}");
        checked += 1;
    }
    assert!(checked > 50, "{checked} calls");
    let threads = recording.hosts[0]
        .processes
        .iter()
        .flat_map(|process| &process.threads);
    assert_eq!(threads.map(|thread| thread.lost).sum::<u64>(), 0);
}

/// Without the kernel's record, or without the last process, the cause is unknown.
fn without_evidence(seen: &Seen, plant: &Plant) {
    let cause = |seen: &Seen| plant.longest(seen).map(|longest| longest.cause);
    let mut blind = seen.clone();
    blind.recording.hosts[0].kernel = Err("taken away".to_owned());
    assert_eq!(cause(&blind), Some(Cause::Unknown));
    let mut alone = seen.clone();
    let server = plant.servers[1].id();
    alone.recording.hosts[0]
        .processes
        .retain(|process| process.pid != server);
    assert_eq!(cause(&alone), Some(Cause::Unknown));
}

const REPEATS: u32 = 20;
/// Of 30 ms of page faults: what is seen of them, at least.
const FAULTS_NS_MIN: u64 = 2_000_000;
const LIMIT_NS: u64 = 10_000_000;
/// The plants are more urgent than what other tests run at the same time: `model run` measures the host with priority 90. Only the witnesses
/// of stalls are above them.
const SERVERS: u8 = 96;
const CLIENT: u8 = 97;
const HOG: u8 = 98;
/// Calls at the begin and at the end of a recording may be recorded at one end only.
const AT_ENDS_NS: u64 = 100_000_000;
