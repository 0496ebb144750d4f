//! Structs, exceptions and enums.

use crate::ast::{self, Constructed, ConstructedKind, Name, Preamble, ScopedName};
use crate::tree::{Enumerator, ItemId, ItemKind, Member, Type};

use super::Checker;
use super::annotations::OPTIONAL;
use super::scopes::Entity;

impl Checker<'_> {
    /// Declares and defines a type. Returns the item, or `None` if its name is taken.
    pub(super) fn constructed(
        &mut self,
        preamble: &Preamble,
        constructed: &Constructed,
    ) -> Option<ItemId> {
        let name = &constructed.name;
        match &constructed.kind {
            ConstructedKind::Struct {
                base,
                members: Some(members),
            } => self.struct_definition(preamble, name, base.as_ref(), members),
            ConstructedKind::Struct { members: None, .. } => self.forward(preamble, name, "struct"),
            ConstructedKind::Union(Some(body)) => self.union_definition(preamble, name, body),
            ConstructedKind::Union(None) => self.forward(preamble, name, "union"),
            ConstructedKind::Enum { enumerators } => {
                self.enum_definition(preamble, name, enumerators)
            }
            ConstructedKind::Bitset { base, fields } => {
                self.bitset(preamble, name, base.as_ref(), fields)
            }
            ConstructedKind::Bitmask { bits } => self.bitmask(preamble, name, bits),
        }
    }

    /// `struct S;` and other forward declarations. They may be repeated, before and after the definition.
    pub(super) fn forward(
        &mut self,
        preamble: &Preamble,
        name: &Name,
        what: &'static str,
    ) -> Option<ItemId> {
        if let Some(id) = self.declared_here(name).filter(|&id| self.is_a(id, what)) {
            self.check_spelling(name, id);
            self.check_forward_id(id, name);
            return Some(id);
        }
        self.declare_item(preamble, name, ItemKind::Undefined { what })
    }

    /// The item for a definition: that of its forward declaration, or a new one.
    pub(super) fn begin_definition(
        &mut self,
        preamble: &Preamble,
        name: &Name,
        what: &'static str,
        kind: ItemKind,
    ) -> Option<ItemId> {
        let forward = self.declared_here(name).filter(
            |&id| matches!(self.tree.item(id).kind, ItemKind::Undefined { what: declared } if declared == what),
        );
        let Some(id) = forward else {
            let id = self.declare_item(preamble, name, kind)?;
            self.facts(id).open = true;
            return Some(id);
        };
        self.check_spelling(name, id);
        self.check_forward_id(id, name);
        let in_main_file = self.is_main(name.location);
        let item = self.item_mut(id);
        item.kind = kind;
        item.location = name.location;
        item.in_main_file = in_main_file;
        item.annotations.extend(preamble.annotations.clone());
        if !preamble.documentation.is_empty() {
            item.documentation.clone_from(&preamble.documentation);
        }
        self.facts(id).open = true;
        Some(id)
    }

    /// True if the item was declared with this keyword, defined or not.
    fn is_a(&self, id: ItemId, what: &str) -> bool {
        match &self.tree.item(id).kind {
            ItemKind::Undefined { what: declared } | ItemKind::Other { what: declared } => {
                *declared == what
            }
            ItemKind::Interface(_) => what == "interface",
            ItemKind::Struct { .. } => what == "struct",
            ItemKind::Union(_) => what == "union",
            ItemKind::Valuetype(_) => what == "valuetype",
            _ => false,
        }
    }

    fn struct_definition(
        &mut self,
        preamble: &Preamble,
        name: &Name,
        base: Option<&ScopedName>,
        members: &[ast::MemberDcl],
    ) -> Option<ItemId> {
        let inherited = base.map(|base| self.base_members(base)).unwrap_or_default();
        let kind = ItemKind::Struct {
            members: Vec::new(),
        };
        let id = self.begin_definition(preamble, name, "struct", kind);
        let own = self.within(id, |checker| {
            for member in inherited.iter().filter(|_| id.is_some()) {
                let name = Name {
                    text: member.name.clone(),
                    location: member.location,
                };
                checker.declare(&name, Entity::Other("an inherited member"));
            }
            checker.members(members)
        });
        let members = inherited.into_iter().chain(own).collect();
        self.end_definition(id, ItemKind::Struct { members })
    }

    pub(super) fn exception(
        &mut self,
        preamble: &Preamble,
        name: &Name,
        members: &[ast::MemberDcl],
    ) {
        let kind = ItemKind::Exception {
            members: Vec::new(),
        };
        let id = self.declare_item(preamble, name, kind);
        let members = self.within(id, |checker| checker.members(members));
        self.end_definition(id, ItemKind::Exception { members });
    }

    /// Completes the definition that [`Self::begin_definition`] began, and returns its item.
    pub(super) fn end_definition(&mut self, id: Option<ItemId>, kind: ItemKind) -> Option<ItemId> {
        let id = id?;
        let local = match &kind {
            ItemKind::Struct { members } | ItemKind::Exception { members } => {
                members.iter().any(|member| self.is_local(&member.ty))
            }
            ItemKind::Union(union) => {
                let mut cases = union.cases.iter();
                cases.any(|case| self.is_local(&case.member.ty))
            }
            _ => self.facts(id).local,
        };
        self.item_mut(id).kind = kind;
        let facts = self.facts(id);
        facts.open = false;
        facts.local = local;
        Some(id)
    }

    /// The members of an IDL 4 base struct.
    fn base_members(&mut self, base: &ScopedName) -> Vec<Member> {
        let Some(entity) = self.lookup(base) else {
            return Vec::new();
        };
        let id = self.behind_aliases(entity);
        match id.map(|id| (id, &self.tree.item(id).kind)) {
            Some((id, ItemKind::Struct { members })) if !self.facts[id.0 as usize].open => {
                self.inherited += members.len();
                if self.inherited <= INHERITED_MAX {
                    return members.clone();
                }
                let message = format!("structs inherit more than {INHERITED_MAX} members");
                self.error(base.location(), message, "its members are too many");
            }
            _ => self.unfit(
                base,
                entity,
                "cannot be the base of a struct",
                "a defined struct",
            ),
        }
        Vec::new()
    }

    /// Members in the current scope.
    fn members(&mut self, members: &[ast::MemberDcl]) -> Vec<Member> {
        let found =
            |member: &ast::MemberDcl| self.declared_members(&member.preamble, &member.declared);
        members.iter().flat_map(found).collect()
    }

    /// Members of one type in the current scope.
    pub(super) fn declared_members(
        &mut self,
        preamble: &Preamble,
        declared: &ast::Declarators,
    ) -> Vec<Member> {
        let ty = self.member_type(preamble, &declared.ty);
        let mut found = Vec::new();
        for declarator in &declared.declarators {
            self.declare(&declarator.name, Entity::Other("a member"));
            let ty = ty
                .as_ref()
                .and_then(|ty| self.declarator_type(ty, declarator));
            let member = ty.map(|ty| tree_member(preamble, declarator, ty));
            found.extend(member.map(|member| Member {
                is_optional: self.is_annotated(&member.annotations, OPTIONAL).is_some(),
                ..member
            }));
        }
        found
    }

    /// The type of a member of a struct or union.
    pub(super) fn member_type(
        &mut self,
        preamble: &Preamble,
        spec: &ast::TypeSpec,
    ) -> Option<Type> {
        let mut annotations = preamble.annotations.iter();
        if annotations.any(|annotation| annotation.name == "external") {
            self.external_type(spec)
        } else {
            self.type_of(spec)
        }
    }

    fn enum_definition(
        &mut self,
        preamble: &Preamble,
        name: &Name,
        written: &[ast::EnumeratorDcl],
    ) -> Option<ItemId> {
        let kind = ItemKind::Enum {
            enumerators: Vec::new(),
        };
        self.check_bit_bound_of_enum(&preamble.annotations);
        let id = self.declare_item(preamble, name, kind);
        let mut enumerators = Vec::with_capacity(written.len());
        for (at, enumerator) in written.iter().enumerate() {
            // Enumerators are names of the scope that contains the enum (7.20.2).
            let entity = match (id, u32::try_from(at)) {
                (Some(id), Ok(at)) => Entity::Enumerator(id, at),
                _ => Entity::Other("an enumerator"),
            };
            self.declare(&enumerator.declared, entity);
            enumerators.push(Enumerator {
                name: enumerator.declared.text.clone(),
                location: enumerator.declared.location,
                documentation: enumerator.preamble.documentation.clone(),
                annotations: enumerator.preamble.annotations.clone(),
            });
        }
        let id = id?;
        self.item_mut(id).kind = ItemKind::Enum { enumerators };
        Some(id)
    }

    /// The item that a name stands for, if it is a type that is used by reference or value.
    pub(super) fn item_of(&self, ty: &Type) -> Option<ItemId> {
        match self.tree.resolved(ty) {
            Type::Named(id) => Some(*id),
            _ => None,
        }
    }
}

/// The most members that all structs of a specification inherit: each has a copy of them.
const INHERITED_MAX: usize = 200_000;

/// The member that a declarator declares.
pub(super) fn tree_member(preamble: &Preamble, declarator: &ast::Declarator, ty: Type) -> Member {
    Member {
        name: declarator.name.text.clone(),
        location: declarator.name.location,
        documentation: preamble.documentation.clone(),
        annotations: [preamble.annotations.clone(), declarator.annotations.clone()].concat(),
        ty,
        is_optional: false,
    }
}

#[cfg(test)]
mod tests {
    use crate::Options;

    #[test]
    fn structs_that_inherit_from_each_other_have_a_bounded_number_of_members() {
        let check = |length: usize| {
            let line = (1..=length).map(|it| {
                let base = it - 1;
                format!("struct S{it} : S{base} {{ long x{it}; }};\n")
            });
            let text = "struct S0 { long x0; };\n".to_owned() + &line.collect::<String>();
            crate::check_text("line.idl", &text, &Options::default())
        };
        assert!(check(600).tree.is_some());
        let refused = check(650);
        assert!(refused.tree.is_none());
        let text = refused.render(false);
        assert!(text.contains("inherit more than 200000 members"), "{text}");
    }
}
