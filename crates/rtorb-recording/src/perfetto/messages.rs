//! The messages of Perfetto's traces that recordings use, with the field numbers of its protos.

/// `perfetto.protos.Trace`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Trace {
    #[prost(message, repeated, tag = "1")]
    pub(super) packet: Vec<TracePacket>,
}

/// `perfetto.protos.TracePacket`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct TracePacket {
    #[prost(uint64, optional, tag = "8")]
    pub(super) timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    pub(super) trusted_packet_sequence_id: Option<u32>,
    #[prost(uint32, optional, tag = "98")]
    pub(super) machine_id: Option<u32>,
    #[prost(oneof = "PacketData", tags = "1, 11, 60")]
    pub(super) data: Option<PacketData>,
}

/// The content of a packet.
#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum PacketData {
    #[prost(message, tag = "1")]
    Ftrace(FtraceEventBundle),
    #[prost(message, tag = "11")]
    Event(TrackEvent),
    #[prost(message, tag = "60")]
    Track(TrackDescriptor),
}

/// `perfetto.protos.TrackDescriptor`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    pub(super) uuid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    pub(super) name: Option<String>,
    #[prost(message, optional, tag = "3")]
    pub(super) process: Option<ProcessDescriptor>,
    #[prost(message, optional, tag = "4")]
    pub(super) thread: Option<ThreadDescriptor>,
    #[prost(uint64, optional, tag = "5")]
    pub(super) parent_uuid: Option<u64>,
    #[prost(string, optional, tag = "14")]
    pub(super) description: Option<String>,
}

/// `perfetto.protos.ProcessDescriptor`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ProcessDescriptor {
    #[prost(int32, optional, tag = "1")]
    pub(super) pid: Option<i32>,
    #[prost(string, optional, tag = "6")]
    pub(super) process_name: Option<String>,
}

/// `perfetto.protos.ThreadDescriptor`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ThreadDescriptor {
    #[prost(int32, optional, tag = "1")]
    pub(super) pid: Option<i32>,
    #[prost(int64, optional, tag = "2")]
    pub(super) tid: Option<i64>,
    #[prost(string, optional, tag = "5")]
    pub(super) thread_name: Option<String>,
}

/// `perfetto.protos.TrackEvent`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct TrackEvent {
    #[prost(message, repeated, tag = "4")]
    pub(super) debug_annotations: Vec<DebugAnnotation>,
    #[prost(enumeration = "EventType", optional, tag = "9")]
    pub(super) r#type: Option<i32>,
    #[prost(uint64, optional, tag = "11")]
    pub(super) track_uuid: Option<u64>,
    #[prost(string, repeated, tag = "22")]
    pub(super) categories: Vec<String>,
    #[prost(string, optional, tag = "23")]
    pub(super) name: Option<String>,
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    pub(super) flow_ids: Vec<u64>,
    #[prost(fixed64, repeated, packed = "false", tag = "48")]
    pub(super) terminating_flow_ids: Vec<u64>,
}

/// `perfetto.protos.TrackEvent.Type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, prost::Enumeration)]
#[repr(i32)]
pub(super) enum EventType {
    Unspecified = 0,
    SliceBegin = 1,
    SliceEnd = 2,
    Instant = 3,
}

/// `perfetto.protos.DebugAnnotation`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct DebugAnnotation {
    #[prost(string, optional, tag = "10")]
    pub(super) name: Option<String>,
    #[prost(oneof = "AnnotationValue", tags = "3, 4, 6")]
    pub(super) value: Option<AnnotationValue>,
}

/// The value of an annotation.
#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum AnnotationValue {
    #[prost(uint64, tag = "3")]
    Natural(u64),
    #[prost(int64, tag = "4")]
    Integer(i64),
    #[prost(string, tag = "6")]
    Text(String),
}

/// `perfetto.protos.FtraceEventBundle`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct FtraceEventBundle {
    #[prost(uint32, optional, tag = "1")]
    pub(super) cpu: Option<u32>,
    #[prost(message, repeated, tag = "2")]
    pub(super) event: Vec<FtraceEvent>,
}

/// `perfetto.protos.FtraceEvent`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct FtraceEvent {
    #[prost(uint64, optional, tag = "1")]
    pub(super) timestamp: Option<u64>,
    /// The thread that had the CPU.
    #[prost(uint32, optional, tag = "2")]
    pub(super) pid: Option<u32>,
    #[prost(oneof = "FtraceData", tags = "4, 20, 36, 37, 327")]
    pub(super) data: Option<FtraceData>,
}

/// The content of an event of the kernel.
#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum FtraceData {
    #[prost(message, tag = "4")]
    Switch(SchedSwitch),
    #[prost(message, tag = "20")]
    Waking(SchedWaking),
    #[prost(message, tag = "36")]
    HandlerEntry(IrqHandlerEntry),
    #[prost(message, tag = "37")]
    HandlerExit(IrqHandlerExit),
    #[prost(message, tag = "327")]
    Generic(GenericFtraceEvent),
}

/// `perfetto.protos.SchedSwitchFtraceEvent`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct SchedSwitch {
    #[prost(string, optional, tag = "1")]
    pub(super) prev_comm: Option<String>,
    #[prost(int32, optional, tag = "2")]
    pub(super) prev_pid: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    pub(super) prev_prio: Option<i32>,
    #[prost(int64, optional, tag = "4")]
    pub(super) prev_state: Option<i64>,
    #[prost(string, optional, tag = "5")]
    pub(super) next_comm: Option<String>,
    #[prost(int32, optional, tag = "6")]
    pub(super) next_pid: Option<i32>,
    #[prost(int32, optional, tag = "7")]
    pub(super) next_prio: Option<i32>,
}

/// `perfetto.protos.SchedWakingFtraceEvent`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct SchedWaking {
    #[prost(string, optional, tag = "1")]
    pub(super) comm: Option<String>,
    #[prost(int32, optional, tag = "2")]
    pub(super) pid: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    pub(super) prio: Option<i32>,
    #[prost(int32, optional, tag = "5")]
    pub(super) target_cpu: Option<i32>,
}

/// `perfetto.protos.IrqHandlerEntryFtraceEvent`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct IrqHandlerEntry {
    #[prost(int32, optional, tag = "1")]
    pub(super) irq: Option<i32>,
    #[prost(string, optional, tag = "2")]
    pub(super) name: Option<String>,
}

/// `perfetto.protos.IrqHandlerExitFtraceEvent`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct IrqHandlerExit {
    #[prost(int32, optional, tag = "1")]
    pub(super) irq: Option<i32>,
    #[prost(int32, optional, tag = "2")]
    pub(super) ret: Option<i32>,
}

/// `perfetto.protos.GenericFtraceEvent`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct GenericFtraceEvent {
    #[prost(string, optional, tag = "1")]
    pub(super) event_name: Option<String>,
}
