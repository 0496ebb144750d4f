//! Template modules (IDL 4.2, 7.4.12): an instance is the module's text with the arguments in the place of the parameters.

use std::rc::Rc;

use crate::ast::{Definition, DefinitionKind, ScopedName};
use crate::diagnostic::Diagnostic;
use crate::lexer::{Token, TokenKind};

use super::{Parsed, Parser, ReportedError};

/// A template module whose declaration has been read.
#[derive(Debug)]
pub(super) struct Template {
    /// The names of the modules around it, and its own.
    path: Vec<Rc<str>>,
    parameters: Vec<Rc<str>>,
    /// The tokens from its `{` to its `}`.
    body: Rc<[Token]>,
}

impl Parser<'_> {
    /// `module M<typename T> { ... }`, or `module ::A::M<long> N`, after the keyword. An `alias` in a template module is such an
    /// instance too.
    pub(super) fn template_module(&mut self, scoped: bool) -> Parsed<DefinitionKind> {
        let template = self.scoped_name("a name for the module")?;
        if !self.peek().is("<") {
            let location = template.location();
            let diagnostic = Diagnostic::error("a module is declared by a simple name")
                .at(location, "a name with `::` cannot be declared")
                .help("write one module inside the other: `module A { module B { ... }; };`");
            return Err(self.fail(diagnostic));
        }
        let arguments = self.template_arguments()?;
        if self.peek().is("{") && !scoped {
            let first = self.at;
            self.skip_braces("the module")?;
            let name = template.first().clone();
            let own_name = Rc::from(name.text.as_str());
            self.templates.push(Template {
                path: self.modules.iter().cloned().chain([own_name]).collect(),
                parameters: arguments.iter().filter_map(|one| name_of(one)).collect(),
                body: self.tokens[first..self.at].into(),
            });
            return Ok(DefinitionKind::TemplateModule { name });
        }
        let name = self.declared("`{`, or a name for the instance of the module")?;
        let Some(found) = self.find_template(&template) else {
            return Ok(DefinitionKind::TemplateInstance { template, name });
        };
        let (wanted, given) = (found.parameters.len(), arguments.len());
        if wanted != given {
            let message = format!("`{template}` has {wanted} parameters");
            let label = format!("{given} arguments are given");
            return Err(self.error(template.location(), message, label));
        }
        let tokens = instantiated(found, &arguments);
        let body = self.parse_instance(&name.text, tokens)?;
        Ok(DefinitionKind::Module { name, body })
    }

    /// The tokens of each parameter or argument between `<` and `>`.
    fn template_arguments(&mut self) -> Parsed<Vec<Vec<Token>>> {
        let open = self.bump().location;
        let mut nested = 1usize;
        let mut arguments = vec![Vec::new()];
        loop {
            let token = self.peek();
            if self.at_end() || token.is(";") || token.is("{") || token.is("}") {
                let message = "the parameters of the module have no end";
                return Err(self.error(open, message, "this `<` is never closed"));
            }
            let token = self.bump();
            nested += usize::from(token.is("<") || token.is("("));
            nested -= usize::from(token.is(">") || token.is(")")).min(nested);
            if nested == 0 {
                return Ok(arguments);
            }
            if nested == 1 && token.is(",") {
                arguments.push(Vec::new());
            } else if let Some(last) = arguments.last_mut() {
                last.push(token);
            }
        }
    }

    /// The template that `name` refers to here, searched from the innermost module outwards.
    fn find_template(&self, name: &ScopedName) -> Option<&Template> {
        let outward = (0..=self.modules.len()).rev();
        let mut around = outward.filter(|&length| !name.absolute || length == 0);
        around.find_map(|length| {
            let path = || {
                let parts = name.parts.iter().map(|part| &*part.text);
                self.modules[..length]
                    .iter()
                    .map(|module| &**module)
                    .chain(parts)
            };
            let mut templates = self.templates.iter().rev();
            templates.find(|one| one.path.iter().map(|part| &**part).eq(path()))
        })
    }

    /// Parses the body of an instance called `name` in the place of the rest of the input.
    fn parse_instance(&mut self, name: &str, tokens: Vec<Token>) -> Parsed<Vec<Definition>> {
        if self.instantiated > INSTANCE_TOKENS_MAX {
            return Err(ReportedError);
        }
        self.instantiated += tokens.len();
        if self.instantiated > INSTANCE_TOKENS_MAX {
            let label = format!("the limit is {INSTANCE_TOKENS_MAX} tokens");
            let message = "the instances of template modules are too long";
            return Err(self.error(self.last(), message, label));
        }
        let tokens = std::mem::replace(&mut self.tokens, tokens);
        let at = std::mem::take(&mut self.at);
        // Pragmas inside a template apply where the template is declared.
        let events = std::mem::take(&mut self.events);
        let next_event = std::mem::take(&mut self.next_event);
        let failed_at = self.failed_at.take();
        let body = self.nested(|parser| parser.module_body(name));
        self.tokens = tokens;
        self.at = at;
        self.events = events;
        self.next_event = next_event;
        self.failed_at = failed_at;
        body
    }
}

/// The name of a parameter: its last word.
fn name_of(parameter: &[Token]) -> Option<Rc<str>> {
    parameter.last().and_then(Token::word).cloned()
}

/// The body of `template` with `arguments` in the place of its parameters.
fn instantiated(template: &Template, arguments: &[Vec<Token>]) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut is_member = false;
    for token in template.body.iter() {
        let mut parameters = template.parameters.iter();
        let place = token
            .word()
            .filter(|_| !is_member)
            .and_then(|word| parameters.position(|parameter| parameter == word));
        match place {
            Some(place) => tokens.extend_from_slice(&arguments[place]),
            None => tokens.push(token.clone()),
        }
        is_member = token.is("::");
    }
    if let Some(last) = tokens.last() {
        tokens.push(Token::new(TokenKind::End, last.location));
    }
    tokens
}

/// The most tokens of all instances together.
const INSTANCE_TOKENS_MAX: usize = 200_000;
