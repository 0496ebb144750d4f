//! Binding iterators: a bounded number of positions in lists of contexts.

use super::config::NamingConfig;
use super::names;
use super::tree::{BindingKey, BindingTarget, Cursor, Tree};
use crate::stubs::naming::cos_naming::{
    Binding, BindingIterator, BindingIteratorServant, BindingList, BindingType,
};
use rtorb::cdr::Encode;
use rtorb::exception::local;
use rtorb::poa::IdAssignment;
use rtorb::skeleton::{ServedBy, ServerCall};
use rtorb::{ExceptionKind, Orb, Poa, PoaError, PoaPolicies, SystemException};
use rtorb_os::sync::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// The open iterators.
#[derive(Debug)]
pub(super) struct Iterators {
    poa: Poa,
    iterators_max: usize,
    list_max: usize,
    open: Mutex<OpenIterators>,
}

#[derive(Debug, Default)]
struct OpenIterators {
    /// The last use of each iterator, as a growing number.
    used: HashMap<u64, u64>,
    next_id: u64,
    next_use: u64,
    ended: u64,
}

/// The servant of an iterator.
#[derive(Debug)]
struct IteratorServant {
    tree: Arc<Mutex<Tree>>,
    iterators: Arc<Iterators>,
    id: u64,
    cursor: Mutex<Cursor>,
}

impl Iterators {
    pub(super) fn new(orb: &Orb, name: &str, config: &NamingConfig) -> Result<Self, PoaError> {
        let policies = PoaPolicies::default().with_id_assignment(IdAssignment::User);
        Ok(Self {
            poa: orb.root_poa()?.create_poa(name, policies)?,
            iterators_max: config.iterators_max,
            list_max: config.list_max,
            open: Mutex::default(),
        })
    }

    /// Returns the first bindings of a list, and an iterator for the rest if there is one.
    pub(super) fn list(
        self: &Arc<Self>,
        tree: &Arc<Mutex<Tree>>,
        mut cursor: Cursor,
        how_many: u32,
    ) -> Result<(BindingList, Option<BindingIterator>), SystemException> {
        let listed = self.read(tree, &mut cursor, how_many);
        if !tree.lock().has_more(&cursor) {
            return Ok((listed, None));
        }
        let id = self.open.lock().new_id();
        let listing = DirectIterator(IteratorServant {
            tree: Arc::clone(tree),
            iterators: Arc::clone(self),
            id,
            cursor: Mutex::new(cursor),
        });
        let activated = self.poa.activate_with_id(id.to_be_bytes(), listing);
        let iterator = activated.map_err(|error| match error {
            PoaError::System(exception) => exception,
            _ => local::NOT_ACTIVATED,
        })?;
        // Only now, so that an iterator that others end to make room is always active.
        let forgotten = self.open.lock().add(id, self.iterators_max);
        if let Some(forgotten) = forgotten {
            // It fails if the client has just destroyed it.
            let _ = self.poa.deactivate_id(forgotten.to_be_bytes());
        }
        Ok((listed, Some(iterator)))
    }

    /// The number of open iterators, and of those ended to make room.
    pub(super) fn counts(&self) -> (usize, u64) {
        let open = self.open.lock();
        (open.used.len(), open.ended)
    }

    pub(super) fn end(&self) {
        self.poa.destroy();
    }

    /// Reads bindings in small portions, so that other threads can use the tree in between.
    fn read(&self, tree: &Mutex<Tree>, cursor: &mut Cursor, how_many: u32) -> BindingList {
        let wanted = usize::try_from(how_many).map_or(self.list_max, |n| n.min(self.list_max));
        let mut listed = Vec::new();
        while listed.len() < wanted {
            let read = tree
                .lock()
                .read(cursor, READ_MAX.min(wanted - listed.len()));
            if read.is_empty() {
                break;
            }
            listed.extend(read.iter().map(|(place, target)| binding(place, target)));
        }
        listed
    }
}

impl OpenIterators {
    fn new_id(&mut self) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        id
    }

    /// Adds an active iterator. Returns the least recently used iterator if it must end.
    fn add(&mut self, id: u64, iterators_max: usize) -> Option<u64> {
        let forgotten = if self.used.len() >= iterators_max {
            self.used.iter().min_by_key(|(_, used)| **used)
        } else {
            None
        };
        let forgotten = forgotten.map(|(id, _)| *id);
        if let Some(forgotten) = forgotten {
            self.used.remove(&forgotten);
            self.ended += 1;
        }
        self.used.insert(id, self.next_use);
        self.next_use += 1;
        forgotten
    }

    fn touch(&mut self, id: u64) {
        if let Some(used) = self.used.get_mut(&id) {
            *used = self.next_use;
            self.next_use += 1;
        }
    }
}

impl BindingIteratorServant for IteratorServant {
    fn next_one(&self) -> Result<(bool, Binding), SystemException> {
        let (there_was, mut listed) = self.next_n(1)?;
        let nothing = Binding {
            binding_name: Vec::new(),
            binding_type: BindingType::Nobject,
        };
        Ok((there_was, listed.pop().unwrap_or(nothing)))
    }

    fn next_n(&self, how_many: u32) -> Result<(bool, BindingList), SystemException> {
        // Naming 1.3, 2.3.2.
        if how_many == 0 {
            return Err(local::NOTHING_WANTED);
        }
        self.iterators.open.lock().touch(self.id);
        let mut cursor = self.cursor.lock();
        let listed = self.iterators.read(&self.tree, &mut cursor, how_many);
        Ok((!listed.is_empty(), listed))
    }

    fn destroy(&self) -> Result<(), SystemException> {
        self.iterators.open.lock().used.remove(&self.id);
        let ended = self.iterators.poa.deactivate_id(self.id.to_be_bytes());
        ended.map_err(|_| SystemException::omg(ExceptionKind::ObjectNotExist, 1))
    }
}

/// An iterator that sends every name: see [`names::escape_unsendable`].
#[derive(Debug)]
struct DirectIterator(IteratorServant);

impl ServedBy<DirectIterator> for BindingIterator {
    fn find_operation(name: &[u8]) -> Option<usize> {
        <Self as ServedBy<IteratorServant>>::find_operation(name)
    }

    fn dispatch(
        DirectIterator(servant): &DirectIterator,
        operation: usize,
        call: &mut ServerCall<'_>,
    ) -> Result<(), SystemException> {
        let is = |name: &[u8]| {
            <Self as ServedBy<DirectIterator>>::find_operation(name) == Some(operation)
        };
        let code_set = call.arguments().char_code_set();
        if is(b"next_one") {
            let (there_was, mut next) = servant.next_one()?;
            names::escape_unsendable(core::slice::from_mut(&mut next), code_set);
            call.reply(|w| {
                there_was.encode(w)?;
                next.encode(w)
            })
        } else if is(b"next_n") {
            let how_many = call.argument()?;
            let (there_were, mut listed) = servant.next_n(how_many)?;
            names::escape_unsendable(&mut listed, code_set);
            call.reply(|w| {
                there_were.encode(w)?;
                listed.encode(w)
            })
        } else {
            <Self as ServedBy<IteratorServant>>::dispatch(servant, operation, call)
        }
    }
}

fn binding(place: &BindingKey, target: &BindingTarget) -> Binding {
    Binding {
        binding_name: names::to_wire(core::slice::from_ref(&place.component)),
        binding_type: match target {
            BindingTarget::Object(_) => BindingType::Nobject,
            BindingTarget::Context(_) | BindingTarget::Elsewhere(_) => BindingType::Ncontext,
        },
    }
}

/// Bindings that are read under one lock of the tree.
const READ_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::naming::tree::{Effect, ROOT};
    use rtorb::ior::Ior;
    use rtorb::url::NameComponent;
    use std::thread;

    #[test]
    fn the_one_unused_longest_ends_for_one_more() {
        let mut open = OpenIterators::default();
        let mut add = |used: &[u64]| {
            used.iter().for_each(|id| open.touch(*id));
            let id = open.new_id();
            (id, open.add(id, 2))
        };
        assert_eq!(add(&[]), (0, None));
        assert_eq!(add(&[]), (1, None));
        assert_eq!(add(&[0]), (2, Some(1)));
        assert_eq!(add(&[]), (3, Some(0)));
        assert_eq!((open.used.len(), open.ended), (2, 2));
    }

    #[test]
    fn only_the_counted_iterators_are_there_after_concurrent_lists() {
        let orb = Orb::builder().build().expect("an ORB");
        orb.root_poa().expect("a root adapter").manager().activate();
        let config = NamingConfig {
            iterators_max: 1,
            ..NamingConfig::default()
        };
        let iterators = Arc::new(Iterators::new(&orb, "iterators", &config).expect("an adapter"));
        let mut tree = Tree::new(config.bindings_max);
        for id in ["a", "b"] {
            let component = NameComponent {
                id: id.to_owned(),
                kind: String::new(),
            };
            let key = BindingKey {
                context: ROOT,
                component,
            };
            let target = BindingTarget::Object(Arc::new(Ior::NIL));
            tree.apply(Effect::Bind(Arc::new(key), target));
        }
        let tree = Arc::new(Mutex::new(tree));
        let list = || {
            let cursor = tree.lock().list(ROOT).expect("the root");
            let (_, iterator) = iterators.list(&tree, cursor, 1).expect("a list");
            iterator.expect("an iterator for the rest")
        };
        let lists = thread::scope(|scope| {
            let lists = || (0..LISTS).map(|_| list()).collect::<Vec<_>>();
            let threads = [(); 4].map(|()| scope.spawn(lists));
            threads.map(|thread| thread.join().expect("no panic"))
        });
        let exists = |it: &&BindingIterator| !it.as_object().non_existent().expect("it is asked");
        let there = lists.iter().flatten().filter(exists).count();
        assert_eq!((there, iterators.counts().0), (1, 1));
    }

    const LISTS: usize = 2_000;
}
