//! A store that several naming services share, as the naming service sees it.

use super::StoreFailure;
use core::fmt;
use rtorb::CompletionStatus;
use std::sync::Weak;

/// A store of keys and values that several naming services read and change at the same time.
///
/// It has a *revision*, a number that grows with every commit. A commit states the revision on which it is based, and is made only if
/// that is still the last one (compare-and-swap): so all services agree on the order of all changes, and each has decided on the state
/// that its change met. Every service follows the commits of all.
///
/// Keys are text without a prefix of the store, values are bytes.
pub trait SharedStore: fmt::Debug + Send + Sync {
    /// Where it is, for messages: a URL.
    fn place(&self) -> &str;

    /// Returns all that is in the store.
    ///
    /// # Errors
    /// The store does not answer, or refuses.
    fn load(&self) -> Result<SharedSnapshot, SharedStoreError>;

    /// Makes a commit, all of it or nothing, or finds that another was made since the revision on which it is based. It returns when the
    /// commit is where the store keeps it, and waits no longer than until `deadline_ns` of the monotonic clock.
    ///
    /// The same commit may be tried again: it is not made twice, because the first one changes the revision.
    ///
    /// # Errors
    /// The store does not answer or refuses, with what is known of the commit.
    fn commit(
        &self,
        commit: &SharedCommit,
        deadline_ns: u64,
    ) -> Result<CommitOutcome, SharedStoreError>;

    /// Begins to tell the follower each commit after that revision, in order, as long as the follower is there.
    fn follow(&self, revision: u64, follower: Weak<dyn Follower>);
}

/// What follows the commits of a shared store. A thread of the store calls it.
pub trait Follower: Send + Sync {
    /// Tells a commit of any service. It may be one that was told before.
    fn committed(&self, revision: u64, commit: &SharedWrites);

    /// Tells all that is in the store, because commits since the last one that was told are not known any more.
    fn replaced(&self, snapshot: &SharedSnapshot);

    /// Tells that commits are not followed at present, and why.
    fn lost(&self, why: &str);

    /// Tells that commits are followed again.
    fn found(&self);
}

/// All that is in a shared store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedSnapshot {
    /// The revision of the last commit; 0 if there was none.
    pub revision: u64,
    /// The mark of the last commit.
    pub mark: Vec<u8>,
    /// Keys and values.
    pub entries: Vec<(String, Vec<u8>)>,
}

/// What a commit writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedWrites {
    /// Identifies the commit. The store keeps that of the last commit.
    pub mark: Vec<u8>,
    /// Keys with their new values, `None` for those that it removes. No key is there twice.
    pub writes: Vec<(String, Option<Vec<u8>>)>,
}

/// A commit to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedCommit {
    /// The revision on which it is based; 0 for the first commit.
    pub base: u64,
    /// What it writes. Without a write, it only finds out whether `base` is the last revision, and makes no new one.
    pub writes: SharedWrites,
}

/// What became of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitOutcome {
    /// It is made, and has this revision.
    Made(u64),
    /// It is not made: this is the last revision.
    Behind(u64),
}

/// Why a shared store did not do what it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedStoreError {
    /// [`Unavailable`](StoreFailure::Unavailable) or [`Refused`](StoreFailure::Refused).
    pub failure: StoreFailure,
    /// Whether a commit may be made all the same.
    pub completed: CompletionStatus,
    /// What the store or the operating system says.
    pub why: String,
}

/// Writes of a commit that every shared store must take.
pub const WRITES_MAX: usize = 120;

/// Bytes of keys and values of a commit that every shared store must take, if its keys are more than one.
pub const WRITES_BYTES_MAX: usize = 1 << 20;
