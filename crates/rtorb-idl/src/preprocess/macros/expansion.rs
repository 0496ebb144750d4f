//! Expansion of the macros in a list of tokens.

use std::collections::HashMap;
use std::rc::Rc;

use super::{Macro, Macros};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::lexer::{Lexer, Token, TokenKind};
use crate::source::Location;

/// The most tokens that expansion may produce in a run. A long one counts as several: `##` and `#` make tokens of any length.
const PRODUCED_MAX: usize = 1_000_000;
/// The bytes of a long token that count as one more.
const COUNTED_BYTES: usize = 16;
/// The most bytes that `##` joins. To join more and more of them copies all that is joined already.
const JOINED_BYTES_MAX: usize = 1 << 16;
/// The most levels of macro arguments within macro arguments.
const DEPTH_MAX: usize = 50;

enum Pending {
    Token(Token),
    /// The end of the tokens of a macro. From here on its name is expanded again.
    Leave(Rc<str>),
}

/// The expansion of one list.
pub(super) struct Expansion<'e> {
    macros: &'e mut Macros,
    /// The tokens to expand; the next one is the last.
    pending: Vec<Pending>,
    pub(super) lexer: Option<&'e mut Lexer>,
    active: Vec<Rc<str>>,
    depth: usize,
    diagnostics: &'e mut Diagnostics,
}

impl<'e> Expansion<'e> {
    pub(super) fn new(
        macros: &'e mut Macros,
        tokens: Vec<Token>,
        diagnostics: &'e mut Diagnostics,
    ) -> Self {
        Self {
            macros,
            pending: tokens.into_iter().rev().map(Pending::Token).collect(),
            lexer: None,
            active: Vec::new(),
            depth: 0,
            diagnostics,
        }
    }

    pub(super) fn run(mut self, output: &mut Vec<Token>) {
        while let Some(next) = self.pending.pop() {
            match next {
                Pending::Leave(name) => self.leave(&name),
                Pending::Token(token) => self.token(token, output),
            }
        }
    }

    fn leave(&mut self, name: &str) {
        if let Some(at) = self.active.iter().rposition(|active| **active == *name) {
            self.active.remove(at);
        }
    }

    fn token(&mut self, mut token: Token, output: &mut Vec<Token>) {
        let known = token
            .word()
            .and_then(|word| Some((word.clone(), self.macros.table.get(word)?.clone())));
        let Some((name, definition)) = known.filter(|_| !token.painted && !self.macros.exhausted)
        else {
            output.push(token);
            return;
        };
        if self.active.contains(&name) {
            token.painted = true;
            output.push(token);
            return;
        }
        let arguments = if definition.parameters.is_some() {
            if !self.opens() {
                output.push(token);
                return;
            }
            match self.arguments(&name, &definition, token.location) {
                Some(arguments) => arguments,
                None => {
                    output.push(Token::new(TokenKind::Wrong, token.location));
                    return;
                }
            }
        } else {
            Vec::new()
        };
        let body = self.substitute(&definition, &arguments, token.location);
        self.macros.produced += weight(&body) + 1;
        if self.macros.exhausted {
            return;
        }
        if self.macros.produced > PRODUCED_MAX {
            output.push(Token::new(TokenKind::Wrong, token.location));
            self.exhaust(&name, token.location);
            return;
        }
        self.active.push(name.clone());
        self.pending.push(Pending::Leave(name));
        let comments = token.comments.take();
        let location = token.location;
        let placed = body.into_iter().map(|made| Token {
            location,
            comments: None,
            ..made
        });
        let first = self.pending.len();
        self.pending.extend(placed.rev().map(Pending::Token));
        if let Some(Pending::Token(made)) = self.pending[first..].last_mut() {
            made.comments = comments;
            made.starts_line = token.starts_line;
        }
    }

    fn exhaust(&mut self, name: &str, location: Location) {
        self.macros.exhausted = true;
        self.pending.clear();
        let label = format!("expanding `{name}` passes the limit of {PRODUCED_MAX} tokens");
        self.diagnostics
            .error(location, "macros expand to too many tokens", label);
    }

    /// Skips an opening parenthesis if it is the next token. Returns true if it was.
    fn opens(&mut self) -> bool {
        let next = self
            .pending
            .iter()
            .rposition(|pending| matches!(pending, Pending::Token(_)));
        if let Some(at) = next {
            let found = matches!(&self.pending[at], Pending::Token(token) if token.is("("));
            if found {
                self.next();
            }
            return found;
        }
        let Some(lexer) = self.lexer.as_deref_mut() else {
            return false;
        };
        let mut ahead = lexer.clone();
        let mut quiet = Diagnostics::default();
        loop {
            let token = ahead.next(&mut quiet);
            if token.kind != TokenKind::Newline {
                let found = token.is("(");
                if found {
                    *lexer = ahead;
                }
                return found;
            }
        }
    }

    fn next(&mut self) -> Option<Token> {
        while let Some(pending) = self.pending.pop() {
            match pending {
                Pending::Leave(name) => self.leave(&name),
                Pending::Token(token) => return Some(token),
            }
        }
        let lexer = self.lexer.as_deref_mut()?;
        loop {
            let token = lexer.next(self.diagnostics);
            match token.kind {
                TokenKind::Newline => {}
                TokenKind::End => return None,
                _ => return Some(token),
            }
        }
    }

    fn arguments(
        &mut self,
        name: &str,
        definition: &Macro,
        call: Location,
    ) -> Option<Vec<Vec<Token>>> {
        let count = definition.parameters.as_ref().map_or(0, Vec::len);
        let mut arguments = vec![Vec::new()];
        let mut nested = 0usize;
        loop {
            let Some(token) = self.next() else {
                let message = format!("the arguments of macro `{name}` have no end");
                self.diagnostics.error(call, message, "no `)` follows");
                return None;
            };
            let last_is_rest = definition.variadic && arguments.len() == count;
            match token.kind {
                TokenKind::Punct("(") => nested += 1,
                TokenKind::Punct(")") if nested == 0 => break,
                TokenKind::Punct(")") => nested -= 1,
                TokenKind::Punct(",") if nested == 0 && !last_is_rest => {
                    arguments.push(Vec::new());
                    continue;
                }
                _ => {}
            }
            if let Some(last) = arguments.last_mut() {
                last.push(token);
            }
        }
        if count == 0 && arguments.len() == 1 && arguments[0].is_empty() {
            arguments.clear();
        }
        if definition.variadic && arguments.len() + 1 == count {
            arguments.push(Vec::new());
        }
        if arguments.len() != count {
            self.diagnostics.push(
                Diagnostic::error(format!(
                    "macro `{name}` takes {count} arguments, not {}",
                    arguments.len()
                ))
                .at(call, "used here")
                .at(definition.location, "defined here"),
            );
            return None;
        }
        Some(arguments)
    }

    fn substitute(
        &mut self,
        definition: &Macro,
        arguments: &[Vec<Token>],
        call: Location,
    ) -> Vec<Token> {
        let no_parameters = Vec::new();
        let parameters = definition.parameters.as_ref().unwrap_or(&no_parameters);
        let argument = |token: &Token| {
            let word = token.word()?;
            parameters
                .iter()
                .position(|parameter| parameter == word)
                .map(|at| &arguments[at])
        };
        let mut expanded: HashMap<usize, Vec<Token>> = HashMap::new();
        let mut output: Vec<Token> = Vec::new();
        let mut produced = 0;
        let mut pasting = false;
        let mut left_is_empty = true;
        let mut body = definition.body.iter().enumerate().peekable();
        while let Some((at, token)) = body.next() {
            let next = body.peek().map(|(_, next)| *next);
            if token.is("##") && at > 0 && next.is_some() {
                pasting = true;
                continue;
            }
            let made = match next.and_then(argument) {
                Some(argument) if token.is("#") && definition.parameters.is_some() => {
                    body.next();
                    vec![Token {
                        kind: stringized(argument),
                        ..token.clone()
                    }]
                }
                _ => match argument(token) {
                    Some(raw) if pasting || next.is_some_and(|next| next.is("##")) => raw.clone(),
                    Some(raw) => {
                        let key = raw.as_ptr() as usize;
                        expanded
                            .entry(key)
                            .or_insert_with(|| self.expanded(raw))
                            .clone()
                    }
                    None => vec![token.clone()],
                },
            };
            produced += weight(&made);
            let right_is_empty = made.is_empty();
            if std::mem::take(&mut pasting) && !left_is_empty {
                left_is_empty = false;
                self.paste(&mut output, made, call);
            } else {
                left_is_empty = right_is_empty;
                output.extend(made);
            }
            if produced > PRODUCED_MAX {
                return output;
            }
        }
        output
    }

    fn expanded(&mut self, argument: &[Token]) -> Vec<Token> {
        let mut output = Vec::new();
        if self.depth >= DEPTH_MAX {
            if let Some(first) = argument.first() {
                let label = format!("more than {DEPTH_MAX} macro arguments within each other");
                self.diagnostics
                    .error(first.location, "macros are nested too deep", label);
            }
            return output;
        }
        let mut inner = Expansion::new(self.macros, argument.to_vec(), self.diagnostics);
        inner.active.clone_from(&self.active);
        inner.depth = self.depth + 1;
        inner.run(&mut output);
        output
    }

    /// `##`: joins the last token of `output` and the first of `made`.
    fn paste(&mut self, output: &mut Vec<Token>, made: Vec<Token>, call: Location) {
        let mut made = made.into_iter();
        let Some(right) = made.next() else { return };
        let Some(left) = output.pop() else { return };
        if left.text_bytes() + right.text_bytes() > JOINED_BYTES_MAX {
            let message = format!("`##` makes a token of more than {JOINED_BYTES_MAX} bytes");
            self.diagnostics.error(call, message, "in this macro");
            output.extend([left, right]);
            output.extend(made);
            return;
        }
        let text = format!("{}{}", left.spelling(), right.spelling());
        let mut lexer = Lexer::new(call.file, text.as_str().into());
        lexer.quiet = true;
        let token = lexer.next(self.diagnostics);
        // Text that begins a comment has no token.
        let is_token = token.kind != TokenKind::End;
        if is_token && lexer.next(self.diagnostics).kind == TokenKind::End {
            output.push(Token {
                spaced: left.spaced,
                ..token
            });
        } else {
            let message = format!("`##` makes `{text}`, which is not one token");
            self.diagnostics.error(call, message, "in this macro");
            output.extend([left, right]);
        }
        output.extend(made);
    }
}

/// The number of tokens, where a long one counts as several.
fn weight(tokens: &[Token]) -> usize {
    let weights = tokens.iter();
    weights.map(|it| 1 + it.text_bytes() / COUNTED_BYTES).sum()
}

/// `#parameter`: the argument's spelling as a string literal.
fn stringized(argument: &[Token]) -> TokenKind {
    let mut text = String::new();
    for (at, token) in argument.iter().enumerate() {
        if at > 0 && token.spaced {
            text.push(' ');
        }
        let spelling = token.spelling();
        if matches!(token.kind, TokenKind::Text { .. } | TokenKind::Char { .. }) {
            text.push_str(&spelling.replace('\\', "\\\\").replace('"', "\\\""));
        } else {
            text.push_str(&spelling);
        }
    }
    TokenKind::Text {
        wide: false,
        text: text.into(),
    }
}
