//! Two naming services on one store: what each decides on a tree that may be behind, and what they make of lost answers.

use super::StoreFailure;
use super::changes::{ChangeError, Changes, CommitError, Storage};
use super::config::NamingConfig;
use super::draft::{Change, ChangeOutcome, Refusal, Request};
use super::memory_store::{Fault, Handle, MemoryStore};
use super::replica::Replica;
use super::store_log::StoreLog;
use super::tree::{BindingTarget, ContextId, ROOT, Stop, Tree, View};
use rtorb::CompletionStatus;
use rtorb::ior::Ior;
use rtorb::url::NameComponent;
use rtorb_os::sync::Mutex;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

pub(super) struct Service {
    tree: Arc<Mutex<Tree>>,
    pub(super) changes: Changes,
    log: Arc<Log>,
}

/// Failures in the order in which the log got them; `None` for an end of them.
#[derive(Debug, Default)]
struct Log(Mutex<Vec<Option<StoreFailure>>>);

impl StoreLog for Log {
    fn failed(&self, store: &Path, failure: StoreFailure, _: &str) {
        assert_eq!(store, Path::new("memory"));
        self.0.lock().push(Some(failure));
    }

    fn recovered(&self, _: &Path) {
        self.0.lock().push(None);
    }
}

impl Service {
    pub(super) fn open(store: &Arc<MemoryStore>) -> Self {
        let config = NamingConfig {
            bindings_max: 1_000,
            change_timeout: Duration::from_secs(600),
            ..NamingConfig::default()
        };
        let log = Arc::new(Log::default());
        let handle = Arc::new(Handle(Arc::clone(store)));
        let (replica, tree) = Replica::open(handle, &config, Arc::clone(&log) as _).expect("open");
        let changes = Changes::new(Arc::clone(&tree), Storage::Shared(replica), &config);
        Self { tree, changes, log }
    }

    fn change(
        &self,
        context: ContextId,
        name: &[&str],
        change: Change,
    ) -> Result<ChangeOutcome, ChangeError> {
        let name = name.iter().map(|id| component(id)).collect();
        self.changes.make(Request {
            context,
            name,
            change,
        })
    }

    fn bind(&self, id: &str) -> Result<ChangeOutcome, ChangeError> {
        self.change(ROOT, &[id], object())
    }

    fn has(&self, id: &str) -> bool {
        self.tree.lock().target(ROOT, &component(id)).is_some()
    }
}

fn object() -> Change {
    Change::Bind(BindingTarget::Object(Arc::new(Ior::NIL)))
}

fn component(id: &str) -> NameComponent {
    NameComponent {
        id: id.to_owned(),
        kind: String::new(),
    }
}

fn two() -> (Arc<MemoryStore>, Service, Service) {
    let store = Arc::new(MemoryStore::default());
    let services = [(); 2].map(|()| Service::open(&store));
    let [a, b] = services;
    (store, a, b)
}

/// Carries out a change of a service that is behind, and lets it follow while it waits.
fn behind(
    store: &MemoryStore,
    change: impl FnOnce() -> Result<ChangeOutcome, ChangeError> + Send,
) -> Result<ChangeOutcome, ChangeError> {
    thread::scope(|scope| {
        let changing = scope.spawn(change);
        thread::sleep(Duration::from_millis(20));
        assert!(!changing.is_finished(), "it waits for what it missed");
        store.release();
        changing.join().expect("no panic")
    })
}

const DONE: Result<ChangeOutcome, ChangeError> = Ok(ChangeOutcome::Changed);

fn refused(refusal: Refusal) -> Result<ChangeOutcome, ChangeError> {
    Err(ChangeError::Refused(refusal))
}

#[test]
fn each_service_sees_the_changes_of_the_other_and_its_own_at_once() {
    let (store, a, b) = two();
    assert_eq!(a.bind("a"), DONE);
    assert!(a.has("a") && b.has("a"));
    store.hold();
    assert_eq!(a.bind("b"), DONE);
    assert!(a.has("b") && !b.has("b"));
    store.release();
    assert!(b.has("b"));
}

#[test]
fn the_store_decides_whether_a_name_is_bound_though_a_service_is_behind() {
    let (store, a, b) = two();
    store.hold();
    assert_eq!(a.bind("name"), DONE);
    assert_eq!(
        behind(&store, || b.bind("name")),
        refused(Refusal::AlreadyBound)
    );
    store.hold();
    assert_eq!(a.change(ROOT, &["name"], Change::Unbind), DONE);
    assert_eq!(behind(&store, || b.bind("name")), DONE);
    assert!(a.has("name") && b.has("name"));
}

#[test]
fn a_context_in_which_another_service_binds_is_not_destroyed() {
    let (store, a, b) = two();
    let Ok(ChangeOutcome::Created(context)) = a.change(ROOT, &["c"], Change::BindNewContext) else {
        panic!("no context");
    };
    store.hold();
    assert_eq!(a.change(context, &["o"], object()), DONE);
    let destroyed = behind(&store, || b.change(context, &[], Change::Destroy));
    assert_eq!(destroyed, refused(Refusal::NotEmpty));
    assert_eq!(a.change(context, &["o"], Change::Unbind), DONE);
    store.hold();
    assert_eq!(a.change(context, &[], Change::Destroy), DONE);
    let bound = behind(&store, || b.change(context, &["o"], object()));
    assert_eq!(bound, refused(Refusal::Stopped(Stop::NoContext)));
}

#[test]
fn two_services_never_give_a_context_the_same_id() {
    let (store, a, b) = two();
    store.hold();
    let first = a.change(ROOT, &[], Change::NewContext);
    let second = behind(&store, || b.change(ROOT, &[], Change::NewContext));
    assert_eq!(first, Ok(ChangeOutcome::Created(ContextId(1))));
    assert_eq!(second, Ok(ChangeOutcome::Created(ContextId(2))));
    // Not even after all are destroyed and forgotten.
    assert_eq!(a.change(ContextId(2), &[], Change::Destroy), DONE);
    let third = Service::open(&store).change(ROOT, &[], Change::NewContext);
    assert_eq!(third, Ok(ChangeOutcome::Created(ContextId(3))));
}

#[test]
fn a_change_whose_answer_is_lost_is_made_once_and_acknowledged() {
    for fault in [
        Fault::Lost,
        Fault::AnswerLost,
        Fault::AnswerLostAndOvertaken,
    ] {
        let (store, a, b) = two();
        store.fail([fault, Fault::Unsent]);
        assert_eq!(a.bind("name"), DONE, "{fault:?}");
        assert!(a.has("name") && b.has("name"));
        assert_eq!(b.bind("name"), refused(Refusal::AlreadyBound));
        assert_eq!(a.changes.counts(), (1, 1), "{fault:?}");
    }
}

#[test]
fn a_store_that_is_not_there_fails_changes_at_once_and_is_logged_once() {
    let (store, a, _) = two();
    store.fail([Fault::Unsent, Fault::Unsent, Fault::Refused]);
    let failed = |failure| {
        let completed = CompletionStatus::No;
        Err(ChangeError::NotKept(CommitError { failure, completed }))
    };
    assert_eq!(a.bind("a"), failed(StoreFailure::Unavailable));
    assert_eq!(a.bind("a"), failed(StoreFailure::Unavailable));
    assert_eq!(a.bind("a"), failed(StoreFailure::Refused));
    assert!(!a.has("a"));
    assert_eq!(a.bind("a"), DONE);
    let logged = [
        Some(StoreFailure::Unavailable),
        Some(StoreFailure::Refused),
        None,
    ];
    assert_eq!(*a.log.0.lock(), logged);
}

#[test]
fn a_service_that_missed_commits_takes_the_difference_from_a_snapshot() {
    let (store, a, b) = two();
    for id in ["kept", "gone", "other"] {
        assert_eq!(a.bind(id), DONE);
    }
    let mut cursor = b.tree.lock().list(ROOT).expect("the root");
    assert_eq!(b.tree.lock().read(&mut cursor, 1).len(), 1);
    store.hold();
    assert_eq!(a.change(ROOT, &["gone"], Change::Unbind), DONE);
    let context = Change::RebindContext(BindingTarget::Context(ContextId(1)));
    assert_eq!(
        a.change(ROOT, &[], Change::NewContext),
        Ok(ChangeOutcome::Created(ContextId(1)))
    );
    assert_eq!(a.change(ROOT, &["new"], context), DONE);
    store.forget();
    for service in [&a, &b] {
        let tree = service.tree.lock();
        assert_eq!((tree.len(), tree.contexts_len()), (3, 2));
        assert_eq!(tree.next_context(), ContextId(2));
        assert!(tree.has_context(ContextId(1)));
        let new = tree.target(ROOT, &component("new"));
        assert_eq!(new, Some(BindingTarget::Context(ContextId(1))));
    }
    // A list in progress goes on.
    let rest = b.tree.lock().read(&mut cursor, 9);
    let rest: Vec<_> = rest.iter().map(|(it, _)| &*it.component.id).collect();
    assert_eq!(rest, ["other"]);
    assert_eq!(b.bind("gone"), DONE);
}

#[test]
fn many_changes_at_once_are_committed_in_portions_that_a_store_takes() {
    let (store, a, b) = two();
    thread::scope(|scope| {
        for service in [&a, &b] {
            for part in 0..20 {
                scope.spawn(move || {
                    for index in 0..20 {
                        let id = format!("{part}-{index}");
                        let bound = service.bind(&id);
                        assert!(bound == DONE || bound == refused(Refusal::AlreadyBound));
                    }
                });
            }
        }
    });
    let made = a.changes.counts().0 + b.changes.counts().0;
    assert_eq!((made, store.snapshot().entries.len()), (400, 402));
    assert_eq!((a.tree.lock().len(), b.tree.lock().len()), (400, 400));
}
