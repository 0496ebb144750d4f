//! `#define`: parameters and body of a macro.

use std::rc::Rc;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::lexer::{Token, TokenKind};
use crate::source::Location;

use super::{Macro, Macros};

impl Macros {
    /// Defines a macro. `line` holds the tokens behind `#define`.
    pub(in crate::preprocess) fn define(
        &mut self,
        line: &[Token],
        directive: Location,
        diagnostics: &mut Diagnostics,
    ) {
        let Some((name, rest)) = line.split_first() else {
            let message = "`#define` needs the name of a macro";
            return diagnostics.error(directive, message, "expected a name");
        };
        let Some(word) = name.word().filter(|word| &***word != "defined") else {
            let label = format!("expected a name, found {}", name.description());
            return diagnostics.error(name.location, "this cannot be the name of a macro", label);
        };
        let mut definition = Macro {
            parameters: None,
            variadic: false,
            body: rest.to_vec(),
            location: name.location,
        };
        if rest
            .first()
            .is_some_and(|next| next.is("(") && next.touches(name))
            && let Err(wrong) = definition.read_parameters(&rest[1..])
        {
            let message = format!("the parameters of macro `{word}` are wrong");
            let label = "expected names with commas between them and `)` at the end";
            return diagnostics.error(wrong.unwrap_or(directive), message, label);
        }
        self.insert(word.clone(), definition, diagnostics);
    }

    fn insert(&mut self, name: Rc<str>, definition: Macro, diagnostics: &mut Diagnostics) {
        let spelled = |tokens: &[Token]| tokens.iter().map(Token::spelling).collect::<Vec<_>>();
        if let Some(old) = self.table.get(&name)
            && (spelled(&old.body) != spelled(&definition.body)
                || old.parameters != definition.parameters)
        {
            diagnostics.push(
                Diagnostic::warning(format!(
                    "the macro `{name}` is defined again with another meaning"
                ))
                .at(definition.location, "this definition holds from here on")
                .at(old.location, "first defined here"),
            );
        }
        self.table.insert(name, Rc::new(definition));
    }
}

impl Macro {
    /// Reads the parameters from `tokens`, up to the closing parenthesis, and the body behind it. The error is the place of
    /// the wrong token, or of the last one if the closing parenthesis is missing.
    fn read_parameters(&mut self, tokens: &[Token]) -> Result<(), Option<Location>> {
        let last = tokens.last().map(|token| token.location);
        let mut names = Vec::new();
        let mut open = !tokens.first().is_some_and(|token| token.is(")"));
        let mut at = usize::from(!open);
        while open {
            let token = tokens.get(at).ok_or(last)?;
            let dots = tokens[at..]
                .iter()
                .take_while(|token| token.kind == TokenKind::Stray('.'))
                .count();
            self.variadic = dots == 3;
            let name = if self.variadic {
                "__VA_ARGS__".into()
            } else {
                token.word().cloned().ok_or(Some(token.location))?
            };
            if names.contains(&name) {
                return Err(Some(token.location));
            }
            names.push(name);
            at += if self.variadic { 3 } else { 1 };
            let after = tokens.get(at).ok_or(last)?;
            at += 1;
            open = !after.is(")");
            if open && (self.variadic || !after.is(",")) {
                return Err(Some(after.location));
            }
        }
        self.parameters = Some(names);
        self.body = tokens[at..].to_vec();
        Ok(())
    }
}
