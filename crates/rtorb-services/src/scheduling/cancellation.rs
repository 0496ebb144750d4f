//! The object by which other processes cancel the distributable threads of this one.

use rtorb::rt::{EarliestDeadlineFirst, SchedulingCurrent, ThreadId};
use rtorb::{Orb, PoaPolicies, SystemException};

use super::config::SchedulingError;
use crate::stubs::distributable_threads::distributable_threads::ThreadId as ThreadBytes;
use crate::stubs::distributable_threads::{DistributableThreads, DistributableThreadsServant};

/// Serves an object that cancels the distributable threads of this process: `corbaloc::HOST:PORT/DistributableThreads`.
///
/// The manager of the ORB's root adapter lets requests in, as for every object. If the ORB's one thread runs the servant that is to be
/// cancelled (dispatch strategy `reactive`), the request waits for it: serve the object by another ORB of the process.
///
/// # Errors
/// [`SchedulingError`].
pub fn serve_cancellation(orb: &Orb) -> Result<DistributableThreads, SchedulingError> {
    let poa = orb.root_poa()?.create_poa(NAME, PoaPolicies::PERSISTENT)?;
    // Which discipline it is does not matter for a cancellation.
    let servant = Canceller(orb.scheduling_current(EarliestDeadlineFirst));
    let reference: DistributableThreads = poa.activate_with_id(NAME, servant)?;
    orb.bind_object_key(NAME, reference.as_object())
        .inspect_err(|_| poa.destroy())?;
    Ok(reference)
}

#[derive(Debug)]
struct Canceller(SchedulingCurrent);

impl DistributableThreadsServant for Canceller {
    fn cancel(&self, id: &ThreadBytes) -> Result<bool, SystemException> {
        let found = self.0.lookup(ThreadId::from_bytes(*id));
        Ok(found.is_some_and(|thread| thread.cancel().is_ok()))
    }
}

/// The name of the adapter, and the object key.
const NAME: &str = "DistributableThreads";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_taken_leaves_no_adapter() {
        let orb = Orb::builder().build().expect("an ORB");
        let poa = orb.root_poa().expect("its adapter");
        let canceller = Canceller(orb.scheduling_current(EarliestDeadlineFirst));
        let other: DistributableThreads = poa.activate(canceller).expect("an object");
        orb.bind_object_key(NAME, other.as_object())
            .expect("it is free");
        serve_cancellation(&orb).expect_err("its key is taken");
        orb.unbind_object_key(NAME);
        serve_cancellation(&orb).expect("its key is free, and the name of its adapter");
    }
}
