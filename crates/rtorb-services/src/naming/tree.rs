//! The committed contexts and bindings, in memory. Clients see this tree.

use hashbrown::{Equivalent, HashMap};
use rtorb::ior::Ior;
use rtorb::url::NameComponent;
use std::collections::{BTreeMap, HashSet};
use std::hash::RandomState;
use std::ops::Bound;
use std::sync::Arc;

/// The id of a context of this server. It is never reused, even after the context is destroyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ContextId(pub(super) u64);

/// The root context.
pub(super) const ROOT: ContextId = ContextId(0);

/// The target of a binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BindingTarget {
    /// An object.
    Object(Arc<Ior>),
    /// A context of this server.
    Context(ContextId),
    /// A context of another server.
    Elsewhere(Arc<Ior>),
}

/// The key of a binding: a context and a name of one component.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct BindingKey {
    pub(super) context: ContextId,
    pub(super) component: NameComponent,
}

/// A tree to look names up in: committed or draft.
pub(super) trait View {
    /// The target of a component in a context.
    fn target(&self, context: ContextId, component: &NameComponent) -> Option<BindingTarget>;
    /// True if the context exists.
    fn has_context(&self, context: ContextId) -> bool;
}

/// Why a lookup ends before the end of the name. `at` is the index where the rest of the name begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The first context does not exist.
    NoContext,
    /// The component is not bound.
    MissingNode { at: usize },
    /// The component is bound to an object.
    NotContext { at: usize },
    /// The rest belongs to another server.
    Elsewhere { context: Arc<Ior>, at: usize },
    /// The component before the rest is bound to a destroyed context.
    Destroyed { context: ContextId, at: usize },
}

/// Follows a path from a context to another.
pub(super) fn walk(
    view: &impl View,
    start: ContextId,
    path: &[NameComponent],
) -> Result<ContextId, Stop> {
    if !view.has_context(start) {
        return Err(Stop::NoContext);
    }
    let mut context = start;
    for (at, component) in path.iter().enumerate() {
        let target = view.target(context, component);
        context = match target.ok_or(Stop::MissingNode { at })? {
            BindingTarget::Object(_) => return Err(Stop::NotContext { at }),
            BindingTarget::Elsewhere(context) => {
                return Err(Stop::Elsewhere {
                    context,
                    at: at + 1,
                });
            }
            BindingTarget::Context(next) if !view.has_context(next) => {
                return Err(Stop::Destroyed {
                    context: next,
                    at: at + 1,
                });
            }
            BindingTarget::Context(next) => next,
        };
    }
    Ok(context)
}

/// All contexts and bindings.
#[derive(Debug)]
pub(super) struct Tree {
    bindings: HashMap<Arc<BindingKey>, Binding, RandomState>,
    contexts: HashMap<ContextId, ContextNode, RandomState>,
    next_context: ContextId,
    bytes: usize,
}

#[derive(Debug)]
struct Binding {
    target: BindingTarget,
    /// Its position in its context.
    order: u64,
}

/// The bindings of a context in the order in which they were made. A list continues after its last binding, whatever was bound
/// and unbound meanwhile.
#[derive(Debug, Default)]
struct ContextNode {
    places: BTreeMap<u64, Arc<BindingKey>>,
    next_order: u64,
}

/// A decided change of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Binds, and replaces any old binding.
    Bind(Arc<BindingKey>, BindingTarget),
    /// Removes a binding.
    Unbind(Arc<BindingKey>),
    /// Makes the context with the next id.
    Create(ContextId),
    /// Destroys an empty context.
    Destroy(ContextId),
}

/// The position of a list and its end: later bindings are not part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cursor {
    pub(super) context: ContextId,
    /// The next position in the context.
    next: u64,
    end: u64,
}

impl Tree {
    /// A tree with only the root context and memory for `bindings_max` bindings.
    pub(super) fn new(bindings_max: usize) -> Self {
        let mut contexts = HashMap::default();
        contexts.insert(ROOT, ContextNode::default());
        Self {
            bindings: HashMap::with_capacity_and_hasher(bindings_max, RandomState::new()),
            contexts,
            next_context: ContextId(ROOT.0 + 1),
            bytes: 0,
        }
    }

    /// Applies a committed change.
    pub(super) fn apply(&mut self, effect: Effect) {
        match effect {
            Effect::Bind(place, target) => self.bind(place, target),
            Effect::Unbind(place) => {
                if let Some(binding) = self.bindings.remove(&*place) {
                    self.bytes -= place.bytes() + binding.target.bytes();
                    if let Some(context) = self.contexts.get_mut(&place.context) {
                        context.places.remove(&binding.order);
                    }
                }
            }
            Effect::Create(id) => {
                self.contexts.insert(id, ContextNode::default());
                self.next_context = self.next_context.max(ContextId(id.0 + 1));
            }
            Effect::Destroy(id) => {
                self.contexts.remove(&id);
            }
        }
    }

    /// Sets the id of the next context. The store knows it, because ids are never reused.
    pub(super) fn set_next_context(&mut self, id: ContextId) {
        self.next_context = self.next_context.max(id);
    }

    /// The id of the next context.
    pub(super) fn next_context(&self) -> ContextId {
        self.next_context
    }

    /// All contexts and bindings.
    pub(super) fn everything(
        &self,
    ) -> (
        HashSet<ContextId>,
        std::collections::HashMap<Arc<BindingKey>, BindingTarget>,
    ) {
        let contexts = self.contexts.keys().copied().collect();
        let bindings = self.bindings.iter();
        let bindings = bindings.map(|(place, it)| (Arc::clone(place), it.target.clone()));
        (contexts, bindings.collect())
    }

    /// The number of contexts.
    pub(super) fn contexts_len(&self) -> usize {
        self.contexts.len()
    }

    /// The number of bindings.
    pub(super) fn len(&self) -> usize {
        self.bindings.len()
    }

    /// Bytes of all names and references.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The number of bindings of a context; `None` if it is destroyed.
    pub(super) fn context_len(&self, id: ContextId) -> Option<usize> {
        self.contexts.get(&id).map(|context| context.places.len())
    }

    /// Starts a list of a context; `None` if it is destroyed.
    pub(super) fn list(&self, context: ContextId) -> Option<Cursor> {
        let listed = self.contexts.get(&context)?;
        Some(Cursor {
            context,
            next: 0,
            end: listed.next_order,
        })
    }

    /// Returns the next bindings of a list, at most `count`; none at the end or if the context is destroyed.
    pub(super) fn read(
        &self,
        cursor: &mut Cursor,
        count: usize,
    ) -> Vec<(Arc<BindingKey>, BindingTarget)> {
        let Some(context) = self.contexts.get(&cursor.context) else {
            return Vec::new();
        };
        if cursor.next >= cursor.end {
            return Vec::new();
        }
        let range = context.places.range(cursor.next..cursor.end);
        let mut read = Vec::with_capacity(count.min(context.places.len()));
        for (order, place) in range.take(count) {
            cursor.next = order + 1;
            if let Some(binding) = self.bindings.get(&**place) {
                read.push((Arc::clone(place), binding.target.clone()));
            }
        }
        read
    }

    /// True if a list has more bindings.
    pub(super) fn has_more(&self, cursor: &Cursor) -> bool {
        let range = (Bound::Included(cursor.next), Bound::Excluded(cursor.end));
        cursor.next < cursor.end
            && self
                .contexts
                .get(&cursor.context)
                .is_some_and(|context| context.places.range(range).next().is_some())
    }

    fn bind(&mut self, place: Arc<BindingKey>, target: BindingTarget) {
        let bytes = target.bytes();
        if let Some(binding) = self.bindings.get_mut(&*place) {
            self.bytes = self.bytes - binding.target.bytes() + bytes;
            binding.target = target;
            return;
        }
        let Some(context) = self.contexts.get_mut(&place.context) else {
            return;
        };
        let order = context.next_order;
        context.next_order += 1;
        context.places.insert(order, Arc::clone(&place));
        self.bytes += place.bytes() + bytes;
        self.bindings.insert(place, Binding { target, order });
    }
}

impl View for Tree {
    fn target(&self, context: ContextId, component: &NameComponent) -> Option<BindingTarget> {
        let place = BorrowedKey { context, component };
        self.bindings
            .get(&place)
            .map(|binding| binding.target.clone())
    }

    fn has_context(&self, context: ContextId) -> bool {
        self.contexts.contains_key(&context)
    }
}

impl BindingKey {
    /// Bytes of its name.
    pub(super) fn bytes(&self) -> usize {
        self.component.id.len() + self.component.kind.len()
    }
}

impl BindingTarget {
    /// Bytes of its reference, about as much as it takes in memory and in the store.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Object(ior) | Self::Elsewhere(ior) => bytes_of(ior),
            Self::Context(_) => 0,
        }
    }
}

/// Bytes of a reference.
pub(super) fn bytes_of(ior: &Ior) -> usize {
    let profiles = ior.profiles.iter().map(|profile| 8 + profile.data.len());
    8 + ior.type_id.len() + profiles.sum::<usize>()
}

/// A borrowed key for lookups. It hashes as a [`BindingKey`] does.
#[derive(Hash)]
struct BorrowedKey<'a> {
    context: ContextId,
    component: &'a NameComponent,
}

impl Equivalent<Arc<BindingKey>> for BorrowedKey<'_> {
    fn equivalent(&self, place: &Arc<BindingKey>) -> bool {
        self.context == place.context && *self.component == place.component
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(context: ContextId, id: &str) -> Arc<BindingKey> {
        let component = NameComponent {
            id: id.to_owned(),
            kind: String::new(),
        };
        Arc::new(BindingKey { context, component })
    }

    fn object(type_id: &str) -> BindingTarget {
        BindingTarget::Object(Arc::new(Ior {
            type_id: type_id.to_owned(),
            profiles: Vec::new(),
        }))
    }

    fn ids(read: Vec<(Arc<BindingKey>, BindingTarget)>) -> Vec<String> {
        read.into_iter()
            .map(|(place, _)| place.component.id.clone())
            .collect()
    }

    #[test]
    fn a_list_gives_once_what_is_there_from_its_beginning_to_its_end() {
        let mut tree = Tree::new(10);
        for id in ["a", "b", "c", "d", "e"] {
            tree.apply(Effect::Bind(place(ROOT, id), object(id)));
        }
        let mut cursor = tree.list(ROOT).expect("the root");
        assert_eq!(ids(tree.read(&mut cursor, 2)), ["a", "b"]);
        // Gone before the list came there, bound anew behind it, bound over in place, and new.
        tree.apply(Effect::Unbind(place(ROOT, "c")));
        tree.apply(Effect::Unbind(place(ROOT, "a")));
        tree.apply(Effect::Bind(place(ROOT, "a"), object("a2")));
        tree.apply(Effect::Bind(place(ROOT, "d"), object("d2")));
        tree.apply(Effect::Bind(place(ROOT, "f"), object("f")));
        assert!(tree.has_more(&cursor));
        assert_eq!(ids(tree.read(&mut cursor, 9)), ["d", "e"]);
        assert!(!tree.has_more(&cursor));
        assert!(tree.read(&mut cursor, 9).is_empty());
    }

    #[test]
    fn bytes_are_counted_in_and_out() {
        let mut tree = Tree::new(10);
        tree.apply(Effect::Bind(place(ROOT, "abc"), object("12345")));
        assert_eq!(tree.bytes(), 3 + 8 + 5);
        tree.apply(Effect::Bind(place(ROOT, "abc"), object("1")));
        assert_eq!(tree.bytes(), 3 + 8 + 1);
        tree.apply(Effect::Unbind(place(ROOT, "abc")));
        assert_eq!((tree.bytes(), tree.len()), (0, 0));
        assert_eq!(tree.context_len(ROOT), Some(0));
    }
}
