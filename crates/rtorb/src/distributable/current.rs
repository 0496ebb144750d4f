//! The distributable thread that the calling thread runs, and its segments.

use super::parameter::SchedulingParameter;
use super::thread_id::ThreadId;
use super::visit::{Origin, RunningVisit, Visit};
use crate::clock::monotonic_ns;
use crate::deadline::NONE_NS;
use crate::exception::{SystemException, local};
use crate::realtime::ThreadPriorityBefore;
use crate::thread_state::{self, SpecialCalls, scheduling, set_scheduling};
use core::cell::RefCell;
use core::mem;
use rtorb_wire::giop::{
    DISTRIBUTABLE_THREAD, SEGMENT_NAME_BYTES_MAX, ServiceContexts, ThreadContext,
};
use std::sync::Arc;

thread_local! {
    static CURRENT: RefCell<Option<Box<CurrentThread>>> = const { RefCell::new(None) };
}

/// The distributable thread of the calling thread.
#[derive(Debug)]
pub(crate) struct CurrentThread {
    visit: RunningVisit,
    /// The segments, the innermost last; never empty.
    segments: Vec<Segment>,
    /// True if a request brought the thread here: the outermost segment is the client's, and no one here ends it.
    is_adopted: bool,
    /// What the calling thread ran before, which goes on at the end of the upcall.
    around: Option<Box<CurrentThread>>,
    /// The memory of requests' contexts, used again.
    pub(super) context: Vec<u8>,
}

/// A scheduling segment.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) name: String,
    pub(crate) parameter: Option<SchedulingParameter>,
    pub(crate) implicit: Option<SchedulingParameter>,
    /// The priority of the thread before the segment gave it one; `None` if it gave none.
    pub(crate) priority_before: Option<ThreadPriorityBefore>,
}

/// The segments of one thread at most.
const SEGMENTS_MAX: usize = 64;

impl CurrentThread {
    fn new(visit: RunningVisit, outermost: Segment, is_adopted: bool) -> Box<Self> {
        Box::new(Self {
            visit,
            segments: vec![outermost],
            is_adopted,
            around: None,
            context: Vec::new(),
        })
    }

    pub(crate) fn id(&self) -> ThreadId {
        self.visit.0.id
    }

    pub(super) fn visit(&self) -> &Arc<Visit> {
        &self.visit.0
    }

    /// Returns the segments, the outermost first.
    pub(crate) fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Returns the innermost segment.
    pub(crate) fn segment(&self) -> &Segment {
        let innermost = self.segments.last();
        innermost.expect("the outermost segment ends with its thread")
    }

    /// Returns the earliest deadline of all segments.
    pub(super) fn deadline_ns(&self) -> u64 {
        let deadlines = self
            .segments
            .iter()
            .map(|it| SchedulingParameter::deadline_ns(it.parameter));
        deadlines.min().unwrap_or(NONE_NS)
    }

    fn check(&self) -> Result<(), SystemException> {
        if self.visit.0.is_cancelled() {
            return Err(local::THREAD_CANCELLED);
        }
        Ok(())
    }
}

/// Also when the calling thread ends within a segment: what it still calls is no call of the distributable thread.
impl Drop for CurrentThread {
    fn drop(&mut self) {
        thread_state::set_special(SpecialCalls::OfDistributableThread, false);
    }
}

/// Returns true if the calling thread runs a distributable thread.
#[inline(always)]
pub(crate) fn is_within() -> bool {
    thread_state::is_special(SpecialCalls::OfDistributableThread)
}

/// Returns THREAD_CANCELLED if the distributable thread of the calling thread is cancelled.
#[inline]
pub(crate) fn check() -> Result<(), SystemException> {
    if !is_within() {
        return Ok(());
    }
    current(|thread| thread.map_or(Ok(()), CurrentThread::check))
}

/// Calls `look` with the distributable thread of the calling thread, if it runs one.
pub(crate) fn current<T>(look: impl FnOnce(Option<&CurrentThread>) -> T) -> T {
    if !is_within() {
        return look(None);
    }
    CURRENT.with_borrow(|current| look(current.as_deref()))
}

/// Calls `act` with the distributable thread of the calling thread, if it runs one.
pub(super) fn current_mut<T>(act: impl FnOnce(Option<&mut CurrentThread>) -> T) -> T {
    if !is_within() {
        return act(None);
    }
    CURRENT.with_borrow_mut(|current| act(current.as_deref_mut()))
}

/// Begins a segment of the distributable thread, or a distributable thread. Returns `None`, because the thread gets no priority back.
///
/// # Errors
/// BAD_PARAM if the name is too long; IMP_LIMIT for too many segments; THREAD_CANCELLED.
//= RT-CORBA 1.2 §Scheduling Segments
//# The outermost segment begins a distributable thread; segments within it are nested.
pub(crate) fn begin_segment(
    segment: Segment,
) -> Result<Option<ThreadPriorityBefore>, SystemException> {
    check_name(&segment.name)?;
    let id = ThreadId::random()?;
    CURRENT.with_borrow_mut(|current| {
        let Some(thread) = current else {
            *current = Some(CurrentThread::new(Visit::begin(id, None), segment, false));
            note_segments(current.as_deref());
            return Ok(None);
        };
        thread.check()?;
        if thread.segments.len() >= SEGMENTS_MAX {
            return Err(local::TOO_MANY_SEGMENTS);
        }
        thread.segments.push(segment);
        note_segments(current.as_deref());
        Ok(None)
    })
}

/// Notes how many segments the calling thread has open, after each change of that.
fn note_segments(current: Option<&CurrentThread>) {
    let open = current.map_or(0, |thread| thread.segments.len());
    thread_state::set_special(SpecialCalls::OfDistributableThread, open > 0);
    set_scheduling(scheduling().with_segments(open as u16));
}

/// Gives the innermost segment another name and parameters. Returns the priority that the thread is to get back: the one before the segment
/// gave it one, if it gives none any more.
///
/// # Errors
/// BAD_INV_ORDER outside of a segment; BAD_PARAM if the name is too long; THREAD_CANCELLED.
pub(crate) fn update_segment(
    segment: Segment,
) -> Result<Option<ThreadPriorityBefore>, SystemException> {
    check_name(&segment.name)?;
    current_mut(|thread| {
        let thread = thread.ok_or(local::NO_SEGMENT)?;
        thread.check()?;
        let innermost = thread.segments.last_mut().ok_or(local::NO_SEGMENT)?;
        let before = mem::replace(innermost, segment).priority_before;
        if innermost.priority_before.is_none() {
            return Ok(before);
        }
        innermost.priority_before = before.or(innermost.priority_before);
        Ok(None)
    })
}

/// Ends the innermost segment, and with the outermost one its distributable thread. Returns the segment, and whether the thread was
/// cancelled.
///
/// # Errors
/// BAD_INV_ORDER if this thread began no segment; BAD_PARAM for another name than the segment's.
pub(crate) fn end_segment(
    name: &str,
) -> Result<(Segment, Result<(), SystemException>), SystemException> {
    CURRENT.with_borrow_mut(|current| {
        let thread = current.as_mut().ok_or(local::NO_SEGMENT)?;
        if thread.is_adopted && thread.segments.len() == 1 {
            return Err(local::NO_SEGMENT);
        }
        if thread.segment().name != name {
            return Err(local::OTHER_SEGMENT);
        }
        let was_cancelled = thread.check();
        let ended = thread.segments.pop().ok_or(local::NO_SEGMENT)?;
        if thread.segments.is_empty() {
            *current = None;
        }
        note_segments(current.as_deref());
        Ok((ended, was_cancelled))
    })
}

/// Ends all but that number of segments: those that a servant has begun and left open. The caller restores the priority.
pub(crate) fn end_segments_beyond(before: u16) {
    if scheduling().segments() <= before {
        return;
    }
    CURRENT.with_borrow_mut(|current| {
        if let Some(thread) = current {
            thread.segments.truncate(before.into());
        }
        if before == 0 {
            *current = None;
        }
        note_segments(current.as_deref());
    });
}

fn check_name(name: &str) -> Result<(), SystemException> {
    if name.len() > SEGMENT_NAME_BYTES_MAX || name.contains('\0') {
        return Err(local::WRONG_SEGMENT_NAME);
    }
    Ok(())
}

/// A distributable thread that has begun, and does not run yet.
#[derive(Debug)]
pub(crate) struct BegunThread {
    visit: RunningVisit,
    outermost: Segment,
}

impl BegunThread {
    /// Begins a distributable thread with that outermost segment.
    ///
    /// # Errors
    /// BAD_PARAM if the name of the segment is too long; INTERNAL if the host gives no random numbers.
    pub(crate) fn new(outermost: Segment) -> Result<Self, SystemException> {
        check_name(&outermost.name)?;
        let visit = Visit::begin(ThreadId::random()?, None);
        Ok(Self { visit, outermost })
    }

    pub(crate) fn id(&self) -> ThreadId {
        self.visit.0.id
    }

    /// Runs `work` on the calling thread as this distributable thread.
    pub(crate) fn run<T>(self, work: impl FnOnce() -> T) -> T {
        let _thread = AdoptedThread::enter(CurrentThread::new(self.visit, self.outermost, true));
        work()
    }
}

/// A distributable thread that the calling thread runs. Dropping it ends its visit, with all segments that were not ended.
#[derive(Debug)]
pub(crate) struct AdoptedThread(());

impl AdoptedThread {
    fn enter(mut thread: Box<CurrentThread>) -> Self {
        CURRENT.with_borrow_mut(|current| {
            thread.around = current.take();
            *current = Some(thread);
            note_segments(current.as_deref());
        });
        Self(())
    }
}

impl Drop for AdoptedThread {
    fn drop(&mut self) {
        CURRENT.with_borrow_mut(|current| {
            *current = current.take().and_then(|mut thread| thread.around.take());
            note_segments(current.as_deref());
        });
    }
}

/// Makes the calling thread run the distributable thread that these contexts name; `None` if they name none.
///
/// # Errors
/// MARSHAL for a malformed context; DATA_CONVERSION 2 for a negative priority.
//= RT-CORBA 1.2 §Distributable Threads
//# The server executes a request of a distributable thread as that thread, so calls of the servant carry it on.
pub(crate) fn adopt(
    contexts: ServiceContexts<'_>,
    origin: Option<Origin>,
) -> Result<Option<AdoptedThread>, SystemException> {
    let Some(data) = contexts.find(DISTRIBUTABLE_THREAD) else {
        return Ok(None);
    };
    let arrived = ThreadContext::read(data)?;
    let now_ns = monotonic_ns();
    let segment = Segment {
        name: arrived.segment.into_owned(),
        parameter: SchedulingParameter::from_wire(arrived.parameter, now_ns)?,
        implicit: SchedulingParameter::from_wire(arrived.implicit, now_ns)?,
        priority_before: None,
    };
    let id = ThreadId::from_bytes(arrived.thread_id);
    // A collocated call is cancelled with the request whose servant makes it.
    let origin = origin.or_else(|| {
        let of_caller =
            |thread: &CurrentThread| thread.visit.0.origin.filter(|_| thread.id() == id);
        current(|thread| thread.and_then(of_caller))
    });
    let visit = Visit::begin(id, origin);
    let thread = CurrentThread::new(visit, segment, true);
    Ok(Some(AdoptedThread::enter(thread)))
}
