//! User exceptions arrive with their type; other failures arrive as system exceptions.

use crate::common::Pair;
use rtorb::{
    Collocation, CompletionStatus, DispatchStrategy, ExceptionKind, Orb, Poa, PoaPolicies,
    SystemException,
};
use rtorb_tests::failures::{
    Plain, Refused, Store, StoreGetError, StoreLevelError, StorePutError, StoreServant,
    StoreSetLevelError, store,
};

struct Shelf;

/// Deactivates itself in a call, so that the end of the call drops it. Panics when it is dropped.
struct Fragile(Poa);

impl Drop for Fragile {
    fn drop(&mut self) {
        panic!("a servant panics when it is dropped: this is a test");
    }
}

impl StoreServant for Fragile {
    fn get(&self, _: i32) -> Result<(String, i32), StoreGetError> {
        self.0.deactivate_id("fragile").unwrap();
        Ok(("last".to_owned(), 1))
    }

    fn put(&self, _: &str) -> Result<(), StorePutError> {
        Ok(())
    }

    fn level(&self) -> Result<i32, StoreLevelError> {
        Ok(0)
    }

    fn set_level(&self, _: i32) -> Result<(), StoreSetLevelError> {
        Ok(())
    }
}

impl StoreServant for Shelf {
    fn get(&self, which: i32) -> Result<(String, i32), StoreGetError> {
        match which {
            0 => Ok(("found".to_owned(), 1)),
            1 => Err(Plain.into()),
            2 => Err(store::Refused { limit: 9 }.into()),
            3 => Err(refusal().into()),
            5 => Ok(("no\0text".to_owned(), 1)),
            _ => Err(SystemException::from(ExceptionKind::NoPermission).into()),
        }
    }

    fn put(&self, value: &str) -> Result<(), StorePutError> {
        if value.is_empty() {
            Err(refusal().into())
        } else {
            Ok(())
        }
    }

    fn level(&self) -> Result<i32, StoreLevelError> {
        Err(Plain.into())
    }

    fn set_level(&self, value: i32) -> Result<(), StoreSetLevelError> {
        match value {
            0 => Err(refusal().into()),
            1 => Err(Plain.into()),
            _ => Ok(()),
        }
    }
}

fn refusal() -> Refused {
    Refused {
        why: "full".to_owned(),
        codes: vec![1, -1],
        again: true,
    }
}

#[test]
fn an_unsendable_result_is_completed_yes() {
    let pair = Pair::new();
    let store: Store = pair.serve(Shelf);
    let Err(StoreGetError::System(failed)) = store.get(5) else {
        panic!("CDR ends strings with a zero")
    };
    assert_eq!(
        (failed.kind, failed.completed),
        (ExceptionKind::BadParam, CompletionStatus::Yes),
        "{failed}"
    );
}

#[test]
fn a_panic_in_drop_of_a_servant_does_not_end_the_server() {
    for (_, dispatch) in DispatchStrategy::ALL {
        let builder = Orb::builder().dispatch(dispatch);
        let orb = builder.collocation(Collocation::Transport).build().unwrap();
        let root = orb.root_poa().unwrap();
        let poa = root.create_poa("Shop", PoaPolicies::PERSISTENT).unwrap();
        let fragile: Store = poa
            .activate_with_id("fragile", Fragile(poa.clone()))
            .unwrap();
        let shelf: Store = poa.activate_with_id("shelf", Shelf).unwrap();
        let server = orb.clone();
        let serving = std::thread::spawn(move || server.run());
        assert_eq!(fragile.get(0).unwrap(), ("last".to_owned(), 1));
        assert_eq!(shelf.get(0).unwrap(), ("found".to_owned(), 1));
        orb.shutdown();
        serving.join().unwrap().unwrap();
    }
}

#[test]
fn operations_raise_declared_exceptions() {
    let pair = Pair::new();
    let store: Store = pair.serve(Shelf);
    assert_eq!(store.get(0).unwrap(), ("found".to_owned(), 1));
    assert_eq!(store.get(1).unwrap_err(), StoreGetError::Plain(Plain));
    assert_eq!(
        store.get(2).unwrap_err(),
        StoreGetError::FailuresStoreRefused(store::Refused { limit: 9 })
    );
    assert_eq!(
        store.get(3).unwrap_err(),
        StoreGetError::FailuresRefused(refusal())
    );
    let StoreGetError::System(exception) = store.get(4).unwrap_err() else {
        panic!("it is a system exception")
    };
    assert_eq!(exception.kind, ExceptionKind::NoPermission);
}

#[test]
fn operations_without_results_raise_exceptions() {
    let pair = Pair::new();
    let store: Store = pair.serve(Shelf);
    store.put("value").unwrap();
    assert_eq!(
        store.put("").unwrap_err(),
        StorePutError::Refused(refusal())
    );
}

#[test]
fn attributes_raise_when_read_and_set() {
    let pair = Pair::new();
    let store: Store = pair.serve(Shelf);
    assert_eq!(store.level().unwrap_err(), StoreLevelError::Plain(Plain));
    assert_eq!(
        store.set_level(0).unwrap_err(),
        StoreSetLevelError::Refused(refusal())
    );
    assert_eq!(
        store.set_level(1).unwrap_err(),
        StoreSetLevelError::Plain(Plain)
    );
    store.set_level(2).unwrap();
}

#[test]
fn errors_describe_the_failure() {
    let error: Box<dyn std::error::Error> = Box::new(StoreGetError::from(refusal()));
    let shown = error.to_string();
    assert!(
        shown.contains("Failures::Refused") && shown.contains("full"),
        "{shown}"
    );
}
