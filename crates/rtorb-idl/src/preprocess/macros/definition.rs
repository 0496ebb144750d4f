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
            diagnostics.push(
                Diagnostic::error("`#define` needs the name of a macro")
                    .at(directive, "expected a name"),
            );
            return;
        };
        let Some(word) = name.word().filter(|word| &***word != "defined") else {
            let label = format!("expected a name, found {}", name.description());
            diagnostics.push(
                Diagnostic::error("this cannot be the name of a macro").at(name.location, label),
            );
            return;
        };
        let has_parameters = rest
            .first()
            .is_some_and(|next| next.is("(") && next.touches(name));
        let definition = if has_parameters {
            match parameters(&rest[1..]) {
                Ok(parameters) => Macro {
                    parameters: Some(parameters.names),
                    variadic: parameters.variadic,
                    body: rest[1 + parameters.length..].to_vec(),
                    location: name.location,
                },
                Err(wrong) => {
                    let location = wrong.map_or(directive, |token| token.location);
                    diagnostics.push(
                        Diagnostic::error(format!("the parameters of macro `{word}` are wrong"))
                            .at(
                                location,
                                "expected names with commas between them and `)` at the end",
                            ),
                    );
                    return;
                }
            }
        } else {
            Macro {
                parameters: None,
                variadic: false,
                body: rest.to_vec(),
                location: name.location,
            }
        };
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

/// The parameters of a macro.
struct Parameters {
    names: Vec<Rc<str>>,
    /// True if the last one takes the remaining arguments.
    variadic: bool,
    /// How many tokens they have, the closing parenthesis included.
    length: usize,
}

/// The parameters up to the closing parenthesis; otherwise the token that is wrong, if there is one.
fn parameters(tokens: &[Token]) -> Result<Parameters, Option<&Token>> {
    let mut names = Vec::new();
    let mut at = 0;
    if tokens.first().is_some_and(|token| token.is(")")) {
        return Ok(Parameters {
            names,
            variadic: false,
            length: 1,
        });
    }
    loop {
        let token = tokens.get(at).ok_or(tokens.last())?;
        let dots = tokens[at..]
            .iter()
            .take_while(|token| token.kind == TokenKind::Stray('.'))
            .count();
        let variadic = dots == 3;
        let name = if variadic {
            "__VA_ARGS__".into()
        } else {
            token.word().cloned().ok_or(Some(token))?
        };
        if names.contains(&name) {
            return Err(Some(token));
        }
        names.push(name);
        at += if variadic { 3 } else { 1 };
        let after = tokens.get(at).ok_or(tokens.last())?;
        at += 1;
        if after.is(")") {
            return Ok(Parameters {
                names,
                variadic,
                length: at,
            });
        }
        if !after.is(",") || variadic {
            return Err(Some(after));
        }
    }
}
