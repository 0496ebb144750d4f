//! Two naming services on one store.

use super::member::{Member, wait_until};
use super::serving::{Serving, name};
use rtorb::ior::Ior;
use rtorb_services::stubs::naming::cos_naming::{
    NamingContext, NamingContextBindError, NamingContextDestroyError, NamingContextResolveError,
};
use rtorb_tests::server_process::lasting_port;
use std::thread;

#[test]
fn what_one_service_binds_the_other_resolves_and_both_give_the_same_references() {
    let Some(etcd) = Member::start() else {
        return;
    };
    let url = etcd.url("plant/names");
    let [a, b] = [(); 2].map(|()| Serving::start(&url));
    let object = a.object("drive");
    let press = a.root.bind_new_context(&name("press.k")).expect("made");
    let press = press.expect("a context");
    press.bind(&name("drive"), Some(&object)).expect("bound");
    assert!(a.has("press.k/drive"), "a service sees its own changes");
    wait_until("the other service", || b.has("press.k/drive"));
    let resolved = b.root.resolve(&name("press.k/drive")).expect("bound");
    assert_eq!(resolved.map(|it| it.to_string()), Some(object.to_string()));

    // The references differ in their endpoints alone.
    let there = b.root.resolve(&name("press.k")).expect("bound");
    let there = there.expect("a context");
    assert_eq!(keys(there.ior()), keys(press.as_object().ior()));
    assert_ne!(there.to_string(), press.as_object().to_string());
    // A context of the one is a context of the other, too.
    let there = NamingContext::unchecked_narrow(there);
    a.root
        .bind_context(&name("same"), Some(&there))
        .expect("bound");
    there.unbind(&name("drive")).expect("unbound");
    wait_until("the first service", || {
        a.has("same") && !a.has("same/drive")
    });
    let resolved = a.root.resolve(&name("press.k/drive"));
    assert!(matches!(
        resolved,
        Err(NamingContextResolveError::NotFound(_))
    ));

    // A service that begins later, and one that begins again.
    drop(a);
    let late = Serving::start(&url);
    assert_eq!(late.service.statistics().bindings, 2);
    assert_eq!(late.service.statistics().contexts, 2);
}

fn keys(ior: &Ior) -> Vec<Vec<u8>> {
    ior.iiop_profiles().map(|it| it.object_key).collect()
}

#[test]
fn of_all_that_bind_a_name_at_the_same_time_one_does() {
    let Some(etcd) = Member::start() else {
        return;
    };
    let url = etcd.url("names");
    let [a, b] = [(); 2].map(|()| Serving::start(&url));
    for round in 0..20 {
        let at = name(&format!("name{round}"));
        let bind = |serving: &Serving, key: String| {
            let object = serving.object(&key);
            match serving.root.bind(&at, Some(&object)) {
                Ok(()) => true,
                Err(NamingContextBindError::AlreadyBound(_)) => false,
                Err(other) => panic!("{other}"),
            }
        };
        let bind = &bind;
        let bound: Vec<bool> = thread::scope(|scope| {
            let binding: Vec<_> = (0..4)
                .flat_map(|client| [(&a, client), (&b, client)])
                .map(|(serving, client)| scope.spawn(move || bind(serving, client.to_string())))
                .collect();
            binding
                .into_iter()
                .map(|thread| thread.join().expect("no panic"))
                .collect()
        });
        assert_eq!(bound.iter().filter(|it| **it).count(), 1, "{bound:?}");
    }
}

#[test]
fn a_context_is_destroyed_or_bound_into_and_never_both() {
    let Some(etcd) = Member::start() else {
        return;
    };
    let url = etcd.url("names");
    let [a, b] = [(); 2].map(|()| Serving::start(&url));
    let mut destroyed = 0;
    for round in 0..20 {
        let at = format!("context{round}");
        let context = a.root.bind_new_context(&name(&at)).expect("made");
        let context = context.expect("a context");
        wait_until("the other service", || b.has(&at));
        let inner = name(&format!("{at}/object"));
        let (bound, ended) = thread::scope(|scope| {
            let bound = scope.spawn(|| b.root.bind(&inner, Some(&b.object("object"))));
            let ended = context.destroy();
            (bound.join().expect("no panic"), ended)
        });
        match (bound, ended) {
            (Ok(()), Err(NamingContextDestroyError::NotEmpty(_))) => {
                assert!(b.has(&format!("{at}/object")));
            }
            (Err(NamingContextBindError::CannotProceed(_)), Ok(())) => destroyed += 1,
            other => panic!("{other:?}"),
        }
    }
    println!("{destroyed} of 20 destroyed");
}

#[test]
fn references_name_all_services_and_a_client_goes_on_with_another() {
    let Some(etcd) = Member::start() else {
        return;
    };
    let url = etcd.url("names");
    let [first, second] = [(); 2].map(|()| lasting_port());
    let endpoint = |own: u16, other: u16| {
        format!("iiop://127.0.0.1:{own}/publish=127.0.0.1:{own}&publish=127.0.0.1:{other}")
    };
    let a = Serving::at(&endpoint(first, second), &url);
    let b = Serving::at(&endpoint(second, first), &url);
    let client = rtorb::Orb::builder().build().expect("a client");
    let text = a.root.as_object().to_string();
    let root = client.string_to_object(&text).expect("a reference");
    let root = NamingContext::unchecked_narrow(root);
    let context = root.bind_new_context(&name("c")).expect("made");
    let context = context.expect("a context");
    wait_until("the other service", || b.has("c"));
    drop(a);
    // The references of the service that is gone.
    let object = b.object("object");
    context.bind(&name("o"), Some(&object)).expect("bound");
    root.resolve(&name("c/o")).expect("bound");
}
