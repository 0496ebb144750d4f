//! Draft of a batch of changes: it applies the rules of CosNaming before the commit.

use super::config::NamingConfig;
use super::tree::{BindingKey, BindingTarget, ContextId, Effect, ROOT, Stop, Tree, View, walk};
use rtorb::url::NameComponent;
use rtorb_os::sync::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// A change that a client requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    /// The context that was called.
    pub(super) context: ContextId,
    /// Empty for changes of the context itself.
    pub(super) name: Vec<NameComponent>,
    pub(super) change: Change,
}

/// The changes of CosNaming.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// `bind` and `bind_context`.
    Bind(BindingTarget),
    /// `rebind`: replaces an object or nothing.
    RebindObject(BindingTarget),
    /// `rebind_context`: replaces a context or nothing.
    RebindContext(BindingTarget),
    Unbind,
    BindNewContext,
    NewContext,
    Destroy,
}

impl Change {
    /// Bytes of the reference that it binds.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Bind(target) | Self::RebindObject(target) | Self::RebindContext(target) => {
                target.bytes()
            }
            Self::Unbind | Self::BindNewContext | Self::NewContext | Self::Destroy => 0,
        }
    }
}

/// The result of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChangeOutcome {
    Changed,
    /// A new context.
    Created(ContextId),
}

/// Why a change is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Stopped(Stop),
    /// The name is bound to a context, not to an object.
    NotObject,
    AlreadyBound,
    NotEmpty,
    /// The root cannot be destroyed.
    IsRoot,
    /// A bound of the configuration is reached.
    Full,
}

/// The bounds for changes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) bindings_max: usize,
    pub(super) contexts_max: usize,
    pub(super) bytes_max: usize,
}

impl From<&NamingConfig> for Bounds {
    fn from(config: &NamingConfig) -> Self {
        Self {
            bindings_max: config.bindings_max,
            contexts_max: config.contexts_max,
            bytes_max: config.bytes_max,
        }
    }
}

/// The tree with a batch of changes applied: the committed tree and the differences.
pub(super) struct Draft<'t> {
    tree: &'t Mutex<Tree>,
    bounds: Bounds,
    /// Changed bindings; `None` for unbound.
    targets: HashMap<Arc<BindingKey>, Option<BindingTarget>>,
    /// Changed contexts with their number of bindings; `None` for destroyed.
    contexts: HashMap<ContextId, Option<usize>>,
    next_context: ContextId,
    bindings_len: usize,
    contexts_len: usize,
    bytes: usize,
    effects: Vec<Effect>,
}

impl<'t> Draft<'t> {
    /// An empty draft. No other thread changes the tree during its life.
    pub(super) fn new(tree: &'t Mutex<Tree>, bounds: Bounds) -> Self {
        let now = tree.lock();
        Self {
            tree,
            bounds,
            targets: HashMap::new(),
            contexts: HashMap::new(),
            next_context: now.next_context(),
            bindings_len: now.len(),
            contexts_len: now.contexts_len(),
            bytes: now.bytes(),
            effects: Vec::new(),
        }
    }

    /// Adds a change or refuses it.
    pub(super) fn add(&mut self, request: &Request) -> Result<ChangeOutcome, Refusal> {
        match (request.name.split_last(), &request.change) {
            (Some((last, path)), change) => {
                let context = walk(self, request.context, path).map_err(Refusal::Stopped)?;
                let component = last.clone();
                let place = Arc::new(BindingKey { context, component });
                self.change_at(place, path.len(), change)
            }
            (None, Change::NewContext) => {
                self.check_exists(request.context)?;
                self.create().map(ChangeOutcome::Created)
            }
            (None, Change::Destroy) => self.destroy(request.context),
            // The service checks that a name is not empty before it comes here.
            (None, _) => Err(Refusal::Stopped(Stop::MissingNode { at: 0 })),
        }
    }

    /// The id of the next context after the draft.
    pub(super) fn next_context(&self) -> ContextId {
        self.next_context
    }

    /// The effects to commit, in order.
    pub(super) fn into_effects(self) -> Vec<Effect> {
        self.effects
    }

    fn change_at(
        &mut self,
        place: Arc<BindingKey>,
        at: usize,
        change: &Change,
    ) -> Result<ChangeOutcome, Refusal> {
        let bound = self.target(place.context, &place.component);
        match (change, bound) {
            (Change::Bind(_) | Change::BindNewContext, Some(_)) => Err(Refusal::AlreadyBound),
            (Change::BindNewContext, None) => {
                self.check_room(&place, None)?;
                let id = self.create()?;
                self.bind(place, None, BindingTarget::Context(id))?;
                Ok(ChangeOutcome::Created(id))
            }
            // Naming 1.3, 2.2.1: a binding keeps its type.
            (
                Change::RebindObject(_),
                Some(BindingTarget::Context(_) | BindingTarget::Elsewhere(_)),
            ) => Err(Refusal::NotObject),
            (Change::RebindContext(_), Some(BindingTarget::Object(_))) => {
                Err(Refusal::Stopped(Stop::NotContext { at }))
            }
            (
                Change::Bind(target) | Change::RebindObject(target) | Change::RebindContext(target),
                bound,
            ) => self.bind(place, bound, target.clone()),
            (Change::Unbind, Some(bound)) => Ok(self.unbind(place, &bound)),
            (Change::Unbind, None) => Err(Refusal::Stopped(Stop::MissingNode { at })),
            (Change::NewContext | Change::Destroy, _) => {
                Err(Refusal::Stopped(Stop::MissingNode { at }))
            }
        }
    }

    fn bind(
        &mut self,
        place: Arc<BindingKey>,
        bound: Option<BindingTarget>,
        target: BindingTarget,
    ) -> Result<ChangeOutcome, Refusal> {
        self.check_room(&place, Some((&bound, &target)))?;
        match &bound {
            Some(bound) => self.bytes -= bound.bytes(),
            None => {
                self.bytes += place.bytes();
                self.bindings_len += 1;
                self.count(place.context, 1);
            }
        }
        self.bytes += target.bytes();
        self.targets
            .insert(Arc::clone(&place), Some(target.clone()));
        self.effects.push(Effect::Bind(place, target));
        Ok(ChangeOutcome::Changed)
    }

    fn unbind(&mut self, place: Arc<BindingKey>, bound: &BindingTarget) -> ChangeOutcome {
        self.bytes -= place.bytes() + bound.bytes();
        self.bindings_len -= 1;
        self.count(place.context, -1);
        self.targets.insert(Arc::clone(&place), None);
        self.effects.push(Effect::Unbind(place));
        ChangeOutcome::Changed
    }

    fn create(&mut self) -> Result<ContextId, Refusal> {
        if self.contexts_len >= self.bounds.contexts_max {
            return Err(Refusal::Full);
        }
        let id = self.next_context;
        self.next_context = ContextId(id.0 + 1);
        self.contexts_len += 1;
        self.contexts.insert(id, Some(0));
        self.effects.push(Effect::Create(id));
        Ok(id)
    }

    fn destroy(&mut self, id: ContextId) -> Result<ChangeOutcome, Refusal> {
        if id == ROOT {
            return Err(Refusal::IsRoot);
        }
        match self.context_len(id) {
            None => Err(Refusal::Stopped(Stop::NoContext)),
            Some(0) => {
                self.contexts_len -= 1;
                self.contexts.insert(id, None);
                self.effects.push(Effect::Destroy(id));
                Ok(ChangeOutcome::Changed)
            }
            Some(_) => Err(Refusal::NotEmpty),
        }
    }

    fn check_exists(&self, id: ContextId) -> Result<(), Refusal> {
        if self.has_context(id) {
            Ok(())
        } else {
            Err(Refusal::Stopped(Stop::NoContext))
        }
    }

    /// Refuses a binding, new or replaced, that exceeds a bound.
    fn check_room(
        &self,
        place: &BindingKey,
        binding: Option<(&Option<BindingTarget>, &BindingTarget)>,
    ) -> Result<(), Refusal> {
        let (bound, bytes) = match binding {
            Some((bound, target)) => (bound.as_ref(), target.bytes()),
            None => (None, 0),
        };
        let (bindings_len, bytes) = match bound {
            Some(bound) => (self.bindings_len, self.bytes - bound.bytes() + bytes),
            None => (self.bindings_len + 1, self.bytes + place.bytes() + bytes),
        };
        if bindings_len <= self.bounds.bindings_max && bytes <= self.bounds.bytes_max {
            Ok(())
        } else {
            Err(Refusal::Full)
        }
    }

    fn context_len(&self, id: ContextId) -> Option<usize> {
        match self.contexts.get(&id) {
            Some(len) => *len,
            None => self.tree.lock().context_len(id),
        }
    }

    fn count(&mut self, context: ContextId, difference: isize) {
        if let Some(len) = self.context_len(context) {
            self.contexts
                .insert(context, Some(len.saturating_add_signed(difference)));
        }
    }
}

impl View for Draft<'_> {
    fn target(&self, context: ContextId, component: &NameComponent) -> Option<BindingTarget> {
        let component = component.clone();
        let place = BindingKey { context, component };
        match self.targets.get(&place) {
            Some(target) => target.clone(),
            None => self.tree.lock().target(context, &place.component),
        }
    }

    fn has_context(&self, context: ContextId) -> bool {
        self.context_len(context).is_some()
    }
}
