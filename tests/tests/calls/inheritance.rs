//! Inherited operations, diamonds, attributes, oneway operations, and references used as their base interfaces.

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex};

use crate::common::Pair;
use rtorb::{ExceptionKind, Interface, SystemException};
use rtorb_tests::inheritance::{
    Bottom, BottomServant, Elsewhere, ElsewhereServant, Left, LeftServant, Right, RightServant,
    Root, RootServant,
};
use rtorb_tests::running::until;

#[derive(Default)]
struct Diamond {
    label: Mutex<String>,
    weight: Mutex<f64>,
    calls: AtomicI32,
    notes: Mutex<Vec<String>>,
}

impl Diamond {
    fn count(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }
}

impl RootServant for Diamond {
    fn note(&self, what: &str) -> Result<(), SystemException> {
        self.notes.lock().unwrap().push(what.to_owned());
        Ok(())
    }

    fn who(&self) -> Result<String, SystemException> {
        self.count();
        Ok("root".to_owned())
    }

    fn label(&self) -> Result<String, SystemException> {
        Ok(self.label.lock().unwrap().clone())
    }

    fn set_label(&self, value: &str) -> Result<(), SystemException> {
        value.clone_into(&mut self.label.lock().unwrap());
        Ok(())
    }

    fn calls(&self) -> Result<i32, SystemException> {
        Ok(self.calls.load(Ordering::Relaxed))
    }
}

impl LeftServant for Diamond {
    fn turn_left(&self, others: &[Option<Root>]) -> Result<String, SystemException> {
        self.count();
        Ok(format!("left of {}", others.iter().flatten().count()))
    }
}

impl RightServant for Diamond {
    fn turn_right(&self) -> Result<String, SystemException> {
        self.count();
        Ok("right".to_owned())
    }

    fn weight(&self) -> Result<f64, SystemException> {
        Ok(*self.weight.lock().unwrap())
    }

    fn set_weight(&self, value: f64) -> Result<(), SystemException> {
        *self.weight.lock().unwrap() = value;
        Ok(())
    }
}

impl BottomServant for Diamond {
    fn sink(&self) -> Result<String, SystemException> {
        self.count();
        Ok("bottom".to_owned())
    }
}

#[test]
fn the_bottom_of_a_diamond_has_all_operations() {
    let pair = Pair::new();
    let bottom: Bottom = pair.serve(Diamond::default());
    assert_eq!(bottom.who().unwrap(), "root");
    assert_eq!(bottom.turn_left(&[None]).unwrap(), "left of 0");
    assert_eq!(bottom.turn_right().unwrap(), "right");
    assert_eq!(bottom.sink().unwrap(), "bottom");
    assert_eq!(bottom.calls().unwrap(), 4);
}

#[test]
fn attributes_are_read_and_set() {
    let pair = Pair::new();
    let bottom: Bottom = pair.serve(Diamond::default());
    bottom.set_label("new").unwrap();
    bottom.set_weight(0.25).unwrap();
    assert_eq!(bottom.label().unwrap(), "new");
    assert_eq!(Right::from(&bottom).weight().unwrap(), 0.25);
}

#[test]
fn a_reference_converts_to_its_bases() {
    let pair = Pair::new();
    let bottom: Bottom = pair.serve(Diamond::default());
    let left = Left::from(&bottom);
    let root = Root::from(left.clone());
    assert_eq!(root.who().unwrap(), "root");
    let roots = [Some(root.clone()), None, Some(Root::from(bottom.clone()))];
    assert_eq!(left.turn_left(&roots).unwrap(), "left of 2");
    assert_eq!(root.as_object(), bottom.as_object());
}

#[test]
fn narrow_asks_the_object() {
    let pair = Pair::new();
    let bottom: Bottom = pair.serve(Diamond::default());
    let root = Root::from(&bottom);
    assert!(Bottom::narrow(root.as_object()).is_ok());
    let right: Right = pair.serve(Diamond::default());
    let refused = Left::narrow(right.as_object()).unwrap_err();
    assert_eq!(refused.kind, ExceptionKind::BadParam);
    assert_eq!(Bottom::ANCESTORS.len(), 3);
}

#[test]
fn a_servant_may_serve_a_base_interface_only() {
    let pair = Pair::new();
    let right: Right = pair.serve(Diamond::default());
    assert_eq!(right.turn_right().unwrap(), "right");
    let refused = Bottom::unchecked_narrow(right.as_object().clone())
        .sink()
        .unwrap_err();
    assert_eq!(refused.kind, ExceptionKind::BadOperation);
}

#[test]
fn the_application_keeps_a_shared_servant() {
    let pair = Pair::new();
    let servant = Arc::new(Diamond::default());
    let bottom: Bottom = pair.serve(Arc::clone(&servant));
    bottom.note("one way").unwrap();
    until("the oneway comes", || {
        (!servant.notes.lock().unwrap().is_empty()).then_some(())
    });
    assert_eq!(*servant.notes.lock().unwrap(), ["one way"]);
}

#[derive(Default)]
struct Holder(Mutex<Option<Bottom>>);

impl ElsewhereServant for Holder {
    fn held(&self) -> Result<Option<Bottom>, SystemException> {
        Ok(self.0.lock().unwrap().clone())
    }

    fn set_held(&self, value: Option<&Bottom>) -> Result<(), SystemException> {
        *self.0.lock().unwrap() = value.cloned();
        Ok(())
    }
}

#[test]
fn a_servant_keeps_and_returns_a_reference() {
    let pair = Pair::new();
    let holder: Elsewhere = pair.serve(Holder::default());
    assert_eq!(holder.held().unwrap(), None);
    let bottom: Bottom = pair.serve(Diamond::default());
    holder.set_held(Some(&bottom)).unwrap();
    let held = holder.held().unwrap().expect("it was set");
    assert_eq!(held.sink().unwrap(), "bottom");
}
