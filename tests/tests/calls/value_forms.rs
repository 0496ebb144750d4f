//! Abstract valuetypes, `ValueBase` and custom valuetypes go over the wire, and concrete values into an any.

use std::sync::{Arc, Mutex};

use crate::common::Pair;
use rtorb::any::{Any, Typed};
use rtorb::cdr::{Decode, Encode, EncodeError, Writer};
use rtorb::{CompletionStatus, ExceptionKind, SystemException};
use rtorb_tests::snapshots::value_forms::{
    Ball, Choice, Circle, Drawer, DrawerServant, Group, Label, Pair as Shapes, Secret, Shape,
    Solid, Unknown, Values,
};
use rtorb_tests::snapshots::{ValueBase, elsewhere};
use rtorb_wire::ValueType;

type Drawn = (Option<Shape>, Option<Solid>, Option<ValueBase>);

struct Desk {
    outline: Mutex<Option<Shape>>,
}

impl DrawerServant for Desk {
    fn draw(&self, given: Option<&Shape>, both: Option<&Solid>) -> Result<Drawn, SystemException> {
        let last = match given {
            Some(Shape::Group(group)) => Some(group.clone().into()),
            Some(Shape::ElsewhereCircle(circle)) => Some(circle.clone().into()),
            _ => Some(Arc::new(Label("other".to_owned())).into()),
        };
        Ok((given.cloned(), both.cloned(), last))
    }

    fn keep(&self, given: &[Option<ValueBase>]) -> Result<Values, SystemException> {
        Ok(given.to_vec())
    }

    fn pass(&self, given: &Shapes) -> Result<Shapes, SystemException> {
        Ok(given.clone())
    }

    fn none(&self, given: Option<&Unknown>) -> Result<Option<Unknown>, SystemException> {
        Ok(given.cloned())
    }

    fn hide(
        &self,
        given: Option<&Arc<Secret>>,
        picked: &Choice,
    ) -> Result<Option<Arc<Secret>>, SystemException> {
        let key = given.map_or_else(String::new, |secret| secret.key.clone());
        let inside = match picked {
            Choice::Some(shape) => shape.clone(),
            Choice::Other(_) => None,
        };
        Ok(Some(Arc::new(Secret { key, inside })))
    }

    fn as_any(&self, given: &Any) -> Result<Any, SystemException> {
        Ok(given.clone())
    }

    fn outline(&self) -> Result<Option<Shape>, SystemException> {
        Ok(self.outline.lock().unwrap().clone())
    }

    fn set_outline(&self, value: Option<&Shape>) -> Result<(), SystemException> {
        *self.outline.lock().unwrap() = value.cloned();
        Ok(())
    }
}

fn drawer(pair: &Pair) -> Drawer {
    pair.serve(Desk {
        outline: Mutex::default(),
    })
}

fn circle(radius: f64) -> Arc<Circle> {
    Arc::new(Circle { radius })
}

/// A ball in a group beside a secret that holds a shape.
fn group() -> Arc<Group> {
    let ball = Arc::new(Ball {
        radius: 1.5,
        content: Some(Arc::new(Label("air".to_owned())).into()),
    });
    let secret = Arc::new(Secret {
        key: "abcde".to_owned(),
        inside: Some(circle(0.5).into()),
    });
    Arc::new(Group {
        shapes: vec![Some(ball.clone().into()), None, Some(secret.into())],
        base: Some(ball.into()),
    })
}

#[test]
fn values_of_every_concrete_type_round_trip_as_an_abstract_one() {
    for pair in Pair::each() {
        let drawer = drawer(&pair);
        let elsewhere = Arc::new(elsewhere::Circle { radius: 3 });
        for shape in [
            Shape::from(circle(2.0)),
            group().into(),
            elsewhere.clone().into(),
        ] {
            let (drawn, both, last) = drawer.draw(Some(&shape), None).unwrap();
            assert_eq!((drawn, both), (Some(shape.clone()), None));
            let expected: ValueBase = match shape.clone() {
                Shape::Group(group) => group.into(),
                Shape::ElsewhereCircle(circle) => circle.into(),
                _ => Arc::new(Label("other".to_owned())).into(),
            };
            assert_eq!(last, Some(expected));
            drawer.set_outline(Some(&shape)).unwrap();
            assert_eq!(drawer.outline().unwrap(), Some(shape));
        }
        assert_eq!(drawer.none(None).unwrap(), None);
        let all = [
            Some(circle(1.0).into()),
            Some(elsewhere.into()),
            None,
            Some(group().into()),
        ];
        assert_eq!(drawer.keep(&all).unwrap(), all);
    }
}

#[test]
fn values_stay_shared_between_types() {
    let pair = Pair::new();
    let drawer = drawer(&pair);
    let group = group();
    let Some(Shape::Group(read)) = drawer.draw(Some(&group.into()), None).unwrap().0 else {
        panic!("it is a group")
    };
    let (Some(Shape::Ball(first)), Some(Solid::Ball(second))) = (&read.shapes[0], &read.base)
    else {
        panic!("{read:?}")
    };
    assert!(Arc::ptr_eq(first, second));
    let circle = circle(1.0);
    let shapes = Shapes {
        first: Some(circle.clone().into()),
        second: Some(circle.into()),
    };
    let passed = drawer.pass(&shapes).unwrap();
    assert_eq!(passed, shapes);
    let (Some(Shape::ValueFormsCircle(first)), Some(Shape::ValueFormsCircle(second))) =
        (passed.first, passed.second)
    else {
        panic!("they are circles")
    };
    assert!(Arc::ptr_eq(&first, &second));
}

#[test]
fn the_application_writes_and_reads_a_custom_state() {
    for pair in Pair::each() {
        let drawer = drawer(&pair);
        let secret = Arc::new(Secret {
            key: "open".to_owned(),
            inside: None,
        });
        let picked = Choice::Some(Some(group().into()));
        let hidden = drawer.hide(Some(&secret), &picked).unwrap().unwrap();
        assert_eq!(hidden.key, "open");
        assert_eq!(hidden.inside, Some(group().into()));
        let other = Choice::Other(Some(secret.into()));
        assert_eq!(drawer.hide(None, &other).unwrap().unwrap().inside, None);
    }
}

/// A label is no shape: the receiver refuses it.
#[test]
fn a_value_of_another_type_is_refused() {
    struct Wrong;
    impl Encode for Wrong {
        fn encode<'a>(&'a self, w: &mut Writer<'a>) -> Result<(), EncodeError> {
            w.begin_value(&[Label::REPOSITORY_ID], false)?;
            w.str("no shape")
        }
    }
    let pair = Pair::new();
    let drawer = drawer(&pair);
    let refused: Result<Option<Shape>, SystemException> =
        drawer
            .as_object()
            .invoke("draw", |w| Wrong.encode(w), Decode::decode);
    let refused = refused.unwrap_err();
    assert_eq!(refused.kind, ExceptionKind::Marshal);
    assert_eq!(refused.minor, 0x7274_6007);
    assert_eq!(refused.completed, CompletionStatus::No);
}

#[test]
fn an_any_holds_concrete_values_and_null() {
    for pair in Pair::each() {
        let drawer = drawer(&pair);
        let value = Some(Arc::new(elsewhere::Circle { radius: 7 }));
        let any = Any::from_value(&value).unwrap();
        assert_eq!(*any.type_code(), elsewhere::Circle::type_code());
        let back = drawer.as_any(&any).unwrap();
        assert_eq!(
            back.extract::<Option<Arc<elsewhere::Circle>>>().unwrap(),
            value
        );
        assert!(back.extract::<Option<Arc<Circle>>>().is_err());
        let label = Some(Arc::new(Label("boxed".to_owned())));
        let back = drawer.as_any(&Any::from_value(&label).unwrap()).unwrap();
        assert_eq!(back.extract::<Option<Arc<Label>>>().unwrap(), label);
        // Shared values, and null where the type is abstract.
        let twice = vec![value.clone(), None, value];
        let back = drawer.as_any(&Any::from_value(&twice).unwrap()).unwrap();
        let read: Vec<Option<Arc<elsewhere::Circle>>> = back.extract().unwrap();
        assert_eq!(read, twice);
        assert!(Arc::ptr_eq(
            read[0].as_ref().unwrap(),
            read[2].as_ref().unwrap()
        ));
        // No TypeCode describes these values.
        let secret = Arc::new(Secret {
            key: String::new(),
            inside: None,
        });
        assert_eq!(
            Any::from_value(&Some(secret)).unwrap_err(),
            EncodeError::WrongType
        );
        let shape = Some(Shape::from(circle(1.0)));
        assert_eq!(Any::from_value(&shape).unwrap_err(), EncodeError::WrongType);
        let nothing: Option<Shape> = None;
        let back = drawer.as_any(&Any::from_value(&nothing).unwrap()).unwrap();
        assert_eq!(back.extract::<Option<Shape>>().unwrap(), None);
    }
}

#[test]
fn type_codes_state_what_is_abstract_and_custom() {
    for (type_code, modifier) in [
        (Shape::type_code(), 2),
        (Secret::type_code(), 1),
        (Ball::type_code(), 3),
        (Circle::type_code(), 0),
    ] {
        let rtorb::type_code::Shape::Value(value) = type_code.shape() else {
            panic!("{type_code:?}")
        };
        assert_eq!(value.modifier, modifier, "{type_code:?}");
    }
    assert_eq!(
        ValueBase::type_code().repository_id(),
        Some("IDL:omg.org/CORBA/ValueBase:1.0")
    );
}
