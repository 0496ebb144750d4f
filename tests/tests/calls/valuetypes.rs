//! Valuetypes are passed by value: null, shared, inherited, boxed and nested.

use std::sync::Arc;

use crate::common::Pair;
use rtorb::SystemException;
use rtorb::any::Typed;
use rtorb_tests::snapshots::valuetypes::{
    Atlas, AtlasServant, Box, Broken, Holder, Link, Named, NamedCheckedError, NamedDistanceError,
    NamedOperations, Nothing, Parcel, Perhaps, Point, Text,
};

/// A wrapper, because the generated struct belongs to another crate. In an application the struct implements the trait itself.
struct Place(Named);

impl NamedOperations for Place {
    fn at_origin(name: &str) -> Self {
        Self(Named {
            x: 0,
            y: 0,
            name: name.to_owned(),
        })
    }

    fn checked(x: i32) -> Result<Self, NamedCheckedError> {
        if x < 0 {
            return Err(Broken {
                why: "west".to_owned(),
            }
            .into());
        }
        Ok(Self(Named {
            x,
            y: 0,
            name: String::new(),
        }))
    }

    fn distance(&self, other: Option<&Arc<Point>>) -> Result<f64, NamedDistanceError> {
        let other = other.ok_or(Broken {
            why: "to nowhere".to_owned(),
        })?;
        Ok(f64::from(self.0.x - other.x).hypot(f64::from(self.0.y - other.y)))
    }

    fn quadrant(&self) -> Result<i32, SystemException> {
        Ok(1)
    }

    fn marked(&self) -> Result<bool, SystemException> {
        Ok(!self.0.name.is_empty())
    }

    fn set_marked(&mut self, value: bool) -> Result<(), SystemException> {
        self.0.name = if value {
            "marked".to_owned()
        } else {
            String::new()
        };
        Ok(())
    }
}

type Found = (Option<Arc<Point>>, Option<Arc<Named>>, Option<Arc<Link>>);

struct Finder;

impl AtlasServant for Finder {
    fn find(
        &self,
        what: Option<&Arc<Text>>,
        place: Option<&Arc<Named>>,
    ) -> Result<Found, SystemException> {
        let point = place.map(|place| Arc::new(Point::from(Named::clone(place))));
        let chain = what.map(|what| chain(what.0.len()));
        Ok((point, place.cloned(), chain.flatten()))
    }

    fn keep(&self, given: &Holder) -> Result<Holder, SystemException> {
        Ok(given.clone())
    }
}

fn chain(length: usize) -> Option<Arc<Link>> {
    (0..length).fold(None, |next, _| Some(Arc::new(Link { number: 1, next })))
}

#[test]
fn values_and_null_round_trip() {
    for pair in Pair::each() {
        let atlas: Atlas = pair.serve(Finder);
        let named = Arc::new(Named {
            x: 3,
            y: 4,
            name: "here".to_owned(),
        });
        let text = Arc::new(Text("links".to_owned()));
        let (point, place, links) = atlas.find(Some(&text), Some(&named)).unwrap();
        assert_eq!(point.as_deref(), Some(&Point { x: 3, y: 4 }));
        assert_eq!((place, links), (Some(named), chain(5)));
        assert_eq!(atlas.find(None, None).unwrap(), (None, None, None));
    }
}

#[test]
fn shared_values_stay_shared() {
    let pair = Pair::new();
    let atlas: Atlas = pair.serve(Finder);
    let point = Some(Arc::new(Point { x: 1, y: 2 }));
    let other = Some(Arc::new(Point { x: 1, y: 2 }));
    let holder = Holder {
        where_to: point.clone(),
        route: vec![other, None, point],
    };
    let kept = atlas.keep(&holder).unwrap();
    assert_eq!(kept, holder);
    let (Some(target), [Some(other), None, Some(last)]) = (&kept.where_to, &kept.route[..]) else {
        panic!("{kept:?}")
    };
    assert!(Arc::ptr_eq(target, last) && !Arc::ptr_eq(target, other));
}

#[test]
fn operations_belong_to_the_application() {
    let mut place = Place::at_origin("");
    let distance = place
        .distance(Some(&Arc::new(Point { x: 3, y: 4 })))
        .unwrap();
    assert_eq!((distance, place.quadrant().unwrap()), (5.0, 1));
    place.set_marked(true).unwrap();
    assert!(place.marked().unwrap());
    let refused = Place::checked(-1).err().map(|error| error.to_string());
    assert_eq!(
        refused.as_deref(),
        Some(r#"Valuetypes::Broken { why: "west" }"#)
    );
}

#[test]
fn values_without_state_and_in_unions_round_trip() {
    assert!(Perhaps::Here(None).discriminator());
    assert_eq!(Arc::new(Nothing), Arc::new(Nothing));
}

#[test]
fn a_type_code_ends_where_a_base_leads_back_to_what_derives_from_it() {
    let type_code = <Box as Typed>::type_code();
    assert_eq!(type_code.repository_id(), Some("IDL:Valuetypes/Box:1.0"));
    assert_eq!(<Parcel as Typed>::type_code().name(), Some("Parcel"));
    assert_eq!(
        Parcel::from(Box {
            content: None,
            size: 1
        }),
        Parcel { content: None }
    );
}
