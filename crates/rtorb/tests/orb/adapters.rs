//! What object adapters promise: names that can be used again, and references that never lead to another object.

use rtorb::poa::IdAssignment;
use rtorb::{Limits, Orb, Poa, PoaError, PoaPolicies};
use rtorb_tests::servants::Cubes;
use rtorb_tests::stubs::Cubit;

#[test]
fn the_name_of_a_destroyed_adapter_is_free_again() {
    let limits = Limits::with(|limits| limits.adapters_max = 4);
    let (orb, root) = served(limits);
    for _ in 0..10 {
        let outer = root
            .create_poa("outer", PoaPolicies::PERSISTENT)
            .expect("free");
        let inner = outer
            .create_poa("inner", PoaPolicies::PERSISTENT)
            .expect("free");
        let _: Cubit = inner
            .activate_with_id("a", Cubes { orb: orb.clone() })
            .expect("room");
        inner.destroy();
        assert!(matches!(
            outer.find_poa("inner"),
            Err(PoaError::AdapterNonExistent)
        ));
        let inner = outer
            .create_poa("inner", PoaPolicies::PERSISTENT)
            .expect("free again");
        let _: Cubit = inner
            .activate_with_id("a", Cubes { orb: orb.clone() })
            .expect("room");
        outer.destroy();
        inner.destroy();
        assert!(matches!(
            outer.create_poa("late", PoaPolicies::PERSISTENT),
            Err(PoaError::System(_))
        ));
    }
    orb.shutdown();
    orb.run().expect("it ends");
}

#[test]
fn no_adapter_is_taken_for_the_root() {
    let (orb, root) = served(Limits::default());
    assert!(matches!(
        root.create_poa("RootPOA", PoaPolicies::PERSISTENT),
        Err(PoaError::BadName)
    ));
    orb.shutdown();
}

#[test]
fn an_id_that_an_adapter_makes_for_a_persistent_object_is_never_made_again() {
    let key = || {
        let (orb, root) = served(Limits::default());
        let policies = PoaPolicies::PERSISTENT.with_id_assignment(IdAssignment::System);
        let poa = root.create_poa("Made", policies).expect("free");
        let cubit: Cubit = poa.activate(Cubes { orb: orb.clone() }).expect("room");
        let key = cubit
            .as_object()
            .ior()
            .iiop_profiles()
            .next()
            .expect("TCP")
            .object_key;
        orb.shutdown();
        orb.run().expect("it ends");
        key
    };
    assert_ne!(
        key(),
        key(),
        "a later process would serve another object by it"
    );
}

fn served(limits: Limits) -> (Orb, Poa) {
    let orb = Orb::builder().limits(limits).build().expect("an ORB");
    let root = orb.root_poa().expect("a port");
    (orb, root)
}
