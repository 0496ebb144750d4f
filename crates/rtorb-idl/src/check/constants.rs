//! Constant expressions: their values, converted to the declared type (CORBA 3.3 part 1, 7.10).

use crate::ast::{
    Expression, ExpressionKind, Name, Operand, Preamble, ScopedName, TypeKind, TypeSpec,
};
use crate::diagnostic::Diagnostic;
use crate::source::Location;
use crate::tree::{BASIC_TYPES, ItemId, ItemKind, Type, Value};

use super::Checker;
use super::fixed::Decimal;
use super::scopes::Entity;

impl Checker<'_> {
    pub(super) fn constant(
        &mut self,
        preamble: &Preamble,
        spec: &TypeSpec,
        name: &Name,
        expression: &Expression,
    ) {
        let ty = match &spec.kind {
            TypeKind::Fixed(None) => Some(Type::FixedConstant),
            _ => self.type_of(spec),
        };
        let ty = ty.filter(|ty| self.is_constant_type(ty, spec.location));
        let value = ty.as_ref().and_then(|ty| self.evaluate(expression, ty));
        let value = value.unwrap_or(Value::Integer(0));
        let ty = ty.unwrap_or(Type::Void);
        self.declare_item(preamble, name, ItemKind::Constant { ty, value });
    }

    fn is_constant_type(&mut self, ty: &Type, location: Location) -> bool {
        let resolved = self.tree.resolved(ty);
        let possible = match resolved {
            Type::Any
            | Type::TypeCode
            | Type::Object
            | Type::ValueBase
            | Type::Sequence { .. }
            | Type::Array { .. }
            | Type::Map { .. } => false,
            Type::Named(id) => matches!(self.tree.item(*id).kind, ItemKind::Enum { .. }),
            // The type of a typedef whose error has been reported.
            Type::Void => return false,
            _ => true,
        };
        if !possible {
            let label = "expected a number, `boolean`, `char`, `octet`, `string`, their wide forms, `fixed` or an enum";
            self.error(location, "a constant cannot have this type", label);
        }
        possible
    }

    /// The value of `expression` converted to type `ty`; `None` after a reported error.
    pub(super) fn evaluate(&mut self, expression: &Expression, ty: &Type) -> Option<Value> {
        let target = self.tree.resolved(ty).clone();
        let operand = self.operand(expression, &target)?;
        self.converted(operand, &target, expression.location)
    }

    fn operand(&mut self, expression: &Expression, target: &Type) -> Option<Operand> {
        match &expression.kind {
            ExpressionKind::Value(operand) => Some(operand.clone()),
            ExpressionKind::Name(name) => self.named_value(name),
            ExpressionKind::Unary { operator, operand } => {
                let value = self.operand(operand, target)?;
                self.unary(operator, &value.value, target, expression.location)
            }
            ExpressionKind::Binary { operator, operands } => {
                let left = self.operand(&operands.0, target);
                let right = self.operand(&operands.1, target);
                self.binary(operator, &left?.value, &right?.value, expression.location)
            }
            ExpressionKind::Wrong => None,
        }
    }

    fn named_value(&mut self, name: &ScopedName) -> Option<Operand> {
        let entity = self.lookup(name)?;
        match entity {
            Entity::Enumerator(id, at) => Some(Value::Enumerator(id, at).into()),
            Entity::Item(id) => match &self.tree.item(id).kind {
                // The type of a constant whose error has been reported.
                ItemKind::Constant { ty: Type::Void, .. } => None,
                ItemKind::Constant { ty, value } => {
                    let wide = matches!(self.tree.resolved(ty), Type::WChar | Type::WString { .. });
                    Some(Operand {
                        value: value.clone(),
                        wide,
                    })
                }
                _ => self.not_a_value(name, entity),
            },
            _ => self.not_a_value(name, entity),
        }
    }

    fn not_a_value(&mut self, name: &ScopedName, entity: Entity) -> Option<Operand> {
        let what = self.describe(entity);
        let message = format!("`{name}` is not a constant");
        self.error(name.location(), message, format!("this is {what}"));
        None
    }

    fn unary(
        &mut self,
        operator: &str,
        value: &Value,
        target: &Type,
        at: Location,
    ) -> Option<Operand> {
        let result = match (operator, value) {
            ("+", Value::Integer(_) | Value::Float(_) | Value::Fixed { .. }) => Some(value.clone()),
            ("-", Value::Integer(value)) => value.checked_neg().map(Value::Integer),
            ("-", Value::Float(value)) => Some(Value::Float(-value)),
            ("-", Value::Fixed { unscaled, scale }) => Some(Value::Fixed {
                unscaled: -unscaled,
                scale: *scale,
            }),
            ("~", Value::Integer(value)) => {
                // Inverts all bits of an unsigned type, up to its size (7.10.1.2).
                let all = target
                    .integer_range()
                    .filter(|(least, _)| *least == 0)
                    .map(|(_, most)| most);
                Some(Value::Integer(
                    all.filter(|all| value <= all)
                        .map_or(!value, |all| all - value),
                ))
            }
            _ => {
                let message = format!("`{operator}` cannot be applied to {}", describe(value));
                self.error(at, message, "");
                return None;
            }
        };
        self.in_range(result, at)
    }

    fn binary(
        &mut self,
        operator: &str,
        left: &Value,
        right: &Value,
        at: Location,
    ) -> Option<Operand> {
        if matches!(operator, "/" | "%")
            && is_zero(right)
            && matches!(
                left,
                Value::Integer(_) | Value::Float(_) | Value::Fixed { .. }
            )
        {
            self.error(at, "division by zero", "this has no value");
            return None;
        }
        match (left, right) {
            (Value::Integer(left), Value::Integer(right)) => {
                if matches!(operator, "<<" | ">>") && !(0..64).contains(right) {
                    let message = format!("a shift by {right} is not possible");
                    self.error(at, message, "the number of bits must be from 0 to 63");
                    return None;
                }
                let value = integers(operator, *left, *right);
                self.in_range(value.map(Value::Integer), at)
            }
            // The standard forbids mixing them; other compilers allow it.
            (Value::Integer(left), Value::Float(right)) => {
                self.warn_of_form(
                    at,
                    "an integer as a floating-point value",
                    "write `1.0` for `1`",
                );
                self.floats(operator, *left as f64, *right, at)
            }
            (Value::Float(left), Value::Integer(right)) => {
                self.warn_of_form(
                    at,
                    "an integer as a floating-point value",
                    "write `1.0` for `1`",
                );
                self.floats(operator, *left, *right as f64, at)
            }
            (Value::Float(left), Value::Float(right)) => self.floats(operator, *left, *right, at),
            (Value::Fixed { .. }, Value::Fixed { .. }) => self.fixeds(operator, left, right, at),
            _ => {
                let message = format!(
                    "`{operator}` cannot be applied to {} and {}",
                    describe(left),
                    describe(right)
                );
                self.error(at, message, "");
                None
            }
        }
    }

    fn floats(&mut self, operator: &str, left: f64, right: f64, at: Location) -> Option<Operand> {
        let value = match operator {
            "+" => left + right,
            "-" => left - right,
            "*" => left * right,
            "/" => left / right,
            _ => return self.integers_only(operator, "floating-point numbers", at),
        };
        self.in_range(value.is_finite().then_some(Value::Float(value)), at)
    }

    fn fixeds(
        &mut self,
        operator: &str,
        left: &Value,
        right: &Value,
        at: Location,
    ) -> Option<Operand> {
        let (left, right) = (Decimal::of(left)?, Decimal::of(right)?);
        let value = match operator {
            "+" => left.plus(&right),
            "-" => left.plus(&right.negated()),
            "*" => left.times(&right),
            "/" => left.over(&right),
            _ => return self.integers_only(operator, "fixed-point numbers", at),
        };
        self.in_range(value.value(), at)
    }

    fn integers_only(&mut self, operator: &str, what: &str, at: Location) -> Option<Operand> {
        let message = format!("`{operator}` cannot be applied to {what}");
        self.error(at, message, "this operator needs integers");
        None
    }

    fn in_range(&mut self, value: Option<Value>, at: Location) -> Option<Operand> {
        if value.is_none() {
            self.error(at, "the value of this expression is too large", "");
        }
        value.map(Operand::from)
    }

    /// `operand` converted to the type `target`, which is not a typedef.
    fn converted(&mut self, operand: Operand, target: &Type, at: Location) -> Option<Value> {
        let Operand { value, wide } = operand;
        match (target, &value) {
            (Type::Float | Type::Double | Type::LongDouble, Value::Float(value)) => {
                self.float(*value, target, at)
            }
            // The standard requires a floating-point literal; other compilers accept an integer.
            (Type::Float | Type::Double | Type::LongDouble, Value::Integer(value)) => {
                self.warn_of_form(
                    at,
                    "an integer as a floating-point value",
                    "write `1.0` for `1`",
                );
                Some(Value::Float(*value as f64))
            }
            (Type::Boolean, Value::Boolean(_)) => Some(value),
            (Type::Char, Value::Char(value)) if !wide => self.narrow(*value, at),
            (Type::WChar, Value::Char(_)) if wide => Some(value),
            (Type::String { bound }, Value::Text(text)) if !wide => {
                self.text(text, *bound, wide, at)
            }
            (Type::WString { bound }, Value::Text(text)) if wide => {
                self.text(text, *bound, wide, at)
            }
            (Type::FixedConstant, Value::Fixed { .. }) => Some(value),
            (Type::Fixed { digits, scale }, Value::Fixed { .. }) => {
                self.fixed(&value, *digits, *scale, at)
            }
            (Type::Named(id), Value::Enumerator(of, _)) if id == of => Some(value),
            (Type::Named(id), Value::Enumerator(of, _)) => self.other_enum(*id, *of, at),
            (target, Value::Integer(value)) if target.is_integer() => {
                self.integer(*value, target, at)
            }
            _ => {
                self.mismatch(&value, wide, target, at);
                None
            }
        }
    }

    fn mismatch(&mut self, value: &Value, wide: bool, target: &Type, at: Location) {
        let wanted = self.type_name(target);
        let found = match (value, wide) {
            (Value::Text(_), true) => "a wide string",
            (Value::Char(_), true) => "a wide character",
            _ => describe(value),
        };
        let diagnostic = Diagnostic::error(format!("expected {wanted}, found {found}"))
            .at(at, format!("this is {found}"));
        let help = match (target, value, wide) {
            (Type::WString { .. }, Value::Text(_), false) => "a wide string is written L\"...\"",
            (Type::WChar, Value::Char(_), false) => "a wide character is written L'...'",
            (Type::Char | Type::WChar, Value::Text(_), _) => "a character takes single quotes: 'x'",
            (Type::Boolean, Value::Integer(_), _) => "the boolean values are `TRUE` and `FALSE`",
            (Type::Fixed { .. } | Type::FixedConstant, Value::Integer(_) | Value::Float(_), _) => {
                "a fixed-point number ends in `d`: 1.5d"
            }
            _ => return self.diagnostics.push(diagnostic),
        };
        self.diagnostics.push(diagnostic.help(help));
    }

    fn integer(&mut self, value: i128, target: &Type, at: Location) -> Option<Value> {
        let (least, most) = target.integer_range()?;
        if (least..=most).contains(&value) {
            return Some(Value::Integer(value));
        }
        let name = self.type_name(target);
        let message = format!("{value} does not fit into {name}");
        self.error(at, message, format!("must be from {least} to {most}"));
        None
    }

    fn float(&mut self, value: f64, target: &Type, at: Location) -> Option<Value> {
        if *target == Type::Float && value.abs() > f64::from(f32::MAX) {
            let message = format!("{value:e} does not fit into `float`");
            let label = format!("the largest `float` is {:e}", f32::MAX);
            self.error(at, message, label);
            return None;
        }
        Some(Value::Float(value))
    }

    /// Converts a character to the type `char`, which is one byte of ISO 8859-1 (7.2.5.2).
    fn narrow(&mut self, value: char, at: Location) -> Option<Value> {
        if u32::from(value) <= 0xff {
            return Some(Value::Char(value));
        }
        let diagnostic = Diagnostic::error(format!("`{value}` does not fit into `char`"))
            .at(at, "a `char` is a character of ISO 8859-1")
            .help("use `wchar` and L'...'");
        self.diagnostics.push(diagnostic);
        None
    }

    fn text(&mut self, text: &str, bound: Option<u32>, wide: bool, at: Location) -> Option<Value> {
        if text.contains('\0') {
            let label = "strings end at the character 0 on the wire";
            self.error(at, "a string cannot contain the character 0", label);
            return None;
        }
        let length = text.chars().count();
        if let Some(bound) = bound.filter(|&bound| length > bound as usize) {
            let message = format!("this string is longer than its bound of {bound}");
            self.error(at, message, format!("it has {length} characters"));
            return None;
        }
        if let Some(foreign) = text
            .chars()
            .find(|&character| !wide && u32::from(character) > 0xff)
        {
            let diagnostic = Diagnostic::error(format!("`{foreign}` does not fit into a `string`"))
                .at(at, "a `string` is made of characters of ISO 8859-1")
                .help("use `wstring` and L\"...\"");
            self.diagnostics.push(diagnostic);
            return None;
        }
        Some(Value::Text(text.to_owned()))
    }

    fn fixed(&mut self, value: &Value, digits: u16, scale: u16, at: Location) -> Option<Value> {
        let decimal = Decimal::of(value)?.truncated(scale);
        if decimal.whole_digits() > usize::from(digits - scale) {
            let message = format!("this value does not fit into `fixed<{digits}, {scale}>`");
            let whole = digits - scale;
            let label = format!("it has more than {whole} digits before the point");
            self.error(at, message, label);
            return None;
        }
        decimal.value()
    }

    fn other_enum(&mut self, wanted: ItemId, found: ItemId, at: Location) -> Option<Value> {
        let (wanted, found) = (&self.tree.item(wanted).name, &self.tree.item(found).name);
        let message = format!("expected a value of the enum `{wanted}`");
        let label = format!("this is a value of the enum `{found}`");
        self.error(at, message, label);
        None
    }

    fn type_name(&self, ty: &Type) -> String {
        let name = match ty {
            Type::Int8 => "`int8`",
            Type::Boolean => "a boolean",
            Type::Char => "a character",
            Type::WChar => "a wide character",
            Type::String { .. } => "a string",
            Type::WString { .. } => "a wide string",
            Type::Fixed { .. } | Type::FixedConstant => "a fixed-point number",
            Type::Named(id) => {
                return format!("a value of the enum `{}`", self.tree.item(*id).name);
            }
            _ => {
                let basic = BASIC_TYPES.iter().find(|(_, basic)| basic == ty);
                return basic.map_or("a constant".to_owned(), |(name, _)| format!("`{name}`"));
            }
        };
        name.to_owned()
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Integer(value) => *value == 0,
        Value::Float(value) => *value == 0.0,
        Value::Fixed { unscaled, .. } => *unscaled == 0,
        _ => false,
    }
}

fn integers(operator: &str, left: i128, right: i128) -> Option<i128> {
    match operator {
        "|" => Some(left | right),
        "^" => Some(left ^ right),
        "&" => Some(left & right),
        "<<" => left.checked_mul(1i128 << u32::try_from(right).ok()?),
        ">>" => Some(left >> u32::try_from(right).ok()?),
        "+" => left.checked_add(right),
        "-" => left.checked_sub(right),
        "*" => left.checked_mul(right),
        "/" => left.checked_div(right),
        _ => left.checked_rem(right),
    }
}

fn describe(value: &Value) -> &'static str {
    match value {
        Value::Integer(_) => "an integer",
        Value::Float(_) => "a floating-point number",
        Value::Fixed { .. } => "a fixed-point number",
        Value::Boolean(_) => "a boolean",
        Value::Char(_) => "a character",
        Value::Text(_) => "a string",
        Value::Enumerator(..) => "an enumerator",
    }
}
