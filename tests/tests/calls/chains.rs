//! Inherited operations: a line of 40 interfaces, and several bases that share some.

use crate::common::Pair;
use rtorb::{ExceptionKind, Interface, SystemException};
use rtorb_tests::snapshots::chains::*;

/// Returns which interface declares the operation that it was called by.
struct Names;

macro_rules! lines {
    ($($servant:ident $method:ident $number:literal;)*) => {$(
        impl $servant for Names {
            fn $method(&self, given: i32) -> Result<i32, SystemException> {
                Ok(given + $number)
            }
        }
    )*};
}
lines! {
    Line0Servant at_0 0000;
    Line1Servant at_1 1000;
    Line2Servant at_2 2000;
    Line3Servant at_3 3000;
    Line4Servant at_4 4000;
    Line5Servant at_5 5000;
    Line6Servant at_6 6000;
    Line7Servant at_7 7000;
    Line8Servant at_8 8000;
    Line9Servant at_9 9000;
    Line10Servant at_10 10000;
    Line11Servant at_11 11000;
    Line12Servant at_12 12000;
    Line13Servant at_13 13000;
    Line14Servant at_14 14000;
    Line15Servant at_15 15000;
    Line16Servant at_16 16000;
    Line17Servant at_17 17000;
    Line18Servant at_18 18000;
    Line19Servant at_19 19000;
    Line20Servant at_20 20000;
    Line21Servant at_21 21000;
    Line22Servant at_22 22000;
    Line23Servant at_23 23000;
    Line24Servant at_24 24000;
    Line25Servant at_25 25000;
    Line26Servant at_26 26000;
    Line27Servant at_27 27000;
    Line28Servant at_28 28000;
    Line29Servant at_29 29000;
    Line30Servant at_30 30000;
    Line31Servant at_31 31000;
    Line32Servant at_32 32000;
    Line33Servant at_33 33000;
    Line34Servant at_34 34000;
    Line35Servant at_35 35000;
    Line36Servant at_36 36000;
    Line37Servant at_37 37000;
    Line38Servant at_38 38000;
    Line39Servant at_39 39000;
}

impl OtherServant for Names {
    fn in_other(&self) -> Result<i32, SystemException> {
        Ok(5)
    }

    fn kept(&self) -> Result<i32, SystemException> {
        Ok(6)
    }

    fn set_kept(&self, value: i32) -> Result<(), SystemException> {
        assert_eq!(value, 7);
        Ok(())
    }
}

macro_rules! named {
    ($($servant:ident $method:ident;)*) => {$(
        impl $servant for Names {
            fn $method(&self) -> Result<String, SystemException> {
                Ok(stringify!($method).to_owned())
            }
        }
    )*};
}
named! {
    SharedServant in_shared;
    WestServant in_west;
    EastServant in_east;
    MeetServant in_meet;
}

impl EmptyServant for Names {}
impl UnderServant for Names {}

#[test]
fn a_reference_has_the_operations_of_all_its_bases() {
    let pair = Pair::new();
    let under: Under = pair.serve(Names);
    assert_eq!(under.at_0(1).unwrap(), 1);
    assert_eq!(under.at_17(1).unwrap(), 17_001);
    assert_eq!(under.at_39(1).unwrap(), 39_001);
    assert_eq!(under.in_other().unwrap(), 5);
    assert_eq!(under.kept().unwrap(), 6);
    under.set_kept(7).unwrap();
    for (name, method) in [
        (under.in_shared(), "in_shared"),
        (under.in_west(), "in_west"),
        (under.in_east(), "in_east"),
        (under.in_meet(), "in_meet"),
    ] {
        assert_eq!(name.unwrap(), method);
    }
    assert_eq!(Under::ANCESTORS.len(), 46);
}

#[test]
fn a_reference_converts_to_every_base() {
    let pair = Pair::new();
    let meet: Meet = pair.serve(Names);
    let first = East::from(&meet);
    let shared = Shared::from(&first);
    assert_eq!(shared.in_shared().unwrap(), "in_shared");
    assert_eq!(first.as_object(), meet.as_object());
    let west = West::from(&meet);
    assert_eq!(west.in_shared().unwrap(), "in_shared");
    assert_eq!(west.in_other().unwrap(), 5);
    assert_eq!(Other::from(west.clone()).kept().unwrap(), 6);
    assert_eq!(Line39::from(&meet).at_0(2).unwrap(), 2);
    assert_eq!(Line0::from(meet).at_0(3).unwrap(), 3);
    assert!(West::narrow(west.as_object()).is_ok());
    assert!(
        Line3::narrow(west.as_object()).is_ok(),
        "the object is a Meet"
    );
}

#[test]
fn an_object_has_no_operations_of_derived_interfaces() {
    let pair = Pair::new();
    let line: Line3 = pair.serve(Names);
    let wrong = Line4::unchecked_narrow(line.as_object().clone());
    assert_eq!(wrong.at_3(1).unwrap(), 3_001);
    let refused = wrong.at_4(1).unwrap_err();
    assert_eq!(refused.kind, ExceptionKind::BadOperation);
}
