//! Streams of jobs, and what they ask of a processor.

use std::collections::HashMap;

use crate::arrivals::Arrivals;
use crate::task::Task;

/// The jobs of all tasks with the same arrivals and release jitter: in a window there are as many of each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    pub(crate) arrivals: Arrivals,
    pub(crate) jitter_ns: u64,
    /// The sum over the tasks.
    pub(crate) worst_ns: u64,
}

impl Stream {
    /// The jobs of one task in a window; `None` over 2^64.
    pub(crate) fn jobs_in(&self, window_ns: u64) -> Option<u64> {
        let span_ns = window_ns.checked_add(self.jitter_ns)?;
        Some(self.arrivals.jobs_in(span_ns.into()))
    }
}

/// The demand of streams in a window; `None` over 2^64 ns.
pub(crate) fn demand_in(streams: &[Stream], window_ns: u64) -> Option<u64> {
    streams.iter().try_fold(0_u64, |sum, stream| {
        sum.checked_add(stream.jobs_in(window_ns)?.checked_mul(stream.worst_ns)?)
    })
}

/// The streams of a set of tasks.
#[derive(Clone, Debug, Default)]
pub(crate) struct StreamSet {
    pub(crate) streams: Vec<Stream>,
    places: HashMap<(Arrivals, u64), usize>,
    /// A sum was over 2^64 ns.
    pub(crate) overflowed: bool,
}

impl StreamSet {
    /// Adds a task, with this jitter instead of its own.
    pub(crate) fn add(&mut self, task: &Task, jitter_ns: u64) {
        let streams = &mut self.streams;
        let arrivals = task.arrivals();
        let place = *self.places.entry((arrivals, jitter_ns)).or_insert_with(|| {
            streams.push(Stream {
                arrivals,
                jitter_ns,
                worst_ns: 0,
            });
            streams.len() - 1
        });
        let worst_ns = &mut streams[place].worst_ns;
        let (sum, overflowed) = worst_ns.overflowing_add(task.worst_ns);
        *worst_ns = sum;
        self.overflowed |= overflowed;
    }
}
