//! Changes on their way to the disk: those that come at once share a commit, made by one of the threads that wait for it.

use super::config::NamingConfig;
use super::draft::{Bounds, Done, Draft, Refusal, Request};
use super::store::{CommitError, Store};
use super::tree::Tree;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use rtorb_os::clock::monotonic_ns;
use rtorb_os::sync::{Condvar, Mutex, MutexGuard};
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

/// Where changes are handed in.
///
/// The first thread that comes leads: it takes what waits, decides and commits it, and shows it to readers; whoever comes
/// meanwhile waits, and the most urgent of these leads next. No lock is held while the disk is waited for.
#[derive(Debug)]
pub(super) struct Changes {
    tree: Arc<Mutex<Tree>>,
    store: Option<Store>,
    bounds: Bounds,
    waiting_max: usize,
    timeout_ns: u64,
    queue: Mutex<Queue>,
    led: Condvar,
    made: AtomicU64,
    commits: AtomicU64,
}

/// Why it is not known that a change is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ChangeError {
    /// By the rules.
    Refused(Refusal),
    /// Too many wait; it is not made.
    Busy,
    /// It waited too long, and is not made.
    NotBegun,
    /// The store takes no more; it is not made.
    StoreFailed,
    /// It was on its way when it took too long, or when the store failed.
    Unknown,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Waiting>,
    is_led: bool,
}

#[derive(Debug)]
struct Waiting {
    request: Request,
    answer: Arc<Answer>,
}

type Answer = OnceLock<Result<Done, ChangeError>>;

impl Changes {
    pub(super) fn new(tree: Arc<Mutex<Tree>>, store: Option<Store>, config: &NamingConfig) -> Self {
        Self {
            tree,
            store,
            bounds: config.into(),
            waiting_max: config.changes_waiting_max,
            timeout_ns: nanoseconds(config.change_timeout),
            queue: Mutex::default(),
            led: Condvar::new(),
            made: AtomicU64::new(0),
            commits: AtomicU64::new(0),
        }
    }

    /// Makes a change; when it answers, the change is on the disk, where there is one, and visible.
    pub(super) fn make(&self, request: Request) -> Result<Done, ChangeError> {
        let deadline_ns = monotonic_ns().saturating_add(self.timeout_ns);
        let answer = Arc::new(Answer::new());
        let mut queue = self.queue.lock();
        if queue.waiting.len() >= self.waiting_max {
            return Err(ChangeError::Busy);
        }
        queue.waiting.push_back(Waiting {
            request,
            answer: Arc::clone(&answer),
        });
        loop {
            if let Some(answer) = answer.get() {
                return answer.clone();
            }
            if !queue.is_led {
                queue = self.lead(queue);
            } else if !self.led.wait_until(&mut queue, deadline_ns) && answer.get().is_none() {
                return Err(queue.give_up(&answer));
            }
        }
    }

    /// Changes made, and the transactions that they took.
    pub(super) fn counts(&self) -> (u64, u64) {
        let made = self.made.load(Ordering::Relaxed);
        (made, self.commits.load(Ordering::Relaxed))
    }

    /// Commits a batch of what waits. It may not have the leader's own change yet, when many were before it.
    fn lead<'q>(&'q self, mut queue: MutexGuard<'q, Queue>) -> MutexGuard<'q, Queue> {
        queue.is_led = true;
        let count = queue.waiting.len().min(BATCH_MAX);
        let batch: Vec<Waiting> = queue.waiting.drain(..count).collect();
        drop(queue);
        // Also when the store panics: the others must not wait for a leader that is no more.
        let _leading = Leading(self);
        self.commit(&batch);
        drop(_leading);
        self.queue.lock()
    }

    fn commit(&self, batch: &[Waiting]) {
        let mut draft = Draft::new(&self.tree, self.bounds);
        let decided: Vec<_> = batch
            .iter()
            .map(|waiting| draft.add(&waiting.request).map_err(ChangeError::Refused))
            .collect();
        let effects = draft.into_effects();
        let made = decided.iter().filter(|decided| decided.is_ok()).count();
        let committed = match &self.store {
            Some(store) if !effects.is_empty() => store.commit(&effects),
            _ => Ok(()),
        };
        let failure = match committed {
            Ok(()) => None,
            Err(CommitError::NotBegun) => Some(ChangeError::StoreFailed),
            Err(CommitError::Unknown) => Some(ChangeError::Unknown),
        };
        if failure.is_none() && !effects.is_empty() {
            self.made.fetch_add(made as u64, Ordering::Relaxed);
            self.commits.fetch_add(1, Ordering::Relaxed);
            for effect in effects {
                // Each under its own lock: a reader waits for one change, not for a batch.
                self.tree.lock().apply(effect);
            }
        }
        for (waiting, decided) in batch.iter().zip(decided) {
            let answer = match &failure {
                Some(failure) => Err(failure.clone()),
                None => decided,
            };
            // Only the leader answers, and each once.
            let _ = waiting.answer.set(answer);
        }
    }
}

impl Queue {
    /// Takes a change back, if that is still possible.
    fn give_up(&mut self, answer: &Arc<Answer>) -> ChangeError {
        let is_it = |waiting: &Waiting| Arc::ptr_eq(&waiting.answer, answer);
        match self.waiting.iter().position(is_it) {
            Some(index) => {
                self.waiting.remove(index);
                ChangeError::NotBegun
            }
            None => ChangeError::Unknown,
        }
    }
}

/// A thread leads.
struct Leading<'c>(&'c Changes);

impl Drop for Leading<'_> {
    fn drop(&mut self) {
        self.0.queue.lock().is_led = false;
        self.0.led.notify_all(&self.0.queue);
    }
}

/// Changes of one transaction: a bound on how long one thread leads for others.
const BATCH_MAX: usize = 256;

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
