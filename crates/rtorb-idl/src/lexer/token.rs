//! The tokens, with their descriptions for messages.

use std::rc::Rc;

use super::comments::Comment;
use crate::source::Location;

/// A lexical element.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) location: Location,
    /// Documentation comments right before it.
    pub(crate) comments: Option<Rc<[Comment]>>,
    /// True for the first token of a line.
    pub(crate) starts_line: bool,
    /// True if white space or a comment stands before it.
    pub(crate) spaced: bool,
    /// True if the preprocessor must not expand it again.
    pub(crate) painted: bool,
}

/// The kind and the text of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// An identifier or keyword as written, an escaping underscore included.
    Word(Rc<str>),
    /// A word that starts like a number.
    Number(Rc<str>),
    /// A character literal: the text between the quotes, as written.
    Char { wide: bool, text: Rc<str> },
    /// A string literal: the text between the quotes, as written.
    Text { wide: bool, text: Rc<str> },
    /// `<` and `>` are always single, so that `sequence<sequence<long>>` needs no space.
    Punct(&'static str),
    /// A character that starts no token.
    Stray(char),
    /// The place of an error that has been reported.
    Wrong,
    /// The end of a line. The preprocessor removes it.
    Newline,
    /// The end of the file or of the input.
    End,
}

impl Token {
    pub(crate) fn new(kind: TokenKind, location: Location) -> Self {
        Self {
            kind,
            location,
            comments: None,
            starts_line: false,
            spaced: false,
            painted: false,
        }
    }

    pub(crate) fn is(&self, punct: &str) -> bool {
        matches!(self.kind, TokenKind::Punct(text) if text == punct)
    }

    pub(crate) fn is_word(&self, word: &str) -> bool {
        matches!(&self.kind, TokenKind::Word(text) if **text == *word)
    }

    pub(crate) fn word(&self) -> Option<&Rc<str>> {
        match &self.kind {
            TokenKind::Word(word) => Some(word),
            _ => None,
        }
    }

    /// True if `self` follows `before` with nothing between.
    pub(crate) fn touches(&self, before: &Token) -> bool {
        let end = before.location.column + before.location.length;
        self.location.file == before.location.file
            && self.location.line == before.location.line
            && self.location.column == end
    }

    /// The bytes of its text; 0 for one without a text of its own.
    pub(crate) fn text_bytes(&self) -> usize {
        match &self.kind {
            TokenKind::Word(text)
            | TokenKind::Number(text)
            | TokenKind::Char { text, .. }
            | TokenKind::Text { text, .. } => text.len(),
            _ => 0,
        }
    }

    /// The description of the token in `expected ..., found ...`.
    pub(crate) fn description(&self) -> String {
        match &self.kind {
            TokenKind::Word(word) => format!("`{word}`"),
            TokenKind::Number(number) => format!("number `{number}`"),
            TokenKind::Char { .. } => "a character literal".to_owned(),
            TokenKind::Text { .. } => "a string literal".to_owned(),
            TokenKind::Punct(punct) => format!("`{punct}`"),
            TokenKind::Stray(stray) => format!("`{}`", stray.escape_debug()),
            TokenKind::Wrong => "a mistake".to_owned(),
            TokenKind::Newline => "the end of the line".to_owned(),
            TokenKind::End => "the end of the file".to_owned(),
        }
    }

    /// The spelling of the token, for `#` and `##` of macros and for values of annotations.
    pub(crate) fn spelling(&self) -> String {
        match &self.kind {
            TokenKind::Word(text) | TokenKind::Number(text) => text.to_string(),
            TokenKind::Char { wide, text } => format!("{}'{text}'", if *wide { "L" } else { "" }),
            TokenKind::Text { wide, text } => format!("{}\"{text}\"", if *wide { "L" } else { "" }),
            TokenKind::Punct(text) => (*text).to_owned(),
            TokenKind::Stray(stray) => stray.to_string(),
            TokenKind::Wrong | TokenKind::Newline | TokenKind::End => String::new(),
        }
    }
}
