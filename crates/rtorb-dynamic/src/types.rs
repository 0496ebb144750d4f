//! The types and interfaces that a program knows at run time: from IDL, or stated by the caller.

mod bits;
mod expression;
mod of_tree;
mod standard;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use rtorb::type_code::{Shape, TypeCode};
use rtorb_idl::{Options, Outcome, Tree};

use crate::interface::Interface;
pub(crate) use bits::{Bits, Field, FieldForm};
pub use expression::TypeError;

/// Named types, and interfaces with their operations. Of two with the same repository id, the one added first stays.
#[derive(Clone, Debug, Default)]
pub struct Types {
    /// The types by repository id.
    types: BTreeMap<String, Named<TypeCode>>,
    interfaces: BTreeMap<String, Named<Arc<Interface>>>,
    /// Repository ids by scoped name, of types and interfaces.
    ids: BTreeMap<String, String>,
    /// The names of the bits of bitmasks and bitsets, by repository id.
    bits: BTreeMap<String, Arc<Bits>>,
    /// The names of optional members, by the repository id of the type that declares them.
    optional: BTreeMap<String, BTreeSet<String>>,
}

#[derive(Clone, Debug)]
struct Named<T> {
    /// The scoped name: `CosNaming::Name`.
    name: String,
    item: T,
}

impl Types {
    /// The types of the IDL that is built in: naming, events, scheduling, and the benchmark Cubit.
    pub fn standard() -> Self {
        let mut types = Self::default();
        types.add_standard();
        types
    }

    /// Adds the IDL that is built in.
    pub fn add_standard(&mut self) {
        for (name, text) in standard::FILES {
            let outcome =
                rtorb_idl::check_text(name, &standard::without_includes(text), &Options::default());
            if let Some(tree) = &outcome.tree {
                let added = self.add_tree(tree);
                debug_assert!(added.is_ok(), "{added:?}");
            }
        }
    }

    /// Adds IDL files, checked as one specification.
    ///
    /// # Errors
    /// The diagnostics as text, if a file is wrong; or as those of [`add_tree`](Self::add_tree).
    pub fn add_files(
        &mut self,
        files: &[PathBuf],
        include_dirs: &[PathBuf],
    ) -> Result<(), IdlError> {
        let options = Options {
            include_dirs: include_dirs.to_vec(),
            ..Options::default()
        };
        self.add_outcome(&rtorb_idl::check(files, &options))
    }

    /// Adds IDL that is not in a file. Messages call it `name`.
    ///
    /// # Errors
    /// The diagnostics as text, if it is wrong; or as those of [`add_tree`](Self::add_tree).
    pub fn add_text(&mut self, name: &str, text: &str) -> Result<(), IdlError> {
        self.add_outcome(&rtorb_idl::check_text(name, text, &Options::default()))
    }

    fn add_outcome(&mut self, outcome: &Outcome) -> Result<(), IdlError> {
        match &outcome.tree {
            Some(tree) => self.add_tree(tree),
            None => Err(IdlError(outcome.render(false))),
        }
    }

    /// Adds all types and interfaces of `others`.
    pub fn add_all(&mut self, others: Self) {
        for Named { name, item } in others.types.into_values() {
            self.add_type(&name, item);
        }
        for Named { item, .. } in others.interfaces.into_values() {
            self.add_interface(Arc::unwrap_or_clone(item));
        }
        for (id, bits) in others.bits {
            self.bits.entry(id).or_insert(bits);
        }
        for (id, names) in others.optional {
            self.optional.entry(id).or_insert(names);
        }
    }

    /// Adds all types and interfaces of checked IDL.
    ///
    /// # Errors
    /// If the TypeCode of a type would be too large, because many types contain each other. Some of the types are added then.
    pub fn add_tree(&mut self, tree: &Tree) -> Result<(), IdlError> {
        of_tree::add(self, tree)
    }

    /// Adds a type that has a repository id, under a scoped name. Returns false if there is one with that id.
    pub fn add_type(&mut self, name: &str, type_code: TypeCode) -> bool {
        let Some(id) = type_code.repository_id().map(str::to_owned) else {
            return false;
        };
        if self.types.contains_key(&id) {
            return false;
        }
        self.ids
            .entry(name.to_owned())
            .or_insert_with(|| id.clone());
        let name = name.to_owned();
        let item = type_code;
        self.types.insert(id, Named { name, item });
        true
    }

    /// Adds an interface, which also is a type. Returns false if there is one with its id.
    pub fn add_interface(&mut self, interface: Interface) -> bool {
        let (id, name) = (interface.repository_id.clone(), interface.name.clone());
        if self.interfaces.contains_key(&id) {
            return false;
        }
        let simple = name.rsplit("::").next().unwrap_or(&name);
        self.add_type(&name, TypeCode::object_reference(&id, simple));
        let item = Arc::new(interface);
        self.interfaces.insert(id, Named { name, item });
        true
    }

    /// All types that have a repository id, interfaces included, with their scoped names, in the order of their ids.
    pub fn named(&self) -> impl Iterator<Item = (&str, &TypeCode)> {
        let all = self.types.values();
        all.map(|named| (&*named.name, &named.item))
    }

    /// The type with that repository id.
    pub fn by_id(&self, id: &str) -> Option<&TypeCode> {
        self.types.get(id).map(|named| &named.item)
    }

    /// The names of the bits of values of this type, if it is a bitmask or a bitset.
    pub(crate) fn bits(&self, type_code: &TypeCode) -> Option<&Bits> {
        let mut type_code = type_code;
        while let Shape::Alias(alias) = type_code.shape() {
            if let Some(bits) = self.bits.get(&*alias.named.id) {
                return Some(bits);
            }
            type_code = &alias.content;
        }
        None
    }

    /// True if this member of a struct, exception or valuetype is optional. Its type is a sequence of at most one element.
    pub fn is_optional(&self, type_code: &TypeCode, member: &str) -> bool {
        let id = type_code.repository_id();
        let names = id.and_then(|id| self.optional.get(id));
        names.is_some_and(|names| names.contains(member))
    }

    /// The type that a text in the syntax of IDL names: `sequence<CosNaming::NameComponent, 4>`, `string<8>[2]`, or a repository id.
    ///
    /// # Errors
    /// [`TypeError`] says what is wrong in the text.
    pub fn parse(&self, text: &str) -> Result<TypeCode, TypeError> {
        expression::parse(self, text)
    }

    /// The text of a type that [`parse`](Self::parse) reads again, if the type or all named types in it are known here.
    pub fn text(&self, type_code: &TypeCode) -> String {
        match type_code.shape() {
            Shape::Sequence(elements) if elements.count == 0 => {
                format!("sequence<{}>", self.text(&elements.element))
            }
            Shape::Sequence(elements) => {
                format!(
                    "sequence<{}, {}>",
                    self.text(&elements.element),
                    elements.count
                )
            }
            Shape::Array(_) => {
                let mut element = type_code;
                let mut dimensions = String::new();
                while let Shape::Array(elements) = element.shape() {
                    dimensions.push_str(&format!("[{}]", elements.count));
                    element = &elements.element;
                }
                self.text(element) + &dimensions
            }
            _ => match type_code.repository_id().map(|id| (id, self.types.get(id))) {
                // Of two types with one name, that added first is found by it.
                Some((id, Some(named))) if self.ids.get(&named.name).is_some_and(|it| it == id) => {
                    named.name.clone()
                }
                Some((id, Some(_))) => id.to_owned(),
                _ => type_code.to_string(),
            },
        }
    }

    /// The interface with that repository id.
    pub fn interface_by_id(&self, id: &str) -> Option<&Arc<Interface>> {
        self.interfaces.get(id).map(|named| &named.item)
    }

    /// The interface with that name or repository id. Outer scopes may be left out if no other interface has the rest.
    pub fn interface(&self, name: &str) -> Option<&Arc<Interface>> {
        let id = self.id_of(name).unwrap_or(name);
        self.interface_by_id(id).or_else(|| {
            let name = name.strip_prefix("::").unwrap_or(name);
            let all = self.interfaces.values();
            only(all.filter(|it| is_end(&it.name, name))).map(|it| &it.item)
        })
    }

    /// All interfaces, in the order of their repository ids.
    pub fn interfaces(&self) -> impl Iterator<Item = &Arc<Interface>> {
        self.interfaces.values().map(|named| &named.item)
    }

    /// The repository id of a name, scoped from the outside or in part; `None` if it is unknown or ambiguous.
    fn id_of(&self, name: &str) -> Option<&str> {
        let name = name.strip_prefix("::").unwrap_or(name);
        if let Some(id) = self.ids.get(name) {
            return Some(id);
        }
        let found = only(self.ids.iter().filter(|(full, _)| is_end(full, name)));
        found.map(|(_, id)| &**id)
    }

    /// The known name that is most similar to `wrong`.
    fn suggestion(&self, wrong: &str) -> Option<&str> {
        rtorb_idl::suggest::closest(wrong, self.ids.keys().map(String::as_str))
    }
}

/// True if a scoped name ends with this one, and has scopes before it.
fn is_end(full: &str, name: &str) -> bool {
    let rest = full.strip_suffix(name);
    rest.is_some_and(|rest| rest.ends_with("::"))
}

/// The only item; none if there are several.
fn only<T>(mut items: impl Iterator<Item = T>) -> Option<T> {
    let first = items.next();
    first.filter(|_| items.next().is_none())
}

/// The diagnostics of IDL that is wrong, or whose types are too large, as text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct IdlError(String);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::parts;

    /// Valuetypes, each of which contains all others.
    fn clique(count: usize) -> String {
        let declared = (0..count).map(|one| format!("valuetype V{one};\n"));
        let defined = (0..count).map(|one| {
            let others = (0..count).filter(|other| *other != one);
            let members: String = others.map(|it| format!("public V{it} v{it};")).collect();
            format!("valuetype V{one} {{ {members} }};\n")
        });
        declared.chain(defined).collect()
    }

    fn of(text: &str) -> Result<Types, IdlError> {
        let mut types = Types::default();
        types.add_text("test.idl", text).map(|()| types)
    }

    #[test]
    fn a_type_code_has_each_way_through_types_that_contain_each_other_and_no_more() {
        fn count(type_code: &TypeCode) -> usize {
            let parts = parts(type_code).into_iter();
            1 + parts.map(|(_, part)| count(part)).sum::<usize>()
        }
        let types = of(&clique(6)).expect("the IDL is right");
        let counts: Vec<usize> = types.named().map(|(_, it)| count(it)).collect();
        assert_eq!(counts, [counts[0]; 6]);
        assert!(counts[0] < 3_000, "{counts:?}");
        for (name, type_code) in types.named() {
            assert_eq!(type_code.name(), Some(name));
        }
    }

    /// As Tango's pipes are: the sequence has a name, is declared first and is in its element.
    #[test]
    fn no_type_refers_to_an_alias_around_it() {
        fn recursive<'t>(type_code: &'t TypeCode, ids: &mut Vec<&'t str>) {
            if let Shape::Recursive(id) = type_code.shape() {
                ids.push(id);
            }
            for (_, part) in parts(type_code) {
                recursive(part, ids);
            }
        }
        let text = "struct Element; typedef sequence<Element> Elements; \
                    struct Element { string name; Elements inner; }; struct Blob { Elements all; };";
        let types = of(text).expect("the IDL is right");
        for (name, type_code) in types.named() {
            let mut ids = Vec::new();
            recursive(type_code, &mut ids);
            assert_eq!(ids, ["IDL:Element:1.0"], "{name}");
        }
    }

    /// Structs, each of which has the one before as these members.
    fn chain(members: &str, length: usize) -> Result<Types, IdlError> {
        let structs =
            (1..=length).map(|it| format!("struct S{it} {{ S{} {members}; }};\n", it - 1));
        of(&("struct S0 { long x; };\n".to_owned() + &structs.collect::<String>()))
    }

    #[test]
    fn a_type_that_occurs_in_others_too_often_or_too_deep_is_refused() {
        let types = chain("a, b", 18).expect("it is small enough");
        let outermost = types.by_id("IDL:S18:1.0").expect("it is added");
        assert_eq!(outermost.nodes(), (3 << 18) - 1);
        let error = chain("a, b", 40).expect_err("it is too large").to_string();
        assert!(error.contains("TypeCode of `S19`"), "{error}");
        assert!(error.contains("1048576 types"), "{error}");
        let types = chain("a", 127).expect("it is not too deep");
        let outermost = types.by_id("IDL:S127:1.0").expect("it is added");
        assert_eq!(outermost.depth(), 129);
        let error = chain("a", 1000).expect_err("it is too deep").to_string();
        assert!(error.contains("TypeCode of `S128`"), "{error}");
        assert!(error.contains("128 levels"), "{error}");
    }

    #[test]
    fn types_that_contain_each_other_in_too_many_ways_are_refused() {
        assert!(of(&clique(7)).is_ok());
        for count in [8, 12] {
            let error = of(&clique(count)).expect_err("it is too large");
            assert!(error.to_string().contains("TypeCode of `V0`"), "{error}");
        }
        let ring = |length: usize| {
            let types = (0..length).map(|one| {
                let next = (one + 1) % length;
                format!("valuetype V{next}; valuetype V{one} {{ public V{next} next; }};\n")
            });
            of(&("valuetype V0;\n".to_owned() + &types.collect::<String>()))
        };
        assert!(ring(128).is_ok());
        assert!(ring(129).is_err());
    }

    #[test]
    fn an_interface_is_found_by_its_name_beside_a_type_of_that_name() {
        let types = of("module A { interface Motor {}; interface Pump {}; };
            module B { struct Motor { long x; }; interface Pump {}; };
            module C { interface Valve {}; }; struct Valve { long x; };")
        .expect("the IDL is right");
        let id = |name| types.interface(name).map(|it| &*it.repository_id);
        assert_eq!(id("Motor"), Some("IDL:A/Motor:1.0"));
        assert_eq!(id("Valve"), Some("IDL:C/Valve:1.0"));
        assert_eq!(id("Pump"), None);
        assert_eq!(id("::B::Pump"), Some("IDL:B/Pump:1.0"));
        assert_eq!(id("otor"), None);
    }

    #[test]
    fn the_text_of_a_type_is_read_as_that_type() {
        let mut types = of("module CosNaming { struct NameComponent { long own; }; };")
            .expect("the IDL is right");
        types.add_standard();
        for id in [
            "IDL:CosNaming/NameComponent:1.0",
            "IDL:omg.org/CosNaming/NameComponent:1.0",
        ] {
            let named = types.by_id(id).expect("it is added");
            let sequence = TypeCode::sequence(named.clone(), 0);
            let read = types.parse(&types.text(&sequence)).expect("it is a type");
            assert!(read == sequence, "{}", types.text(&sequence));
        }
    }
}
