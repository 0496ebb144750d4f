//! Declarations in modules: the choice among all of them, and the small ones.

use crate::ast::{Declarators, Definition, DefinitionKind, Preamble};
use crate::diagnostic::Diagnostic;
use crate::keywords;
use crate::lexer::Token;
use crate::source::Location;
use crate::suggest;

use super::{Parsed, Parser};

impl Parser<'_> {
    /// The whole input.
    pub(super) fn specification(&mut self) -> Vec<Definition> {
        let mut definitions = Vec::new();
        while !self.at_end() {
            if self.peek().is("}") {
                let location = self.bump().location;
                let diagnostic =
                    Diagnostic::error("unexpected `}`").at(location, "no `{` is open here");
                self.diagnostics.push(diagnostic);
                self.take(";");
                continue;
            }
            let before = self.at;
            if self.element(&mut definitions, Self::definition).is_err() {
                self.recover(before);
            }
        }
        self.drain_events(self.at, &mut definitions);
        definitions
    }

    /// Adds the pragmas and file boundaries up to the token at index `at`.
    fn drain_events(&mut self, at: usize, definitions: &mut Vec<Definition>) {
        while let Some(event) = self
            .events
            .get(self.next_event)
            .filter(|event| event.before <= at)
        {
            definitions.push(Definition {
                preamble: Preamble::default(),
                declared: DefinitionKind::Event(event.kind.clone()),
            });
            self.next_event += 1;
        }
    }

    /// Reads `{ declaration; ... }`. `declaration` reads a declaration without its `;`.
    pub(super) fn body(
        &mut self,
        what: &str,
        declaration: fn(&mut Self) -> Parsed<ParsedDefinition>,
    ) -> Parsed<Vec<Definition>> {
        let mut body = self.block(what, |parser, body| parser.element(body, declaration))?;
        // Events before the closing brace, which has been read, belong to the body.
        self.drain_events(self.at.saturating_sub(1), &mut body);
        Ok(body)
    }

    /// One declaration with its `;`, and the events before it.
    fn element(
        &mut self,
        definitions: &mut Vec<Definition>,
        declaration: fn(&mut Self) -> Parsed<ParsedDefinition>,
    ) -> Parsed<()> {
        self.drain_events(self.at, definitions);
        if self.stray_semicolon() {
            return Ok(());
        }
        let preamble = self.preamble()?;
        let (declared, what) = declaration(self)?;
        definitions.push(Definition { preamble, declared });
        self.semicolon(what)
    }

    /// A declaration in a module.
    fn definition(&mut self) -> Parsed<ParsedDefinition> {
        let token = self.peek().clone();
        let Some(word) = token.word().cloned() else {
            if token.is("@") {
                return Ok((self.annotation_type()?, "the annotation"));
            }
            return Err(self.expected("a declaration"));
        };
        if let Some(shared) = self.shared_definition(&word)? {
            return Ok(shared);
        }
        let after_modifier = self.peek_at(1);
        Ok(match &*word {
            "module" => (self.module()?, "the module"),
            "interface" => (self.interface()?, "the interface"),
            "abstract" | "local" if after_modifier.is_word("interface") => {
                (self.interface()?, "the interface")
            }
            "abstract" | "custom" | "valuetype" | "eventtype" => {
                (self.valuetype()?, "the valuetype")
            }
            "alias" if self.peek_at(2).is("<") || self.peek_at(2).is("::") => {
                self.bump();
                (
                    self.template_module(true)?,
                    "the alias of a template module",
                )
            }
            "component" | "home" | "porttype" | "connector" => (self.component()?, "the component"),
            _ => return Err(self.not_a_definition(&token)),
        })
    }

    /// A declaration that modules, interfaces and valuetypes may all contain.
    pub(super) fn shared_definition(&mut self, word: &str) -> Parsed<Option<ParsedDefinition>> {
        Ok(Some(match word {
            "typedef" => (self.typedef()?, "the typedef"),
            "const" => (self.constant()?, "the constant"),
            "struct" => (self.constructed_definition()?, "the struct"),
            "union" => (self.constructed_definition()?, "the union"),
            "enum" => (self.constructed_definition()?, "the enum"),
            "bitset" | "bitmask" if self.peek_at(2).is("{") || self.peek_at(2).is(":") => {
                (self.constructed_definition()?, "the declaration")
            }
            "exception" => (self.exception()?, "the exception"),
            "native" => {
                self.bump();
                let name = self.declared("a name for the native type")?;
                (DefinitionKind::Native { name }, "the native type")
            }
            "typeid" | "typeprefix" if !self.peek_at(2).is("(") => {
                (self.type_id(word)?, "the declaration")
            }
            "import" if !self.peek_at(2).is("(") => (self.import()?, "the import"),
            _ => return Ok(None),
        }))
    }

    fn constructed_definition(&mut self) -> Parsed<DefinitionKind> {
        self.constructed().map(DefinitionKind::Constructed)
    }

    fn not_a_definition(&mut self, token: &Token) -> super::ReportedError {
        let word = token.spelling();
        let mut diagnostic = Diagnostic::error(format!("expected a declaration, found `{word}`"))
            .at(
                token.location,
                "expected `module`, `interface`, `struct`, `typedef`, `const`, ...",
            );
        if let Some(keyword) = keywords::with_case(&word).filter(|keyword| *keyword != word) {
            diagnostic = diagnostic.help(format!("write the keyword as `{keyword}`"));
        } else if let Some(meant) = suggest::closest(&word, DEFINITION_WORDS.split(' ')) {
            diagnostic = diagnostic.help(format!("did you mean `{meant}`?"));
        } else if word == "class" {
            diagnostic =
                diagnostic.help("IDL has `interface` for objects and `valuetype` for values");
        } else if matches!(&*word, "attribute" | "readonly" | "oneway" | "void") {
            diagnostic = diagnostic.help("declare operations and attributes inside an interface");
        }
        self.fail(diagnostic)
    }

    fn module(&mut self) -> Parsed<DefinitionKind> {
        self.bump();
        let scoped = self.peek().is("::") || self.peek_at(1).is("::");
        if scoped || self.peek_at(1).is("<") {
            return self.template_module(scoped);
        }
        let name = self.declared("a name for the module")?;
        let body = self.module_body(&name.text)?;
        Ok(DefinitionKind::Module { name, body })
    }

    /// The body of the module `name`.
    pub(super) fn module_body(&mut self, name: &str) -> Parsed<Vec<Definition>> {
        self.modules.push(name.into());
        let body = self.body("the module", Self::definition);
        self.modules.pop();
        body
    }

    fn typedef(&mut self) -> Parsed<DefinitionKind> {
        self.bump();
        let annotations = self.annotations()?;
        let ty = self.type_spec("the type that gets a new name")?;
        let mut declarators = self.declarators("a new name for the type")?;
        for declarator in &mut declarators {
            declarator
                .annotations
                .splice(0..0, annotations.iter().cloned());
        }
        Ok(DefinitionKind::Typedef(Declarators { ty, declarators }))
    }

    fn constant(&mut self) -> Parsed<DefinitionKind> {
        self.bump();
        let ty = self.type_spec("the type of the constant")?;
        let name = self.declared("a name for the constant")?;
        self.expect("=", "and the value of the constant")?;
        let value = self.expression()?;
        Ok(DefinitionKind::Constant { ty, name, value })
    }

    fn exception(&mut self) -> Parsed<DefinitionKind> {
        self.bump();
        let name = self.declared("a name for the exception")?;
        let members = self.block("the exception", Self::member)?;
        Ok(DefinitionKind::Exception { name, members })
    }

    fn type_id(&mut self, word: &str) -> Parsed<DefinitionKind> {
        let start = self.bump().location;
        let name = self.scoped_name("the name of a declared type")?;
        let (text, end) = self.string_literal("a string literal")?;
        let location = start.to(end);
        Ok(match word {
            "typeid" => DefinitionKind::TypeId {
                name,
                id: text,
                location,
            },
            _ => DefinitionKind::TypePrefix {
                name,
                prefix: text,
                location,
            },
        })
    }

    fn import(&mut self) -> Parsed<DefinitionKind> {
        let start = self.bump().location;
        let what = "a name or a repository id to import";
        let (name, end) = if self.peek().is("::") || self.peek().word().is_some() {
            let name = self.scoped_name(what)?;
            let end = name.location();
            (Some(name), end)
        } else {
            (None, self.string_literal(what)?.1)
        };
        let location = start.to(end);
        Ok(DefinitionKind::Import { name, location })
    }

    /// `@annotation name { ... }` (IDL 4.2, 7.4.15.1).
    fn annotation_type(&mut self) -> Parsed<DefinitionKind> {
        self.bump();
        self.bump();
        let name = self.declared("a name for the annotation")?;
        self.skip_braces("the annotation")?;
        Ok(DefinitionKind::AnnotationType { name })
    }

    /// Skips `{ ... }` with any contents.
    pub(super) fn skip_braces(&mut self, what: &str) -> Parsed<Location> {
        let open = self.expect("{", &format!("to begin {what}"))?;
        let mut nested = 0usize;
        loop {
            let token = self.bump();
            if token.is("{") {
                nested += 1;
            } else if token.is("}") {
                if nested == 0 {
                    return Ok(token.location);
                }
                nested -= 1;
            } else if self.at_end() {
                let message = format!("{what} has no end");
                return Err(self.error(open, message, "this `{` is never closed"));
            }
        }
    }
}

/// A declaration without its comments, and its name in the message for a missing `;`.
pub(super) type ParsedDefinition = (DefinitionKind, &'static str);

const DEFINITION_WORDS: &str = "module interface struct union enum typedef const exception native valuetype \
                                abstract local custom component eventtype";
