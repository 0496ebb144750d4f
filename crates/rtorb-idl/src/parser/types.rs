//! Types as they are written: `unsigned long`, `sequence<T, 8>`, `struct S { ... }`.

use crate::ast::{
    BitFieldDcl, Case, CaseDcl, CaseLabel, Constructed, ConstructedKind, Declarator, Declarators,
    Documented, EnumeratorDcl, MemberDcl, TypeKind, TypeSpec, UnionBody,
};
use crate::diagnostic::Diagnostic;
use crate::keywords;
use crate::lexer::TokenKind;
use crate::tree::{BASIC_TYPES, TIMING_ANNOTATIONS, Type};

use super::{Parsed, Parser};

impl Parser<'_> {
    /// Any type but `void`.
    pub(super) fn type_spec(&mut self, what: &str) -> Parsed<TypeSpec> {
        self.nested(|parser| {
            let start = parser.here();
            let kind = parser.type_kind(what)?;
            let location = start.to(parser.last());
            Ok(TypeSpec { location, kind })
        })
    }

    fn type_kind(&mut self, what: &str) -> Parsed<TypeKind> {
        let token = self.peek().clone();
        let Some(word) = token.word().cloned() else {
            return if token.is("::") {
                Ok(TypeKind::Named(self.scoped_name(what)?))
            } else {
                Err(self.expected(what))
            };
        };
        if let Some(ty) = self.basic_type() {
            return Ok(TypeKind::Basic(ty));
        }
        match &*word {
            "string" | "wstring" => {
                self.bump();
                let bound = self.after("<", Self::bound_and_close)?.map(Box::new);
                let wide = &*word == "wstring";
                Ok(TypeKind::Text { wide, bound })
            }
            "unsigned" => Err(self.unsigned()),
            "sequence" => self.sequence(),
            "fixed" => self.fixed(),
            "map" if self.peek_at(1).is("<") => self.map(),
            "struct" | "union" | "enum" => {
                let constructed = self.constructed()?;
                Ok(TypeKind::Constructed(Box::new(constructed)))
            }
            "void" => {
                self.bump();
                let label = "`void` is only the result type of an operation that returns nothing";
                Err(self.error(token.location, "a value cannot have the type `void`", label))
            }
            _ if keywords::is_keyword(&word) => Err(self.expected(what)),
            _ => Ok(TypeKind::Named(self.scoped_name(what)?)),
        }
    }

    /// The type of one or more keywords that comes next.
    fn basic_type(&mut self) -> Option<Type> {
        let (name, ty) = BASIC_TYPES.iter().find(|(name, _)| {
            let mut words = name.split(' ').enumerate();
            words.all(|(at, word)| self.peek_at(at).is_word(word))
        })?;
        for _ in name.split(' ') {
            self.bump();
        }
        Some(ty.clone())
    }

    /// Reports an `unsigned` that begins no type.
    fn unsigned(&mut self) -> super::ReportedError {
        self.bump();
        let token = self.peek().clone();
        let other = match token.spelling().as_str() {
            "int" => "unsigned long",
            "char" => "octet",
            _ => return self.expected("`short`, `long` or `long long` after `unsigned`"),
        };
        let message = format!("`unsigned {}` is not an IDL type", token.spelling());
        let diagnostic = Diagnostic::error(message)
            .at(token.location, "")
            .help(format!("in IDL this is `{other}`"));
        self.fail(diagnostic)
    }

    fn bound_and_close(&mut self) -> Parsed<crate::ast::Expression> {
        let bound = self.bound()?;
        self.expect(">", "after the bound")?;
        Ok(bound)
    }

    fn sequence(&mut self) -> Parsed<TypeKind> {
        self.bump();
        self.expect("<", "after `sequence`: the type of its elements")?;
        self.element_annotations()?;
        let element = Box::new(self.type_spec("the type of the elements")?);
        let bound = self.after(",", Self::bound)?.map(Box::new);
        self.expect(">", "to end the sequence type")?;
        Ok(TypeKind::Sequence { element, bound })
    }

    /// Reads the annotations on the type of an element, and warns that they have no effect: the tree has no place for them.
    fn element_annotations(&mut self) -> Parsed<()> {
        for annotation in self.annotations()? {
            let message = format!("the annotation `@{}` has no effect here", annotation.name);
            let diagnostic = Diagnostic::warning(message).at(
                annotation.location,
                "annotations on the type of an element are not kept",
            );
            self.diagnostics.push(diagnostic);
            self.annotations.retain(|kept| {
                let is_timing = TIMING_ANNOTATIONS.contains(&&*kept.name);
                is_timing || kept.location != annotation.location
            });
        }
        Ok(())
    }

    fn map(&mut self) -> Parsed<TypeKind> {
        self.bump();
        self.bump();
        self.element_annotations()?;
        let key = Box::new(self.type_spec("the type of the keys")?);
        self.expect(",", "and the type of the values")?;
        self.element_annotations()?;
        let value = Box::new(self.type_spec("the type of the values")?);
        let bound = self.after(",", Self::bound)?.map(Box::new);
        self.expect(">", "to end the map type")?;
        Ok(TypeKind::Map { key, value, bound })
    }

    fn fixed(&mut self) -> Parsed<TypeKind> {
        self.bump();
        if !self.take("<") {
            return Ok(TypeKind::Fixed(None));
        }
        let digits = self.bound()?;
        self.expect(",", "and the scale: `fixed<digits, scale>`")?;
        let scale = self.bound_and_close()?;
        Ok(TypeKind::Fixed(Some(Box::new((digits, scale)))))
    }

    /// Reads a `struct`, `union` or `enum`; or a `bitset` or `bitmask`, which only the tokens behind the word tell from a name.
    pub(super) fn constructed(&mut self) -> Parsed<Constructed> {
        let keyword = self.bump();
        let word = keyword.word().cloned().unwrap_or_else(|| "struct".into());
        let name = self.declared(&format!("a name for the {word}"))?;
        let kind = match &*word {
            "union" => self.union_body()?,
            "enum" => ConstructedKind::Enum {
                enumerators: self.enumerators("the enum")?,
            },
            "bitmask" => ConstructedKind::Bitmask {
                bits: self.enumerators("the bitmask")?,
            },
            "bitset" => ConstructedKind::Bitset {
                base: self.after(":", |parser| parser.scoped_name("the base bitset"))?,
                fields: self.block("the bitset", Self::bit_field)?,
            },
            _ => {
                let base = self.after(":", |parser| parser.scoped_name("the base struct"))?;
                let members = if base.is_some() || !self.peek().is(";") {
                    Some(self.block("the struct", Self::member)?)
                } else {
                    None
                };
                ConstructedKind::Struct { base, members }
            }
        };
        Ok(Constructed { name, kind })
    }

    pub(super) fn member(&mut self, members: &mut Vec<MemberDcl>) -> Parsed<()> {
        if self.stray_semicolon() {
            return Ok(());
        }
        let preamble = self.preamble()?;
        let declared = self.typed_declarators("a type or `}`")?;
        members.push(MemberDcl { preamble, declared });
        self.semicolon("the member")
    }

    /// The type and the names of members.
    pub(super) fn typed_declarators(&mut self, ty: &str) -> Parsed<Declarators> {
        Ok(Declarators {
            ty: self.type_spec(ty)?,
            declarators: self.declarators("a name for the member")?,
        })
    }

    /// Reports and skips a `;` that ends nothing. Returns true if there was one.
    pub(super) fn stray_semicolon(&mut self) -> bool {
        if !self.peek().is(";") {
            return false;
        }
        let location = self.bump().location;
        self.diagnostics
            .push(Diagnostic::error("unexpected `;`").at(location, "remove it"));
        true
    }

    pub(super) fn declarators(&mut self, what: &str) -> Parsed<Vec<Declarator>> {
        self.list(|parser| parser.declarator(what))
    }

    fn declarator(&mut self, what: &str) -> Parsed<Declarator> {
        let annotations = self.annotations()?;
        if self.peek().is("*") || self.peek().is("&") {
            let label = format!("`{}` cannot stand here", self.peek().spelling());
            return Err(self.error(self.here(), "IDL has no pointers or references", label));
        }
        let name = self.declared(what)?;
        let mut dimensions = Vec::new();
        while self.take("[") {
            if self.peek().is("]") {
                let diagnostic = Diagnostic::error("an array needs a size")
                    .at(self.here(), "expected a number")
                    .help("use a `sequence` for a varying number of elements");
                return Err(self.fail(diagnostic));
            }
            dimensions.push(self.expression()?);
            self.expect("]", "after the size of the array")?;
        }
        Ok(Declarator {
            name,
            annotations,
            dimensions,
        })
    }

    fn enumerators(&mut self, what: &str) -> Parsed<Vec<EnumeratorDcl>> {
        let start = self.at;
        let open = self.expect("{", &format!("to begin {what}"))?;
        let mut found: Vec<EnumeratorDcl> = Vec::new();
        loop {
            self.take_trailing_comments(&mut found);
            if self.peek().is("}") {
                let close = self.bump().location;
                if found.is_empty() && self.failed_at.is_none_or(|failed| failed < start) {
                    let location = open.to(close);
                    let diagnostic = Diagnostic::error(format!("{what} is empty"))
                        .at(location, "expected at least one name");
                    self.diagnostics.push(diagnostic);
                }
                return Ok(found);
            }
            if self.enumerator(&mut found).is_err() && !self.skip_enumerator() {
                return Err(super::ReportedError);
            }
        }
    }

    fn enumerator(&mut self, found: &mut Vec<EnumeratorDcl>) -> Parsed<()> {
        let preamble = self.preamble()?;
        let declared = self.declared("a name or `}`")?;
        found.push(EnumeratorDcl { preamble, declared });
        if self.peek().is("=") {
            let diagnostic = Diagnostic::error("enumerators have no values of their own")
                .at(self.here(), "expected `,` or `}`")
                .help("IDL 4 writes `@value(3) NAME`; on the wire an enumerator is its position");
            return Err(self.fail(diagnostic));
        }
        if self.take(",") {
            if self.peek().is("}") {
                self.last_commas.push(self.last());
            }
        } else if !self.peek().is("}") {
            return Err(self.expected("`,` or `}`"));
        }
        Ok(())
    }

    /// Steps behind the next comma or before the closing brace; false if there is none.
    fn skip_enumerator(&mut self) -> bool {
        loop {
            if self.take(",") || self.peek().is("}") {
                return true;
            }
            if self.at_end() || self.peek().is(";") || self.peek().is("{") {
                return false;
            }
            self.bump();
        }
    }

    fn union_body(&mut self) -> Parsed<ConstructedKind> {
        if self.peek().is(";") {
            return Ok(ConstructedKind::Union(None));
        }
        self.expect_word("switch", "after the name of the union")?;
        self.expect("(", "before the type of the discriminator")?;
        let annotations = self.annotations()?;
        let discriminator = self.type_spec("the type of the discriminator")?;
        self.expect(")", "after the type of the discriminator")?;
        let cases = self.block("the union", Self::case)?;
        Ok(ConstructedKind::Union(Some(UnionBody {
            discriminator,
            annotations,
            cases,
        })))
    }

    fn case(&mut self, cases: &mut Vec<Case>) -> Parsed<()> {
        if self.stray_semicolon() {
            return Ok(());
        }
        let mut preamble = self.preamble()?;
        let mut labels = Vec::new();
        loop {
            if self.take_word("case").is_some() {
                labels.push(CaseLabel::Value(self.expression()?));
            } else if let Some(location) = self.take_word("default") {
                labels.push(CaseLabel::Default(location));
            } else {
                break;
            }
            self.expect(":", "after the label")?;
        }
        if labels.is_empty() {
            return Err(self.expected("`case`, `default` or `}`"));
        }
        let inner = self.preamble()?;
        preamble.documentation.extend(inner.documentation);
        preamble.annotations.extend(inner.annotations);
        let ty = self.type_spec("the type of the member")?;
        let declarator = self.declarator("a name for the member")?;
        let declared = CaseDcl {
            labels,
            ty,
            declarator,
        };
        cases.push(Case { preamble, declared });
        self.semicolon("the member")
    }

    fn bit_field(&mut self, fields: &mut Vec<Documented<BitFieldDcl>>) -> Parsed<()> {
        if self.stray_semicolon() {
            return Ok(());
        }
        let preamble = self.preamble()?;
        self.expect_word("bitfield", "or `}`")?;
        self.expect("<", "and the width")?;
        let width = self.bound()?;
        let ty = self.after(",", |parser| parser.type_spec("the type of the field"))?;
        self.expect(">", "after the width")?;
        let mut names = Vec::new();
        // IDL 4.2 has no commas between the names; files have them.
        while !self.peek().is(";") && self.peek().kind != TokenKind::End {
            let preamble = self.preamble()?;
            let declared = self.declared("a name for the field, or `;`")?;
            names.push(EnumeratorDcl { preamble, declared });
            self.take(",");
        }
        let declared = BitFieldDcl { width, ty, names };
        fields.push(Documented { preamble, declared });
        self.semicolon("the field")
    }

    /// `void` or a type.
    pub(super) fn return_type(&mut self) -> Parsed<TypeSpec> {
        let Some(location) = self.take_word("void") else {
            return self.type_spec("a declaration");
        };
        let kind = TypeKind::Basic(Type::Void);
        Ok(TypeSpec { location, kind })
    }
}
