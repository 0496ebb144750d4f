//! From a recording to a trace.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher as _};

use super::ftrace;
use super::messages::{
    AnnotationValue, DebugAnnotation, EventType, PacketData, ProcessDescriptor, ThreadDescriptor,
    Trace, TracePacket, TrackDescriptor, TrackEvent,
};
use super::rows::{Slice, rows};
use crate::joins::{CallPlace, Joins};
use crate::records::{CallRecord, CallSide, HostRecord, ProcessRecord, Recording, ThreadRecord};

/// Returns the trace, and how many calls are not in it.
pub(super) fn trace(recording: &Recording, joins: &Joins) -> (Trace, u64) {
    let mut packets = Vec::new();
    let mut left_out = 0;
    let (mut later, flows) = (Vec::new(), flows(recording, joins));
    for (index, host) in recording.hosts.iter().enumerate() {
        let mut writer = Writer {
            host,
            sequence: identity(&("sequence", of_host(host))) as u32 | 1,
            machine: (index > 0).then(|| identity(&("machine", of_host(host))) as u32 | 1),
            tracks: Vec::new(),
            events: Vec::new(),
        };
        writer.host();
        for (process, of_process) in host.processes.iter().enumerate() {
            let place = CallPlace {
                host: index,
                process,
                thread: 0,
                call: 0,
            };
            left_out += writer.process(place, of_process, &flows);
        }
        let kernel = host.kernel.as_ref().ok();
        let bundles = kernel.map(|record| ftrace::bundles(record, |at_ns| common_ns(host, at_ns)));
        let bundles = bundles.unwrap_or_default().into_iter();
        let bundles: Vec<_> = bundles
            .map(|bundle| writer.packet(None, PacketData::Ftrace(bundle)))
            .collect();
        packets.append(&mut writer.tracks);
        later.append(&mut writer.events);
        later.extend(bundles);
    }
    packets.extend(later);
    (Trace { packet: packets }, left_out)
}

/// A number that depends on nothing but its content, also in another run.
fn identity(content: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    // 0 is the track of the whole trace.
    hasher.finish().max(1)
}

/// What makes a host differ from all others.
fn of_host(host: &HostRecord) -> (&str, Option<&str>) {
    (&host.name, host.boot_id.as_deref())
}

/// The number of the arrow of each call that has one: equal at both ends, and another one in another recording.
fn flows(recording: &Recording, joins: &Joins) -> BTreeMap<CallPlace, u64> {
    let pairs = joins.server_of.iter();
    let both = pairs.flat_map(|(client, server)| {
        let host = of_host(recording.host(*client));
        let call = recording.call(*client);
        let thread = (
            recording.process(*client).pid,
            recording.thread(*client).tid,
        );
        let flow = identity(&("flow", host, thread, call.request_id, call.first_ns));
        [(*client, flow), (*server, flow)]
    });
    both.collect()
}

fn common_ns(host: &HostRecord, at_ns: u64) -> u64 {
    at_ns.saturating_add_signed(host.ahead_ns.saturating_neg())
}

/// Writes what one host has.
struct Writer<'a> {
    host: &'a HostRecord,
    sequence: u32,
    machine: Option<u32>,
    tracks: Vec<TracePacket>,
    events: Vec<TracePacket>,
}

/// A slice to be written, with the event of its begin, and with that of the slice in it.
struct Drawn {
    slice: Slice,
    event: TrackEvent,
    inner: Option<TrackEvent>,
}

impl Writer<'_> {
    fn packet(&self, timestamp: Option<u64>, data: PacketData) -> TracePacket {
        TracePacket {
            timestamp: timestamp.map(|at_ns| common_ns(self.host, at_ns)),
            trusted_packet_sequence_id: Some(self.sequence),
            machine_id: self.machine,
            data: Some(data),
        }
    }

    fn track(&mut self, track: TrackDescriptor) {
        let packet = self.packet(None, PacketData::Track(track));
        self.tracks.push(packet);
    }

    fn event(&mut self, at_ns: u64, track: u64, r#type: EventType, event: TrackEvent) {
        let event = TrackEvent {
            track_uuid: Some(track),
            r#type: Some(r#type as i32),
            ..event
        };
        let packet = self.packet(Some(at_ns), PacketData::Event(event));
        self.events.push(packet);
    }

    /// The track of the host, and what is known of it.
    fn host(&mut self) {
        let host = self.host;
        let uuid = identity(&("host", of_host(host)));
        self.track(TrackDescriptor {
            uuid: Some(uuid),
            name: Some(format!("{HOST}{}", host.name)),
            description: host.boot_id.as_ref().map(|id| format!("{BOOT}{id}")),
            ..TrackDescriptor::default()
        });
        let mut notes = vec![integer("ahead_ns", host.ahead_ns)];
        let first = host.processes.iter().flat_map(|process| &process.threads);
        let first = first.flat_map(|thread| thread.calls.iter().map(|call| call.first_ns));
        let mut first_ns = first.min();
        match &host.kernel {
            Ok(record) => {
                notes.push(natural("kernel_begin_ns", record.begin_ns));
                notes.push(natural("kernel_lost", record.lost));
                let ends = record.ends_ns.iter();
                notes
                    .extend(ends.map(|(cpu, end_ns)| natural(&format!("{CPU_END}{cpu}"), *end_ns)));
                first_ns = first_ns.or(Some(record.begin_ns));
            }
            Err(why) => notes.push(text("no_kernel", why)),
        }
        let event = TrackEvent {
            debug_annotations: notes,
            ..named("recording")
        };
        self.event(first_ns.unwrap_or(0), uuid, EventType::Instant, event);
    }

    /// Returns how many calls are left out.
    fn process(
        &mut self,
        place: CallPlace,
        process: &ProcessRecord,
        flows: &BTreeMap<CallPlace, u64>,
    ) -> u64 {
        // Two recordings of one process have a track each.
        let process_of_host = (of_host(self.host), process.pid, place.process);
        let uuid = identity(&("process", process_of_host));
        self.track(TrackDescriptor {
            uuid: Some(uuid),
            process: Some(ProcessDescriptor {
                pid: Some(process.pid.cast_signed()),
                process_name: Some(process.name.clone()),
            }),
            ..TrackDescriptor::default()
        });
        if process.unrecorded_threads > 0 {
            let event = TrackEvent {
                debug_annotations: vec![natural("threads", process.unrecorded_threads)],
                ..named(UNRECORDED)
            };
            let calls = process.threads.iter().flat_map(|thread| &thread.calls);
            let first_ns = calls.map(|call| call.first_ns).min().unwrap_or(0);
            self.event(first_ns, uuid, EventType::Instant, event);
        }
        let mut left_out = 0;
        for (index, thread) in process.threads.iter().enumerate() {
            let at = CallPlace {
                thread: index,
                ..place
            };
            let track = identity(&("thread", uuid, thread.tid));
            self.track(TrackDescriptor {
                uuid: Some(track),
                parent_uuid: Some(uuid),
                description: thread.lane.clone(),
                thread: Some(ThreadDescriptor {
                    pid: Some(process.pid.cast_signed()),
                    tid: Some(thread.tid.into()),
                    thread_name: Some(thread.name.clone()),
                }),
                ..TrackDescriptor::default()
            });
            left_out += self.thread((uuid, track), at, thread, flows);
        }
        left_out
    }

    fn thread(
        &mut self,
        (process, track): (u64, u64),
        at: CallPlace,
        thread: &ThreadRecord,
        flows: &BTreeMap<CallPlace, u64>,
    ) -> u64 {
        let (mut executed, mut queued, mut left_out) = (Vec::new(), Vec::new(), 0);
        for (index, call) in thread.calls.iter().enumerate() {
            if !call.is_ordered() {
                left_out += 1;
                continue;
            }
            let flow = flows.get(&CallPlace { call: index, ..at }).copied();
            draw(call, flow, &mut executed, &mut queued);
        }
        let lost = thread.lost.saturating_add(left_out);
        if lost > 0 {
            let first_ns = thread.calls.iter().map(|call| call.first_ns).min();
            let event = TrackEvent {
                debug_annotations: vec![natural("lost", lost)],
                ..named(LOST)
            };
            self.event(first_ns.unwrap_or(0), track, EventType::Instant, event);
        }
        let calls = format!("calls of {} {}", thread.name, thread.tid);
        self.slices(executed, (process, &calls), Some(track));
        let queue = format!("queue of {} {}", thread.name, thread.tid);
        self.slices(queued, (process, &queue), None);
        left_out
    }

    /// Writes slices: the first row on `track` if there is one, others on tracks of that name.
    fn slices(&mut self, mut drawn: Vec<Drawn>, (process, name): (u64, &str), track: Option<u64>) {
        drawn.sort_by_key(|one| one.slice.order());
        let slices: Vec<Slice> = drawn.iter().map(|one| one.slice).collect();
        let places = rows(&slices);
        let count = places.iter().max().map_or(0, |last| last + 1);
        let mut by_row: Vec<Vec<Drawn>> = (0..count).map(|_| Vec::new()).collect();
        for (row, one) in places.into_iter().zip(drawn) {
            by_row[row].push(one);
        }
        for (row, of_row) in by_row.into_iter().enumerate() {
            let uuid = match track.filter(|_| row == 0) {
                Some(track) => track,
                None => {
                    let uuid = identity(&(process, name, track, row));
                    self.track(TrackDescriptor {
                        uuid: Some(uuid),
                        parent_uuid: Some(process),
                        name: Some(name.to_owned()),
                        ..TrackDescriptor::default()
                    });
                    uuid
                }
            };
            self.row(uuid, of_row);
        }
    }

    /// Writes the slices of a track: begins and ends in the order of time, ends before begins.
    fn row(&mut self, track: u64, drawn: Vec<Drawn>) {
        let with_inner = drawn.into_iter().flat_map(|one| {
            let Slice {
                begin_ns,
                end_ns,
                inner_ns,
            } = one.slice;
            let inner = inner_ns.zip(one.inner);
            let inner = inner.map(|(inner_ns, event)| (inner_ns, end_ns, event));
            [(begin_ns, end_ns, one.event)].into_iter().chain(inner)
        });
        let mut all: Vec<_> = with_inner.collect();
        all.sort_by_key(|(begin_ns, end_ns, _)| (*begin_ns, std::cmp::Reverse(*end_ns)));
        let mut open: Vec<u64> = Vec::new();
        for (begin_ns, end_ns, event) in all {
            while let Some(ended_ns) = open.pop_if(|open_ns| *open_ns <= begin_ns) {
                self.event(ended_ns, track, EventType::SliceEnd, TrackEvent::default());
            }
            self.event(begin_ns, track, EventType::SliceBegin, event);
            open.push(end_ns);
        }
        while let Some(end_ns) = open.pop() {
            self.event(end_ns, track, EventType::SliceEnd, TrackEvent::default());
        }
    }
}

/// Draws a call: one slice has all of its annotations.
fn draw(call: &CallRecord, flow: Option<u64>, executed: &mut Vec<Drawn>, queued: &mut Vec<Drawn>) {
    let flow: Vec<u64> = flow.into_iter().collect();
    let main = TrackEvent {
        debug_annotations: annotations(call),
        ..named(&call.operation)
    };
    let second_ns = (call.second_ns != 0).then_some(call.second_ns);
    let whole = Slice {
        begin_ns: call.first_ns,
        end_ns: call.last_ns,
        inner_ns: None,
    };
    if call.side == CallSide::Server {
        let last = TrackEvent {
            terminating_flow_ids: flow.clone(),
            ..main
        };
        let Some(turn_ns) = second_ns else {
            queued.push(plain(whole, last));
            return;
        };
        if turn_ns > call.first_ns {
            let waiting = TrackEvent {
                flow_ids: flow,
                ..named(&call.operation)
            };
            let wait = Slice {
                end_ns: turn_ns,
                ..whole
            };
            queued.push(plain(wait, waiting));
        }
        let execution = Slice {
            begin_ns: turn_ns,
            ..whole
        };
        executed.push(plain(execution, last));
    } else {
        let name = match call.side {
            CallSide::Client | CallSide::Started => "reply awaited",
            _ => "servant",
        };
        let inner = TrackEvent {
            flow_ids: flow,
            ..named(name)
        };
        executed.push(Drawn {
            slice: Slice {
                inner_ns: second_ns,
                ..whole
            },
            event: main,
            inner: second_ns.map(|_| inner),
        });
    }
}

fn plain(slice: Slice, event: TrackEvent) -> Drawn {
    Drawn {
        slice,
        event,
        inner: None,
    }
}

fn annotations(call: &CallRecord) -> Vec<DebugAnnotation> {
    let mut notes = vec![
        text("side", call.side.name()),
        text("outcome", call.outcome.name()),
        natural("cpu", call.cpu.into()),
        integer("priority", call.priority.into()),
        natural("request_id", call.request_id.into()),
        natural("connection", call.connection),
    ];
    if call.second_ns != 0 {
        notes.push(natural(
            before_second(call.side),
            call.second_ns - call.first_ns,
        ));
    }
    notes
}

/// The name of the time from the first moment of a call to the second.
pub(super) fn before_second(side: CallSide) -> &'static str {
    match side {
        CallSide::Client | CallSide::Started => "sent_after_ns",
        CallSide::Server => "queued_ns",
        CallSide::Collocated => "turn_after_ns",
    }
}

fn named(name: &str) -> TrackEvent {
    TrackEvent {
        name: Some(name.to_owned()),
        categories: vec![CATEGORY.to_owned()],
        ..TrackEvent::default()
    }
}

fn annotation(name: &str, value: AnnotationValue) -> DebugAnnotation {
    DebugAnnotation {
        name: Some(name.to_owned()),
        value: Some(value),
    }
}

fn natural(name: &str, value: u64) -> DebugAnnotation {
    annotation(name, AnnotationValue::Natural(value))
}

fn integer(name: &str, value: i64) -> DebugAnnotation {
    annotation(name, AnnotationValue::Integer(value))
}

fn text(name: &str, value: &str) -> DebugAnnotation {
    annotation(name, AnnotationValue::Text(value.to_owned()))
}

/// The category of all events.
pub(super) const CATEGORY: &str = "rtorb";
/// The beginning of the name of a host's track.
pub(super) const HOST: &str = "host ";
/// The beginning of the description of a host's track, before its boot id.
pub(super) const BOOT: &str = "boot ";
/// The beginning of the annotation with the end of a CPU's record.
pub(super) const CPU_END: &str = "kernel_end_ns_of_cpu_";
/// The name of the instant that counts threads whose calls are not recorded.
pub(super) const UNRECORDED: &str = "threads not recorded";
/// The name of the instant that counts lost calls.
pub(super) const LOST: &str = "calls lost";
