//! Text to tokens: words, numbers, literals and punctuation with their exact places.
//!
//! The preprocessor and the parser read the same tokens. A token keeps its spelling. [`crate::literal`] computes the value of
//! a literal later, so that skipped groups may contain any text.

mod comments;
mod token;

use std::rc::Rc;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::source::Location;

pub(crate) use comments::Comment;
pub(crate) use token::{Token, TokenKind};

/// Reads the tokens of one file. Cheap to clone: a clone looks ahead.
#[derive(Clone, Debug)]
pub(crate) struct Lexer {
    text: Rc<str>,
    at: usize,
    line: u32,
    column: u32,
    file: u32,
    line_has_token: bool,
    comments: Vec<Comment>,
    /// True in skipped groups, where wrong literals are not reported.
    pub(crate) quiet: bool,
}

impl Lexer {
    pub(crate) fn new(file: u32, text: Rc<str>) -> Self {
        let marked = text.strip_prefix('\u{feff}');
        let at = marked.map_or(0, |rest| text.len() - rest.len());
        let mut lexer = Self {
            text,
            at,
            line: 1,
            column: 1,
            file,
            line_has_token: false,
            comments: Vec::new(),
            quiet: false,
        };
        lexer.splice();
        lexer
    }

    /// The location of the next character.
    pub(crate) fn here(&self) -> Location {
        Location {
            file: self.file,
            line: self.line,
            column: self.column,
            length: 1,
        }
    }

    /// The next token. After the last one, always [`TokenKind::End`].
    pub(crate) fn next(&mut self, diagnostics: &mut Diagnostics) -> Token {
        let before = self.at;
        self.skip_blanks(diagnostics);
        let start = self.here();
        let spaced = self.at != before;
        let starts_line = !self.line_has_token;
        let kind = self.token_kind(start, diagnostics);
        let newline = kind == TokenKind::Newline;
        self.line_has_token = !newline;
        let mut token = Token::new(kind, start);
        if !newline {
            // A token with a line continuation ends on another line. Then only its first character is marked.
            token.location.length = if self.line == start.line {
                self.column - start.column
            } else {
                1
            };
            token.comments =
                (!self.comments.is_empty()).then(|| std::mem::take(&mut self.comments).into());
        }
        token.starts_line = starts_line;
        token.spaced = spaced;
        token
    }

    /// The rest of the line without comments, for directives that do not consist of tokens. Does not read the end of the line.
    pub(crate) fn rest_of_line(&mut self, diagnostics: &mut Diagnostics) -> (String, Location) {
        self.take_while(|next| matches!(next, ' ' | '\t'));
        let start = self.here();
        let mut text = String::new();
        let mut quoted = false;
        while let Some(next) = self.peek() {
            let after = self.peek_second();
            if next == '\n' || (!quoted && next == '/' && after == Some('/')) {
                break;
            }
            if !quoted && next == '/' && after == Some('*') {
                self.block_comment(&mut Diagnostics::default());
                text.push(' ');
                continue;
            }
            quoted ^= next == '"';
            text.push(next);
            self.bump();
        }
        self.line_comment_text(diagnostics);
        let text = text.trim_end().to_owned();
        let length = u32::try_from(text.chars().count()).unwrap_or(1).max(1);
        (text, Location { length, ..start })
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn peek_second(&self) -> Option<char> {
        let mut chars = self.text[self.at..].chars();
        chars.next();
        let mut rest = chars.as_str();
        while let Some(spliced) = after_splice(rest) {
            rest = spliced;
        }
        rest.chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        if next == '\n' {
            self.line += 1;
            self.column = 1;
        } else {
            self.column += 1;
        }
        self.splice();
        Some(next)
    }

    /// Reads the characters up to the first one that is not `wanted`.
    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> String {
        let mut text = String::new();
        while let Some(next) = self.peek().filter(|&next| wanted(next)) {
            text.push(next);
            self.bump();
        }
        text
    }

    /// Steps over line continuations.
    fn splice(&mut self) {
        while let Some(rest) = after_splice(&self.text[self.at..]) {
            self.at = self.text.len() - rest.len();
            self.line += 1;
            self.column = 1;
        }
    }

    fn skip_blanks(&mut self, diagnostics: &mut Diagnostics) {
        loop {
            match (self.peek(), self.peek_second()) {
                (Some('/'), Some('/')) => self.line_comment(diagnostics),
                (Some('/'), Some('*')) => self.block_comment(diagnostics),
                (Some('\n'), _) => return,
                (Some('\u{1a}'), None) => {
                    self.bump();
                }
                (Some(blank), _) if blank.is_ascii_whitespace() || blank == '\u{b}' => {
                    self.bump();
                }
                _ => return,
            }
        }
    }

    fn token_kind(&mut self, start: Location, diagnostics: &mut Diagnostics) -> TokenKind {
        let Some(first) = self.peek() else {
            return TokenKind::End;
        };
        let second = self.peek_second();
        match first {
            '\n' => {
                self.bump();
                TokenKind::Newline
            }
            'L' if matches!(second, Some('\'' | '"')) => {
                self.bump();
                self.quoted(true, start, diagnostics)
            }
            '\'' | '"' => self.quoted(false, start, diagnostics),
            '0'..='9' => self.number(),
            '.' if second.is_some_and(|second| second.is_ascii_digit()) => self.number(),
            _ if first == '_' || first.is_alphabetic() => {
                let word = self.take_while(|next| next == '_' || next.is_alphanumeric());
                TokenKind::Word(word.into())
            }
            _ => self.punct(first, second),
        }
    }

    fn number(&mut self) -> TokenKind {
        let mut number = String::new();
        while let Some(next) = self.peek() {
            let hexadecimal = number.starts_with("0x") || number.starts_with("0X");
            let signed_exponent =
                matches!(next, '+' | '-') && !hexadecimal && number.ends_with(['e', 'E']);
            if !(next == '_' || next == '.' || next.is_alphanumeric() || signed_exponent) {
                break;
            }
            number.push(next);
            self.bump();
        }
        TokenKind::Number(number.into())
    }

    fn quoted(&mut self, wide: bool, start: Location, diagnostics: &mut Diagnostics) -> TokenKind {
        let quote = self.bump();
        let mut text = String::new();
        // A `;` at the end of the line probably ends the declaration; this avoids a second error.
        let mut semicolon = None;
        loop {
            let next = self.peek();
            if next == quote {
                self.bump();
                break;
            }
            match next {
                None | Some('\n') => {
                    if !self.quiet {
                        diagnostics.push(unterminated(quote, start));
                    }
                    if let Some((at, line, column, length)) = semicolon {
                        (self.at, self.line, self.column) = (at, line, column);
                        text.truncate(length);
                    }
                    break;
                }
                Some(next) => {
                    if next == ';' {
                        semicolon = Some((self.at, self.line, self.column, text.len()));
                    } else if !next.is_whitespace() {
                        semicolon = None;
                    }
                    text.push(next);
                    self.bump();
                    if next == '\\'
                        && let Some(escaped) = self.peek().filter(|&escaped| escaped != '\n')
                    {
                        text.push(escaped);
                        self.bump();
                    }
                }
            }
        }
        let text = text.into();
        if quote == Some('"') {
            TokenKind::Text { wide, text }
        } else {
            TokenKind::Char { wide, text }
        }
    }

    fn punct(&mut self, first: char, second: Option<char>) -> TokenKind {
        self.bump();
        if let Some(second) = second
            && let Some(double) = DOUBLE
                .iter()
                .find(|punct| punct.chars().eq([first, second]))
        {
            self.bump();
            return TokenKind::Punct(double);
        }
        match SINGLE.iter().find(|punct| punct.starts_with(first)) {
            Some(single) => TokenKind::Punct(single),
            None => TokenKind::Stray(first),
        }
    }
}

const DOUBLE: [&str; 8] = ["::", "&&", "||", "==", "!=", "<=", ">=", "##"];
const SINGLE: [&str; 25] = [
    "{", "}", "(", ")", "[", "]", "<", ">", ";", ":", ",", "=", "+", "-", "*", "/", "%", "&", "|",
    "^", "~", "!", "?", "#", "@",
];

/// The text behind a backslash at the end of a line; `None` if `text` does not start with one.
fn after_splice(text: &str) -> Option<&str> {
    let rest = text.strip_prefix('\\')?;
    rest.strip_prefix('\n')
        .or_else(|| rest.strip_prefix("\r\n"))
}

fn unterminated(quote: Option<char>, start: Location) -> Diagnostic {
    if quote == Some('"') {
        Diagnostic::error("this string has no end")
            .at(start, "the line ends before the closing `\"`")
            .help("a long string is written in pieces: \"one \" \"two\"")
    } else {
        Diagnostic::error("this character literal has no end")
            .at(start, "the line ends before the closing `'`")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lex(text: &str) -> (Vec<Token>, Vec<Diagnostic>) {
        let mut diagnostics = Diagnostics::default();
        let mut lexer = Lexer::new(0, text.into());
        let mut tokens = Vec::new();
        loop {
            let token = lexer.next(&mut diagnostics);
            if token.kind == TokenKind::End {
                return (tokens, diagnostics.into_sorted());
            }
            tokens.push(token);
        }
    }

    fn spellings(text: &str) -> Vec<String> {
        lex(text).0.iter().map(Token::spelling).collect()
    }

    #[test]
    fn a_continued_line_keeps_the_places_of_what_follows() {
        let (tokens, _) = lex("lo\\\nng a;\nb");
        assert_eq!(tokens[0].spelling(), "long");
        assert_eq!((tokens[1].location.line, tokens[1].location.column), (2, 4));
        assert_eq!((tokens[4].location.line, tokens[4].location.column), (3, 1));
    }

    #[test]
    fn closing_angles_are_single_and_scopes_are_not() {
        assert_eq!(
            spellings("a<b<c>>::d"),
            ["a", "<", "b", "<", "c", ">", ">", "::", "d"]
        );
        assert_eq!(
            spellings("0x1E+1 1.5e-3d .5"),
            ["0x1E", "+", "1", "1.5e-3d", ".5"]
        );
        assert_eq!(
            spellings(r#"L"a\"b" 'x' L'\''"#),
            [r#"L"a\"b""#, "'x'", r"L'\''"]
        );
    }

    #[test]
    fn only_documentation_comments_are_kept() {
        let (tokens, _) = lex("// no\n//// no\n/* no */ /** yes\n * more\n */ a /// b\n;");
        let comments = tokens
            .iter()
            .find(|token| token.is_word("a"))
            .and_then(|token| token.comments.clone());
        assert_eq!(
            comments.expect("`a` is documented")[0].lines,
            ["yes", "more"]
        );
        assert_eq!(
            tokens
                .last()
                .and_then(|token| token.comments.clone())
                .expect("`;` too")[0]
                .lines,
            ["b"]
        );
    }

    #[test]
    fn missing_ends_are_reported_at_the_start() {
        for (text, column) in [("a \"b", 3), ("a 'b", 3), ("ab /* c", 4)] {
            let (_, diagnostics) = lex(text);
            assert_eq!(diagnostics.len(), 1, "{text}");
            assert_eq!(
                diagnostics[0].location().map(|location| location.column),
                Some(column)
            );
        }
    }
}
