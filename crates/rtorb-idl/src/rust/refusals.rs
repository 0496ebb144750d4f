//! Finds and reports constructs that the back end does not generate yet, so that none is dropped silently.

use std::collections::BTreeMap;

use super::layouts::Layouts;
use super::types::{self, made_of, named, with_maps};
use super::{operations, type_codes};
use crate::diagnostic::Diagnostic;
use crate::source::Location;
use crate::tree::{Attribute, InterfaceFlavour, ItemId, ItemKind, Member, Operation, Tree, Type};

/// A construct of IDL that has no Rust form yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotGenerated {
    /// Its name in messages and in the list of `docs/reference/mapping.md`.
    pub construct: &'static str,
    /// A replacement for it.
    pub help: &'static str,
}

impl NotGenerated {
    const fn new(construct: &'static str, help: &'static str) -> Self {
        Self { construct, help }
    }
}

/// All constructs that the back end rejects; `docs/reference/mapping.md` lists the same.
pub const NOT_GENERATED: [NotGenerated; 7] = [
    MAP_KEY,
    LOCAL_ON_THE_WIRE,
    NATIVE_ON_THE_WIRE,
    UNDEFINED,
    MANY_BASES,
    DEEP_TYPE,
    LARGE_TYPE_CODE,
];

const MAP_KEY: NotGenerated = NotGenerated::new(
    "map with a key of another type than an integer, boolean, char, string or enum",
    "use a sequence of structs of a key and a value",
);
const LOCAL_ON_THE_WIRE: NotGenerated = NotGenerated::new(
    "local interface in a type or operation that goes on the wire",
    "only operations of local interfaces can use local interfaces, and structs and unions that contain them",
);
const NATIVE_ON_THE_WIRE: NotGenerated = NotGenerated::new(
    "native type in a type or operation that goes on the wire",
    "only operations of local interfaces can use native types, and structs and unions that contain them",
);
const UNDEFINED: NotGenerated = NotGenerated::new(
    "declaration without a definition",
    "define it, or include the file that defines it",
);

const MANY_BASES: NotGenerated = NotGenerated::new(
    "interface with more than 64 bases",
    "count direct and indirect bases: leave some out, or move their operations into fewer interfaces",
);
const DEEP_TYPE: NotGenerated = NotGenerated::new(
    "type of more than 32 levels of sequences, arrays and maps",
    "put the inner levels into a struct",
);
const LARGE_TYPE_CODE: NotGenerated = NotGenerated::new(
    "type with a TypeCode of more than 65,536 types or 128 levels",
    "let fewer types contain each other: name the others by keys, or by references to objects",
);

/// The most bases of an interface. Each reference has the methods of all its bases, so that a line of interfaces grows with the
/// square of its length.
const BASES_MAX: usize = 64;
/// The most sequences, arrays and maps inside each other, typedefs between them included. rustc does not prove the traits of deeper types.
const LEVELS_MAX: usize = 32;

/// The parts of a tree that cannot be generated.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    /// One for each item of the main file that cannot be generated, or that uses such an item.
    pub(super) diagnostics: Vec<Diagnostic>,
    /// Items of included files that cannot be generated, with the reason. They are omitted, and the text names them.
    /// During the search, those of the main file as well.
    pub(super) left_out: BTreeMap<ItemId, String>,
}

impl Refusals {
    /// Checks everything in `tree`.
    pub(super) fn of(tree: &Tree, layouts: &Layouts) -> Self {
        let mut refusals = Self::default();
        for id in tree.ids() {
            let refusals = &mut refusals;
            let search = Search {
                tree,
                layouts,
                id,
                refusals,
            };
            search.search();
        }
        refusals.spread(tree);
        let left_out = &mut refusals.left_out;
        left_out.retain(|id, _| !tree.item(*id).in_main_file);
        refusals
    }

    /// Finds the items that use an item that cannot be generated, directly or not.
    fn spread(&mut self, tree: &Tree) {
        let uses: Vec<_> = tree.ids().map(|id| (id, uses(tree, id))).collect();
        let mut before = 0;
        while self.left_out.len() > before {
            before = self.left_out.len();
            for (id, used) in &uses {
                let refused = used.iter().find(|used| self.left_out.contains_key(used));
                if let Some(&used) = refused
                    && !self.left_out.contains_key(id)
                {
                    self.report_use(tree, *id, used);
                    self.left_out.insert(*id, self.left_out[&used].clone());
                }
            }
        }
    }

    /// Reports an item of the main file that uses an item of an included file. Other uses follow from other reports.
    fn report_use(&mut self, tree: &Tree, id: ItemId, used: ItemId) {
        let (item, used_item) = (tree.item(id), tree.item(used));
        if item.in_main_file && !used_item.in_main_file {
            let used_name = tree.full_name(used);
            self.diagnostics.push(
                Diagnostic::error(format!(
                    "`{}` uses `{used_name}`, which has no Rust form",
                    item.name
                ))
                .at(item.location, format!("uses `{used_name}`"))
                .at(used_item.location, "declared here")
                .note(self.left_out[&used].clone())
                .help("remove it, or use a type that has a Rust form"),
            );
        }
    }
}

/// Looks for constructs that cannot be generated in one item.
struct Search<'t, 'r> {
    tree: &'t Tree,
    layouts: &'t Layouts,
    id: ItemId,
    refusals: &'r mut Refusals,
}

/// Whether values of a type go on the wire in some use.
#[derive(Clone, Copy, PartialEq)]
enum Reach {
    Wire,
    Process,
}

impl<'t> Search<'t, '_> {
    fn search(mut self) {
        let item = self.tree.item(self.id);
        if operations::ancestors(self.tree, self.id).len() > BASES_MAX {
            return self.refuse_item(MANY_BASES);
        }
        let has_type_code = !matches!(item.kind, ItemKind::Alias { .. });
        let cycles = &self.layouts.cycles;
        if has_type_code && type_codes::is_too_large(self.tree, cycles, self.id) {
            return self.refuse_item(LARGE_TYPE_CODE);
        }
        let mut reach = Reach::Process;
        match &item.kind {
            ItemKind::Interface(interface) => match interface.flavour {
                InterfaceFlavour::Local => {}
                InterfaceFlavour::Plain | InterfaceFlavour::Abstract => reach = Reach::Wire,
            },
            ItemKind::Struct { members, .. } => self.members(members, Reach::Process),
            ItemKind::Exception { members, .. } => self.members(members, Reach::Wire),
            ItemKind::Union(union) => {
                self.members(union.cases.iter().map(|case| &case.member), Reach::Process);
            }
            ItemKind::Alias { ty } => self.ty(ty, Reach::Process, item.location),
            ItemKind::ValueBox { ty } => self.ty(ty, Reach::Wire, item.location),
            ItemKind::Valuetype(value) => {
                self.members(value.state.iter().map(|state| &state.member), Reach::Wire);
            }
            ItemKind::Undefined { what } if *what != "interface" => self.refuse_item(UNDEFINED),
            // To declare an annotation changes nothing, and neither does its use. Instances of a template module are modules.
            ItemKind::Other {
                what: "annotation" | "template module",
            } => {}
            ItemKind::Other { what, .. } => {
                let help = "use a construct that CORBA has a wire form for";
                self.refuse_item(NotGenerated::new(what, help));
            }
            ItemKind::Module
            | ItemKind::Enum { .. }
            | ItemKind::Bitmask(_)
            | ItemKind::Bitset(_)
            | ItemKind::Constant { .. }
            | ItemKind::Native
            | ItemKind::Undefined { .. } => {}
        }
        for operation in operations(&item.kind) {
            self.ty(&operation.returns, reach, operation.location);
            for parameter in &operation.parameters {
                self.ty(&parameter.ty, reach, parameter.location);
            }
        }
        for attribute in attributes(&item.kind) {
            self.ty(&attribute.ty, reach, attribute.location);
        }
    }

    fn members(&mut self, members: impl IntoIterator<Item = &'t Member>, reach: Reach) {
        for member in members {
            self.ty(&member.ty, reach, member.location);
        }
    }

    /// Checks the type of a member or parameter whose name is at `location`.
    fn ty(&mut self, ty: &'t Type, reach: Reach, location: Location) {
        if levels(self.tree, ty) > LEVELS_MAX {
            let name = self.tree.full_name(self.id);
            self.refuse(DEEP_TYPE, location, &name);
            return;
        }
        match self.tree.resolved(ty) {
            Type::Sequence { element, .. } | Type::Array { element, .. } => {
                self.ty(element, reach, location)
            }
            Type::Map { key, value, .. } => {
                if !types::is_key(self.tree, key) {
                    let name = self.tree.full_name(self.id);
                    self.refuse(MAP_KEY, location, &name);
                }
                self.ty(value, reach, location);
            }
            Type::Named(id) if reach == Reach::Wire => {
                if let Some(keeper) = self.layouts.kept_inside_by(*id) {
                    let is_local = types::is_local_interface(self.tree, keeper);
                    let what = if is_local {
                        LOCAL_ON_THE_WIRE
                    } else {
                        NATIVE_ON_THE_WIRE
                    };
                    self.refuse(what, location, &self.tree.full_name(keeper));
                }
            }
            _ => {}
        }
    }

    fn refuse_item(&mut self, what: NotGenerated) {
        let location = self.tree.item(self.id).location;
        self.refuse(what, location, &self.tree.full_name(self.id));
    }

    fn refuse(&mut self, what: NotGenerated, location: Location, name: &str) {
        let NotGenerated { construct, help } = what;
        let message = format!("`{name}` has no Rust form yet: {construct}");
        let reasons = &mut self.refusals.left_out;
        reasons.entry(self.id).or_insert_with(|| message.clone());
        if self.tree.item(self.id).in_main_file {
            self.refusals.diagnostics.push(
                Diagnostic::error(message)
                    .at(location, construct)
                    .note("the IDL itself is correct: `rtorb idl check` accepts it")
                    .help(help),
            );
        }
    }
}

/// How many sequences, arrays and maps stand around the innermost type.
fn levels(tree: &Tree, ty: &Type) -> usize {
    let mut levels = 0;
    let mut ty = ty;
    loop {
        (ty, levels) = match tree.resolved(ty) {
            Type::Sequence { element, .. } => (element, levels + 1),
            Type::Map { value, .. } => (value, levels + 1),
            Type::Array {
                element,
                dimensions,
            } => (element, levels + dimensions.len()),
            _ => return levels,
        };
    }
}

/// The operations of an interface or a valuetype, and its factories.
pub(super) fn operations(kind: &ItemKind) -> impl Iterator<Item = &Operation> {
    let (operations, factories): (&[Operation], &[Operation]) = match kind {
        ItemKind::Interface(interface) => (&interface.operations, &[]),
        ItemKind::Valuetype(value) => (&value.operations, &value.factories),
        _ => (&[], &[]),
    };
    operations.iter().chain(factories)
}

/// The attributes of an interface or a valuetype.
pub(super) fn attributes(kind: &ItemKind) -> &[Attribute] {
    match kind {
        ItemKind::Interface(interface) => &interface.attributes,
        ItemKind::Valuetype(value) => &value.attributes,
        _ => &[],
    }
}

/// The items that the Rust code of `id` needs.
fn uses(tree: &Tree, id: ItemId) -> Vec<ItemId> {
    let item = tree.item(id);
    // Declarations inside an interface or struct are generated with it.
    let is_module = |scope: &ItemId| matches!(tree.item(*scope).kind, ItemKind::Module);
    let mut used: Vec<ItemId> = item
        .scope
        .into_iter()
        .filter(|scope| !is_module(scope))
        .collect();
    used.extend(made_of(&item.kind));
    match &item.kind {
        ItemKind::Interface(interface) => used.extend(&interface.bases),
        ItemKind::Valuetype(value) => used.extend(&value.supports),
        ItemKind::Constant { ty, .. } => used.extend(named(ty)),
        _ => {}
    }
    for operation in operations(&item.kind) {
        let types = operation.parameters.iter().map(|parameter| &parameter.ty);
        let types = types.chain([&operation.returns]).flat_map(with_maps);
        used.extend(types.filter_map(named));
        used.extend(&operation.raises);
    }
    for attribute in attributes(&item.kind) {
        used.extend(with_maps(&attribute.ty).into_iter().filter_map(named));
        used.extend(attribute.get_raises.iter().chain(&attribute.set_raises));
    }
    used
}
