//! A service with a store that ends and begins again on the same endpoint.

use super::outcome;
use super::serving::{Serving, contents, name};
use rtorb_services::naming::{NamingConfig, NamingError, NamingService, StoreError};
use rtorb_tests::server_process::lasting_port;

#[test]
fn names_and_references_to_contexts_hold_when_the_service_begins_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let config = NamingConfig::stored_at(directory.path().join("names"));
    let endpoint = format!("iiop://127.0.0.1:{}", lasting_port());
    let first = Serving::at(&endpoint, config.clone());
    let object = first.object("kept");
    let bound = first.root.bind_new_context(&name("a.k")).expect("made");
    bound
        .expect("a context")
        .bind(&name("b"), Some(&object))
        .expect("bound");
    let orphan = first.root.new_context().expect("made").expect("a context");
    orphan.bind(&name("c"), Some(&object)).expect("bound");
    let ended = first.root.new_context().expect("made").expect("a context");
    ended.destroy().expect("destroyed");
    let (before, root) = (contents(&first.root), first.root.clone());
    drop(first);

    let second = Serving::at(&endpoint, config);
    assert_eq!(contents(&second.root), before);
    assert_eq!(contents(&root), before, "the reference to the root holds");
    let resolved = orphan.resolve(&name("c")).expect("the orphan is there");
    assert_eq!(resolved, Some(object));
    assert!(ended.as_object().non_existent().expect("asked"));
    // Its id is not another's.
    let made = second.root.new_context().expect("made").expect("a context");
    assert!(ended.as_object().non_existent().expect("asked"));
    assert!(!made.as_object().non_existent().expect("asked"));
    let statistics = second.service.statistics();
    assert_eq!((statistics.bindings, statistics.contexts), (3, 4));
}

#[test]
fn a_store_in_use_is_refused_with_its_place_and_left_to_who_has_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let place = directory.path().join("names");
    let config = NamingConfig::stored_at(&place);
    let first = Serving::new(config.clone());
    let orb = rtorb::Orb::builder().build().expect("an ORB");
    let refused = NamingService::serve(&orb, config.clone()).expect_err("in use");
    let is_in_use = matches!(
        &refused,
        NamingError::Store {
            why: StoreError::InUse,
            ..
        }
    );
    assert!(is_in_use, "{refused}");
    let told = refused.to_string();
    assert!(told.contains(&place.display().to_string()), "{told}");
    let bound = first.root.bind(&name("a"), Some(&first.object("a")));
    assert_eq!(outcome::of(bound).text, "done");
    drop(first);
    // Once it has ended, another may have it.
    let second = Serving::new(config);
    assert_eq!(second.service.statistics().bindings, 1);
}

#[test]
fn a_store_is_free_when_its_service_has_ended_though_its_value_lives() {
    let directory = tempfile::tempdir().expect("a directory");
    let config = NamingConfig::stored_at(directory.path().join("names"));
    let first = Serving::new(config.clone());
    let object = first.object("a");
    first.root.bind(&name("a"), Some(&object)).expect("bound");
    first.service.end();
    let second = NamingService::serve(&first.orb, config).expect("a free store");
    assert_eq!(second.statistics().bindings, 1);
    second.end();
}

#[test]
fn without_a_store_names_end_with_the_service() {
    let endpoint = format!("iiop://127.0.0.1:{}", lasting_port());
    let first = Serving::at(&endpoint, NamingConfig::default());
    let root = first.root.clone();
    root.bind(&name("a"), Some(&first.object("a")))
        .expect("bound");
    drop(first);
    let second = Serving::at(&endpoint, NamingConfig::default());
    assert_eq!(contents(&second.root), "");
    // The old root's reference is not taken for the new root's.
    assert!(root.as_object().non_existent().expect("asked"));
}
