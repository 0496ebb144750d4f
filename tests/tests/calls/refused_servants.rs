//! Servants that an adapter rejects. They may call the adapter while they are dropped.

use rtorb::{ExceptionKind, Limits, Orb, Poa, PoaError, SystemException};
use rtorb_tests::echo::{Listener, ListenerServant};

/// Calls its adapter when it is dropped; the adapter must not be locked then.
struct Farewell(Poa);

impl ListenerServant for Farewell {
    fn tell(&self, _: &str) -> Result<i32, SystemException> {
        Ok(0)
    }
}

impl Drop for Farewell {
    fn drop(&mut self) {
        assert_eq!(
            self.0.deactivate_id("nobody"),
            Err(PoaError::ObjectNotActive)
        );
    }
}

#[test]
fn a_servant_over_the_limit_is_rejected_and_may_call_the_adapter_in_drop() {
    let limits = Limits::with(|limits| limits.objects_max = 1);
    let orb = Orb::builder().limits(limits).build().expect("an ORB");
    let root = orb.root_poa().expect("a port");
    let _first: Listener = root.activate(Farewell(root.clone())).expect("room for one");
    let second: Result<Listener, _> = root.activate(Farewell(root.clone()));
    match second {
        Err(PoaError::System(exception)) => assert_eq!(exception.kind, ExceptionKind::NoResources),
        other => panic!("{other:?}"),
    }
}
