//! Values of Python objects.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use pyo3::exceptions::{PyAttributeError, PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{
    PyByteArray, PyBytes, PyDict, PyFloat, PyInt, PyMapping, PyMemoryView, PyString, PyTuple,
};
use rtorb::any::{Any, State, Value, find_state_type};
use rtorb::ior::Ior;
use rtorb::type_code::{Elements, Kind, Member, Scope, Shape, TypeCode, Union};
use rtorb_dynamic::json::{from_json, known};
use rtorb_dynamic::{Operation, Results};
use serde_json::Value as Json;

use crate::library::{Library, class_of};
use crate::reference::Reference;
use crate::to_python::is_pair;
use crate::type_code::PyTypeCode;

/// The reason why a Python object is no value of a type.
pub(crate) enum Wrong {
    /// Python raised it while the object was read.
    Raised(PyErr),
    /// The object does not fit.
    Object {
        /// The way to it, innermost first: `.x`, `[2]`.
        steps: Vec<String>,
        /// True if its class is wrong, false if its value is.
        is_class: bool,
        problem: String,
    },
}

impl From<PyErr> for Wrong {
    fn from(error: PyErr) -> Self {
        Self::Raised(error)
    }
}

impl Wrong {
    fn within(mut self, step: impl Into<String>) -> Self {
        if let Self::Object { steps, .. } = &mut self {
            steps.push(step.into());
        }
        self
    }

    fn raise(self) -> PyErr {
        match self {
            Self::Raised(error) => error,
            Self::Object {
                steps,
                is_class,
                problem,
            } => {
                let way: String = steps.into_iter().rev().collect();
                let text = format!("{way}: {problem}");
                if is_class {
                    PyTypeError::new_err(text)
                } else {
                    PyValueError::new_err(text)
                }
            }
        }
    }
}

type Converted<T> = Result<T, Wrong>;

/// The values of the `in` and `inout` parameters.
pub(crate) fn arguments(
    library: &Bound<'_, Library>,
    operation: &Operation,
    arguments: &Bound<'_, PyTuple>,
) -> PyResult<Vec<Value>> {
    let expected = operation.inputs().count();
    if expected != arguments.len() {
        return Err(PyTypeError::new_err(format!(
            "{}: {} arguments given, {expected} expected by {}",
            operation.name,
            arguments.len(),
            operation.signature(&library.get().types)
        )));
    }
    let mut from_python = FromPython::new(library);
    let mut values = Vec::with_capacity(expected);
    for (place, (parameter, object)) in operation.inputs().zip(arguments.iter()).enumerate() {
        let value = from_python.value(&object, &Scope::new(&parameter.type_code));
        let step = || format!("argument {} ({})", place + 1, parameter.name);
        values.push(value.map_err(|wrong| wrong.within(step()).raise())?);
    }
    Ok(values)
}

/// The results of a servant's operation.
pub(crate) fn results(
    library: &Bound<'_, Library>,
    operation: &Operation,
    object: &Bound<'_, PyAny>,
) -> PyResult<Results> {
    let returns = &operation.returns;
    let has_result = returns.unaliased().kind() != Kind::Void;
    let outputs: Vec<_> = operation.outputs().collect();
    let count = usize::from(has_result) + outputs.len();
    let objects: Vec<Bound<'_, PyAny>> = match count {
        0 => Vec::new(),
        1 => vec![object.clone()],
        _ => match object.cast::<PyTuple>() {
            Ok(tuple) if tuple.len() == count => tuple.iter().collect(),
            _ => {
                let signature = operation.signature(&library.get().types);
                let text = format!("the result is no tuple of {count}, which {signature} expects");
                return Err(PyTypeError::new_err(text));
            }
        },
    };
    let mut from_python = FromPython::new(library);
    let mut objects = objects.iter();
    let mut next = |name: &str, code: &TypeCode| match objects.next() {
        Some(object) => {
            let value = from_python.value(object, &Scope::new(code));
            value.map_err(|wrong| wrong.within(name).raise())
        }
        None => Ok(Value::Nothing),
    };
    let returned = if has_result {
        next("the result", returns)?
    } else {
        Value::Nothing
    };
    let mut values = Vec::with_capacity(outputs.len());
    for parameter in outputs {
        let name = format!("the result {}", parameter.name);
        values.push(next(&name, &parameter.type_code)?);
    }
    Ok(Results {
        returns: returned,
        outputs: values,
    })
}

/// The members of a user exception.
pub(crate) fn exception_members(
    library: &Bound<'_, Library>,
    code: &TypeCode,
    object: &Bound<'_, PyAny>,
) -> PyResult<Vec<Value>> {
    let code = code.unaliased();
    let Shape::Except(made) = code.shape() else {
        return Err(PyTypeError::new_err(format!("{code} is no exception")));
    };
    let members = FromPython::new(library).members(object, &made.members, &Scope::new(code));
    members.map_err(|wrong| wrong.within("the exception").raise())
}

struct FromPython<'a, 'py> {
    library: &'a Bound<'py, Library>,
    /// The values of valuetypes, by the address of their objects, which live as long.
    states: HashMap<usize, (Bound<'py, PyAny>, Arc<State>)>,
    /// The sequences, valuetypes and anys around the current object.
    depth: usize,
}

impl<'a, 'py> FromPython<'a, 'py> {
    fn new(library: &'a Bound<'py, Library>) -> Self {
        Self {
            library,
            states: HashMap::new(),
            depth: 0,
        }
    }

    fn value(&mut self, object: &Bound<'py, PyAny>, scope: &Scope<'_>) -> Converted<Value> {
        let code = scope.type_code;
        match code.shape() {
            Shape::Plain(kind) => self.plain(object, *kind, code),
            Shape::String { bound } => self.text(object, *bound, code).map(Value::String),
            Shape::WString { bound } => self.text(object, *bound, code).map(Value::WString),
            Shape::Fixed { .. } => {
                let text = fixed_text(object)?.ok_or_else(|| self.wrong(object, code))?;
                let text = Json::String(text);
                let value = from_json(&self.library.get().types, &text, code);
                value.map_err(|_| self.wrong(object, code))
            }
            Shape::Enum(_) => self.enumerator(object, code),
            Shape::Alias(alias) => self.value(object, &scope.inside(&alias.content)),
            Shape::Recursive(id) => match scope.enclosing(id) {
                Some(found) => self.value(object, found),
                None => Err(self.wrong(object, code)),
            },
            Shape::Sequence(made) | Shape::Array(made) => {
                self.nested(object, |this| this.elements(object, made, scope))
            }
            Shape::Struct(made) | Shape::Except(made) => {
                if !self.is_of(object, code)? && object.cast::<PyMapping>().is_err() {
                    return Err(self.wrong(object, code));
                }
                let members = self.members(object, &made.members, scope)?;
                Ok(Value::Members(members))
            }
            Shape::Union(union) => self.union(object, union, scope),
            Shape::Named(Kind::Native | Kind::LocalInterface, _) => Err(self.wrong(object, code)),
            Shape::Named(Kind::AbstractInterface, _) if !is_reference(object)? => {
                self.nested(object, |this| this.state(object, scope))
            }
            Shape::Named(..) => self.reference(object, code).map(Value::Reference),
            Shape::ValueBox(_) | Shape::Value(_) | Shape::Event(_) => {
                self.nested(object, |this| this.state(object, scope))
            }
        }
    }

    /// True for an object of the class of a type, or of the class that other IDL files made of the same type.
    fn is_of(&self, object: &Bound<'py, PyAny>, code: &TypeCode) -> PyResult<bool> {
        if object.is_instance(&class_of(self.library, code)?)? {
            return Ok(true);
        }
        let id = code.repository_id().filter(|id| !id.is_empty());
        Ok(id.is_some_and(|id| own_id(object).is_some_and(|own| own == id)))
    }

    /// Bounds the depth: an object may contain itself.
    fn nested<T>(
        &mut self,
        object: &Bound<'py, PyAny>,
        convert: impl FnOnce(&mut Self) -> Converted<T>,
    ) -> Converted<T> {
        if self.depth >= DEPTH_MAX {
            let problem = format!("{} is nested deeper than {DEPTH_MAX}", class_name(object));
            return Err(value_error(problem));
        }
        self.depth += 1;
        let converted = convert(self);
        self.depth -= 1;
        converted
    }

    fn plain(
        &mut self,
        object: &Bound<'py, PyAny>,
        kind: Kind,
        code: &TypeCode,
    ) -> Converted<Value> {
        Ok(match kind {
            Kind::Null | Kind::Void if object.is_none() => Value::Nothing,
            Kind::Boolean => {
                let value = object.extract();
                Value::Boolean(value.map_err(|_| self.wrong(object, code))?)
            }
            Kind::Octet => Value::Octet(self.integer(object, code)?),
            Kind::Short => Value::Short(self.integer(object, code)?),
            Kind::UShort => Value::UShort(self.integer(object, code)?),
            Kind::Long => Value::Long(self.integer(object, code)?),
            Kind::ULong => Value::ULong(self.integer(object, code)?),
            Kind::LongLong => Value::LongLong(self.integer(object, code)?),
            Kind::ULongLong => Value::ULongLong(self.integer(object, code)?),
            Kind::Float => {
                let value = self.real(object, code)?;
                // A double beyond the largest float would become infinite.
                let narrow = value as f32;
                if value.is_finite() && !narrow.is_finite() {
                    return Err(self.beyond(object, code));
                }
                Value::Float(narrow)
            }
            Kind::Double => Value::Double(self.real(object, code)?),
            Kind::LongDouble => Value::LongDouble(self.real(object, code)?.into()),
            Kind::Char => Value::Char(self.character(object, code)?),
            Kind::WChar => Value::WChar(self.character(object, code)?),
            Kind::Principal => Value::Octets(
                bytes(object)?
                    .ok_or_else(|| self.wrong(object, code))?
                    .into_owned(),
            ),
            Kind::Any => self.nested(object, |this| this.any(object).map(Value::Any))?,
            Kind::TypeCode => Value::TypeCode(self.type_code(object)?),
            _ => return Err(self.wrong(object, code)),
        })
    }

    fn integer<T: TryFrom<i128>>(
        &self,
        object: &Bound<'py, PyAny>,
        code: &TypeCode,
    ) -> Converted<T> {
        // Most are int; others, such as those of NumPy, have `__index__`, which a float has not.
        let number = match object.cast::<PyInt>() {
            Ok(_) => object.clone(),
            Err(_) => match object.call_method0("__index__") {
                Ok(number) => number,
                Err(_) => return Err(self.wrong(object, code)),
            },
        };
        let value = number.extract::<i64>().map(i128::from);
        let value = value.or_else(|_| number.extract::<u64>().map(i128::from));
        let value = value.ok().and_then(|it| it.try_into().ok());
        value.ok_or_else(|| self.beyond(object, code))
    }

    fn real(&self, object: &Bound<'py, PyAny>, code: &TypeCode) -> Converted<f64> {
        object.extract().map_err(|_| self.wrong(object, code))
    }

    fn character(&self, object: &Bound<'py, PyAny>, code: &TypeCode) -> Converted<char> {
        if object.cast::<PyString>().is_err() {
            return Err(self.wrong(object, code));
        }
        object.extract().map_err(|_| self.beyond(object, code))
    }

    fn text(&self, object: &Bound<'py, PyAny>, bound: u32, code: &TypeCode) -> Converted<String> {
        let Ok(text) = object.cast::<PyString>() else {
            return Err(self.wrong(object, code));
        };
        let Ok(text) = text.extract::<String>() else {
            let problem = format!("{} has a lone surrogate", shown(object));
            return Err(value_error(problem));
        };
        if text.contains('\0') {
            let problem = format!("{} contains a zero character", shown(object));
            return Err(value_error(problem));
        }
        let count = text.chars().count();
        if bound != 0 && count > bound as usize {
            let expected = self.expected(code);
            return Err(value_error(format!(
                "{count} characters are too many for {expected}"
            )));
        }
        Ok(text)
    }

    fn enumerator(&self, object: &Bound<'py, PyAny>, code: &TypeCode) -> Converted<Value> {
        if self.is_of(object, code)? {
            return Ok(Value::Enum(object.getattr("value")?.extract()?));
        }
        let Shape::Enum(made) = code.shape() else {
            return Err(self.wrong(object, code));
        };
        let Ok(name) = object.extract::<String>() else {
            return Err(self.wrong(object, code));
        };
        let place = made.enumerators.iter().position(|it| **it == *name);
        let place = place.and_then(|it| u32::try_from(it).ok());
        place
            .map(Value::Enum)
            .ok_or_else(|| self.beyond(object, code))
    }

    fn elements(
        &mut self,
        object: &Bound<'py, PyAny>,
        made: &Elements,
        scope: &Scope<'_>,
    ) -> Converted<Value> {
        let code = scope.type_code;
        let is_bytes = made.element.unaliased().kind() == Kind::Octet;
        let value = match bytes(object)? {
            Some(bytes) if is_bytes => Value::Octets(bytes.into_owned()),
            Some(_) => return Err(self.wrong(object, code)),
            None if is_pair(&made.element) => self.pairs(object, &made.element, scope)?,
            None => {
                let inner = scope.inside(&made.element);
                let is_text = object.cast::<PyString>().is_ok();
                let is_pairs = object.cast::<PyDict>().is_ok();
                let items = object.try_iter().ok().filter(|_| !is_text && !is_pairs);
                let mut values = Vec::new();
                for (place, item) in items.ok_or_else(|| self.wrong(object, code))?.enumerate() {
                    let value = self.value(&item?, &inner);
                    values.push(value.map_err(|wrong| wrong.within(format!("[{place}]")))?);
                }
                if is_bytes {
                    Value::Octets(values.iter().filter_map(octet).collect())
                } else {
                    Value::Elements(values)
                }
            }
        };
        let count = match &value {
            Value::Octets(bytes) => bytes.len(),
            Value::Elements(values) => values.len(),
            _ => 0,
        };
        let is_array = matches!(code.shape(), Shape::Array(_));
        let bound = made.count as usize;
        if is_array && count != bound || !is_array && bound != 0 && count > bound {
            let expected = self.expected(code);
            return Err(value_error(format!(
                "{count} elements do not fit {expected}"
            )));
        }
        Ok(value)
    }

    /// The pairs of a dictionary for an IDL `map`.
    fn pairs(
        &mut self,
        object: &Bound<'py, PyAny>,
        pair: &TypeCode,
        scope: &Scope<'_>,
    ) -> Converted<Value> {
        let (Ok(dict), Shape::Struct(made)) = (object.cast::<PyDict>(), pair.shape()) else {
            return Err(self.wrong(object, scope.type_code));
        };
        let [key_member, value_member] = &*made.members else {
            return Err(self.wrong(object, scope.type_code));
        };
        let inner = scope.inside(pair);
        let mut pairs = Vec::with_capacity(dict.len());
        for (key, value) in dict.iter() {
            let step = || format!("[{}]", shown(&key));
            let first = self.value(&key, &inner.inside(&key_member.type_code));
            let second = self.value(&value, &inner.inside(&value_member.type_code));
            let both = [first, second].map(|it| it.map_err(|wrong| wrong.within(step())));
            pairs.push(Value::Members(both.into_iter().collect::<Converted<_>>()?));
        }
        Ok(Value::Elements(pairs))
    }

    /// The members of an object, from its attributes, or from the items of a dictionary.
    fn members(
        &mut self,
        object: &Bound<'py, PyAny>,
        members: &[Member],
        scope: &Scope<'_>,
    ) -> Converted<Vec<Value>> {
        if let Ok(mapping) = object.cast::<PyMapping>() {
            for key in mapping.keys()?.iter() {
                let is_member =
                    |it: &Member| key.extract::<String>().is_ok_and(|key| key == *it.name);
                if !members.iter().any(is_member) {
                    let expected = self.expected(scope.type_code);
                    return Err(value_error(format!(
                        "{expected} has no member {}",
                        shown(&key)
                    )));
                }
            }
        }
        let mut values = Vec::with_capacity(members.len());
        for member in members {
            values.push(self.member(object, &member.name, &member.type_code, scope)?);
        }
        Ok(values)
    }

    fn member(
        &mut self,
        object: &Bound<'py, PyAny>,
        name: &str,
        code: &TypeCode,
        scope: &Scope<'_>,
    ) -> Converted<Value> {
        let is_optional = self.library.get().types.is_optional(scope.type_code, name);
        let found = match object.cast::<PyMapping>() {
            Ok(mapping) => mapping.get_item(name),
            Err(_) if matches!(scope.type_code.shape(), Shape::Except(_)) => {
                object.getattr(rtorb_idl::python::exception_member(name))
            }
            Err(_) => object.getattr(rtorb_idl::python::name(name)),
        };
        let found = if_there(object.py(), found)?;
        let part = scope.inside(code);
        let step = |wrong: Wrong| wrong.within(format!(".{name}"));
        if !is_optional {
            let expected = || self.expected(scope.type_code);
            let missing = || value_error(format!("the member {name} of {} is missing", expected()));
            return self.value(&found.ok_or_else(missing)?, &part).map_err(step);
        }
        let Shape::Sequence(elements) = code.shape() else {
            return Err(self.wrong(object, code));
        };
        let inner = part.inside(&elements.element);
        let value = found.filter(|it| !it.is_none());
        let value = value.map(|it| self.value(&it, &inner).map_err(step));
        Ok(match value.transpose()? {
            Some(Value::Octet(byte)) => Value::Octets(vec![byte]),
            None if elements.element.unaliased().kind() == Kind::Octet => Value::Octets(Vec::new()),
            value => Value::Elements(value.into_iter().collect()),
        })
    }

    fn union(
        &mut self,
        object: &Bound<'py, PyAny>,
        union: &Union,
        scope: &Scope<'_>,
    ) -> Converted<Value> {
        if !self.is_of(object, scope.type_code)? {
            return Err(self.wrong(object, scope.type_code));
        }
        let discriminator = self.value(&object.getattr("d")?, &scope.inside(&union.discriminator));
        let discriminator = discriminator.map_err(|wrong| wrong.within(".d"))?;
        let discriminator = discriminator
            .label()
            .ok_or_else(|| self.wrong(object, scope.type_code))?;
        let value = match union.select(discriminator) {
            Some(member) => {
                let value = self.value(&object.getattr("v")?, &scope.inside(&member.type_code));
                let value = value.map_err(|wrong| wrong.within(format!(".{}", member.name)))?;
                Some(Box::new(value))
            }
            None => None,
        };
        Ok(Value::Union {
            discriminator,
            value,
        })
    }

    fn any(&mut self, object: &Bound<'py, PyAny>) -> Converted<Any> {
        let py = object.py();
        let class = py.import("rtorb._values")?.getattr("Any")?;
        let (code, object) = if object.is_instance(&class)? {
            let code = self.type_code(&object.getattr("type")?);
            let code = code.map_err(|wrong| wrong.within(".type"))?;
            (code, object.getattr("value")?)
        } else {
            (self.natural(object)?, object.clone())
        };
        let value = self.value(&object, &Scope::new(&code));
        let value = value.map_err(|wrong| wrong.within(".value"))?;
        Any::from_parts(code, &value).map_err(|error| value_error(error.to_string()))
    }

    /// The type of an object that stands in the place of an any.
    fn natural(&self, object: &Bound<'py, PyAny>) -> Converted<TypeCode> {
        if object.is_none() {
            return Ok(TypeCode::NULL);
        }
        if let Ok(code) = object.get_type().getattr("_rtorb_type")
            && let Ok(code) = code.cast::<PyTypeCode>()
        {
            return Ok(code.get().code.clone());
        }
        if object.extract::<bool>().is_ok() {
            return Ok(TypeCode::BOOLEAN);
        }
        if object.cast::<PyInt>().is_ok() {
            return Ok(match object.extract::<i32>() {
                Ok(_) => TypeCode::LONG,
                Err(_) if object.extract::<i64>().is_ok() => TypeCode::LONG_LONG,
                Err(_) => TypeCode::ULONG_LONG,
            });
        }
        if object.cast::<PyFloat>().is_ok() {
            return Ok(TypeCode::DOUBLE);
        }
        if object.cast::<PyString>().is_ok() {
            return Ok(TypeCode::STRING);
        }
        if bytes(object)?.is_some() {
            return Ok(TypeCode::sequence(TypeCode::OCTET, 0));
        }
        if object.cast::<PyTypeCode>().is_ok() {
            return Ok(TypeCode::TYPE_CODE);
        }
        Err(type_error(format!(
            "the IDL type of {} is not known: write rtorb.Any(\"sequence<long>\", [1, 2])",
            described(object)
        )))
    }

    fn type_code(&self, object: &Bound<'py, PyAny>) -> Converted<TypeCode> {
        if let Ok(code) = object.cast::<PyTypeCode>() {
            return Ok(code.get().code.clone());
        }
        if let Ok(code) = object.getattr("_rtorb_type")
            && let Ok(code) = code.cast::<PyTypeCode>()
        {
            return Ok(code.get().code.clone());
        }
        let Ok(text) = object.extract::<String>() else {
            let problem = format!(
                "{} is no type: write it in IDL, such as \"long\"",
                described(object)
            );
            return Err(type_error(problem));
        };
        let parsed = self.library.get().types.parse(&text);
        parsed.map_err(|error| value_error(error.to_string()))
    }

    fn reference(&self, object: &Bound<'py, PyAny>, code: &TypeCode) -> Converted<Ior> {
        if object.is_none() {
            return Ok(Ior::NIL);
        }
        match object.getattr("_rtorb_ref") {
            Ok(inner) => match inner.cast::<Reference>() {
                Ok(reference) => Ok(reference.get().object.ior().clone()),
                Err(_) => Err(self.wrong(object, code)),
            },
            Err(_) => Err(self.wrong(object, code)),
        }
    }

    fn state(&mut self, object: &Bound<'py, PyAny>, scope: &Scope<'_>) -> Converted<Value> {
        let code = scope.type_code;
        if object.is_none() {
            return Ok(Value::Valuetype(None));
        }
        let place = object.as_ptr() as usize;
        if let Some((_, state)) = self.states.get(&place) {
            return Ok(Value::Valuetype(Some(Arc::clone(state))));
        }
        let formal = code.repository_id().unwrap_or_default();
        let own = own_id(object);
        let is_box = matches!(code.shape(), Shape::ValueBox(_));
        let id = match own {
            Some(id) if !is_box => id,
            _ if is_box => formal.to_owned(),
            _ => return Err(self.wrong(object, code)),
        };
        let types = Arc::clone(&self.library.get().types);
        let known = known(&types);
        let found = find_state_type(scope, &id, &known);
        let found = found.ok_or_else(|| self.wrong(object, code))?;
        let members = found.in_scope(scope, |scope| {
            if let Shape::ValueBox(boxed) = scope.type_code.shape() {
                let value = self.value(object, &scope.inside(&boxed.content))?;
                return Ok::<_, Wrong>(vec![value]);
            }
            let mut values = Vec::new();
            scope.each_state_member(&mut |member, scope| {
                values.push(self.member(object, &member.name, &member.type_code, scope)?);
                Ok::<_, Wrong>(())
            })?;
            Ok(values)
        })?;
        let repository_id = id.into();
        let state = Arc::new(State {
            repository_id,
            members,
        });
        if !is_box {
            self.states
                .insert(place, (object.clone(), Arc::clone(&state)));
        }
        Ok(Value::Valuetype(Some(state)))
    }

    /// The error of an object of a wrong class.
    fn wrong(&self, object: &Bound<'py, PyAny>, code: &TypeCode) -> Wrong {
        type_error(format!(
            "{} is no {}",
            described(object),
            self.expected(code)
        ))
    }

    /// The error of an object of a right class whose value is out of range.
    fn beyond(&self, object: &Bound<'py, PyAny>, code: &TypeCode) -> Wrong {
        value_error(format!("{} is no {}", shown(object), self.expected(code)))
    }

    /// A type in words, with its range.
    fn expected(&self, code: &TypeCode) -> String {
        let name = self.library.get().types.text(code);
        let range = match code.kind() {
            Kind::Octet => range(u8::MIN, u8::MAX),
            Kind::Short => range(i16::MIN, i16::MAX),
            Kind::UShort => range(u16::MIN, u16::MAX),
            Kind::Long => range(i32::MIN, i32::MAX),
            Kind::ULong => range(u32::MIN, u32::MAX),
            Kind::LongLong => range(i64::MIN, i64::MAX),
            Kind::ULongLong => range(u64::MIN, u64::MAX),
            Kind::Float => range(f32::MIN, f32::MAX),
            Kind::Double | Kind::LongDouble => "a float".to_owned(),
            Kind::Char | Kind::WChar => "one character".to_owned(),
            Kind::Boolean => "True or False".to_owned(),
            Kind::String | Kind::WString => "a str".to_owned(),
            Kind::Enum => match code.shape() {
                Shape::Enum(made) => format!("one of {}", made.enumerators.join(", ")),
                _ => return name,
            },
            Kind::Sequence | Kind::Array => "a list".to_owned(),
            _ => return name,
        };
        format!("{name} ({range})")
    }
}

fn range(least: impl std::fmt::Display, most: impl std::fmt::Display) -> String {
    format!("{least} to {most}")
}

fn type_error(problem: String) -> Wrong {
    Wrong::Object {
        steps: Vec::new(),
        is_class: true,
        problem,
    }
}

fn value_error(problem: String) -> Wrong {
    Wrong::Object {
        steps: Vec::new(),
        is_class: false,
        problem,
    }
}

fn octet(value: &Value) -> Option<u8> {
    match value {
        Value::Octet(byte) => Some(*byte),
        _ => None,
    }
}

/// A member that was looked up; `None` if it is not there. What a property of the object raises otherwise is an error.
fn if_there<'py>(
    py: Python<'py>,
    found: PyResult<Bound<'py, PyAny>>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let is_absence = |error: &PyErr| {
        error.is_instance_of::<PyAttributeError>(py) || error.is_instance_of::<PyKeyError>(py)
    };
    match found {
        Ok(member) => Ok(Some(member)),
        Err(error) if is_absence(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The bytes of an object that consists of bytes.
fn bytes<'o>(object: &'o Bound<'_, PyAny>) -> PyResult<Option<Cow<'o, [u8]>>> {
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(Some(Cow::Borrowed(bytes.as_bytes())));
    }
    if let Ok(bytes) = object.cast::<PyByteArray>() {
        return Ok(Some(Cow::Owned(bytes.to_vec())));
    }
    if object.cast::<PyMemoryView>().is_ok() {
        let bytes: Vec<u8> = object.call_method0("tobytes")?.extract()?;
        return Ok(Some(Cow::Owned(bytes)));
    }
    Ok(None)
}

/// The text of a number without an exponent; `None` if it is no number, or has more than a hundred digits.
fn fixed_text(object: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    let text = object.str()?.to_string();
    if !text.contains(['E', 'e']) {
        return Ok(Some(text));
    }
    let decimal = object.py().import("decimal")?.getattr("Decimal")?;
    let Ok(number) = decimal.call1((text,)) else {
        return Ok(None);
    };
    let place: i64 = number.call_method0("adjusted")?.extract()?;
    if place.abs() > 100 {
        return Ok(None);
    }
    let text = number.call_method1("__format__", ("f",))?;
    text.extract().map(Some)
}

/// The repository id of the type that an object's class stands for.
fn own_id(object: &Bound<'_, PyAny>) -> Option<String> {
    object.get_type().getattr("_rtorb_id").ok()?.extract().ok()
}

fn is_reference(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    object.hasattr("_rtorb_ref")
}

fn class_name(object: &Bound<'_, PyAny>) -> String {
    let name = object.get_type().name();
    name.map_or_else(|_| "an object".to_owned(), |name| name.to_string())
}

/// The object and its class, shortened.
fn described(object: &Bound<'_, PyAny>) -> String {
    if object.is_none() {
        return "None".to_owned();
    }
    format!("{} ({})", shown(object), class_name(object))
}

/// The object as Python writes it, shortened.
fn shown(object: &Bound<'_, PyAny>) -> String {
    let Ok(text) = object.repr() else {
        return class_name(object);
    };
    let text = text.to_string();
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// The most characters of an object in a message.
const SHOWN_MAX: usize = 60;
/// The most sequences, valuetypes and anys around a value. A message may have 64.
const DEPTH_MAX: usize = 64;
