//! The syntax tree: the declarations as they are written. Names are not resolved yet.

use crate::preprocess::EventKind;
use crate::source::Location;
use crate::tree::{Annotation, Direction, InterfaceFlavour, Type, Value};

/// The comments and annotations before a declaration.
#[derive(Clone, Debug, Default)]
pub(crate) struct Preamble {
    pub(crate) documentation: Vec<String>,
    pub(crate) annotations: Vec<Annotation>,
}

/// An identifier without its escaping underscore.
#[derive(Clone, Debug)]
pub(crate) struct Name {
    pub(crate) text: String,
    pub(crate) location: Location,
}

/// `A::B` or `::A::B`.
#[derive(Clone, Debug)]
pub(crate) struct ScopedName {
    pub(crate) absolute: bool,
    /// At least one.
    pub(crate) parts: Vec<Name>,
}

impl ScopedName {
    pub(crate) fn first(&self) -> &Name {
        &self.parts[0]
    }

    pub(crate) fn last(&self) -> &Name {
        &self.parts[self.parts.len() - 1]
    }

    pub(crate) fn location(&self) -> Location {
        self.first().location.to(self.last().location)
    }
}

impl std::fmt::Display for ScopedName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (at, part) in self.parts.iter().enumerate() {
            let before = if at > 0 || self.absolute { "::" } else { "" };
            write!(f, "{before}{}", part.text)?;
        }
        Ok(())
    }
}

/// A declaration with the comments and annotations before it.
#[derive(Clone, Debug)]
pub(crate) struct Documented<T> {
    pub(crate) preamble: Preamble,
    pub(crate) declared: T,
}

/// Anything that may stand in a module, an interface, a valuetype or a component.
pub(crate) type Definition = Documented<DefinitionKind>;
/// The members of a struct, an exception or the state of a valuetype that are declared together.
pub(crate) type MemberDcl = Documented<Declarators>;
/// A name in an enum, a bitmask or a bitset.
pub(crate) type EnumeratorDcl = Documented<Name>;
/// A member of a union.
pub(crate) type Case = Documented<CaseDcl>;

#[derive(Clone, Debug)]
pub(crate) enum DefinitionKind {
    Module {
        name: Name,
        body: Vec<Definition>,
    },
    Interface(InterfaceDcl),
    Valuetype(ValuetypeDcl),
    ValueBox {
        name: Name,
        ty: TypeSpec,
    },
    Constructed(Constructed),
    Exception {
        name: Name,
        members: Vec<MemberDcl>,
    },
    Typedef(Declarators),
    Constant {
        ty: TypeSpec,
        name: Name,
        value: Expression,
    },
    Native {
        name: Name,
    },
    Operation(OperationDcl),
    /// A factory of a valuetype, or a factory or finder of a home.
    Factory(OperationDcl),
    Attribute(AttributeDcl),
    State {
        public: bool,
        members: Declarators,
    },
    TypeId {
        name: ScopedName,
        id: String,
        location: Location,
    },
    TypePrefix {
        name: ScopedName,
        prefix: String,
        location: Location,
    },
    Import {
        name: Option<ScopedName>,
        location: Location,
    },
    Component(ComponentDcl),
    Port(PortDcl),
    /// `module M<typename T> { ... };`: its contents have a meaning only in instances.
    TemplateModule {
        name: Name,
    },
    /// `module M<long> N;`
    TemplateInstance {
        template: ScopedName,
        name: Name,
    },
    /// `@annotation name { ... };`
    AnnotationType {
        name: Name,
    },
    /// A pragma, or the begin or end of a file.
    Event(EventKind),
}

/// A type that is declared where it is used, too: `struct`, `union`, `enum`, `bitset`, `bitmask`.
#[derive(Clone, Debug)]
pub(crate) struct Constructed {
    pub(crate) name: Name,
    pub(crate) kind: ConstructedKind,
}

#[derive(Clone, Debug)]
pub(crate) enum ConstructedKind {
    /// `members` is `None` for a forward declaration.
    Struct {
        base: Option<ScopedName>,
        members: Option<Vec<MemberDcl>>,
    },
    /// `None` for a forward declaration.
    Union(Option<UnionBody>),
    Enum {
        enumerators: Vec<EnumeratorDcl>,
    },
    Bitset {
        base: Option<ScopedName>,
        fields: Vec<Documented<BitFieldDcl>>,
    },
    Bitmask {
        bits: Vec<EnumeratorDcl>,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct UnionBody {
    pub(crate) discriminator: TypeSpec,
    pub(crate) annotations: Vec<Annotation>,
    pub(crate) cases: Vec<Case>,
}

/// The fields of a bitset that are declared together: `bitfield<width, type> a, b`. A field without a name is padding.
#[derive(Clone, Debug)]
pub(crate) struct BitFieldDcl {
    pub(crate) width: Expression,
    /// `None` for the smallest type that has the width.
    pub(crate) ty: Option<TypeSpec>,
    pub(crate) names: Vec<EnumeratorDcl>,
}

/// A type, and what is declared with it.
#[derive(Clone, Debug)]
pub(crate) struct Declarators {
    pub(crate) ty: TypeSpec,
    pub(crate) declarators: Vec<Declarator>,
}

#[derive(Clone, Debug)]
pub(crate) struct CaseDcl {
    pub(crate) labels: Vec<CaseLabel>,
    pub(crate) ty: TypeSpec,
    pub(crate) declarator: Declarator,
}

#[derive(Clone, Debug)]
pub(crate) enum CaseLabel {
    Value(Expression),
    Default(Location),
}

#[derive(Clone, Debug)]
pub(crate) struct Declarator {
    pub(crate) name: Name,
    pub(crate) annotations: Vec<Annotation>,
    pub(crate) dimensions: Vec<Expression>,
}

#[derive(Clone, Debug)]
pub(crate) struct InterfaceDcl {
    pub(crate) flavour: InterfaceFlavour,
    pub(crate) name: Name,
    pub(crate) bases: Vec<ScopedName>,
    /// `None` for a forward declaration.
    pub(crate) body: Option<Vec<Definition>>,
}

#[derive(Clone, Debug)]
pub(crate) struct ValuetypeDcl {
    pub(crate) is_abstract: bool,
    pub(crate) is_custom: bool,
    pub(crate) is_event: bool,
    pub(crate) truncatable: Option<Location>,
    pub(crate) name: Name,
    pub(crate) bases: Vec<ScopedName>,
    pub(crate) supports: Vec<ScopedName>,
    /// `None` for a forward declaration.
    pub(crate) body: Option<Vec<Definition>>,
}

#[derive(Clone, Debug)]
pub(crate) struct OperationDcl {
    pub(crate) oneway: Option<Location>,
    pub(crate) returns: TypeSpec,
    pub(crate) name: Name,
    pub(crate) parameters: Vec<ParameterDcl>,
    pub(crate) raises: Vec<ScopedName>,
    pub(crate) context: Vec<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct ParameterDcl {
    pub(crate) preamble: Preamble,
    pub(crate) direction: Direction,
    pub(crate) direction_location: Location,
    pub(crate) ty: TypeSpec,
    pub(crate) name: Name,
}

#[derive(Clone, Debug)]
pub(crate) struct AttributeDcl {
    pub(crate) readonly: bool,
    /// The annotations behind the keyword.
    pub(crate) annotations: Vec<Annotation>,
    pub(crate) ty: TypeSpec,
    pub(crate) names: Vec<Name>,
    pub(crate) get_raises: Vec<ScopedName>,
    pub(crate) set_raises: Vec<ScopedName>,
}

/// `component`, `home`, `porttype` or `connector`.
#[derive(Clone, Debug)]
pub(crate) struct ComponentDcl {
    /// The keyword.
    pub(crate) what: &'static str,
    pub(crate) name: Name,
    pub(crate) base: Option<ScopedName>,
    pub(crate) supports: Vec<ScopedName>,
    /// The component that a home manages, and its key.
    pub(crate) others: Vec<ScopedName>,
    /// `None` for a forward declaration.
    pub(crate) body: Option<Vec<Definition>>,
}

/// `provides`, `uses`, `emits`, `publishes`, `consumes`, `port`, `mirrorport`.
#[derive(Clone, Debug)]
pub(crate) struct PortDcl {
    pub(crate) ty: TypeSpec,
    pub(crate) name: Name,
}

#[derive(Clone, Debug)]
pub(crate) struct TypeSpec {
    pub(crate) location: Location,
    pub(crate) kind: TypeKind,
}

#[derive(Clone, Debug)]
pub(crate) enum TypeKind {
    /// A type of one or more keywords.
    Basic(Type),
    Text {
        wide: bool,
        bound: Option<Box<Expression>>,
    },
    /// `None` for a constant's `fixed`.
    Fixed(Option<Box<(Expression, Expression)>>),
    Sequence {
        element: Box<TypeSpec>,
        bound: Option<Box<Expression>>,
    },
    Map {
        key: Box<TypeSpec>,
        value: Box<TypeSpec>,
        bound: Option<Box<Expression>>,
    },
    Named(ScopedName),
    Constructed(Box<Constructed>),
}

#[derive(Clone, Debug)]
pub(crate) struct Expression {
    pub(crate) location: Location,
    /// The number of levels of expressions in it.
    pub(crate) depth: u32,
    pub(crate) kind: ExpressionKind,
}

impl Expression {
    /// An expression without operators.
    pub(crate) fn single(location: Location, kind: ExpressionKind) -> Self {
        Self {
            location,
            depth: 1,
            kind,
        }
    }
}

/// A value, and whether it came from a wide literal or constant.
#[derive(Clone, Debug)]
pub(crate) struct Operand {
    pub(crate) value: Value,
    pub(crate) wide: bool,
}

impl From<Value> for Operand {
    fn from(value: Value) -> Self {
        Self { value, wide: false }
    }
}

#[derive(Clone, Debug)]
pub(crate) enum ExpressionKind {
    /// A literal.
    Value(Operand),
    Name(ScopedName),
    Unary {
        operator: &'static str,
        operand: Box<Expression>,
    },
    Binary {
        operator: &'static str,
        operands: Box<(Expression, Expression)>,
    },
    /// An expression with an error that has been reported.
    Wrong,
}
