//! References to abstract interfaces: calls, their form on the wire, nil, and values that stand in their place.

use std::sync::Arc;

use crate::common::Pair;
use rtorb::SystemException;
use rtorb::any::{Any, Typed};
use rtorb::cdr::{ByteOrder, Decode, DecodeError, Encode, Reader, Writer};
use rtorb_tests::snapshots::forms::{
    All, Both, BothServant, Held, Keeper, KeeperServant, Named, NamedServant, Plain, PlainServant,
    Point, Sized as Measured, SizedServant,
};

struct Object;

impl NamedServant for Object {
    fn name(&self) -> Result<String, SystemException> {
        Ok("object".to_owned())
    }
}

impl SizedServant for Object {
    fn size(&self, other: Option<&Named>) -> Result<i32, SystemException> {
        Ok(i32::from(other.is_some()))
    }
}

impl PlainServant for Object {
    fn text(&self) -> Result<String, SystemException> {
        Ok("plain".to_owned())
    }
}

impl BothServant for Object {
    fn echo(
        &self,
        given: Option<&Named>,
        both: Option<&Measured>,
    ) -> Result<(Option<Named>, Option<Measured>, Option<Plain>), SystemException> {
        Ok((given.cloned(), both.cloned(), None))
    }
}

impl KeeperServant for Object {
    fn keep(&self, given: &[Option<Named>], held: &Held) -> Result<All, SystemException> {
        let mut all = given.to_vec();
        all.extend([held.first.clone(), held.second.as_ref().map(Named::from)]);
        Ok(all)
    }

    fn as_any(&self, given: &Any) -> Result<Any, SystemException> {
        Ok(given.clone())
    }
}

#[test]
fn abstract_bases_are_called_like_others() {
    let pair = Pair::new();
    let both: Both = pair.serve(Object);
    assert_eq!(both.name().unwrap(), "object");
    assert_eq!(both.text().unwrap(), "plain");
    let (sized, named) = (Measured::from(&both), Named::from(&both));
    assert_eq!(both.size(Some(&named)).unwrap(), 1);
    assert_eq!(sized.size(None).unwrap(), 0);
    assert_eq!(sized.name().unwrap(), "object");
    let (given, kept, plain) = both.echo(Some(&named), Some(&sized)).unwrap();
    assert_eq!(
        (given, kept, plain),
        (Some(named.clone()), Some(sized), None)
    );
    assert_eq!(both.echo(None, None).unwrap(), (None, None, None));
    assert!(Measured::narrow(named.as_object()).is_ok());
}

#[test]
fn references_and_nil_go_inside_sequences_structs_and_anys() {
    for pair in Pair::each() {
        let both: Both = pair.serve(Object);
        let keeper: Keeper = pair.serve(Object);
        let named = Some(Named::from(&both));
        let held = Held {
            first: None,
            between: 7,
            second: Some(Measured::from(&both)),
        };
        let kept = keeper.keep(&[named.clone(), None], &held).unwrap();
        assert_eq!(kept, [named.clone(), None, None, named.clone()]);
        // The contents of an any are checked against its TypeCode on the way.
        for any in [Any::from_value(&held), Any::from_value(&named)] {
            let any = any.unwrap();
            assert_eq!(keeper.as_any(&any).unwrap(), any);
        }
    }
}

//= GIOP 1.2 §15.3.7
//% test
#[test]
fn nil_is_a_null_value_and_values_are_refused() {
    let mut w = Writer::new(Vec::new(), 1024).with_order(ByteOrder::Little);
    None::<Named>.encode(&mut w).unwrap();
    assert_eq!(
        w.to_bytes(),
        [0; 8],
        "false, three bytes of padding, and the null value"
    );
    let point = Some(Arc::new(Point { x: 1 }));
    let mut w = Writer::new(Vec::new(), 1024).with_order(ByteOrder::Little);
    0u8.encode(&mut w).unwrap();
    point.encode(&mut w).unwrap();
    let octets = w.to_bytes();
    let read = Option::<Named>::decode(&mut Reader::new(&octets, ByteOrder::Little));
    assert!(
        matches!(read, Err(DecodeError::Unsupported { .. })),
        "{read:?}"
    );
    assert_eq!(Named::type_code().name(), Some("Named"));
}
