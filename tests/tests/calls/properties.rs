//! decode(encode(x)) == x for generated types, in both byte orders and at every alignment.

use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use rtorb_tests::echo::{
    ByBoolean, ByChar, ByEnum, ByLong, ByWide, Colour, Grown, Node, Rigid, Some as SomeUnion,
};
use rtorb_tests::snapshots::valuetypes::{Holder, Point};
use rtorb_wire::{ByteOrder, Decode, Encode, Reader, Writer};

/// Encodes `value` behind `offset` bytes, decodes it, and compares. No byte may remain.
fn round_trips<T: Encode + Decode + PartialEq + std::fmt::Debug>(value: &T, offset: usize) {
    for order in [ByteOrder::Big, ByteOrder::Little] {
        let mut w = Writer::new(Vec::new(), 1 << 24).with_order(order);
        w.octets(&vec![0; offset]).expect("there is room");
        value
            .encode(&mut w)
            .expect("the strategies make what can be sent");
        let octets = w.to_bytes();
        let mut r = Reader::new(&octets, order);
        r.take(offset).expect("they were written");
        assert_eq!(T::decode(&mut r).as_ref(), Ok(value), "{order:?}");
        assert_eq!(r.remaining(), 0);
        // A truncated value is an error, and never a panic.
        for end in offset..octets.len() {
            let mut r = Reader::new(&octets[..end], order);
            r.take(offset).expect("they are still there");
            let _ = T::decode(&mut r);
        }
    }
}

fn colour() -> impl Strategy<Value = Colour> {
    prop_oneof![Just(Colour::Red), Just(Colour::Green), Just(Colour::Blue)]
}

fn number() -> impl Strategy<Value = f64> {
    any::<f64>().prop_filter("not a number is not equal to itself", |number| {
        !number.is_nan()
    })
}

fn text() -> impl Strategy<Value = String> {
    "[a-zA-Z \u{a1}-\u{ff}]{0,20}"
}

fn rigid() -> impl Strategy<Value = Rigid> {
    (
        any::<u8>(),
        number(),
        any::<bool>(),
        colour(),
        any::<[i16; 3]>(),
        any::<i64>(),
    )
        .prop_map(|(o, d, b, tint, cells, wide)| Rigid {
            o,
            d,
            b,
            tint,
            cells,
            wide,
        })
}

fn grown() -> impl Strategy<Value = Grown> {
    let letter = (0u8..=255).prop_map(char::from);
    (
        text(),
        rigid(),
        vec(rigid(), 0..5),
        vec(vec(text(), 0..3), 0..3),
        any::<[[i32; 3]; 2]>(),
        letter,
    )
        .prop_map(|(name, part, many, rows, grid, letter)| Grown {
            name,
            part,
            many,
            rows,
            grid,
            letter,
        })
}

fn node() -> impl Strategy<Value = Node> {
    let leaf = any::<i32>().prop_map(|value| Node {
        value,
        children: Vec::new(),
    });
    leaf.prop_recursive(4, 16, 4, |inner| {
        (any::<i32>(), vec(inner, 0..4)).prop_map(|(value, children)| Node { value, children })
    })
}

fn by_long() -> impl Strategy<Value = ByLong> {
    let other = any::<i32>().prop_filter("labels of other members", |label| {
        ![i32::MIN, 1, 2].contains(label)
    });
    prop_oneof![
        any::<u8>().prop_map(ByLong::Lowest),
        (1..=2, text()).prop_map(|(discriminator, value)| ByLong::Pair {
            discriminator,
            value
        }),
        (other, number()).prop_map(|(discriminator, value)| ByLong::Other {
            discriminator,
            value
        }),
    ]
}

fn by_char() -> impl Strategy<Value = ByChar> {
    let other = (0u8..=255)
        .prop_map(char::from)
        .prop_filter("labels", |label| !['a', 'z'].contains(label));
    prop_oneof![
        any::<i16>().prop_map(ByChar::First),
        node().prop_map(ByChar::Tree),
        other.prop_map(|discriminator| ByChar::NoMember { discriminator }),
    ]
}

fn by_wide() -> impl Strategy<Value = ByWide> {
    prop_oneof![
        any::<i32>().prop_map(ByWide::Highest),
        (0..u64::MAX, text()).prop_map(|(discriminator, value)| ByWide::Other {
            discriminator,
            value
        }),
    ]
}

fn point() -> impl Strategy<Value = Arc<Point>> {
    any::<[i32; 2]>().prop_map(|[x, y]| Arc::new(Point { x, y }))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn structs_round_trip(rigid in rigid(), grown in grown(), node in node(), offset in 0usize..16) {
        round_trips(&rigid, offset);
        round_trips(&grown, offset);
        round_trips(&node, offset);
    }

    #[test]
    fn sequences_of_fixed_layout_round_trip(rigids in vec(rigid(), 0..40), offset in 0usize..16) {
        round_trips(&rigids, offset);
    }

    #[test]
    fn unions_round_trip(
        many in vec(rigid(), 0..4),
        by_long in vec(by_long(), 0..6),
        by_char in by_char(),
        by_wide in by_wide(),
        code in any::<i32>(),
        offset in 0usize..16,
    ) {
        round_trips(&ByEnum::Many(many), offset);
        round_trips(&SomeUnion::NoMember { discriminator: Colour::Green }, offset);
        round_trips(&by_long, offset);
        round_trips(&by_char, offset);
        round_trips(&by_wide, offset);
        round_trips(&ByBoolean::Code(code), offset);
    }

    /// Places in a message that contain one of a few shared values, the null value, or a value of their own.
    #[test]
    fn values_round_trip(shared in vec(point(), 1..4), route in vec(0usize..6, 0..12), offset in 0usize..16) {
        let route = route.iter().map(|&place| shared.get(place).cloned());
        round_trips(&Holder { where_to: shared.first().cloned(), route: route.collect() }, offset);
    }

    #[test]
    fn random_bytes_decode_or_fail(octets in vec(any::<u8>(), 0..200), little in any::<bool>()) {
        let order = if little { ByteOrder::Little } else { ByteOrder::Big };
        let _ = Grown::decode(&mut Reader::new(&octets, order));
        let _ = Node::decode(&mut Reader::new(&octets, order));
        let _ = <Vec<ByLong>>::decode(&mut Reader::new(&octets, order));
        let _ = <Vec<Rigid>>::decode(&mut Reader::new(&octets, order));
        let _ = ByChar::decode(&mut Reader::new(&octets, order));
        let _ = Holder::decode(&mut Reader::new(&octets, order));
    }
}
