//! Recordings made by hand: a client, a server with a reader and a worker, and the kernel's record of three CPUs.

use rtorb_host::kernel_trace::{RecordedTrace, TraceEvent, TraceEventKind};
use rtorb_recording::{
    CallOutcome, CallRecord, CallSide, HostRecord, ProcessRecord, Recording, ThreadRecord,
};

pub(crate) const CALLER: i32 = 101;
pub(crate) const READER: i32 = 201;
pub(crate) const WORKER: i32 = 202;
pub(crate) const BUSY: i32 = 300;
pub(crate) const LAZY: i32 = 301;
/// How much later a late call is.
pub(crate) const DELAY_NS: u64 = 10_000_000;

/// What makes a call late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Planted {
    Nothing,
    LongerExecution,
    BusyNeighbour,
    /// The neighbour has the CPU of the thread that reads requests, when this has read one and not yet woken the servant's thread.
    BusyNeighbourOfReader,
    FullQueue,
    SlowNetwork,
    PageFault,
    Interrupt,
    KernelSection,
    /// The kernel preempts the servant's thread for an ordinary one.
    FairServer,
}

pub(crate) const PLANTED: [Planted; 9] = [
    Planted::BusyNeighbourOfReader,
    Planted::LongerExecution,
    Planted::BusyNeighbour,
    Planted::FullQueue,
    Planted::SlowNetwork,
    Planted::PageFault,
    Planted::Interrupt,
    Planted::KernelSection,
    Planted::FairServer,
];

/// The priority of a thread, as the kernel counts.
fn priority(thread: i32) -> i32 {
    match thread {
        CALLER | READER | WORKER => 49,
        BUSY => 19,
        _ => 120,
    }
}

fn name(thread: i32) -> &'static str {
    match thread {
        CALLER => "caller",
        READER => "reader",
        WORKER => "worker",
        BUSY => "busy",
        LAZY => "lazy",
        _ => "swapper/0",
    }
}

fn woken(thread: i32) -> TraceEventKind {
    TraceEventKind::Woken {
        thread,
        priority: priority(thread),
    }
}

fn switched(from: i32, is_preempted: bool, to: i32) -> TraceEventKind {
    TraceEventKind::Switched {
        from,
        from_priority: priority(from),
        is_preempted,
        to,
        to_priority: priority(to),
    }
}

pub(crate) fn thread(tid: i32, name: &str) -> ThreadRecord {
    ThreadRecord {
        tid: tid.cast_unsigned(),
        name: name.to_owned(),
        lane: None,
        calls: Vec::new(),
        lost: 0,
    }
}

pub(crate) fn call(side: CallSide, operation: &str, times: [u64; 3]) -> CallRecord {
    CallRecord {
        side,
        operation: operation.to_owned(),
        outcome: CallOutcome::Done,
        cpu: 1,
        priority: 50,
        request_id: 1,
        connection: 7,
        first_ns: times[0],
        second_ns: times[1],
        last_ns: times[2],
    }
}

/// Nine calls of `get` in time, 50 ms apart, and one with what is planted, on one host.
pub(crate) fn recording(planted: Planted) -> Recording {
    let mut made = Made::new();
    for number in 0..10 {
        let kind = if number == 6 {
            planted
        } else {
            Planted::Nothing
        };
        made.call(number, kind);
    }
    made.recording
}

struct Made {
    recording: Recording,
}

impl Made {
    fn new() -> Self {
        let client = ProcessRecord {
            pid: 100,
            name: "client".to_owned(),
            threads: vec![thread(CALLER, "caller")],
            unrecorded_threads: 0,
        };
        let server = ProcessRecord {
            pid: 200,
            name: "server".to_owned(),
            threads: vec![
                thread(READER, "reader"),
                ThreadRecord {
                    lane: Some("pool 1, priority 50".to_owned()),
                    ..thread(WORKER, "worker")
                },
            ],
            unrecorded_threads: 0,
        };
        let kernel = RecordedTrace {
            begin_ns: 0,
            ends_ns: [(0, END_NS), (1, END_NS), (2, END_NS)].into(),
            ..RecordedTrace::default()
        };
        let host = HostRecord {
            name: "plant".to_owned(),
            boot_id: Some("of the plant".to_owned()),
            ahead_ns: 0,
            processes: vec![client, server],
            kernel: Ok(kernel),
        };
        Self {
            recording: Recording { hosts: vec![host] },
        }
    }

    fn event(&mut self, cpu: usize, at_ns: u64, kind: TraceEventKind) {
        let kernel = self.recording.hosts[0].kernel.as_mut().unwrap();
        if let TraceEventKind::Switched { from, to, .. } = kind {
            let named = [from, to].map(|id| (id, name(id).to_owned()));
            kernel.names.extend(named);
        }
        let of_cpu = kernel.events.entry(cpu).or_default();
        of_cpu.push(TraceEvent { at_ns, kind });
    }

    fn keep(&mut self, process: usize, thread: usize, call: CallRecord) {
        let threads = &mut self.recording.hosts[0].processes[process].threads;
        threads[thread].calls.push(call);
    }

    fn call(&mut self, number: u64, planted: Planted) {
        let begin_ns = 1_000_000 + number * 50_000_000;
        let request_id = number as u32 + 1;
        let late_ns = |kind| if planted == kind { DELAY_NS } else { 0 };
        let sent_ns = begin_ns + 5_000;
        self.event(0, begin_ns - 10_000, woken(CALLER));
        self.event(0, begin_ns - 8_000, switched(0, false, CALLER));
        self.event(0, sent_ns + 1_000, switched(CALLER, false, 0));
        // The reader has a CPU of its own.
        let arrived_ns = sent_ns + 15_000 + late_ns(Planted::SlowNetwork);
        self.event(2, arrived_ns, woken(READER));
        self.event(2, arrived_ns + 2_000, switched(0, false, READER));
        let read_ns = arrived_ns + 5_000;
        let mut handed_ns = read_ns;
        if planted == Planted::BusyNeighbourOfReader {
            // The worker has ended another call just before.
            self.event(1, read_ns - 20_000, woken(WORKER));
            self.event(1, read_ns - 18_000, switched(0, false, WORKER));
            self.event(1, read_ns - 1_000, switched(WORKER, false, 0));
            self.event(2, read_ns + 500, switched(READER, true, BUSY));
            handed_ns += DELAY_NS;
            self.event(2, handed_ns, switched(BUSY, false, READER));
        }
        self.event(2, handed_ns + 3_000, switched(READER, false, 0));
        let turn_ns = self.turn(handed_ns, planted);
        let done_ns = self.execute(turn_ns, planted);
        self.event(1, done_ns + 3_000, switched(WORKER, false, 0));
        let woken_ns = done_ns + 12_000;
        self.event(0, woken_ns, woken(CALLER));
        self.event(0, woken_ns + 2_000, switched(0, false, CALLER));
        let last_ns = woken_ns + 5_000;
        self.event(0, last_ns + 5_000, switched(CALLER, false, 0));
        let client = CallRecord {
            request_id,
            ..call(CallSide::Client, "get", [begin_ns, sent_ns, last_ns])
        };
        self.keep(0, 0, client);
        let server = CallRecord {
            request_id,
            ..call(CallSide::Server, "get", [read_ns, turn_ns, done_ns])
        };
        self.keep(1, 1, server);
    }

    /// The worker gets its CPU; before, it may have executed another call.
    fn turn(&mut self, read_ns: u64, planted: Planted) -> u64 {
        match planted {
            Planted::FullQueue => {
                self.event(1, read_ns - 100_000, woken(WORKER));
                self.event(1, read_ns - 98_000, switched(0, false, WORKER));
                let times = [read_ns - 110_000, read_ns - 90_000, read_ns + DELAY_NS];
                let other = CallRecord {
                    connection: 8,
                    ..call(CallSide::Server, "bulk", times)
                };
                self.keep(1, 1, other);
                read_ns + DELAY_NS + 2_000
            }
            Planted::KernelSection => {
                self.event(1, read_ns - 50_000, switched(0, false, LAZY));
                self.event(1, read_ns + 1_000, woken(WORKER));
                let in_ns = read_ns + DELAY_NS;
                self.event(1, in_ns, switched(LAZY, true, WORKER));
                in_ns + 2_000
            }
            _ => {
                self.event(1, read_ns + 1_000, woken(WORKER));
                self.event(1, read_ns + 3_000, switched(0, false, WORKER));
                read_ns + 5_000
            }
        }
    }

    fn execute(&mut self, turn_ns: u64, planted: Planted) -> u64 {
        let middle_ns = turn_ns + 50_000;
        let after_ns = middle_ns + DELAY_NS;
        match planted {
            Planted::BusyNeighbour => {
                self.event(1, middle_ns, switched(WORKER, true, BUSY));
                self.event(1, after_ns, switched(BUSY, false, WORKER));
            }
            Planted::FairServer => {
                self.event(1, middle_ns, switched(WORKER, true, LAZY));
                self.event(1, after_ns, switched(LAZY, true, WORKER));
            }
            Planted::Interrupt => {
                self.event(1, middle_ns, TraceEventKind::InterruptBegan);
                self.event(1, after_ns, TraceEventKind::InterruptEnded);
            }
            Planted::PageFault => {
                let fault = TraceEventKind::PageFault { thread: WORKER };
                self.event(1, middle_ns - 4_000, fault);
                self.event(1, middle_ns, switched(WORKER, false, 0));
                self.event(1, after_ns - 2_000, woken(WORKER));
                self.event(1, after_ns, switched(0, false, WORKER));
            }
            Planted::LongerExecution => {}
            _ => return turn_ns + 100_000,
        }
        after_ns + 50_000
    }
}

const END_NS: u64 = 1_000_000_000;
