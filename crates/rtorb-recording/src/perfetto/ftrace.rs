//! The kernel's record as bundles of ftrace events, some for each CPU.

use std::collections::BTreeMap;

use rtorb_host::kernel_trace::{RecordedTrace, TraceEvent, TraceEventKind};

use super::messages::{
    FtraceData, FtraceEvent, FtraceEventBundle, GenericFtraceEvent, IrqHandlerEntry,
    IrqHandlerExit, SchedSwitch, SchedWaking,
};

/// Returns the bundles; `common_ns` gives a moment on the clock of the file.
pub(super) fn bundles(
    record: &RecordedTrace,
    common_ns: impl Fn(u64) -> u64,
) -> Vec<FtraceEventBundle> {
    let each = record.events.iter();
    let of_cpu = |(cpu, events): (&usize, &Vec<TraceEvent>)| {
        let mut running = 0;
        let made = |event: &TraceEvent| {
            if let TraceEventKind::Switched { from, .. } = event.kind {
                running = from;
            }
            let pid = match event.kind {
                TraceEventKind::PageFault { thread } => thread,
                _ => running,
            };
            if let TraceEventKind::Switched { to, .. } = event.kind {
                running = to;
            }
            FtraceEvent {
                timestamp: Some(common_ns(event.at_ns)),
                pid: Some(pid.cast_unsigned()),
                data: Some(data(event.kind, &record.names, *cpu)),
            }
        };
        let events: Vec<FtraceEvent> = events.iter().map(made).collect();
        let bundles = events.chunks(BUNDLE_MAX).map(|events| FtraceEventBundle {
            cpu: u32::try_from(*cpu).ok(),
            event: events.to_vec(),
        });
        bundles.collect::<Vec<_>>()
    };
    each.flat_map(of_cpu).collect()
}

fn data(kind: TraceEventKind, names: &BTreeMap<i32, String>, cpu: usize) -> FtraceData {
    match kind {
        TraceEventKind::Switched {
            from,
            from_priority,
            is_preempted,
            to,
            to_priority,
        } => FtraceData::Switch(SchedSwitch {
            prev_comm: names.get(&from).cloned(),
            prev_pid: Some(from),
            prev_prio: Some(from_priority),
            prev_state: Some(if is_preempted { RUNNABLE } else { SLEEPING }),
            next_comm: names.get(&to).cloned(),
            next_pid: Some(to),
            next_prio: Some(to_priority),
        }),
        TraceEventKind::Woken { thread, priority } => FtraceData::Waking(SchedWaking {
            comm: names.get(&thread).cloned(),
            pid: Some(thread),
            prio: Some(priority),
            target_cpu: i32::try_from(cpu).ok(),
        }),
        TraceEventKind::InterruptBegan => FtraceData::HandlerEntry(IrqHandlerEntry {
            irq: Some(0),
            name: Some("interrupt".to_owned()),
        }),
        TraceEventKind::InterruptEnded => FtraceData::HandlerExit(IrqHandlerExit {
            irq: Some(0),
            ret: Some(1),
        }),
        TraceEventKind::PageFault { .. } => FtraceData::Generic(GenericFtraceEvent {
            event_name: Some(PAGE_FAULT.to_owned()),
        }),
    }
}

/// Adds the events of a bundle to a record. Other events than those of recordings are left out.
pub(super) fn add(
    bundle: &FtraceEventBundle,
    record: &mut RecordedTrace,
    own_ns: impl Fn(u64) -> u64,
) {
    let RecordedTrace { events, names, .. } = record;
    let of_cpu = events.entry(bundle.cpu() as usize).or_default();
    for event in &bundle.event {
        if let Some(kind) = event
            .data
            .as_ref()
            .and_then(|data| kind(data, event, names))
        {
            of_cpu.push(TraceEvent {
                at_ns: own_ns(event.timestamp()),
                kind,
            });
        }
    }
}

fn kind(
    data: &FtraceData,
    event: &FtraceEvent,
    names: &mut BTreeMap<i32, String>,
) -> Option<TraceEventKind> {
    let mut keep = |thread: i32, name: &Option<String>| {
        if let Some(name) = name
            && !names.contains_key(&thread)
        {
            names.insert(thread, name.clone());
        }
    };
    Some(match data {
        FtraceData::Switch(switch) => {
            keep(switch.prev_pid(), &switch.prev_comm);
            keep(switch.next_pid(), &switch.next_comm);
            TraceEventKind::Switched {
                from: switch.prev_pid(),
                from_priority: switch.prev_prio(),
                is_preempted: switch.prev_state() == RUNNABLE,
                to: switch.next_pid(),
                to_priority: switch.next_prio(),
            }
        }
        FtraceData::Waking(waking) => {
            keep(waking.pid(), &waking.comm);
            TraceEventKind::Woken {
                thread: waking.pid(),
                priority: waking.prio(),
            }
        }
        FtraceData::HandlerEntry(_) => TraceEventKind::InterruptBegan,
        FtraceData::HandlerExit(_) => TraceEventKind::InterruptEnded,
        FtraceData::Generic(generic) if generic.event_name() == PAGE_FAULT => {
            TraceEventKind::PageFault {
                thread: event.pid().cast_signed(),
            }
        }
        FtraceData::Generic(_) => return None,
    })
}

/// The events of a bundle, such that its packet is not too large to be read.
const BUNDLE_MAX: usize = 10_000;
/// `TASK_RUNNING` and `TASK_INTERRUPTIBLE` of the kernel's include/linux/sched.h.
const RUNNABLE: i64 = 0;
const SLEEPING: i64 = 1;
const PAGE_FAULT: &str = "page_fault";
