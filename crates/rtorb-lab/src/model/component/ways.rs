//! The calls that a behaviour makes: ready to be made without a heap call.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rtorb::rt::{Priority, PriorityTransform};
use rtorb::{Orb, without_deadline};
use rtorb_os::clock::monotonic_ns;
use rtorb_os::sync::Mutex;
use rtorb_services::stubs::rtec_event::rtec_event_channel_admin::ProxyPushConsumer;
use rtorb_services::stubs::rtec_event::rtec_event_comm::Event;

use super::Peers;
use super::idl::model::{Behaviour, Job};
use crate::contestants::event_channel::rtec;
use crate::model::plan::{BehaviourPlan, CallPlan, NOBODY, To};

/// One call.
#[derive(Debug)]
pub(super) enum Way {
    Waited {
        object: Behaviour,
        payload: Vec<u8>,
        /// The deadline that it brings, in ns from the arrival of the root.
        deadline_ns: Option<u64>,
    },
    Onward {
        object: Behaviour,
        payload: Vec<u8>,
        /// As that of a call that is waited for.
        deadline_ns: Option<u64>,
    },
    /// The calling thread performs the behaviour of this number itself.
    Here { behaviour: u32 },
    Event {
        proxy: ProxyPushConsumer,
        /// Its payload begins with the job; two threads of a lane may be at it.
        event: Mutex<[Event; 1]>,
    },
}

impl Way {
    /// Those of a behaviour, in its order. The calling thread takes a priority where a channel is asked.
    pub(super) fn all_of(
        orb: &Orb,
        behaviour: &BehaviourPlan,
        peers: &Peers,
    ) -> Result<Vec<Self>, String> {
        let calls = behaviour.calls.iter();
        calls
            .map(|call| Self::of(orb, (behaviour, call), peers))
            .collect()
    }

    fn of(
        orb: &Orb,
        (behaviour, call): (&BehaviourPlan, &CallPlan),
        peers: &Peers,
    ) -> Result<Self, String> {
        let octets = call.payload_octets as usize;
        let object = |objects: &BTreeMap<u32, String>, number: &u32| {
            let reference = objects.get(number);
            let reference = reference.ok_or_else(|| format!("{number} has no reference"))?;
            orb.string_to_object(reference)
                .map(Behaviour::unchecked_narrow)
                .map_err(|exception| exception.to_string())
        };
        Ok(match &call.to {
            To::TwoWay { behaviour } => Self::Waited {
                object: object(&peers.objects, behaviour)?,
                payload: vec![0; octets],
                deadline_ns: call.deadline_ns,
            },
            To::OneWay { behaviour } => Self::Onward {
                object: object(&peers.objects, behaviour)?,
                payload: vec![0; octets],
                deadline_ns: call.deadline_ns,
            },
            To::PassedOn { behaviour } => Self::Onward {
                object: object(&peers.passing, behaviour)?,
                payload: vec![0; octets],
                deadline_ns: call.deadline_ns,
            },
            To::Here { behaviour } => Self::Here {
                behaviour: *behaviour,
            },
            To::Event { channel, source } => {
                let priority = behaviour.places.iter().map(|at| at.priority).max();
                let priority = priority.ok_or("a supplier that never runs")?;
                let reference = peers.channels.get(*channel);
                let reference = reference.ok_or("there is no such channel")?;
                let channel = rtec::channel(orb, reference, priority)?;
                let payload = vec![0; octets.max(JOB_BYTES)];
                Self::Event {
                    proxy: rtec::publish(&channel, *source, priority)?,
                    event: Mutex::new([rtec::event(*source, rtec::FELL, payload)]),
                }
            }
        })
    }

    /// Opens the calling thread's connection for it.
    pub(super) fn touch(&self) -> Result<(), String> {
        match self {
            Self::Waited { object, .. } | Self::Onward { object, .. } => object.touch(),
            Self::Here { .. } => Ok(()),
            Self::Event { proxy, .. } => proxy.as_object().validate_connection().map(drop),
        }
        .map_err(|exception| exception.to_string())
    }

    /// Makes the call. One that stays [here](Self::Here) is the caller's to perform. What is not waited for may be due later than the job
    /// that causes it, so it does not inherit that deadline.
    pub(super) fn call(&self, job: &Job) -> Result<(), String> {
        match self {
            Self::Waited {
                object,
                payload,
                deadline_ns,
            } => match due(job, *deadline_ns) {
                Some(due) => object.with_end_time(due).run(job, payload),
                None => object.run(job, payload),
            },
            Self::Onward {
                object,
                payload,
                deadline_ns,
            } => match due(job, *deadline_ns) {
                Some(due) => without_deadline(|| object.with_end_time(due).start(job, payload)),
                None => without_deadline(|| object.start(job, payload)),
            },
            Self::Here { .. } => Ok(()),
            Self::Event { proxy, event } => {
                let mut event = event.lock();
                write_job(job, &mut event[0].data.payload);
                without_deadline(|| proxy.push(&*event))
            }
        }
        .map_err(|exception| exception.to_string())
    }
}

thread_local! {
    static OF_JOB: Cell<Option<Priority>> = const { Cell::new(None) };
}

/// The CORBA priority of the calls of a job by deadline. The analysis gives it for other CPUs, where the native priority of the job's level
/// means nothing.
#[derive(Debug)]
pub(super) struct OfJob;

impl OfJob {
    /// Gives the calls of the calling thread this priority from now on.
    pub(super) fn set(priority: u8) {
        OF_JOB.set(Priority::new(priority.into()).ok());
    }
}

impl PriorityTransform for OfJob {
    fn transform_priority(&self, priority: Priority, _object: &[u8]) -> Option<Priority> {
        Some(OF_JOB.get().unwrap_or(priority))
    }
}

/// When a call is due that brings such a deadline. What is done for practice has none.
fn due(job: &Job, deadline_ns: Option<u64>) -> Option<Instant> {
    let due_ns = job.release.saturating_add(deadline_ns?);
    (job.caller != NOBODY).then(|| instant_at(due_ns))
}

/// The moment at which CLOCK_MONOTONIC shows that many ns; now, if that is over.
pub(super) fn instant_at(monotonic: u64) -> Instant {
    Instant::now() + Duration::from_nanos(monotonic.saturating_sub(monotonic_ns()))
}

/// Octets of a job in an event.
pub(super) const JOB_BYTES: usize = 20;

fn write_job(job: &Job, payload: &mut [u8]) {
    if let Some((ours, _)) = payload.split_first_chunk_mut::<JOB_BYTES>() {
        ours[..4].copy_from_slice(&job.caller.to_le_bytes());
        ours[4..8].copy_from_slice(&job.call.to_le_bytes());
        ours[8..12].copy_from_slice(&job.number.to_le_bytes());
        ours[12..].copy_from_slice(&job.release.to_le_bytes());
    }
}

/// What an event carries; `None` when it is too short.
pub(super) fn read_job(payload: &[u8]) -> Option<Job> {
    let (ours, _) = payload.split_first_chunk::<JOB_BYTES>()?;
    let four = |at: usize| Some(u32::from_le_bytes(*ours.get(at..)?.first_chunk()?));
    Some(Job {
        caller: four(0)?,
        call: four(4)?,
        number: four(8)?,
        release: u64::from_le_bytes(*ours[12..].first_chunk()?),
    })
}

/// What went wrong while nobody could be told.
#[derive(Debug, Default)]
pub(super) struct Failures {
    count: AtomicU64,
    first: Mutex<Option<String>>,
}

impl Failures {
    pub(super) fn add(&self, what: impl FnOnce() -> String) {
        // The first alone is worth a heap call.
        if self.count.fetch_add(1, Ordering::Relaxed) == 0 {
            *self.first.lock() = Some(what());
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    pub(super) fn first(&self) -> Option<String> {
        self.first.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_read_out_of_an_event() {
        let job = Job {
            caller: 1,
            call: 2,
            number: u32::MAX,
            release: 1 << 60,
        };
        let mut payload = vec![0; JOB_BYTES + 5];
        write_job(&job, &mut payload);
        let read = read_job(&payload).unwrap();
        assert_eq!(
            (read.caller, read.call, read.number, read.release),
            (1, 2, u32::MAX, 1 << 60)
        );
        assert!(read_job(&payload[..JOB_BYTES - 1]).is_none());
    }

    #[test]
    fn the_first_failure_is_kept() {
        let failures = Failures::default();
        failures.add(|| "one".to_owned());
        failures.add(|| unreachable!());
        assert_eq!(
            (failures.count(), failures.first().as_deref()),
            (2, Some("one"))
        );
    }
}
