//! What the back end does not generate yet: found and named, so that nothing is dropped in silence.

use std::collections::BTreeMap;

use super::scope::idl_name;
use super::types::{self, made_of, named};
use super::values;
use crate::diagnostic::Diagnostic;
use crate::source::Location;
use crate::tree::{
    Attribute, Interface, InterfaceFlavour, ItemId, ItemKind, Member, Operation, Tree, Type,
    Valuetype,
};

/// A construct of IDL that there is no Rust for yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotGenerated {
    /// What it is called in messages and in the list of `docs/mapping.md`.
    pub construct: &'static str,
    /// What to write instead.
    pub help: &'static str,
}

/// Everything that is refused; `docs/mapping.md` lists the same.
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

const ABSTRACT_INTERFACE: NotGenerated = NotGenerated {
    construct: "abstract interface",
    help: "make it an ordinary interface",
};
const ABSTRACT_VALUE: NotGenerated = NotGenerated {
    construct: "abstract valuetype as the type of something",
    help: "say which valuetype it is: an abstract one can be inherited from",
};
const CUSTOM_VALUETYPE: NotGenerated = NotGenerated {
    construct: "custom valuetype",
    help: "leave `custom` out: its state is then sent member by member",
};
const VALUE_BASE: NotGenerated = NotGenerated {
    construct: "ValueBase",
    help: "use `any`",
};
const MAP: NotGenerated = NotGenerated {
    construct: "map",
    help: "use a sequence of key and value structs",
};
const LOCAL_ON_THE_WIRE: NotGenerated = NotGenerated {
    construct: "local interface in a type or operation that goes on the wire",
    help: "local interfaces, and structs and unions of them, are for the operations of local interfaces",
};
const NATIVE_ON_THE_WIRE: NotGenerated = NotGenerated {
    construct: "native type in a type or operation that goes on the wire",
    help: "native types, and structs and unions of them, are for the operations of local interfaces",
};
const UNDEFINED: NotGenerated = NotGenerated {
    construct: "declaration without a definition",
    help: "define it, or include the file that does",
};
const CONTEXT_CLAUSE: NotGenerated = NotGenerated {
    construct: "context clause",
    help: "pass what the operation needs as a parameter",
};

/// What of a tree cannot be generated.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    /// One for everything in the main file that cannot be generated, or that uses what cannot.
    pub(super) diagnostics: Vec<Diagnostic>,
    /// What included files declare and nothing can be made of: it is left out, and the text says so.
    pub(super) left_out: BTreeMap<ItemId, String>,
}

impl Refusals {
    /// Looks at everything in `tree`.
    pub(super) fn of(tree: &Tree) -> Self {
        let mut search = Search {
            tree,
            found: Vec::new(),
            reported: Vec::new(),
            reasons: BTreeMap::new(),
        };
        for id in ids(tree) {
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

/// Whether what a type is used for leaves the process.
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
                    "use what CORBA has a wire form for",
                    item.location,
                    &idl_name(self.tree, id),
                ));
            }
            ItemKind::Module { .. }
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
        self.members(value.state.iter().map(|(_, member)| member), Reach::Wire);
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

    /// `location` is where the name stands that has the type.
    fn ty(&mut self, ty: &'t Type, reach: Reach, location: Location) {
        match self.tree.resolved(ty) {
            Type::Sequence { element, .. } | Type::Array { element, .. } => {
                self.ty(element, reach, location)
            }
            Type::Map { .. } => self.refuse(MAP, location, "map"),
            Type::ValueBase => self.refuse(VALUE_BASE, location, "ValueBase"),
            Type::Named(id) if values::is_abstract(self.tree, *id) => {
                self.refuse(ABSTRACT_VALUE, location, &idl_name(self.tree, *id));
            }
            Type::Named(id) if reach == Reach::Wire => {
                if let Some(keeper) = types::kept_inside_by(self.tree, *id) {
                    let is_local = types::is_local_interface(self.tree, keeper);
                    let what = if is_local {
                        LOCAL_ON_THE_WIRE
                    } else {
                        NATIVE_ON_THE_WIRE
                    };
                    self.refuse(what, location, &idl_name(self.tree, keeper));
                }
            }
            _ => {}
        }
    }

    /// Finds what uses something that cannot be generated, until there is no more of it.
    fn spread(&mut self) {
        let uses: Vec<(ItemId, Vec<ItemId>)> =
            ids(self.tree).map(|id| (id, uses(self.tree, id))).collect();
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

    /// Reports an item of the main file that uses something of an included one; the rest follows from other reports.
    fn report_use(&mut self, id: ItemId, used: ItemId) {
        let (item, used_item) = (self.tree.item(id), self.tree.item(used));
        if item.in_main_file && !used_item.in_main_file {
            let used_name = idl_name(self.tree, used);
            self.reported.push(
                Diagnostic::error(format!(
                    "`{}` uses `{used_name}`, which has no Rust",
                    item.name
                ))
                .at(item.location, format!("uses `{used_name}`"))
                .at(used_item.location, "declared here")
                .note(self.reasons[&used].clone())
                .help("leave it out, or use a type that can be generated"),
            );
        }
    }

    fn refuse_item(&mut self, id: ItemId, what: NotGenerated) {
        self.refuse(what, self.tree.item(id).location, &idl_name(self.tree, id));
    }

    fn refuse(&mut self, what: NotGenerated, location: Location, name: &str) {
        self.found
            .push(refusal(what.construct, what.help, location, name));
    }
}

fn refusal(construct: &str, help: &str, location: Location, name: &str) -> Diagnostic {
    Diagnostic::error(format!(
        "no Rust is generated yet for this {construct}: `{name}`"
    ))
    .at(location, construct)
    .note("the specification itself is accepted: `rtorb idl check` passes")
    .help(help)
}

fn ids(tree: &Tree) -> impl Iterator<Item = ItemId> + use<> {
    let count = u32::try_from(tree.items.len()).expect("an arena of items is far smaller");
    (0..count).map(ItemId)
}

/// The items without which `id` cannot be generated.
fn uses(tree: &Tree, id: ItemId) -> Vec<ItemId> {
    let item = tree.item(id);
    let mut used = Vec::new();
    // What is declared inside an interface or struct is generated with it.
    used.extend(
        item.scope
            .filter(|scope| !matches!(tree.item(*scope).kind, ItemKind::Module { .. })),
    );
    match &item.kind {
        ItemKind::Interface(interface) => {
            used.extend(&interface.bases);
            used.extend(interface.operations.iter().flat_map(used_by_operation));
            used.extend(interface.attributes.iter().flat_map(used_by_attribute));
        }
        ItemKind::Valuetype(value) => {
            used.extend(&value.supports);
            used.extend(
                value
                    .operations
                    .iter()
                    .chain(&value.factories)
                    .flat_map(used_by_operation),
            );
            used.extend(value.attributes.iter().flat_map(used_by_attribute));
            used.extend(made_of(&item.kind));
        }
        ItemKind::Constant { ty, .. } => used.extend(named(ty)),
        kind => used.extend(made_of(kind)),
    }
    used
}

fn used_by_operation(operation: &Operation) -> Vec<ItemId> {
    let types = operation
        .parameters
        .iter()
        .map(|parameter| &parameter.ty)
        .chain([&operation.returns]);
    types
        .filter_map(named)
        .chain(operation.raises.iter().copied())
        .collect()
}

fn used_by_attribute(attribute: &Attribute) -> Vec<ItemId> {
    let raised = attribute.get_raises.iter().chain(&attribute.set_raises);
    named(&attribute.ty)
        .into_iter()
        .chain(raised.copied())
        .collect()
}
