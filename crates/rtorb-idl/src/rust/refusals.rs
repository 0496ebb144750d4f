//! Finds and reports constructs that the back end does not generate yet, so that none is dropped silently.

use std::collections::BTreeMap;

use super::types::{self, made_of, named};
use super::values;
use crate::diagnostic::Diagnostic;
use crate::source::Location;
use crate::tree::{
    Attribute, Interface, InterfaceFlavour, ItemId, ItemKind, Member, Operation, Tree, Type,
    Valuetype,
};

/// A construct of IDL that has no Rust form yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotGenerated {
    /// Its name in messages and in the list of `docs/mapping.md`.
    pub construct: &'static str,
    /// A replacement for it.
    pub help: &'static str,
}

impl NotGenerated {
    const fn new(construct: &'static str, help: &'static str) -> Self {
        Self { construct, help }
    }
}

/// All constructs that the back end rejects; `docs/mapping.md` lists the same.
pub const NOT_GENERATED: [NotGenerated; 9] = [
    ABSTRACT_INTERFACE,
    ABSTRACT_VALUE,
    CUSTOM_VALUETYPE,
    VALUE_BASE,
    MAP,
    LOCAL_ON_THE_WIRE,
    NATIVE_ON_THE_WIRE,
    UNDEFINED,
    CONTEXT_CLAUSE,
];

const ABSTRACT_INTERFACE: NotGenerated =
    NotGenerated::new("abstract interface", "make it an ordinary interface");
const ABSTRACT_VALUE: NotGenerated = NotGenerated::new(
    "abstract valuetype used as a type",
    "use a concrete valuetype: an abstract one can only be inherited from",
);
const CUSTOM_VALUETYPE: NotGenerated = NotGenerated::new(
    "custom valuetype",
    "remove `custom`: the state is then sent member by member",
);
const VALUE_BASE: NotGenerated = NotGenerated::new("ValueBase", "use `any`");
const MAP: NotGenerated = NotGenerated::new("map", "use a sequence of key and value structs");
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
const CONTEXT_CLAUSE: NotGenerated =
    NotGenerated::new("context clause", "pass the values as parameters");

/// The parts of a tree that cannot be generated.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    /// One for each item of the main file that cannot be generated, or that uses such an item.
    pub(super) diagnostics: Vec<Diagnostic>,
    /// Items of included files that cannot be generated, with the reason. They are omitted, and the text names them.
    pub(super) left_out: BTreeMap<ItemId, String>,
}

impl Refusals {
    /// Checks everything in `tree`.
    pub(super) fn of(tree: &Tree) -> Self {
        let mut search = Search {
            tree,
            found: Vec::new(),
            reported: Vec::new(),
            reasons: BTreeMap::new(),
        };
        for id in tree.ids() {
            search.item(id);
            if let Some(first) = search.found.first() {
                search.reasons.insert(id, first.message.clone());
            }
            if tree.item(id).in_main_file {
                search.reported.append(&mut search.found);
            } else {
                search.found.clear();
            }
        }
        search.spread();
        let reasons = search.reasons.into_iter();
        let left_out = reasons
            .filter(|(id, _)| !tree.item(*id).in_main_file)
            .collect();
        Self {
            diagnostics: search.reported,
            left_out,
        }
    }
}

struct Search<'t> {
    tree: &'t Tree,
    /// About the item being looked at.
    found: Vec<Diagnostic>,
    /// About the items of the main file.
    reported: Vec<Diagnostic>,
    /// Why an item cannot be generated.
    reasons: BTreeMap<ItemId, String>,
}

/// Whether values of a type go on the wire in some use.
#[derive(Clone, Copy, PartialEq)]
enum Reach {
    Wire,
    Process,
}

impl<'t> Search<'t> {
    fn item(&mut self, id: ItemId) {
        let item = self.tree.item(id);
        match &item.kind {
            ItemKind::Interface(interface) => self.interface(id, interface),
            ItemKind::Struct { members, .. } => self.members(members, Reach::Process),
            ItemKind::Exception { members, .. } => self.members(members, Reach::Wire),
            ItemKind::Union(union) => {
                self.members(union.cases.iter().map(|case| &case.member), Reach::Process);
            }
            ItemKind::Alias { ty } => self.ty(ty, Reach::Process, item.location),
            ItemKind::ValueBox { ty } => self.ty(ty, Reach::Wire, item.location),
            ItemKind::Valuetype(value) => self.valuetype(id, value),
            ItemKind::Undefined { what } if *what != "interface" => self.refuse_item(id, UNDEFINED),
            // To declare an annotation changes nothing, and neither does its use.
            ItemKind::Other {
                what: "annotation", ..
            } => {}
            ItemKind::Other { what, .. } => {
                self.found.push(refusal(
                    what,
                    "use a construct that CORBA has a wire form for",
                    item.location,
                    &self.tree.full_name(id),
                ));
            }
            ItemKind::Module
            | ItemKind::Enum { .. }
            | ItemKind::Constant { .. }
            | ItemKind::Native
            | ItemKind::Undefined { .. } => {}
        }
    }

    fn interface(&mut self, id: ItemId, interface: &'t Interface) {
        if interface.flavour == InterfaceFlavour::Abstract {
            return self.refuse_item(id, ABSTRACT_INTERFACE);
        }
        let reach = if interface.flavour == InterfaceFlavour::Local {
            Reach::Process
        } else {
            Reach::Wire
        };
        for operation in &interface.operations {
            self.operation(operation, reach);
        }
        for attribute in &interface.attributes {
            self.ty(&attribute.ty, reach, attribute.location);
        }
    }

    fn valuetype(&mut self, id: ItemId, value: &'t Valuetype) {
        if value.is_custom {
            return self.refuse_item(id, CUSTOM_VALUETYPE);
        }
        self.members(value.state.iter().map(|state| &state.member), Reach::Wire);
        for operation in value.operations.iter().chain(&value.factories) {
            self.operation(operation, Reach::Process);
        }
        for attribute in &value.attributes {
            self.ty(&attribute.ty, Reach::Process, attribute.location);
        }
    }

    fn operation(&mut self, operation: &'t Operation, reach: Reach) {
        self.ty(&operation.returns, reach, operation.location);
        for parameter in &operation.parameters {
            self.ty(&parameter.ty, reach, parameter.location);
        }
        if !operation.context.is_empty() {
            self.refuse(CONTEXT_CLAUSE, operation.location, &operation.name);
        }
    }

    fn members(&mut self, members: impl IntoIterator<Item = &'t Member>, reach: Reach) {
        for member in members {
            self.ty(&member.ty, reach, member.location);
        }
    }

    /// Checks the type of a member or parameter whose name is at `location`.
    fn ty(&mut self, ty: &'t Type, reach: Reach, location: Location) {
        match self.tree.resolved(ty) {
            Type::Sequence { element, .. } | Type::Array { element, .. } => {
                self.ty(element, reach, location)
            }
            Type::Map { .. } => self.refuse(MAP, location, "map"),
            Type::ValueBase => self.refuse(VALUE_BASE, location, "ValueBase"),
            Type::Named(id) if values::is_abstract(self.tree, *id) => {
                self.refuse(ABSTRACT_VALUE, location, &self.tree.full_name(*id));
            }
            Type::Named(id) if reach == Reach::Wire => {
                if let Some(keeper) = types::kept_inside_by(self.tree, *id) {
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

    /// Finds the items that use an item that cannot be generated, directly or not.
    fn spread(&mut self) {
        let uses: Vec<(ItemId, Vec<ItemId>)> = self
            .tree
            .ids()
            .map(|id| (id, uses(self.tree, id)))
            .collect();
        let mut before = 0;
        while self.reasons.len() > before {
            before = self.reasons.len();
            for (id, used) in &uses {
                let refused = used.iter().find(|used| self.reasons.contains_key(used));
                if let Some(&used) = refused
                    && !self.reasons.contains_key(id)
                {
                    self.report_use(*id, used);
                    self.reasons.insert(*id, self.reasons[&used].clone());
                }
            }
        }
    }

    /// Reports an item of the main file that uses an item of an included file. Other uses follow from other reports.
    fn report_use(&mut self, id: ItemId, used: ItemId) {
        let (item, used_item) = (self.tree.item(id), self.tree.item(used));
        if item.in_main_file && !used_item.in_main_file {
            let used_name = self.tree.full_name(used);
            self.reported.push(
                Diagnostic::error(format!(
                    "`{}` uses `{used_name}`, which has no Rust form",
                    item.name
                ))
                .at(item.location, format!("uses `{used_name}`"))
                .at(used_item.location, "declared here")
                .note(self.reasons[&used].clone())
                .help("remove it, or use a type that has a Rust form"),
            );
        }
    }

    fn refuse_item(&mut self, id: ItemId, what: NotGenerated) {
        self.refuse(what, self.tree.item(id).location, &self.tree.full_name(id));
    }

    fn refuse(&mut self, what: NotGenerated, location: Location, name: &str) {
        self.found
            .push(refusal(what.construct, what.help, location, name));
    }
}

fn refusal(construct: &str, help: &str, location: Location, name: &str) -> Diagnostic {
    Diagnostic::error(format!("`{name}` has no Rust form yet: {construct}"))
        .at(location, construct)
        .note("the IDL itself is correct: `rtorb idl check` accepts it")
        .help(help)
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
        ItemKind::Interface(interface) => {
            used.extend(&interface.bases);
            used.extend(interface.operations.iter().flat_map(used_by_operation));
            used.extend(interface.attributes.iter().flat_map(used_by_attribute));
        }
        ItemKind::Valuetype(value) => {
            let operations = value.operations.iter().chain(&value.factories);
            used.extend(&value.supports);
            used.extend(operations.flat_map(used_by_operation));
            used.extend(value.attributes.iter().flat_map(used_by_attribute));
        }
        ItemKind::Constant { ty, .. } => used.extend(named(ty)),
        _ => {}
    }
    used
}

fn used_by_operation(operation: &Operation) -> Vec<ItemId> {
    let types = operation.parameters.iter().map(|parameter| &parameter.ty);
    let used = types.chain([&operation.returns]).filter_map(named);
    used.chain(operation.raises.iter().copied()).collect()
}

fn used_by_attribute(attribute: &Attribute) -> Vec<ItemId> {
    let raised = attribute.get_raises.iter().chain(&attribute.set_raises);
    named(&attribute.ty)
        .into_iter()
        .chain(raised.copied())
        .collect()
}
