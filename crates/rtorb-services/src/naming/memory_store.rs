//! A shared store in memory that tests can hold, break and forget.

use super::StoreFailure;
use super::shared_store::{
    CommitOutcome, Follower, SharedCommit, SharedSnapshot, SharedStore, SharedStoreError,
    SharedWrites,
};
use rtorb::CompletionStatus;
use rtorb_os::sync::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Weak};

/// A store in memory. Each service has its own [`Handle`].
#[derive(Debug, Default)]
pub(super) struct MemoryStore {
    state: Mutex<State>,
    /// Held from a commit until all followers know of it, so that each gets the commits in their order, as from etcd.
    turn: Mutex<()>,
}

/// The store as one service has it.
#[derive(Debug)]
pub(super) struct Handle(pub(super) Arc<MemoryStore>);

#[derive(Debug, Default)]
struct State {
    revision: u64,
    mark: Vec<u8>,
    entries: BTreeMap<String, Vec<u8>>,
    followers: Vec<Weak<dyn Follower>>,
    /// Followers are told nothing, if it is there: commits wait here.
    held: Option<Vec<(u64, SharedWrites)>>,
    faults: VecDeque<Fault>,
}

/// What goes wrong with one commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The store is not reached.
    Unsent,
    /// The commit is lost, and nobody knows.
    Lost,
    /// The commit is made, and its answer is lost.
    AnswerLost,
    /// The same, and then another service makes a commit.
    AnswerLostAndOvertaken,
    /// The store refuses it.
    Refused,
}

impl MemoryStore {
    pub(super) fn fail(&self, faults: impl IntoIterator<Item = Fault>) {
        self.state.lock().faults.extend(faults);
    }

    /// Tells followers nothing from now on.
    pub(super) fn hold(&self) {
        self.state.lock().held = Some(Vec::new());
    }

    /// Tells followers what was held.
    pub(super) fn release(&self) {
        let _turn = self.turn.lock();
        let held = self.state.lock().held.take();
        for (revision, writes) in held.unwrap_or_default() {
            self.tell(revision, &writes);
        }
    }

    /// Forgets what was held, and gives followers all that is there.
    pub(super) fn forget(&self) {
        self.state.lock().held = None;
        let snapshot = self.snapshot();
        for follower in self.followers() {
            follower.replaced(&snapshot);
        }
    }

    pub(super) fn snapshot(&self) -> SharedSnapshot {
        let state = self.state.lock();
        let entries = state.entries.iter();
        SharedSnapshot {
            revision: state.revision,
            mark: state.mark.clone(),
            entries: entries.map(|(k, v)| (k.clone(), v.clone())).collect(),
        }
    }

    fn followers(&self) -> Vec<Arc<dyn Follower>> {
        let followers = &self.state.lock().followers;
        followers.iter().filter_map(Weak::upgrade).collect()
    }

    fn tell(&self, revision: u64, writes: &SharedWrites) {
        if let Some(held) = &mut self.state.lock().held {
            held.push((revision, writes.clone()));
            return;
        }
        for follower in self.followers() {
            follower.committed(revision, writes);
        }
    }

    fn make(&self, commit: &SharedCommit) -> CommitOutcome {
        let _turn = self.turn.lock();
        let mut state = self.state.lock();
        if state.revision != commit.base {
            return CommitOutcome::Behind(state.revision);
        }
        if commit.writes.writes.is_empty() {
            return CommitOutcome::Made(commit.base);
        }
        for (key, value) in &commit.writes.writes {
            match value {
                Some(value) => state.entries.insert(key.clone(), value.clone()),
                None => state.entries.remove(key),
            };
        }
        // Others use etcd too.
        state.revision += 2;
        state.mark.clone_from(&commit.writes.mark);
        let revision = state.revision;
        drop(state);
        self.tell(revision, &commit.writes);
        CommitOutcome::Made(revision)
    }
}

impl SharedStore for Handle {
    fn place(&self) -> &str {
        "memory"
    }

    fn load(&self) -> Result<SharedSnapshot, SharedStoreError> {
        Ok(self.0.snapshot())
    }

    fn commit(&self, commit: &SharedCommit, _: u64) -> Result<CommitOutcome, SharedStoreError> {
        let store = &self.0;
        let fault = store.state.lock().faults.pop_front();
        let Some(fault) = fault else {
            return Ok(store.make(commit));
        };
        let (failure, completed) = match fault {
            Fault::Unsent => (StoreFailure::Unavailable, CompletionStatus::No),
            Fault::Refused => (StoreFailure::Refused, CompletionStatus::No),
            _ => (StoreFailure::Unavailable, CompletionStatus::Maybe),
        };
        if matches!(fault, Fault::AnswerLost | Fault::AnswerLostAndOvertaken) {
            store.make(commit);
        }
        if fault == Fault::AnswerLostAndOvertaken {
            let snapshot = store.snapshot();
            let next = snapshot.mark.rsplit(|it| *it == b' ').next();
            let mark = [b"0000000000000001 1 ", next.unwrap_or_default()].concat();
            let (key, value) = snapshot.entries[0].clone();
            let writes = SharedWrites {
                mark,
                writes: vec![(key, Some(value))],
            };
            let base = snapshot.revision;
            store.make(&SharedCommit { base, writes });
        }
        Err(SharedStoreError {
            failure,
            completed,
            why: format!("{fault:?}"),
        })
    }

    fn follow(&self, _: u64, follower: Weak<dyn Follower>) {
        self.0.state.lock().followers.push(follower);
    }
}
