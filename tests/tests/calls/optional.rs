//! Optional members: with a value and without, and their form as sequences.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::common::Pair;
use rtorb::any::{Any, Typed};
use rtorb::type_code::TypeCode;
use rtorb::{ExceptionKind, SystemException};
use rtorb_tests::snapshots::optional::{
    Colour, Derived, Everything, Leaf, Missing, Node, Point, PointOfSequences, Rights, Store,
    StoreOfSequences, StorePutError, StoreServant, Tree,
};

struct Kept;

impl StoreServant for Kept {
    fn put(&self, given: &Everything, all: &Tree) -> Result<Everything, StorePutError> {
        if let Some(kids) = &all.kids {
            let why = kids.first().map(|kid| kid.number.to_string());
            return Err(Missing { why }.into());
        }
        Ok(given.clone())
    }

    fn halve(&self, given: &Point) -> Result<Point, SystemException> {
        Ok(Point {
            x: given.x / 2,
            y: given.y.map(|y| y / 2),
        })
    }

    fn pass(&self, given: Option<&Arc<Node>>) -> Result<Option<Arc<Node>>, SystemException> {
        Ok(given.cloned())
    }
}

fn nothing() -> Everything {
    Everything {
        small: None,
        name: None,
        numbers: None,
        grid: None,
        points: None,
        centre: None,
        hue: None,
        allowed: None,
        extra: None,
        other: None,
        always: 1,
        big: None,
    }
}

fn all(store: &Store) -> Everything {
    let point = Point { x: 1, y: Some(-2) };
    Everything {
        small: Some(7),
        name: Some("name".to_owned().try_into().unwrap()),
        numbers: Some(vec![0.5, 1.5]),
        grid: Some([1, 2]),
        points: Some(BTreeMap::from([("p".to_owned(), point)])),
        centre: Some(Point { x: 3, y: None }),
        hue: Some(Colour::Green),
        allowed: Some(Rights::WRITE),
        extra: Some(Any::from_value(&5i32).unwrap()),
        other: Some(Some(store.clone())),
        always: 2,
        big: Some(i64::MIN),
    }
}

#[test]
fn optional_members_round_trip_with_a_value_and_without() {
    for pair in Pair::each() {
        let store: Store = pair.serve(Kept);
        let tree = Tree {
            number: 0,
            kids: None,
        };
        for given in [nothing(), all(&store)] {
            assert_eq!(store.put(&given, &tree).unwrap(), given);
        }
        let nil = Everything {
            other: Some(None),
            ..nothing()
        };
        assert_eq!(store.put(&nil, &tree).unwrap(), nil, "nil is a value");
        let leaf = Tree {
            number: 9,
            kids: None,
        };
        for (kids, why) in [(vec![leaf], Some("9".to_owned())), (Vec::new(), None)] {
            let tree = Tree {
                number: 0,
                kids: Some(kids),
            };
            let refused = store.put(&nothing(), &tree).unwrap_err();
            assert_eq!(refused, StorePutError::Missing(Missing { why }));
        }
    }
}

#[test]
fn optional_state_of_a_valuetype_round_trips() {
    let pair = Pair::new();
    let store: Store = pair.serve(Kept);
    for label in [None, Some("label".to_owned())] {
        let node = Arc::new(Node {
            number: 1,
            label: label.clone(),
            next: None,
        });
        assert_eq!(store.pass(Some(&node)).unwrap(), Some(node));
    }
    let twin = Some(None);
    let leaf = Leaf {
        number: 1,
        label: None,
        next: None,
        twin,
    };
    assert_eq!(Node::from(leaf).label, None);
}

#[test]
fn an_optional_member_is_a_sequence_on_the_wire() {
    let pair = Pair::new();
    let store: Store = pair.serve(Kept);
    let sequences = StoreOfSequences::unchecked_narrow(store.as_object().clone());
    for y in [Vec::new(), vec![8]] {
        let given = PointOfSequences {
            x: 4,
            y: y.clone().try_into().unwrap(),
        };
        let back = sequences.halve(&given).unwrap();
        let half: Vec<i32> = y.iter().map(|y| y / 2).collect();
        assert_eq!((back.x, back.y.to_vec()), (2, half));
    }
    let two = vec![1, 2].try_into().unwrap();
    let refused = sequences.halve(&PointOfSequences { x: 1, y: two });
    assert_eq!(refused.unwrap_err().kind, ExceptionKind::Marshal);
}

#[test]
fn the_type_code_of_an_optional_member_is_a_sequence_of_at_most_one() {
    let members = [
        ("x", TypeCode::LONG),
        ("y", TypeCode::sequence(TypeCode::LONG, 1)),
    ];
    let point = TypeCode::structure("IDL:Optional/Point:1.0", "Point", members);
    assert_eq!(Point::type_code(), point);
    let derived = Derived {
        x: 1,
        y: None,
        flag: Some(true),
    };
    let any = Any::from_value(&derived).unwrap();
    assert_eq!(any.extract::<Derived>().unwrap(), derived);
}
