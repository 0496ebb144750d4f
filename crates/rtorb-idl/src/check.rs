//! Checks a syntax tree: resolves names, applies every rule of the language, and builds the checked tree.

mod annotations;
mod bits;
mod components;
mod constants;
mod fixed;
mod ids;
mod interfaces;
mod lookup;
mod operations;
mod requirements;
mod scopes;
mod shared;
mod structs;
mod supply;
mod times;
mod timing;
mod types;
mod unions;
mod valuetypes;

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use crate::ast::{Definition, DefinitionKind, Name, Preamble};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::parser::Specification;
use crate::preprocess::EventKind;
use crate::source::{Location, Position, SourceMap};
use crate::tree::{InterfaceFlavour, Item, ItemId, ItemKind, Tree};
use crate::{Options, OtherCompiler};

use ids::{Identity, Prefix};
use scopes::{Entity, NameScope, ScopeId, ScopeKind};

/// Checks all definitions. The tree is complete only if no error was reported. Takes declarations of module CORBA from `orb`
/// that `specification` uses but does not declare.
pub(crate) fn check(
    specification: &Specification,
    orb: &[Definition],
    options: &Options,
    sources: &SourceMap,
    diagnostics: &mut Diagnostics,
) -> Tree {
    let mut checker = Checker {
        tree: Tree::default(),
        facts: Vec::new(),
        scopes: vec![NameScope::new(ScopeKind::Module, None, None)],
        current: GLOBAL,
        prefix: Prefix::default(),
        saved_prefixes: Vec::new(),
        orb: supply::by_name(orb),
        sources,
        shared_with: options.shared_with,
        is_whole: !diagnostics.has_errors(),
        effective: HashSet::new(),
        diagnostics,
        lost: &specification.lost,
        incomplete: specification.incomplete,
        included_twice: HashSet::new(),
        case_reported: HashSet::new(),
        inherited: 0,
    };
    checker.definitions(&specification.definitions);
    checker.check_annotations(&specification.annotations);
    checker.check_shared(specification);
    checker.finish()
}

const GLOBAL: ScopeId = 0;

struct Checker<'c> {
    tree: Tree,
    /// The facts of each item, by its id.
    facts: Vec<Facts>,
    scopes: Vec<NameScope>,
    current: ScopeId,
    prefix: Prefix,
    /// The prefixes that become valid again at the ends of the files that are being read.
    saved_prefixes: Vec<Prefix>,
    /// The declarations of the built-in module CORBA that are not taken yet.
    orb: HashMap<&'c str, &'c Definition>,
    sources: &'c SourceMap,
    shared_with: Option<OtherCompiler>,
    diagnostics: &'c mut Diagnostics,
    lost: &'c HashSet<Rc<str>>,
    incomplete: bool,
    /// True if parsing found no error, so that the definitions are complete.
    is_whole: bool,
    /// The places of annotations that have an effect where they stand.
    effective: HashSet<Location>,
    /// Lines of files that were included twice, and have been reported.
    included_twice: HashSet<Position>,
    /// Declarations that differ in case only from a used name, and have been reported.
    case_reported: HashSet<Location>,
    /// The number of members that structs have inherited.
    inherited: usize,
}

/// The checker's facts about an item, which the tree does not contain.
#[derive(Clone, Debug)]
struct Facts {
    /// The scope that it forms.
    scope: Option<ScopeId>,
    identity: Identity,
    /// The flavour of an interface, defined or not.
    flavour: InterfaceFlavour,
    /// True between the first `{` of its definition and the last `}`.
    open: bool,
    /// True if it cannot leave the process: a local interface, or a type that contains one.
    local: bool,
    /// The length of the longest chain of bases of an interface or valuetype.
    generation: u32,
    /// The number of types that a typedef stands for, counted as in [`Checker::types_in`]; 0 for other items.
    aliased: usize,
}

impl Checker<'_> {
    /// Reports an error at one place.
    fn error(&mut self, at: Location, message: impl Into<String>, label: impl Into<String>) {
        self.diagnostics
            .push(Diagnostic::error(message).at(at, label));
    }

    fn definitions(&mut self, definitions: &[Definition]) {
        for definition in definitions {
            self.definition(definition);
        }
    }

    fn definition(&mut self, definition: &Definition) {
        let preamble = &definition.preamble;
        match &definition.declared {
            DefinitionKind::Module { name, body } => self.module(preamble, name, body),
            DefinitionKind::Interface(interface) => self.interface(preamble, interface),
            DefinitionKind::Valuetype(valuetype) => self.valuetype(preamble, valuetype),
            DefinitionKind::ValueBox { name, ty } => self.value_box(preamble, name, ty),
            DefinitionKind::Constructed(constructed) => {
                self.constructed(preamble, constructed);
            }
            DefinitionKind::Exception { name, members } => self.exception(preamble, name, members),
            DefinitionKind::Typedef(declarators) => self.typedef(preamble, declarators),
            DefinitionKind::Constant { ty, name, value } => {
                self.constant(preamble, ty, name, value)
            }
            DefinitionKind::Native { name } => {
                self.declare_item(preamble, name, ItemKind::Native);
            }
            DefinitionKind::TypeId { name, id, location } => self.type_id(name, id, *location),
            DefinitionKind::TypePrefix {
                name,
                prefix,
                location,
            } => self.type_prefix(name, prefix, *location),
            DefinitionKind::Import { name, location } => self.import(name.as_ref(), *location),
            DefinitionKind::Component(component) => self.component(preamble, component),
            DefinitionKind::TemplateModule { name } => {
                self.other(preamble, name, "template module")
            }
            DefinitionKind::TemplateInstance { template, name } => {
                self.lookup(template);
                self.other(preamble, name, "template module instance");
            }
            DefinitionKind::AnnotationType { name } => self.annotation_type(preamble, name),
            DefinitionKind::Event(event) => self.event(event),
            // They stand in interfaces, valuetypes and components, which handle them.
            DefinitionKind::Operation(_)
            | DefinitionKind::Factory(_)
            | DefinitionKind::Attribute(_)
            | DefinitionKind::State { .. }
            | DefinitionKind::Port(_) => {}
        }
    }

    fn event(&mut self, event: &EventKind) {
        match event {
            EventKind::Enter => {
                let outer = std::mem::take(&mut self.prefix);
                self.saved_prefixes.push(outer);
            }
            EventKind::Leave => self.prefix = self.saved_prefixes.pop().unwrap_or_default(),
            EventKind::Prefix { prefix, location } => self.pragma_prefix(prefix, *location),
            EventKind::Id { name, id, location } => self.pragma_id(name, id, *location),
            EventKind::Version {
                name,
                version,
                location,
            } => self.pragma_version(name, version, *location),
        }
    }

    fn module(&mut self, preamble: &Preamble, name: &Name, body: &[Definition]) {
        let reopened = self.declared_here(name).filter(|&id| self.is_module(id));
        let id = match reopened {
            Some(id) => {
                self.check_spelling(name, id);
                let in_main_file = self.is_main(name.location);
                let item = self.item_mut(id);
                item.in_main_file |= in_main_file;
                item.documentation.extend(preamble.documentation.clone());
                Some(id)
            }
            None => self.declare_item(preamble, name, ItemKind::Module),
        };
        self.within(id, |checker| checker.definitions(body));
    }

    fn is_module(&self, id: ItemId) -> bool {
        matches!(self.tree.item(id).kind, ItemKind::Module)
    }

    /// Reports a reopened module or a definition of a forward declaration that is spelled differently than before.
    fn check_spelling(&mut self, name: &Name, id: ItemId) {
        let item = self.tree.item(id);
        if item.name != name.text {
            let diagnostic = Diagnostic::error(format!(
                "`{}` differs from `{}` in case only",
                name.text, item.name
            ))
            .at(name.location, "spelled differently here")
            .at(item.location, "first declared here");
            self.diagnostics.push(diagnostic);
        }
    }

    /// Adds a declaration that the tree keeps but that has no CORBA form.
    fn other(&mut self, preamble: &Preamble, name: &Name, what: &'static str) {
        self.declare_item(preamble, name, ItemKind::Other { what });
    }

    /// Adds the declaration of an annotation, unless another file has declared the same.
    fn annotation_type(&mut self, preamble: &Preamble, name: &Name) {
        let known = self.declared_here(name);
        if !known.is_some_and(|id| self.tree.item(id).is_other("annotation")) {
            self.other(preamble, name, "annotation");
        }
    }

    fn import(&mut self, name: Option<&crate::ast::ScopedName>, location: Location) {
        let known = name
            .is_some_and(|name| name.first().text == "CORBA" || self.find_quietly(name).is_some());
        if !known && !self.incomplete {
            let diagnostic = Diagnostic::warning("`import` has no effect")
                .at(
                    location,
                    "there is no interface repository: only included files are read",
                )
                .help("include the file that declares it: `#include \"file.idl\"`");
            self.diagnostics.push(diagnostic);
        }
    }

    /// Adds an item to the current scope. Returns `None` after reporting that its name is taken.
    fn declare_item(&mut self, preamble: &Preamble, name: &Name, kind: ItemKind) -> Option<ItemId> {
        let id = ItemId(u32::try_from(self.tree.items.len()).ok()?);
        if !self.declare(name, Entity::Item(id)) {
            return None;
        }
        let scope = self.scopes[self.current].item;
        let identity = self.identity(&name.text);
        self.tree.items.push(Item {
            name: name.text.clone(),
            scope,
            repository_id: identity.repository_id(),
            documentation: preamble.documentation.clone(),
            annotations: preamble.annotations.clone(),
            location: name.location,
            in_main_file: self.is_main(name.location),
            items: Vec::new(),
            kind,
        });
        self.facts.push(Facts {
            scope: None,
            identity,
            flavour: InterfaceFlavour::Plain,
            open: false,
            local: false,
            generation: 0,
            aliased: 0,
        });
        match scope {
            Some(owner) => self.item_mut(owner).items.push(id),
            None => self.tree.roots.push(id),
        }
        Some(id)
    }

    /// Runs `body` in the scope of the item `id`; in a scope of no item if `id` is `None` because its name is taken.
    fn within<T>(&mut self, id: Option<ItemId>, body: impl FnOnce(&mut Self) -> T) -> T {
        let known = id.and_then(|id| self.facts(id).scope);
        let scope = known.unwrap_or_else(|| {
            let kind = match id {
                Some(id) if self.is_module(id) => ScopeKind::Module,
                _ => ScopeKind::Closed,
            };
            let scope = self.new_scope(kind, id.or(self.scopes[self.current].item));
            if let Some(id) = id {
                self.facts(id).scope = Some(scope);
            }
            scope
        });
        self.enter(scope, body)
    }

    fn enter<T>(&mut self, scope: ScopeId, body: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::replace(&mut self.current, scope);
        let outer_prefix = self.prefix.clone();
        if let Some(prefix) = self.scopes[scope].type_prefix.clone() {
            self.prefix = prefix;
        }
        let files = self.saved_prefixes.len();
        let result = body(self);
        // A file may begin in a scope and end outside it. Then the prefixes of files are not restored here.
        if self.saved_prefixes.len() == files {
            self.prefix = outer_prefix;
        }
        self.current = outer;
        result
    }

    fn is_main(&self, location: Location) -> bool {
        self.sources
            .file(location)
            .is_some_and(|file| file.is_main(location.line))
    }

    fn facts(&mut self, id: ItemId) -> &mut Facts {
        &mut self.facts[id.0 as usize]
    }

    fn item_mut(&mut self, id: ItemId) -> &mut Item {
        &mut self.tree.items[id.0 as usize]
    }

    fn finish(mut self) -> Tree {
        for (item, facts) in self.tree.items.iter_mut().zip(&self.facts) {
            item.repository_id = facts.identity.repository_id();
            if let ItemKind::Undefined { what } = &mut item.kind
                && facts.flavour == InterfaceFlavour::Abstract
            {
                *what = "abstract interface";
            }
            if let ItemKind::Undefined {
                what: what @ ("struct" | "union"),
            } = item.kind
                && !self.incomplete
                && !self.lost.contains(item.name.as_str())
            {
                let message = format!("the {what} `{}` is declared but never defined", item.name);
                self.diagnostics
                    .push(Diagnostic::error(message).at(item.location, "declared here"));
            }
        }
        self.tree
    }
}
