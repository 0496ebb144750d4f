//! Our echo of every type, the values that all clients send, and our client.

use std::sync::{Arc, OnceLock};

use rtorb::any::{Any, Typed};
use rtorb::cdr::{WChar, WString};
use rtorb::type_code::TypeCode;
use rtorb::{ObjectRef, SystemException};
use rtorb_tests::stubs::matrix::{
    ByBoolean, ByChar, ByColour, ByHyper, ByLong, Colour, Doubles, Echo, EchoAUserExceptionError,
    EchoServant, Ends, Entries, Entry, Grid, JudgeServant, Label, Line, Lists, Longs, Names,
    Octets, Pin, Pixel, Pixels, Point, Price, SamplesServant, Shared, Shorts, Strings, Text, Tree,
    Triple, Trouble, WideLabel, WideStrings,
};

/// The number of values of each type that a client sends.
const VALUES: i32 = 4;

/// The operation that raises an exception, and is no echo.
const EXCEPTION: &str = "a_user_exception";

/// The object that the references among the values lead to.
static OBJECT: OnceLock<Echo> = OnceLock::new();

/// Chooses the object that the references among the values lead to.
pub(super) fn set_object(echo: &Echo) {
    OBJECT.get_or_init(|| echo.clone());
}

/// Our servant of all three interfaces.
#[derive(Debug)]
pub(super) struct Ours;

/// The owned value of a borrowed argument.
trait Own<O> {
    fn own(self) -> O;
}

impl<T> Own<T> for T {
    fn own(self) -> T {
        self
    }
}

impl<T: Clone> Own<T> for &T {
    fn own(self) -> T {
        self.clone()
    }
}

impl<T: Clone> Own<Vec<T>> for &[T] {
    fn own(self) -> Vec<T> {
        self.to_vec()
    }
}

impl Own<String> for &str {
    fn own(self) -> String {
        self.to_owned()
    }
}

impl<T: Clone> Own<Option<T>> for Option<&T> {
    fn own(self) -> Option<T> {
        self.cloned()
    }
}

/// Lends an owned value as the operations take it.
macro_rules! lend {
    (copy $value:expr) => {
        $value
    };
    (lend $value:expr) => {
        &$value
    };
    (option $value:expr) => {
        $value.as_ref()
    };
}

/// Implements everything from a line for each type: how it is lent, the operation, the types, what compares two values, and the values.
macro_rules! matrix {
    ($($how:ident $name:ident($lent:ty) -> $owned:ty, $same:expr, [$($value:expr),+ $(,)?];)*) => {
        impl EchoServant for Ours {
            $(fn $name(&self, given: $lent, both: $lent) -> Result<($owned, $owned, $owned), SystemException> {
                Ok((given.own(), given.own(), both.own()))
            })*

            fn a_user_exception(&self, reason: &str, code: i32, at: &Pixel) -> Result<(), EchoAUserExceptionError> {
                Err(Trouble { reason: reason.to_owned(), code, at: *at }.into())
            }
        }

        impl SamplesServant for Ours {
            $(fn $name(&self, index: i32) -> Result<$owned, SystemException> {
                Ok(values::$name(index))
            })*
        }

        impl JudgeServant for Ours {
            $(fn $name(&self, index: i32, value: $lent) -> Result<bool, SystemException> {
                let value: $owned = value.own();
                Ok($same(&value, &values::$name(index)))
            })*
        }

        /// The values of each type by their index, which begins again after the last.
        mod values {
            use super::*;

            $(pub(super) fn $name(index: i32) -> $owned {
                let values: Vec<$owned> = vec![$($value),+];
                let at = usize::try_from(index).expect("clients count from 0") % values.len();
                values.into_iter().nth(at).expect("it is below the number of values")
            })*
        }

        /// Sends every value of every type to an echo. Returns each operation with `ok`, or with what was wrong.
        pub(super) fn check(echo: &Echo) -> Vec<(String, String)> {
            let mut said = vec![$((stringify!($name).to_owned(), {
                let one = |index: i32| -> Result<[bool; 3], SystemException> {
                    let (given, other) = (values::$name(index), values::$name(index + 1));
                    let (result, both, made) = echo.$name(lend!($how given.clone()), lend!($how other.clone()))?;
                    Ok([$same(&result, &given), $same(&both, &given), $same(&made, &other)])
                };
                verdict(one)
            })),*];
            said.push((EXCEPTION.to_owned(), verdict(|index| exception(echo, index))));
            said
        }
    };
}

/// Sends every value by `one`, which returns whether the result, the `inout` and the `out` parameter are right.
fn verdict(one: impl Fn(i32) -> Result<[bool; 3], SystemException>) -> String {
    let mut right = [true; 3];
    for index in 0..VALUES {
        match one(index) {
            Ok(now) => (0..3).for_each(|at| right[at] &= now[at]),
            Err(failed) => return format!("echo {}", failed.kind),
        }
    }
    let wrong = ["result", "inout", "out"].into_iter().zip(right);
    let wrong: Vec<&str> = wrong.filter(|it| !it.1).map(|it| it.0).collect();
    if wrong.is_empty() {
        "ok".to_owned()
    } else {
        format!("differs: {}", wrong.join(" "))
    }
}

fn exception(echo: &Echo, index: i32) -> Result<[bool; 3], SystemException> {
    let trouble = Trouble {
        reason: values::a_string(index),
        code: values::a_long(index),
        at: values::a_fixed_struct(index),
    };
    let is_right = match echo.a_user_exception(&trouble.reason, trouble.code, &trouble.at) {
        Ok(()) => false,
        Err(EchoAUserExceptionError::Trouble(raised)) => raised == trouble,
        Err(EchoAUserExceptionError::System(failed)) => return Err(failed),
    };
    Ok([is_right, true, true])
}

fn equal<T: PartialEq>(one: &T, other: &T) -> bool {
    one == other
}

/// Whether both lead to one object. An ORB may write a reference in its own way.
fn same_object(one: &Option<ObjectRef>, other: &Option<ObjectRef>) -> bool {
    let place = |it: &ObjectRef| {
        let profile = it.ior().iiop_profiles().next();
        profile.map(|it| (it.host, it.port, it.object_key))
    };
    one.as_ref().map(place) == other.as_ref().map(place)
}

fn same_reference(one: &Option<Echo>, other: &Option<Echo>) -> bool {
    let object = |it: &Option<Echo>| it.as_ref().map(|it| it.as_object().clone());
    same_object(&object(one), &object(other))
}

/// Whether the values are equal, and one value if they were one.
fn same_sharing(one: &Shared, other: &Shared) -> bool {
    let is_one = |it: &Shared| match (&it.first, &it.second) {
        (Some(first), Some(second)) => Arc::ptr_eq(first, second),
        _ => false,
    };
    one == other && is_one(one) == is_one(other)
}

fn pixel(layer: u8) -> Pixel {
    Pixel {
        layer,
        depth: f64::from(layer) + 0.125,
        x: -i16::from(layer) - 300,
        hue: Colour::Blue,
        visible: layer % 2 == 1,
        id: -0x0102_0304_0506_0708,
        mark: 'p',
    }
}

fn entry(name: &str) -> Entry {
    Entry {
        name: name.to_owned(),
        numbers: (0..name.len() as i32).collect(),
        weight: -1.5,
    }
}

fn line(name: &str) -> Line {
    Line {
        start: pixel(1),
        label: entry(name),
        last: pixel(2),
        width: 200,
    }
}

fn tree(depth: i32) -> Tree {
    Tree {
        number: depth,
        branches: (0..depth).map(tree).collect(),
    }
}

fn point(x: i32) -> Option<Arc<Point>> {
    Some(Arc::new(Point { x, y: 0.25 }))
}

fn pin(name: &str, beside: Option<Arc<Point>>) -> Option<Arc<Pin>> {
    Some(Arc::new(Pin {
        x: -3,
        y: 1e300,
        name: name.to_owned(),
        beside,
        after: 0x0102_0304,
    }))
}

fn label(text: &str) -> Label {
    Label::try_from(text).expect("it is short")
}

fn wide_label(text: &str) -> WideLabel {
    WideLabel::try_from(WString::from(text)).expect("it is short")
}

fn price(thousandths: i128) -> Price {
    Price::new(thousandths).expect("it has nine digits at most")
}

fn any<T: Typed + rtorb::cdr::Encode>(value: &T) -> Any {
    Any::from_value(value).expect("it can be sent")
}

fn shorts(values: &[i16]) -> Shorts {
    Shorts::try_from(values.to_vec()).expect("it is short")
}

fn texts<const N: usize>(texts: [&str; N]) -> [String; N] {
    texts.map(str::to_owned)
}

matrix! {
    copy an_octet(u8) -> u8, equal, [0, 1, 0x80, 0xff];
    copy a_boolean(bool) -> bool, equal, [false, true];
    copy a_char(char) -> char, equal, ['a', '~', ' '];
    copy a_wchar(WChar) -> WChar, equal, [WChar('a'), WChar('\u{e9}'), WChar('\u{2713}')];
    copy a_short(i16) -> i16, equal, [0, -2, i16::MIN, 0x0102];
    copy an_unsigned_short(u16) -> u16, equal, [0, 1, u16::MAX, 0x0102];
    copy a_long(i32) -> i32, equal, [0, -2, i32::MIN, 0x0102_0304];
    copy an_unsigned_long(u32) -> u32, equal, [0, 1, u32::MAX, 0x0102_0304];
    copy a_long_long(i64) -> i64, equal, [0, -2, i64::MIN, 0x0102_0304_0506_0708];
    copy an_unsigned_long_long(u64) -> u64, equal, [0, 1, u64::MAX, 0x0102_0304_0506_0708];
    copy a_float(f32) -> f32, equal, [0.0, -1.5, f32::MAX, f32::INFINITY];
    copy a_double(f64) -> f64, equal, [0.0, -1.5, f64::MIN_POSITIVE, f64::NEG_INFINITY];
    lend a_string(&str) -> String, equal, [String::new(), "plain".to_owned(), "caf\u{e9} \u{ff}".to_owned(), "a longer text".to_owned()];
    lend a_bounded_string(&Label) -> Label, equal, [label(""), label("eight of"), label("abc")];
    lend a_wstring(&WString) -> WString, equal, [WString::from(""), WString::from("plain"), WString::from("\u{3b1}\u{3b2}"), WString::from("\u{65e5}\u{672c}\u{1f980}")];
    lend a_bounded_wstring(&WideLabel) -> WideLabel, equal, [wide_label(""), wide_label("\u{3b1}bcdefgh")];
    copy an_enum(Colour) -> Colour, equal, [Colour::Red, Colour::Green, Colour::Blue];
    copy a_fixed(Price) -> Price, equal, [price(0), price(-1), price(999_999_999), price(-1_234_500)];
    lend a_fixed_struct(&Pixel) -> Pixel, equal, [pixel(0), pixel(255)];
    lend a_variable_struct(&Entry) -> Entry, equal, [entry(""), entry("abc"), entry("abcdefgh")];
    lend a_nested_struct(&Line) -> Line, equal, [line(""), line("abcd")];
    lend a_recursive_struct(&Tree) -> Tree, equal, [tree(0), tree(1), tree(4)];
    lend a_union_by_enum(&ByColour) -> ByColour, equal, [
        ByColour::Number(7),
        ByColour::Text("seven".to_owned()),
        ByColour::Dot { discriminator: Colour::Blue, value: pixel(7) },
    ];
    lend a_union_by_long(&ByLong) -> ByLong, equal, [
        ByLong::Small(200),
        ByLong::Large { discriminator: 2, value: 0.5 },
        ByLong::Large { discriminator: -3, value: -0.5 },
        ByLong::Text { discriminator: i32::MIN, value: "other".to_owned() },
    ];
    lend a_union_by_boolean(&ByBoolean) -> ByBoolean, equal, [ByBoolean::Named(entry("x")), ByBoolean::Number(9)];
    lend a_union_by_char(&ByChar) -> ByChar, equal, [ByChar::Number(-1), ByChar::Numbers(vec![1, 2]), ByChar::NoMember { discriminator: 'z' }];
    lend a_union_by_unsigned_long_long(&ByHyper) -> ByHyper, equal, [ByHyper::Number(1), ByHyper::Large { discriminator: u64::MAX, value: 2.5 }];
    lend a_sequence(&[i32]) -> Longs, equal, [vec![], vec![-1], (0..1000).collect()];
    lend a_bounded_sequence(&Shorts) -> Shorts, equal, [shorts(&[]), shorts(&[-1, 2, -3, 4])];
    lend a_sequence_of_octets(&[u8]) -> Octets, equal, [vec![], vec![1, 2, 3], vec![0xff; 5000]];
    lend a_sequence_of_doubles(&[f64]) -> Doubles, equal, [vec![], vec![0.5], vec![-1.5; 300]];
    lend a_sequence_of_strings(&[String]) -> Strings, equal, [vec![], texts(["", "abc"]).to_vec()];
    lend a_sequence_of_wstrings(&[WString]) -> WideStrings, equal, [vec![], vec![WString::from(""), WString::from("\u{3b1}b")]];
    lend a_sequence_of_fixed_structs(&[Pixel]) -> Pixels, equal, [vec![], vec![pixel(1), pixel(2), pixel(3)]];
    lend a_sequence_of_variable_structs(&[Entry]) -> Entries, equal, [vec![], vec![entry("a"), entry("bcd")]];
    lend a_sequence_of_sequences(&[Longs]) -> Lists, equal, [vec![], vec![vec![], vec![1, 2], vec![3]]];
    lend an_array(&Triple) -> Triple, equal, [[1, -2, 3]];
    lend an_array_of_arrays(&Grid) -> Grid, equal, [[[1.5, 2.5, 3.5], [-1.0, -2.0, -3.0]]];
    lend an_array_of_strings(&Names) -> Names, equal, [texts(["", "abc"]), texts(["defgh", ""])];
    lend an_array_of_structs(&Ends) -> Ends, equal, [[entry("a"), entry("bcd")]];
    lend an_any(&Any) -> Any, equal, [any(&-7i32), any(&entry("any")), any(&"text".to_owned()), any(&vec![1.5f64, 2.5])];
    lend a_type_code(&TypeCode) -> TypeCode, equal, [TypeCode::LONG, Entry::type_code(), Pixels::type_code()];
    option an_object(Option<&ObjectRef>) -> Option<ObjectRef>, same_object, [OBJECT.get().map(|it| it.as_object().clone()), None];
    option a_reference(Option<&Echo>) -> Option<Echo>, same_reference, [OBJECT.get().cloned(), None];
    option a_value(Option<&Arc<Point>>) -> Option<Arc<Point>>, equal, [point(1), None];
    option a_derived_value(Option<&Arc<Pin>>) -> Option<Arc<Pin>>, equal, [pin("pin", point(4)), pin("", None), None];
    lend a_shared_value(&Shared) -> Shared, same_sharing, [
        { let one = point(5); Shared { first: one.clone(), second: one } },
        Shared { first: point(6), second: point(6) },
        Shared { first: None, second: point(7) },
    ];
    option a_boxed_value(Option<&Arc<Text>>) -> Option<Arc<Text>>, equal, [Some(Arc::new(Text("boxed".to_owned()))), None];
}
