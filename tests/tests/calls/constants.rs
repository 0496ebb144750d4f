//! Constants have the values that the IDL gives them.

use rtorb_tests::snapshots::constants::{self, Colour};

#[test]
fn integers_reach_their_ends() {
    assert_eq!(
        (constants::LOWEST_SHORT, constants::HIGHEST_U_SHORT),
        (i16::MIN, u16::MAX)
    );
    assert_eq!(
        (constants::LOWEST_LONG, constants::HIGHEST_U_LONG),
        (i32::MIN, u32::MAX)
    );
    assert_eq!(
        (constants::LOWEST_LONG_LONG, constants::HIGHEST_U_LONG_LONG),
        (i64::MIN, u64::MAX)
    );
    assert_eq!(constants::MASK, 0xc0);
}

#[test]
fn floats_have_the_precision_of_their_type() {
    assert_eq!(constants::THIRD.to_bits(), (1.0f32 / 3.0).to_bits());
    assert_eq!(constants::TINY.to_bits(), (-2.5e-300f64).to_bits());
    assert_eq!(constants::HALF, 0.5.into());
    assert_eq!(constants::PRICE.to_string(), "12.5");
}

#[test]
fn texts_keep_their_escapes() {
    assert_eq!(constants::TEXT, "tab\t quote\" back\\ end\n");
    assert_eq!(constants::WIDE_TEXT, "wide \u{20ac}");
    assert_eq!((constants::QUOTE, constants::EURO.0), ('\'', '\u{20ac}'));
}

#[test]
fn an_enumerator_is_its_variant() {
    assert_eq!(constants::FAVOURITE, Colour::Green);
    const { assert!(constants::YES) }
}
