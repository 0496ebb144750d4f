//! A call as parts of its time, each with its cause: they fill the time from its begin to its end.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use rtorb_sched::model::rounded;
use serde::Serialize;

use crate::activity::{Activity, Doing, FIRST_NORMAL, Moment, listed};
use crate::joins::{CallPlace, Joins};
use crate::records::{CallOutcome, CallRecord, CallSide, Recording};

/// What a part of a call's time was spent with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The request was there, and the thread that serves it executed other calls.
    Queue,
    /// A thread could run, and a thread that is as urgent, or more, had the CPU.
    Preempted,
    /// The code of a servant, or of the caller before it sends, had the CPU.
    Execution,
    /// From the sending of a message until its receiver could have it: the ORBs, the kernel's network, and the network.
    Network,
    /// A thread could run, and an interrupt handler or a part of the kernel had the CPU.
    Kernel,
    /// The kernel served page faults.
    PageFault,
    /// The recording does not say.
    Unknown,
}

/// A part of the time of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its begin, in ns of the clock of the first host.
    pub begin_ns: u64,
    /// Its end.
    pub end_ns: u64,
    /// What it was spent with.
    pub cause: Cause,
    /// Who or what that was.
    pub what: String,
}

/// A thread of a call: its own, or one that works for it.
#[derive(Clone, Copy)]
struct Worker {
    place: CallPlace,
    thread: i32,
    /// The thread that wakes it, if that is another one.
    woken_by: Option<i32>,
}

/// Divides calls into parts.
#[derive(Debug)]
pub struct Divider<'a> {
    recording: &'a Recording,
    joins: &'a Joins,
    /// Of each thread, by the place of its first call, the calls whose servants it executed, in the order of their turns.
    executed: BTreeMap<CallPlace, Vec<usize>>,
    /// Of each host, what its threads did; none without a record of its kernel.
    activities: Vec<Option<Activity>>,
}

impl fmt::Display for Cause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self {
            Self::Queue => "queue",
            Self::Preempted => "preempted",
            Self::Execution => "execution",
            Self::Network => "network",
            Self::Kernel => "kernel",
            Self::PageFault => "page_fault",
            Self::Unknown => "unknown",
        };
        formatter.pad(word)
    }
}

impl<'a> Divider<'a> {
    /// Of the calls of a recording.
    pub fn new(recording: &'a Recording, joins: &'a Joins) -> Self {
        let hosts = recording.hosts.iter();
        let activities = hosts
            .map(|host| host.kernel.as_ref().ok().map(Activity::of))
            .collect();
        let mut executed: BTreeMap<CallPlace, Vec<usize>> = BTreeMap::new();
        for (place, call) in recording.places() {
            let is_executed = matches!(call.side, CallSide::Server | CallSide::Collocated);
            if is_executed && call.second_ns != 0 {
                let at = CallPlace { call: 0, ..place };
                executed.entry(at).or_default().push(place.call);
            }
        }
        for (at, calls) in &mut executed {
            let of_thread = &recording.thread(*at).calls;
            calls.sort_by_key(|index| of_thread[*index].second_ns);
        }
        Self {
            recording,
            joins,
            executed,
            activities,
        }
    }

    /// Returns the begin and the end of a call, on the clock of the first host. A oneway ends with its servant, if that is known.
    pub fn span(&self, place: CallPlace) -> (u64, u64) {
        let call = self.recording.call(place);
        let end_ns = self.common_ns(place, call.last_ns);
        let server = self.joins.server_of.get(&place);
        let served = server.map(|server| (*server, self.recording.call(*server)));
        let end_ns = match served {
            Some((server, served)) if self.is_oneway(place, server) => {
                end_ns.max(self.common_ns(server, served.last_ns))
            }
            _ => end_ns,
        };
        (self.common_ns(place, call.first_ns), end_ns)
    }

    /// Returns the parts of a call, up to a moment of the clock of the first host. They fill the time from its begin until then.
    pub fn parts(&self, place: CallPlace, until_ns: u64) -> Vec<Part> {
        let (begin_ns, end_ns) = self.span(place);
        let mut parts = Parts {
            at_ns: begin_ns,
            end_ns: end_ns.min(until_ns),
            parts: Vec::new(),
        };
        self.call(place, &mut parts, 0);
        parts.fill(parts.end_ns, Cause::Unknown, || {
            "the recording has nothing of this time".to_owned()
        });
        parts.parts
    }

    /// Whether a client did not wait for the servant: on different hosts if the request waited longer than the client, as clocks do not say.
    fn is_oneway(&self, client: CallPlace, server: CallPlace) -> bool {
        let (called, served) = (self.recording.call(client), self.recording.call(server));
        if client.host == server.host {
            return called.is_oneway(served);
        }
        let waited_ns = called.last_ns.saturating_sub(called.second_or_last_ns());
        let turn_after_ns = served.second_or_last_ns().saturating_sub(served.first_ns);
        called.outcome == CallOutcome::Done && turn_after_ns > waited_ns
    }

    /// Returns a moment of a call's host on the clock of the first host.
    fn common_ns(&self, place: CallPlace, at_ns: u64) -> u64 {
        at_ns.saturating_add_signed(self.recording.host(place).ahead_ns.saturating_neg())
    }

    fn call(&self, place: CallPlace, parts: &mut Parts, depth: usize) {
        let call = self.recording.call(place);
        let second_ns = self.common_ns(place, call.second_or_last_ns());
        let last_ns = self.common_ns(place, call.last_ns);
        match call.side {
            CallSide::Client | CallSide::Started => {
                self.execute(place, second_ns, parts);
                match self.joins.server_of.get(&place) {
                    Some(server) => {
                        self.request(*server, parts);
                        self.serve(*server, parts, depth);
                        self.reply(place, *server, parts);
                    }
                    None => parts.fill(last_ns, Cause::Unknown, || self.no_server(place)),
                }
            }
            CallSide::Collocated => {
                self.execute(place, second_ns, parts);
                self.execute(place, last_ns, parts);
            }
            CallSide::Server => self.serve(place, parts, depth),
        }
    }

    /// A request on its way: the thread that read it may have been kept from a CPU, or have executed other calls.
    fn request(&self, server: CallPlace, parts: &mut Parts) {
        let served = self.recording.call(server);
        let until_ns = self.common_ns(server, served.first_ns);
        let reader = self.reader(server);
        self.busy(reader, until_ns, parts, Cause::Network);
        let what = || format!("request of {} on its way", served.operation);
        self.wait(reader, until_ns, parts, (Cause::Network, &what));
    }

    /// From the queue to the end of the servant.
    fn serve(&self, server: CallPlace, parts: &mut Parts, depth: usize) {
        let served = self.recording.call(server);
        let turn_ns = self.common_ns(server, served.second_or_last_ns());
        let (own, reader) = (self.worker(server), self.reader(server).thread);
        let worker = Worker {
            woken_by: (reader != own.thread).then_some(reader),
            ..own
        };
        self.busy(worker, turn_ns, parts, Cause::Queue);
        let what = || format!("{} waited for its turn", served.operation);
        self.wait(worker, turn_ns, parts, (Cause::Queue, &what));
        let inner = listed(&self.joins.nested, &server);
        for nested in inner.iter().filter(|_| depth < DEPTH_MAX) {
            let (begin_ns, end_ns) = self.span(*nested);
            self.execute(server, begin_ns, parts);
            let mut within = parts.until(end_ns);
            self.call(*nested, &mut within, depth + 1);
            parts.take(within);
        }
        self.execute(server, self.common_ns(server, served.last_ns), parts);
    }

    fn reply(&self, client: CallPlace, server: CallPlace, parts: &mut Parts) {
        let operation = &self.recording.call(client).operation;
        let end_ns = self.span(client).1;
        if self.recording.call(server).outcome == CallOutcome::Deferred {
            let what = || format!("the servant of {operation} deferred its reply");
            parts.fill(end_ns, Cause::Unknown, what);
        }
        let what = || format!("reply of {operation} on its way");
        if self.recording.call(client).side == CallSide::Started {
            self.reply_to_started(client, end_ns, parts, &what);
        } else {
            self.wait(self.worker(client), end_ns, parts, (Cause::Network, &what));
        }
    }

    /// The reply to a started call: the thread that started it may execute, and read replies only then.
    fn reply_to_started(
        &self,
        client: CallPlace,
        end_ns: u64,
        parts: &mut Parts,
        what: &dyn Fn() -> String,
    ) {
        let caller = self.worker(client);
        for moment in self.moments(caller, end_ns, parts) {
            if moment.doing == Doing::Running {
                self.execute(client, moment.end_ns, parts);
            } else {
                self.wait(caller, moment.end_ns, parts, (Cause::Network, what));
            }
        }
    }

    /// A time in which the thread of a call executes its code.
    fn execute(&self, place: CallPlace, until_ns: u64, parts: &mut Parts) {
        let call = self.recording.call(place);
        let who = &self.recording.process(place).name;
        for moment in self.moments(self.worker(place), until_ns, parts) {
            let (cause, what) = match self.taken(place, moment.doing) {
                Some(taken) => taken,
                None if moment.doing == Doing::Running => {
                    (Cause::Execution, format!("{} in {who}", name_of(call)))
                }
                None => {
                    let what = format!(
                        "{} in {who} waited for something that is not in the recording: a lock, a timer, a device",
                        name_of(call)
                    );
                    (Cause::Unknown, what)
                }
            };
            parts.fill(moment.end_ns, cause, || what);
        }
    }

    /// The times in which the thread that was to take a request executed other calls. `cause` is that of the times between them.
    fn busy(&self, worker: Worker, until_ns: u64, parts: &mut Parts, cause: Cause) {
        let server = worker.place;
        let own = &self.recording.call(server).operation;
        let how = match cause {
            Cause::Network => "waited unread",
            _ => "waited",
        };
        let mut others = self.others(worker, (parts.at_ns, until_ns));
        others.sort_by_key(|(begin_ns, ..)| *begin_ns);
        for (begin_ns, end_ns, operation) in others {
            let what = || format!("{own} {how}");
            self.wait(worker, begin_ns, parts, (cause, &what));
            parts.fill(end_ns.min(until_ns), Cause::Queue, || {
                format!("{own} {how} while its thread executed {operation}")
            });
        }
    }

    /// The servants of other calls that a thread executed in a time: begin, end and operation of each.
    fn others(&self, worker: Worker, time: (u64, u64)) -> Vec<(u64, u64, &'a str)> {
        let server = worker.place;
        let threads = self.recording.process(server).threads.iter().enumerate();
        let mut found = threads.filter(|(_, one)| one.tid.cast_signed() == worker.thread);
        let Some((thread, record)) = found.next() else {
            return Vec::new();
        };
        let at = CallPlace {
            thread,
            call: 0,
            ..server
        };
        let executed = listed(&self.executed, &at);
        let before = |at_ns: u64| {
            executed.partition_point(|index| {
                self.common_ns(server, record.calls[*index].second_ns) < at_ns
            })
        };
        // Those that began earlier and have not ended are in one another.
        let first = before(time.0).saturating_sub(DEPTH_MAX);
        let begun = executed[..before(time.1)].iter().skip(first);
        let others = begun.take(EXECUTED_MAX).filter(|index| {
            let is_own = thread == server.thread && **index == server.call;
            !is_own
        });
        let others = others.map(|index| (*index, &record.calls[*index]));
        let times = others.map(|(index, call)| {
            let place = CallPlace {
                thread,
                call: index,
                ..server
            };
            let begin_ns = self.common_ns(server, call.second_ns);
            let end_ns = self.common_ns(server, call.last_ns);
            // A servant whose reply its client has does not execute any more, though its thread may have noted that later.
            let client = self.joins.client_of.get(&place);
            let replied_ns = client.map_or(u64::MAX, |client| self.span(*client).1);
            (begin_ns, end_ns.min(replied_ns), call.operation.as_str())
        });
        times
            .filter(|(begin_ns, end_ns, _)| *begin_ns < time.1 && *end_ns > time.0)
            .collect()
    }

    /// A time in which a call waits for a thread: that for which it waits has the cause, unless the thread was kept from a CPU.
    fn wait(
        &self,
        worker: Worker,
        until_ns: u64,
        parts: &mut Parts,
        (cause, what): (Cause, &dyn Fn() -> String),
    ) {
        for moment in self.moments(worker, until_ns, parts) {
            if let (Doing::Asleep, Some(thread)) = (moment.doing, worker.woken_by) {
                let waker = Worker {
                    thread,
                    woken_by: None,
                    ..worker
                };
                self.wait(waker, moment.end_ns, parts, (cause, what));
                continue;
            }
            let (cause, what) = self
                .taken(worker.place, moment.doing)
                .unwrap_or_else(|| (cause, what()));
            parts.fill(moment.end_ns, cause, || what);
        }
    }

    /// What a thread did from the end of the parts on, on the clock of the first host.
    fn moments(&self, worker: Worker, until_ns: u64, parts: &Parts) -> Vec<Moment> {
        let place = worker.place;
        let (begin_ns, end_ns) = (parts.at_ns, until_ns.min(parts.end_ns));
        if begin_ns >= end_ns {
            return Vec::new();
        }
        let Some(activity) = &self.activities[place.host] else {
            return vec![Moment {
                begin_ns,
                end_ns,
                doing: Doing::Unknown,
            }];
        };
        let ahead_ns = self.recording.host(place).ahead_ns;
        let own_ns = |at_ns: u64| at_ns.saturating_add_signed(ahead_ns);
        let mut moments = activity.moments(worker.thread, own_ns(begin_ns), own_ns(end_ns));
        for moment in &mut moments {
            moment.begin_ns = self.common_ns(place, moment.begin_ns);
            moment.end_ns = self.common_ns(place, moment.end_ns);
        }
        moments
    }

    /// What took the CPU from a thread, if something did, or if nothing is known.
    fn taken(&self, place: CallPlace, doing: Doing) -> Option<(Cause, String)> {
        let host = self.recording.host(place);
        let named = |thread: i32| {
            let names = host.kernel.as_ref().ok().map(|record| &record.names);
            let name = names.and_then(|names| names.get(&thread));
            format!("{} ({thread})", name.map_or("a thread", String::as_str))
        };
        Some(match doing {
            Doing::Running | Doing::Asleep => return None,
            Doing::Interrupted { cpu } => (
                Cause::Kernel,
                format!("interrupt handlers on CPU {cpu} of {}", host.name),
            ),
            Doing::Preempted {
                cpu,
                by,
                by_priority,
                priority,
            } => {
                let what = format!(
                    "{}, {}, had CPU {cpu} of {} while a thread with {} could run",
                    named(by),
                    urgency(by_priority),
                    host.name,
                    urgency(priority)
                );
                (Cause::Preempted, what)
            }
            Doing::Kept { cpu, by, is_given } => {
                let cpu = format!("CPU {cpu} of {}", host.name);
                let what = match (by, is_given) {
                    (0, _) => format!(
                        "{cpu} was idle: not yet awake, held by a hypervisor, or not for real-time threads any more (sched_rt_runtime_us)"
                    ),
                    (_, true) => format!("the kernel gave {cpu} to {}, {FAIR_SERVER}", named(by)),
                    (_, false) => format!(
                        "the kernel did not take {cpu} from {}, which is less urgent",
                        named(by)
                    ),
                };
                (Cause::Kernel, what)
            }
            Doing::PageFault => (Cause::PageFault, "page faults".to_owned()),
            Doing::Unknown => {
                let what = match &host.kernel {
                    Ok(record) if record.lost > 0 => format!(
                        "the kernel's record of {} had no room for {} events",
                        host.name, record.lost
                    ),
                    Ok(_) => format!(
                        "the kernel's record of {} does not have this time",
                        host.name
                    ),
                    Err(why) => format!("there is no kernel's record of {}: {why}", host.name),
                };
                (Cause::Unknown, what)
            }
        })
    }

    /// The thread that read a request: one of the process that had a CPU when it was read. It is the servant's if that surely had one: a turn
    /// that ended just then was that of an earlier call.
    fn reader(&self, server: CallPlace) -> Worker {
        let own = self.worker(server);
        let process = self.recording.process(server);
        let threads = process
            .threads
            .iter()
            .map(|thread| thread.tid.cast_signed());
        let threads: BTreeSet<i32> = threads.collect();
        let read_ns = self.recording.call(server).first_ns;
        let Some(activity) = &self.activities[server.host] else {
            return own;
        };
        let running = activity.running_closest(read_ns, &threads, own.thread);
        Worker {
            thread: running.unwrap_or(own.thread),
            ..own
        }
    }

    fn worker(&self, place: CallPlace) -> Worker {
        Worker {
            place,
            thread: self.recording.thread(place).tid.cast_signed(),
            woken_by: None,
        }
    }

    fn no_server(&self, place: CallPlace) -> String {
        let operation = &self.recording.call(place).operation;
        let hosts = self.recording.hosts.iter();
        let threads = hosts
            .flat_map(|host| &host.processes)
            .flat_map(|process| &process.threads);
        let lost: u64 = threads
            .map(|thread| thread.lost)
            .fold(0, u64::saturating_add);
        if lost == 0 {
            format!("the server of {operation} is not in the recording")
        } else {
            format!(
                "the server's end of {operation} is not in the recording, which lost {lost} calls"
            )
        }
    }
}

/// Sums the parts by their causes.
pub fn totals(parts: &[Part]) -> BTreeMap<Cause, u64> {
    let mut totals = BTreeMap::new();
    for part in parts {
        *totals.entry(part.cause).or_insert(0) += part.end_ns - part.begin_ns;
    }
    totals
}

/// Parts that fill a time.
struct Parts {
    /// Up to here they do.
    at_ns: u64,
    end_ns: u64,
    parts: Vec<Part>,
}

impl Parts {
    /// Those that follow, up to an earlier end.
    fn until(&self, end_ns: u64) -> Self {
        Self {
            at_ns: self.at_ns,
            end_ns: end_ns.min(self.end_ns),
            parts: Vec::new(),
        }
    }

    fn take(&mut self, more: Self) {
        self.parts.extend(more.parts);
        self.at_ns = more.at_ns;
    }

    /// A part up to a moment, if that is not reached yet.
    fn fill(&mut self, end_ns: u64, cause: Cause, what: impl FnOnce() -> String) {
        let end_ns = end_ns.min(self.end_ns);
        if end_ns > self.at_ns {
            self.parts.push(Part {
                begin_ns: self.at_ns,
                end_ns,
                cause,
                what: what(),
            });
            self.at_ns = end_ns;
        }
    }
}

fn name_of(call: &CallRecord) -> String {
    match call.side {
        CallSide::Client | CallSide::Started => format!("the caller of {}", call.operation),
        CallSide::Server | CallSide::Collocated => call.operation.clone(),
    }
}

/// A priority of the kernel in words.
fn urgency(priority: i32) -> String {
    if priority < FIRST_NORMAL {
        format!("real-time priority {}", FIRST_NORMAL - 1 - priority)
    } else {
        "no real-time priority".to_owned()
    }
}

/// Formats a time with a fitting unit.
pub(crate) fn time(ns: u64) -> String {
    rounded(ns as f64)
}

/// What it means that the kernel switches to an ordinary thread while a real-time thread can run.
const FAIR_SERVER: &str = "an ordinary thread, while a real-time thread could run: that is its fair server, or before Linux 6.12 its limit of real-time \
                           threads. `rtorb check` says how to end that (rt-throttling)";
/// How many calls are looked at for those that a thread executed in a time.
const EXECUTED_MAX: usize = 10_000;
/// The depth of calls within servants that is looked at.
const DEPTH_MAX: usize = 64;
