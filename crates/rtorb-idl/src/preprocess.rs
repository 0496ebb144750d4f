//! Includes, macros, conditions and pragmas: files in, one stream of tokens out.
//!
//! Every token keeps its location in its file. A token from a macro has the location of the macro's use.

mod condition;
mod directive;
mod include;
mod macros;

use std::path::PathBuf;
use std::rc::Rc;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::lexer::{Lexer, Token, TokenKind};
use crate::source::{Location, SourceFile, SourceMap};
use crate::{Options, OtherCompiler};

use include::{BYTES_MAX, FILES_MAX};
use macros::Macros;

/// The input of the parser.
#[derive(Debug, Default)]
pub(crate) struct ParserInput {
    /// The tokens without ends of lines; the last one is [`TokenKind::End`].
    pub(crate) tokens: Vec<Token>,
    /// The events between the tokens, in order.
    pub(crate) events: Vec<Event>,
    /// True if a file was not found, so that it may declare unknown names.
    pub(crate) incomplete: bool,
}

/// A pragma or a file boundary before the token with index `before`.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) before: usize,
    pub(crate) kind: EventKind,
}

#[derive(Clone, Debug)]
pub(crate) enum EventKind {
    /// A file begins.
    Enter,
    /// A file ends.
    Leave,
    /// `#pragma prefix "..."`
    Prefix { prefix: String, location: Location },
    /// `#pragma ID name "..."`
    Id {
        name: Vec<Token>,
        id: String,
        location: Location,
    },
    /// `#pragma version name m.n`
    Version {
        name: Vec<Token>,
        version: String,
        location: Location,
    },
}

/// Reads `files` in order as one specification. Does not read a file again that an earlier one includes.
pub(crate) fn preprocess(
    files: &[PathBuf],
    options: &Options,
    sources: &mut SourceMap,
    diagnostics: &mut Diagnostics,
) -> ParserInput {
    let mut preprocessor = Preprocessor::new(options, sources, diagnostics);
    preprocessor.given = files.to_vec();
    for file in files {
        preprocessor.main_file(file);
    }
    preprocessor.finish()
}

/// Like [`preprocess`], for one text that need not be on disk.
pub(crate) fn preprocess_file(
    file: SourceFile,
    options: &Options,
    sources: &mut SourceMap,
    diagnostics: &mut Diagnostics,
) -> ParserInput {
    let mut preprocessor = Preprocessor::new(options, sources, diagnostics);
    preprocessor.read(file);
    preprocessor.finish()
}

struct Preprocessor<'r> {
    options: &'r Options,
    sources: &'r mut SourceMap,
    diagnostics: &'r mut Diagnostics,
    macros: Macros,
    output: ParserInput,
    /// The files that the user gave.
    given: Vec<PathBuf>,
    /// Files being read, outermost first.
    open: Vec<u32>,
    /// The open conditions of the file being read, outermost first.
    conditions: Vec<Condition>,
    /// Files that said `#pragma once`.
    once: Vec<PathBuf>,
    bytes_read: usize,
    /// True after the first exceeded limit: no more files are included then.
    is_limit_exceeded: bool,
}

impl<'r> Preprocessor<'r> {
    fn new(
        options: &'r Options,
        sources: &'r mut SourceMap,
        diagnostics: &'r mut Diagnostics,
    ) -> Self {
        let mut preprocessor = Self {
            options,
            sources,
            diagnostics,
            macros: Macros::default(),
            output: ParserInput::default(),
            given: Vec::new(),
            open: Vec::new(),
            conditions: Vec::new(),
            once: Vec::new(),
            bytes_read: 0,
            is_limit_exceeded: false,
        };
        preprocessor.predefine();
        preprocessor
    }

    /// Defines the predefined macros. omniORB's files need `HAS_...`. The OMG's files use `#include` if `_PRE_3_0_COMPILER_` is
    /// defined, and otherwise `import`, which has no effect here.
    fn predefine(&mut self) {
        let mut text = String::new();
        let own = [
            "__RTORB_IDL__",
            "HAS_LongLong",
            "HAS_LongDouble",
            "_PRE_3_0_COMPILER_",
        ];
        let predefined: &[&str] = match self.options.shared_with {
            None => &own,
            Some(OtherCompiler::Omniidl) => &["__OMNIIDL__"],
        };
        let given = self.options.defines.iter().map(String::as_str);
        for define in predefined.iter().copied().chain(given) {
            let (name, value) = define.split_once('=').unwrap_or((define, "1"));
            text.push_str(&format!("#define {name} {value}\n"));
        }
        for name in &self.options.undefines {
            text.push_str(&format!("#undef {name}\n"));
        }
        let file = self
            .sources
            .add(SourceFile::new("<command line>", text.as_str()));
        let mut lexer = Lexer::new(file, text.into());
        self.group(&mut lexer);
    }

    fn finish(mut self) -> ParserInput {
        let location = match self.output.tokens.last() {
            Some(last) => last.location.behind(),
            None => Location {
                file: self.first_main(),
                line: 1,
                column: 1,
                length: 1,
            },
        };
        self.output
            .tokens
            .push(Token::new(TokenKind::End, location));
        self.output
    }

    fn first_main(&self) -> u32 {
        let main = self.sources.files().iter().position(|file| file.is_main(1));
        main.and_then(|main| u32::try_from(main).ok()).unwrap_or(0)
    }

    /// Reads a whole file into the output. Reports the first file beyond a limit.
    fn read(&mut self, file: SourceFile) {
        let bytes = self.bytes_read.saturating_add(file.text().len());
        let exceeded = if self.sources.files().len() >= FILES_MAX {
            Some(("too many files are included", FILES_MAX, "files"))
        } else if bytes > BYTES_MAX {
            Some(("too much text is included", BYTES_MAX, "bytes"))
        } else {
            None
        };
        if let Some((what, limit, unit)) = exceeded {
            if !self.is_limit_exceeded {
                self.report_exceeded_limit(file.includer(), what, limit, unit);
            }
            return;
        }
        self.bytes_read = bytes;
        let text: Rc<str> = file.text().into();
        let number = self.sources.add(file);
        self.event(EventKind::Enter);
        self.open.push(number);
        let mut lexer = Lexer::new(number, text);
        self.group(&mut lexer);
        self.open.pop();
        self.event(EventKind::Leave);
    }

    /// Reads to the end of a file: text lines and directives.
    fn group(&mut self, lexer: &mut Lexer) {
        let outer = std::mem::take(&mut self.conditions);
        loop {
            let token = lexer.next(self.diagnostics);
            match token.kind {
                TokenKind::End => break,
                TokenKind::Newline => {}
                TokenKind::Punct("#") if token.starts_line => self.directive(lexer, &token),
                _ => self.text(lexer, token),
            }
        }
        for condition in std::mem::replace(&mut self.conditions, outer) {
            let message = format!("`#{}` has no `#endif`", condition.word);
            let label = "this condition is still open at the end of the file";
            self.diagnostics.error(condition.location, message, label);
        }
    }

    /// Reads a token outside directives, and expands it if it is a macro.
    fn text(&mut self, lexer: &mut Lexer, token: Token) {
        if self.output.tokens.len() >= TOKENS_MAX {
            if !self.is_limit_exceeded {
                let message = "the specification is too long";
                self.report_exceeded_limit(Some(token.location), message, TOKENS_MAX, "tokens");
            }
            return;
        }
        let position = token
            .word()
            .is_some_and(|word| &**word == "__FILE__" || &**word == "__LINE__");
        if position {
            self.output.tokens.push(place_macro(token, self.sources));
            return;
        }
        let output = &mut self.output.tokens;
        self.macros
            .expand_from(token, lexer, self.diagnostics, output);
    }

    fn event(&mut self, kind: EventKind) {
        self.output.events.push(Event {
            before: self.output.tokens.len(),
            kind,
        });
    }

    fn report_exceeded_limit(
        &mut self,
        location: Option<Location>,
        what: &str,
        limit: usize,
        unit: &str,
    ) {
        self.is_limit_exceeded = true;
        self.output.incomplete = true;
        let limit = format!("the limit is {limit} {unit}");
        let diagnostic = Diagnostic::error(what);
        self.diagnostics.push(match location {
            Some(location) => diagnostic.at(location, limit),
            None => diagnostic.note(limit),
        });
    }
}

/// An open condition.
struct Condition {
    word: &'static str,
    location: Location,
    /// True once `#else` was seen.
    has_else: bool,
    /// True if no further group of the condition will be read.
    done: bool,
}

/// The most tokens of a run.
const TOKENS_MAX: usize = 8_000_000;

/// Expands `__FILE__` and `__LINE__`.
fn place_macro(token: Token, sources: &SourceMap) -> Token {
    let position = sources.position(token.location);
    let kind = if token.is_word("__LINE__") {
        TokenKind::Number(position.line.to_string().into())
    } else {
        let escaped = position.file.replace('\\', "\\\\").replace('"', "\\\"");
        TokenKind::Text {
            wide: false,
            text: escaped.into(),
        }
    };
    Token { kind, ..token }
}

#[cfg(test)]
mod tests;
