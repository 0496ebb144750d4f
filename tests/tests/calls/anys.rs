//! Values of generated types inside an `any`, and their TypeCodes, through a real call.

use crate::common::Pair;
use rtorb::SystemException;
use rtorb::any::{Any, Typed};
use rtorb::cdr::{Decode, Encode};
use rtorb::type_code::{Shape, TypeCode};
use rtorb_tests::echo::{
    Anys, AnysServant, ByChar, ByEnum, ByLong, Colour, Grown, Node, Rigid, Some as SomeUnion,
};
use rtorb_tests::failures::Refused;
use rtorb_tests::snapshots::deep::{Held, S23};
use rtorb_tests::snapshots::recursion::{Odd, Tree, odd};

struct Echo;

impl AnysServant for Echo {
    fn as_any(&self, given: &Any, both: &Any) -> Result<(Any, Any, Any), SystemException> {
        Ok((given.clone(), given.clone(), both.clone()))
    }

    fn as_type_code(
        &self,
        given: &TypeCode,
        both: &TypeCode,
    ) -> Result<(TypeCode, TypeCode, TypeCode), SystemException> {
        Ok((given.clone(), given.clone(), both.clone()))
    }
}

fn round_trips<T: Typed + Encode + Decode + PartialEq + std::fmt::Debug>(anys: &Anys, value: &T) {
    let any = Any::from_value(value).expect("a generated value is of its own type");
    let (given, both, back) = anys.as_any(&any, &Any::NULL).unwrap();
    assert_eq!(given.extract::<T>().unwrap(), *value);
    assert_eq!((given, back), (both, Any::NULL));
    let (given, ..) = anys.as_type_code(&T::type_code(), &TypeCode::VOID).unwrap();
    assert_eq!(given, T::type_code());
}

#[test]
fn an_any_returns_equal_generated_values() {
    let pair = Pair::new();
    let anys: Anys = pair.serve(Echo);
    round_trips(&anys, &Colour::Blue);
    let part = Rigid {
        o: 1,
        d: 0.5,
        b: true,
        tint: Colour::Red,
        cells: [1, 2, 3],
        wide: -1,
    };
    round_trips(&anys, &part);
    round_trips(
        &anys,
        &Grown {
            name: "grown".to_owned(),
            part,
            many: vec![part; 3],
            rows: vec![vec![], vec!["one".to_owned()]],
            grid: [[1, 2, 3], [4, 5, 6]],
            letter: 'g',
        },
    );
    round_trips(&anys, &ByEnum::Many(vec![part]));
    round_trips(
        &anys,
        &SomeUnion::NoMember {
            discriminator: Colour::Blue,
        },
    );
    round_trips(
        &anys,
        &ByLong::Pair {
            discriminator: 2,
            value: "two".to_owned(),
        },
    );
    round_trips(
        &anys,
        &ByLong::Other {
            discriminator: 77,
            value: 0.25,
        },
    );
    round_trips(&anys, &ByChar::First(-3));
    round_trips(
        &anys,
        &Refused {
            why: "so".to_owned(),
            codes: vec![1],
            again: false,
        },
    );
}

#[test]
fn an_any_holds_recursive_types() {
    let pair = Pair::new();
    let anys: Anys = pair.serve(Echo);
    let leaf = Node {
        value: 1,
        children: vec![],
    };
    round_trips(
        &anys,
        &Node {
            value: 2,
            children: vec![leaf.clone(), leaf],
        },
    );
    round_trips(
        &anys,
        &Tree::Branches(vec![Tree::Leaf("a".to_owned()), Tree::Branches(vec![])]),
    );
    let inner = Odd {
        half: odd::Even { after: vec![] },
        more: vec![].try_into().unwrap(),
    };
    round_trips(
        &anys,
        &Odd {
            half: odd::Even { after: vec![inner] },
            more: vec![].try_into().unwrap(),
        },
    );
}

#[test]
fn a_value_of_another_type_is_not_extracted() {
    let any = Any::from_value(&Colour::Red).unwrap();
    assert!(any.extract::<Node>().is_err());
}

#[test]
fn the_type_code_of_a_type_that_holds_another_twice_shares_it() {
    let outermost = S23::type_code();
    let Shape::Struct(outermost) = outermost.shape() else {
        panic!("a struct");
    };
    let parts = outermost.members.iter().map(|member| &member.type_code);
    let parts: Vec<&Shape> = parts.map(TypeCode::shape).collect();
    let [Shape::Struct(first), Shape::Struct(second)] = parts[..] else {
        panic!("two structs");
    };
    assert!(std::sync::Arc::ptr_eq(first, second));
    let Held { first, second } = Held {
        first: Vec::new(),
        second: Vec::new(),
    };
    assert_eq!(first, second);
}
