//! Macro expansion, with limits on depth and size.

mod definition;
mod expansion;

use std::collections::HashMap;
use std::rc::Rc;

use crate::diagnostic::Diagnostics;
use crate::lexer::{Lexer, Token};
use crate::source::Location;
use expansion::Expansion;

/// The macros that are currently defined.
#[derive(Debug, Default)]
pub(super) struct Macros {
    table: HashMap<Rc<str>, Rc<Macro>>,
    /// The number of tokens that expansion has produced so far. A long one counts as several.
    produced: usize,
    exhausted: bool,
}

#[derive(Debug)]
struct Macro {
    /// `None` for an object-like macro.
    parameters: Option<Vec<Rc<str>>>,
    variadic: bool,
    body: Vec<Token>,
    location: Location,
}

impl Macros {
    pub(super) fn is_defined(&self, name: &str) -> bool {
        self.table.contains_key(name)
    }

    pub(super) fn undefine(&mut self, name: &str) {
        self.table.remove(name);
    }

    /// Expands a whole list.
    pub(super) fn expand_list(
        &mut self,
        tokens: Vec<Token>,
        diagnostics: &mut Diagnostics,
    ) -> Vec<Token> {
        let mut output = Vec::with_capacity(tokens.len());
        Expansion::new(self, tokens, diagnostics).run(&mut output);
        output
    }

    /// Expands `token`. The arguments of a macro may continue in `lexer`.
    pub(super) fn expand_from(
        &mut self,
        token: Token,
        lexer: &mut Lexer,
        diagnostics: &mut Diagnostics,
        output: &mut Vec<Token>,
    ) {
        if !token.word().is_some_and(|word| self.is_defined(word)) {
            output.push(token);
            return;
        }
        let mut expansion = Expansion::new(self, vec![token], diagnostics);
        expansion.lexer = Some(lexer);
        expansion.run(output);
    }
}
