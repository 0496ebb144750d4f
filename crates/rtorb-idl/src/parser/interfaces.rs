//! Interfaces, valuetypes, and their contents.

use crate::ast::{
    AttributeDcl, DefinitionKind, InterfaceDcl, OperationDcl, ParameterDcl, Preamble, ScopedName,
    TypeKind, TypeSpec, ValuetypeDcl,
};
use crate::diagnostic::Diagnostic;
use crate::source::Location;
use crate::tree::{Direction, InterfaceFlavour, Type};

use super::definitions::ParsedDefinition;
use super::{Parsed, Parser};

impl Parser<'_> {
    pub(super) fn interface(&mut self) -> Parsed<DefinitionKind> {
        let modifiers = [
            ("abstract", InterfaceFlavour::Abstract),
            ("local", InterfaceFlavour::Local),
        ];
        let flavour = self.take_one(&modifiers).unwrap_or_default();
        self.expect_word("interface", "here")?;
        let name = self.declared("a name for the interface")?;
        let forward = self.peek().is(";");
        let bases = self.names_after(":", "the name of a base interface")?;
        let body = (!forward).then(|| self.body("the interface", Self::export));
        Ok(DefinitionKind::Interface(InterfaceDcl {
            flavour,
            name,
            bases,
            body: body.transpose()?,
        }))
    }

    pub(super) fn valuetype(&mut self) -> Parsed<DefinitionKind> {
        let is_abstract = self.take_word("abstract").is_some();
        let is_custom = self.take_word("custom").is_some();
        let is_event = self.take_word("eventtype").is_some();
        if !is_event {
            self.expect_word("valuetype", "here")?;
        }
        let name = self.declared("a name for the valuetype")?;
        let token = self.peek();
        if !(token.is(";") || token.is(":") || token.is("{") || token.is_word("supports")) {
            if is_abstract || is_custom {
                return Err(self.expected("`{`, `:` or `;`"));
            }
            let ty = self.type_spec("`{`, or the type to box")?;
            return Ok(DefinitionKind::ValueBox { name, ty });
        }
        let forward = token.is(";");
        let (truncatable, bases) = if self.take(":") {
            let truncatable = self.take_word("truncatable");
            (
                truncatable,
                self.scoped_names("the name of a base valuetype")?,
            )
        } else {
            (None, Vec::new())
        };
        let supports = self.names_after("supports", "the name of an interface")?;
        let body = (!forward).then(|| self.body("the valuetype", Self::value_element));
        Ok(DefinitionKind::Valuetype(ValuetypeDcl {
            is_abstract,
            is_custom,
            is_event,
            truncatable,
            name,
            bases,
            supports,
            body: body.transpose()?,
        }))
    }

    /// A declaration in an interface.
    pub(super) fn export(&mut self) -> Parsed<ParsedDefinition> {
        if let Some(word) = self.peek().word().cloned() {
            // `struct S f();` is not legal, and `enum E { ... } f();` neither: these words always declare.
            if let Some(shared) = self.shared_definition(&word)? {
                return Ok(shared);
            }
            match &*word {
                "attribute" | "readonly" => return Ok((self.attribute()?, "the attribute")),
                "module" | "interface" | "valuetype" | "abstract" | "local" | "custom" => {
                    let message = format!("`{word}` cannot be declared here");
                    let label = "interfaces and valuetypes contain only types, constants, exceptions, attributes and operations";
                    return Err(self.error(self.here(), message, label));
                }
                _ => {}
            }
        }
        let operation = self.operation()?;
        Ok((DefinitionKind::Operation(operation), "the operation"))
    }

    fn value_element(&mut self) -> Parsed<ParsedDefinition> {
        let public = self.peek().is_word("public");
        if public || self.peek().is_word("private") {
            self.bump();
            let members = self.typed_declarators("the type of the member")?;
            Ok((DefinitionKind::State { public, members }, "the member"))
        } else if self.peek().is_word("factory") {
            Ok((self.factory()?, "the factory"))
        } else {
            self.export()
        }
    }

    /// `factory name(in ...) raises (...)`, and `finder` in homes.
    pub(super) fn factory(&mut self) -> Parsed<DefinitionKind> {
        let returns = TypeSpec {
            location: self.bump().location,
            kind: TypeKind::Basic(Type::Void),
        };
        Ok(DefinitionKind::Factory(OperationDcl {
            oneway: None,
            returns,
            name: self.declared("a name for the factory")?,
            parameters: self.parameters()?,
            raises: self.raises("raises")?,
            context: Vec::new(),
        }))
    }

    fn operation(&mut self) -> Parsed<OperationDcl> {
        let oneway = self.take_word("oneway");
        let returns = self.return_type()?;
        if self.peek().is("(") {
            let diagnostic = Diagnostic::error("an operation needs a result type and a name")
                .at(
                    returns.location,
                    "read as the type; expected a name after it",
                )
                .help("an operation that returns nothing has the type `void`");
            return Err(self.fail(diagnostic));
        }
        let name = self.declared("a name for the operation")?;
        if !self.peek().is("(") {
            return Err(self.not_an_operation());
        }
        Ok(OperationDcl {
            oneway,
            returns,
            name,
            parameters: self.parameters()?,
            raises: self.raises("raises")?,
            context: self.context()?,
        })
    }

    fn not_an_operation(&mut self) -> super::ReportedError {
        let token = self.peek().clone();
        let mut diagnostic = Diagnostic::error(format!(
            "expected `(` and the parameters of the operation, found {}",
            token.description()
        ))
        .at(token.location, "expected `(`");
        if token.is(";") || token.is(",") {
            diagnostic =
                diagnostic.help("interfaces have no members: declare a value as an `attribute`");
        }
        self.fail(diagnostic)
    }

    fn parameters(&mut self) -> Parsed<Vec<ParameterDcl>> {
        self.expect("(", "before the parameters")?;
        if self.take(")") {
            return Ok(Vec::new());
        }
        let parameters = self.list(Self::parameter)?;
        if !self.take(")") {
            return Err(self.expected("`,` or `)` after the parameter"));
        }
        Ok(parameters)
    }

    fn parameter(&mut self) -> Parsed<ParameterDcl> {
        let preamble = self.preamble()?;
        let direction_location = self.here();
        let directions = [
            ("in", Direction::In),
            ("out", Direction::Out),
            ("inout", Direction::InOut),
        ];
        let Some(direction) = self.take_one(&directions) else {
            let token = self.peek().clone();
            let mut diagnostic = Diagnostic::error(format!(
                "expected `in`, `out` or `inout`, found {}",
                token.description()
            ))
            .at(token.location, "every parameter begins with its direction");
            if token.is_word("void") {
                diagnostic = diagnostic.help("an operation without parameters is written `name()`");
            }
            return Err(self.fail(diagnostic));
        };
        let annotations = self.annotations()?;
        let preamble = Preamble {
            annotations: [preamble.annotations, annotations].concat(),
            ..preamble
        };
        let ty = self.type_spec("the type of the parameter")?;
        let name = self.declared("a name for the parameter")?;
        Ok(ParameterDcl {
            preamble,
            direction,
            direction_location,
            ty,
            name,
        })
    }

    /// `raises (A, B)`, and `getraises` and `setraises` of attributes.
    fn raises(&mut self, word: &str) -> Parsed<Vec<ScopedName>> {
        if self.take_word(word).is_none() {
            return Ok(Vec::new());
        }
        self.expect("(", &format!("after `{word}`"))?;
        if self.take(")") {
            let diagnostic = Diagnostic::error(format!("`{word}` needs the name of an exception"))
                .at(self.last(), "expected a name");
            self.diagnostics.push(diagnostic);
            return Ok(Vec::new());
        }
        let names = self.scoped_names("the name of an exception")?;
        self.expect(")", "after the exceptions")?;
        Ok(names)
    }

    fn context(&mut self) -> Parsed<Vec<String>> {
        if self.take_word("context").is_none() {
            return Ok(Vec::new());
        }
        self.expect("(", "after `context`")?;
        let names = self.list(|parser| {
            let (name, location) = parser.string_literal("a string literal")?;
            parser.check_context_name(&name, location);
            Ok(name)
        })?;
        self.expect(")", "after the context names")?;
        Ok(names)
    }

    /// Letters, digits, `.`, `_` and a `*` at the end (CORBA 3.3 part 1, 7.13.6).
    fn check_context_name(&mut self, name: &str, location: Location) {
        let body = name.strip_suffix('*').unwrap_or(name);
        let starts = body.starts_with(|first: char| first.is_ascii_alphabetic());
        if !starts
            || !body
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '.' || c == '_')
        {
            self.diagnostics.push(
                Diagnostic::error(format!("`{name}` is not a context name"))
                    .at(location, "expected a letter, then letters, digits, `.` and `_`, and perhaps a `*` at the end"),
            );
        }
    }

    pub(super) fn attribute(&mut self) -> Parsed<DefinitionKind> {
        let readonly = self.take_word("readonly").is_some();
        self.expect_word("attribute", "after `readonly`")?;
        let annotations = self.annotations()?;
        let ty = self.type_spec("the type of the attribute")?;
        let names = self.list(|parser| parser.declared("a name for the attribute"))?;
        let mut get_raises = self.raises("raises")?;
        if get_raises.is_empty() {
            get_raises = self.raises("getraises")?;
        }
        let set_location = self.here();
        let set_raises = self.raises("setraises")?;
        if readonly && !set_raises.is_empty() {
            let diagnostic = Diagnostic::error("a readonly attribute cannot be set")
                .at(set_location, "so it has no `setraises`");
            self.diagnostics.push(diagnostic);
        }
        Ok(DefinitionKind::Attribute(AttributeDcl {
            readonly,
            annotations,
            ty,
            names,
            get_raises,
            set_raises,
        }))
    }
}
