//! Servants that an adapter does not take, and what they may do on their way out.

use rtorb::{ExceptionKind, Limits, Orb, Poa, PoaError, SystemException};
use rtorb_tests::echo::{Listener, ListenerServant};

/// Asks its adapter something when it goes: it must not be locked then.
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
fn one_too_many_is_no_resources_and_may_call_the_adapter_while_it_is_dropped() {
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
