//! The lines that begin with `#`.

use crate::diagnostic::Diagnostic;
use crate::lexer::{Lexer, Token, TokenKind};
use crate::literal;
use crate::source::Location;
use crate::suggest;
use crate::tree::Value;

use super::{Condition, EventKind, Preprocessor, condition};

impl Preprocessor<'_> {
    /// Handles the directive whose `#` has just been read, up to the end of its line.
    pub(super) fn directive(&mut self, lexer: &mut Lexer, hash: &Token) {
        let name = lexer.next(self.diagnostics);
        let location = hash.location.to(name.location);
        match &name.kind {
            TokenKind::Newline | TokenKind::End => return,
            TokenKind::Number(_) => return self.line_marker(lexer, name, location),
            TokenKind::Word(word) => match &**word {
                "if" | "ifdef" | "ifndef" | "elif" | "else" | "endif" => {
                    return self.conditional(lexer, word, location);
                }
                "include" | "import" => self.include_directive(lexer, location),
                "define" => self.define(lexer, location),
                "undef" => self.undefine(lexer, location),
                "pragma" => self.pragma(lexer, location),
                "line" => {
                    let number = lexer.next(self.diagnostics);
                    return self.line_marker(lexer, number, location);
                }
                "error" => {
                    let (text, _) = lexer.rest_of_line(self.diagnostics);
                    self.diagnostics
                        .error(location, format!("#error: {text}"), "");
                }
                "warning" => {
                    let (text, _) = lexer.rest_of_line(self.diagnostics);
                    self.diagnostics
                        .push(Diagnostic::warning(format!("#warning: {text}")).at(location, ""));
                }
                // Directives of old compilers, which have no effect.
                "ident" | "sccs" => {}
                _ => self.diagnostics.push(unknown_directive(word, location)),
            },
            _ => {
                let found = name.description();
                let label = format!("expected a word like `include` after `#`, found {found}");
                self.diagnostics
                    .error(location, "this is not a preprocessor directive", label);
            }
        }
        lexer.rest_of_line(self.diagnostics);
    }

    fn conditional(&mut self, lexer: &mut Lexer, word: &str, location: Location) {
        let (word, taken) = match word {
            "if" | "ifdef" | "ifndef" if self.conditions.len() >= CONDITIONS_MAX => {
                let message = format!("conditions are nested more than {CONDITIONS_MAX} deep");
                self.diagnostics.error(location, message, "");
                lexer.rest_of_line(self.diagnostics);
                return;
            }
            "if" => ("if", self.condition(lexer, location)),
            "ifdef" => ("ifdef", self.defined(lexer, "#ifdef", location)),
            "ifndef" => ("ifndef", !self.defined(lexer, "#ifndef", location)),
            _ => {
                let Some(open) = self.conditions.last_mut() else {
                    let message = format!("`#{word}` without `#if`");
                    let label = "no condition is open here";
                    self.diagnostics.error(location, message, label);
                    lexer.rest_of_line(self.diagnostics);
                    return;
                };
                // The group before this line was read, so the other groups of the condition are skipped.
                open.done = true;
                if self.close_group(lexer, word, location) {
                    self.skip_group(lexer);
                }
                return;
            }
        };
        self.conditions.push(Condition {
            word,
            location,
            has_else: false,
            done: taken,
        });
        if !taken {
            self.skip_group(lexer);
        }
    }

    /// Skips to the next group of the innermost condition that is to be read, or to its end.
    fn skip_group(&mut self, lexer: &mut Lexer) {
        let mut nested = 0usize;
        loop {
            lexer.quiet = true;
            let token = lexer.next(self.diagnostics);
            if token.kind == TokenKind::End {
                lexer.quiet = false;
                return;
            }
            if !(token.is("#") && token.starts_line) {
                continue;
            }
            let name = lexer.next(self.diagnostics);
            lexer.quiet = false;
            let Some(word) = name.word() else { continue };
            match &**word {
                "if" | "ifdef" | "ifndef" => nested += 1,
                "endif" if nested > 0 => nested -= 1,
                "elif" | "else" | "endif" if nested == 0 => {
                    let location = token.location.to(name.location);
                    if !self.close_group(lexer, word, location) {
                        return;
                    }
                }
                _ => {}
            }
        }
    }

    /// Handles `#elif`, `#else` or `#endif`. Returns true if the next group is to be skipped.
    fn close_group(&mut self, lexer: &mut Lexer, word: &str, at: Location) -> bool {
        let Some(open) = self.conditions.last_mut() else {
            return false;
        };
        if open.has_else && word != "endif" {
            let first = open.location;
            self.diagnostics.push(
                Diagnostic::error(format!("`#{word}` after `#else`"))
                    .at(at, "")
                    .at(first, "the condition begins here"),
            );
        }
        let was_done = std::mem::replace(&mut open.done, true);
        match word {
            "elif" if !was_done => {
                let taken = self.condition(lexer, at);
                if let Some(open) = self.conditions.last_mut() {
                    open.done = taken;
                }
                return !taken;
            }
            "else" => open.has_else = true,
            "endif" => {
                self.conditions.pop();
            }
            _ => {}
        }
        lexer.rest_of_line(self.diagnostics);
        was_done && word != "endif"
    }

    fn condition(&mut self, lexer: &mut Lexer, location: Location) -> bool {
        let line = self.rest_tokens(lexer);
        condition::holds(line, location, &mut self.macros, self.diagnostics)
    }

    fn defined(&mut self, lexer: &mut Lexer, directive: &str, location: Location) -> bool {
        let name = lexer.next(self.diagnostics);
        let found = match name.word() {
            Some(word) => self.macros.is_defined(word),
            None => {
                self.needs_name(directive, &name, location);
                false
            }
        };
        if name.kind != TokenKind::Newline {
            lexer.rest_of_line(self.diagnostics);
        }
        found
    }

    /// The tokens up to the end of the line.
    pub(super) fn rest_tokens(&mut self, lexer: &mut Lexer) -> Vec<Token> {
        let mut tokens = Vec::new();
        loop {
            let token = lexer.next(self.diagnostics);
            if matches!(token.kind, TokenKind::Newline | TokenKind::End) {
                return tokens;
            }
            tokens.push(token);
        }
    }

    fn undefine(&mut self, lexer: &mut Lexer, location: Location) {
        let name = lexer.clone().next(self.diagnostics);
        match name.word() {
            Some(word) => self.macros.undefine(word),
            None => self.needs_name("#undef", &name, location),
        }
    }

    fn needs_name(&mut self, directive: &str, found: &Token, location: Location) {
        let message = format!("`{directive}` needs the name of a macro");
        let label = format!("expected a name, found {}", found.description());
        self.diagnostics.error(location, message, label);
    }

    fn define(&mut self, lexer: &mut Lexer, location: Location) {
        // A clone, because the caller reads the end of the line.
        let mut ahead = lexer.clone();
        let line = self.rest_tokens(&mut ahead);
        self.macros.define(&line, location, self.diagnostics);
        lexer.rest_of_line(self.diagnostics);
    }

    /// `#line 7 "file"` and `# 7 "file" 1 3`.
    fn line_marker(&mut self, lexer: &mut Lexer, number: Token, location: Location) {
        let rest = if number.kind == TokenKind::Newline {
            Vec::new()
        } else {
            self.rest_tokens(lexer)
        };
        let line = match &number.kind {
            TokenKind::Number(text) => text.parse::<u32>().ok(),
            _ => None,
        };
        let Some(line) = line else {
            let label = format!("expected a line number, found {}", number.description());
            self.diagnostics
                .error(location, "this line directive has no number", label);
            return;
        };
        let name = rest.first().and_then(text);
        if let Some(file) = self.sources.file_mut(location.file) {
            file.mark(location.line + 1, line, name);
        }
    }

    fn pragma(&mut self, lexer: &mut Lexer, location: Location) {
        let mut ahead = lexer.clone();
        ahead.quiet = true;
        let line = self.rest_tokens(&mut ahead);
        let Some(word) = line.first().and_then(Token::word) else {
            return;
        };
        let known = ["prefix", "ID", "version"].contains(&&**word);
        let rest = match line[1..].split_last() {
            Some((last, before)) if known && last.is(";") => {
                self.warn_about_semicolon(last.location);
                before
            }
            _ => &line[1..],
        };
        let named = rest.split_last().filter(|(_, name)| is_scoped_name(name));
        let (event, form) = match &**word {
            "prefix" => {
                let prefix = rest.first().filter(|_| rest.len() == 1).and_then(text);
                let event = prefix.map(|prefix| EventKind::Prefix { prefix, location });
                (event, "`#pragma prefix \"omg.org\"`")
            }
            "ID" => {
                let event = named.and_then(|(last, name)| {
                    let (name, id) = (name.to_vec(), text(last)?);
                    Some(EventKind::Id { name, id, location })
                });
                (event, "`#pragma ID Module::Name \"IDL:Module/Name:1.0\"`")
            }
            "version" => {
                let event = named.and_then(|(last, name)| {
                    let version = version(last)?;
                    let name = name.to_vec();
                    Some(EventKind::Version {
                        name,
                        version,
                        location,
                    })
                });
                (event, "`#pragma version Module::Name 2.1`")
            }
            "once" => return self.once_only(),
            // A compiler must not reject a pragma that it does not know (CORBA 3.3 part 1, 14.7.5).
            _ => return self.check_unknown_pragma(word, line[0].location),
        };
        match event {
            Some(event) => self.event(event),
            None => self.diagnostics.push(
                Diagnostic::error("this pragma is incomplete")
                    .at(location, "")
                    .help(format!("write it as {form}")),
            ),
        }
    }

    fn warn_about_semicolon(&mut self, location: Location) {
        self.diagnostics.push(
            Diagnostic::warning("a pragma ends with its line, not with a semicolon")
                .at(location, "this semicolon has no effect"),
        );
    }

    /// Warns about an unknown pragma whose name is close to a known one. Pragmas of other compilers cause no warning.
    fn check_unknown_pragma(&mut self, word: &str, location: Location) {
        let known = ["prefix", "ID", "version", "once"];
        let same = known
            .into_iter()
            .find(|known| known.eq_ignore_ascii_case(word));
        if let Some(meant) = same.or_else(|| suggest::closest(word, known.into_iter())) {
            self.diagnostics.push(
                Diagnostic::warning(format!("the unknown pragma `{word}` has no effect"))
                    .at(location, "")
                    .help(format!("did you mean `#pragma {meant}`?")),
            );
        }
    }
}

/// The most levels of nested conditions.
const CONDITIONS_MAX: usize = 256;

fn unknown_directive(word: &str, location: Location) -> Diagnostic {
    Diagnostic::error(format!("unknown preprocessor directive `#{word}`")).at(location, "").help(
        "the directives are include, define, undef, if, ifdef, ifndef, elif, else, endif, line, error, warning, pragma",
    )
}

/// The value of a string literal.
fn text(token: &Token) -> Option<String> {
    let TokenKind::Text { wide: false, text } = &token.kind else {
        return None;
    };
    Some(literal::characters(text, false).ok()?.into_iter().collect())
}

/// A version such as `1.2`, which the lexer reads as a floating-point number.
fn version(token: &Token) -> Option<String> {
    let TokenKind::Number(text) = &token.kind else {
        return None;
    };
    let (major, minor) = text.split_once('.')?;
    let is_number =
        |part: &str| matches!(literal::number(&format!("1{part}")), Ok(Value::Integer(_)));
    (!major.is_empty() && !minor.is_empty() && is_number(major) && is_number(minor))
        .then(|| text.to_string())
}

fn is_scoped_name(tokens: &[Token]) -> bool {
    let names = match tokens.first() {
        Some(first) if first.is("::") => &tokens[1..],
        _ => tokens,
    };
    names.len() % 2 == 1
        && names.iter().enumerate().all(|(at, token)| {
            if at % 2 == 0 {
                token.word().is_some()
            } else {
                token.is("::")
            }
        })
}
