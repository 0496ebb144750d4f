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
        let (id, forgotten) = self.open.lock().add(self.iterators_max);
        if let Some(forgotten) = forgotten {
            // It fails if the client has just destroyed it.
            let _ = self.poa.deactivate_id(forgotten.to_be_bytes());
        }
        let listing = IteratorServant {
            tree: Arc::clone(tree),
            iterators: Arc::clone(self),
            id,
            cursor: Mutex::new(cursor),
        };
        let listing = DirectIterator(listing);
        match self.poa.activate_with_id(id.to_be_bytes(), listing) {
            Ok(iterator) => Ok((listed, Some(iterator))),
            Err(error) => {
                self.open.lock().used.remove(&id);
                Err(match error {
                    PoaError::System(exception) => exception,
                    _ => local::NOT_ACTIVATED,
                })
            }
        }
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
    /// Adds an iterator. Returns its id, and the least recently used iterator if it must end.
    fn add(&mut self, iterators_max: usize) -> (u64, Option<u64>) {
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
        let id = self.next_id;
        self.next_id += 1;
        self.used.insert(id, self.next_use);
        self.next_use += 1;
        (id, forgotten)
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
    use super::OpenIterators;

    #[test]
    fn the_one_unused_longest_ends_for_one_more() {
        let mut open = OpenIterators::default();
        assert_eq!(open.add(2), (0, None));
        assert_eq!(open.add(2), (1, None));
        open.touch(0);
        assert_eq!(open.add(2), (2, Some(1)));
        assert_eq!(open.add(2), (3, Some(0)));
        assert_eq!((open.used.len(), open.ended), (2, 2));
    }
}
