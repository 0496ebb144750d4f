//! IDL types as Python sees them.

use pyo3::prelude::*;
use pyo3::types::PyList;
use rtorb::type_code::{Kind, Shape, TypeCode};
use rtorb_dynamic::Types;

/// An IDL type.
#[pyclass(frozen, name = "TypeCode", module = "rtorb")]
pub(crate) struct PyTypeCode {
    pub(crate) code: TypeCode,
    text: String,
}

impl PyTypeCode {
    pub(crate) fn new(types: &Types, code: &TypeCode) -> Self {
        Self {
            code: code.clone(),
            text: types.text(code),
        }
    }
}

#[pymethods]
impl PyTypeCode {
    /// The word of its kind: `struct`, `long`, `sequence`.
    #[getter]
    fn kind(&self) -> &'static str {
        kind_word(&self.code)
    }

    /// Its repository id; empty if its kind has none.
    #[getter]
    fn id(&self) -> &str {
        self.code.repository_id().unwrap_or_default()
    }

    /// Its name in its scope; empty if its kind has none.
    #[getter]
    fn name(&self) -> &str {
        self.code.name().unwrap_or_default()
    }

    /// The type behind all typedefs.
    fn unaliased(&self) -> Self {
        let code = self.code.unaliased().clone();
        let text = if code.kind() == self.code.kind() {
            self.text.clone()
        } else {
            Types::default().text(&code)
        };
        Self { code, text }
    }

    fn __str__(&self) -> &str {
        &self.text
    }

    fn __repr__(&self) -> String {
        format!("<TypeCode {}>", self.text)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other
            .cast::<Self>()
            .is_ok_and(|other| self.code == other.get().code)
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash as _, Hasher as _};
        let mut hasher = DefaultHasher::new();
        (self.code.kind() as u32, self.code.repository_id()).hash(&mut hasher);
        hasher.finish()
    }

    /// The parts of the type for the class that Python makes of it: `(name, kind, is_optional)` of each member of a struct,
    /// exception or valuetype; `(name, label)` of each member of a union, with `None` for the default; the names of an enum.
    fn parts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        match self.code.unaliased().shape() {
            Shape::Struct(made) | Shape::Except(made) => {
                for member in &made.members {
                    list.append((&*member.name, kind_word(&member.type_code)))?;
                }
            }
            Shape::Value(value) | Shape::Event(value) => {
                for member in &value.members {
                    list.append((&*member.name, kind_word(&member.type_code)))?;
                }
            }
            Shape::Union(union) => {
                for (index, member) in union.members.iter().enumerate() {
                    let is_default = union.default.is_some_and(|it| it as usize == index);
                    let label = (!is_default).then_some(member.label);
                    list.append((&*member.name, label))?;
                }
            }
            Shape::Enum(enumeration) => {
                for name in &enumeration.enumerators {
                    list.append(&**name)?;
                }
            }
            _ => {}
        }
        Ok(list)
    }

    /// The type inside: of a typedef, a boxed value, a union's discriminator, a valuetype's concrete base.
    fn content(&self) -> Option<Self> {
        let inner = match self.code.shape() {
            Shape::Alias(alias) | Shape::ValueBox(alias) => alias.content.clone(),
            Shape::Union(union) => union.discriminator.clone(),
            Shape::Value(value) | Shape::Event(value) if value.base.kind() != Kind::Null => {
                value.base.clone()
            }
            _ => return None,
        };
        Some(Self {
            text: Types::default().text(&inner),
            code: inner,
        })
    }
}

/// The word for the kind of a type, behind typedefs.
pub(crate) fn kind_word(code: &TypeCode) -> &'static str {
    match code.unaliased().shape() {
        Shape::Recursive(_) => "recursive",
        _ => match code.unaliased().kind() {
            Kind::Null => "null",
            Kind::Void => "void",
            Kind::Boolean => "boolean",
            Kind::Octet
            | Kind::Short
            | Kind::UShort
            | Kind::Long
            | Kind::ULong
            | Kind::LongLong
            | Kind::ULongLong => "integer",
            Kind::Float | Kind::Double | Kind::LongDouble => "real",
            Kind::Char | Kind::WChar | Kind::String | Kind::WString => "text",
            Kind::Fixed => "fixed",
            Kind::Any => "any",
            Kind::TypeCode => "TypeCode",
            Kind::Struct => "struct",
            Kind::Except => "exception",
            Kind::Union => "union",
            Kind::Enum => "enum",
            Kind::Sequence | Kind::Array => "sequence",
            Kind::Value | Kind::Event => "valuetype",
            Kind::ValueBox => "box",
            Kind::ObjectReference | Kind::AbstractInterface | Kind::LocalInterface => "interface",
            _ => "other",
        },
    }
}
