//! Group commit: changes that come at the same time share one commit, which one of their threads makes.
#![expect(
    clippy::disallowed_types,
    reason = "only the leader sets an answer, and no thread waits for one by it"
)]

use super::config::NamingConfig;
use super::draft::{Bounds, ChangeOutcome, Draft, Refusal, Request};
use super::failure::StoreFailure;
use super::replica::Replica;
use super::shared_store::{WRITES_BYTES_MAX, WRITES_MAX};
use super::tree::{Effect, Tree};
use core::any::Any;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use rtorb::{CompletionStatus, CurrentCall};
use rtorb_os::bounded_queue::BoundedQueue;
use rtorb_os::clock::monotonic_ns;
use rtorb_os::sync::{Condvar, Mutex, MutexGuard};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

/// The queue of changes and their commits.
///
/// The first thread becomes the leader: it takes the waiting changes, decides and commits them, and publishes them to readers.
/// Threads that come meanwhile wait; then the most urgent of them leads. No thread holds a lock during the disk access.
#[derive(Debug)]
pub(super) struct Changes {
    tree: Arc<Mutex<Tree>>,
    storage: Mutex<Storage>,
    is_shared: bool,
    /// A commit panicked, so no other is made.
    has_panicked: AtomicBool,
    bounds: Bounds,
    timeout_ns: u64,
    queue: Mutex<ChangeQueue>,
    led: Condvar,
    made: AtomicU64,
    commits: AtomicU64,
}

/// Where changes are kept. A commit shares the disk, so that the last user of the disk closes it.
#[derive(Clone, Debug)]
pub(super) enum Storage {
    Memory,
    Disk(Arc<dyn Disk>),
    /// A store that other services change too.
    Shared(Arc<Replica>),
    /// The service has ended: no change is made.
    Closed,
}

/// Stable storage for changes.
pub(super) trait Disk: Send + Sync + core::fmt::Debug {
    /// Writes changes, all or none, and returns when they are on the disk.
    fn commit(&self, effects: &[Effect]) -> Result<(), CommitError>;

    /// Reports that a commit panicked with that message. No other will be made.
    fn report_panic(&self, message: &str);
}

/// Why a commit failed, and whether the changes may be on the disk all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CommitError {
    pub(super) failure: StoreFailure,
    pub(super) completed: CompletionStatus,
}

/// Why a change failed, or is not known to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ChangeError {
    /// The rules refuse it.
    Refused(Refusal),
    /// Too many changes wait. It is not made.
    Busy,
    /// The change waited too long, and is not made.
    TooLate,
    /// Its commit takes too long. It may be made.
    LateInCommit,
    /// The service has ended. It is not made.
    Ended,
    /// The store failed.
    NotKept(CommitError),
}

#[derive(Debug)]
struct ChangeQueue {
    waiting: BoundedQueue<PendingChange>,
    is_led: bool,
}

#[derive(Debug)]
struct PendingChange {
    request: Request,
    answer: Arc<Answer>,
    deadline_ns: u64,
}

type Answer = OnceLock<Result<ChangeOutcome, ChangeError>>;

impl Changes {
    pub(super) fn new(tree: Arc<Mutex<Tree>>, storage: Storage, config: &NamingConfig) -> Self {
        Self {
            tree,
            is_shared: matches!(storage, Storage::Shared(_)),
            storage: Mutex::new(storage),
            has_panicked: AtomicBool::new(false),
            bounds: config.into(),
            timeout_ns: nanoseconds(config.change_timeout),
            queue: Mutex::new(ChangeQueue {
                waiting: BoundedQueue::new(config.changes_waiting_max, usize::MAX),
                is_led: false,
            }),
            led: Condvar::new(),
            made: AtomicU64::new(0),
            commits: AtomicU64::new(0),
        }
    }

    /// Makes a change. When this returns, the change is on the disk, if there is one, and visible.
    pub(super) fn make(&self, request: Request) -> Result<ChangeOutcome, ChangeError> {
        let deadline_ns = self.deadline_ns();
        let answer = Arc::new(Answer::new());
        let mut queue = self.queue.lock();
        let change = PendingChange {
            request,
            answer: Arc::clone(&answer),
            deadline_ns,
        };
        if queue.waiting.push(change, 0).is_err() {
            return Err(ChangeError::Busy);
        }
        loop {
            if let Some(answer) = answer.get() {
                return answer.clone();
            }
            if !queue.is_led && monotonic_ns() < deadline_ns {
                queue = self.lead(queue);
            } else if !self.led.wait_until(&mut queue, deadline_ns) && answer.get().is_none() {
                return Err(queue.give_up(&answer));
            }
        }
    }

    /// When a change that begins now is given up. The disk answers or fails; a store elsewhere may do neither, so nobody waits for it
    /// longer than the client does.
    fn deadline_ns(&self) -> u64 {
        let own_ns = self.timeout_ns;
        let left = self.is_shared.then(CurrentCall::get).flatten();
        let left_ns = left.and_then(|call| call.remaining()).map(nanoseconds);
        monotonic_ns().saturating_add(left_ns.map_or(own_ns, |left_ns| left_ns.min(own_ns)))
    }

    /// Refuses all later changes, and closes the disk when the commit in progress has ended.
    pub(super) fn end(&self) {
        let storage = core::mem::replace(&mut *self.storage.lock(), Storage::Closed);
        // Only now, because closing the disk may take time.
        drop(storage);
    }

    /// The number of changes and of their commits.
    pub(super) fn counts(&self) -> (u64, u64) {
        let made = self.made.load(Ordering::Relaxed);
        (made, self.commits.load(Ordering::Relaxed))
    }

    /// Commits a batch of waiting changes. It may lack the leader's own change if many were before it.
    fn lead<'q>(&'q self, mut queue: MutexGuard<'q, ChangeQueue>) -> MutexGuard<'q, ChangeQueue> {
        queue.is_led = true;
        let batch: Vec<PendingChange> = queue.waiting.drain(BATCH_MAX).collect();
        drop(queue);
        // A guard, because other threads must not wait for ever if the log of the store panics.
        let leading = LeaderGuard(self);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.commit(&batch))) {
            self.note_panic(&batch, &*panic);
        }
        drop(leading);
        self.queue.lock()
    }

    /// Ends the changes of a batch whose commit panicked, and all later ones.
    fn note_panic(&self, batch: &[PendingChange], panic: &(dyn Any + Send)) {
        self.has_panicked.store(true, Ordering::Relaxed);
        for waiting in batch {
            // The commit may have answered some of them.
            let error = panicked(CompletionStatus::Maybe);
            let _ = waiting.answer.set(Err(ChangeError::NotKept(error)));
        }
        let storage = self.storage.lock().clone();
        match storage {
            Storage::Disk(disk) => disk.report_panic(panic_message(panic)),
            Storage::Shared(replica) => replica.report_panic(panic_message(panic)),
            Storage::Memory | Storage::Closed => {}
        }
    }

    fn commit(&self, batch: &[PendingChange]) {
        if !self.is_shared {
            return self.commit_alone(batch);
        }
        let mut rest = batch;
        while !rest.is_empty() {
            let (portion, after) = rest.split_at(portion_len(rest));
            rest = after;
            if !self.commit_shared(portion) {
                break;
            }
        }
        let unavailable = CommitError {
            failure: StoreFailure::Unavailable,
            completed: CompletionStatus::No,
        };
        for waiting in rest {
            let _ = waiting.answer.set(Err(ChangeError::NotKept(unavailable)));
        }
    }

    /// Commits changes to a store that other services change too, which decides whether they are made. Returns false if the store does not
    /// answer: the leader would wait for it longer than its own call.
    fn commit_shared(&self, portion: &[PendingChange]) -> bool {
        let storage = self.storage.lock().clone();
        let made = match storage {
            _ if self.has_panicked.load(Ordering::Relaxed) => {
                Err(ChangeError::NotKept(panicked(CompletionStatus::No)))
            }
            Storage::Shared(replica) => {
                let requests: Vec<_> = portion.iter().map(|waiting| &waiting.request).collect();
                let deadline_ns = self.shared_deadline_ns(portion);
                let made = replica.make(&requests, self.bounds, deadline_ns);
                made.map_err(ChangeError::NotKept)
            }
            _ => Err(ChangeError::Ended),
        };
        if let Ok(outcomes) = &made {
            let changes = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
            self.made.fetch_add(changes as u64, Ordering::Relaxed);
            self.commits
                .fetch_add(u64::from(changes > 0), Ordering::Relaxed);
        }
        for (index, waiting) in portion.iter().enumerate() {
            let answer = match &made {
                Ok(outcomes) => outcomes[index].clone().map_err(ChangeError::Refused),
                Err(error) => Err(error.clone()),
            };
            // Only the leader sets it, once.
            let _ = waiting.answer.set(answer);
        }
        let is_unavailable = |error: &CommitError| error.failure == StoreFailure::Unavailable;
        !matches!(&made, Err(ChangeError::NotKept(error)) if is_unavailable(error))
    }

    /// When a commit to a shared store is given up: when nobody waits for it any more, and before others waited too long for it.
    fn shared_deadline_ns(&self, portion: &[PendingChange]) -> u64 {
        let latest_ns = portion.iter().map(|waiting| waiting.deadline_ns).max();
        let most_ns = monotonic_ns().saturating_add(self.timeout_ns / SHARED_COMMIT_PART);
        latest_ns.map_or(most_ns, |latest_ns| latest_ns.min(most_ns))
    }

    fn commit_alone(&self, batch: &[PendingChange]) {
        let mut draft = Draft::new(&self.tree, self.bounds);
        let decided: Vec<_> = batch
            .iter()
            .map(|waiting| draft.add(&waiting.request).map_err(ChangeError::Refused))
            .collect();
        let effects = draft.into_effects();
        let made = decided.iter().filter(|decided| decided.is_ok()).count();
        let has_panicked = self.has_panicked.load(Ordering::Relaxed);
        let storage = self.storage.lock().clone();
        let committed = match storage {
            _ if effects.is_empty() => Ok(()),
            _ if has_panicked => Err(ChangeError::NotKept(panicked(CompletionStatus::No))),
            Storage::Memory => Ok(()),
            Storage::Disk(disk) => disk.commit(&effects).map_err(ChangeError::NotKept),
            Storage::Shared(_) | Storage::Closed => Err(ChangeError::Ended),
        };
        if committed.is_ok() && !effects.is_empty() {
            self.made.fetch_add(made as u64, Ordering::Relaxed);
            self.commits.fetch_add(1, Ordering::Relaxed);
            for effect in effects {
                // One lock for each effect: a reader waits for one change, not for a batch.
                self.tree.lock().apply(effect);
            }
        }
        for (waiting, decided) in batch.iter().zip(decided) {
            let answer = match &committed {
                Ok(()) => decided,
                Err(error) => Err(error.clone()),
            };
            // Only the leader sets it, once.
            let _ = waiting.answer.set(answer);
        }
    }
}

impl ChangeQueue {
    /// Removes a change from the queue if no leader has taken it.
    fn give_up(&mut self, answer: &Arc<Answer>) -> ChangeError {
        let is_it = |waiting: &PendingChange| Arc::ptr_eq(&waiting.answer, answer);
        match self.waiting.remove(is_it) {
            Some(_) => ChangeError::TooLate,
            #[cfg(simulation)]
            None if rtorb_os::simulation::is_planted("late-change-denied") => ChangeError::TooLate,
            None => ChangeError::LateInCommit,
        }
    }
}

/// Ends the leadership when dropped.
struct LeaderGuard<'c>(&'c Changes);

impl Drop for LeaderGuard<'_> {
    fn drop(&mut self) {
        self.0.queue.lock().is_led = false;
        #[cfg(simulation)]
        if rtorb_os::simulation::is_planted("followers-asleep") {
            return;
        }
        self.0.led.notify_all(&self.0.queue);
    }
}

fn panicked(completed: CompletionStatus) -> CommitError {
    CommitError {
        failure: StoreFailure::Panicked,
        completed,
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("a panic without a message")
}

/// The number of changes, one at least, that a commit to a shared store takes. A change writes at most twice: a context and its name.
fn portion_len(waiting: &[PendingChange]) -> usize {
    let mut bytes = 0;
    let is_within = |waiting: &&PendingChange| {
        let names = waiting.request.name.iter();
        let name_bytes: usize = names.map(|it| it.id.len() + it.kind.len()).sum();
        bytes += CHANGE_BYTES + 2 * name_bytes + 2 * waiting.request.change.bytes();
        bytes <= WRITES_BYTES_MAX
    };
    let within = waiting.iter().take(WRITES_MAX / 2).take_while(is_within);
    within.count().max(1)
}

/// Bytes of the keys of a change beside its name, and of the padding of its reference.
const CHANGE_BYTES: usize = 256;

/// The part of the time for changes that a commit to a shared store may take, after which clients get TRANSIENT.
const SHARED_COMMIT_PART: u64 = 5;

/// The greatest number of changes in a commit: it limits how long one thread works for others.
const BATCH_MAX: usize = 256;

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::draft::Change;
    use super::super::memory_store::{Fault, MemoryStore};
    use super::super::replica_tests::Service;
    use super::super::tree::{BindingKey, BindingTarget, ROOT, View};
    use super::*;
    use core::sync::atomic::{AtomicBool, AtomicUsize};
    use rtorb::ior::Ior;
    use rtorb::url::NameComponent;
    use std::thread;

    /// A disk that tests can delay, break, and make panic.
    #[derive(Debug, Default)]
    struct FaultyDisk {
        is_held: AtomicBool,
        is_broken: AtomicBool,
        /// The number of commits that do not panic.
        commits_before_panic: AtomicUsize,
        commits: AtomicUsize,
        effects: AtomicUsize,
        panics_reported: Mutex<Vec<String>>,
    }

    const FULL: CommitError = CommitError {
        failure: StoreFailure::DiskFull,
        completed: CompletionStatus::Maybe,
    };

    impl Disk for Arc<FaultyDisk> {
        fn commit(&self, effects: &[Effect]) -> Result<(), CommitError> {
            let number = self.commits.fetch_add(1, Ordering::SeqCst) + 1;
            wait_until("the disk to be let go", || {
                !self.is_held.load(Ordering::SeqCst)
            });
            let panics = number > self.commits_before_panic.load(Ordering::SeqCst);
            assert!(!panics, "a disk that panics");
            if self.is_broken.load(Ordering::SeqCst) {
                return Err(FULL);
            }
            self.effects.fetch_add(effects.len(), Ordering::SeqCst);
            Ok(())
        }

        fn report_panic(&self, message: &str) {
            self.panics_reported.lock().push(message.to_owned());
        }
    }

    fn wait_until(what: &str, is_so: impl Fn() -> bool) {
        let deadline_ns = monotonic_ns() + 20_000_000_000;
        while !is_so() {
            assert!(monotonic_ns() < deadline_ns, "waited too long for {what}");
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn changes(config: &NamingConfig) -> (Arc<FaultyDisk>, Changes) {
        let disk = Arc::<FaultyDisk>::default();
        disk.commits_before_panic
            .store(usize::MAX, Ordering::SeqCst);
        let tree = Arc::new(Mutex::new(Tree::new(config.bindings_max)));
        let storage = Storage::Disk(Arc::new(Arc::clone(&disk)));
        let changes = Changes::new(tree, storage, config);
        (disk, changes)
    }

    fn bind(id: &str) -> Request {
        Request {
            context: ROOT,
            name: vec![component(id)],
            change: Change::Bind(BindingTarget::Object(Arc::new(Ior::NIL))),
        }
    }

    fn component(id: &str) -> NameComponent {
        NameComponent {
            id: id.to_owned(),
            kind: String::new(),
        }
    }

    fn is_bound(changes: &Changes, id: &str) -> bool {
        changes.tree.lock().target(ROOT, &component(id)).is_some()
    }

    #[test]
    fn readers_see_a_change_only_when_it_is_on_the_disk_and_never_wait() {
        let (disk, changes) = changes(&NamingConfig::default());
        changes.make(bind("before")).expect("made");
        disk.is_held.store(true, Ordering::SeqCst);
        thread::scope(|scope| {
            scope.spawn(|| changes.make(bind("during")));
            wait_until("a commit", || disk.commits.load(Ordering::SeqCst) == 2);
            // The disk is held until this is answered.
            assert!(is_bound(&changes, "before"));
            assert!(!is_bound(&changes, "during"));
            disk.is_held.store(false, Ordering::SeqCst);
        });
        assert!(is_bound(&changes, "during"));
    }

    #[test]
    fn changes_during_a_commit_share_the_next_one() {
        let (disk, changes) = changes(&NamingConfig::default());
        disk.is_held.store(true, Ordering::SeqCst);
        let outcomes = thread::scope(|scope| {
            let changes = &changes;
            let first = scope.spawn(move || changes.make(bind("first")));
            wait_until("a commit", || disk.commits.load(Ordering::SeqCst) == 1);
            // Two of them want the same name.
            let others = ["a", "b", "c", "d", "d"];
            let others = others.map(|id| scope.spawn(move || changes.make(bind(id))));
            wait_until("the others", || {
                changes.queue.lock().waiting.len() == others.len()
            });
            disk.is_held.store(false, Ordering::SeqCst);
            first.join().expect("a thread").expect("made");
            others.map(|other| other.join().expect("a thread"))
        });
        let refused = Err(ChangeError::Refused(Refusal::AlreadyBound));
        let count = |wanted| {
            outcomes
                .iter()
                .filter(|outcome| **outcome == wanted)
                .count()
        };
        assert_eq!((count(Ok(ChangeOutcome::Changed)), count(refused)), (4, 1));
        assert_eq!(disk.effects.load(Ordering::SeqCst), 5);
        assert_eq!(changes.counts(), (5, 2));
    }

    #[test]
    fn a_change_that_the_disk_did_not_keep_is_not_visible() {
        let (disk, changes) = changes(&NamingConfig::default());
        disk.is_broken.store(true, Ordering::SeqCst);
        assert_eq!(changes.make(bind("a")), Err(ChangeError::NotKept(FULL)));
        assert!(!is_bound(&changes, "a"));
        disk.is_broken.store(false, Ordering::SeqCst);
        assert_eq!(changes.make(bind("a")), Ok(ChangeOutcome::Changed));
    }

    #[test]
    fn the_disk_is_closed_after_the_commit_in_progress_and_no_later_change_is_made() {
        let (disk, changes) = changes(&NamingConfig::default());
        disk.is_held.store(true, Ordering::SeqCst);
        thread::scope(|scope| {
            let during = scope.spawn(|| changes.make(bind("during")));
            wait_until("a commit", || disk.commits.load(Ordering::SeqCst) == 1);
            changes.end();
            assert_eq!(Arc::strong_count(&disk), 2, "it is in use");
            disk.is_held.store(false, Ordering::SeqCst);
            let during = during.join().expect("a thread");
            assert_eq!(during, Ok(ChangeOutcome::Changed));
        });
        assert_eq!(Arc::strong_count(&disk), 1, "it is closed");
        assert_eq!(changes.make(bind("later")), Err(ChangeError::Ended));
        assert!(!is_bound(&changes, "later"));
    }

    #[test]
    fn a_panic_of_the_disk_ends_every_change_and_the_disk_is_not_used_again() {
        let (disk, changes) = changes(&NamingConfig::default());
        changes.make(bind("before")).expect("made");
        disk.is_held.store(true, Ordering::SeqCst);
        let outcomes = thread::scope(|scope| {
            let changes = &changes;
            let first = scope.spawn(move || changes.make(bind("first")));
            wait_until("a commit", || disk.commits.load(Ordering::SeqCst) == 2);
            let others = ["a", "b", "c"].map(|id| scope.spawn(move || changes.make(bind(id))));
            wait_until("the others", || changes.queue.lock().waiting.len() == 3);
            disk.commits_before_panic.store(1, Ordering::SeqCst);
            disk.is_held.store(false, Ordering::SeqCst);
            let [a, b, c] = others;
            [first, a, b, c].map(|thread| thread.join().expect("no panic"))
        });
        let not_kept = |completed| Err(ChangeError::NotKept(panicked(completed)));
        assert_eq!(outcomes[0], not_kept(CompletionStatus::Maybe));
        assert!(
            outcomes[1..]
                .iter()
                .all(|it| *it == not_kept(CompletionStatus::No))
        );
        disk.commits_before_panic
            .store(usize::MAX, Ordering::SeqCst);
        let later = changes.make(bind("later"));
        assert_eq!(later, not_kept(CompletionStatus::No));
        assert_eq!(disk.commits.load(Ordering::SeqCst), 2);
        assert_eq!(*disk.panics_reported.lock(), ["a disk that panics"]);
        assert!(is_bound(&changes, "before") && !is_bound(&changes, "first"));
        // Only a change needs the disk.
        let refused = ChangeError::Refused(Refusal::AlreadyBound);
        assert_eq!(changes.make(bind("before")), Err(refused));
    }

    #[test]
    fn the_followers_of_a_leader_whose_commit_panics_get_an_exception() {
        let (disk, changes) = changes(&NamingConfig::default());
        disk.is_held.store(true, Ordering::SeqCst);
        // Only the first commit succeeds; the second has the changes of both followers.
        let outcomes = thread::scope(|scope| {
            let changes = &changes;
            let first = scope.spawn(move || changes.make(bind("first")));
            wait_until("a commit", || disk.commits.load(Ordering::SeqCst) == 1);
            let followers = ["a", "b"].map(|id| scope.spawn(move || changes.make(bind(id))));
            wait_until("the others", || changes.queue.lock().waiting.len() == 2);
            disk.commits_before_panic.store(1, Ordering::SeqCst);
            disk.is_held.store(false, Ordering::SeqCst);
            assert_eq!(first.join().expect("no panic"), Ok(ChangeOutcome::Changed));
            followers.map(|thread| thread.join().expect("no panic"))
        });
        let maybe = panicked(CompletionStatus::Maybe);
        assert_eq!(outcomes, [(); 2].map(|()| Err(ChangeError::NotKept(maybe))));
        assert_eq!(disk.commits.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn a_change_that_waits_too_long_reports_whether_its_commit_had_begun() {
        let config = NamingConfig {
            change_timeout: Duration::from_millis(30),
            changes_waiting_max: 1,
            ..NamingConfig::default()
        };
        let (disk, changes) = changes(&config);
        disk.is_held.store(true, Ordering::SeqCst);
        let answer = Arc::new(Answer::new());
        let gone = changes.queue.lock().give_up(&answer);
        assert_eq!(gone, ChangeError::LateInCommit, "a leader has taken it");
        thread::scope(|scope| {
            // On a busy host, the time of some may pass before they lead.
            let leader = scope.spawn(|| {
                let mut made = (0..1_000).map(|_| changes.make(bind("a")));
                made.find(|made| *made != Err(ChangeError::TooLate))
            });
            wait_until("a commit", || disk.commits.load(Ordering::SeqCst) == 1);
            assert_eq!(changes.make(bind("b")), Err(ChangeError::TooLate));
            let waiting = PendingChange {
                request: bind("c"),
                answer: Arc::clone(&answer),
                deadline_ns: u64::MAX,
            };
            let pushed = changes.queue.lock().waiting.push(waiting, 0);
            assert!(pushed.is_ok(), "there is room for one");
            assert_eq!(changes.make(bind("d")), Err(ChangeError::Busy));
            let gone = changes.queue.lock().give_up(&answer);
            assert_eq!(gone, ChangeError::TooLate);
            disk.is_held.store(false, Ordering::SeqCst);
            let made = leader.join().expect("no panic");
            assert_eq!(made, Some(Ok(ChangeOutcome::Changed)));
        });
        assert!(is_bound(&changes, "a") && !is_bound(&changes, "b"));
    }

    #[test]
    fn after_a_commit_to_a_shared_store_that_does_not_answer_its_leader_tries_no_other() {
        let store = Arc::new(MemoryStore::default());
        let service = Service::open(&store);
        store.fail([Fault::Unsent]);
        let pending = |index: usize| PendingChange {
            request: bind(&index.to_string()),
            answer: Arc::new(Answer::new()),
            deadline_ns: u64::MAX,
        };
        let batch: Vec<_> = (0..WRITES_MAX).map(pending).collect();
        service.changes.commit(&batch);
        let error = CommitError {
            failure: StoreFailure::Unavailable,
            completed: CompletionStatus::No,
        };
        let not_kept = Err(ChangeError::NotKept(error));
        assert!(batch.iter().all(|it| it.answer.get() == Some(&not_kept)));
        assert_eq!(service.changes.counts(), (0, 0));
    }

    #[test]
    fn a_change_sees_those_before_it_in_its_batch() {
        let (_, changes) = changes(&NamingConfig::default());
        let mut draft = Draft::new(&changes.tree, changes.bounds);
        let at = |name: &[&str], change| Request {
            context: ROOT,
            name: name.iter().map(|id| component(id)).collect(),
            change,
        };
        let Ok(ChangeOutcome::Created(context)) = draft.add(&at(&["c"], Change::BindNewContext))
        else {
            panic!("no context");
        };
        let object = Change::Bind(BindingTarget::Object(Arc::new(Ior::NIL)));
        assert_eq!(
            draft.add(&at(&["c", "o"], object)),
            Ok(ChangeOutcome::Changed)
        );
        let destroy = Request {
            context,
            name: Vec::new(),
            change: Change::Destroy,
        };
        assert_eq!(draft.add(&destroy), Err(Refusal::NotEmpty));
        assert_eq!(
            draft.add(&at(&["c", "o"], Change::Unbind)),
            Ok(ChangeOutcome::Changed)
        );
        assert_eq!(draft.add(&destroy), Ok(ChangeOutcome::Changed));
        let place = |id: &str, context| {
            let component = component(id);
            Arc::new(BindingKey { context, component })
        };
        assert_eq!(
            draft.into_effects(),
            [
                Effect::Create(context),
                Effect::Bind(place("c", ROOT), BindingTarget::Context(context)),
                Effect::Bind(
                    place("o", context),
                    BindingTarget::Object(Arc::new(Ior::NIL))
                ),
                Effect::Unbind(place("o", context)),
                Effect::Destroy(context),
            ]
        );
    }
}
