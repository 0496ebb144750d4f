//! The counters of a plain channel.

use std::sync::atomic::AtomicU64;

#[derive(Debug, Default)]
pub(super) struct PlainCounts {
    pub(super) pushed: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) received: AtomicU64,
    pub(super) delivered: AtomicU64,
    pub(super) discarded_full: AtomicU64,
    pub(super) discarded_failed: AtomicU64,
    pub(super) dropped: AtomicU64,
    pub(super) goodbyes_dropped: AtomicU64,
}
