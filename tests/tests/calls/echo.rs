//! Sends every type of the mapping through a real call, as argument, as result and in both directions.

use crate::common::Pair;
use rtorb::cdr::{LongDouble, WChar, WString};
use rtorb::{ExceptionKind, SystemException};
use rtorb_tests::echo::{
    AtMostThree, ByBoolean, ByChar, ByEnum, ByLong, ByWide, Colour, Composites, CompositesServant,
    Five, Grown, Longest, Matrix, Node, Numbers, NumbersServant, Price, Rigid, Sequences,
    SequencesServant, Shapes, ShapesServant, ShortPair, Some as SomeUnion, Texts, TextsServant,
    WideFive, Words,
};

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

/// The three results of every echo operation.
macro_rules! echo {
    ($($method:ident($lent:ty) -> $owned:ty;)*) => {$(
        fn $method(&self, given: $lent, both: $lent) -> Result<($owned, $owned, $owned), SystemException> {
            Ok((given.own(), given.own(), both.own()))
        }
    )*};
}

/// Sends each pair of values through an operation.
macro_rules! there_and_back {
    ($object:ident.$method:ident: [$($value:expr),+ $(,)?]) => {{
        let values = [$($value),+];
        for given in values {
            for both in values {
                let answer = $object.$method(given, both).expect("an echo fails at nothing");
                assert_same(answer, (given.own(), given.own(), both.own()), stringify!($method));
            }
        }
    }};
}

fn assert_same<T: PartialEq + std::fmt::Debug>(answer: T, expected: T, operation: &str) {
    assert_eq!(answer, expected, "{operation}");
}

struct Echo;

impl NumbersServant for Echo {
    echo! {
        as_short(i16) -> i16;
        as_ushort(u16) -> u16;
        as_long(i32) -> i32;
        as_ulong(u32) -> u32;
        as_longlong(i64) -> i64;
        as_ulonglong(u64) -> u64;
        as_octet(u8) -> u8;
        as_float(f32) -> f32;
        as_double(f64) -> f64;
        as_longdouble(LongDouble) -> LongDouble;
        as_boolean(bool) -> bool;
        as_price(Price) -> Price;
        as_longest(Longest) -> Longest;
        as_colour(Colour) -> Colour;
    }
}

impl TextsServant for Echo {
    echo! {
        as_char(char) -> char;
        as_wchar(WChar) -> WChar;
        as_string(&str) -> String;
        as_wstring(&WString) -> WString;
        as_five(&Five) -> Five;
        as_wide_five(&WideFive) -> WideFive;
        as_words(&Words) -> Words;
    }
}

impl SequencesServant for Echo {
    echo! {
        as_booleans(&[bool]) -> Vec<bool>;
        as_chars(&[char]) -> Vec<char>;
        as_octets(&[u8]) -> Vec<u8>;
        as_shorts(&[i16]) -> Vec<i16>;
        as_ushorts(&[u16]) -> Vec<u16>;
        as_longs(&[i32]) -> Vec<i32>;
        as_ulongs(&[u32]) -> Vec<u32>;
        as_longlongs(&[i64]) -> Vec<i64>;
        as_ulonglongs(&[u64]) -> Vec<u64>;
        as_floats(&[f32]) -> Vec<f32>;
        as_doubles(&[f64]) -> Vec<f64>;
        as_strings(&[String]) -> Vec<String>;
        as_colours(&[Colour]) -> Vec<Colour>;
        as_rigids(&[Rigid]) -> Vec<Rigid>;
        as_growns(&[Grown]) -> Vec<Grown>;
        as_longs_seq(&[Vec<i32>]) -> Vec<Vec<i32>>;
        as_matrices(&[Matrix]) -> Vec<Matrix>;
        as_at_most_three(&AtMostThree) -> AtMostThree;
        as_short_pair(&ShortPair) -> ShortPair;
    }
}

impl CompositesServant for Echo {
    echo! {
        as_matrix(&Matrix) -> Matrix;
        as_rigid(&Rigid) -> Rigid;
        as_grown(&Grown) -> Grown;
        as_node(&Node) -> Node;
        as_by_enum(&ByEnum) -> ByEnum;
        as_some(&SomeUnion) -> SomeUnion;
        as_by_long(&ByLong) -> ByLong;
        as_by_boolean(&ByBoolean) -> ByBoolean;
        as_by_char(&ByChar) -> ByChar;
        as_by_wide(&ByWide) -> ByWide;
        as_by_longs(&[ByLong]) -> Vec<ByLong>;
    }
}

impl ShapesServant for Echo {
    fn nothing(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn only_in(&self, a: i32, b: &str) -> Result<(), SystemException> {
        assert_eq!((a, b), (-1, "in"));
        Ok(())
    }

    fn only_out(&self) -> Result<i32, SystemException> {
        Ok(7)
    }

    fn two_out(&self) -> Result<(i32, String), SystemException> {
        Ok((7, "out".to_owned()))
    }

    fn only_inout(&self, a: &str) -> Result<String, SystemException> {
        Ok(a.to_uppercase())
    }

    fn mixed(
        &self,
        a: i32,
        c: &str,
        d: u8,
    ) -> Result<(String, i32, String, Vec<u8>), SystemException> {
        Ok(("result".to_owned(), a + 1, c.to_uppercase(), vec![d; 3]))
    }
}

#[test]
fn numbers_keep_their_extremes() {
    Pair::each().for_each(|pair| exchange_numbers(&pair.serve(Echo)));
}

fn exchange_numbers(numbers: &Numbers) {
    there_and_back!(numbers.as_short: [i16::MIN, -1, 0, i16::MAX]);
    there_and_back!(numbers.as_ushort: [0, 1, u16::MAX]);
    there_and_back!(numbers.as_long: [i32::MIN, -1, 0, i32::MAX]);
    there_and_back!(numbers.as_ulong: [0, 1, u32::MAX]);
    there_and_back!(numbers.as_longlong: [i64::MIN, -1, 0, i64::MAX]);
    there_and_back!(numbers.as_ulonglong: [0, 1, u64::MAX]);
    there_and_back!(numbers.as_octet: [0, 127, 128, 255]);
    there_and_back!(numbers.as_float: [0.0, -0.0, f32::MIN, f32::MAX, f32::MIN_POSITIVE, f32::INFINITY, 0.1]);
    there_and_back!(numbers.as_double: [0.0, -0.0, f64::MIN, f64::MAX, f64::MIN_POSITIVE, f64::NEG_INFINITY, 0.1]);
    there_and_back!(numbers.as_longdouble: [LongDouble::from(1.5), LongDouble(u128::MAX), LongDouble(1)]);
    there_and_back!(numbers.as_boolean: [true, false]);
    there_and_back!(numbers.as_colour: [Colour::Red, Colour::Green, Colour::Blue]);
    let price = |unscaled| Price::new(unscaled).expect("at most five digits");
    there_and_back!(numbers.as_price: [price(0), price(-1), price(99_999), price(-99_999)]);
    let longest = |unscaled| Longest::new(unscaled).expect("at most 31 digits");
    there_and_back!(numbers.as_longest: [longest(0), longest(10i128.pow(31) - 1), longest(1 - 10i128.pow(31))]);
}

#[test]
fn not_a_number_keeps_its_bits() {
    let pair = Pair::new();
    let numbers: Numbers = pair.serve(Echo);
    let odd = f64::from_bits(0x7ff8_0000_dead_beef);
    let (result, both, back) = numbers.as_double(odd, 1.0).unwrap();
    assert_eq!(
        (result.to_bits(), both.to_bits(), back),
        (odd.to_bits(), odd.to_bits(), 1.0)
    );
}

#[test]
fn texts_keep_every_character() {
    Pair::each().for_each(|pair| exchange_texts(&pair.serve(Echo)));
}

fn exchange_texts(texts: &Texts) {
    there_and_back!(texts.as_char: ['\0', 'a', '\u{7f}']);
    there_and_back!(texts.as_wchar: [WChar('a'), WChar('\u{20ac}'), WChar('\u{ffff}')]);
    there_and_back!(texts.as_string: ["", "a", "\u{e9}t\u{e9} \n", &"long ".repeat(3000)]);
    let wide = ["", "a", "\u{20ac}", "\u{1f600} beyond the basic plane"].map(WString::from);
    there_and_back!(texts.as_wstring: [&wide[0], &wide[1], &wide[2], &wide[3]]);
    let five = ["", "12345"].map(|text| Five::try_from(text).expect("at most five"));
    there_and_back!(texts.as_five: [&five[0], &five[1]]);
    let wide_five = ["", "\u{20ac}2345"]
        .map(|text| WideFive::try_from(WString::from(text)).expect("at most five"));
    there_and_back!(texts.as_wide_five: [&wide_five[0], &wide_five[1]]);
    let words: [Words; 2] = [["", ""], ["first", "second"]].map(|words| words.map(str::to_owned));
    there_and_back!(texts.as_words: [&words[0], &words[1]]);
}

#[test]
fn characters_of_several_bytes_are_rejected_before_sending() {
    let pair = Pair::new();
    let texts: Texts = pair.serve(Echo);
    // The two ORBs agree on UTF-8, in which only ASCII characters have one byte.
    for wide in ['\u{e9}', '\u{20ac}'] {
        assert_unsent(&texts.as_char(wide, 'a').unwrap_err(), wide, 1);
        assert_unsent(&texts.as_char('a', wide).unwrap_err(), wide, 2);
    }
    let smile = '\u{1f600}';
    let too_wide = texts.as_wchar(WChar('a'), WChar(smile)).unwrap_err();
    assert_unsent(&too_wide, smile, 2);
}

/// Checks that an exception names the character and the argument that has it.
fn assert_unsent(refused: &SystemException, character: char, argument: u8) {
    assert_eq!(refused.kind, ExceptionKind::DataConversion, "{refused}");
    let unsent = refused.unsent_character().expect("it is known");
    let place = (unsent.character(), unsent.argument());
    assert_eq!(place, (Some(character), Some(argument)), "{refused}");
    let words = format!("argument {argument} has {character:?} U+");
    assert!(refused.to_string().contains(&words), "{refused}");
}

#[test]
fn sequences_keep_their_elements() {
    Pair::each().for_each(|pair| exchange_sequences(&pair.serve(Echo)));
}

fn exchange_sequences(sequences: &Sequences) {
    there_and_back!(sequences.as_booleans: [&[][..], &[true, false, true]]);
    there_and_back!(sequences.as_chars: [&[][..], &['a', '\u{7f}']]);
    there_and_back!(sequences.as_octets: [&[][..], &[1], &[0x5a; 70_000]]);
    there_and_back!(sequences.as_shorts: [&[][..], &[i16::MIN, 1, i16::MAX]]);
    there_and_back!(sequences.as_ushorts: [&[][..], &[0, 1, u16::MAX]]);
    there_and_back!(sequences.as_longs: [&[][..], &[i32::MIN, 1, i32::MAX], &[-7; 20_000]]);
    there_and_back!(sequences.as_ulongs: [&[][..], &[0, u32::MAX]]);
    there_and_back!(sequences.as_longlongs: [&[][..], &[i64::MIN, i64::MAX]]);
    there_and_back!(sequences.as_ulonglongs: [&[][..], &[0, u64::MAX]]);
    there_and_back!(sequences.as_floats: [&[][..], &[f32::MIN, -0.0, f32::MAX]]);
    there_and_back!(sequences.as_doubles: [&[][..], &[f64::MIN, -0.0, f64::MAX], &[0.1; 9_000]]);
    let strings = ["", "one", "zwei"].map(str::to_owned);
    there_and_back!(sequences.as_strings: [&strings[..0], &strings[..]]);
    there_and_back!(sequences.as_colours: [&[][..], &[Colour::Blue, Colour::Red]]);
    there_and_back!(sequences.as_rigids: [&[][..], &[rigid(1)], &[rigid(1), rigid(2), rigid(3)]]);
    let growns = [grown(0), grown(2)];
    there_and_back!(sequences.as_growns: [&growns[..0], &growns[..]]);
    let nested = [vec![], vec![1, 2], vec![3]];
    there_and_back!(sequences.as_longs_seq: [&nested[..0], &nested[..]]);
    there_and_back!(sequences.as_matrices: [&[][..], &[[[1, 2, 3], [4, 5, 6]], [[7; 3]; 2]]]);
}

#[test]
fn bounded_sequences_hold_their_bound_and_no_more() {
    Pair::each().for_each(|pair| exchange_bounded_sequences(&pair.serve(Echo)));
}

fn exchange_bounded_sequences(sequences: &Sequences) {
    let three =
        [vec![], vec![1, 2, 3]].map(|longs| AtMostThree::try_from(longs).expect("at most three"));
    there_and_back!(sequences.as_at_most_three: [&three[0], &three[1]]);
    let words = |words: &[&str]| {
        let words: Vec<_> = words
            .iter()
            .map(|&word| word.try_into().expect("at most four characters"))
            .collect();
        ShortPair::try_from(words).expect("at most two")
    };
    there_and_back!(sequences.as_short_pair: [&words(&[]), &words(&["", "four"])]);
    assert!(AtMostThree::try_from(vec![1, 2, 3, 4]).is_err());
    assert!(Five::try_from("123456").is_err());
}

#[test]
fn received_values_over_their_bound_are_rejected() {
    let pair = Pair::new();
    let sequences: Sequences = pair.serve(Echo);
    // The operation of this name takes any number of longs, so the request exceeds the bound.
    let four: &[i32] = &[1, 2, 3, 4];
    let refused = sequences
        .as_object()
        .invoke(
            "as_at_most_three",
            |w| rtorb::cdr::Encode::encode(four, w),
            |_| Ok(()),
        )
        .unwrap_err();
    assert_eq!(refused.kind, ExceptionKind::Marshal);
}

#[test]
fn structs_arrays_and_unions_keep_their_members() {
    Pair::each().for_each(|pair| exchange_composites(&pair.serve(Echo)));
}

fn exchange_composites(composites: &Composites) {
    there_and_back!(composites.as_matrix: [&[[0; 3]; 2], &[[1, 2, 3], [4, 5, i32::MIN]]]);
    there_and_back!(composites.as_rigid: [&rigid(0), &rigid(200)]);
    there_and_back!(composites.as_grown: [&grown(0), &grown(3)]);
    there_and_back!(composites.as_node: [&node(0), &node(4)]);
    there_and_back!(composites.as_by_enum: [
        &ByEnum::Small(1), &ByEnum::Part(rigid(2)), &ByEnum::Many(vec![rigid(3), rigid(4)]),
    ]);
    there_and_back!(composites.as_some: [
        &SomeUnion::Words("red".to_owned()),
        &SomeUnion::NoMember { discriminator: Colour::Green },
        &SomeUnion::NoMember { discriminator: Colour::Blue },
    ]);
    let by_longs = [
        ByLong::Lowest(9),
        ByLong::Pair {
            discriminator: 1,
            value: "one".to_owned(),
        },
        ByLong::Pair {
            discriminator: 2,
            value: "two".to_owned(),
        },
        ByLong::Other {
            discriminator: i32::MAX,
            value: 0.5,
        },
    ];
    there_and_back!(composites.as_by_long: [&by_longs[0], &by_longs[1], &by_longs[2], &by_longs[3]]);
    there_and_back!(composites.as_by_longs: [&by_longs[..0], &by_longs[..]]);
    there_and_back!(composites.as_by_boolean: [&ByBoolean::Why("so".to_owned()), &ByBoolean::Code(-1)]);
    there_and_back!(composites.as_by_char: [
        &ByChar::First(-1), &ByChar::Tree(node(2)), &ByChar::NoMember { discriminator: 'b' },
    ]);
    there_and_back!(composites.as_by_wide: [
        &ByWide::Highest(1), &ByWide::Other { discriminator: 0, value: "none".to_owned() },
    ]);
}

#[test]
fn wrong_discriminators_are_rejected_before_sending() {
    let pair = Pair::new();
    let composites: Composites = pair.serve(Echo);
    let good = ByLong::Lowest(1);
    for wrong in [
        ByLong::Pair {
            discriminator: 3,
            value: String::new(),
        },
        ByLong::Other {
            discriminator: 1,
            value: 0.0,
        },
        ByLong::Other {
            discriminator: i32::MIN,
            value: 0.0,
        },
    ] {
        let refused = composites.as_by_long(&wrong, &good).unwrap_err();
        assert_eq!(refused.kind, ExceptionKind::BadParam);
    }
    let wrong = SomeUnion::NoMember {
        discriminator: Colour::Red,
    };
    let refused = composites
        .as_some(&wrong, &SomeUnion::Words(String::new()))
        .unwrap_err();
    assert_eq!(refused.kind, ExceptionKind::BadParam);
}

#[test]
fn results_are_unit_value_or_tuple() {
    Pair::each().for_each(|pair| exchange_shapes(&pair.serve(Echo)));
}

fn exchange_shapes(shapes: &Shapes) {
    shapes.nothing().unwrap();
    shapes.only_in(-1, "in").unwrap();
    assert_eq!(shapes.only_out().unwrap(), 7);
    assert_eq!(shapes.two_out().unwrap(), (7, "out".to_owned()));
    assert_eq!(shapes.only_inout("up").unwrap(), "UP");
    let mixed = shapes.mixed(1, "c", 9).unwrap();
    assert_eq!(
        mixed,
        ("result".to_owned(), 2, "C".to_owned(), vec![9, 9, 9])
    );
}

fn rigid(seed: u8) -> Rigid {
    Rigid {
        o: seed,
        d: f64::from(seed) / 3.0,
        b: seed % 2 == 1,
        tint: Colour::Green,
        cells: [-1, 0, i16::from(seed)],
        wide: i64::MIN + i64::from(seed),
    }
}

fn grown(size: u8) -> Grown {
    Grown {
        name: "n".repeat(usize::from(size)),
        part: rigid(size),
        many: (0..size).map(rigid).collect(),
        rows: (0..size)
            .map(|row| vec![row.to_string(); usize::from(row)])
            .collect(),
        grid: [[i32::from(size); 3]; 2],
        letter: 'g',
    }
}

fn node(depth: i32) -> Node {
    Node {
        value: depth,
        children: (0..depth).map(node).collect(),
    }
}
