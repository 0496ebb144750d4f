//! IDL constants, and the literals of labels.

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::scope::Scope;
use super::types::Plain;
use super::{documentation, enums, names};
use crate::tree::{ItemId, ItemKind, Type, Value};

/// `pub const NAME: T = value;`
pub(super) fn generate(scope: Scope<'_>, id: ItemId, ty: &Type, value: &Value) -> TokenStream {
    let item = scope.tree.item(id);
    let documentation = documentation::attributes(&item.documentation);
    let name = names::item_ident(item);
    let rust_type = constant_type(scope, ty, value);
    let value = literal(scope, ty, value);
    quote!(#documentation pub const #name: #rust_type = #value;)
}

/// `value` of type `ty` as an expression; for the types of labels it is a pattern as well.
pub(super) fn literal(scope: Scope<'_>, ty: &Type, value: &Value) -> TokenStream {
    let resolved = scope.tree.resolved(ty);
    match (value, resolved) {
        (Value::Integer(number), _) => integer(resolved, *number),
        (Value::Float(number), _) => float(resolved, *number),
        (Value::Fixed { unscaled, scale }, Type::Fixed { scale: wanted, .. }) if wanted > scale => {
            fixed(*unscaled * 10i128.pow(u32::from(wanted - scale)))
        }
        (Value::Fixed { unscaled, .. }, _) => fixed(*unscaled),
        (Value::Boolean(value), _) => quote!(#value),
        (Value::Char(value), Type::WChar) => quote!(::rtorb::codegen::WChar(#value)),
        (Value::Char(value), _) => quote!(#value),
        (Value::Text(text), _) => quote!(#text),
        (Value::Enumerator(id, position), _) => {
            let path = scope.path(*id);
            let ItemKind::Enum { enumerators } = &scope.tree.item(*id).kind else {
                unreachable!("the checker makes enumerators of enums only")
            };
            let variant = enums::variant(&enumerators[*position as usize]);
            quote!(#path::#variant)
        }
    }
}

fn constant_type(scope: Scope<'_>, ty: &Type, value: &Value) -> TokenStream {
    match (scope.tree.resolved(ty), value) {
        (Type::String { .. } | Type::WString { .. }, _) => quote!(&'static str),
        (Type::FixedConstant, Value::Fixed { unscaled, scale }) => {
            let digits =
                u16::try_from(unscaled.unsigned_abs().to_string().len()).unwrap_or(u16::MAX);
            scope.owned(&Type::Fixed {
                digits: digits.max(*scale),
                scale: *scale,
            })
        }
        _ => scope.owned(ty),
    }
}

/// With its type as a suffix, since a literal alone would be an `i32` where nothing else decides.
fn integer(ty: &Type, number: i128) -> TokenStream {
    let suffix = if ty.is_integer() {
        Plain::of(ty).rust
    } else {
        "i32"
    };
    let size: Literal = format!("{}{suffix}", number.unsigned_abs())
        .parse()
        .expect("digits and a suffix are a literal");
    if number < 0 {
        quote!(-#size)
    } else {
        quote!(#size)
    }
}

fn float(ty: &Type, number: f64) -> TokenStream {
    match ty {
        Type::LongDouble => {
            let bits = Literal::u128_unsuffixed(binary128(number));
            quote!(::rtorb::codegen::LongDouble(#bits))
        }
        _ => {
            let sign = number.is_sign_negative().then(|| quote!(-));
            let size = number.abs();
            let size: Literal = match ty {
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "the constant's type says so"
                )]
                Type::Float => format!("{:?}f32", size as f32),
                _ => format!("{size:?}f64"),
            }
            .parse()
            .expect("Debug of a finite number is a literal");
            quote!(#sign #size)
        }
    }
}

fn fixed(unscaled: i128) -> TokenStream {
    let size = Literal::u128_unsuffixed(unscaled.unsigned_abs());
    let sign = (unscaled < 0).then(|| quote!(-));
    quote! {
        match ::rtorb::codegen::Fixed::new(#sign #size) {
            ::core::result::Result::Ok(number) => number,
            ::core::result::Result::Err(_) => ::core::panic!("the IDL compiler has counted the digits"),
        }
    }
}

/// The IEEE binary128 form of a double: the fraction widened, the exponent biased anew. Exact.
fn binary128(number: f64) -> u128 {
    const BIAS_CHANGE: u128 = 16_383 - 1_023;
    let bits = number.to_bits();
    let sign = u128::from(bits >> 63) << 127;
    let exponent = u128::from((bits >> 52) & 0x7ff);
    let fraction = u128::from(bits & ((1 << 52) - 1));
    let magnitude = match (exponent, fraction) {
        (0, 0) => 0,
        (0, _) => {
            // A subnormal double is normal here: its leading one moves out of the fraction.
            let shift = fraction.leading_zeros() - 75;
            (BIAS_CHANGE + 1 - u128::from(shift)) << 112
                | (fraction << shift & ((1 << 52) - 1)) << 60
        }
        (0x7ff, _) => 0x7fff << 112 | fraction << 60,
        _ => (exponent + BIAS_CHANGE) << 112 | fraction << 60,
    };
    sign | magnitude
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integer_limits_are_literals_of_their_type() {
        let shown = |ty, number| integer(&ty, number).to_string().replace(' ', "");
        assert_eq!(
            shown(Type::LongLong, i128::from(i64::MIN)),
            "-9223372036854775808i64"
        );
        assert_eq!(
            shown(Type::ULongLong, i128::from(u64::MAX)),
            "18446744073709551615u64"
        );
        assert_eq!(shown(Type::Octet, 255), "255u8");
    }

    #[test]
    fn float_literals_round_trip() {
        let shown = |ty, number| float(&ty, number).to_string().replace(' ', "");
        assert_eq!(shown(Type::Double, 1e300), "1e300f64");
        assert_eq!(shown(Type::Double, -0.0), "-0.0f64");
        assert_eq!(shown(Type::Float, 0.1), "0.1f32");
    }

    #[test]
    fn doubles_become_binary128_exactly() {
        assert_eq!(binary128(1.0), 0x3fff << 112);
        assert_eq!(binary128(-2.5), 0xc000_4000 << 96);
        // The smallest subnormal double is 2 to the power of -1074.
        assert_eq!(binary128(f64::from_bits(1)), (16_383 - 1_074) << 112);
    }
}
