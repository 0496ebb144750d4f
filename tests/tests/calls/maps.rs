//! Maps: round trips, their form as sequences of pairs, bounds, and keys that come twice.

use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::common::Pair;
use rtorb::any::{Any, Typed};
use rtorb::cdr::BoundedMap;
use rtorb::{ExceptionKind, ObjectRef, SystemException};
use rtorb_tests::snapshots::maps::{
    self, Colour, Either, Held, Index, Keeper, KeeperPutError, KeeperServant, Named, Node,
    PairKeeper, keeper,
};

#[derive(Default)]
struct Kept {
    nodes: Mutex<BTreeMap<u64, Node>>,
}

impl KeeperServant for Kept {
    fn put(
        &self,
        added: &Index,
        named: &Named,
    ) -> Result<(Index, Named, BTreeMap<u8, u8>), KeeperPutError> {
        if added.is_empty() {
            let known = BTreeMap::from([("known".to_owned(), vec![1])]);
            return Err(keeper::Missing { known }.into());
        }
        Ok((added.clone(), named.clone(), BTreeMap::from([(1, 2)])))
    }

    fn swap(&self, given: &Held) -> Result<Held, SystemException> {
        Ok(given.clone())
    }

    fn as_map(
        &self,
        given: &BTreeMap<String, Vec<Colour>>,
    ) -> Result<BTreeMap<String, Vec<Colour>>, SystemException> {
        Ok(given.clone())
    }

    fn nodes(&self) -> Result<BTreeMap<u64, Node>, SystemException> {
        Ok(self.nodes.lock().unwrap().clone())
    }

    fn set_nodes(&self, value: &BTreeMap<u64, Node>) -> Result<(), SystemException> {
        value.clone_into(&mut self.nodes.lock().unwrap());
        Ok(())
    }
}

fn index() -> Index {
    BTreeMap::from([("b".to_owned(), vec![1, 2]), ("a".to_owned(), Vec::new())])
}

fn named() -> Named {
    let name = |text: &str| text.try_into().unwrap();
    let names = BTreeMap::from([(Colour::Green, name("green")), (Colour::Red, name("red"))]);
    names.try_into().unwrap()
}

#[test]
fn maps_round_trip_in_every_place() {
    for pair in Pair::each() {
        let keeper: Keeper = pair.serve(Kept::default());
        let (back, kept, counts) = keeper.put(&index(), &named()).unwrap();
        assert_eq!((back, kept), (index(), named()));
        assert_eq!(counts, BTreeMap::from([(1, 2)]));
        let known = BTreeMap::from([("known".to_owned(), vec![1])]);
        assert_eq!(
            keeper.put(&BTreeMap::new(), &named()).unwrap_err(),
            KeeperPutError::Missing(keeper::Missing { known })
        );
        let held = Held {
            by_name: index(),
            by_colour: named(),
            nested: BTreeMap::from([('x', BTreeMap::from([(true, 0.5), (false, 1.5)]))]),
            anys: BTreeMap::from([(-3, Any::from_value(&7i32).unwrap())]),
        };
        assert_eq!(keeper.swap(&held).unwrap(), held);
        let leaf = Node {
            number: 2,
            children: BTreeMap::new(),
        };
        let root = Node {
            number: 1,
            children: BTreeMap::from([(9, vec![leaf])]),
        };
        let nodes = BTreeMap::from([(u64::MAX, root)]);
        keeper.set_nodes(&nodes).unwrap();
        assert_eq!(keeper.nodes().unwrap(), nodes);
    }
}

#[test]
fn a_map_is_a_sequence_of_pairs_on_the_wire() {
    let pair = Pair::new();
    let keeper: Keeper = pair.serve(Kept::default());
    let pairs = PairKeeper::unchecked_narrow(keeper.as_object().clone());
    let entry = |key: &str, value: &[Colour]| maps::Pair {
        key: key.to_owned(),
        value: value.to_owned(),
    };
    let given = [entry("z", &[Colour::Red]), entry("m", &[])];
    let sorted = [entry("m", &[]), entry("z", &[Colour::Red])];
    assert_eq!(pairs.as_map(&given).unwrap(), sorted);
    let twice = [entry("z", &[]), entry("z", &[])];
    let refused = pairs.as_map(&twice).unwrap_err();
    assert_eq!(refused.kind, ExceptionKind::Marshal);
}

#[test]
fn a_map_beyond_its_bound_cannot_be_made() {
    let three: BTreeMap<i32, i32> = (0..3).map(|number| (number, number)).collect();
    let refused = BoundedMap::<i32, i32, 2>::try_from(three.clone()).unwrap_err();
    assert_eq!((refused.count, refused.bound), (3, 2));
    assert_eq!(BoundedMap::<i32, i32, 3>::try_from(three).unwrap().len(), 3);
}

#[test]
fn an_any_holds_types_that_contain_maps() {
    let held = Either::ByName(index());
    let any = Any::from_value(&held).unwrap();
    assert_eq!(any.extract::<Either>().unwrap(), held);
    let nothing: BTreeMap<_, Option<ObjectRef>> = BTreeMap::new();
    let objects = Either::Objects(nothing);
    let any = Any::from_value(&objects).unwrap();
    assert_eq!(any.extract::<Either>().unwrap(), objects);
    assert_eq!(any.type_code(), &Either::type_code());
}
