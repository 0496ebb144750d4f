//! Components, homes, ports and connectors (IDL 4.2, 7.4.8 to 7.4.11).

use crate::ast::{ComponentDcl, DefinitionKind, PortDcl, TypeKind, TypeSpec};
use crate::tree::Type;

use super::definitions::ParsedDefinition;
use super::{Parsed, Parser};

impl Parser<'_> {
    pub(super) fn component(&mut self) -> Parsed<DefinitionKind> {
        let what = match self.bump().spelling().as_str() {
            "home" => "home",
            "porttype" => "porttype",
            "connector" => "connector",
            _ => "component",
        };
        let name = self.declared(&format!("a name for the {what}"))?;
        let forward = self.peek().is(";");
        let base = self.after(":", |parser| {
            parser.scoped_name(&format!("the name of a base {what}"))
        })?;
        let supports = self.names_after("supports", "the name of an interface")?;
        let mut others = Vec::new();
        if what == "home" && !forward {
            self.expect_word("manages", "and the component of the home")?;
            others.push(self.scoped_name("the name of a component")?);
            if self.take_word("primarykey").is_some() {
                others.push(self.scoped_name("the type of the key")?);
            }
        }
        let element = if what == "home" {
            Self::home_element
        } else {
            Self::component_element
        };
        let body = (!forward).then(|| self.body(&format!("the {what}"), element));
        Ok(DefinitionKind::Component(ComponentDcl {
            what,
            name,
            base,
            supports,
            others,
            body: body.transpose()?,
        }))
    }

    fn component_element(&mut self) -> Parsed<ParsedDefinition> {
        let word = self.peek().word().cloned();
        let kind = match word.as_deref() {
            Some("attribute" | "readonly") => self.attribute()?,
            Some("provides" | "emits" | "publishes" | "consumes" | "port" | "mirrorport") => {
                self.bump();
                self.port()?
            }
            Some("uses") => {
                self.bump();
                self.take_word("multiple");
                self.port()?
            }
            _ => return Err(self.expected(
                "`provides`, `uses`, `emits`, `publishes`, `consumes`, `port`, `attribute` or `}`",
            )),
        };
        Ok((kind, "the port"))
    }

    fn port(&mut self) -> Parsed<DefinitionKind> {
        let location = self.here();
        let kind = match self.take_word("Object") {
            Some(_) => TypeKind::Basic(Type::Object),
            None => TypeKind::Named(self.scoped_name("the type of the port")?),
        };
        let ty = TypeSpec { location, kind };
        Ok(DefinitionKind::Port(PortDcl {
            ty,
            name: self.declared("a name for the port")?,
        }))
    }

    fn home_element(&mut self) -> Parsed<ParsedDefinition> {
        let token = self.peek();
        if (token.is_word("factory") || token.is_word("finder")) && self.peek_at(2).is("(") {
            Ok((self.factory()?, "the factory"))
        } else {
            self.export()
        }
    }
}
