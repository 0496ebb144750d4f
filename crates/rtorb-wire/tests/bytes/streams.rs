//! The fast paths of reader and writer have the results of the plain ones: fixed layouts, borrowed bytes, and messages that
//! are decoded before they have arrived whole.

use rtorb_wire::cdr::{GATHER_BYTES_MIN, Remainder, WString};
use rtorb_wire::{
    Any, ByteOrder, Decode, DecodeError, Encode, EncodeError, FixedLayout, Ior, Reader, TypeCode,
    Writer,
};

const ORDERS: [ByteOrder; 2] = [ByteOrder::Big, ByteOrder::Little];
const BYTES_MAX: usize = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Color {
    Red,
    Blue,
}
rtorb_wire::cdr_enum!(Color { Red = 0, Blue = 1 });

#[derive(Clone, Copy, Debug, PartialEq)]
struct Inner {
    a: u8,
    b: f64,
}
rtorb_wire::fixed_layout!(Inner { a: u8, b: f64 });

#[derive(Clone, Copy, Debug, PartialEq)]
struct Mixed {
    o: u8,
    l: i32,
    inner: Inner,
    s: i16,
    color: Color,
    flags: [bool; 3],
    big: u64,
    inners: [Inner; 2],
    last: u8,
}
rtorb_wire::fixed_layout!(Mixed {
    o: u8,
    l: i32,
    inner: Inner,
    s: i16,
    color: Color,
    flags: [bool; 3],
    big: u64,
    inners: [Inner; 2],
    last: u8
});

#[derive(Clone, Copy, Debug, PartialEq)]
struct Many {
    o: u8,
    l: i32,
    s: i16,
}
rtorb_wire::fixed_layout!(Many {
    o: u8,
    l: i32,
    s: i16
});

fn mixed(seed: u8) -> Mixed {
    let inner = |a| Inner {
        a,
        b: f64::from(a) / 3.0,
    };
    Mixed {
        o: seed,
        l: -i32::from(seed) * 77_777,
        inner: inner(seed),
        s: i16::from(seed) * -101,
        color: if seed.is_multiple_of(2) {
            Color::Red
        } else {
            Color::Blue
        },
        flags: [true, seed > 3, false],
        big: u64::from(seed) << 56 | 5,
        inners: [inner(seed + 1), inner(seed + 2)],
        last: 0xff,
    }
}

fn plain_inner(inner: &Inner, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    w.primitive(inner.a)?;
    w.primitive(inner.b)
}

fn plain_mixed(value: &Mixed, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    w.primitive(value.o)?;
    w.primitive(value.l)?;
    plain_inner(&value.inner, w)?;
    w.primitive(value.s)?;
    w.primitive(value.color as u32)?;
    value
        .flags
        .iter()
        .try_for_each(|flag| w.primitive(u8::from(*flag)))?;
    w.primitive(value.big)?;
    value
        .inners
        .iter()
        .try_for_each(|inner| plain_inner(inner, w))?;
    w.primitive(value.last)
}

//= GIOP 1.2 §15.3.1.1
//% test
//= GIOP 1.2 §15.3.1.2
//% test
#[test]
fn fixed_layouts_have_the_bytes_of_their_members_at_every_phase() {
    for order in ORDERS {
        for phase in 0..8 {
            for count in 0..5u8 {
                let values: Vec<_> = (0..count).map(mixed).collect();
                let start = |buffer| {
                    let mut w = Writer::new(buffer, BYTES_MAX).with_order(order);
                    w.octets(&vec![1; phase]).unwrap();
                    w
                };
                let mut plain = start(Vec::new());
                values
                    .iter()
                    .for_each(|value| plain_mixed(value, &mut plain).unwrap());
                let plain = plain.to_bytes();
                // Padding is zero, whatever the buffer held before.
                let mut quick = start(vec![0xcc; 500]);
                quick.fixed_slice(&values).unwrap();
                assert_eq!(quick.to_bytes(), plain, "{order:?}, phase {phase}, {count}");

                let mut r = Reader::new(&plain, order);
                r.take(phase).unwrap();
                let mut into = Vec::new();
                r.fixed_into::<Mixed>(&mut into, values.len()).unwrap();
                assert_eq!(into, values);
                assert_eq!(r.remaining(), 0);
                for end in phase..plain.len() {
                    let mut r = Reader::new(&plain[..end], order);
                    r.take(phase).unwrap();
                    let cut = r.fixed_into::<Mixed>(&mut Vec::new(), values.len());
                    assert!(matches!(cut, Err(DecodeError::Truncated { .. })));
                }
            }
        }
    }
}

#[test]
fn fixed_layouts_have_the_bounds_of_their_members() {
    assert_eq!(<Many as FixedLayout>::BYTES_MIN, 7);
    const { assert!(Many::BYTES_MAX >= 10) };
    assert_eq!(Many::ALIGNMENT, 4);
    assert_eq!(Mixed::ALIGNMENT, 8);
}

//= GIOP 1.2 §15.3.2.6
//% test
#[test]
fn a_value_of_fixed_layout_fits_at_the_exact_end_of_a_message() {
    fn fits<T: Encode>(value: &T) {
        for (before, order) in (0..9).flat_map(|before| ORDERS.map(|order| (before, order))) {
            let write = |bytes_max| {
                let mut w = Writer::new(Vec::new(), bytes_max).with_order(order);
                w.octets(&vec![1; before])?;
                value.encode(&mut w)?;
                Ok(w.to_bytes())
            };
            let written = write(BYTES_MAX).unwrap();
            assert_eq!(write(written.len()), Ok(written.clone()), "behind {before}");
            let limit = written.len() - 1;
            assert_eq!(write(limit), Err(EncodeError::TooLarge { limit }));
        }
    }
    fits(&Color::Blue);
    fits(&mixed(7));
    fits(&[Color::Red; 3]);
    fits(&vec![mixed(7).inner; 3]);
}

#[test]
fn an_enum_beyond_its_last_value_is_refused() {
    let octets = 2u32.to_le_bytes();
    let read = Color::decode(&mut Reader::new(&octets, ByteOrder::Little));
    assert_eq!(read, Err(DecodeError::BadEnum { value: 2 }));
}

/// Values with long runs among short ones.
#[derive(Debug, PartialEq)]
struct Parcel {
    before: u8,
    octets: Vec<u8>,
    between: u64,
    numbers: Vec<u32>,
    after: String,
    structs: Vec<Many>,
    wide: WString,
    end: u8,
}

impl Parcel {
    fn new(count: usize) -> Self {
        Self {
            before: 1,
            octets: (0..count).map(|i| i as u8).collect(),
            between: 0x0102_0304_0506_0708,
            numbers: (0..count as u32 / 2).collect(),
            after: "behind".into(),
            structs: (0..count as i32 / 100)
                .map(|l| Many {
                    o: l as u8,
                    l,
                    s: -7,
                })
                .collect(),
            wide: "w\u{ef}de".into(),
            end: 9,
        }
    }
}

impl Encode for Parcel {
    fn encode<'a>(&'a self, w: &mut Writer<'a>) -> Result<(), EncodeError> {
        self.before.encode(w)?;
        self.octets.encode(w)?;
        self.between.encode(w)?;
        self.numbers.encode(w)?;
        self.after.encode(w)?;
        self.structs.encode(w)?;
        self.wide.encode(w)?;
        self.end.encode(w)
    }
}

impl Decode for Parcel {
    const BYTES_MIN: usize = 30;

    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            before: Decode::decode(r)?,
            octets: Decode::decode(r)?,
            between: Decode::decode(r)?,
            numbers: Decode::decode(r)?,
            after: Decode::decode(r)?,
            structs: Decode::decode(r)?,
            wide: Decode::decode(r)?,
            end: Decode::decode(r)?,
        })
    }
}

fn octets<T: Encode>(value: &T, order: ByteOrder) -> Vec<u8> {
    let mut w = Writer::new(Vec::new(), BYTES_MAX).with_order(order);
    value.encode(&mut w).unwrap();
    w.to_bytes()
}

#[test]
fn borrowed_runs_give_the_same_message() {
    let parcel = Parcel::new(3 * GATHER_BYTES_MIN);
    for order in ORDERS {
        let mut w = Writer::new(vec![0xcc; 64], BYTES_MAX).with_order(order);
        parcel.encode(&mut w).unwrap();
        let whole = w.len();
        let (buffer, end, segments) = w.finish();
        assert!(!segments.is_empty(), "long runs are lent");
        let mut joined = Vec::new();
        let mut from = 0;
        for segment in &segments {
            joined.extend_from_slice(&buffer[from..segment.after]);
            joined.extend_from_slice(segment.bytes);
            from = segment.after;
        }
        joined.extend_from_slice(&buffer[from..end]);
        assert_eq!(joined.len(), whole);

        let mut copied = Writer::new(Vec::new(), BYTES_MAX).with_order(order);
        copied.primitive(parcel.before).unwrap();
        copied.count(parcel.octets.len()).unwrap();
        copied.octets(&parcel.octets).unwrap();
        copied.primitive(parcel.between).unwrap();
        copied.count(parcel.numbers.len()).unwrap();
        parcel
            .numbers
            .iter()
            .for_each(|number| copied.primitive(*number).unwrap());
        copied.str(&parcel.after).unwrap();
        parcel.structs.encode(&mut copied).unwrap();
        copied.wide_str(&parcel.wide).unwrap();
        copied.primitive(parcel.end).unwrap();
        assert_eq!(joined, copied.to_bytes());
        // A buffer with and without room, and what was in it before.
        for buffer in [Vec::new(), vec![0xcc; 2 * whole]] {
            let mut w = Writer::new(buffer, BYTES_MAX).with_order(order);
            parcel.encode(&mut w).unwrap();
            let (buffer, len) = w.finish_whole();
            assert!(buffer[..len] == joined);
        }
        let mut r = Reader::new(&joined, order);
        assert_eq!(Parcel::decode(&mut r).as_ref(), Ok(&parcel));
    }
}

#[test]
fn further_borrowed_runs_are_copied() {
    let runs = vec![vec![7u8; GATHER_BYTES_MIN]; 20];
    let all = octets(&runs, ByteOrder::Little);
    let mut r = Reader::new(&all, ByteOrder::Little);
    assert_eq!(Decode::decode(&mut r), Ok(runs));
}

#[test]
fn truncate_discards_the_rest_at_every_position() {
    let run = vec![5u8; GATHER_BYTES_MIN];
    let whole = |w: &mut Writer<'static>, run: &'static [u8]| {
        w.octets(&[1; 10]).unwrap();
        w.lend_bytes(run).unwrap();
        w.octets(&[2; 10]).unwrap();
        w.lend_bytes(run).unwrap();
        w.octets(&[3; 10]).unwrap();
    };
    let run: &'static [u8] = run.leak();
    let mut w = Writer::new(Vec::new(), BYTES_MAX);
    whole(&mut w, run);
    let all = w.to_bytes();
    for at in (0..=all.len()).filter(|at| at % 97 == 0 || at % GATHER_BYTES_MIN < 32) {
        let mut w = Writer::new(Vec::new(), BYTES_MAX);
        whole(&mut w, run);
        w.truncate(at);
        assert_eq!(w.len(), at);
        w.octets(&[9]).unwrap();
        let mut expected = all[..at].to_vec();
        expected.push(9);
        assert_eq!(w.to_bytes(), expected);
    }
}

#[test]
fn no_message_exceeds_its_limit() {
    for limit in [0, 1, 100, 300, 1000] {
        // A buffer that is larger already must not make the limit larger.
        for buffer in [0, 4096] {
            let mut w = Writer::new(vec![0; buffer], limit);
            let wrote = (0..).take_while(|_| w.primitive(0u8).is_ok()).count();
            assert_eq!(wrote, limit);
            assert_eq!(w.primitive(0u8), Err(EncodeError::TooLarge { limit }));
        }
    }
    let octets = vec![0u8; GATHER_BYTES_MIN];
    let mut w = Writer::new(Vec::new(), GATHER_BYTES_MIN);
    w.primitive(0u8).unwrap();
    let limit = GATHER_BYTES_MIN;
    assert_eq!(w.lend_bytes(&octets), Err(EncodeError::TooLarge { limit }));
}

/// The end of a message that is still to come.
struct Later<'x> {
    octets: &'x [u8],
    whole: Vec<u8>,
}

impl Remainder for Later<'_> {
    fn left(&self) -> usize {
        self.octets.len()
    }

    fn append(&mut self, into: &mut Vec<u8>, count: usize) -> Result<(), DecodeError> {
        let (now, later) = self.octets.split_at(count);
        into.extend_from_slice(now);
        self.octets = later;
        Ok(())
    }

    fn complete(&mut self, head: &[u8]) -> Result<&[u8], DecodeError> {
        self.whole = head.to_vec();
        self.whole.extend_from_slice(self.octets);
        self.octets = &[];
        Ok(&self.whole)
    }
}

fn same_at_every_split<T: Decode + PartialEq + core::fmt::Debug>(
    all: &[u8],
    order: ByteOrder,
    value: &T,
) {
    for split in 0..=all.len() {
        let (head, rest) = all.split_at(split);
        let mut later = Later {
            octets: rest,
            whole: Vec::new(),
        };
        let mut r = Reader::new(head, order).with_remainder(&mut later);
        assert_eq!(r.remaining(), all.len());
        assert_eq!(T::decode(&mut r).as_ref(), Ok(value), "split at {split}");
        assert_eq!(r.remaining(), 0);
        assert_eq!(r.position(), all.len());
    }
    // Cut off for good: an error at every place, with the rest to come or not.
    for end in 0..all.len() {
        let mut later = Later {
            octets: &all[end / 2..end],
            whole: Vec::new(),
        };
        let mut r = Reader::new(&all[..end / 2], order).with_remainder(&mut later);
        assert!(T::decode(&mut r).is_err(), "cut at {end}");
    }
}

#[test]
fn an_incomplete_message_is_read_like_a_whole_one() {
    for order in ORDERS {
        let parcel = Parcel::new(300);
        same_at_every_split(&octets(&parcel, order), order, &parcel);
        let names = vec!["a".to_owned(), String::new(), "long enough".to_owned()];
        same_at_every_split(&octets(&names, order), order, &names);
        let any = Any::from_value(&vec![1i64, 2, 3]).unwrap();
        same_at_every_split(&octets(&any, order), order, &any);
        let node = TypeCode::structure(
            "IDL:N:1.0",
            "N",
            [("n", TypeCode::sequence(TypeCode::recursive("IDL:N:1.0"), 0))],
        );
        same_at_every_split(&octets(&node, order), order, &node);
        let ior = Ior::parse("IOR:01000000010000000000000000000000").unwrap();
        same_at_every_split(&octets(&ior, order), order, &ior);
    }
}

#[test]
fn deep_nesting_ends_in_an_error_on_a_small_stack() {
    // Anys in anys, as deep as the octets go.
    let mut any = Any::from_value(&1u8).unwrap();
    let mut deep = Vec::new();
    for _ in 0..60 {
        any = Any::from_value(&any).unwrap();
    }
    any.encode(&mut Writer::new(Vec::new(), BYTES_MAX)).unwrap();
    for _ in 0..100_000 {
        deep.extend(11u32.to_le_bytes());
    }
    let shallow = octets(&any, ByteOrder::Little);
    let thread = std::thread::Builder::new().stack_size(256 << 10);
    let work = move || {
        let too_deep = Any::decode(&mut Reader::new(&deep, ByteOrder::Little));
        assert!(matches!(too_deep, Err(DecodeError::TooDeep { .. })));
        let too_deep = Vec::<Any>::decode(&mut Reader::new(&shallow, ByteOrder::Little));
        assert!(too_deep.is_err());
        let came = Any::decode(&mut Reader::new(&shallow, ByteOrder::Little)).unwrap();
        assert!(came.value().is_ok());
        assert_eq!(octets(&came, ByteOrder::Little), shallow);
    };
    thread.spawn(work).unwrap().join().unwrap();
}
