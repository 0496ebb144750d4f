//! A value from JSON.

use core::fmt;
use std::sync::Arc;

use rtorb::any::{Any, State, Value, find_state_type};
use rtorb::ior::Ior;
use rtorb::type_code::{Elements, Kind, Scope, Shape, TypeCode, Union};
use rtorb::url::{Location, ObjectUrl};
use serde_json::{Map, Value as Json};

use super::bits;
use super::error::JsonError;
use super::number::fixed_of_text;
use super::scalar::{character, hex_bytes, integer, kind, long_double, real, short};
use super::{EXCEPTION, example, exception_key, known, may_be_null, optional_content, type_key};
use crate::types::{Bits, Types};

/// Converts JSON to a value of `type_code`.
///
/// # Errors
/// [`JsonError`] has the place, the expected type and an example.
pub fn from_json(types: &Types, json: &Json, type_code: &TypeCode) -> Result<Value, JsonError> {
    Reader { types }.value(json, &Scope::new(type_code))
}

struct Reader<'t> {
    types: &'t Types,
}

impl Reader<'_> {
    fn value(&self, json: &Json, scope: &Scope<'_>) -> Result<Value, JsonError> {
        if let Some(bits) = self.types.bits(scope.type_code) {
            return self.bits(json, bits, scope);
        }
        match scope.type_code.shape() {
            Shape::Plain(kind) => self.plain(json, *kind, scope),
            Shape::String { bound } => self.text(json, *bound, scope).map(Value::String),
            Shape::WString { bound } => self.text(json, *bound, scope).map(Value::WString),
            Shape::Fixed { digits, scale } => {
                let text = match json {
                    Json::Number(number) => Some(number.to_string()),
                    Json::String(text) => Some(text.clone()),
                    _ => None,
                };
                let number = text.and_then(|text| fixed_of_text(&text, *digits, *scale));
                let number = number.ok_or_else(|| self.wrong(json, scope))?;
                Ok(Value::Fixed(number))
            }
            Shape::Enum(enumeration) => {
                let wrong = || {
                    let names = enumeration.enumerators.join(", ");
                    self.error(scope, format!("{} is none of {names}", short(json)))
                };
                let name = json.as_str().ok_or_else(|| self.wrong(json, scope))?;
                let place = enumeration.enumerators.iter().position(|it| &**it == name);
                // An enum has fewer enumerators than a u32 can count.
                place
                    .map(|place| Value::Enum(place as u32))
                    .ok_or_else(wrong)
            }
            Shape::Alias(alias) => {
                let inner = self.value(json, &scope.inside(&alias.content));
                inner.map_err(|error| self.named(error, scope))
            }
            Shape::Recursive(id) => match scope.enclosing(id) {
                Some(found) => self.value(json, found),
                None => Err(self.no_values(scope)),
            },
            Shape::Sequence(elements) => {
                let value = self.elements(json, elements, scope)?;
                let count = length(&value);
                if elements.count != 0 && count > elements.count as usize {
                    return Err(self.error(scope, format!("{count} elements are too many")));
                }
                Ok(value)
            }
            Shape::Array(elements) => {
                let value = self.elements(json, elements, scope)?;
                let count = length(&value);
                if count != elements.count as usize {
                    return Err(self.error(scope, format!("it has {count} elements")));
                }
                Ok(value)
            }
            Shape::Struct(_) | Shape::Except(_) => self.structure(json, scope),
            Shape::Union(union) => self.union(json, union, scope),
            Shape::Named(Kind::Native | Kind::LocalInterface, _) => Err(self.no_values(scope)),
            Shape::Named(Kind::AbstractInterface, _) if json.is_object() => self.state(json, scope),
            Shape::Named(..) => self.reference(json, scope).map(Value::Reference),
            Shape::ValueBox(_) | Shape::Value(_) | Shape::Event(_) => self.state(json, scope),
        }
    }

    fn plain(&self, json: &Json, kind: Kind, scope: &Scope<'_>) -> Result<Value, JsonError> {
        let value = match kind {
            Kind::Null | Kind::Void => json.is_null().then_some(Value::Nothing),
            Kind::Boolean => json.as_bool().map(Value::Boolean),
            Kind::Octet => integer(json).map(Value::Octet),
            Kind::Short => integer(json).map(Value::Short),
            Kind::UShort => integer(json).map(Value::UShort),
            Kind::Long => integer(json).map(Value::Long),
            Kind::ULong => integer(json).map(Value::ULong),
            Kind::LongLong => integer(json).map(Value::LongLong),
            Kind::ULongLong => integer(json).map(Value::ULongLong),
            // A double beyond the largest float would become infinite.
            Kind::Float => real(json)
                .filter(|it| !it.is_finite() || (*it as f32).is_finite())
                .map(|it| Value::Float(it as f32)),
            Kind::Double => real(json).map(Value::Double),
            Kind::LongDouble => long_double(json).map(Value::LongDouble),
            Kind::Char => character(json).map(Value::Char),
            Kind::WChar => character(json).map(Value::WChar),
            Kind::Principal => hex_bytes(json).map(Value::Octets),
            Kind::Any => return self.any(json, scope).map(Value::Any),
            Kind::TypeCode => return self.type_code(json, scope).map(Value::TypeCode),
            _ => return Err(self.no_values(scope)),
        };
        value.ok_or_else(|| self.wrong(json, scope))
    }

    fn bits(&self, json: &Json, bits: &Bits, scope: &Scope<'_>) -> Result<Value, JsonError> {
        let number = bits::read(bits, json).map_err(|wrong| {
            let error = self.error(scope, wrong.problem);
            wrong.step.into_iter().fold(error, JsonError::within)
        })?;
        let value = bits::value(number, scope.type_code);
        value.ok_or_else(|| self.error(scope, format!("{} does not fit", short(json))))
    }

    fn text(&self, json: &Json, bound: u32, scope: &Scope<'_>) -> Result<String, JsonError> {
        let text = json.as_str().ok_or_else(|| self.wrong(json, scope))?;
        if text.contains('\0') {
            return Err(self.error(scope, "it contains a zero character".to_owned()));
        }
        let count = text.chars().count();
        if bound != 0 && count > bound as usize {
            return Err(self.error(scope, format!("{count} characters are too many")));
        }
        Ok(text.to_owned())
    }

    fn elements(
        &self,
        json: &Json,
        elements: &Elements,
        scope: &Scope<'_>,
    ) -> Result<Value, JsonError> {
        let is_bytes = elements.element.unaliased().kind() == Kind::Octet;
        if is_bytes && let Some(bytes) = hex_bytes(json) {
            return Ok(Value::Octets(bytes));
        }
        let items = json.as_array().ok_or_else(|| self.wrong(json, scope))?;
        let element = scope.inside(&elements.element);
        let read = |(place, item): (usize, &Json)| {
            let value = self.value(item, &element);
            value.map_err(|error| error.within(format!("[{place}]")))
        };
        let values = items.iter().enumerate().map(read);
        let values = values.collect::<Result<Vec<_>, _>>()?;
        if !is_bytes {
            return Ok(Value::Elements(values));
        }
        let bytes = values.into_iter().filter_map(|it| match it {
            Value::Octet(byte) => Some(byte),
            _ => None,
        });
        Ok(Value::Octets(bytes.collect()))
    }

    fn structure(&self, json: &Json, scope: &Scope<'_>) -> Result<Value, JsonError> {
        let (Shape::Struct(made) | Shape::Except(made)) = scope.type_code.shape() else {
            return Err(self.no_values(scope));
        };
        let mut members = Members::of(json).ok_or_else(|| self.wrong(json, scope))?;
        let is_exception = scope.type_code.kind() == Kind::Except;
        if is_exception {
            let id = members.take(EXCEPTION).and_then(Json::as_str);
            if id.is_some_and(|id| id != &*made.named.id) {
                return Err(self.error(scope, format!("`{EXCEPTION}` names another exception")));
            }
        }
        let mut values = Vec::with_capacity(made.members.len());
        for member in &made.members {
            let key = if is_exception {
                exception_key(&member.name)
            } else {
                &member.name
            };
            let part = scope.inside(&member.type_code);
            let content = optional_content(self.types, scope, &member.name, &member.type_code);
            values.push(match content {
                Some(content) => self.optional(&mut members, key, content, &part)?,
                None => self.member(&mut members, key, &part, scope)?,
            });
        }
        self.end(&members, scope)?;
        Ok(Value::Members(values))
    }

    fn member(
        &self,
        members: &mut Members<'_>,
        name: &str,
        member: &Scope<'_>,
        whole: &Scope<'_>,
    ) -> Result<Value, JsonError> {
        match members.take(name) {
            Some(json) => {
                let value = self.value(json, member);
                value.map_err(|error| error.within(format!(".{name}")))
            }
            None => Err(self.error(whole, format!("the member `{name}` is missing"))),
        }
    }

    /// The member `name` with values of type `content`: a sequence of one, or of none if it is null or missing.
    fn optional(
        &self,
        members: &mut Members<'_>,
        name: &str,
        content: &TypeCode,
        sequence: &Scope<'_>,
    ) -> Result<Value, JsonError> {
        let scope = sequence.inside(content);
        let json = members.take(name).filter(|json| !json.is_null());
        let value = json.map(|json| {
            if !may_be_null(content) {
                return self.value(json, &scope);
            }
            let mut members = Members::of(json).ok_or_else(|| self.boxed(json, &scope))?;
            let value = self.member(&mut members, "value", &scope, &scope)?;
            self.end(&members, &scope)?;
            Ok(value)
        });
        let value = value.transpose();
        let value = value.map_err(|error| error.within(format!(".{name}")))?;
        Ok(match value {
            Some(Value::Octet(byte)) => Value::Octets(vec![byte]),
            None if content.unaliased().kind() == Kind::Octet => Value::Octets(Vec::new()),
            value => Value::Elements(value.into_iter().collect()),
        })
    }

    /// The error of JSON that is no object with a `value` that may be null.
    fn boxed(&self, json: &Json, scope: &Scope<'_>) -> JsonError {
        let problem = format!("{} is {}", short(json), kind(json));
        let error = self.error(scope, problem);
        JsonError {
            expected: format!("an object with a `value` of type {}", error.expected),
            example: error.example.map(|it| format!("{{\"value\": {it}}}")),
            ..error
        }
    }

    /// Refuses members that the type does not have.
    fn end(&self, members: &Members<'_>, scope: &Scope<'_>) -> Result<(), JsonError> {
        match members.rest() {
            Some(name) => Err(self.error(scope, format!("there is no member `{name}`"))),
            None => Ok(()),
        }
    }

    fn union(&self, json: &Json, union: &Union, scope: &Scope<'_>) -> Result<Value, JsonError> {
        let mut members = Members::of(json).ok_or_else(|| self.wrong(json, scope))?;
        let discriminator_scope = scope.inside(&union.discriminator);
        let discriminator = self.member(&mut members, "d", &discriminator_scope, scope)?;
        let discriminator = discriminator.label().ok_or_else(|| self.no_values(scope))?;
        let value = match union.select(discriminator) {
            Some(member) => {
                let member = scope.inside(&member.type_code);
                Some(Box::new(self.member(&mut members, "v", &member, scope)?))
            }
            None => None,
        };
        self.end(&members, scope)?;
        Ok(Value::Union {
            discriminator,
            value,
        })
    }

    fn any(&self, json: &Json, scope: &Scope<'_>) -> Result<Any, JsonError> {
        if json.is_null() {
            return Ok(Any::NULL);
        }
        let mut members = Members::of(json).ok_or_else(|| self.wrong(json, scope))?;
        let missing = |name| self.error(scope, format!("the member `{name}` is missing"));
        let type_text = members.take("type").ok_or_else(|| missing("type"))?;
        let value = members.take("value").ok_or_else(|| missing("value"))?;
        self.end(&members, scope)?;
        let type_code = self.type_code(type_text, &scope.inside(&TypeCode::TYPE_CODE));
        let type_code = type_code.map_err(|error| error.within(".type"))?;
        let value = self.value(value, &Scope::new(&type_code));
        let value = value.map_err(|error| error.within(".value"))?;
        let any = Any::from_parts(type_code, &value);
        any.map_err(|error| self.error(scope, error.to_string()).within(".value"))
    }

    fn type_code(&self, json: &Json, scope: &Scope<'_>) -> Result<TypeCode, JsonError> {
        let text = json.as_str().ok_or_else(|| self.wrong(json, scope))?;
        let parsed = self.types.parse(text);
        parsed.map_err(|error| JsonError {
            expected: "a type in IDL".to_owned(),
            ..self.error(scope, error.to_string())
        })
    }

    fn reference(&self, json: &Json, scope: &Scope<'_>) -> Result<Ior, JsonError> {
        if json.is_null() {
            return Ok(Ior::NIL);
        }
        let text = json.as_str().ok_or_else(|| self.wrong(json, scope))?;
        let type_id = scope.type_code.repository_id().unwrap_or_default();
        let wrong = |error: &dyn fmt::Display| {
            self.error(scope, format!("{} is no reference: {error}", short(json)))
        };
        match ObjectUrl::parse(text).map_err(|error| wrong(&error))? {
            ObjectUrl::Ior(ior) => Ok(ior),
            ObjectUrl::Corbaloc(Location::Addresses(place)) => {
                place.to_ior(type_id).map_err(|error| wrong(&error))
            }
            _ => Err(wrong(&"write an IOR: or a corbaloc: with an address")),
        }
    }

    fn state(&self, json: &Json, scope: &Scope<'_>) -> Result<Value, JsonError> {
        if json.is_null() {
            return Ok(Value::Valuetype(None));
        }
        let known = known(self.types);
        let formal_id = scope.type_code.repository_id().unwrap_or_default();
        let id = match self.stated_type(json, scope)? {
            Some(stated) => stated.repository_id().unwrap_or_default().to_owned(),
            None => formal_id.to_owned(),
        };
        let Some(found) = find_state_type(scope, &id, &known) else {
            let problem = if id == formal_id {
                "the member `type` is missing".to_owned()
            } else {
                format!("{id} does not derive from it")
            };
            return Err(self.error(scope, problem));
        };
        let members = found.in_scope(scope, |scope| self.members(json, scope, id != formal_id))?;
        let repository_id = id.into();
        let state = State {
            repository_id,
            members,
        };
        Ok(Value::Valuetype(Some(Arc::new(state))))
    }

    /// The type that the JSON of a valuetype names, if it names one.
    fn stated_type(&self, json: &Json, scope: &Scope<'_>) -> Result<Option<TypeCode>, JsonError> {
        if let Shape::ValueBox(_) = scope.type_code.shape() {
            return Ok(None);
        }
        let key = type_key(scope);
        let stated = json.get("_type").or_else(|| json.get(key));
        let Some(stated) = stated.and_then(Json::as_str) else {
            return Ok(None);
        };
        let parsed = self.types.parse(stated);
        let parsed = parsed.map_err(|error| {
            self.error(scope, error.to_string())
                .within(format!(".{key}"))
        })?;
        Ok(Some(parsed.unaliased().clone()))
    }

    fn members(
        &self,
        json: &Json,
        scope: &Scope<'_>,
        is_derived: bool,
    ) -> Result<Vec<Value>, JsonError> {
        if let Shape::ValueBox(boxed) = scope.type_code.shape() {
            let content = scope.inside(&boxed.content);
            if !is_derived && !may_be_null(&boxed.content) {
                return Ok(vec![self.value(json, &content)?]);
            }
            let mut members = Members::of(json).ok_or_else(|| self.wrong(json, scope))?;
            members.take("type");
            let value = self.member(&mut members, "value", &content, scope)?;
            self.end(&members, scope)?;
            return Ok(vec![value]);
        }
        let mut members = Members::of(json).ok_or_else(|| self.wrong(json, scope))?;
        // The type is read already.
        for key in ["_type", type_key(scope)] {
            if json.get(key).is_some_and(Json::is_string) {
                members.take(key);
            }
        }
        let mut values = Vec::new();
        scope.each_state_member(&mut |member, inner| {
            let (name, part) = (&*member.name, inner.inside(&member.type_code));
            let content = optional_content(self.types, inner, name, &member.type_code);
            values.push(match content {
                Some(content) => self.optional(&mut members, name, content, &part)?,
                None => self.member(&mut members, name, &part, scope)?,
            });
            Ok(())
        })?;
        self.end(&members, scope)?;
        Ok(values)
    }

    fn wrong(&self, json: &Json, scope: &Scope<'_>) -> JsonError {
        let problem = match kind(json) {
            "null" => "it is null".to_owned(),
            "a number" if is_number(scope.type_code) => format!("{} does not fit", short(json)),
            kind => format!("{} is {kind}", short(json)),
        };
        self.error(scope, problem)
    }

    fn no_values(&self, scope: &Scope<'_>) -> JsonError {
        self.error(scope, "no message can contain such a value".to_owned())
    }

    fn error(&self, scope: &Scope<'_>, problem: String) -> JsonError {
        let example = example(self.types, scope.type_code).map(|it| it.to_string());
        JsonError {
            steps: Vec::new(),
            expected: self.types.text(scope.type_code),
            problem,
            example: example.filter(|it| it.len() <= EXAMPLE_MAX),
        }
    }

    /// Adds the name of the alias to an error in the whole value.
    fn named(&self, mut error: JsonError, scope: &Scope<'_>) -> JsonError {
        if error.steps.is_empty() && !error.expected.contains(" (") {
            error.expected = format!("{} ({})", self.types.text(scope.type_code), error.expected);
        }
        error
    }
}

/// The members of a JSON object that are not read yet.
struct Members<'j> {
    object: &'j Map<String, Json>,
    taken: Vec<String>,
}

impl<'j> Members<'j> {
    fn of(json: &'j Json) -> Option<Self> {
        let object = json.as_object()?;
        Some(Self {
            object,
            taken: Vec::new(),
        })
    }

    fn take(&mut self, name: &str) -> Option<&'j Json> {
        let value = self.object.get(name);
        if value.is_some() {
            self.taken.push(name.to_owned());
        }
        value
    }

    /// A member that was not taken.
    fn rest(&self) -> Option<&str> {
        if self.taken.len() >= self.object.len() {
            return None;
        }
        let mut names = self.object.keys().map(String::as_str);
        names.find(|name| !self.taken.iter().any(|taken| taken == name))
    }
}

/// True for types whose JSON is a number.
fn is_number(type_code: &TypeCode) -> bool {
    use Kind::{
        Double, Fixed, Float, Long, LongDouble, LongLong, Octet, Short, ULong, ULongLong, UShort,
    };
    matches!(
        type_code.kind(),
        Octet
            | Short
            | UShort
            | Long
            | ULong
            | LongLong
            | ULongLong
            | Float
            | Double
            | LongDouble
            | Fixed
    )
}

fn length(value: &Value) -> usize {
    match value {
        Value::Elements(values) => values.len(),
        Value::Octets(bytes) => bytes.len(),
        _ => 0,
    }
}

/// The longest example in a message.
const EXAMPLE_MAX: usize = 300;
