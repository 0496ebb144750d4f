//! The memory of requests that were served, for the next ones: so that a queue makes no heap call a request.

use crate::server::TakenRequest;
use rtorb_os::ring::Ring;

/// A fixed number of them.
#[derive(Debug)]
pub(super) struct SpareRequests {
    requests: Ring<TakenRequest>,
}

impl SpareRequests {
    /// So many, with room for what most requests are.
    pub(super) fn new(count: usize) -> Self {
        let requests = Ring::new(count);
        while requests.push(TakenRequest::with_room()).is_ok() {}
        Self { requests }
    }

    /// Memory for a request.
    pub(super) fn take(&self) -> TakenRequest {
        self.requests.pop().unwrap_or_default()
    }

    /// Takes memory back that is not used any more; not more of it than a small request may keep.
    pub(super) fn keep(&self, mut request: TakenRequest) {
        request.trim();
        // There is room for all that there are.
        let _ = self.requests.push(request);
    }
}
