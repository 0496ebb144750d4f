//! A tree of names in step with a store that other naming services change too.

use super::changes::CommitError;
use super::config::NamingConfig;
use super::draft::{Bounds, ChangeOutcome, Draft, Refusal, Request};
use super::error::StoreError;
use super::failure::StoreFailure;
use super::record::{self, RecordKey};
use super::shared_store::{
    CommitOutcome, Follower, SharedCommit, SharedSnapshot, SharedStore, SharedStoreError,
    SharedWrites,
};
use super::store::{check_bound, foreign, random};
use super::store_log::StoreLog;
use super::tree::{BindingKey, BindingTarget, ContextId, Effect, ROOT, Tree};
use rtorb::CompletionStatus;
use rtorb_os::clock::{monotonic_ns, sleep_until};
use rtorb_os::sync::{Condvar, Mutex};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Weak};

/// The tree of one of the naming services that share a store.
///
/// Each commit is decided on the tree at one revision of the store, and the store makes it only if no other has been made since.
/// Otherwise the tree follows first, and the commit is decided anew.
#[derive(Debug)]
pub(super) struct Replica {
    store: Arc<dyn SharedStore>,
    tree: Arc<Mutex<Tree>>,
    identity: u64,
    /// The number of this service in the marks of its commits.
    writer: u64,
    reference_bytes_max: usize,
    log: Arc<dyn StoreLog>,
    /// Who changes the tree, or decides on it, has this lock.
    step: Mutex<ReplicaState>,
    stepped: Condvar,
}

/// How far the tree is.
#[derive(Debug, Default)]
struct ReplicaState {
    revision: u64,
    /// Commits that were decided.
    decided: u64,
    /// The last of them that was seen in the store.
    last_made: u64,
    /// How often the whole tree was compared with a snapshot: then some commits were not seen.
    replacements: u64,
    /// What the log was told last, until the store works again.
    failing: Option<StoreFailure>,
}

/// A batch of changes that is decided.
struct Decided {
    /// Its number among those of this service.
    number: u64,
    outcomes: Vec<Result<ChangeOutcome, Refusal>>,
    effects: Vec<Effect>,
    commit: SharedCommit,
    replacements: u64,
}

impl Replica {
    /// Loads the store, makes it if it is empty, and follows it.
    pub(super) fn open(
        store: Arc<dyn SharedStore>,
        config: &NamingConfig,
        log: Arc<dyn StoreLog>,
    ) -> Result<(Arc<Self>, Arc<Mutex<Tree>>), StoreError> {
        let writer = random()?;
        let mut snapshot = store.load()?;
        if snapshot.revision == 0 {
            if !snapshot.entries.is_empty() {
                return Err(foreign("a version"));
            }
            initialize(&*store, writer)?;
            snapshot = store.load()?;
        }
        let (tree, identity) = load(&snapshot, config)?;
        let tree = Arc::new(Mutex::new(tree));
        let replica = Arc::new(Self {
            store: Arc::clone(&store),
            tree: Arc::clone(&tree),
            identity,
            writer,
            reference_bytes_max: config.reference_bytes_max,
            log,
            step: Mutex::new(ReplicaState {
                revision: snapshot.revision,
                ..ReplicaState::default()
            }),
            stepped: Condvar::new(),
        });
        let follower: Weak<Self> = Arc::downgrade(&replica);
        store.follow(snapshot.revision, follower);
        Ok((replica, tree))
    }

    /// The identity of the store, which is part of the object keys of its contexts.
    pub(super) fn identity(&self) -> u64 {
        self.identity
    }

    /// Decides on changes and commits those that are not refused. Even a refusal is confirmed by the store, because the tree may be
    /// behind it.
    pub(super) fn make(
        &self,
        requests: &[&Request],
        bounds: Bounds,
        deadline_ns: u64,
    ) -> Result<Vec<Result<ChangeOutcome, Refusal>>, CommitError> {
        loop {
            let decided = self.decide(requests, bounds)?;
            if self.commit(&decided, deadline_ns)? {
                return Ok(decided.outcomes);
            }
            if monotonic_ns() >= deadline_ns {
                let why = "other naming services were always faster to change it";
                return Err(self.failed(&unavailable(why), CompletionStatus::No));
            }
        }
    }

    fn decide(&self, requests: &[&Request], bounds: Bounds) -> Result<Decided, CommitError> {
        let mut step = self.step.lock();
        step.decided += 1;
        let mut draft = Draft::new(&self.tree, bounds);
        let outcomes = requests.iter().map(|it| draft.add(it)).collect();
        let mark = mark(self.writer, step.decided, draft.next_context());
        let (number, base) = (step.decided, step.revision);
        let replacements = step.replacements;
        drop(step);
        let effects = draft.into_effects();
        let mut writes = BTreeMap::new();
        for effect in &effects {
            let written = record::written(effect, self.reference_bytes_max);
            let (key, value) = written.map_err(|error| {
                let refused = SharedStoreError {
                    failure: StoreFailure::Refused,
                    completed: CompletionStatus::No,
                    why: error.to_string(),
                };
                self.failed(&refused, CompletionStatus::No)
            })?;
            // The last one counts.
            writes.insert(key.text(), value);
        }
        let writes = SharedWrites {
            mark,
            writes: writes.into_iter().collect(),
        };
        Ok(Decided {
            number,
            outcomes,
            effects,
            commit: SharedCommit { base, writes },
            replacements,
        })
    }

    /// Returns true if the commit is made, and false if it must be decided anew.
    fn commit(&self, decided: &Decided, deadline_ns: u64) -> Result<bool, CommitError> {
        let mut completed = CompletionStatus::No;
        loop {
            let error = match self.store.commit(&decided.commit, deadline_ns) {
                Ok(CommitOutcome::Made(revision)) => {
                    let mut step = self.step.lock();
                    self.advance(&mut step, revision, decided.effects.clone());
                    step.last_made = step.last_made.max(decided.number);
                    let was_failing = step.failing.take().is_some();
                    drop(step);
                    self.stepped.notify_all(&self.step);
                    if was_failing {
                        self.log.recovered(self.place());
                    }
                    return Ok(true);
                }
                Ok(CommitOutcome::Behind(revision)) => {
                    return self.catch_up(decided, revision, completed, deadline_ns);
                }
                Err(error) => error,
            };
            if error.completed != CompletionStatus::No {
                completed = CompletionStatus::Maybe;
            }
            let again_ns = monotonic_ns() + PAUSE_NS;
            let is_known = completed == CompletionStatus::No;
            if is_known || error.failure != StoreFailure::Unavailable || again_ns >= deadline_ns {
                return Err(self.failed(&error, completed));
            }
            // Whether it is made is found out by trying it again.
            sleep_until(again_ns);
        }
    }

    /// Waits until the tree is at that revision. Returns true if the commit turns out to be made.
    fn catch_up(
        &self,
        decided: &Decided,
        revision: u64,
        completed: CompletionStatus,
        deadline_ns: u64,
    ) -> Result<bool, CommitError> {
        if revision == 0 {
            let why = "all that was in it is deleted: start the naming services again";
            return Err(self.failed(&unavailable(why), completed));
        }
        let base = decided.commit.base;
        let mut step = self.step.lock();
        // A store that was restored from a copy may be at an earlier revision.
        while step.revision < revision || step.revision == base {
            if !self.stepped.wait_until(&mut step, deadline_ns) && step.revision == base {
                drop(step);
                let why = "commits of other naming services are not received";
                return Err(self.failed(&unavailable(why), completed));
            }
            if monotonic_ns() >= deadline_ns {
                break;
            }
        }
        if step.last_made == decided.number {
            return Ok(true);
        }
        if completed != CompletionStatus::No && step.replacements != decided.replacements {
            drop(step);
            let why = "it is not known any more whether the change was made";
            return Err(self.failed(&unavailable(why), completed));
        }
        Ok(false)
    }

    /// Applies a commit, unless that was done before. The caller notifies.
    fn advance(&self, step: &mut ReplicaState, revision: u64, mut effects: Vec<Effect>) {
        if revision <= step.revision {
            return;
        }
        // A context is there before its bindings, and longer than they.
        effects.sort_by_key(|effect| match effect {
            Effect::Create(_) => 0,
            Effect::Bind(..) | Effect::Unbind(_) => 1,
            Effect::Destroy(_) => 2,
        });
        for effect in effects {
            // One lock for each effect: a reader waits for one change, not for a batch.
            self.tree.lock().apply(effect);
        }
        step.revision = revision;
    }

    /// Logs why the store fails, unless it failed for the same reason before.
    fn failed(&self, error: &SharedStoreError, completed: CompletionStatus) -> CommitError {
        let failure = error.failure;
        let told = self.step.lock().failing.replace(failure);
        if told != Some(failure) {
            self.log.failed(self.place(), failure, &error.why);
        }
        CommitError { failure, completed }
    }

    pub(super) fn report_panic(&self, message: &str) {
        self.log
            .failed(self.place(), StoreFailure::Panicked, message);
    }

    fn place(&self) -> &Path {
        Path::new(self.store.place())
    }
}

impl Follower for Replica {
    fn committed(&self, revision: u64, commit: &SharedWrites) {
        let mut effects = Vec::with_capacity(commit.writes.len());
        for (key, value) in &commit.writes {
            match record::effect(key, value.as_deref()) {
                Some(effect) => effects.push(effect),
                None if RecordKey::parse(key) == Some(RecordKey::About) => {}
                None => self.log.failed(self.place(), StoreFailure::Damaged, key),
            }
        }
        let mut step = self.step.lock();
        self.advance(&mut step, revision, effects);
        if let Some((writer, number, _)) = read_mark(&commit.mark)
            && writer == self.writer
        {
            step.last_made = step.last_made.max(number);
        }
        drop(step);
        self.stepped.notify_all(&self.step);
    }

    fn replaced(&self, snapshot: &SharedSnapshot) {
        let Some(new) = Contents::read(snapshot) else {
            let why = "its contents are deleted or cannot be read";
            return self.log.failed(self.place(), StoreFailure::Damaged, why);
        };
        let mut step = self.step.lock();
        let (contexts, bindings) = self.tree.lock().everything();
        let effects = new.differences(&contexts, &bindings);
        // The store may be at an earlier revision, if it was restored from a copy.
        step.revision = 0;
        self.advance(&mut step, snapshot.revision, effects);
        self.tree.lock().set_next_context(new.next_context);
        step.replacements += 1;
        drop(step);
        self.stepped.notify_all(&self.step);
    }

    fn lost(&self, why: &str) {
        self.failed(&unavailable(why), CompletionStatus::No);
    }

    fn found(&self) {
        let mut step = self.step.lock();
        if step.failing == Some(StoreFailure::Unavailable) {
            step.failing = None;
            drop(step);
            self.log.recovered(self.place());
        }
    }
}

/// The contexts and bindings of a snapshot.
struct Contents {
    contexts: HashSet<ContextId>,
    bindings: HashMap<Arc<BindingKey>, BindingTarget>,
    next_context: ContextId,
}

impl Contents {
    /// `None` if it is no store, or cannot be read.
    fn read(snapshot: &SharedSnapshot) -> Option<Self> {
        let (_, _, next_context) = read_mark(&snapshot.mark)?;
        let (mut contexts, mut bindings) = (HashSet::new(), HashMap::new());
        for (key, value) in &snapshot.entries {
            match record::effect(key, Some(value)) {
                Some(Effect::Create(id)) => {
                    contexts.insert(id);
                }
                Some(Effect::Bind(place, target)) => {
                    bindings.insert(place, target);
                }
                _ if RecordKey::parse(key) == Some(RecordKey::About) => {}
                _ => return None,
            }
        }
        Some(Self {
            contexts,
            bindings,
            next_context,
        })
    }

    /// The changes that lead from these contexts and bindings to its own.
    fn differences(
        &self,
        contexts: &HashSet<ContextId>,
        bindings: &HashMap<Arc<BindingKey>, BindingTarget>,
    ) -> Vec<Effect> {
        let made = self.contexts.difference(contexts).copied();
        let destroyed = contexts.difference(&self.contexts).copied();
        let unbound = bindings
            .keys()
            .filter(|place| !self.bindings.contains_key(*place));
        let bound = self
            .bindings
            .iter()
            .filter(|(place, target)| bindings.get(*place) != Some(target));
        let bound = bound.map(|(place, target)| Effect::Bind(Arc::clone(place), target.clone()));
        made.map(Effect::Create)
            .chain(unbound.map(|place| Effect::Unbind(Arc::clone(place))))
            .chain(bound)
            .chain(destroyed.map(Effect::Destroy))
            .collect()
    }
}

/// Makes an empty store one with the root context, unless another service is faster.
fn initialize(store: &dyn SharedStore, writer: u64) -> Result<(), StoreError> {
    let about = format!("{SCHEMA} {:016x}", random()?).into_bytes();
    let writes = SharedWrites {
        mark: mark(writer, 0, ContextId(ROOT.0 + 1)),
        writes: vec![
            (RecordKey::About.text(), Some(about)),
            (RecordKey::Context(ROOT).text(), Some(Vec::new())),
        ],
    };
    let commit = SharedCommit { base: 0, writes };
    store.commit(&commit, monotonic_ns() + INITIALIZE_NS)?;
    Ok(())
}

fn load(snapshot: &SharedSnapshot, config: &NamingConfig) -> Result<(Tree, u64), StoreError> {
    let about = RecordKey::About.text();
    let about = snapshot.entries.iter().find(|(key, _)| *key == about);
    let about = about.and_then(|(_, value)| core::str::from_utf8(value).ok());
    let (schema, identity) = about
        .and_then(|about| about.split_once(' '))
        .and_then(|(schema, identity)| {
            Some((
                schema.parse().ok()?,
                u64::from_str_radix(identity, 16).ok()?,
            ))
        })
        .ok_or_else(|| foreign("a readable key `about`"))?;
    if schema > SCHEMA {
        return Err(StoreError::Newer {
            schema,
            known: SCHEMA,
        });
    }
    let Some(contents) = Contents::read(snapshot) else {
        let why = "a key or a value cannot be read".to_owned();
        return Err(StoreError::Corrupted { why });
    };
    let mut tree = Tree::new(config.bindings_max);
    for effect in contents.differences(&HashSet::from([ROOT]), &HashMap::new()) {
        tree.apply(effect);
    }
    tree.set_next_context(contents.next_context);
    check_bound(
        "contexts",
        tree.contexts_len(),
        "contexts_max",
        config.contexts_max,
    )?;
    check_bound("bindings", tree.len(), "bindings_max", config.bindings_max)?;
    check_bound("bytes", tree.bytes(), "bytes_max", config.bytes_max)?;
    Ok((tree, identity))
}

/// The mark of a commit: its service, its number there, and the id of the next context.
fn mark(writer: u64, number: u64, next_context: ContextId) -> Vec<u8> {
    format!("{writer:016x} {number} {}", next_context.0).into_bytes()
}

fn read_mark(mark: &[u8]) -> Option<(u64, u64, ContextId)> {
    let mut words = core::str::from_utf8(mark).ok()?.split(' ');
    let writer = u64::from_str_radix(words.next()?, 16).ok()?;
    let number = words.next()?.parse().ok()?;
    let next_context = ContextId(words.next()?.parse().ok()?);
    words
        .next()
        .is_none()
        .then_some((writer, number, next_context))
}

fn unavailable(why: &str) -> SharedStoreError {
    SharedStoreError {
        failure: StoreFailure::Unavailable,
        completed: CompletionStatus::No,
        why: why.to_owned(),
    }
}

/// The schema of this program. Another layout has another number.
const SCHEMA: u64 = 1;

/// Between two attempts to find out whether a commit is made.
const PAUSE_NS: u64 = 50_000_000;

/// For the first commit of a store.
const INITIALIZE_NS: u64 = 5_000_000_000;
