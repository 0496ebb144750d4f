//! Python objects of values.

use std::collections::HashMap;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};
use rtorb::any::{Any, State, Value, find_state_type};
use rtorb::ior::Ior;
use rtorb::type_code::{Kind, Label, Member, Scope, Shape, TypeCode, Union};
use rtorb_dynamic::json::{known, to_json};
use rtorb_dynamic::{Operation, Results};

use crate::exceptions::named;
use crate::library::{Library, class_of, class_of_id};
use crate::orb::SharedOrb;
use crate::reference::Reference;
use crate::type_code::PyTypeCode;

/// Makes Python objects of values.
pub(crate) struct ToPython<'a, 'py> {
    py: Python<'py>,
    library: &'a Bound<'py, Library>,
    orb: &'a Arc<SharedOrb>,
    /// The objects of valuetypes, by their place: shared values are one object. A value is kept, so that no other gets its place.
    states: HashMap<*const State, (Arc<State>, Bound<'py, PyAny>)>,
}

impl<'a, 'py> ToPython<'a, 'py> {
    pub(crate) fn new(library: &'a Bound<'py, Library>, orb: &'a Arc<SharedOrb>) -> Self {
        Self {
            py: library.py(),
            library,
            orb,
            states: HashMap::new(),
        }
    }

    /// The results of an operation: `None`, one object, or a tuple of the result and the `out` and `inout` arguments.
    pub(crate) fn results(
        &mut self,
        operation: &Operation,
        results: &Results,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut all = Vec::new();
        if operation.returns.unaliased().kind() != Kind::Void {
            all.push(self.whole(&results.returns, &operation.returns)?);
        }
        for (parameter, value) in operation.outputs().zip(&results.outputs) {
            all.push(self.whole(value, &parameter.type_code)?);
        }
        match all.len() {
            0 => Ok(self.py.None().into_bound(self.py)),
            1 => Ok(all.swap_remove(0)),
            _ => Ok(PyTuple::new(self.py, all)?.into_any()),
        }
    }

    /// The exception with these members.
    pub(crate) fn exception(
        &mut self,
        code: &TypeCode,
        members: &[Value],
    ) -> PyResult<Bound<'py, PyAny>> {
        let Shape::Except(made) = code.unaliased().shape() else {
            return Err(self.wrong());
        };
        let scope = Scope::new(code.unaliased());
        let arguments = self.members(&made.members, members, &scope)?;
        class_of(self.library, code.unaliased())?.call1(arguments)
    }

    /// The object of a value that is in no other.
    pub(crate) fn whole(&mut self, value: &Value, code: &TypeCode) -> PyResult<Bound<'py, PyAny>> {
        self.value(value, &Scope::new(code))
    }

    fn value(&mut self, value: &Value, scope: &Scope<'_>) -> PyResult<Bound<'py, PyAny>> {
        let py = self.py;
        Ok(match (value, scope.type_code.shape()) {
            (value, Shape::Alias(alias)) => {
                let inner = self.value(value, &scope.inside(&alias.content))?;
                self.mask(inner, &alias.named.id)?
            }
            (value, Shape::Recursive(id)) => {
                let found = scope.enclosing(id).ok_or_else(|| self.wrong())?;
                self.value(value, found)?
            }
            (Value::Fixed(_) | Value::LongDouble(_), _) => self.number(value, scope.type_code)?,
            (Value::Enum(ordinal), Shape::Enum(_)) => {
                class_of(self.library, scope.type_code)?.call1((ordinal,))?
            }
            (Value::Members(values), Shape::Struct(made) | Shape::Except(made)) => {
                let arguments = self.members(&made.members, values, scope)?;
                class_of(self.library, scope.type_code)?.call1(arguments)?
            }
            (Value::Union { .. }, Shape::Union(union)) => self.union(value, union, scope)?,
            (Value::Elements(values), Shape::Sequence(made)) if is_pair(&made.element) => {
                self.map(values, &made.element, scope)?
            }
            (Value::Elements(values), Shape::Sequence(made) | Shape::Array(made)) => {
                let element = scope.inside(&made.element);
                let list = PyList::empty(py);
                for value in values {
                    list.append(self.value(value, &element)?)?;
                }
                list.into_any()
            }
            (Value::Octets(bytes), _) => PyBytes::new(py, bytes).into_any(),
            (Value::Valuetype(None), _) => py.None().into_bound(py),
            (Value::Valuetype(Some(state)), _) => self.state(state, scope)?,
            (Value::Any(any), _) => self.any(any)?,
            (Value::TypeCode(code), _) => {
                let types = &self.library.get().types;
                PyTypeCode::new(types, code).into_pyobject(py)?.into_any()
            }
            (Value::Reference(ior), _) => self.reference(ior, scope.type_code)?,
            (value, _) => self.plain(value)?,
        })
    }

    /// The object of an alias. A bitmask is the alias of an integer, with a class of its own.
    fn mask(&self, inner: Bound<'py, PyAny>, id: &str) -> PyResult<Bound<'py, PyAny>> {
        if !self.library.get().is_mask(id) {
            return Ok(inner);
        }
        match class_of_id(self.library, id)? {
            Some(class) => class.call1((inner,)),
            None => Ok(inner),
        }
    }

    fn plain(&self, value: &Value) -> PyResult<Bound<'py, PyAny>> {
        let py = self.py;
        Ok(match value {
            Value::Nothing => py.None().into_bound(py),
            Value::Boolean(it) => it.into_pyobject(py)?.to_owned().into_any(),
            Value::Octet(it) => it.into_pyobject(py)?.into_any(),
            Value::Short(it) => it.into_pyobject(py)?.into_any(),
            Value::UShort(it) => it.into_pyobject(py)?.into_any(),
            Value::Long(it) => it.into_pyobject(py)?.into_any(),
            Value::ULong(it) => it.into_pyobject(py)?.into_any(),
            Value::LongLong(it) => it.into_pyobject(py)?.into_any(),
            Value::ULongLong(it) => it.into_pyobject(py)?.into_any(),
            Value::Float(it) => f64::from(*it).into_pyobject(py)?.into_any(),
            Value::Double(it) => it.into_pyobject(py)?.into_any(),
            Value::Char(it) | Value::WChar(it) => it.into_pyobject(py)?.into_any(),
            Value::String(it) | Value::WString(it) => it.into_pyobject(py)?.into_any(),
            _ => return Err(self.wrong()),
        })
    }

    /// A `fixed` as Decimal, and a `long double` as the nearest float.
    fn number(&self, value: &Value, code: &TypeCode) -> PyResult<Bound<'py, PyAny>> {
        let (py, types) = (self.py, &self.library.get().types);
        if let Value::LongDouble(quad) = value {
            return Ok(nearest(quad.0).into_pyobject(py)?.into_any());
        }
        let json = to_json(types, value, code).map_err(|_| self.wrong())?;
        let text = json
            .as_str()
            .map_or_else(|| json.to_string(), str::to_owned);
        py.import("decimal")?.getattr("Decimal")?.call1((text,))
    }

    fn members(
        &mut self,
        members: &[Member],
        values: &[Value],
        scope: &Scope<'_>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let mut objects = Vec::with_capacity(members.len());
        for (member, value) in members.iter().zip(values) {
            objects.push(self.member(value, &member.name, &member.type_code, scope)?);
        }
        PyTuple::new(self.py, objects)
    }

    /// A member. An optional one is a sequence of at most one element on the wire, and `None` without a value.
    fn member(
        &mut self,
        value: &Value,
        name: &str,
        code: &TypeCode,
        scope: &Scope<'_>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let types = &self.library.get().types;
        let part = scope.inside(code);
        if !types.is_optional(scope.type_code, name) {
            return self.value(value, &part);
        }
        let Shape::Sequence(elements) = code.shape() else {
            return Err(self.wrong());
        };
        let first = match value {
            Value::Elements(values) => values.first().cloned(),
            Value::Octets(bytes) => bytes.first().map(|byte| Value::Octet(*byte)),
            _ => return Err(self.wrong()),
        };
        match first {
            Some(value) => self.value(&value, &part.inside(&elements.element)),
            None => Ok(self.py.None().into_bound(self.py)),
        }
    }

    fn map(
        &mut self,
        values: &[Value],
        pair: &TypeCode,
        scope: &Scope<'_>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Shape::Struct(made) = pair.shape() else {
            return Err(self.wrong());
        };
        let inner = scope.inside(pair);
        let dict = PyDict::new(self.py);
        for value in values {
            let Value::Members(both) = value else {
                return Err(self.wrong());
            };
            let both = self.members(&made.members, both, &inner)?;
            dict.set_item(both.get_item(0)?, both.get_item(1)?)?;
        }
        Ok(dict.into_any())
    }

    fn union(
        &mut self,
        value: &Value,
        union: &Union,
        scope: &Scope<'_>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Value::Union {
            discriminator,
            value,
        } = value
        else {
            return Err(self.wrong());
        };
        let label = self.label(*discriminator, &union.discriminator)?;
        let value = match (value, union.select(*discriminator)) {
            (Some(value), Some(member)) => self.value(value, &scope.inside(&member.type_code))?,
            _ => self.py.None().into_bound(self.py),
        };
        class_of(self.library, scope.type_code)?.call1((label, value))
    }

    /// The object of a union's discriminator.
    pub(crate) fn label(&self, label: Label, code: &TypeCode) -> PyResult<Bound<'py, PyAny>> {
        let py = self.py;
        let code = code.unaliased();
        Ok(match code.kind() {
            Kind::Boolean => (label != 0).into_pyobject(py)?.to_owned().into_any(),
            Kind::Char | Kind::WChar => {
                let character = u32::try_from(label).ok().and_then(char::from_u32);
                let character = character.ok_or_else(|| self.wrong())?;
                character.into_pyobject(py)?.into_any()
            }
            Kind::Enum => class_of(self.library, code)?.call1((label,))?,
            Kind::ULongLong => label.cast_unsigned().into_pyobject(py)?.into_any(),
            _ => label.into_pyobject(py)?.into_any(),
        })
    }

    fn any(&mut self, any: &Any) -> PyResult<Bound<'py, PyAny>> {
        let types = Arc::clone(&self.library.get().types);
        let value = any.value_with(&known(&types));
        let value = value
            .map_err(|error| named(self.py, "ConversionError", &format!("an any: {error}")))?;
        let code = PyTypeCode::new(&types, any.type_code());
        let value = self.whole(&value, any.type_code())?;
        let class = self.py.import("rtorb._values")?.getattr("Any")?;
        class.call1((code, value))
    }

    fn reference(&self, ior: &Ior, formal: &TypeCode) -> PyResult<Bound<'py, PyAny>> {
        if ior.is_nil() {
            return Ok(self.py.None().into_bound(self.py));
        }
        let orb = &self.orb.orb;
        let text = ior.to_string();
        let object = self.py.detach(|| orb.string_to_object(&text));
        let object = object.map_err(|error| crate::exceptions::system(self.py, &error))?;
        let reference = Reference::new(object, self.orb);
        let types = &self.library.get().types;
        // A reference may state a type that derives from the expected one. What else it states is not believed.
        let expected = formal.repository_id().filter(|id| !id.is_empty());
        let known = types.interface_by_id(&ior.type_id);
        let known = known.filter(|it| expected.is_none_or(|id| it.is_a(id)));
        let stated = known.map(|it| it.repository_id.as_str());
        let id = stated
            .or_else(|| formal.repository_id())
            .unwrap_or_default();
        let class = match class_of_id(self.library, id)? {
            Some(class) => class,
            None => self.py.import("rtorb._objects")?.getattr("Object")?,
        };
        class.call1((reference,))
    }

    fn state(&mut self, state: &Arc<State>, scope: &Scope<'_>) -> PyResult<Bound<'py, PyAny>> {
        let place = Arc::as_ptr(state);
        if let Some((_, object)) = self.states.get(&place) {
            return Ok(object.clone());
        }
        let types = Arc::clone(&self.library.get().types);
        let known = known(&types);
        let id = &state.repository_id;
        let found = find_state_type(scope, id, &known).ok_or_else(|| self.wrong())?;
        let object = found.in_scope(scope, |scope| {
            let mut members = state.members.iter();
            if let Shape::ValueBox(boxed) = scope.type_code.shape() {
                let value = members.next().ok_or_else(|| self.wrong())?;
                return self.value(value, &scope.inside(&boxed.content));
            }
            let mut objects = Vec::new();
            scope.each_state_member(&mut |member, scope| {
                let value = members.next().ok_or_else(|| self.wrong())?;
                objects.push(self.member(value, &member.name, &member.type_code, scope)?);
                Ok::<(), PyErr>(())
            })?;
            let class = class_of(self.library, scope.type_code)?;
            class.call1(PyTuple::new(self.py, objects)?)
        })?;
        let kept = (Arc::clone(state), object.clone());
        self.states.insert(place, kept);
        Ok(object)
    }

    fn wrong(&self) -> PyErr {
        named(self.py, "ConversionError", "a value is not of its type")
    }
}

/// True for the pairs of an IDL `map`.
pub(crate) fn is_pair(code: &TypeCode) -> bool {
    match code.shape() {
        Shape::Struct(made) => {
            made.named.id.is_empty()
                && matches!(&*made.members, [key, value] if &*key.name == "key" && &*value.name == "value")
        }
        _ => false,
    }
}

/// The double that is nearest to an IEEE 754 quadruple, given as bits.
fn nearest(bits: u128) -> f64 {
    let sign = if bits >> 127 == 1 { -1.0 } else { 1.0 };
    let exponent = i32::try_from(bits >> 112 & 0x7fff).unwrap_or_default();
    let fraction = bits & ((1 << 112) - 1);
    match (exponent, fraction) {
        (0, _) => sign * 0.0,
        (0x7fff, 0) => sign * f64::INFINITY,
        (0x7fff, _) => f64::NAN,
        _ => {
            // The conversion of the whole significand rounds once; the power of two is exact, unless the result is subnormal.
            let significand = (fraction | 1 << 112) as f64;
            let power = exponent - 16383 - 112;
            let half = power / 2;
            sign * significand * 2f64.powi(half) * 2f64.powi(power - half)
        }
    }
}
