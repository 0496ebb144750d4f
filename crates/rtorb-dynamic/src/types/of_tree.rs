//! TypeCodes and interfaces of checked IDL.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rtorb::type_code::{self, Alias, Kind, Label, Named, Shape, TypeCode, ValueMember, Visibility};
use rtorb_idl::Tree;
use rtorb_idl::tree::{
    self, Bitmask, Bitset, Interface as IdlInterface, InterfaceFlavour, Item, ItemId, ItemKind,
    Member, TYPE_CODE_LEVELS_MAX, TYPE_CODE_TYPES_MAX, Type, Union, Value, Valuetype,
};
use rtorb_wire::any::{VALUE_BASE, map_type_code};
use rtorb_wire::valuetype;

use super::{Bits, IdlError, Types};
use crate::interface::{Attribute, Interface, Operation, Parameter};

/// Adds all types and interfaces of a tree.
pub(super) fn add(types: &mut Types, tree: &Tree) -> Result<(), IdlError> {
    let mut builder = Builder::new(tree);
    for id in tree.ids() {
        let item = tree.item(id);
        if is_type(&item.kind) {
            let type_code = builder.item(id);
            // Finished types in it count as one while it is made.
            builder.is_too_large |= type_code.nodes() > TypeCode::NODES_MAX
                || type_code.depth() as usize > TYPE_CODE_LEVELS_MAX + 1;
            builder.check(id)?;
            types.add_type(&tree.full_name(id), type_code);
            if let Some(bits) = Bits::of(&item.kind) {
                let known = types.bits.entry(item.repository_id.clone());
                known.or_insert_with(|| bits.into());
            }
            let optional = optional_members(&item.kind);
            if !optional.is_empty() {
                let known = types.optional.entry(item.repository_id.clone());
                known.or_insert(optional);
            }
        }
        if let ItemKind::Interface(interface) = &item.kind {
            let interface = builder.interface(id, interface);
            builder.check(id)?;
            types.add_interface(interface);
        }
    }
    Ok(())
}

const fn is_type(kind: &ItemKind) -> bool {
    !matches!(
        kind,
        ItemKind::Module | ItemKind::Constant { .. } | ItemKind::Other { .. } | ItemKind::Native
    )
}

/// The names of the optional members that a type declares.
fn optional_members(kind: &ItemKind) -> BTreeSet<String> {
    let members: Vec<&Member> = match kind {
        ItemKind::Struct { members } | ItemKind::Exception { members } => members.iter().collect(),
        ItemKind::Valuetype(value) => value.state.iter().map(|it| &it.member).collect(),
        _ => Vec::new(),
    };
    let optional = members.into_iter().filter(|it| it.is_optional);
    optional.map(|it| it.name.clone()).collect()
}

/// Makes the TypeCodes of the types of one tree.
struct Builder<'t> {
    tree: &'t Tree,
    /// The finished TypeCodes that refer to no type around them.
    made: BTreeMap<ItemId, Made>,
    /// The types around the current one, outermost first.
    enclosing: Vec<ItemId>,
    /// The number of aliases around it, which are not among these.
    aliases: usize,
    /// The number of sequences, arrays and maps around it.
    unnamed: usize,
    /// The index of the outermost enclosing type to which the current type refers.
    reached: usize,
    /// The types in the TypeCode of the outermost type so far, in order; those that are not made again are not in it.
    inside: Vec<ItemId>,
    /// The number of declared types in it, aliases included, each counted as often as it occurs; one that is in `made` counts as one.
    types: usize,
    is_too_large: bool,
}

struct Made {
    type_code: TypeCode,
    /// The types in it, if it refers to itself; sorted. Inside one of them it would repeat that one.
    inside: Vec<ItemId>,
}

impl<'t> Builder<'t> {
    fn new(tree: &'t Tree) -> Self {
        Self {
            tree,
            made: BTreeMap::new(),
            enclosing: Vec::new(),
            aliases: 0,
            unnamed: 0,
            reached: usize::MAX,
            inside: Vec::new(),
            types: 0,
            is_too_large: false,
        }
    }

    /// Refuses the item `id` if a TypeCode in it is too large.
    fn check(&self, id: ItemId) -> Result<(), IdlError> {
        if !self.is_too_large {
            return Ok(());
        }
        let name = self.tree.full_name(id);
        Err(IdlError(format!(
            "a TypeCode of `{name}` would have more than {} types, {TYPE_CODE_TYPES_MAX} types that contain each other, or {TYPE_CODE_LEVELS_MAX} levels: let fewer types contain others",
            TypeCode::NODES_MAX
        )))
    }

    /// The TypeCode of a declared type. Types that contain each other are in it once for each way that leads to them.
    fn item(&mut self, id: ItemId) -> TypeCode {
        let tree = self.tree;
        let item = tree.item(id);
        let depth = self.enclosing.len();
        let levels = depth + self.aliases + self.unnamed;
        if depth + self.aliases == 0 {
            self.types = 0;
            self.inside.clear();
        }
        self.types += 1;
        let is_beyond = levels >= TYPE_CODE_LEVELS_MAX || self.types > TYPE_CODE_TYPES_MAX;
        // No type refers to an alias around it: code that reads values looks behind aliases.
        if matches!(item.kind, ItemKind::Alias { .. }) && !is_beyond {
            self.aliases += 1;
            let type_code = self.declared(item);
            self.aliases -= 1;
            return type_code;
        }
        if let Some(index) = self.enclosing.iter().position(|around| *around == id) {
            self.reached = self.reached.min(index);
            return TypeCode::recursive(&item.repository_id);
        }
        if let Some(made) = self.made.get(&id) {
            let mut enclosing = self.enclosing.iter();
            if !enclosing.any(|it| made.inside.binary_search(it).is_ok()) {
                return made.type_code.clone();
            }
        }
        if is_beyond {
            self.is_too_large = true;
            return TypeCode::NULL;
        }
        let begin = self.inside.len();
        self.inside.push(id);
        let around = core::mem::replace(&mut self.reached, usize::MAX);
        self.enclosing.push(id);
        let type_code = self.declared(item);
        self.enclosing.pop();
        if self.reached >= depth {
            let mut inside = Vec::new();
            if self.reached == depth {
                inside.extend(BTreeSet::from_iter(self.inside.drain(begin..)));
            }
            self.reached = usize::MAX;
            let type_code = type_code.clone();
            self.made.insert(id, Made { type_code, inside });
        }
        self.reached = self.reached.min(around);
        type_code
    }

    fn declared(&mut self, item: &'t Item) -> TypeCode {
        let (id, name) = (&*item.repository_id, &*item.name);
        match &item.kind {
            ItemKind::Struct { members } => TypeCode::structure(id, name, self.members(members)),
            ItemKind::Exception { members } => TypeCode::exception(id, name, self.members(members)),
            ItemKind::Union(union) => self.union(item, union),
            ItemKind::Enum { enumerators } => {
                let names = enumerators.iter().map(|it| &*it.name);
                TypeCode::enumeration(id, name, names)
            }
            ItemKind::Bitmask(Bitmask { holder: ty, .. })
            | ItemKind::Bitset(Bitset { holder: ty, .. })
            | ItemKind::Alias { ty } => {
                let content = self.used(ty);
                TypeCode::alias(id, name, content)
            }
            ItemKind::ValueBox { ty } => {
                let (named, content) = (Named::new(id, name), self.used(ty));
                TypeCode::from_shape(Shape::ValueBox(Alias { named, content }.into()))
            }
            ItemKind::Valuetype(value) => self.valuetype(item, value),
            ItemKind::Interface(interface) => {
                let kind = match interface.flavour {
                    InterfaceFlavour::Plain => Kind::ObjectReference,
                    InterfaceFlavour::Abstract => Kind::AbstractInterface,
                    InterfaceFlavour::Local => Kind::LocalInterface,
                };
                named(kind, id, name)
            }
            ItemKind::Undefined { what: "valuetype" } => empty_value(id, name),
            ItemKind::Undefined { .. } => TypeCode::object_reference(id, name),
            ItemKind::Module
            | ItemKind::Constant { .. }
            | ItemKind::Native
            | ItemKind::Other { .. } => named(Kind::Native, id, name),
        }
    }

    fn members(&mut self, members: &'t [Member]) -> Vec<(&'t str, TypeCode)> {
        let members = members.iter();
        members
            .map(|it| (&*it.name, self.used(&it.wire_type())))
            .collect()
    }

    /// The TypeCode of a union. A member is in it once for each of its labels, and once more if it is the default.
    fn union(&mut self, item: &Item, union: &'t Union) -> TypeCode {
        let discriminator = self.used(&union.discriminator);
        let mut default = None;
        let mut members: Vec<(Label, &str, TypeCode)> = Vec::new();
        for case in &union.cases {
            let type_code = self.used(&case.member.ty);
            let name = &*case.member.name;
            let labels = case.labels.iter().map(label);
            members.extend(labels.map(|label| (label, name, type_code.clone())));
            if case.is_default {
                default = u32::try_from(members.len()).ok();
                members.push((0, name, type_code));
            }
        }
        TypeCode::union(
            &item.repository_id,
            &item.name,
            discriminator,
            default,
            members,
        )
    }

    fn valuetype(&mut self, item: &Item, value: &'t Valuetype) -> TypeCode {
        let is_concrete = |id: &&ItemId| matches!(&self.tree.item(**id).kind, ItemKind::Valuetype(base) if !base.is_abstract);
        let concrete = value.bases.iter().find(is_concrete).copied();
        let base = concrete.map_or(TypeCode::NULL, |base| self.item(base));
        let members = value.state.iter().map(|state| ValueMember {
            name: state.member.name.as_str().into(),
            type_code: self.used(&state.member.wire_type()),
            visibility: if state.is_public {
                Visibility::Public
            } else {
                Visibility::Private
            },
        });
        let value_type = type_code::ValueAggregate {
            members: members.collect(),
            named: Named::new(&item.repository_id, &item.name),
            modifier: value.modifier(),
            base,
        };
        TypeCode::from_shape(if value.is_event {
            Shape::Event(value_type.into())
        } else {
            Shape::Value(value_type.into())
        })
    }

    /// The TypeCode of a type as it is used.
    fn used(&mut self, ty: &Type) -> TypeCode {
        match ty {
            Type::Void => TypeCode::VOID,
            Type::Short => TypeCode::SHORT,
            Type::UShort => TypeCode::USHORT,
            Type::Long => TypeCode::LONG,
            Type::ULong => TypeCode::ULONG,
            Type::LongLong => TypeCode::LONG_LONG,
            Type::ULongLong => TypeCode::ULONG_LONG,
            // CORBA has no kind for an 8-bit integer. `octet` has the same encoding.
            Type::Int8 | Type::Octet => TypeCode::OCTET,
            Type::Float => TypeCode::FLOAT,
            Type::Double => TypeCode::DOUBLE,
            Type::LongDouble => TypeCode::LONG_DOUBLE,
            Type::Boolean => TypeCode::BOOLEAN,
            Type::Char => TypeCode::CHAR,
            Type::WChar => TypeCode::WCHAR,
            Type::String { bound } => TypeCode::string(bound.unwrap_or(0)),
            Type::WString { bound } => TypeCode::wstring(bound.unwrap_or(0)),
            Type::Fixed { digits, scale } => TypeCode::fixed(*digits, scale.cast_signed()),
            Type::Sequence { element, bound } => {
                TypeCode::sequence(self.inner(element, 1), bound.unwrap_or(0))
            }
            Type::Array {
                element,
                dimensions,
            } => {
                let element = self.inner(element, dimensions.len());
                let lengths = dimensions.iter().rev();
                lengths.fold(element, |element, length| TypeCode::array(element, *length))
            }
            Type::Map { key, value, bound } => {
                let [key, value] = [key, value].map(|ty| self.inner(ty, 2));
                map_type_code(key, value, bound.unwrap_or(0))
            }
            Type::Any => TypeCode::ANY,
            Type::TypeCode => TypeCode::TYPE_CODE,
            Type::Object => TypeCode::object_reference("IDL:omg.org/CORBA/Object:1.0", "Object"),
            Type::ValueBase => value_base(),
            Type::Named(id) => self.item(*id),
            // A native type has no values on the wire, and neither has this.
            Type::FixedConstant => named(Kind::Native, "", "fixed"),
        }
    }

    /// The TypeCode of a type inside that many levels of sequences, arrays and maps.
    fn inner(&mut self, ty: &Type, levels: usize) -> TypeCode {
        self.unnamed += levels;
        let type_code = self.used(ty);
        self.unnamed -= levels;
        type_code
    }

    fn interface(&mut self, id: ItemId, interface: &'t IdlInterface) -> Interface {
        let tree = self.tree;
        let item = tree.item(id);
        let mut made = Interface {
            repository_id: item.repository_id.clone(),
            name: tree.full_name(id),
            ..Interface::default()
        };
        for base in tree.ancestors(interface) {
            let base = tree.item(base);
            made.ancestors.push(base.repository_id.clone());
            if let ItemKind::Interface(interface) = &base.kind {
                self.contents(interface, &mut made);
            }
        }
        self.contents(interface, &mut made);
        made
    }

    fn contents(&mut self, interface: &'t IdlInterface, into: &mut Interface) {
        for attribute in &interface.attributes {
            into.attributes.push(Attribute {
                name: attribute.name.clone(),
                type_code: self.used(&attribute.ty),
                is_readonly: attribute.readonly,
                get_raises: self.raises(&attribute.get_raises),
                set_raises: self.raises(&attribute.set_raises),
            });
        }
        for operation in &interface.operations {
            let operation = self.operation(operation);
            into.operations.push(Arc::new(operation));
        }
    }

    fn operation(&mut self, operation: &'t tree::Operation) -> Operation {
        let parameters = operation.parameters.iter().map(|it| Parameter {
            name: it.name.clone(),
            direction: it.direction,
            type_code: self.used(&it.ty),
        });
        Operation {
            name: operation.name.clone(),
            parameters: parameters.collect(),
            is_oneway: operation.oneway,
            returns: self.used(&operation.returns),
            raises: self.raises(&operation.raises),
            has_context: !operation.context.is_empty(),
        }
    }

    fn raises(&mut self, exceptions: &[ItemId]) -> Vec<TypeCode> {
        exceptions.iter().map(|id| self.item(*id)).collect()
    }
}

/// The TypeCode of `ValueBase`, the base of every valuetype.
pub(super) fn value_base() -> TypeCode {
    empty_value(VALUE_BASE, "ValueBase")
}

fn named(kind: Kind, id: &str, name: &str) -> TypeCode {
    TypeCode::from_shape(Shape::Named(kind, Named::new(id, name).into()))
}

fn empty_value(id: &str, name: &str) -> TypeCode {
    valuetype::type_code(id, name, 0, TypeCode::NULL, [])
}

/// The number of a label on the wire.
fn label(label: &Value) -> Label {
    match label {
        // An unsigned long long keeps its bits.
        Value::Integer(number) => *number as Label,
        Value::Boolean(value) => Label::from(*value),
        Value::Char(character) => Label::from(u32::from(*character)),
        Value::Enumerator(_, position) => Label::from(*position),
        // The checker refuses all other labels.
        Value::Float(_) | Value::Fixed { .. } | Value::Text(_) => 0,
    }
}
