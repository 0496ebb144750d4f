//! What a naming service does for its contexts, whichever of them is asked.

use super::NamingStatistics;
use super::changes::{ChangeError, Changes};
use super::config::{NamingConfig, NamingError};
use super::draft::{Change, Done, Refusal, Request};
use super::federation::{Federation, Question};
use super::iterators::Iterators;
use super::names;
use super::raised::Raised;
use super::servant::{ContextServant, DirectContext};
use super::tree::{ContextId, Stop, Target, Tree, View, octets_of, walk};
use crate::stubs::naming::cos_naming::naming_context::{
    AlreadyBound, CannotProceed, NotEmpty, NotFound, NotFoundReason,
};
use crate::stubs::naming::cos_naming::{
    BindingIterator, BindingList, NamingContext, NamingContextExt,
};
use rtorb::ior::Ior;
use rtorb::url::NameComponent;
use rtorb::{
    CompletionStatus, ExceptionKind, ObjectRef, Orb, Poa, PoaError, PoaPolicies, SystemException,
};
use rtorb_os::sync::Mutex;
use std::sync::Arc;

/// A naming service, as its servants share it.
#[derive(Debug)]
pub(super) struct Naming {
    pub(super) config: NamingConfig,
    pub(super) federation: Federation,
    poa: Poa,
    tree: Arc<Mutex<Tree>>,
    changes: Changes,
    iterators: Arc<Iterators>,
}

/// What a name stands for.
#[derive(Debug)]
pub(super) enum Resolved {
    /// Something that is bound, as it was bound.
    Bound(Arc<Ior>),
    /// A context of this server, or what another one has answered.
    Object(Option<ObjectRef>),
}

/// How far a walk along a name came.
pub(super) enum Step<T> {
    Here(T),
    /// The rest, from there on, is another server's.
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
        // The store's own number in the keys: a context of another naming service is never taken for one of ours.
        let name = format!("NamingContexts-{identity:016x}");
        Ok(Arc::new(Self {
            federation: Federation::new(orb, &config),
            poa: orb.root_poa()?.create_poa(&name, PoaPolicies::PERSISTENT)?,
            tree,
            changes,
            iterators: Arc::new(Iterators::new(orb, &format!("{name}-iterators"), &config)?),
            config,
        }))
    }

    /// Lets requests to a context in.
    pub(super) fn open(self: &Arc<Self>, context: ContextId) -> Result<(), PoaError> {
        let servant = DirectContext(ContextServant::new(Arc::clone(self), context));
        let id = context.0.to_string();
        self.poa
            .activate_with_id::<NamingContextExt, _>(id, servant)
            .map(|_| ())
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
            octets: tree.octets(),
            changes,
            commits,
            iterators,
            iterators_ended,
        }
    }

    pub(super) fn end(&self) {
        self.iterators.end();
        self.poa.destroy();
    }

    /// What a name stands for, seen from a context.
    pub(super) fn resolve(
        &self,
        context: ContextId,
        name: Vec<NameComponent>,
    ) -> Result<Resolved, Raised> {
        let name = names::checked(name, &self.config)?;
        match self.find(context, &name)? {
            Step::Here(Target::Object(ior) | Target::Elsewhere(ior)) => Ok(Resolved::Bound(ior)),
            Step::Here(Target::Context(id)) => {
                let reference = self.reference(id).as_object().clone();
                Ok(Resolved::Object(Some(reference)))
            }
            Step::Elsewhere(there, at) => {
                let rest = names::to_wire(&name[at..]);
                let resolve = NamingContext::resolve;
                let answer = self
                    .federation
                    .forward((&there, rest), Question::Resolve, resolve)?;
                Ok(Resolved::Object(answer))
            }
        }
    }

    /// Changes what a name is bound to, unless that is another server's.
    pub(super) fn change(
        self: &Arc<Self>,
        context: ContextId,
        name: &[NameComponent],
        change: Change,
    ) -> Result<Step<Done>, Raised> {
        let request = Request {
            context,
            name: name.to_vec(),
            change,
        };
        match self.changes.make(request) {
            Ok(done) => {
                if let Done::Created(id) = done {
                    self.open(id).map_err(refused_by_adapter)?;
                }
                Ok(Step::Here(done))
            }
            Err(ChangeError::Refused(Refusal::Stopped(stop))) => self
                .stopped(stop, name)
                .map(|(there, at)| Step::Elsewhere(there, at)),
            Err(error) => Err(raised(error, name)),
        }
    }

    /// What a context has, beginning with so many bindings.
    pub(super) fn list(
        &self,
        context: ContextId,
        how_many: u32,
    ) -> Result<(BindingList, Option<BindingIterator>), SystemException> {
        let cursor = self.tree.lock().list(context);
        let cursor = cursor.ok_or(OBJECT_NOT_EXIST)?;
        self.iterators.list(&self.tree, cursor, how_many)
    }

    /// Ends a context; its binding, if it has one, stays.
    pub(super) fn destroy(self: &Arc<Self>, context: ContextId) -> Result<(), Raised> {
        self.change(context, &[], Change::Destroy)?;
        // Whoever calls meanwhile finds the context without the tree's; both are OBJECT_NOT_EXIST.
        let _ = self.poa.deactivate_id(context.0.to_string());
        Ok(())
    }

    /// What `bind` binds.
    pub(super) fn object(&self, object: Option<&ObjectRef>) -> Result<Target, SystemException> {
        let object = object.ok_or(ExceptionKind::BadParam)?;
        Ok(Target::Object(self.bounded(object.ior())?))
    }

    /// What `bind_context` binds: one of our contexts, or another server's.
    pub(super) fn context(
        &self,
        context: Option<&NamingContext>,
    ) -> Result<Target, SystemException> {
        let context = context.ok_or(ExceptionKind::BadParam)?.as_object();
        let own = self.poa.reference_to_id(context).ok().and_then(|id| {
            let id = core::str::from_utf8(&id).ok()?;
            Some(ContextId(id.parse().ok()?))
        });
        match own {
            Some(id) => Ok(Target::Context(id)),
            None => Ok(Target::Elsewhere(self.bounded(context.ior())?)),
        }
    }

    fn bounded(&self, ior: &Ior) -> Result<Arc<Ior>, SystemException> {
        match octets_of(ior) <= self.config.reference_octets_max {
            true => Ok(Arc::new(ior.clone())),
            false => Err(ExceptionKind::ImpLimit.into()),
        }
    }

    fn find(&self, context: ContextId, name: &[NameComponent]) -> Result<Step<Target>, Raised> {
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
            Ok(target) => Ok(Step::Here(target)),
            Err(stop) => self
                .stopped(stop, name)
                .map(|(there, at)| Step::Elsewhere(there, at)),
        }
    }

    /// Where a name goes on, or the exception for why it does not.
    fn stopped(&self, stop: Stop, name: &[NameComponent]) -> Result<(Arc<Ior>, usize), Raised> {
        match stop {
            Stop::Elsewhere { context, at } => Ok((context, at)),
            Stop::NoContext => Err(OBJECT_NOT_EXIST.into()),
            Stop::MissingNode { at } => Err(not_found(NotFoundReason::MissingNode, name, at)),
            Stop::NotContext { at } => Err(not_found(NotFoundReason::NotContext, name, at)),
            Stop::Destroyed { context, at } => Err(Raised::CannotProceed(CannotProceed {
                cxt: Some(self.reference(context).into()),
                rest_of_name: names::to_wire(&name[at..]),
            })),
        }
    }
}

/// The context is destroyed, and was so before the request was carried out.
const OBJECT_NOT_EXIST: SystemException = SystemException::omg(ExceptionKind::ObjectNotExist, 1);

fn not_found(why: NotFoundReason, name: &[NameComponent], at: usize) -> Raised {
    Raised::NotFound(NotFound {
        why,
        rest_of_name: names::to_wire(&name[at..]),
    })
}

fn raised(error: ChangeError, name: &[NameComponent]) -> Raised {
    let exception = match error {
        ChangeError::Refused(Refusal::AlreadyBound) => return Raised::AlreadyBound(AlreadyBound),
        ChangeError::Refused(Refusal::NotEmpty) => return Raised::NotEmpty(NotEmpty),
        ChangeError::Refused(Refusal::NotObject) => {
            return not_found(NotFoundReason::NotObject, name, name.len() - 1);
        }
        ChangeError::Refused(Refusal::IsRoot) => ExceptionKind::NoPermission.into(),
        ChangeError::Refused(Refusal::Full) => ExceptionKind::NoResources.into(),
        // Told apart before.
        ChangeError::Refused(Refusal::Stopped(_)) => ExceptionKind::Internal.into(),
        ChangeError::Busy => ExceptionKind::Transient.into(),
        ChangeError::NotBegun => ExceptionKind::Timeout.into(),
        ChangeError::StoreFailed => ExceptionKind::PersistStore.into(),
        ChangeError::Unknown => SystemException::from(ExceptionKind::PersistStore)
            .with_completion(CompletionStatus::Maybe),
    };
    Raised::System(exception)
}

fn refused_by_adapter(error: PoaError) -> SystemException {
    match error {
        PoaError::System(exception) => exception,
        _ => ExceptionKind::ObjAdapter.into(),
    }
}
