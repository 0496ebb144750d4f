//! Escapes IDL names of one scope that would become the same Rust name. Reports chosen names that collide.
//!
//! An escape is a choice like `@rust_name`: a declaration yields by trailing underscores. Chosen names never yield.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::Ident;

use super::abstract_values::{self, VALUE_BASE};
use super::operations::{self, Call, RUST_METHODS, TO_STRING};
use super::started_calls::{START_METHODS, calls_ident};
use super::{
    Additions, ami, async_servants, bits, deferred_servants, names, structs, unions, values,
};
use crate::diagnostic::Diagnostic;
use crate::renames::{Declared, RUST_NAME};
use crate::source::Location;
use crate::tree::{
    Attribute, BitField, Direction, Flag, Interface, InterfaceFlavour, Item, ItemId, ItemKind,
    Member, Operation, Tree, Valuetype,
};

/// Gives every declaration of `tree` a Rust name of its own, except the items in `left_out`. Returns a diagnostic for each name
/// that is chosen but is wrong or taken.
pub(super) fn settle(
    tree: &mut Tree,
    left_out: &BTreeMap<ItemId, String>,
    additions: Additions,
) -> Vec<Diagnostic> {
    let kept: Vec<ItemId> = tree.ids().filter(|id| !left_out.contains_key(id)).collect();
    let mut escapes = Escapes {
        tree,
        left_out,
        additions,
        found: Vec::new(),
    };
    for id in bases_first(escapes.tree, &kept) {
        escapes.settle_inside(id);
    }
    let mut outermost = Taken::default();
    if abstract_values::uses_value_base(escapes.tree) {
        outermost.reserve(Types, VALUE_BASE, "`ValueBase` of CORBA", None);
    }
    let roots = escapes.tree.roots.clone();
    escapes.settle_among(&roots, outermost);
    for &id in &kept {
        let scope = escapes.tree.item(id).items.clone();
        escapes.settle_among(&scope, Taken::default());
    }
    escapes.found
}

/// The settling of all names.
struct Escapes<'t> {
    tree: &'t mut Tree,
    /// The items that are left out, each with the reason.
    left_out: &'t BTreeMap<ItemId, String>,
    /// What is generated beside the rest.
    additions: Additions,
    found: Vec<Diagnostic>,
}

/// The names of one scope or declaration, each with its first origin.
#[derive(Default)]
struct Taken {
    names: BTreeMap<(Namespace, String), Origin>,
}

/// A namespace of Rust.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Namespace {
    /// Types, traits and modules.
    Types,
    /// Functions, constants, fields, variants and tuple structs.
    Values,
}
use Namespace::{Types, Values};

/// The IDL declaration that a Rust name comes from.
struct Origin {
    description: String,
    /// `None` for a name that every Rust type has.
    location: Option<Location>,
}

/// A Rust name that a declaration wants.
struct Claim {
    namespace: Namespace,
    name: String,
    description: String,
}

impl Claim {
    fn new(namespace: Namespace, name: &Ident, description: String) -> Self {
        Self {
            namespace,
            name: name.to_string(),
            description,
        }
    }

    /// The name of `declared` itself.
    fn own(namespace: Namespace, name: &Ident, declared: &dyn Declared) -> Self {
        Self::new(namespace, name, format!("`{}`", declared.name()))
    }
}

impl Taken {
    /// Adds a name that belongs to no declaration.
    fn reserve(
        &mut self,
        namespace: Namespace,
        name: &str,
        description: &str,
        location: Option<Location>,
    ) {
        let origin = Origin {
            description: description.to_owned(),
            location,
        };
        self.names.insert((namespace, name.to_owned()), origin);
    }

    /// Gives each of `declared` a name whose claims are free. Those with chosen names come first.
    fn settle<'d, D: Declared + 'd>(
        &mut self,
        declared: impl IntoIterator<Item = &'d mut D>,
        claims: impl Fn(&D) -> Vec<Claim>,
        found: &mut Vec<Diagnostic>,
    ) {
        let mut all: Vec<&mut D> = declared.into_iter().collect();
        all.iter_mut().for_each(|one| check_chosen(*one, found));
        let (chosen, free): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|one| one.chosen().is_some());
        for declared in chosen {
            self.claim(claims(declared), declared.location(), found);
        }
        for declared in free {
            let location = declared.location();
            let wanted = self.escaped(|escape| {
                escape.into_iter().for_each(|name| declared.choose(name));
                claims(declared)
            });
            self.claim(wanted, location, found);
        }
    }

    /// The claims of a declaration once they are free. `claims` first gives the declaration the name that it gets, if any.
    fn escaped(&self, mut claims: impl FnMut(Option<&str>) -> Vec<Claim>) -> Vec<Claim> {
        let mut wanted = claims(None);
        while let Some(first) = wanted.first()
            && wanted.iter().any(|claim| self.has(claim))
        {
            let unescaped = first.name.strip_prefix("r#").unwrap_or(&first.name);
            wanted = claims(Some(&format!("{unescaped}_")));
        }
        wanted
    }

    fn has(&self, claim: &Claim) -> bool {
        let key = (claim.namespace, claim.name.clone());
        self.names.contains_key(&key)
    }

    /// Adds the claims of one declaration. Reports those that are taken.
    fn claim(&mut self, claims: Vec<Claim>, location: Location, found: &mut Vec<Diagnostic>) {
        for claim in claims {
            let name = claim.name.clone();
            let description = claim.description;
            let Some(first) = self.names.get(&(claim.namespace, name.clone())) else {
                let origin = Origin {
                    description,
                    location: Some(location),
                };
                self.names.insert((claim.namespace, name), origin);
                continue;
            };
            let message = format!(
                "{} and {description} would both be `{name}` in Rust",
                first.description
            );
            // An interface inherits the collisions of its bases.
            if found.iter().any(|known| known.message == message) {
                continue;
            }
            let mut diagnostic =
                Diagnostic::error(message).at(location, format!("becomes `{name}`"));
            if let Some(first) = first.location {
                diagnostic = diagnostic.at(first, format!("also becomes `{name}`"));
            }
            found.push(diagnostic.help(
                "choose another name for one of them: `@rust_name(\"...\")` before its declaration",
            ));
        }
    }
}

/// Reports a chosen name that cannot be one in Rust, and takes it back.
fn check_chosen(declared: &mut dyn Declared, found: &mut Vec<Diagnostic>) {
    let Some(chosen) = declared.chosen().filter(|chosen| !names::is_name(chosen)) else {
        return;
    };
    let message = format!(
        "`{chosen}` cannot be the Rust name of `{}`",
        declared.name()
    );
    let diagnostic = Diagnostic::error(message)
        .at(
            declared.location(),
            "its name is chosen by `@rust_name` or an option",
        )
        .help("write one Rust identifier in quotation marks, without two leading underscores: `@rust_name(\"another_name\")`");
    found.push(diagnostic);
    let annotations = declared.annotations_mut();
    annotations.retain(|annotation| annotation.name != RUST_NAME);
}

/// `items` in an order in which every base comes before what inherits from it.
fn bases_first(tree: &Tree, items: &[ItemId]) -> Vec<ItemId> {
    let mut seen = BTreeSet::new();
    let with_bases = items
        .iter()
        .flat_map(|&id| operations::ancestors(tree, id).into_iter().chain([id]));
    with_bases.filter(|&id| seen.insert(id)).collect()
}

impl Escapes<'_> {
    /// Settles the names of the items of one scope, beside those that are taken. Items that no other names depend on yield.
    fn settle_among(&mut self, scope: &[ItemId], mut taken: Taken) {
        let kept = scope.iter().filter(|id| !self.left_out.contains_key(id));
        let mut order: Vec<ItemId> = kept.copied().collect();
        for id in &order {
            check_chosen(&mut self.tree.items[id.0 as usize], &mut self.found);
        }
        let rank = |id: &ItemId| match &self.tree.item(*id).kind {
            _ if self.tree.item(*id).chosen().is_some() => 0,
            ItemKind::Module => 1,
            ItemKind::Interface(_) | ItemKind::Undefined { .. } | ItemKind::Valuetype(_) => 2,
            _ => 3,
        };
        order.sort_by_key(rank);
        for id in order {
            let is_chosen = self.tree.item(id).chosen().is_some();
            let wanted = if is_chosen {
                self.item_claims(id)
            } else {
                taken.escaped(|escape| {
                    let item = &mut self.tree.items[id.0 as usize];
                    escape.into_iter().for_each(|name| item.choose(name));
                    self.item_claims(id)
                })
            };
            taken.claim(wanted, self.tree.item(id).location, &mut self.found);
        }
    }

    /// The names of an item in its scope: its own, and those of what is generated beside it.
    fn item_claims(&self, id: ItemId) -> Vec<Claim> {
        let tree = &*self.tree;
        let item = tree.item(id);
        let Item { name, kind, .. } = item;
        let rust = names::item_ident(item);
        if let ItemKind::Other { .. } = kind {
            return Vec::new();
        }
        if let ItemKind::Constant { .. } = kind {
            return vec![Claim::own(Values, &rust, item)];
        }
        let mut claims = vec![Claim::own(Types, &rust, item)];
        match kind {
            ItemKind::Interface(interface) if interface.flavour != InterfaceFlavour::Local => {
                claims.extend(self.interface_claims(id));
            }
            ItemKind::Valuetype(_) if values::has_operations(tree, id) => {
                let operations = format!("the operations of `{name}`");
                let ident = values::operations_ident(item);
                claims.push(Claim::new(Types, &ident, operations));
            }
            _ => {}
        }
        let is_tuple_struct = matches!(
            kind,
            ItemKind::Interface(_)
                | ItemKind::Undefined { .. }
                | ItemKind::ValueBox { .. }
                | ItemKind::Bitmask(_)
                | ItemKind::Bitset(_)
        );
        let is_unit_struct = matches!(kind, ItemKind::Struct { members } | ItemKind::Exception { members } if members.is_empty());
        if is_tuple_struct || is_unit_struct {
            claims.push(Claim::own(Values, &rust, item));
        }
        let factories: &[Operation] = match kind {
            ItemKind::Valuetype(value) => &value.factories,
            _ => &[],
        };
        let factories = factories.iter().map(|it| Call::of_operation(id, it));
        for call in operations::own(tree, id).into_iter().chain(factories) {
            if !call.raises.is_empty() {
                let error = format!("the error type of `{}`", call.wire_name);
                claims.push(Claim::new(Types, &call.error_ident(tree), error));
            }
        }
        let is_module = matches!(kind, ItemKind::Module);
        if !is_module
            && item
                .items
                .iter()
                .any(|inner| !self.left_out.contains_key(inner))
        {
            let module = format!("the module of the declarations inside `{name}`");
            claims.push(Claim::new(Types, &names::module_ident(item), module));
        }
        claims
    }

    /// The names of what is generated beside an interface: its servant trait, and those that were asked for.
    fn interface_claims(&self, id: ItemId) -> Vec<Claim> {
        let (tree, additions) = (&*self.tree, self.additions);
        let item = tree.item(id);
        let rows = [
            (true, names::servant_ident(item), "the servant trait"),
            (
                additions.starts_calls(),
                calls_ident(item),
                "the started calls",
            ),
            (
                additions.defers_replies(),
                deferred_servants::trait_ident(item),
                "the trait of servants that defer replies",
            ),
            (
                additions.has_async_servants,
                async_servants::trait_ident(item),
                "the trait of servants that are tasks",
            ),
            (
                additions.has_ami,
                ami::handler_ident(tree, id),
                "the reply handlers",
            ),
            (
                additions.has_ami,
                ami::poller_ident(tree, id),
                "the pollers",
            ),
        ];
        let chosen = rows.into_iter().filter(|row| row.0);
        let claim = |(_, ident, what): (bool, Ident, &str)| {
            Claim::new(Types, &ident, format!("{what} of `{}`", item.name))
        };
        chosen.map(claim).collect()
    }

    /// Settles the names of the members, enumerators, methods and parameters of one item.
    fn settle_inside(&mut self, id: ItemId) {
        self.settle_methods(id);
        let (tree, found) = (&mut *self.tree, &mut self.found);
        let mut taken = Taken::default();
        match &tree.item(id).kind {
            ItemKind::Valuetype(value) => {
                for &base in &value.bases {
                    let inherited = structs::members(tree, base).into_iter();
                    let inherited = inherited.map(|member| (field_claim(member), member.location));
                    for (claim, location) in inherited.collect::<Vec<_>>() {
                        taken.claim(vec![claim], location, found);
                    }
                }
            }
            ItemKind::Union(union) if unions::has_no_member_variant(union) => {
                let location = Some(tree.item(id).location);
                let variant = "the variant without a member";
                taken.reserve(Values, unions::NO_MEMBER, variant, location);
            }
            _ => {}
        }
        match &mut tree.items[id.0 as usize].kind {
            ItemKind::Struct { members } | ItemKind::Exception { members } => {
                taken.settle(members, |member| vec![field_claim(member)], found);
            }
            ItemKind::Valuetype(value) => {
                let members = value.state.iter_mut().map(|state| &mut state.member);
                taken.settle(members, |member| vec![field_claim(member)], found);
            }
            ItemKind::Union(union) => {
                let members = union.cases.iter_mut().map(|case| &mut case.member);
                taken.settle(members, |member| vec![variant_claim(member)], found);
            }
            ItemKind::Enum { enumerators } => {
                taken.settle(enumerators, |one| vec![variant_claim(one)], found);
            }
            ItemKind::Bitmask(mask) => {
                taken.reserve(Values, bits::CONTAINS, "a method of every bitmask", None);
                let claim =
                    |flag: &Flag| vec![Claim::own(Values, &names::constant_ident(flag), flag)];
                taken.settle(&mut mask.flags, claim, found);
            }
            ItemKind::Bitset(set) => {
                for method in RUST_METHODS {
                    taken.reserve(Values, method, "a method of every Rust type", None);
                }
                let methods = |field: &BitField| accessors(field, true);
                taken.settle(&mut set.fields, methods, found);
            }
            _ => {}
        }
    }

    /// Settles the methods of an interface or valuetype, and their parameters. Names that it inherits never yield; operations yield
    /// to attributes, which have two methods.
    fn settle_methods(&mut self, id: ItemId) {
        let (tree, found) = (&mut *self.tree, &mut self.found);
        let mut taken = Taken::default();
        let is_reference = matches!(tree.item(id).kind, ItemKind::Interface(_));
        let of_references = is_reference.then_some(TO_STRING).into_iter();
        let starting = START_METHODS
            .into_iter()
            .filter(|_| is_reference && self.additions.starts_calls());
        for method in RUST_METHODS
            .into_iter()
            .chain(of_references)
            .chain(starting)
        {
            taken.reserve(Values, method, "a method of every reference", None);
        }
        for base in operations::ancestors(tree, id) {
            for call in operations::own(tree, base) {
                let claim = Claim::new(Values, &call.method, format!("`{}`", call.wire_name));
                taken.claim(vec![claim], call.location, found);
            }
        }
        let (attributes, operations, factories) = match &mut tree.items[id.0 as usize].kind {
            ItemKind::Interface(interface) => {
                let Interface {
                    attributes,
                    operations,
                    ..
                } = interface;
                (attributes, operations, &mut [][..])
            }
            ItemKind::Valuetype(value) => {
                let Valuetype {
                    attributes,
                    operations,
                    factories,
                    ..
                } = value;
                (attributes, operations, factories.as_mut_slice())
            }
            _ => return,
        };
        let methods = |attribute: &Attribute| accessors(attribute, !attribute.readonly);
        taken.settle(attributes, methods, found);
        for operations in [operations.as_mut_slice(), factories] {
            taken.settle(
                operations.iter_mut(),
                |operation| {
                    vec![Claim::own(
                        Values,
                        &names::value_ident(operation),
                        operation,
                    )]
                },
                found,
            );
            for operation in operations {
                let parameters = operation.parameters.iter_mut();
                let received = parameters.filter(|parameter| parameter.direction != Direction::Out);
                Taken::default().settle(
                    received,
                    |parameter| {
                        vec![Claim::own(
                            Values,
                            &names::value_ident(parameter),
                            parameter,
                        )]
                    },
                    found,
                );
            }
        }
    }
}

fn field_claim(member: &Member) -> Claim {
    Claim::own(Values, &structs::field(member), member)
}

fn variant_claim(declared: &dyn Declared) -> Claim {
    Claim::own(Values, &names::type_ident(declared), declared)
}

/// The methods that read and, if `is_set`, set an attribute or a bit field.
fn accessors(declared: &dyn Declared, is_set: bool) -> Vec<Claim> {
    let get = Claim::own(Values, &names::value_ident(declared), declared);
    let set = is_set.then(|| {
        let description = format!("`_set_{}`", declared.name());
        Claim::new(Values, &names::set_ident(declared), description)
    });
    std::iter::once(get).chain(set).collect()
}
