//! An object that notes which calls it carried out.

use crate::SystemException;
use crate::clock::{monotonic_ns, sleep_until};
use crate::codegen::Interface;
use crate::poa::ServedBy;
use crate::reference::ObjectRef;
use crate::server::ServerCall;
use crate::timing::{Criticality, OperationTiming};
use core::time::Duration;
use rtorb_os::sync::Mutex;
use rtorb_wire::{DecodeError, EncodeError, Reader, Writer};
use std::sync::Arc;

/// A reference to a worker, which has three operations: `work`, the oneway `note`, and `vital`.
#[derive(Clone, Debug)]
pub(crate) struct Worker(pub(crate) ObjectRef);

/// `work` and `note` are annotated with this deadline.
pub(crate) const DEADLINE: Duration = Duration::from_millis(300);
static TIMINGS: [OperationTiming; 3] = [
    OperationTiming::new("Worker::work").deadline_ns(DEADLINE.as_nanos() as u64),
    OperationTiming::new("Worker::note")
        .oneway()
        .deadline_ns(DEADLINE.as_nanos() as u64),
    OperationTiming::new("Worker::vital")
        .deadline_ns(2 * DEADLINE.as_nanos() as u64)
        .worst_case_ns(3 * DEADLINE.as_nanos() as u64 / 2)
        .critical(Criticality::VeryHigh),
];

/// The numbers of the jobs that were carried out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u32>>>);

/// The argument of both operations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    pub(crate) number: u32,
    /// Bytes of the request, and of the reply of `work`.
    pub(crate) bytes: usize,
    /// How long the servant needs.
    pub(crate) duration_ns: u64,
}

impl Log {
    /// How often a job was carried out.
    pub(crate) fn count(&self, number: u32) -> usize {
        self.0.lock().iter().filter(|it| **it == number).count()
    }

    /// The numbers of the jobs in the order in which they were carried out.
    pub(crate) fn numbers(&self) -> Vec<u32> {
        self.0.lock().clone()
    }

    /// The number of jobs that were carried out.
    pub(crate) fn len(&self) -> usize {
        self.0.lock().len()
    }
}

impl Worker {
    /// Has a job done. The reply is checked.
    pub(crate) fn work(&self, job: Job) -> Result<(), SystemException> {
        let read = |r: &mut Reader<'_>| Job::read(r);
        let invoke = || self.0.invoke("work", |w| job.write(w), read);
        let done = self.0.timed(&TIMINGS[0], invoke)?;
        assert_eq!(done.number, job.number, "a reply reached another request");
        assert_eq!(done.bytes, job.bytes);
        Ok(())
    }

    /// Has a job done, and waits for no reply.
    pub(crate) fn note(&self, job: Job) -> Result<(), SystemException> {
        self.0.invoke_oneway("note", |w| job.write(w))
    }

    /// Has a job done, and waits for nothing.
    pub(crate) fn note_at_once(&self, job: Job) -> Result<(), SystemException> {
        let is_whole = self.0.invoke_oneway_at_once("note", |w| job.write(w));
        is_whole.map(|_| ())
    }
}

impl Interface for Worker {
    type Object = ObjectRef;

    const REPOSITORY_ID: &'static str = "IDL:Worker:1.0";
    const ANCESTORS: &'static [&'static str] = &[];

    fn timings() -> &'static [OperationTiming] {
        &TIMINGS
    }

    fn unchecked_narrow(object: ObjectRef) -> Self {
        Self(object)
    }

    fn as_object(&self) -> &ObjectRef {
        &self.0
    }
}

impl ServedBy<Log> for Worker {
    fn find_operation(name: &[u8]) -> Option<usize> {
        [&b"work"[..], b"note", b"vital"]
            .iter()
            .position(|it| *it == name)
    }

    fn timing_of(operation: usize) -> Option<usize> {
        Some(operation)
    }

    fn dispatch(log: &Log, _: usize, call: &mut ServerCall<'_>) -> Result<(), SystemException> {
        let job = Job::read(call.arguments())?;
        log.0.lock().push(job.number);
        if job.duration_ns > 0 {
            sleep_until(monotonic_ns() + job.duration_ns);
        }
        call.executed();
        call.reply(|w| job.write(w))
    }
}

impl Job {
    /// A small job that takes no time.
    pub(crate) fn small(number: u32) -> Self {
        Self {
            number,
            bytes: 8,
            duration_ns: 0,
        }
    }

    fn write(self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        w.primitive(self.number)?;
        w.primitive(self.duration_ns)?;
        w.count(self.bytes)?;
        w.octets(&vec![self.filler(); self.bytes])
    }

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (number, duration_ns) = (r.primitive()?, r.primitive()?);
        let body: Vec<u8> = rtorb_wire::Decode::decode(r)?;
        let job = Self {
            number,
            bytes: body.len(),
            duration_ns,
        };
        assert!(body.iter().all(|byte| *byte == job.filler()), "wrong bytes");
        Ok(job)
    }

    pub(crate) fn filler(self) -> u8 {
        (self.number as u8).wrapping_mul(31) ^ 0x5a
    }
}
