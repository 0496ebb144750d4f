//! Types that contain each other: the strongly connected components of the types of a tree.

use super::types::made_of;
use crate::tree::{ItemId, Tree};

/// Which types contain each other.
#[derive(Debug)]
pub(super) struct Cycles {
    /// For each item its cycle. Two types are in one cycle if each contains the other.
    cycle: Vec<u32>,
    /// All items. Each type comes after those that it contains, unless they are in one cycle.
    parts_first: Vec<ItemId>,
}

impl Cycles {
    /// Tarjan's algorithm without recursion: it enters each item and follows each use of a type once.
    pub(super) fn of(tree: &Tree) -> Self {
        let count = tree.items.len();
        let mut search = CycleSearch {
            order: vec![UNSEEN; count],
            lowest: vec![UNSEEN; count],
            cycle: vec![UNSEEN; count],
            open: Vec::new(),
            closed: Vec::with_capacity(count),
            entered: 0,
        };
        for root in tree.ids() {
            if search.order[root.0 as usize] == UNSEEN {
                search.from(tree, root);
            }
        }
        Self {
            cycle: search.cycle,
            parts_first: search.closed,
        }
    }

    /// True if each of the two types contains the other, or they are the same.
    pub(super) fn joins(&self, one: ItemId, other: ItemId) -> bool {
        self.cycle[one.0 as usize] == self.cycle[other.0 as usize]
    }

    /// All items. Each type comes after those that it contains, unless they are in one cycle.
    pub(super) fn parts_first(&self) -> &[ItemId] {
        &self.parts_first
    }
}

const UNSEEN: u32 = u32::MAX;

struct CycleSearch {
    /// The position at which an item was entered.
    order: Vec<u32>,
    /// The lowest position that is known to be in the cycle of the item.
    lowest: Vec<u32>,
    /// The first item of the cycle, once all of the cycle is found.
    cycle: Vec<u32>,
    /// Items whose cycle is not complete.
    open: Vec<ItemId>,
    /// Items whose cycle is complete.
    closed: Vec<ItemId>,
    entered: u32,
}

impl CycleSearch {
    fn from(&mut self, tree: &Tree, root: ItemId) {
        let mut path = vec![self.enter(tree, root)];
        while let Some((id, parts)) = path.last_mut() {
            let id = *id;
            let Some(part) = parts.pop() else {
                path.pop();
                self.leave(id);
                if let Some((outer, _)) = path.last() {
                    self.lower(*outer, self.lowest[id.0 as usize]);
                }
                continue;
            };
            if self.order[part.0 as usize] == UNSEEN {
                path.push(self.enter(tree, part));
            } else if self.cycle[part.0 as usize] == UNSEEN {
                self.lower(id, self.order[part.0 as usize]);
            }
        }
    }

    fn enter(&mut self, tree: &Tree, id: ItemId) -> (ItemId, Vec<ItemId>) {
        self.order[id.0 as usize] = self.entered;
        self.lowest[id.0 as usize] = self.entered;
        self.entered += 1;
        self.open.push(id);
        (id, made_of(&tree.item(id).kind))
    }

    fn lower(&mut self, id: ItemId, position: u32) {
        let lowest = &mut self.lowest[id.0 as usize];
        *lowest = (*lowest).min(position);
    }

    /// Closes the cycle that begins with `id`, if one does.
    fn leave(&mut self, id: ItemId) {
        if self.lowest[id.0 as usize] != self.order[id.0 as usize] {
            return;
        }
        while let Some(member) = self.open.pop() {
            self.cycle[member.0 as usize] = id.0;
            self.closed.push(member);
            if member == id {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;

    #[test]
    fn only_types_that_contain_each_other_are_joined() {
        let text = "struct A; typedef sequence<A> As; struct B { As held; }; struct A { sequence<B> held; };\n\
            struct User { A first; B second; }; struct Other { long x; };";
        let outcome = crate::check_text("cycles.idl", text, &Options::default());
        let tree = outcome.tree.expect("the text is right");
        let cycles = Cycles::of(&tree);
        let [a, alias, b, user, other] = tree.roots[..] else {
            panic!("five declarations");
        };
        assert!(cycles.joins(a, b) && cycles.joins(alias, a));
        for outside in [user, other] {
            assert!(cycles.joins(outside, outside));
            assert!(!cycles.joins(outside, a) && !cycles.joins(b, outside));
        }
        assert!(!cycles.joins(user, other));
    }
}
