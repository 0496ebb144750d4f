//! Scopes: their names, and which names may be declared in them (CORBA 3.3 part 1, 7.20).

use std::collections::{HashMap, HashSet};

use crate::ast::Name;
use crate::diagnostic::Diagnostic;
use crate::source::Location;
use crate::tree::{ItemId, ItemKind};

use super::Checker;
use super::ids::Prefix;

/// Index of a scope.
pub(super) type ScopeId = usize;

/// A scope in which names are declared.
#[derive(Clone, Debug)]
pub(super) struct NameScope {
    pub(super) kind: ScopeKind,
    /// The item that forms it; `None` for the global scope.
    pub(super) item: Option<ItemId>,
    pub(super) parent: Option<ScopeId>,
    /// The symbols by name in lower case: names are compared without case.
    pub(super) names: HashMap<String, Symbol>,
    /// The names of outer scopes that a module itself uses, where it used them first, by name in lower case.
    pub(super) used: HashMap<String, Symbol>,
    /// The scopes of the direct bases of an interface or valuetype.
    pub(super) bases: Vec<ScopeId>,
    /// The prefix of a `typeprefix`.
    pub(super) type_prefix: Option<Prefix>,
}

/// The kind of a scope, which decides whether a name that was used in it may be declared later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScopeKind {
    /// A name may be declared after the same name of an outer scope was used.
    Module,
    /// A name may not be declared after the same name of an outer scope was used.
    Closed,
}

/// A name in a scope.
#[derive(Clone, Debug)]
pub(super) struct Symbol {
    pub(super) name: String,
    pub(super) location: Location,
    pub(super) entity: Entity,
    /// True if the name is only used here; an outer scope declares it.
    pub(super) introduced: bool,
}

/// The entity that a name refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entity {
    Item(ItemId),
    /// The enum and the position in it.
    Enumerator(ItemId, u32),
    /// The scope that declares it: instances of one template have their tokens in common.
    Operation(ScopeId),
    Attribute(ScopeId),
    /// A member, parameter, port or factory: it cannot be used by name.
    Other(&'static str),
}

impl NameScope {
    pub(super) fn new(kind: ScopeKind, item: Option<ItemId>, parent: Option<ScopeId>) -> Self {
        Self {
            kind,
            item,
            parent,
            names: HashMap::new(),
            used: HashMap::new(),
            bases: Vec::new(),
            type_prefix: None,
        }
    }
}

impl Checker<'_> {
    pub(super) fn new_scope(&mut self, kind: ScopeKind, item: Option<ItemId>) -> ScopeId {
        self.scopes
            .push(NameScope::new(kind, item, Some(self.current)));
        self.scopes.len() - 1
    }

    /// The current scope and those around it, from the inside out.
    pub(super) fn enclosing(&self) -> impl Iterator<Item = ScopeId> {
        std::iter::successors(Some(self.current), |&scope| self.scopes[scope].parent)
    }

    /// The item that the current scope itself declares by this name, in any case.
    pub(super) fn declared_here(&self, name: &Name) -> Option<ItemId> {
        match self.scopes[self.current]
            .names
            .get(&name.text.to_lowercase())
        {
            Some(Symbol {
                entity: Entity::Item(id),
                introduced: false,
                ..
            }) => Some(*id),
            _ => None,
        }
    }

    /// Declares a name in the current scope. Returns false after a reported error.
    pub(super) fn declare(&mut self, name: &Name, entity: Entity) -> bool {
        let reported = self.check_enclosing(name);
        self.check_inherited(name, entity);
        let key = name.text.to_lowercase();
        let symbol = Symbol {
            name: name.text.clone(),
            location: name.location,
            entity,
            introduced: false,
        };
        let scope = &self.scopes[self.current];
        let known = scope.names.get(&key).or_else(|| scope.used.get(&key));
        if let Some(known) = known.cloned() {
            if known.introduced && !reported {
                self.report_introduced(name, &known);
            } else if !known.introduced {
                self.report_redefinition(name, &known);
                return false;
            }
        }
        self.scopes[self.current].names.insert(key, symbol);
        true
    }

    fn report_redefinition(&mut self, name: &Name, known: &Symbol) {
        let text = &name.text;
        let here = "declared again here";
        let diagnostic = if known.name == *text {
            let what = self.describe(known.entity);
            Diagnostic::error(format!("`{text}` is declared twice"))
                .at(name.location, here)
                .at(known.location, format!("first declared here, as {what}"))
        } else {
            Diagnostic::error(format!(
                "`{text}` differs from `{}` in case only",
                known.name
            ))
            .at(name.location, here)
            .at(known.location, "first declared here")
            .note("IDL names that differ in case only are the same name")
        };
        let place = self.sources.position(name.location);
        if place != self.sources.position(known.location) {
            self.diagnostics.push(diagnostic);
        } else if !self.incomplete && self.included_twice.insert(place) {
            let help =
                "the file is included twice: guard it with `#ifndef`, `#define` and `#endif`";
            self.diagnostics.push(diagnostic.help(help));
        }
    }

    /// Reports a declaration of a name that was used with another meaning in the same scope (7.20.3).
    fn report_introduced(&mut self, name: &Name, used: &Symbol) {
        let text = &name.text;
        if used.name != *text {
            let used = Name {
                text: used.name.clone(),
                location: used.location,
            };
            return self.warn_of_case(name, &used);
        }
        let outer = self.full_name(used);
        let help = format!("choose another name, or write the outer name in full: `{outer}`");
        if self.scopes[self.current].kind == ScopeKind::Module {
            let what = "a name that its module has used with the meaning of an outer scope";
            return self.warn_of_form(name.location, what, &help);
        }
        let diagnostic =
            Diagnostic::error(format!("`{text}` is declared after its use in this scope"))
                .at(name.location, "declared with another meaning here")
                .at(
                    used.location,
                    "used with the meaning of an outer scope here",
                )
                .help(help);
        self.diagnostics.push(diagnostic);
    }

    /// `::A::B`
    pub(super) fn full_name(&self, symbol: &Symbol) -> String {
        let scope = match symbol.entity {
            Entity::Item(id) | Entity::Enumerator(id, _) => self.tree.item(id).scope,
            _ => None,
        };
        match scope {
            Some(scope) => format!("::{}::{}", self.tree.full_name(scope), symbol.name),
            None => format!("::{}", symbol.name),
        }
    }

    /// Reports a declaration with the name of the scope that directly contains it (7.20.2). Returns true if it did.
    fn check_enclosing(&mut self, name: &Name) -> bool {
        let Some(owner) = self.scopes[self.current].item else {
            return false;
        };
        let owner = self.tree.item(owner);
        if !owner.name.eq_ignore_ascii_case(&name.text) {
            return false;
        }
        let text = &name.text;
        let diagnostic = if owner.name == *text {
            let message = format!("`{text}` has the name of its enclosing declaration");
            Diagnostic::error(message).at(name.location, "not allowed here")
        } else {
            let message = format!(
                "`{text}` differs in case only from its enclosing declaration `{}`",
                owner.name
            );
            Diagnostic::warning(message)
                .at(name.location, "accepted, though the standard forbids it")
        };
        self.diagnostics
            .push(diagnostic.at(owner.location, "the enclosing declaration"));
        true
    }

    /// Reports an operation, attribute or member that a derived interface or valuetype declares again (7.6.5 and 7.9.1).
    fn check_inherited(&mut self, name: &Name, entity: Entity) {
        let bases = self.scopes[self.current].bases.clone();
        let mut found = Vec::new();
        let mut visited = HashSet::new();
        for base in bases {
            self.inherited(base, &name.text.to_lowercase(), &mut visited, &mut found);
        }
        let callable = |entity| {
            matches!(
                entity,
                Entity::Operation(_) | Entity::Attribute(_) | Entity::Other("a member" | "a port")
            )
        };
        if let Some(symbol) = found.into_iter().find(|symbol| callable(symbol.entity))
            && (callable(entity) || symbol.name == name.text)
        {
            let what = self.describe(symbol.entity);
            let diagnostic = Diagnostic::error(format!(
                "`{}` is inherited and cannot be declared again",
                name.text
            ))
            .at(name.location, "declared again here")
            .at(symbol.location, format!("inherited from here, as {what}"));
            self.diagnostics.push(diagnostic);
        }
    }

    /// Adds the symbols for `key` that `scope` declares, or else those of its bases.
    pub(super) fn inherited(
        &self,
        scope: ScopeId,
        key: &str,
        visited: &mut HashSet<ScopeId>,
        found: &mut Vec<Symbol>,
    ) {
        if !visited.insert(scope) {
            return;
        }
        let Some(symbol) = self.scopes[scope]
            .names
            .get(key)
            .filter(|own| !own.introduced)
        else {
            for &base in &self.scopes[scope].bases {
                self.inherited(base, key, visited, found);
            }
            return;
        };
        let is_same =
            |known: &Symbol| (known.entity, known.location) == (symbol.entity, symbol.location);
        if !found.iter().any(is_same) {
            found.push(symbol.clone());
        }
    }

    /// All operations and attributes of `scope` and its bases, each once.
    pub(super) fn callables(&self, scope: ScopeId) -> Vec<Symbol> {
        let mut found: Vec<Symbol> = Vec::new();
        let mut visited = HashSet::new();
        let mut pending = vec![scope];
        while let Some(scope) = pending.pop() {
            if !visited.insert(scope) {
                continue;
            }
            let own = self.scopes[scope].names.values();
            found.extend(
                own.filter(|s| matches!(s.entity, Entity::Operation(_) | Entity::Attribute(_)))
                    .cloned(),
            );
            pending.extend(self.scopes[scope].bases.iter().copied());
        }
        found
    }

    /// `a struct`, `an operation`: for messages.
    pub(super) fn describe(&self, entity: Entity) -> &'static str {
        match entity {
            Entity::Item(id) => describe_kind(&self.tree.item(id).kind),
            Entity::Enumerator(..) => "an enumerator",
            Entity::Operation(_) => "an operation",
            Entity::Attribute(_) => "an attribute",
            Entity::Other(what) => what,
        }
    }
}

fn describe_kind(kind: &ItemKind) -> &'static str {
    match kind {
        ItemKind::Module => "a module",
        ItemKind::Interface(_) => "an interface",
        ItemKind::Struct { .. } => "a struct",
        ItemKind::Exception { .. } => "an exception",
        ItemKind::Union(_) => "a union",
        ItemKind::Enum { .. } => "an enum",
        ItemKind::Bitmask(_) => "a bitmask",
        ItemKind::Bitset(_) => "a bitset",
        ItemKind::Alias { .. } => "a typedef",
        ItemKind::Constant { .. } => "a constant",
        ItemKind::Native => "a native type",
        ItemKind::ValueBox { .. } => "a value box",
        ItemKind::Valuetype(_) => "a valuetype",
        ItemKind::Undefined { what: "interface" } => "a forward-declared interface",
        ItemKind::Undefined { what: "struct" } => "a forward-declared struct",
        ItemKind::Undefined { what: "union" } => "a forward-declared union",
        ItemKind::Undefined { what: "valuetype" } => "a forward-declared valuetype",
        ItemKind::Undefined { .. } => "a forward declaration",
        ItemKind::Other { what } => match *what {
            "component" => "a component",
            "home" => "a home",
            "annotation" => "an annotation",
            "template module" => "a template module",
            "template module instance" => "an instance of a template module",
            _ => "a declaration",
        },
    }
}
