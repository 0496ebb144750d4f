//! Repository ids: prefixes, versions, and explicit ids (CORBA 3.3 part 1, 14.7.5 and 7.15).

use crate::ast::{Name, ScopedName};
use crate::diagnostic::Diagnostic;
use crate::lexer::Token;
use crate::source::Location;
use crate::tree::ItemId;

use super::scopes::{Entity, ScopeId};
use super::{Checker, GLOBAL};

/// The prefix in effect, and the scope in which it was declared. The names in a repository id begin there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Prefix {
    text: String,
    scope: ScopeId,
}

impl Prefix {
    pub(super) fn new(text: &str, scope: ScopeId) -> Self {
        Self {
            text: text.to_owned(),
            scope,
        }
    }
}

/// The parts of the repository id of an item.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    prefix: String,
    path: String,
    version: String,
    /// The id of a `#pragma ID` or `typeid`, and its place.
    explicit: Option<(String, Location)>,
    version_location: Option<Location>,
}

impl Identity {
    pub(super) fn repository_id(&self) -> String {
        match &self.explicit {
            Some((id, _)) => id.clone(),
            None if self.prefix.is_empty() => format!("IDL:{}:{}", self.path, self.version),
            None => format!("IDL:{}/{}:{}", self.prefix, self.path, self.version),
        }
    }
}

impl Checker<'_> {
    /// The identity of an item `name` that is declared in the current scope.
    pub(super) fn identity(&self, name: &str) -> Identity {
        // The names from the scope where the prefix was set to the declared name (14.7.5.4).
        let mut path = name.to_owned();
        let scopes = self.enclosing();
        for scope in scopes.take_while(|&scope| scope != self.prefix.scope) {
            if let Some(item) = self.scopes[scope].item {
                path = format!("{}/{path}", self.tree.item(item).name);
            }
        }
        Identity {
            prefix: self.prefix.text.clone(),
            path,
            version: "1.0".to_owned(),
            explicit: None,
            version_location: None,
        }
    }

    pub(super) fn pragma_prefix(&mut self, prefix: &str, location: Location) {
        self.check_prefix(prefix, location);
        // An empty prefix cancels an outer one; names then count from the global scope.
        let scope = if prefix.is_empty() {
            GLOBAL
        } else {
            self.current
        };
        self.prefix = Prefix::new(prefix, scope);
    }

    fn check_prefix(&mut self, prefix: &str, location: Location) {
        if prefix.starts_with('/') || prefix.ends_with('/') {
            let diagnostic =
                Diagnostic::error(format!("the prefix `{prefix}` begins or ends with `/`"))
                    .at(location, "")
                    .help("leave the `/` out: the compiler adds it between prefix and name");
            self.diagnostics.push(diagnostic);
        }
    }

    pub(super) fn pragma_id(&mut self, name: &[Token], id: &str, location: Location) {
        let Some(item) = self.pragma_target(name, location) else {
            return;
        };
        if !id.contains(':') {
            let diagnostic = Diagnostic::warning(format!("`{id}` is not a repository id")).at(
                location,
                "it does not begin with a format: `IDL:`, `RMI:`, `DCE:` or `LOCAL:`",
            );
            self.diagnostics.push(diagnostic);
        }
        self.set_id(item, id, location);
    }

    fn set_id(&mut self, item: ItemId, id: &str, location: Location) {
        let name = self.tree.item(item).name.clone();
        match self.facts(item).identity.explicit.clone() {
            Some((old, first)) if old != id => {
                let diagnostic = Diagnostic::error(format!("`{name}` already has a repository id"))
                    .at(location, format!("set to `{id}` here"))
                    .at(first, format!("set to `{old}` before"));
                self.diagnostics.push(diagnostic);
            }
            _ => self.facts(item).identity.explicit = Some((id.to_owned(), location)),
        }
    }

    pub(super) fn pragma_version(&mut self, name: &[Token], version: &str, location: Location) {
        let Some(item) = self.pragma_target(name, location) else {
            return;
        };
        let identity = &self.facts(item).identity;
        let conflict = match (&identity.explicit, identity.version_location) {
            (Some((id, first)), _) if !id.ends_with(&format!(":{version}")) => Some(*first),
            (None, Some(first)) if identity.version != version => Some(first),
            _ => None,
        };
        if let Some(first) = conflict {
            let name = self.tree.item(item).name.clone();
            let diagnostic = Diagnostic::error(format!("`{name}` already has a version"))
                .at(location, "another version is given here")
                .at(first, "first given here");
            self.diagnostics.push(diagnostic);
            return;
        }
        let identity = &mut self.facts(item).identity;
        identity.version = version.to_owned();
        identity.version_location = Some(location);
    }

    fn pragma_target(&mut self, tokens: &[Token], location: Location) -> Option<ItemId> {
        let name = |token: &Token| {
            token.word().map(|word| Name {
                text: word.strip_prefix('_').unwrap_or(word).to_owned(),
                location: token.location,
            })
        };
        let parts: Vec<Name> = tokens.iter().filter_map(name).collect();
        let absolute = tokens.first().is_some_and(|token| token.is("::"));
        let name = ScopedName { absolute, parts };
        match self.find_quietly(&name) {
            Some(Entity::Item(id)) => Some(id),
            _ if self.incomplete => None,
            _ => {
                let message = format!("`{name}` is not declared");
                self.error(
                    location,
                    message,
                    "a pragma must follow the declaration it names",
                );
                None
            }
        }
    }

    pub(super) fn type_id(&mut self, name: &ScopedName, id: &str, location: Location) {
        if let Some(entity) = self.lookup(name) {
            match entity {
                Entity::Item(item) => self.set_id(item, id, location),
                _ => self.no_repository_id(name, entity),
            }
        }
    }

    fn no_repository_id(&mut self, name: &ScopedName, entity: Entity) {
        let what = self.describe(entity);
        let message = format!("`{name}` has no repository id");
        self.error(name.location(), message, format!("this is {what}"));
    }

    pub(super) fn type_prefix(&mut self, name: &ScopedName, prefix: &str, location: Location) {
        let Some(entity) = self.lookup(name) else {
            return;
        };
        let scope = match entity {
            Entity::Item(item) => self.facts(item).scope.map(|scope| (item, scope)),
            _ => None,
        };
        let Some((item, scope)) = scope else {
            let what = self.describe(entity);
            let diagnostic = Diagnostic::error(format!("`{name}` is not a scope"))
                .at(name.location(), format!("this is {what}"))
                .help("a `typeprefix` is for modules, interfaces, valuetypes, structs, unions and exceptions");
            self.diagnostics.push(diagnostic);
            return;
        };
        self.check_prefix(prefix, location);
        let prefix = Prefix::new(prefix, GLOBAL);
        for candidate in self.tree.ids() {
            if self.is_within(candidate, item) {
                let path = self.tree.full_name(candidate).replace("::", "/");
                let identity = &mut self.facts(candidate).identity;
                identity.prefix.clone_from(&prefix.text);
                identity.path = path;
            }
        }
        if self.enclosing().any(|here| here == scope) {
            self.prefix = prefix.clone();
        }
        self.scopes[scope].type_prefix = Some(prefix);
    }

    /// True if `item` is `outer` or is declared inside it.
    fn is_within(&self, item: ItemId, outer: ItemId) -> bool {
        let scopes = |&id: &ItemId| self.tree.item(id).scope;
        std::iter::successors(Some(item), scopes).any(|id| id == outer)
    }

    /// Checks that a forward declaration and its definition have the same repository id (14.7.5.2). If one has the prefix of the
    /// OMG, that one applies: vendors' copies of the OMG's files often set the prefix in one of two files only.
    pub(super) fn check_forward_id(&mut self, id: ItemId, name: &Name) {
        let now = self.identity(&name.text);
        let declared_at = self.tree.item(id).location;
        let before = &mut self.facts(id).identity;
        if before.prefix == now.prefix || before.explicit.is_some() {
            return;
        }
        let label = |prefix: &str| match prefix {
            "" => "no prefix applies here".to_owned(),
            prefix => format!("the prefix `{prefix}` applies here"),
        };
        let [now_label, before_label] = [label(&now.prefix), label(&before.prefix)];
        let message = format!("`{}` is declared with two different prefixes", name.text);
        let diagnostic = if now.prefix == OMG || before.prefix == OMG {
            if now.prefix == OMG {
                before.prefix.clone_from(&now.prefix);
                before.path.clone_from(&now.path);
            }
            let id = before.repository_id();
            Diagnostic::warning(message).note(format!("its repository id is `{id}`"))
        } else {
            Diagnostic::error(message)
        };
        self.diagnostics.push(
            diagnostic
                .at(name.location, now_label)
                .at(declared_at, before_label),
        );
    }
}

/// The prefix of all standard modules.
const OMG: &str = "omg.org";
