//! The flow stack of a request: which interceptors have seen its beginning, and have to see its end.

use super::INTERCEPTORS_MAX;

/// The interceptors whose starting points a request has passed, and what each has noted.
#[derive(Debug, Default)]
pub(super) struct FlowStack {
    notes: [u64; INTERCEPTORS_MAX],
    depth: usize,
}

impl FlowStack {
    /// Forgets all.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Notes that the next interceptor has seen the beginning.
    pub(super) fn push(&mut self) {
        self.depth += 1;
    }

    /// Returns the index of the interceptor that sees the end next.
    pub(super) fn pop(&mut self) -> Option<usize> {
        self.depth = self.depth.checked_sub(1)?;
        Some(self.depth)
    }

    /// Returns true if no interceptor has to see the end.
    pub(super) fn is_empty(&self) -> bool {
        self.depth == 0
    }

    /// Returns the note of an interceptor.
    pub(super) fn note(&mut self, index: usize) -> &mut u64 {
        &mut self.notes[index]
    }
}
