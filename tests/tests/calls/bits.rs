//! Bitmasks and bitsets: flags and fields, round trips, and their form as integers.

use std::sync::Mutex;

use crate::common::Pair;
use rtorb::SystemException;
use rtorb::any::{Any, Typed};
use rtorb::cdr::OverWidth;
use rtorb::type_code::TypeCode;
use rtorb_tests::snapshots::bits::{
    Denied, Either, Extended, Held, Keeper, KeeperServant, KeeperSwapError, Middle, Numbers,
    Rights, Small, State, Wide, Widest,
};

#[derive(Default)]
struct Kept {
    allowed: Mutex<Rights>,
}

impl KeeperServant for Kept {
    fn swap(
        &self,
        given: Rights,
        mut state: State,
    ) -> Result<(Rights, State, Extended), KeeperSwapError> {
        if !given.contains(Rights::READ) {
            let missing = Rights::READ;
            return Err(Denied { missing }.into());
        }
        state.set_running(!state.running());
        let mut extended = Extended(u64::from(state.0));
        extended.set_position(-1).unwrap();
        Ok((given & !Rights::READ, state, extended))
    }

    fn hold(
        &self,
        given: &Held,
        rights: &[Rights],
        states: &[State],
        wide: Wide,
        widest: Widest,
    ) -> Result<Held, SystemException> {
        assert_eq!((wide, widest), (Wide::LAST, Widest::TOP | Widest::BOTTOM));
        let rights = rights.iter().fold(Rights::default(), |all, one| all | *one);
        Ok(Held {
            owned: rights,
            now: *states.last().unwrap(),
            ..*given
        })
    }

    fn boxed(&self, given: Rights) -> Result<Any, SystemException> {
        Ok(Any::from_value(&given).unwrap())
    }

    fn allowed(&self) -> Result<Rights, SystemException> {
        Ok(*self.allowed.lock().unwrap())
    }

    fn set_allowed(&self, value: Rights) -> Result<(), SystemException> {
        *self.allowed.lock().unwrap() = value;
        Ok(())
    }
}

#[test]
fn flags_are_constants_and_unknown_bits_stay() {
    assert_eq!((Rights::READ.0, Rights::IS_OWNER.0), (0x01, 0x80));
    assert_eq!((Wide::LAST.0, Widest::TOP.0), (1 << 31, 1 << 32));
    assert_eq!((Middle::FIRST.0, Middle::CONTAINS.0), (1, 2));
    let mut rights = Rights::READ | Rights(0x20);
    assert!(rights.contains(Rights::READ) && !rights.contains(Rights::READ | Rights::WRITE));
    rights |= Rights::IS_OWNER;
    assert_eq!(format!("{rights:?}"), "Rights(READ | IS_OWNER | 0x20)");
    rights &= !Rights::READ;
    assert_eq!(rights.0, 0xa0);
    assert_eq!(format!("{:?}", Rights::default()), "Rights(0x0)");
}

#[test]
fn fields_keep_their_bits_and_refuse_values_that_do_not_fit() {
    let mut state = State(0);
    state.set_running(true);
    state.set_gear(5).unwrap();
    state.set_slope(-8).unwrap();
    state.set_trim(7).unwrap();
    state.set_level(255);
    assert_eq!(state.0, 1 | 5 << 1 | 8 << 6 | 7 << 10 | 255 << 14);
    assert_eq!((state.running(), state.gear()), (true, 5));
    assert_eq!((state.slope(), state.trim(), state.level()), (-8, 7, 255));
    let before = state;
    let over = |value, width| Err(OverWidth { value, width });
    assert_eq!(state.set_gear(8), over(8, 3));
    assert_eq!(state.set_slope(8), over(8, 4));
    assert_eq!(state.set_slope(-9), over(-9, 4));
    assert_eq!(state, before);
    assert_eq!(
        format!("{state:?}"),
        "State { running: true, gear: 5, slope: -8, trim: 7, level: 255 }"
    );
    let unnamed = State(0x30);
    state = unnamed;
    state.set_gear(7).unwrap();
    assert_eq!(state.0 & 0x30, 0x30, "the bits without a name stay");
    let mut extended = Extended(0);
    extended.set_position(-(1 << 32)).unwrap();
    extended.set_clone_(15).unwrap();
    assert_eq!(extended.position(), -(1 << 32));
    assert_eq!((extended.r#type(), extended.clone_()), (0, 15));
    let mut small = Small(0);
    small.set_signed_byte(-128);
    assert_eq!((small.0, small.signed_byte()), (0x80, -128));
}

#[test]
fn bits_round_trip_in_every_place() {
    for pair in Pair::each() {
        let keeper: Keeper = pair.serve(Kept::default());
        let unknown = Rights::READ | Rights(0x40);
        keeper.set_allowed(unknown).unwrap();
        assert_eq!(keeper.allowed().unwrap(), unknown);
        let (rights, state, extended) = keeper.swap(unknown, State(0)).unwrap();
        assert_eq!((rights.0, state.running()), (0x40, true));
        assert_eq!((extended.running(), extended.position()), (true, -1));
        let missing = Rights::READ;
        assert_eq!(
            keeper.swap(Rights::WRITE, State(0)).unwrap_err(),
            KeeperSwapError::Denied(Denied { missing })
        );
        let held = Held {
            before: 9,
            owned: Rights(0),
            now: State(0),
            more: Extended(u64::MAX),
            again: Rights::IS_OWNER,
        };
        let given = [Rights::READ, Rights::IS_OWNER];
        let (wide, widest) = (Wide::LAST, Widest::TOP | Widest::BOTTOM);
        let states = [State(1), State(u32::MAX)];
        let back = keeper.hold(&held, &given, &states, wide, widest).unwrap();
        let expected = Held {
            owned: Rights::READ | Rights::IS_OWNER,
            now: State(u32::MAX),
            ..held
        };
        assert_eq!(back, expected);
    }
}

#[test]
fn bits_are_integers_on_the_wire() {
    let pair = Pair::new();
    let keeper: Keeper = pair.serve(Kept::default());
    let numbers = Numbers::unchecked_narrow(keeper.as_object().clone());
    numbers.set_allowed(0x42).unwrap();
    assert_eq!(keeper.allowed().unwrap(), Rights::WRITE | Rights(0x40));
    let (rights, state, extended) = numbers.swap(3, 0x8000_0000).unwrap();
    assert_eq!((rights, state), (2, 0x8000_0001));
    assert_eq!(Extended(extended).position(), -1);
}

#[test]
fn the_type_code_is_an_alias_of_the_integer() {
    let alias = TypeCode::alias("IDL:Bits/Rights:1.0", "Rights", TypeCode::OCTET);
    assert_eq!(Rights::type_code(), alias);
    let pair = Pair::new();
    let keeper: Keeper = pair.serve(Kept::default());
    let any = keeper.boxed(Rights::WRITE).unwrap();
    assert_eq!(any.extract::<Rights>().unwrap(), Rights::WRITE);
    assert_eq!(any.type_code(), &alias);
    let either = Either::Now(State(7));
    let any = Any::from_value(&either).unwrap();
    assert_eq!(any.extract::<Either>().unwrap(), either);
}
