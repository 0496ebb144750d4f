//! Delays that are planted in running processes, and what their recording says made the calls late.
//!
//! A client calls a servant that passes the call on to another: three processes. `RTORB_LATE_RUNS` has the number of runs of each delay.
//! The tests run one after another, because each has a CPU for itself.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use rtorb_os::sched::current_affinity;
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
        let recording = plant.recorded(1, &|| ());
        plant.check(&recording, Cause::Execution);
        arrows_join(&recording, plant);
        without_evidence(&recording, plant);
    });
}

fn busy_neighbour() {
    each_run(|plant| {
        let file = plant.scratch.join("hog");
        let mut command = planted(plant.cpu, 95, "hog");
        let (_hog, _) = Running::until_written(command.arg(&file), &file);
        let recording = plant.recorded(0, &|| ());
        plant.check(&recording, Cause::Preempted);
        let longest = plant.longest(&recording);
        assert!(
            longest.evidence[0].contains("planted") && longest.evidence[0].contains("priority 95"),
            "{longest:#?}"
        );
    });
}

fn full_queue() {
    each_run(|plant| {
        let file = plant.scratch.join("other");
        let mut command = planted(plant.cpu, 90, "call");
        // Another client's long calls go to the last servant directly, all the time. They leave the CPU to the thread that reads requests.
        let (_other, _) = Running::until_written(
            command
                .args([&file, Path::new(&plant.server_reference)])
                .args(["3", "all"]),
            &file,
        );
        let recording = plant.recorded(0, &|| ());
        plant.check(&recording, Cause::Queue);
    });
}

fn page_faults() {
    each_run(|plant| {
        let recording = plant.recorded(2, &|| ());
        plant.check(&recording, Cause::PageFault);
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
        let recording = plant.recorded(0, &slow);
        plant.check(&recording, Cause::Network);
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
            let mut command = planted(cpu, 90, "serve");
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

    /// Records until the kernel has not kept the CPU from the processes for long: a host that limits real-time threads does.
    fn recorded(&self, number: i32, meanwhile: &(dyn Fn() + Sync)) -> Recording {
        for _ in 0..REPEATS {
            let recording = self.recorded_once(number, meanwhile);
            let kept_ns = self.longest(&recording).parts_ns;
            if kept_ns.get(&Cause::Kernel).is_none_or(|ns| *ns < LIMIT_NS) {
                return recording;
            }
        }
        panic!("the kernel keeps real-time threads from the CPU all the time")
    }

    /// Records the three processes while the client calls, and `meanwhile` is done. The recording went through a file.
    fn recorded_once(&self, number: i32, meanwhile: &(dyn Fn() + Sync)) -> Recording {
        let file = self.scratch.join("client");
        let client_cpu = current_affinity()[0];
        let mut command = planted(client_cpu, 92, "call");
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
        let recording = thread::scope(|scope| {
            scope.spawn(meanwhile);
            record(&wanted, || false).expect("the recorders can be read")
        });
        let file = self.scratch.join("recording.pftrace");
        assert_eq!(recording.write(&file).expect("it can be written"), 0);
        Recording::read(&file).expect("it was written just now")
    }

    /// The client's call that took longest, of those that began in the recording.
    fn longest(&self, recording: &Recording) -> LateCall {
        let judged = Judged::ByLimit(Some(LIMIT_NS));
        let late = late_calls(recording, &Joins::of(recording), &judged);
        let servers = self.servers.each_ref().map(Running::id);
        let kernel = recording.hosts[0].kernel.as_ref();
        let begin_ns = kernel.map_or(0, |record| record.begin_ns + AT_ENDS_NS);
        let of_client = late
            .into_iter()
            .filter(|late| late.begin_ns >= begin_ns && !servers.contains(&late.pid));
        let longest = of_client.max_by_key(|late| late.response_ns);
        longest.expect("a call of the client was late")
    }

    fn check(&self, recording: &Recording, cause: Cause) {
        if let Err(why) = &recording.hosts[0].kernel {
            skip(&format!("no record of the kernel: {why}"));
            return;
        }
        let longest = self.longest(recording);
        assert_eq!(longest.cause, cause, "{longest:#?}");
    }
}

/// Every call of the client joins the servant's, and that the nested one, unless it is at an end of the recording; and nothing is lost.
fn arrows_join(recording: &Recording, plant: &Plant) {
    let joins = Joins::of(recording);
    let calls = || recording.places().map(|(_, call)| call);
    let begin_ns = calls().map(|call| call.first_ns).min().unwrap_or(0) + AT_ENDS_NS;
    let end_ns = calls().map(|call| call.last_ns).max().unwrap_or(0) - AT_ENDS_NS;
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
fn without_evidence(recording: &Recording, plant: &Plant) {
    let mut blind = recording.clone();
    blind.hosts[0].kernel = Err("taken away".to_owned());
    assert_eq!(plant.longest(&blind).cause, Cause::Unknown);
    let mut alone = recording.clone();
    let server = plant.servers[1].id();
    alone.hosts[0]
        .processes
        .retain(|process| process.pid != server);
    assert_eq!(plant.longest(&alone).cause, Cause::Unknown);
}

const REPEATS: u32 = 20;
const LIMIT_NS: u64 = 10_000_000;
/// Calls at the begin and at the end of a recording may be recorded at one end only.
const AT_ENDS_NS: u64 = 100_000_000;
