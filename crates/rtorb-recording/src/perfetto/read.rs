//! From a trace to a recording.

use std::collections::BTreeMap;
use std::io::{self, BufRead};

use prost::Message as _;
use rtorb_host::kernel_trace::RecordedTrace;

use super::ftrace;
use super::messages::{
    AnnotationValue, EventType, FtraceEventBundle, PacketData, TracePacket, TrackDescriptor,
    TrackEvent,
};
use super::write::{BOOT, CATEGORY, CPU_END, HOST, LOST, UNRECORDED, before_second};
use crate::records::{
    CallOutcome, CallRecord, CallSide, HostRecord, ProcessRecord, Recording, ThreadRecord,
};

/// Returns the recording that a trace is, or that of several traces one behind the other.
pub(super) fn recording(mut source: impl BufRead) -> Result<Recording, String> {
    let mut whole = Recording::default();
    let mut reader = Reader::default();
    for number in 0..PACKETS_MAX {
        let failed = |what: String| format!("packet {number}: {what}");
        let Some(packet) = next_packet(&mut source).map_err(failed)? else {
            add(&mut whole, reader)?;
            return Ok(whole);
        };
        if reader.has_events && is_host(&packet) {
            add(&mut whole, std::mem::take(&mut reader))?;
        }
        reader.packet(&packet).map_err(failed)?;
    }
    Err(format!("it has more than {PACKETS_MAX} packets"))
}

/// Adds the trace that was read.
fn add(whole: &mut Recording, reader: Reader) -> Result<(), String> {
    whole.add(reader.finish()?);
    if whole.hosts.len() > HOSTS_MAX {
        return Err(too_many_hosts());
    }
    Ok(())
}

fn too_many_hosts() -> String {
    format!("it has more than {HOSTS_MAX} hosts")
}

/// Reads the next packet of a trace, if there is one. One at a time: a few bytes of a file may be much more memory.
fn next_packet(source: &mut impl BufRead) -> Result<Option<TracePacket>, String> {
    let broken = |error: io::Error| error.to_string();
    match source.fill_buf().map_err(broken)?.first() {
        None => return Ok(None),
        Some(&PACKET) => source.consume(1),
        Some(_) => return Err("something else than a packet".to_owned()),
    }
    let (mut digits, mut count) = ([0; DIGITS_MAX], 0);
    while count < DIGITS_MAX && (count == 0 || digits[count - 1] & MORE != 0) {
        source
            .read_exact(&mut digits[count..=count])
            .map_err(broken)?;
        count += 1;
    }
    let length = prost::decode_length_delimiter(&digits[..count]);
    let length = length.map_err(|error| error.to_string())?;
    if length > PACKET_BYTES_MAX {
        return Err(format!("it has more than {PACKET_BYTES_MAX} bytes"));
    }
    let mut packet = vec![0; length];
    source.read_exact(&mut packet).map_err(broken)?;
    TracePacket::decode(&packet[..])
        .map(Some)
        .map_err(|error| error.to_string())
}

/// Returns true for the track of a host, with which a trace begins.
fn is_host(packet: &TracePacket) -> bool {
    match &packet.data {
        Some(PacketData::Track(track)) => host_name(track).is_some(),
        _ => false,
    }
}

fn host_name(track: &TrackDescriptor) -> Option<&str> {
    let name = track.name().strip_prefix(HOST)?;
    track.parent_uuid.is_none().then_some(name)
}

/// The place of a thread.
#[derive(Clone, Copy)]
struct ThreadPlace {
    host: usize,
    process: usize,
    thread: usize,
}

#[derive(Default)]
struct Reader {
    recording: Recording,
    /// By the number of its sequence of packets.
    host_of_sequence: BTreeMap<u32, usize>,
    host_of_track: BTreeMap<u64, usize>,
    process_of_track: BTreeMap<u64, (usize, usize)>,
    thread_of_track: BTreeMap<u64, ThreadPlace>,
    /// By its host, its process and its id.
    thread_of_id: BTreeMap<(usize, usize, u32), usize>,
    /// Of further tracks: the process, and the name.
    further: BTreeMap<u64, (u64, String)>,
    /// The slices of each track that have begun: those that are calls, with their begins.
    open: BTreeMap<u64, Vec<Option<Begun>>>,
    /// Whether events came already, which are behind all tracks.
    has_events: bool,
    kernel_events: usize,
    tracks: usize,
}

/// A call whose slice has begun.
struct Begun {
    at: ThreadPlace,
    begin_ns: u64,
    call: CallRecord,
    before_second_ns: Option<u64>,
}

impl Reader {
    /// Takes a packet. Those of tracks come first, then of each host what is said of it, whose clock the others need.
    fn packet(&mut self, packet: &TracePacket) -> Result<(), String> {
        match &packet.data {
            Some(PacketData::Track(track)) => self.track(packet, track),
            Some(PacketData::Event(event)) => {
                self.has_events = true;
                if self.host_of_track.contains_key(&event.track_uuid()) {
                    self.host(event)
                } else {
                    self.event(packet, event)
                }
            }
            Some(PacketData::Ftrace(bundle)) => self.bundle(packet, bundle),
            None => Ok(()),
        }
    }

    fn bundle(&mut self, packet: &TracePacket, bundle: &FtraceEventBundle) -> Result<(), String> {
        self.has_events = true;
        self.kernel_events += bundle.event.len();
        if self.kernel_events > KERNEL_EVENTS_MAX {
            return Err(format!(
                "it has more than {KERNEL_EVENTS_MAX} events of the kernel"
            ));
        }
        let host = self.host_of(packet)?;
        let host = &mut self.recording.hosts[host];
        let ahead_ns = host.ahead_ns;
        if let Ok(record) = &mut host.kernel {
            ftrace::add(bundle, record, |at_ns| {
                at_ns.saturating_add_signed(ahead_ns)
            });
        }
        Ok(())
    }

    fn track(&mut self, packet: &TracePacket, track: &TrackDescriptor) -> Result<(), String> {
        if self.tracks >= TRACKS_MAX {
            return Err(format!("it has more than {TRACKS_MAX} tracks"));
        }
        self.tracks += 1;
        let uuid = track.uuid();
        if let Some(name) = host_name(track) {
            let hosts = &mut self.recording.hosts;
            let boot_id = track.description().strip_prefix(BOOT);
            let known = hosts.iter().position(|host| host.is(name, boot_id));
            let host = known.unwrap_or(hosts.len());
            if known.is_none() {
                if host == HOSTS_MAX {
                    return Err(too_many_hosts());
                }
                hosts.push(HostRecord {
                    name: name.to_owned(),
                    boot_id: boot_id.map(str::to_owned),
                    ahead_ns: 0,
                    processes: Vec::new(),
                    kernel: Err("the file does not say why".to_owned()),
                });
            }
            self.host_of_sequence
                .insert(packet.trusted_packet_sequence_id(), host);
            self.host_of_track.insert(uuid, host);
        } else if let Some(process) = &track.process {
            let host = self.host_of(packet)?;
            let processes = &mut self.recording.hosts[host].processes;
            self.process_of_track.insert(uuid, (host, processes.len()));
            processes.push(ProcessRecord {
                pid: process.pid().cast_unsigned(),
                name: process.process_name().to_owned(),
                threads: Vec::new(),
                unrecorded_threads: 0,
            });
        } else if let Some(thread) = &track.thread {
            let parent = self.process_of_track.get(&track.parent_uuid());
            let (host, process) = *parent.ok_or("a thread has no process")?;
            let threads = &mut self.recording.hosts[host].processes[process].threads;
            let place = ThreadPlace {
                host,
                process,
                thread: threads.len(),
            };
            let tid = u32::try_from(thread.tid());
            let tid = tid.map_err(|_| "the id of a thread is no such number")?;
            let known = self.thread_of_id.entry((host, process, tid));
            known.or_insert(place.thread);
            threads.push(ThreadRecord {
                tid,
                name: thread.thread_name().to_owned(),
                lane: track.description.clone(),
                calls: Vec::new(),
                lost: 0,
            });
            self.thread_of_track.insert(uuid, place);
        } else {
            let further = (track.parent_uuid(), track.name().to_owned());
            self.further.insert(uuid, further);
        }
        Ok(())
    }

    fn host_of(&self, packet: &TracePacket) -> Result<usize, String> {
        let found = self
            .host_of_sequence
            .get(&packet.trusted_packet_sequence_id());
        found.copied().ok_or_else(|| "is of no host".to_owned())
    }

    fn host(&mut self, event: &TrackEvent) -> Result<(), String> {
        let notes = Notes::of(event);
        let host = self.host_of_track[&event.track_uuid()];
        let host = &mut self.recording.hosts[host];
        host.ahead_ns = notes.integer("ahead_ns").unwrap_or(0);
        host.kernel = match (notes.natural("kernel_begin_ns"), notes.text("no_kernel")) {
            (Some(begin_ns), _) => {
                let ends = notes.by_name.iter();
                let ends = ends.filter_map(|(name, value)| {
                    let cpu = name.strip_prefix(CPU_END)?.parse().ok()?;
                    match value {
                        AnnotationValue::Natural(end_ns) => Some((cpu, *end_ns)),
                        _ => None,
                    }
                });
                Ok(RecordedTrace {
                    begin_ns,
                    ends_ns: ends.collect(),
                    lost: notes.natural("kernel_lost").unwrap_or(0),
                    ..RecordedTrace::default()
                })
            }
            (None, Some(why)) => Err(why.to_owned()),
            (None, None) => return Err("a host does not say whether it has a record".to_owned()),
        };
        Ok(())
    }

    fn event(&mut self, packet: &TracePacket, event: &TrackEvent) -> Result<(), String> {
        let track = event.track_uuid();
        let host = self.host_of(packet)?;
        let ahead_ns = self.recording.hosts[host].ahead_ns;
        let at_ns = packet.timestamp().saturating_add_signed(ahead_ns);
        match event.r#type() {
            EventType::Instant if event.name() == LOST => {
                let at = self.thread_of_track.get(&track);
                let at = *at.ok_or("lost calls are of no thread")?;
                let lost = Notes::of(event).natural("lost");
                let lost = lost.ok_or("lost calls have no number")?;
                let thread = self.thread(at);
                thread.lost = thread.lost.saturating_add(lost);
            }
            EventType::Instant if event.name() == UNRECORDED => {
                let at = self.process_of_track.get(&track);
                let (host, process) =
                    *at.ok_or("threads that are not recorded are of no process")?;
                let threads = Notes::of(event).natural("threads");
                self.recording.hosts[host].processes[process].unrecorded_threads =
                    threads.ok_or("threads that are not recorded have no number")?;
            }
            EventType::SliceBegin => {
                let begun = self.begun(event, at_ns)?;
                let open = self.open.entry(track).or_default();
                if open.len() >= DEPTH_MAX {
                    return Err(format!("more than {DEPTH_MAX} slices are in one another"));
                }
                open.push(begun);
            }
            EventType::SliceEnd => {
                let open = self.open.get_mut(&track).and_then(Vec::pop);
                if let Some(begun) = open.ok_or("a slice ends that has not begun")? {
                    self.end(begun, at_ns)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// A slice that begins; nothing if it is not the one of a call that has its annotations.
    fn begun(&self, event: &TrackEvent, begin_ns: u64) -> Result<Option<Begun>, String> {
        let notes = Notes::of(event);
        let is_ours = event.categories.iter().any(|name| name == CATEGORY);
        let Some(side) = notes.text("side").filter(|_| is_ours) else {
            return Ok(None);
        };
        let natural = |name: &str| {
            let value = notes.natural(name);
            value.ok_or_else(|| format!("a call has no {name}"))
        };
        let side = CallSide::of_name(side).ok_or_else(|| format!("{side:?} is no side"))?;
        let outcome = notes.text("outcome").unwrap_or_default();
        let outcome = CallOutcome::of_name(outcome)
            .ok_or_else(|| format!("{outcome:?} is no outcome of a call"))?;
        let priority = notes
            .integer("priority")
            .and_then(|one| i16::try_from(one).ok());
        let too_large = |_| "a number of a call is too large".to_owned();
        Ok(Some(Begun {
            at: self.place(event.track_uuid())?,
            begin_ns,
            before_second_ns: notes.natural(before_second(side)),
            call: CallRecord {
                side,
                operation: event.name().to_owned(),
                outcome,
                cpu: u16::try_from(natural("cpu")?).map_err(too_large)?,
                priority: priority.ok_or("a call has no priority")?,
                request_id: u32::try_from(natural("request_id")?).map_err(too_large)?,
                connection: natural("connection")?,
                first_ns: 0,
                second_ns: 0,
                last_ns: 0,
            },
        }))
    }

    /// The thread of a track: its own, or a further one, whose name ends with that of the thread.
    fn place(&self, track: u64) -> Result<ThreadPlace, String> {
        if let Some(place) = self.thread_of_track.get(&track) {
            return Ok(*place);
        }
        let further = self.further.get(&track);
        let (parent, name) = further.ok_or("a call is on no track")?;
        let process = self.process_of_track.get(parent);
        let (host, process) = *process.ok_or("a track has no process")?;
        let tid = name.rsplit_once(' ').and_then(|(_, tid)| tid.parse().ok());
        let thread = tid.and_then(|tid| self.thread_of_id.get(&(host, process, tid)));
        Ok(ThreadPlace {
            host,
            process,
            thread: *thread.ok_or_else(|| format!("the track {name:?} is of no thread"))?,
        })
    }

    fn end(&mut self, begun: Begun, end_ns: u64) -> Result<(), String> {
        let Begun {
            at,
            begin_ns,
            mut call,
            before_second_ns,
        } = begun;
        call.last_ns = end_ns;
        let wrong = || "the times of a call are wrong".to_owned();
        (call.first_ns, call.second_ns) = match (call.side, before_second_ns) {
            (CallSide::Server, Some(queued_ns)) => {
                let first_ns = begin_ns.checked_sub(queued_ns).ok_or_else(wrong)?;
                (first_ns, begin_ns)
            }
            (_, Some(before_ns)) => {
                let second_ns = begin_ns.checked_add(before_ns).ok_or_else(wrong)?;
                (begin_ns, second_ns)
            }
            (_, None) => (begin_ns, 0),
        };
        if !call.is_ordered() {
            return Err(wrong());
        }
        self.thread(at).calls.push(call);
        Ok(())
    }

    fn thread(&mut self, at: ThreadPlace) -> &mut ThreadRecord {
        &mut self.recording.hosts[at.host].processes[at.process].threads[at.thread]
    }

    fn finish(self) -> Result<Recording, String> {
        if self.recording.hosts.is_empty() {
            return Err("it has no track of a host".to_owned());
        }
        if self.open.values().any(|open| !open.is_empty()) {
            return Err("it ends within a slice: it is not whole".to_owned());
        }
        Ok(self.recording)
    }
}

/// The annotations of an event.
struct Notes<'a> {
    by_name: BTreeMap<&'a str, &'a AnnotationValue>,
}

impl<'a> Notes<'a> {
    fn of(event: &'a TrackEvent) -> Self {
        let each = event.debug_annotations.iter();
        let named = each.filter_map(|note| Some((note.name(), note.value.as_ref()?)));
        Self {
            by_name: named.collect(),
        }
    }

    fn natural(&self, name: &str) -> Option<u64> {
        match self.by_name.get(name) {
            Some(AnnotationValue::Natural(value)) => Some(*value),
            _ => None,
        }
    }

    fn integer(&self, name: &str) -> Option<i64> {
        match self.by_name.get(name) {
            Some(AnnotationValue::Integer(value)) => Some(*value),
            _ => None,
        }
    }

    fn text(&self, name: &str) -> Option<&'a str> {
        match self.by_name.get(name) {
            Some(AnnotationValue::Text(value)) => Some(value),
            _ => None,
        }
    }
}

/// How deep slices may be in one another.
const DEPTH_MAX: usize = 10_000;
/// What one file may have: as much as [`gathering`](crate::gathering) makes, and not more memory than a host has.
const PACKETS_MAX: usize = 16 << 20;
const TRACKS_MAX: usize = 1 << 20;
/// Each track of a host is compared with all hosts.
const HOSTS_MAX: usize = 1000;
const KERNEL_EVENTS_MAX: usize = 48 << 20;
const PACKET_BYTES_MAX: usize = 4 << 20;
/// The field `packet` of `perfetto.protos.Trace`, as it is in a file.
const PACKET: u8 = 1 << 3 | 2;
/// A packet's length has at most this number of bytes. All but the last have the bit below.
const DIGITS_MAX: usize = 10;
const MORE: u8 = 0x80;
