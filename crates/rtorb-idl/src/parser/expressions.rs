//! Constant expressions (CORBA 3.3 part 1, 7.10.1).

use crate::ast::{Expression, ExpressionKind, Operand};
use crate::diagnostic::Diagnostic;
use crate::lexer::{Token, TokenKind};
use crate::literal;
use crate::source::Location;
use crate::tree::Value;

use super::{Parsed, Parser};

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> Parsed<Expression> {
        self.nested(|parser| parser.binary(0))
    }

    /// An expression between `<` and `>`, where `>>` closes two of them.
    pub(super) fn bound(&mut self) -> Parsed<Expression> {
        self.angles += 1;
        let bound = self.expression();
        self.angles -= 1;
        bound
    }

    fn binary(&mut self, level: usize) -> Parsed<Expression> {
        if level == LEVELS.len() {
            return self.unary();
        }
        let mut left = self.binary(level + 1)?;
        while let Some(operator) = self.operator(level) {
            self.bump();
            if operator.len() == 2 {
                self.bump();
            }
            let right = self.binary(level + 1)?;
            left = self.joined(operator, left, right)?;
        }
        Ok(left)
    }

    fn operator(&self, level: usize) -> Option<&'static str> {
        let token = self.peek();
        let TokenKind::Punct(punct) = token.kind else {
            return None;
        };
        let next = self.peek_at(1);
        let doubled = next.is(punct) && next.touches(token);
        let operator = match punct {
            "<" if doubled => "<<",
            ">" if doubled && self.angles == 0 => ">>",
            "<" | ">" => return None,
            punct => punct,
        };
        LEVELS[level].contains(&operator).then_some(operator)
    }

    fn joined(
        &mut self,
        operator: &'static str,
        left: Expression,
        right: Expression,
    ) -> Parsed<Expression> {
        let depth = left.depth.max(right.depth) + 1;
        if depth > EXPRESSION_DEPTH_MAX {
            let label = format!("more than {EXPRESSION_DEPTH_MAX} operators in a row");
            return Err(self.error(left.location, "this expression is too long", label));
        }
        let location = left.location.to(right.location);
        let kind = ExpressionKind::Binary {
            operator,
            operands: Box::new((left, right)),
        };
        Ok(Expression {
            location,
            depth,
            kind,
        })
    }

    fn unary(&mut self) -> Parsed<Expression> {
        let token = self.peek().clone();
        let TokenKind::Punct(operator @ ("-" | "+" | "~")) = token.kind else {
            return self.primary(&token);
        };
        self.bump();
        let operand = self.nested(Self::unary)?;
        let location = token.location.to(operand.location);
        let depth = operand.depth + 1;
        Ok(Expression {
            location,
            depth,
            kind: ExpressionKind::Unary {
                operator,
                operand: Box::new(operand),
            },
        })
    }

    fn primary(&mut self, token: &Token) -> Parsed<Expression> {
        let kind = match &token.kind {
            TokenKind::Punct("(") => return self.parenthesized(),
            TokenKind::Punct("::") => return self.named(),
            TokenKind::Word(word) => match &**word {
                "TRUE" => ExpressionKind::Value(Value::Boolean(true).into()),
                "FALSE" => ExpressionKind::Value(Value::Boolean(false).into()),
                _ => return self.named(),
            },
            TokenKind::Number(text) => match literal::number(text) {
                Ok(value) => ExpressionKind::Value(value.into()),
                Err(bad) => self.bad_literal(bad, token.location),
            },
            TokenKind::Char { wide, text } => self.character(*wide, text, token.location),
            TokenKind::Text { .. } => return Ok(self.text()),
            _ => return Err(self.expected("a value")),
        };
        self.bump();
        Ok(Expression::single(token.location, kind))
    }

    fn parenthesized(&mut self) -> Parsed<Expression> {
        let angles = std::mem::take(&mut self.angles);
        let open = self.bump().location;
        let inner = self.expression();
        self.angles = angles;
        let mut inner = inner?;
        let close = self.expect(")", "to close the parenthesis")?;
        inner.location = open.to(close);
        Ok(inner)
    }

    fn named(&mut self) -> Parsed<Expression> {
        let token = self.peek();
        if token.is_word("true") || token.is_word("false") {
            let right = token.spelling().to_uppercase();
            let location = token.location;
            let message = format!("boolean values are in capitals: `{right}`");
            self.error(location, message, format!("write `{right}`"));
            self.bump();
            return Ok(Expression::single(location, ExpressionKind::Wrong));
        }
        let name = self.scoped_name("a value")?;
        let location = name.location();
        Ok(Expression::single(location, ExpressionKind::Name(name)))
    }

    fn character(&mut self, wide: bool, text: &str, location: Location) -> ExpressionKind {
        let bad = match literal::characters(text, wide).as_deref() {
            Ok(&[value]) => {
                let value = Value::Char(value);
                return ExpressionKind::Value(Operand { value, wide });
            }
            Ok([]) => Diagnostic::error("a character literal with no character"),
            Ok(_) => Diagnostic::error("a character literal with more than one character")
                .help("strings take double quotes"),
            Err(bad) => bad.clone(),
        };
        self.bad_literal(bad, location)
    }

    /// Adjacent string literals are one; a hexadecimal escape does not run on into the next (7.2.5.3).
    fn text(&mut self) -> Expression {
        let first = self.peek().clone();
        let mut value = String::new();
        let mut is_wide = None;
        let mut last = first.location;
        let mut wrong = None;
        while let TokenKind::Text { wide, text } = &self.peek().kind.clone() {
            last = self.here();
            if *is_wide.get_or_insert(*wide) != *wide {
                let bad = Diagnostic::error("a string and a wide string cannot be joined");
                wrong = Some(self.bad_literal(bad, last));
            }
            match literal::characters(text, *wide) {
                Ok(characters) => value.extend(characters),
                Err(bad) => wrong = Some(self.bad_literal(bad, last)),
            }
            self.bump();
        }
        let wide = is_wide == Some(true);
        let value = Value::Text(value);
        let kind = wrong.unwrap_or(ExpressionKind::Value(Operand { value, wide }));
        Expression::single(first.location.to(last), kind)
    }

    fn bad_literal(&mut self, bad: Diagnostic, location: Location) -> ExpressionKind {
        self.diagnostics.push(bad.at(location, ""));
        ExpressionKind::Wrong
    }

    /// Reads a string literal where the grammar requires one.
    pub(super) fn string_literal(&mut self, what: &str) -> Parsed<(String, Location)> {
        if !matches!(self.peek().kind, TokenKind::Text { .. }) {
            return Err(self.expected(what));
        }
        let Expression { kind, location, .. } = self.text();
        let ExpressionKind::Value(Operand {
            value: Value::Text(text),
            wide,
        }) = kind
        else {
            return Ok((String::new(), location));
        };
        if wide {
            let bad = Diagnostic::error("a wide string cannot stand here");
            self.bad_literal(bad, location);
            return Ok((String::new(), location));
        }
        Ok((text, location))
    }
}

/// The binary operators, from the loosest to the tightest.
const LEVELS: [&[&str]; 6] = [
    &["|"],
    &["^"],
    &["&"],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];
/// The most levels of expressions. The checker evaluates expressions by recursion.
const EXPRESSION_DEPTH_MAX: u32 = 300;
