//! Parses tokens into a syntax tree, by recursive descent. After an error it continues behind the next `;` or `}`.

mod components;
mod definitions;
mod expressions;
mod interfaces;
mod templates;
mod types;

use std::collections::HashSet;
use std::rc::Rc;

use crate::ast::{Definition, Documented, Name, Preamble, ScopedName};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::keywords;
use crate::lexer::{Token, TokenKind};
use crate::preprocess::{Event, ParserInput};
use crate::source::Location;
use crate::tree::{Annotation, AnnotationParameter};
use templates::Template;

/// Parses all tokens. Reports errors and omits the wrong parts.
pub(crate) fn parse(input: ParserInput, diagnostics: &mut Diagnostics) -> Specification {
    let mut parser = Parser {
        tokens: input.tokens,
        at: 0,
        events: input.events,
        next_event: 0,
        diagnostics,
        depth: 0,
        angles: 0,
        failed_at: None,
        lost: HashSet::new(),
        annotations: Vec::new(),
        last_commas: Vec::new(),
        modules: Vec::new(),
        templates: Vec::new(),
        instantiated: 0,
    };
    let definitions = parser.specification();
    Specification {
        definitions,
        lost: parser.lost,
        annotations: parser.annotations,
        last_commas: parser.last_commas,
        incomplete: input.incomplete,
    }
}

/// A parsed specification.
#[derive(Debug)]
pub(crate) struct Specification {
    pub(crate) definitions: Vec<Definition>,
    /// Names that declarations with errors probably declare.
    pub(crate) lost: HashSet<Rc<str>>,
    /// Every annotation, except those that are reported already.
    pub(crate) annotations: Vec<Annotation>,
    /// The commas behind the last enumerators of enums.
    pub(crate) last_commas: Vec<Location>,
    /// True if a file was not found.
    pub(crate) incomplete: bool,
}

/// An error that has been reported.
#[derive(Clone, Copy, Debug)]
struct ReportedError;

type Parsed<T> = Result<T, ReportedError>;

struct Parser<'d> {
    /// The last one is [`TokenKind::End`].
    tokens: Vec<Token>,
    at: usize,
    events: Vec<Event>,
    next_event: usize,
    diagnostics: &'d mut Diagnostics,
    depth: usize,
    /// The number of open `<` outside parentheses.
    angles: usize,
    /// The index of the token of the last reported error. One error for each token is enough.
    failed_at: Option<usize>,
    lost: HashSet<Rc<str>>,
    annotations: Vec<Annotation>,
    last_commas: Vec<Location>,
    /// The modules around the next token, by name, outermost first.
    modules: Vec<Rc<str>>,
    templates: Vec<Template>,
    /// The tokens of all instances of template modules so far.
    instantiated: usize,
}

impl Parser<'_> {
    fn peek(&self) -> &Token {
        self.peek_at(0)
    }

    fn peek_at(&self, offset: usize) -> &Token {
        let last = self.tokens.len() - 1;
        &self.tokens[(self.at + offset).min(last)]
    }

    fn bump(&mut self) -> Token {
        let token = self.peek().clone();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    fn at_end(&self) -> bool {
        self.peek().kind == TokenKind::End
    }

    /// The location of the next token.
    fn here(&self) -> Location {
        self.peek().location
    }

    /// The location of the last token that was read.
    fn last(&self) -> Location {
        self.tokens[self.at.saturating_sub(1)].location
    }

    fn take(&mut self, punct: &str) -> bool {
        let found = self.peek().is(punct);
        if found {
            self.bump();
        }
        found
    }

    fn take_word(&mut self, word: &str) -> Option<Location> {
        self.peek().is_word(word).then(|| self.bump().location)
    }

    /// Steps over `punct` and reads `item`, if `punct` comes next.
    fn after<T>(
        &mut self,
        punct: &str,
        item: impl FnOnce(&mut Self) -> Parsed<T>,
    ) -> Parsed<Option<T>> {
        self.take(punct).then(|| item(self)).transpose()
    }

    /// One or more items with commas between them.
    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut items = vec![item(self)?];
        while self.take(",") {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// Takes the next token if it is one of the words of `choices`, and returns what the word means.
    fn take_one<T: Copy>(&mut self, choices: &[(&str, T)]) -> Option<T> {
        let mut choices = choices.iter();
        let found = choices.find(|(word, _)| self.take_word(word).is_some());
        found.map(|(_, meaning)| *meaning)
    }

    /// Reports that `what` is expected in the place of the next token.
    fn expected(&mut self, what: &str) -> ReportedError {
        let message = format!("expected {what}, found {}", self.peek().description());
        self.error(self.here(), message, format!("expected {what}"))
    }

    fn error(
        &mut self,
        location: Location,
        message: impl Into<String>,
        label: impl Into<String>,
    ) -> ReportedError {
        self.fail(Diagnostic::error(message).at(location, label))
    }

    fn fail(&mut self, diagnostic: Diagnostic) -> ReportedError {
        if self.failed_at != Some(self.at) && self.peek().kind != TokenKind::Wrong {
            self.diagnostics.push(diagnostic);
        }
        self.failed_at = Some(self.at);
        ReportedError
    }

    fn expect(&mut self, punct: &str, context: &str) -> Parsed<Location> {
        if self.peek().is(punct) {
            return Ok(self.bump().location);
        }
        Err(self.expected(&format!("`{punct}` {context}")))
    }

    fn expect_word(&mut self, word: &str, context: &str) -> Parsed<Location> {
        self.take_word(word)
            .ok_or_else(|| self.expected(&format!("`{word}` {context}")))
    }

    /// Reads the `;` behind `what`. Reports a missing one at the end of a line, and continues as if it were there.
    fn semicolon(&mut self, what: &str) -> Parsed<()> {
        if self.take(";") {
            return Ok(());
        }
        let before = self.last();
        let next = self.peek();
        let message = format!("expected `;` after {what}, found {}", next.description());
        let supplied =
            next.is("}") || next.kind == TokenKind::End || next.location.line != before.line;
        let failed = self.error(before.behind(), message, "expected `;` here");
        if supplied { Ok(()) } else { Err(failed) }
    }

    /// Parses `inner` one level deeper. The limit keeps any input from overflowing the stack.
    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= DEPTH_MAX {
            let label = format!("more than {DEPTH_MAX} levels");
            return Err(self.error(self.here(), "the nesting is too deep", label));
        }
        self.depth += 1;
        let outcome = inner(self);
        self.depth -= 1;
        outcome
    }

    /// Reads `{ item item ... }`. `item` reads an item and appends it.
    fn block<T>(
        &mut self,
        what: &str,
        item: impl Fn(&mut Self, &mut Vec<Documented<T>>) -> Parsed<()>,
    ) -> Parsed<Vec<Documented<T>>> {
        let open = self.expect("{", &format!("to begin {what}"))?;
        let mut items = Vec::new();
        loop {
            if self.take("}") {
                return Ok(items);
            }
            if self.at_end() {
                let location = self.here();
                let diagnostic = Diagnostic::error(format!("{what} has no end"))
                    .at(open, "this `{` is never closed")
                    .at(location, "the file ends here");
                self.fail(diagnostic);
                return Ok(items);
            }
            let before = self.at;
            if self.nested(|parser| item(parser, &mut items)).is_err() {
                self.recover(before);
            }
            self.take_trailing_comments(&mut items);
        }
    }

    /// Skips to a place where parsing can continue: behind the next `;` outside braces, before the `}` of the enclosing
    /// block, or before a line that begins a new declaration. Skips at least one token behind `start`.
    fn recover(&mut self, start: usize) {
        self.skip(start);
        for at in start..self.at {
            let Some(word) = self.tokens[at].word() else {
                continue;
            };
            let next = self.tokens.get(at + 1);
            let is_declarator =
                next.is_some_and(|next| DECLARATOR_ENDS.iter().any(|end| next.is(end)));
            let before = at.checked_sub(1).map(|before| &self.tokens[before]);
            let begins = |before: &Token| {
                before
                    .word()
                    .is_some_and(|it| keywords::begins_declaration(it))
            };
            if is_declarator || before.is_some_and(begins) {
                self.lost.insert(word.clone());
            }
        }
    }

    fn skip(&mut self, start: usize) {
        let mut nested = 0usize;
        while !self.at_end() {
            let token = self.peek();
            match token.kind {
                TokenKind::Punct("}") if nested == 0 => return,
                TokenKind::Punct(";") if nested == 0 => {
                    self.bump();
                    return;
                }
                TokenKind::Punct("{") => nested += 1,
                TokenKind::Punct("}") => nested -= 1,
                TokenKind::Word(ref word)
                    if nested == 0
                        && token.starts_line
                        && self.at > start
                        && keywords::begins_declaration(word) =>
                {
                    return;
                }
                _ => {}
            }
            self.bump();
        }
    }

    /// The comments and annotations before a declaration.
    fn preamble(&mut self) -> Parsed<Preamble> {
        let mut documentation = self.comments(false);
        let annotations = self.annotations()?;
        if !annotations.is_empty() {
            documentation.extend(self.comments(false));
        }
        Ok(Preamble {
            documentation,
            annotations,
        })
    }

    /// The comments before the next token that document the next declaration, or the previous one if `trailing`.
    fn comments(&self, trailing: bool) -> Vec<String> {
        let comments = self.peek().comments.as_deref().unwrap_or_default().iter();
        comments
            .filter(|comment| comment.trailing == trailing)
            .flat_map(|comment| comment.lines.clone())
            .collect()
    }

    /// Adds comments that stand behind the last of `items` to its documentation.
    fn take_trailing_comments<T>(&self, items: &mut [Documented<T>]) {
        if let Some(last) = items.last_mut() {
            last.preamble.documentation.extend(self.comments(true));
        }
    }

    fn annotations(&mut self) -> Parsed<Vec<Annotation>> {
        let mut annotations = Vec::new();
        while self.peek().is("@")
            && !(self.peek_at(1).is_word("annotation") && self.peek_at(2).word().is_some())
        {
            annotations.push(self.annotation()?);
        }
        Ok(annotations)
    }

    fn annotation(&mut self) -> Parsed<Annotation> {
        let at = self.bump().location;
        let mut name = String::new();
        if self.take("::") {
            name.push_str("::");
        }
        loop {
            // `@default` and `@oneway` are annotations, too.
            let token = self.peek();
            let begins =
                token.starts_line && token.word().is_some_and(|word| keywords::is_keyword(word));
            let Some(word) = token.word().filter(|_| !begins).cloned() else {
                return Err(self.expected("the name of an annotation after `@`"));
            };
            name.push_str(&word);
            self.bump();
            if !self.take("::") {
                break;
            }
            name.push_str("::");
        }
        let location = at.to(self.last());
        let parameters = if self.peek().is("(") {
            self.annotation_parameters()?
        } else {
            Vec::new()
        };
        let location = location.to(self.last());
        let annotation = Annotation {
            name,
            parameters,
            location,
        };
        self.annotations.push(annotation.clone());
        Ok(annotation)
    }

    /// Reads the parameters as source text. Their meaning depends on the annotation.
    fn annotation_parameters(&mut self) -> Parsed<Vec<AnnotationParameter>> {
        let open = self.bump().location;
        let mut parameters = vec![AnnotationParameter::default()];
        let mut nested = 0usize;
        loop {
            let token = self.peek().clone();
            let last = parameters.len() - 1;
            let AnnotationParameter { name, value } = &mut parameters[last];
            match token.kind {
                TokenKind::End => {
                    let label = "this `(` is never closed";
                    return Err(self.error(open, "this annotation has no end", label));
                }
                TokenKind::Punct(")") if nested == 0 => {
                    self.bump();
                    parameters.retain(|it| *it != AnnotationParameter::default());
                    return Ok(parameters);
                }
                TokenKind::Punct(",") if nested == 0 => {
                    parameters.push(AnnotationParameter::default())
                }
                TokenKind::Punct("=") if nested == 0 && name.is_empty() => {
                    *name = std::mem::take(value)
                }
                _ => {
                    nested += usize::from(token.is("("));
                    nested -= usize::from(token.is(")"));
                    if token.spaced && !value.is_empty() {
                        value.push(' ');
                    }
                    value.push_str(&token.spelling());
                }
            }
            self.bump();
        }
    }

    /// A name in its declaration.
    fn declared(&mut self, what: &str) -> Parsed<Name> {
        let token = self.peek().clone();
        let Some(word) = token.word() else {
            return Err(self.expected(what));
        };
        if let Some(keyword) = keywords::with_case(word) {
            self.diagnostics
                .push(keyword_collision(word, keyword, token.location));
        }
        if let Some(foreign) = word.chars().find(|letter| !letter.is_ascii()) {
            self.diagnostics.push(
                Diagnostic::error(format!("`{foreign}` cannot be in a name")).at(
                    token.location,
                    "a name consists of the letters A to Z and a to z, digits and underscores",
                ),
            );
        } else if !word
            .trim_start_matches('_')
            .starts_with(char::is_alphabetic)
        {
            let message = format!("`{word}` is not a name");
            let label = "a name begins with a letter";
            self.diagnostics.error(token.location, message, label);
        }
        self.bump();
        Ok(name(word, token.location))
    }

    /// A name in its use.
    fn scoped_name(&mut self, what: &str) -> Parsed<ScopedName> {
        let absolute = self.take("::");
        let mut parts: Vec<Name> = Vec::new();
        loop {
            let token = self.peek().clone();
            // `CORBA::Object` is wrong by the standard, but real files have it.
            let scoped_keyword =
                !parts.is_empty() && (token.is_word("Object") || token.is_word("ValueBase"));
            match token.word() {
                Some(word) if !keywords::is_keyword(word) || scoped_keyword => {
                    self.bump();
                    parts.push(name(word, token.location));
                }
                _ => return Err(self.expected(what)),
            }
            if !self.take("::") {
                return Ok(ScopedName { absolute, parts });
            }
        }
    }

    fn scoped_names(&mut self, what: &str) -> Parsed<Vec<ScopedName>> {
        self.list(|parser| parser.scoped_name(what))
    }

    /// The names behind `mark`, which is punctuation or a word; none if it does not come next.
    fn names_after(&mut self, mark: &str, what: &str) -> Parsed<Vec<ScopedName>> {
        if self.take(mark) || self.take_word(mark).is_some() {
            self.scoped_names(what)
        } else {
            Ok(Vec::new())
        }
    }
}

/// The punctuation behind a declared name, for names without a keyword before them.
const DECLARATOR_ENDS: [&str; 6] = [";", ",", "}", "[", "=", "("];
/// The most levels of nesting, expressions included.
const DEPTH_MAX: usize = 100;

/// An escaping underscore is not part of the name (CORBA 3.3 part 1, 7.2.3.1).
fn name(word: &str, location: Location) -> Name {
    let text = word
        .strip_prefix('_')
        .filter(|rest| !rest.is_empty())
        .unwrap_or(word);
    Name {
        text: text.to_owned(),
        location,
    }
}

fn keyword_collision(word: &str, keyword: &str, location: Location) -> Diagnostic {
    let message = if word == keyword {
        format!("`{word}` is an IDL keyword and cannot be a name")
    } else {
        format!("the name `{word}` differs from the keyword `{keyword}` in case only")
    };
    let diagnostic = if word == keyword || keywords::is_classic(keyword) {
        Diagnostic::error(message).at(location, "not allowed as a name")
    } else {
        Diagnostic::warning(message).at(location, "accepted, though the standard forbids it")
    };
    diagnostic.help(format!("write `_{word}` to use it as a name"))
}
