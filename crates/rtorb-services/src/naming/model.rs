//! Random changes compared with a simple model, with restarts of the store in between.

use super::changes::{ChangeError, Changes, Storage};
use super::config::NamingConfig;
use super::draft::{Change, ChangeOutcome, Refusal, Request};
use super::replica::Replica;
use super::shared_store::SharedStore;
use super::store_log::NoLog;
use super::tree::{BindingKey, BindingTarget, ContextId, ROOT, Stop, Tree, View};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use rtorb::ior::{Ior, TaggedProfile};
use rtorb::url::NameComponent;
use rtorb_os::sync::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One step of a test.
#[derive(Clone, Debug)]
enum Action {
    Change {
        /// The context to call: an existing one or one of the next two.
        context: u64,
        path: Vec<&'static str>,
        what: Operation,
    },
    /// A restart.
    Reopen,
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Bind(u8),
    Rebind(u8),
    BindContext(u64),
    RebindContext(u64),
    Unbind,
    BindNewContext,
    NewContext,
    Destroy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    Object(u8),
    Context(u64),
}

/// The contexts with their bindings.
#[derive(Debug)]
struct Model {
    contexts: BTreeMap<u64, BTreeMap<&'static str, Bound>>,
    next: u64,
}

impl Model {
    fn new() -> Self {
        Self {
            contexts: BTreeMap::from([(0, BTreeMap::new())]),
            next: 1,
        }
    }

    /// Returns the new context, or a word for the error.
    fn make(
        &mut self,
        context: u64,
        path: &[&'static str],
        what: Operation,
    ) -> Result<Option<u64>, &'static str> {
        let here = self.contexts.get(&context).ok_or("no context")?;
        let is_new = |next: u64| (next, BTreeMap::new());
        match (path, what) {
            ([], Operation::NewContext) => {
                self.contexts.extend([is_new(self.next)]);
                self.next += 1;
                Ok(Some(self.next - 1))
            }
            ([], Operation::Destroy) if context == 0 => Err("root"),
            ([], Operation::Destroy) if !here.is_empty() => Err("not empty"),
            ([], _) => {
                self.contexts.remove(&context);
                Ok(None)
            }
            ([step, rest @ ..], _) if !rest.is_empty() => match here.get(step) {
                None => Err("missing"),
                Some(Bound::Object(_)) => Err("not context"),
                Some(Bound::Context(next)) if !self.contexts.contains_key(next) => Err("destroyed"),
                Some(Bound::Context(next)) => self.make(*next, rest, what),
            },
            ([last, ..], Operation::BindNewContext) if here.contains_key(last) => Err("bound"),
            ([last, ..], what) => {
                let bound = here.get(last).copied();
                let made = matches!(what, Operation::BindNewContext).then_some(self.next);
                if let Some(made) = made {
                    self.contexts.extend([is_new(made)]);
                    self.next += 1;
                }
                let here = self.contexts.get_mut(&context).ok_or("no context")?;
                let target = match (what, bound) {
                    (Operation::Bind(_) | Operation::BindContext(_), Some(_)) => {
                        return Err("bound");
                    }
                    (Operation::Rebind(_), Some(Bound::Context(_))) => return Err("not object"),
                    (Operation::RebindContext(_), Some(Bound::Object(_))) => {
                        return Err("not context");
                    }
                    (Operation::Bind(object) | Operation::Rebind(object), _) => {
                        Bound::Object(object)
                    }
                    (Operation::BindContext(id) | Operation::RebindContext(id), _) => {
                        Bound::Context(id)
                    }
                    (Operation::BindNewContext, _) => Bound::Context(self.next - 1),
                    (Operation::Unbind, None) => return Err("missing"),
                    (Operation::Unbind | Operation::NewContext | Operation::Destroy, _) => {
                        here.remove(last);
                        return Ok(None);
                    }
                };
                here.insert(last, target);
                Ok(made)
            }
        }
    }
}

fn target(bound: Bound) -> BindingTarget {
    match bound {
        Bound::Context(id) => BindingTarget::Context(ContextId(id)),
        Bound::Object(number) => BindingTarget::Object(Arc::new(Ior {
            type_id: format!("IDL:Thing{number}:1.0"),
            profiles: vec![TaggedProfile {
                tag: 0,
                data: vec![number; usize::from(number)],
            }],
        })),
    }
}

fn component(id: &str) -> NameComponent {
    NameComponent {
        id: id.to_owned(),
        kind: format!("{id}'s"),
    }
}

fn request(context: u64, path: &[&'static str], what: Operation) -> Request {
    Request {
        context: ContextId(context),
        name: path.iter().map(|id| component(id)).collect(),
        change: match what {
            Operation::Bind(object) => Change::Bind(target(Bound::Object(object))),
            Operation::Rebind(object) => Change::RebindObject(target(Bound::Object(object))),
            Operation::BindContext(id) => Change::Bind(target(Bound::Context(id))),
            Operation::RebindContext(id) => Change::RebindContext(target(Bound::Context(id))),
            Operation::Unbind => Change::Unbind,
            Operation::BindNewContext => Change::BindNewContext,
            Operation::NewContext => Change::NewContext,
            Operation::Destroy => Change::Destroy,
        },
    }
}

fn word(error: &ChangeError) -> &'static str {
    match error {
        ChangeError::Refused(Refusal::AlreadyBound) => "bound",
        ChangeError::Refused(Refusal::NotEmpty) => "not empty",
        ChangeError::Refused(Refusal::NotObject) => "not object",
        ChangeError::Refused(Refusal::IsRoot) => "root",
        ChangeError::Refused(Refusal::Stopped(stop)) => match stop {
            Stop::NoContext => "no context",
            Stop::MissingNode { .. } => "missing",
            Stop::NotContext { .. } => "not context",
            Stop::Destroyed { .. } => "destroyed",
            Stop::Elsewhere { .. } => "elsewhere",
        },
        _ => "another error",
    }
}

/// A naming service without references to its contexts.
struct ModelledService {
    tree: Arc<Mutex<Tree>>,
    changes: Changes,
}

impl ModelledService {
    /// Waits until the tree has all that is in the store: the store confirms that a name is not bound.
    fn catch_up(&self) {
        let missing = self.changes.make(request(0, &["z"], Operation::Unbind));
        let missing = missing.expect_err("nobody binds it");
        assert_eq!(word(&missing), "missing");
    }
}

fn config() -> NamingConfig {
    NamingConfig {
        bindings_max: 1000,
        ..NamingConfig::default()
    }
}

fn share(store: Arc<dyn SharedStore>) -> ModelledService {
    let config = config();
    let (replica, tree) = Replica::open(store, &config, Arc::new(NoLog)).expect("a store");
    let changes = Changes::new(Arc::clone(&tree), Storage::Shared(replica), &config);
    ModelledService { tree, changes }
}

/// Compares the tree with the model.
fn compare(tree: &Tree, model: &Model) {
    assert_eq!(tree.contexts_len(), model.contexts.len());
    assert_eq!(tree.next_context(), ContextId(model.next));
    let mut bytes = 0;
    for (id, bindings) in &model.contexts {
        assert_eq!(tree.context_len(ContextId(*id)), Some(bindings.len()));
        for (name, bound) in bindings {
            let context = ContextId(*id);
            let component = component(name);
            let wanted = target(*bound);
            let there = tree.target(context, &component);
            assert_eq!(there.as_ref(), Some(&wanted), "{id}: {name}");
            bytes += BindingKey { context, component }.bytes() + wanted.bytes();
        }
        let mut cursor = tree.list(ContextId(*id)).expect("a context");
        assert_eq!(tree.read(&mut cursor, 1000).len(), bindings.len());
    }
    let bindings = model.contexts.values().map(BTreeMap::len).sum();
    assert_eq!((tree.len(), tree.bytes()), (bindings, bytes));
}

fn what() -> impl Strategy<Value = Operation> {
    prop_oneof![
        3 => (0..4_u8).prop_map(Operation::Bind),
        3 => (0..4_u8).prop_map(Operation::Rebind),
        1 => (0..6_u64).prop_map(Operation::BindContext),
        1 => (0..6_u64).prop_map(Operation::RebindContext),
        3 => Just(Operation::Unbind),
        4 => Just(Operation::BindNewContext),
    ]
}

fn action() -> impl Strategy<Value = Action> {
    let component = prop::sample::select(vec!["a", "b", "c"]);
    let path = prop::collection::vec(component, 1..4);
    // Mostly the root: all named contexts are reachable from it.
    let context = || prop_oneof![3 => Just(ROOT.0), 2 => 1..8_u64];
    let change = |(context, path, what)| Action::Change {
        context,
        path,
        what,
    };
    let of_context = prop_oneof![Just(Operation::NewContext), Just(Operation::Destroy)];
    prop_oneof![
        14 => (context(), path, what()).prop_map(change),
        3 => (context(), Just(Vec::new()), of_context).prop_map(change),
        1 => Just(Action::Reopen),
    ]
}

/// Carries out the actions, each by the next of the services, which are all opened anew for a restart.
fn check(actions: &[Action], open: &dyn Fn() -> Vec<ModelledService>) -> Result<(), TestCaseError> {
    let mut services = open();
    let mut model = Model::new();
    let compare_all = |services: &[ModelledService], model: &Model| {
        for service in services {
            service.catch_up();
            compare(&service.tree.lock(), model);
        }
    };
    for (index, action) in actions.iter().enumerate() {
        match action {
            Action::Reopen => {
                drop(services);
                services = open();
                compare_all(&services, &model);
            }
            Action::Change {
                context,
                path,
                what,
            } => {
                let wanted = model.make(*context, path, *what);
                let service = &services[index % services.len()];
                let made = service.changes.make(request(*context, path, *what));
                let made = match &made {
                    Ok(ChangeOutcome::Created(id)) => Ok(Some(id.0)),
                    Ok(ChangeOutcome::Changed) => Ok(None),
                    Err(error) => Err(word(error)),
                };
                prop_assert_eq!(made, wanted, "{:?} at {} {:?}", what, context, path);
            }
        }
    }
    compare_all(&services, &model);
    drop(services);
    compare_all(&open(), &model);
    Ok(())
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    prop::collection::vec(action(), 1..60)
}

/// Checks a kind of shared store: two services change it in turn, and each change has the outcome of a simple model. `place` makes an
/// empty store, and what it returns opens it, for one service.
///
/// # Panics
/// With the least sequence of changes that has another outcome.
pub fn random_changes_agree_with_the_model<O>(cases: u32, place: impl Fn() -> O)
where
    O: Fn() -> Arc<dyn SharedStore>,
{
    let config = ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let checked = TestRunner::new(config).run(&actions(), |actions| {
        let open = place();
        check(&actions, &|| [(); 2].map(|()| share(open())).into())
    });
    if let Err(error) = checked {
        panic!("{error}");
    }
}

#[cfg(test)]
mod tests {
    use super::super::memory_store::{Handle, MemoryStore};
    use super::super::store::Store;
    use super::*;
    use std::path::Path;

    fn open(place: &Path) -> ModelledService {
        let (store, tree) = Store::open(place, &config()).expect("a store");
        let tree = Arc::new(Mutex::new(tree));
        let storage = Storage::Disk(Arc::new(store));
        let changes = Changes::new(Arc::clone(&tree), storage, &config());
        ModelledService { tree, changes }
    }

    /// In memory if the host supports it, because of the ten thousands of commits.
    fn directory() -> tempfile::TempDir {
        tempfile::tempdir_in("/dev/shm")
            .or_else(|_| tempfile::tempdir())
            .expect("a directory")
    }

    proptest! {
        #[test]
        fn random_changes_agree_with_the_model(actions in actions()) {
            let directory = directory();
            let place = directory.path().join("names");
            check(&actions, &|| vec![open(&place)])?;
        }
    }

    #[test]
    fn random_changes_of_two_services_agree_with_the_model() {
        super::random_changes_agree_with_the_model(256, || {
            let store = Arc::<MemoryStore>::default();
            move || Arc::new(Handle(Arc::clone(&store))) as Arc<dyn SharedStore>
        });
    }
}
