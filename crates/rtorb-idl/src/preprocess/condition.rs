//! The constant expressions of `#if` and `#elif`.

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::lexer::{Token, TokenKind};
use crate::literal;
use crate::source::Location;
use crate::tree::Value;

use super::macros::Macros;

/// True if the expression is not 0. Reports a wrong expression and returns false.
pub(super) fn holds(
    line: Vec<Token>,
    at: Location,
    macros: &mut Macros,
    diagnostics: &mut Diagnostics,
) -> bool {
    let tokens = macros.expand_list(replace_defined(&line, macros), diagnostics);
    let mut reader = Reader {
        tokens: &tokens,
        at: 0,
        depth: 0,
        unused: 0,
        end: at,
    };
    let value = reader.conditional().and_then(|value| match reader.peek() {
        None => Ok(value),
        Some(token) => Err(reader.wrong(format!(
            "expected an operator, found {}",
            token.description()
        ))),
    });
    match value {
        Ok(value) => value != 0,
        Err(diagnostic) => {
            diagnostics.push(*diagnostic);
            false
        }
    }
}

struct Reader<'t> {
    tokens: &'t [Token],
    at: usize,
    depth: usize,
    /// The number of operators around the current place that do not use its value. There, an expression need not have one.
    unused: usize,
    end: Location,
}

type EvaluationResult = Result<i128, Box<Diagnostic>>;

impl Reader<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn take(&mut self, punct: &str) -> bool {
        let found = self.peek().is_some_and(|token| token.is(punct));
        self.at += usize::from(found);
        found
    }

    fn wrong(&self, label: String) -> Box<Diagnostic> {
        let location = self.peek().map_or(self.end, |token| token.location);
        Box::new(Diagnostic::error("this condition is not a valid expression").at(location, label))
    }

    fn deepen(&mut self) -> Result<(), Box<Diagnostic>> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            let label = format!("more than {DEPTH_MAX} expressions within each other");
            return Err(self.wrong(label));
        }
        Ok(())
    }

    fn conditional(&mut self) -> EvaluationResult {
        self.deepen()?;
        let condition = self.binary(0)?;
        let value = if self.take("?") {
            let yes = self.used_if(condition != 0, Self::conditional)?;
            if !self.take(":") {
                return Err(self.wrong("expected `:`".to_owned()));
            }
            let no = self.used_if(condition == 0, Self::conditional)?;
            if condition != 0 { yes } else { no }
        } else {
            condition
        };
        self.depth -= 1;
        Ok(value)
    }

    /// An expression of operators of at least this level; level 0 binds loosest.
    fn binary(&mut self, level: usize) -> EvaluationResult {
        let mut left = self.unary()?;
        while let Some((operator, found)) = self.operator().filter(|&(_, found)| found >= level) {
            let place = self.peek().map_or(self.end, |token| token.location);
            self.at += if matches!(operator, "<<" | ">>") {
                2
            } else {
                1
            };
            self.deepen()?;
            let is_used = !matches!((operator, left != 0), ("&&", false) | ("||", true));
            let right = self.used_if(is_used, |reader| reader.binary(found + 1))?;
            self.depth -= 1;
            let value = apply(operator, left, right).or((self.unused > 0).then_some(0));
            left = value.ok_or_else(|| {
                Box::new(
                    Diagnostic::error("this condition has no value")
                        .at(place, "division by zero or overflow"),
                )
            })?;
        }
        Ok(left)
    }

    /// Reads an expression. If its value is not used, it need not have one.
    fn used_if(
        &mut self,
        is_used: bool,
        read: impl FnOnce(&mut Self) -> EvaluationResult,
    ) -> EvaluationResult {
        self.unused += usize::from(!is_used);
        let value = read(self);
        self.unused -= usize::from(!is_used);
        value
    }

    fn operator(&self) -> Option<(&'static str, usize)> {
        let token = self.peek()?;
        let TokenKind::Punct(punct) = token.kind else {
            return None;
        };
        let doubled = self
            .tokens
            .get(self.at + 1)
            .is_some_and(|next| next.is(punct) && next.touches(token));
        let operator = match (punct, doubled) {
            ("<", true) => "<<",
            (">", true) => ">>",
            (punct, _) => punct,
        };
        let level = LEVELS.iter().position(|level| level.contains(&operator))?;
        Some((operator, level))
    }

    fn unary(&mut self) -> EvaluationResult {
        let mut operators = Vec::new();
        while let Some(TokenKind::Punct(punct @ ("!" | "-" | "+" | "~"))) =
            self.peek().map(|token| &token.kind)
        {
            operators.push(*punct);
            self.at += 1;
        }
        let value = self.primary()?;
        Ok(operators
            .iter()
            .rev()
            .fold(value, |value, &operator| match operator {
                "!" => i128::from(value == 0),
                "-" => value.saturating_neg(),
                "~" => !value,
                _ => value,
            }))
    }

    fn primary(&mut self) -> EvaluationResult {
        let Some(token) = self.peek().cloned() else {
            return Err(self.wrong("expected a value".to_owned()));
        };
        if self.take("(") {
            let value = self.conditional()?;
            return if self.take(")") {
                Ok(value)
            } else {
                Err(self.wrong("expected `)`".to_owned()))
            };
        }
        let value = match &token.kind {
            TokenKind::Number(text) => number(text),
            TokenKind::Char { wide, text } => match literal::characters(text, *wide).as_deref() {
                Ok([one]) => Some(i128::from(u32::from(*one))),
                _ => None,
            },
            TokenKind::Word(word) => Some(i128::from(matches!(&**word, "true" | "TRUE"))),
            _ => None,
        };
        let value = value.ok_or_else(|| {
            self.wrong(format!("expected a number, found {}", token.description()))
        })?;
        self.at += 1;
        Ok(value)
    }
}

/// The binary operators, from the loosest to the tightest.
const LEVELS: [&[&str]; 10] = [
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<", ">", "<=", ">="],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];
const DEPTH_MAX: usize = 100;

fn apply(operator: &str, left: i128, right: i128) -> Option<i128> {
    let shift = u32::try_from(right).ok().filter(|&shift| shift < 64);
    Some(match operator {
        "||" => i128::from(left != 0 || right != 0),
        "&&" => i128::from(left != 0 && right != 0),
        "|" => left | right,
        "^" => left ^ right,
        "&" => left & right,
        "==" => i128::from(left == right),
        "!=" => i128::from(left != right),
        "<" => i128::from(left < right),
        ">" => i128::from(left > right),
        "<=" => i128::from(left <= right),
        ">=" => i128::from(left >= right),
        "<<" => left.checked_mul(1i128.checked_shl(shift?)?)?,
        ">>" => left >> shift?,
        "+" => left.checked_add(right)?,
        "-" => left.checked_sub(right)?,
        "*" => left.checked_mul(right)?,
        "/" => left.checked_div(right)?,
        "%" => left.checked_rem(right)?,
        _ => return None,
    })
}

/// The value of a number. Accepts the suffixes of C, because some files are shared with C.
fn number(text: &str) -> Option<i128> {
    match literal::number(text.trim_end_matches(['u', 'U', 'l', 'L'])) {
        Ok(Value::Integer(value)) => Some(value),
        _ => None,
    }
}

/// Replaces `defined X` and `defined(X)` by 1 or 0, before macros are expanded.
fn replace_defined(line: &[Token], macros: &Macros) -> Vec<Token> {
    let mut output = Vec::with_capacity(line.len());
    let mut rest = line;
    while let [token, after @ ..] = rest {
        let (name, length) = match after {
            [name, ..] if name.word().is_some() => (name.word(), 1),
            [open, name, close, ..] if open.is("(") && close.is(")") => (name.word(), 3),
            _ => (None, 0),
        };
        let mut token = token.clone();
        rest = after;
        if let Some(name) = name.filter(|_| token.is_word("defined")) {
            let defined = u8::from(macros.is_defined(name));
            token.kind = TokenKind::Number(defined.to_string().into());
            rest = &after[length..];
        }
        output.push(token);
    }
    output
}
