//! Warns about constructs that another IDL compiler refuses, so that both compilers can share files.

use crate::OtherCompiler;
use crate::ast::{
    AttributeDcl, Constructed, ConstructedKind, Definition, DefinitionKind, Name, TypeKind,
    TypeSpec,
};
use crate::diagnostic::Diagnostic;
use crate::parser::Specification;
use crate::source::{Location, SourceFile};

use super::Checker;

impl Checker<'_> {
    /// Warns that the other compiler refuses `what`, and advises to hide it. Does nothing if the files are not shared.
    pub(super) fn warn_of_refusal(&mut self, at: Location, what: &str) {
        self.warn_of_form(
            at,
            what,
            "hide it from other compilers with `#ifdef __RTORB_IDL__` and `#endif` on lines of their own",
        );
    }

    /// Warns that the other compiler refuses `what`. `remedy` names a form that both accept.
    pub(super) fn warn_of_form(&mut self, at: Location, what: &str, remedy: &str) {
        let Some(other) = self.shared_with else {
            return;
        };
        let OtherCompiler::Omniidl = other;
        let warning = Diagnostic::warning(format!("omniidl refuses {what}"))
            .at(at, "only this compiler reads it")
            .help(remedy);
        self.diagnostics.push(warning);
    }

    /// Warns about everything that the other compiler cannot parse. The checker finds the rest where it looks up names.
    pub(super) fn check_shared(&mut self, specification: &Specification) {
        if self.shared_with.is_none() {
            return;
        }
        for annotation in &specification.annotations {
            self.warn_of_refusal(annotation.location, "annotations");
        }
        for &comma in &specification.last_commas {
            self.warn_of_form(comma, "a comma behind the last enumerator", "leave it out");
        }
        self.shared_definitions(&specification.definitions);
    }

    /// Warns about a name of module CORBA that the other compiler's `orb.idl` does not declare, or that is used without it.
    pub(super) fn check_supply_shared(&mut self, name: &str, at: Location) {
        let mut files = self.sources.files().iter();
        let is_included =
            |file: &SourceFile| file.includer().is_some() && file.name().ends_with("orb.idl");
        let is_known = name.ends_with("Seq") || OMNIORB_NAMES.contains(&name);
        if !is_known || OMNIORB_LACKS.contains(&name) {
            self.warn_of_refusal(
                at,
                &format!("`CORBA::{name}`, which its orb.idl does not declare"),
            );
        } else if !files.any(is_included) {
            let what = "names of module CORBA without `#include <orb.idl>`";
            self.warn_of_form(
                at,
                what,
                "write `#include <orb.idl>` at the top of the file",
            );
        }
    }

    fn shared_definitions(&mut self, definitions: &[Definition]) {
        for definition in definitions {
            self.shared_definition(&definition.declared);
        }
    }

    fn shared_definition(&mut self, declared: &DefinitionKind) {
        match declared {
            DefinitionKind::Module { name, body } => {
                let is_empty = body
                    .iter()
                    .all(|one| matches!(one.declared, DefinitionKind::Event(_)));
                self.refused_if(is_empty, name, "a module without declarations");
                self.shared_definitions(body);
            }
            DefinitionKind::Interface(interface) => {
                self.shared_definitions(interface.body.as_deref().unwrap_or_default());
            }
            DefinitionKind::Valuetype(valuetype) => {
                self.refused_if(valuetype.is_event, &valuetype.name, "eventtypes");
                self.shared_definitions(valuetype.body.as_deref().unwrap_or_default());
            }
            DefinitionKind::Constructed(constructed) => self.shared_constructed(constructed),
            DefinitionKind::ValueBox { ty, .. } => self.shared_type(ty),
            DefinitionKind::Typedef(declarators) => self.shared_type(&declarators.ty),
            DefinitionKind::Exception { members, .. } => {
                members
                    .iter()
                    .for_each(|member| self.shared_type(&member.declared.ty));
            }
            DefinitionKind::State { members, .. } => self.shared_type(&members.ty),
            DefinitionKind::Operation(operation) | DefinitionKind::Factory(operation) => {
                self.shared_type(&operation.returns);
                operation
                    .parameters
                    .iter()
                    .for_each(|parameter| self.shared_type(&parameter.ty));
            }
            DefinitionKind::Attribute(attribute) => self.shared_attribute(attribute),
            DefinitionKind::TypeId { location, .. } => self.warn_of_refusal(*location, "`typeid`"),
            DefinitionKind::TypePrefix { location, .. } => {
                self.warn_of_refusal(*location, "`typeprefix`");
            }
            DefinitionKind::Import { location, .. } => self.warn_of_refusal(*location, "`import`"),
            DefinitionKind::Component(component) => {
                self.refused_if(true, &component.name, "components");
            }
            DefinitionKind::TemplateModule { name }
            | DefinitionKind::TemplateInstance { name, .. } => {
                self.refused_if(true, name, "template modules");
            }
            DefinitionKind::AnnotationType { name } => self.refused_if(true, name, "annotations"),
            DefinitionKind::Constant { .. }
            | DefinitionKind::Native { .. }
            | DefinitionKind::Port(_)
            | DefinitionKind::Event(_) => {}
        }
    }

    fn shared_attribute(&mut self, attribute: &AttributeDcl) {
        self.shared_type(&attribute.ty);
        if let Some(raised) = attribute
            .get_raises
            .first()
            .or(attribute.set_raises.first())
        {
            self.warn_of_refusal(raised.location(), "exceptions of attributes");
        }
    }

    fn shared_constructed(&mut self, constructed: &Constructed) {
        let name = &constructed.name;
        match &constructed.kind {
            ConstructedKind::Struct { base, members } => {
                self.refused_if(base.is_some(), name, "structs that inherit");
                let is_empty = base.is_none() && members.as_ref().is_some_and(Vec::is_empty);
                self.refused_if(is_empty, name, "a struct without members");
                let members = members.iter().flatten();
                members.for_each(|member| self.shared_type(&member.declared.ty));
            }
            ConstructedKind::Union(body) => {
                let cases = body.iter().flat_map(|body| &body.cases);
                cases.for_each(|case| self.shared_type(&case.declared.ty));
            }
            ConstructedKind::Enum { .. } => {}
            ConstructedKind::Bitset { .. } => self.refused_if(true, name, "bitsets"),
            ConstructedKind::Bitmask { .. } => self.refused_if(true, name, "bitmasks"),
        }
    }

    fn shared_type(&mut self, spec: &TypeSpec) {
        match &spec.kind {
            TypeKind::Map { .. } => self.warn_of_refusal(spec.location, "maps"),
            TypeKind::Sequence { element, .. } => {
                if let TypeKind::Sequence { .. } = element.kind
                    && spec.location.behind() == element.location.behind().behind()
                {
                    let what = "`>>` without a space between the two";
                    self.warn_of_form(spec.location, what, "write `> >`");
                }
                self.shared_type(element);
            }
            TypeKind::Constructed(constructed) => self.shared_constructed(constructed),
            _ => {}
        }
    }

    fn refused_if(&mut self, is_refused: bool, name: &Name, what: &str) {
        if is_refused {
            self.warn_of_refusal(name.location, what);
        }
    }
}

/// The names of module CORBA in omniORB's `orb.idl`, beside those of sequences.
const OMNIORB_NAMES: [&str; 8] = [
    "Identifier",
    "PRIVATE_MEMBER",
    "PUBLIC_MEMBER",
    "RepositoryId",
    "StringValue",
    "VersionSpec",
    "Visibility",
    "WStringValue",
];
/// The sequences of module CORBA that omniORB's `orb.idl` lacks.
const OMNIORB_LACKS: [&str; 9] = [
    "IdentifierSeq",
    "Int8Seq",
    "InterfaceDefSeq",
    "PolicyTypeSeq",
    "RepositoryIdSeq",
    "RequestSeq",
    "TypeCodeSeq",
    "UInt8Seq",
    "ValueDefSeq",
];
