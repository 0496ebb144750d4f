//! Object references as values: nil, in structs and sequences, as keys, for callbacks, as text, and with policies of their own.

use std::collections::HashSet;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use crate::common::Pair;
use rtorb::rt::Policy;
use rtorb::{ExceptionKind, ObjectRef, SyncScope, SystemException};
use rtorb_tests::echo::{Listener, ListenerServant, References, ReferencesServant, Subscription};

type Three<T> = Result<(T, T, T), SystemException>;

struct Relay;

impl ReferencesServant for Relay {
    fn as_listener(
        &self,
        given: Option<&Listener>,
        both: Option<&Listener>,
    ) -> Three<Option<Listener>> {
        Ok((given.cloned(), given.cloned(), both.cloned()))
    }

    fn as_any_object(
        &self,
        given: Option<&ObjectRef>,
        both: Option<&ObjectRef>,
    ) -> Three<Option<ObjectRef>> {
        Ok((given.cloned(), given.cloned(), both.cloned()))
    }

    fn as_listeners(
        &self,
        given: &[Option<Listener>],
        both: &[Option<Listener>],
    ) -> Three<Vec<Option<Listener>>> {
        Ok((given.to_vec(), given.to_vec(), both.to_vec()))
    }

    fn as_subscription(&self, given: &Subscription, both: &Subscription) -> Three<Subscription> {
        Ok((given.clone(), given.clone(), both.clone()))
    }

    fn tell_all(&self, all: &[Option<Listener>], news: &str) -> Result<i32, SystemException> {
        all.iter()
            .flatten()
            .try_fold(0, |told, listener| Ok(told + listener.tell(news)?))
    }
}

#[derive(Default)]
struct Ear(AtomicI32);

impl ListenerServant for Ear {
    fn tell(&self, news: &str) -> Result<i32, SystemException> {
        assert_eq!(news, "news");
        Ok(self.0.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

#[test]
fn references_and_nil_round_trip() {
    let pair = Pair::new();
    let references: References = pair.serve(Relay);
    let ear: Listener = pair.serve_at_client(Ear::default());
    let same =
        |listener: Option<Listener>| listener.map(|listener| listener.as_object().ior().clone());
    let (given, both, back) = references.as_listener(Some(&ear), None).unwrap();
    assert_eq!(
        (same(given), same(both), same(back)),
        (same(Some(ear.clone())), same(Some(ear.clone())), None)
    );
    let (given, both, back) = references
        .as_any_object(None, Some(ear.as_object()))
        .unwrap();
    assert!(given.is_none() && both.is_none());
    assert_eq!(back.as_ref(), Some(ear.as_object()));
}

#[test]
fn references_go_inside_sequences_and_structs() {
    let pair = Pair::new();
    let references: References = pair.serve(Relay);
    let ear: Listener = pair.serve_at_client(Ear::default());
    let listeners = [Some(ear.clone()), None];
    let (given, ..) = references.as_listeners(&listeners, &[]).unwrap();
    assert_eq!(given, listeners);
    let subscription = Subscription {
        topic: "weather".to_owned(),
        who: Some(ear),
    };
    let (given, ..) = references
        .as_subscription(&subscription, &subscription)
        .unwrap();
    assert_eq!(given, subscription);
}

#[test]
#[expect(
    clippy::mutable_key_type,
    reason = "only the IOR counts for equality and hash, and it never changes"
)]
fn equal_references_and_structs_of_them_are_one_key() {
    let pair = Pair::new();
    let ear: Listener = pair.serve_at_client(Ear::default());
    let other: Listener = pair.serve_at_client(Ear::default());
    let keys = HashSet::from([ear.clone(), ear.clone(), other]);
    assert_eq!(keys.len(), 2);
    let subscription = Subscription {
        topic: "weather".to_owned(),
        who: Some(ear),
    };
    let keys = HashSet::from([subscription.clone(), subscription]);
    assert_eq!(keys.len(), 1);
}

#[test]
fn a_server_calls_its_client_back() {
    let pair = Pair::new();
    let references: References = pair.serve(Relay);
    let ear: Listener = pair.serve_at_client(Ear::default());
    let listeners = [Some(ear.clone()), None, Some(ear.clone())];
    assert_eq!(references.tell_all(&listeners, "news").unwrap(), 1 + 2);
    assert_eq!(ear.tell("news").unwrap(), 3);
}

#[test]
fn a_typed_reference_has_policies_of_its_own() {
    let pair = Pair::new();
    let ear: Listener = pair.serve(Ear::default());
    let timeout = Duration::from_secs(60);
    let patient = ear.with_timeout(timeout);
    assert_eq!(patient.as_object().chosen_timeout(), Some(timeout));
    let endless = patient.with_timeout(None);
    assert_eq!(endless.as_object().chosen_timeout(), None);
    assert_eq!(patient.tell("news"), Ok(1));

    for late in [
        ear.with_timeout(Duration::from_nanos(1)),
        ear.with_end_time(Instant::now()),
    ] {
        assert_eq!(late.tell("news").unwrap_err().kind, ExceptionKind::Timeout);
    }

    let at_once = ear.with_sync_scope(SyncScope::None);
    assert_eq!(at_once.as_object().sync_scope(), SyncScope::None);
    let private = ear.set_policy_overrides(&[Policy::PrivateConnection]);
    let private = private.expect("it is a client's policy");
    assert!(
        private
            .as_object()
            .policies()
            .contains(&Policy::PrivateConnection)
    );
    let refused = ear.set_policy_overrides(&[Policy::ServerProtocol(Vec::new())]);
    assert_eq!(refused.unwrap_err().kind, ExceptionKind::NoPermission);
}

#[test]
fn a_reference_is_printed_and_made_of_its_text() {
    let pair = Pair::new();
    let ear: Listener = pair.serve(Ear::default());
    let orb = ear.as_object().orb();
    let text = ear.to_string();
    assert_eq!(text, orb.object_to_string(ear.as_object()));
    assert_eq!(orb.string_to_reference(&text), Ok(ear.clone()));
    let refused = orb.string_to_reference::<References>(&text).unwrap_err();
    assert_eq!(refused.kind, ExceptionKind::BadParam);
    let refused = orb.string_to_reference::<Listener>("IOR:0").unwrap_err();
    assert_eq!(refused.kind, ExceptionKind::BadParam);
}
