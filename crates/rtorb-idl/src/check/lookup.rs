//! Name lookup: finds the declaration that a name refers to (CORBA 3.3 part 1, 7.20).

use std::collections::HashSet;

use crate::ast::{Name, ScopedName};
use crate::diagnostic::Diagnostic;
use crate::suggest;
use crate::tree::{Enumerator, ItemId, ItemKind};

use super::scopes::{Entity, ScopeId, ScopeKind, Symbol};
use super::{Checker, GLOBAL};

impl Checker<'_> {
    /// The entity that `name` stands for; `None` after a reported error.
    pub(super) fn lookup(&mut self, name: &ScopedName) -> Option<Entity> {
        let (mut symbol, mut scope) = if name.absolute {
            (self.find_in(GLOBAL, name.first(), name)?, GLOBAL)
        } else {
            self.find_outwards(name)?
        };
        if !name.absolute {
            self.introduce(name.first(), &symbol, scope);
        }
        for (at, part) in name.parts.iter().enumerate() {
            if at > 0 && self.is_template_instance(symbol.entity) {
                // The contents of this instance are not known. Any name in it stands for the instance itself.
                return Some(symbol.entity);
            }
            if at > 0 {
                scope = self.scope_of(&symbol, name, at)?;
                symbol = self.find_member(scope, &symbol, part, name)?;
            }
            if symbol.name != part.text {
                let message = format!("`{}` is declared as `{}`", part.text, symbol.name);
                let diagnostic = Diagnostic::error(message)
                    .at(
                        part.location,
                        "names must be written as they are declared, case included",
                    )
                    .at(symbol.location, "declared here");
                self.diagnostics.push(diagnostic);
            }
        }
        Some(symbol.entity)
    }

    /// Like [`Self::lookup`], without a report and without any effect.
    pub(super) fn find_quietly(&self, name: &ScopedName) -> Option<Entity> {
        let first = &name.first().text;
        let found = if name.absolute {
            self.visible(GLOBAL, first, true)
        } else {
            self.visible_outwards(first)?.0
        };
        let mut symbol = found.into_iter().next()?;
        for part in &name.parts[1..] {
            let Entity::Item(id) = symbol.entity else {
                return None;
            };
            let scope = self.facts[id.0 as usize].scope?;
            symbol = self.visible(scope, &part.text, false).into_iter().next()?;
        }
        Some(symbol.entity)
    }

    /// The symbols that a name has in the closest scope that knows it. A symbol in another case counts only if no scope has the name itself.
    fn visible_outwards(&self, name: &str) -> Option<(Vec<Symbol>, ScopeId)> {
        let find = |is_meant: fn(&Symbol, &str) -> bool| {
            let mut all = self
                .enclosing()
                .map(|scope| (self.known(scope, name, true, is_meant), scope));
            all.find(|(found, _)| !found.is_empty())
        };
        find(is_spelled).or_else(|| find(is_spelled_or_declared))
    }

    /// The symbols of a scope and its bases with this name; several if the name is ambiguous.
    fn visible(&self, scope: ScopeId, name: &str, with_introduced: bool) -> Vec<Symbol> {
        let found = self.known(scope, name, with_introduced, is_spelled);
        if !found.is_empty() {
            return found;
        }
        self.known(scope, name, with_introduced, is_spelled_or_declared)
    }

    /// The symbols of a scope, or else of its bases, with this name in any case, of which `is_meant` is true.
    fn known(
        &self,
        scope: ScopeId,
        name: &str,
        with_introduced: bool,
        is_meant: fn(&Symbol, &str) -> bool,
    ) -> Vec<Symbol> {
        let key = name.to_lowercase();
        let own = self.scopes[scope].names.get(&key);
        let own = own.filter(|own| with_introduced || !own.introduced);
        if let Some(own) = own.filter(|own| is_meant(own, name)) {
            return vec![own.clone()];
        }
        let mut found = self.inherited_by(scope, &key);
        found.retain(|symbol| is_meant(symbol, name));
        found
    }

    /// The symbols for `key` of the bases of a scope.
    fn inherited_by(&self, scope: ScopeId, key: &str) -> Vec<Symbol> {
        let mut found = Vec::new();
        let mut visited = HashSet::new();
        for &base in &self.scopes[scope].bases {
            self.inherited(base, key, &mut visited, &mut found);
        }
        found
    }

    fn find_outwards(&mut self, name: &ScopedName) -> Option<(Symbol, ScopeId)> {
        if let Some((found, scope)) = self.visible_outwards(&name.first().text) {
            self.check_case(name.first(), &found, scope);
            return Some((self.only(found, name.first())?, scope));
        }
        if self.supply_first(name) {
            return self.find_outwards(name);
        }
        self.report_unknown(name.first(), name, None);
        None
    }

    /// Warns about declarations between the current scope and `declared_in` that differ from `used` in case only, and are not what is
    /// found. Those behind the use are reported where they stand.
    fn check_case(&mut self, used: &Name, found: &[Symbol], declared_in: ScopeId) {
        let key = used.text.to_lowercase();
        let mut hidden = Vec::new();
        for scope in self.enclosing() {
            let own = self.scopes[scope].names.get(&key);
            let own = own.filter(|own| !own.introduced).cloned();
            hidden.extend(own.into_iter().chain(self.inherited_by(scope, &key)));
            if scope == declared_in {
                break;
            }
        }
        let is_found = |symbol: &Symbol| found.iter().any(|it| it.location == symbol.location);
        hidden.retain(|symbol| !is_spelled(symbol, &used.text) && !is_found(symbol));
        for Symbol { name, location, .. } in hidden {
            let declared = Name {
                text: name,
                location,
            };
            self.warn_of_case(&declared, used);
        }
    }

    /// Warns, once for each declaration, that a name differs in case only from one that is used in its scope (7.20.3). This is no
    /// error, because it is frequent in real files (`Color color`).
    pub(super) fn warn_of_case(&mut self, declared: &Name, used: &Name) {
        if self.case_reported.insert(declared.location) {
            let warning = Diagnostic::warning(format!(
                "`{}` differs in case only from `{}`, which is used here",
                declared.text, used.text
            ))
            .at(
                declared.location,
                "accepted, though the standard forbids it",
            )
            .at(used.location, "used here");
            self.diagnostics.push(warning);
        }
    }

    /// Takes `CORBA::X`, and in module CORBA plain `X`, from the built-in module.
    fn supply_first(&mut self, name: &ScopedName) -> bool {
        match &name.parts[..] {
            [first, second, ..] if first.text == "CORBA" => self.supply(second),
            [first, ..] => self.in_module_corba() && self.supply(first),
            [] => false,
        }
    }

    fn find_in(&mut self, scope: ScopeId, part: &Name, name: &ScopedName) -> Option<Symbol> {
        let mut found = self.visible(scope, &part.text, false);
        let owner = self.scopes[scope].item;
        let corba = owner.is_some_and(|item| self.tree.item(item).is_module_corba());
        let missing = match &name.parts[..] {
            [first, second, ..] if scope == GLOBAL && first.text == "CORBA" => Some(second),
            _ => Some(part).filter(|_| corba),
        };
        if let Some(missing) = missing.filter(|_| found.is_empty())
            && self.supply(missing)
        {
            found = self.visible(scope, &part.text, false);
        }
        if found.is_empty() {
            self.report_unknown(part, name, Some(scope));
            return None;
        }
        self.only(found, part)
    }

    /// A member of the entity `outer`. Enumerators are also found in their enum.
    fn find_member(
        &mut self,
        scope: ScopeId,
        outer: &Symbol,
        part: &Name,
        name: &ScopedName,
    ) -> Option<Symbol> {
        if let Entity::Item(id) = outer.entity
            && let Some((at, enumerator)) = self.enumerator(id, &part.text)
        {
            let location = enumerator.location;
            self.warn_of_form(
                part.location,
                "the name of an enum before its enumerator",
                "write the enumerator alone",
            );
            return Some(Symbol {
                name: part.text.clone(),
                location,
                entity: Entity::Enumerator(id, at),
                introduced: false,
            });
        }
        self.find_in(scope, part, name)
    }

    /// The enumerator `name` of `id`, and its position, if `id` is an enum that has it.
    pub(super) fn enumerator(&self, id: ItemId, name: &str) -> Option<(u32, &Enumerator)> {
        let ItemKind::Enum { enumerators } = &self.tree.item(id).kind else {
            return None;
        };
        let mut enumerators = (0..).zip(enumerators);
        enumerators.find(|(_, enumerator)| enumerator.name == name)
    }

    fn only(&mut self, mut found: Vec<Symbol>, part: &Name) -> Option<Symbol> {
        if found.len() > 1 {
            let mut diagnostic = Diagnostic::error(format!("`{}` is ambiguous", part.text))
                .at(part.location, "inherited from several interfaces");
            for symbol in found.iter().take(3) {
                diagnostic = diagnostic.at(symbol.location, "one of them");
            }
            diagnostic = diagnostic.help(format!("name its interface: `Interface::{}`", part.text));
            self.diagnostics.push(diagnostic);
            return None;
        }
        found.pop()
    }

    pub(super) fn is_template_instance(&self, entity: Entity) -> bool {
        matches!(entity, Entity::Item(id) if self.tree.item(id).is_other("template module instance"))
    }

    /// The scope that the part before number `at` of `name` forms.
    fn scope_of(&mut self, symbol: &Symbol, name: &ScopedName, at: usize) -> Option<ScopeId> {
        let before = &name.parts[at - 1];
        if let Entity::Item(id) = symbol.entity {
            if let Some(scope) = self.facts[id.0 as usize].scope {
                return Some(scope);
            }
            if matches!(self.tree.item(id).kind, ItemKind::Enum { .. }) {
                return Some(self.current);
            }
        }
        let what = self.describe(symbol.entity);
        let diagnostic = Diagnostic::error(format!("`{}` contains no names", before.text))
            .at(before.location, format!("{what} is not a scope"))
            .at(symbol.location, "declared here");
        self.diagnostics.push(diagnostic);
        None
    }

    /// Enters a used name in the scope of the use and in the scopes around it, up to the outermost that is no module (7.20.3). A module
    /// only notes it, because it may declare the name with another meaning.
    fn introduce(&mut self, part: &Name, symbol: &Symbol, declared_in: ScopeId) {
        let introduced = Symbol {
            introduced: true,
            location: part.location,
            ..symbol.clone()
        };
        let key = part.text.to_lowercase();
        let mut scope = self.current;
        if self.scopes[scope].kind == ScopeKind::Module && scope != declared_in {
            self.scopes[scope].used.entry(key).or_insert(introduced);
            return;
        }
        while self.scopes[scope].kind == ScopeKind::Closed {
            let names = &mut self.scopes[scope].names;
            names
                .entry(key.clone())
                .or_insert_with(|| introduced.clone());
            match self.scopes[scope].parent {
                Some(parent) if scope != declared_in => scope = parent,
                _ => return,
            }
        }
    }

    fn report_unknown(&mut self, part: &Name, name: &ScopedName, scope: Option<ScopeId>) {
        let text = &part.text;
        // The name may be declared in a missing file or in wrong text. Both have been reported.
        if self.incomplete || self.lost.contains(text.as_str()) {
            return;
        }
        let owner = scope
            .filter(|&scope| scope != GLOBAL)
            .and_then(|scope| self.scopes[scope].item);
        let message = match owner {
            Some(owner) => format!("`{}` does not declare `{text}`", self.tree.item(owner).name),
            None => format!("`{text}` is not declared"),
        };
        let mut diagnostic = Diagnostic::error(message).at(part.location, "unknown name");
        // The search for similar names is slow. An error that is not shown needs no help.
        if self.diagnostics.shows_more_errors() {
            diagnostic.help.extend(self.suggestion(text, scope, name));
        }
        self.diagnostics.push(diagnostic);
    }

    fn suggestion(&self, text: &str, scope: Option<ScopeId>, name: &ScopedName) -> Option<String> {
        if let Some((_, ours)) = FOREIGN.iter().find(|(foreign, _)| *foreign == text)
            && name.parts.len() == 1
        {
            return Some(format!("the IDL type is `{ours}`"));
        }
        if scope.is_none()
            && let Some(elsewhere) = self.tree.ids().find(|&id| self.tree.item(id).name == text)
        {
            return Some(format!(
                "did you mean `{}`?",
                self.tree.full_name(elsewhere)
            ));
        }
        let scopes: Vec<ScopeId> = match scope {
            Some(scope) => vec![scope],
            None => self.enclosing().collect(),
        };
        let symbols = scopes
            .iter()
            .flat_map(|&here| self.scopes[here].names.values());
        let mut known: Vec<&str> = symbols.map(|symbol| symbol.name.as_str()).collect();
        known.sort_unstable();
        if name.parts.len() == 1 && !name.absolute {
            known.extend(crate::keywords::all().map(|keyword| -> &str { keyword }));
        }
        let meant = suggest::closest(text, known.into_iter())?;
        Some(format!("did you mean `{meant}`?"))
    }
}

fn is_spelled(symbol: &Symbol, name: &str) -> bool {
    symbol.name == name
}

/// False for a member `color` where the name `Color` is looked up: the member has another meaning, and does not hide the type.
fn is_spelled_or_declared(symbol: &Symbol, name: &str) -> bool {
    is_spelled(symbol, name) || matches!(symbol.entity, Entity::Item(_) | Entity::Enumerator(..))
}

/// Types of other languages that users write in IDL.
const FOREIGN: [(&str, &str); 17] = [
    ("int", "long"),
    ("bool", "boolean"),
    ("byte", "octet"),
    ("String", "string"),
    ("uint", "unsigned long"),
    ("size_t", "unsigned long"),
    ("int8_t", "int8"),
    ("uint8_t", "octet"),
    ("int16_t", "short"),
    ("uint16_t", "unsigned short"),
    ("int32_t", "long"),
    ("uint32_t", "unsigned long"),
    ("int64_t", "long long"),
    ("uint64_t", "unsigned long long"),
    ("TypeCode", "CORBA::TypeCode"),
    ("vector", "sequence<...>"),
    ("Any", "any"),
];
