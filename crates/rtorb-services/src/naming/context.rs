//! The state and the operations that all contexts of a naming service share.

use super::bootstrap::Bootstrap;
use super::changes::{ChangeError, Changes};
use super::config::NamingConfig;
use super::draft::{Change, ChangeOutcome, Refusal, Request};
use super::error::NamingError;
use super::exception::NamingException;
use super::federation::{Federation, ForwardKind};
use super::iterators::Iterators;
use super::names;
use super::tree::{BindingTarget, ContextId, ROOT, Stop, Tree, View, bytes_of, walk};
use crate::stubs::naming::cos_naming::naming_context::{
    AlreadyBound, CannotProceed, NotEmpty, NotFound, NotFoundReason,
};
use crate::stubs::naming::cos_naming::{
    BindingIterator, BindingList, NamingContext, NamingContextExt,
};
use core::sync::atomic::{AtomicBool, Ordering};
use rtorb::exception::local;
use rtorb::ior::{Ior, object_key};
use rtorb::url::NameComponent;
use rtorb::{CompletionStatus, ExceptionKind, ObjectRef, Orb, Poa, PoaPolicies, SystemException};
use rtorb_os::sync::Mutex;
use std::sync::Arc;

/// The shared state of a naming service.
#[derive(Debug)]
pub(super) struct Naming {
    pub(super) config: NamingConfig,
    pub(super) federation: Federation,
    pub(super) poa: Poa,
    pub(super) tree: Arc<Mutex<Tree>>,
    changes: Changes,
    iterators: Arc<Iterators>,
    /// Set once the service has started.
    pub(super) bootstrap: Mutex<Option<Bootstrap>>,
    is_ended: AtomicBool,
}

/// The object key of every naming service's root context, and the name of its initial reference.
pub(super) const ROOT_KEY: &str = "NameService";

/// The counts of a naming service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NamingStatistics {
    /// Bindings in all contexts.
    pub bindings: usize,
    /// All contexts, with the root and contexts without a name.
    pub contexts: usize,
    /// Bytes of all names and references.
    pub bytes: usize,
    /// Changes made.
    pub changes: u64,
    /// Commits of these changes.
    pub commits: u64,
    /// Open iterators.
    pub iterators: usize,
    /// Iterators that were ended because there were too many.
    pub iterators_ended: u64,
}

/// A resolved name.
#[derive(Debug)]
pub(super) enum Resolved {
    /// The reference that was bound, unchanged.
    Bound(Arc<Ior>),
    /// A context of this server, or the answer of another server.
    Object(Option<ObjectRef>),
}

/// The result of a lookup.
pub(super) enum Lookup<T> {
    Here(T),
    /// The name continues at another server, from this index on.
    Elsewhere(Arc<Ior>, usize),
}

impl Naming {
    pub(super) fn new(
        orb: &Orb,
        identity: u64,
        tree: Arc<Mutex<Tree>>,
        changes: Changes,
        config: NamingConfig,
    ) -> Result<Arc<Self>, NamingError> {
        // The store's identity is part of the object keys, so a context of another naming service is never taken for one of ours.
        let name = format!("NamingContexts-{identity:016x}");
        Ok(Arc::new(Self {
            federation: Federation::new(orb, &config),
            poa: orb.root_poa()?.create_poa(&name, PoaPolicies::PERSISTENT)?,
            tree,
            changes,
            iterators: Arc::new(Iterators::new(orb, &format!("{name}-iterators"), &config)?),
            bootstrap: Mutex::default(),
            is_ended: AtomicBool::new(false),
            config,
        }))
    }

    pub(super) fn reference(&self, context: ContextId) -> NamingContextExt {
        self.poa
            .create_reference_with_id(context.0.to_string())
            .expect("an adapter with a persistent lifespan makes references")
    }

    pub(super) fn statistics(&self) -> NamingStatistics {
        let (changes, commits) = self.changes.counts();
        let (iterators, iterators_ended) = self.iterators.counts();
        let tree = self.tree.lock();
        NamingStatistics {
            bindings: tree.len(),
            contexts: tree.contexts_len(),
            bytes: tree.bytes(),
            changes,
            commits,
            iterators,
            iterators_ended,
        }
    }

    /// Ends contexts, iterators and the bootstrap object, and closes the store. Returns true the first time.
    pub(super) fn end(&self) -> bool {
        drop(self.bootstrap.lock().take());
        self.iterators.end();
        self.poa.destroy();
        self.changes.end();
        !self.is_ended.swap(true, Ordering::Relaxed)
    }

    /// Resolves a name in a context.
    pub(super) fn resolve(
        &self,
        context: ContextId,
        name: Vec<NameComponent>,
    ) -> Result<Resolved, NamingException> {
        let name = names::checked(name, &self.config)?;
        match self.find(context, &name)? {
            Lookup::Here(BindingTarget::Object(ior) | BindingTarget::Elsewhere(ior)) => {
                Ok(Resolved::Bound(ior))
            }
            Lookup::Here(BindingTarget::Context(id)) => {
                let reference = self.reference(id).as_object().clone();
                Ok(Resolved::Object(Some(reference)))
            }
            Lookup::Elsewhere(there, at) => {
                let rest = names::to_wire(&name[at..]);
                let resolve = NamingContext::resolve;
                let answer = self
                    .federation
                    .forward(&there, rest, ForwardKind::Read, resolve)?;
                Ok(Resolved::Object(answer))
            }
        }
    }

    /// Changes the binding of a name, unless it belongs to another server.
    pub(super) fn change(
        &self,
        context: ContextId,
        name: &[NameComponent],
        change: Change,
    ) -> Result<Lookup<ChangeOutcome>, NamingException> {
        let request = Request {
            context,
            name: name.to_vec(),
            change,
        };
        match self.changes.make(request) {
            Ok(done) => Ok(Lookup::Here(done)),
            Err(ChangeError::Refused(Refusal::Stopped(stop))) => self
                .stopped(stop, name)
                .map(|(there, at)| Lookup::Elsewhere(there, at)),
            Err(error) => Err(raised(error, name)),
        }
    }

    /// Lists a context: `how_many` bindings and an iterator for the rest.
    pub(super) fn list(
        &self,
        context: ContextId,
        how_many: u32,
    ) -> Result<(BindingList, Option<BindingIterator>), SystemException> {
        let cursor = self.tree.lock().list(context);
        let cursor = cursor.ok_or(OBJECT_NOT_EXIST)?;
        self.iterators.list(&self.tree, cursor, how_many)
    }

    /// The target of `bind`.
    pub(super) fn object(
        &self,
        object: Option<&ObjectRef>,
    ) -> Result<BindingTarget, SystemException> {
        let object = object.ok_or(local::NIL_ARGUMENT)?;
        Ok(BindingTarget::Object(self.bounded(object.ior())?))
    }

    /// The target of `bind_context`: one of our contexts, or another server's.
    pub(super) fn context(
        &self,
        context: Option<&NamingContext>,
    ) -> Result<BindingTarget, SystemException> {
        let context = context.ok_or(local::NIL_ARGUMENT)?.as_object();
        match self.own(context) {
            Some(id) => Ok(BindingTarget::Context(id)),
            None => Ok(BindingTarget::Elsewhere(self.bounded(context.ior())?)),
        }
    }

    /// The context of ours that a reference denotes, if any. A reference with the common key of root contexts is ours if it has
    /// one of our endpoints; otherwise it is called as another server's, which works too.
    fn own(&self, context: &ObjectRef) -> Option<ContextId> {
        if let Ok(id) = self.poa.reference_to_id(context) {
            return context_of(&id);
        }
        let mut profiles = context.ior().profiles.iter();
        let is_a_root = profiles.any(|profile| {
            let key = object_key(profile.tag, &profile.data);
            key.is_ok_and(|key| key == ROOT_KEY.as_bytes())
        });
        let root = self.reference(ROOT);
        let ours: Vec<_> = root.as_object().endpoints().collect();
        let is_here = || context.endpoints().any(|endpoint| ours.contains(&endpoint));
        (is_a_root && is_here()).then_some(ROOT)
    }

    fn bounded(&self, ior: &Ior) -> Result<Arc<Ior>, SystemException> {
        if bytes_of(ior) <= self.config.reference_bytes_max {
            Ok(Arc::new(ior.clone()))
        } else {
            Err(local::REFERENCE_TOO_LONG)
        }
    }

    fn find(
        &self,
        context: ContextId,
        name: &[NameComponent],
    ) -> Result<Lookup<BindingTarget>, NamingException> {
        let found = {
            let tree = self.tree.lock();
            let (last, path) = name
                .split_last()
                .expect("names are checked not to be empty");
            walk(&*tree, context, path).and_then(|context| {
                let missing = Stop::MissingNode { at: path.len() };
                tree.target(context, last).ok_or(missing)
            })
        };
        match found {
            Ok(target) => Ok(Lookup::Here(target)),
            Err(stop) => self
                .stopped(stop, name)
                .map(|(there, at)| Lookup::Elsewhere(there, at)),
        }
    }

    /// Returns where a name continues, or the exception if it does not.
    fn stopped(
        &self,
        stop: Stop,
        name: &[NameComponent],
    ) -> Result<(Arc<Ior>, usize), NamingException> {
        match stop {
            Stop::Elsewhere { context, at } => Ok((context, at)),
            Stop::NoContext => Err(OBJECT_NOT_EXIST.into()),
            Stop::MissingNode { at } => Err(not_found(NotFoundReason::MissingNode, name, at)),
            Stop::NotContext { at } => Err(not_found(NotFoundReason::NotContext, name, at)),
            Stop::Destroyed { context, at } => Err(NamingException::CannotProceed(CannotProceed {
                cxt: Some(self.reference(context).into()),
                rest_of_name: names::to_wire(&name[at..]),
            })),
        }
    }
}

/// Parses the object id of a context.
pub(super) fn context_of(id: &[u8]) -> Option<ContextId> {
    let id = core::str::from_utf8(id).ok()?;
    Some(ContextId(id.parse().ok()?))
}

/// The context was destroyed before the request, or the service has ended.
pub(super) const OBJECT_NOT_EXIST: SystemException =
    SystemException::omg(ExceptionKind::ObjectNotExist, 1);

fn not_found(why: NotFoundReason, name: &[NameComponent], at: usize) -> NamingException {
    NamingException::NotFound(NotFound {
        why,
        rest_of_name: names::to_wire(&name[at..]),
    })
}

fn raised(error: ChangeError, name: &[NameComponent]) -> NamingException {
    let exception = match error {
        ChangeError::Refused(Refusal::AlreadyBound) => {
            return NamingException::AlreadyBound(AlreadyBound);
        }
        ChangeError::Refused(Refusal::NotEmpty) => return NamingException::NotEmpty(NotEmpty),
        ChangeError::Refused(Refusal::NotObject) => {
            return not_found(NotFoundReason::NotObject, name, name.len() - 1);
        }
        ChangeError::Refused(Refusal::IsRoot) => local::ROOT_CONTEXT,
        ChangeError::Refused(Refusal::Full) => local::SERVICE_FULL,
        // Handled by the caller.
        ChangeError::Refused(Refusal::Stopped(_)) => local::CONTRADICTION,
        ChangeError::Busy => local::SERVICE_BUSY,
        ChangeError::TooLate => local::CHANGE_NOT_BEGUN,
        ChangeError::LateInCommit => {
            local::CHANGE_NOT_CONFIRMED.with_completion(CompletionStatus::Maybe)
        }
        ChangeError::Ended => OBJECT_NOT_EXIST,
        ChangeError::NotKept(error) => error.failure.exception(error.completed),
    };
    NamingException::System(exception)
}
