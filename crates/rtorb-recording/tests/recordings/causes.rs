//! The causes of planted delays, and that they are unknown without the evidence.

use rtorb_recording::joins::Joins;
use rtorb_recording::late::{Judged, LateCall, late_calls};
use rtorb_recording::limits::SystemBounds;
use rtorb_recording::parts::{Cause, Divider, totals};
use rtorb_recording::{CallOutcome, CallRecord, CallSide, Recording};
use rtorb_sched::model::{CheckOptions, Platform, System};

use crate::synthetic::{DELAY_NS, PLANTED, Planted, WORKER, call, recording, thread};

const LIMIT_NS: u64 = 5_000_000;

fn cause(planted: Planted) -> Cause {
    match planted {
        Planted::Nothing => Cause::Unknown,
        Planted::LongerExecution => Cause::Execution,
        Planted::BusyNeighbour | Planted::BusyNeighbourOfReader => Cause::Preempted,
        Planted::FullQueue => Cause::Queue,
        Planted::SlowNetwork => Cause::Network,
        Planted::PageFault => Cause::PageFault,
        Planted::Interrupt | Planted::KernelSection | Planted::FairServer => Cause::Kernel,
    }
}

fn late(recording: &Recording) -> Vec<LateCall> {
    let judged = Judged::ByLimit(Some(LIMIT_NS));
    late_calls(recording, &Joins::of(recording), &judged)
}

/// The only late call of `get`.
fn one(recording: &Recording) -> LateCall {
    let mut found = late(recording);
    found.retain(|late| late.behaviour == "get");
    assert_eq!(found.len(), 1, "{found:#?}");
    found.remove(0)
}

#[test]
fn each_planted_delay_is_named() {
    assert_eq!(late(&recording(Planted::Nothing)), []);
    for planted in PLANTED {
        let found = one(&recording(planted));
        assert_eq!(found.cause, cause(planted), "{planted:?}: {found:#?}");
        let excess_ns = found.response_ns - LIMIT_NS;
        assert_eq!(found.late_by_ns, excess_ns, "{planted:?}");
        assert!(
            found.parts_ns[&found.cause] >= DELAY_NS - 10_000,
            "{planted:?}: {found:#?}"
        );
    }
}

#[test]
fn the_evidence_names_who_it_was() {
    let words = |planted| one(&recording(planted)).evidence.join("\n");
    let busy = words(Planted::BusyNeighbour);
    assert!(
        busy.contains("busy (300), real-time priority 80, had CPU 1")
            && busy.contains("priority 50"),
        "{busy}"
    );
    assert!(words(Planted::FullQueue).contains("while its thread executed bulk"));
    assert!(words(Planted::KernelSection).contains("lazy (301), which is less urgent"));
    let fair_server = words(Planted::FairServer);
    for said in ["CPU 1 of plant to lazy (301)", "fair server", "rtorb check"] {
        assert!(fair_server.contains(said), "{fair_server}");
    }
    assert!(words(Planted::LongerExecution).contains("get in server"));
    assert!(words(Planted::Interrupt).contains("interrupt handlers on CPU 1"));
}

/// What is taken from a recording.
#[derive(Clone, Copy, Debug)]
enum Taken {
    KernelRecord,
    Server,
    ServersCalls,
    EndOfKernelRecord,
}

fn without(planted: Planted, taken: Taken) -> Recording {
    let mut recording = recording(planted);
    let host = &mut recording.hosts[0];
    match taken {
        Taken::KernelRecord => {
            host.kernel = Err("tracefs is not mounted".to_owned());
            // Other calls of the worker are evidence of their own.
            let worker = &mut host.processes[1].threads[1];
            worker.calls.retain(|call| call.operation == "get");
        }
        Taken::Server => {
            host.processes.pop();
        }
        Taken::ServersCalls => {
            let worker = &mut host.processes[1].threads[1];
            worker.lost = worker.calls.len() as u64;
            worker.calls.clear();
        }
        Taken::EndOfKernelRecord => {
            let record = host.kernel.as_mut().unwrap();
            record.lost = 1_000;
            record
                .ends_ns
                .values_mut()
                .for_each(|end_ns| *end_ns = 300_000_000);
            let worker = &mut host.processes[1].threads[1];
            worker.calls.retain(|call| call.operation == "get");
        }
    }
    recording
}

#[test]
fn without_the_evidence_the_cause_is_unknown() {
    for planted in PLANTED {
        for (taken, says) in [
            (Taken::KernelRecord, "tracefs is not mounted"),
            (Taken::Server, "the server of get is not in the recording"),
            (Taken::ServersCalls, "lost 1"),
            (Taken::EndOfKernelRecord, "had no room for 1000 events"),
        ] {
            let found = one(&without(planted, taken));
            assert_eq!(
                found.cause,
                Cause::Unknown,
                "{planted:?}, {taken:?}: {found:#?}"
            );
            let said = found.evidence.join("\n");
            assert!(said.contains(says), "{planted:?}, {taken:?}: {said}");
        }
    }
}

/// The thread that reads requests executed many short calls before it read this one.
#[test]
fn a_thousand_calls_of_the_reader_are_a_queue() {
    let mut recording = recording(Planted::SlowNetwork);
    let processes = &mut recording.hosts[0].processes;
    let sent_ns = processes[0].threads[0].calls[6].second_ns;
    let read_ns = processes[1].threads[1].calls[6].first_ns;
    let each_ns = (read_ns - sent_ns) / 1_000;
    for number in 0..1_000 {
        let begin_ns = sent_ns + number * each_ns;
        let times = [begin_ns, begin_ns, begin_ns + each_ns - 100];
        let other = CallRecord {
            connection: 9,
            ..call(CallSide::Server, "bulk", times)
        };
        processes[1].threads[0].calls.push(other);
    }
    let found = one(&recording);
    assert_eq!(found.cause, Cause::Queue, "{found:#?}");
    let said = &found.evidence[0];
    assert!(
        said.contains("while its thread executed bulk") && said.contains("in 1000 pieces"),
        "{said}"
    );
}

/// Other calls of its thread are evidence of a queue, also without a record of the kernel.
#[test]
fn calls_alone_show_a_queue() {
    let mut recording = recording(Planted::FullQueue);
    recording.hosts[0].kernel = Err("--no-kernel".to_owned());
    assert_eq!(one(&recording).cause, Cause::Queue);
}

#[test]
fn the_parts_add_up_to_the_whole_time() {
    for planted in PLANTED {
        let recording = recording(planted);
        let joins = Joins::of(&recording);
        let divider = Divider::new(&recording, &joins);
        for (place, _) in recording.places() {
            let (begin_ns, end_ns) = divider.span(place);
            let parts = divider.parts(place, u64::MAX);
            let mut at_ns = begin_ns;
            for part in &parts {
                assert_eq!(part.begin_ns, at_ns, "{planted:?}: {parts:#?}");
                at_ns = part.end_ns;
            }
            assert_eq!(at_ns, end_ns, "{planted:?}: {parts:#?}");
            assert_eq!(totals(&parts).values().sum::<u64>(), end_ns - begin_ns);
        }
    }
}

/// A call with TIMEOUT is late, and by what its servant took after the deadline.
#[test]
fn a_timeout_is_late_without_a_limit() {
    let mut recording = recording(Planted::LongerExecution);
    let processes = &mut recording.hosts[0].processes;
    let given_up = &mut processes[0].threads[0].calls[6];
    given_up.outcome = CallOutcome::Timeout;
    given_up.last_ns = given_up.first_ns + 2_000_000;
    let deadline_ns = given_up.last_ns;
    let served_ns = processes[1].threads[1].calls[6].last_ns;
    // A limit that is longer than its deadline changes nothing.
    for limit_ns in [None, Some(LIMIT_NS)] {
        let found = late_calls(
            &recording,
            &Joins::of(&recording),
            &Judged::ByLimit(limit_ns),
        );
        let [found] = &found[..] else {
            panic!("{found:#?}");
        };
        assert_eq!(found.late_by_ns, served_ns - deadline_ns, "{limit_ns:?}");
        assert_eq!(found.limit_ns, 2_000_000, "{limit_ns:?}");
        assert_eq!(found.cause, Cause::Execution, "{found:#?}");
        // The other calls say what is usual.
        assert!(!found.evidence[0].contains("usually 0ns"), "{found:#?}");
    }
}

/// A servant that calls another one: the time of the inner call is divided too.
#[test]
fn a_nested_call_has_its_own_causes() {
    let mut recording = recording(Planted::LongerExecution);
    let late = recording.hosts[0].processes[1].threads[1].calls[6].clone();
    let begin_ns = late.second_ns + 1_000_000;
    let nested = call(
        CallSide::Client,
        "inner",
        [begin_ns, begin_ns + 1_000, begin_ns + 8_000_000],
    );
    recording.hosts[0].processes[1].threads[1]
        .calls
        .push(nested);
    let found = one(&recording);
    // The inner call's server is not there, and it is most of the time.
    assert_eq!(found.cause, Cause::Unknown, "{found:#?}");
    assert!(found.evidence[0].contains("the server of inner is not in the recording"));
    let inner = call(
        CallSide::Server,
        "inner",
        [begin_ns + 20_000, begin_ns + 30_000, begin_ns + 7_900_000],
    );
    let mut other = thread(WORKER + 100, "other");
    other.calls.push(inner);
    recording.hosts[0].processes[1].threads.push(other);
    let found = one(&recording);
    assert!(
        found.evidence[0].contains("no kernel's record")
            || found.evidence[0].contains("does not have"),
        "{found:#?}"
    );
}

/// The thread reads the reply late, because it executes meanwhile: that is no network.
#[test]
fn a_thread_that_executes_beside_its_started_call_has_the_time() {
    let mut recording = recording(Planted::Nothing);
    let host = &mut recording.hosts[0];
    let call = &mut host.processes[0].threads[0].calls[6];
    let slept_ns = call.last_ns + 5_000;
    call.last_ns += DELAY_NS;
    call.side = CallSide::Started;
    let record = host.kernel.as_mut().unwrap();
    let of_cpu = record.events.get_mut(&0).unwrap();
    let slept = of_cpu.iter_mut().find(|event| event.at_ns == slept_ns);
    slept.unwrap().at_ns += DELAY_NS;
    let found = one(&recording);
    assert_eq!(found.cause, Cause::Execution, "{found:#?}");
    assert!(
        found.evidence[0].contains("the caller of get in client"),
        "{found:#?}"
    );

    recording.hosts[0].processes[0].threads[0].calls[6].side = CallSide::Client;
    assert_eq!(one(&recording).cause, Cause::Network);
}

const SYSTEM: &str = r#"
name = "plant"
[[node]]
name = "host"
cpus = 2
[[component]]
name = "server"
node = "host"
cpu = 1
  [[component.behaviour]]
  name = "get"
  minimum_gap = "50ms"
  execution = "1ms"
"#;

fn judged(system: &str) -> Judged {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("system.toml");
    std::fs::write(&file, system).unwrap();
    let system = System::read(&file, &|_| Ok([].into())).unwrap();
    let options = CheckOptions::default();
    let checked = rtorb_sched::model::check(&system, &[Platform::ideal()], &options).unwrap();
    Judged::BySystem(SystemBounds::of(&system, &checked))
}

/// With a system's file, behaviours have names, and their bounds are the limits: the time counts from the client's call.
#[test]
fn a_system_gives_names_and_limits() {
    let judged = judged(SYSTEM);
    for planted in PLANTED {
        let recording = recording(planted);
        let found = late_calls(&recording, &Joins::of(&recording), &judged);
        let [found] = &found[..] else {
            panic!("{planted:?}: {found:#?}");
        };
        assert_eq!(found.behaviour, "server.get");
        assert_eq!(found.limit_ns, 1_000_000);
        assert_eq!(found.cause, cause(planted), "{planted:?}: {found:#?}");
    }
}

/// The kernel keeps 15 bytes of the name of a process: of two components with the same behaviour, the one whose name begins so is meant.
#[test]
fn long_names_of_components_are_those_of_processes() {
    let named = |name: &str| SYSTEM.replace("\"server\"", &format!("{name:?}"));
    let component = named("tower_of_the_north");
    let (_, component) = component.split_once("[[component]]").unwrap();
    let system = format!("{}[[component]]{component}", named("plant_of_the_south"));
    let mut recording = recording(Planted::LongerExecution);
    recording.hosts[0].processes[1].name = "plant_of_the_so".to_owned();
    let found = late_calls(&recording, &Joins::of(&recording), &judged(&system));
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0].behaviour, "plant_of_the_south.get");
}

/// A client's call with TIMEOUT is late with a system's file too, if its servant says nothing.
#[test]
fn a_timeout_without_a_servant_is_late_with_a_system() {
    let mut recording = recording(Planted::Nothing);
    let processes = &mut recording.hosts[0].processes;
    processes[0].threads[0].calls[6].outcome = CallOutcome::Timeout;
    processes[1].threads[1].calls.remove(6);
    let found = late_calls(&recording, &Joins::of(&recording), &judged(SYSTEM));
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(
        (found[0].process.as_str(), found[0].request_id),
        ("client", 7)
    );
}
