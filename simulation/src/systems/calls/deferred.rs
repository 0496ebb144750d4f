//! Calls whose replies are fetched later, or never.

use super::client::check_reply;
use super::plan::Plan;
use crate::random::Random;
use crate::systems::call_end::CallEnd;
use crate::systems::worker::Worker;
use crate::world;
use rtorb::any::Value;
use rtorb::{ExceptionKind, Orb, SystemException, WaitStrategy};
use rtorb_dynamic::{Deferred, Failure, Operation, Request, Types};
use std::sync::Arc;
use std::time::Duration;

/// The operation `work`, as requests need it that are made at run time.
#[derive(Clone, Debug)]
pub(super) struct WorkOperation {
    types: Arc<Types>,
    operation: Arc<Operation>,
}

impl WorkOperation {
    pub(super) fn parse() -> Self {
        let mut types = Types::default();
        let idl = include_str!("../../../idl/worker.idl");
        types.add_text("worker.idl", idl).expect("it is IDL");
        let operation = types
            .interface("Simulated::Worker")
            .and_then(|interface| interface.operation("work"));
        Self {
            operation: operation.expect("it is declared"),
            types: Arc::new(types),
        }
    }
}

/// The deferred calls of one thread, and the ends of all its calls.
pub(super) struct DeferredCalls {
    /// The ORB supports started calls, and they disturb no other call.
    may_defer: bool,
    work: WorkOperation,
    begun: Vec<DeferredCall>,
    pub(super) ended: Vec<CallEnd>,
}

struct DeferredCall {
    call: u32,
    begun_ns: u64,
    timeout: Duration,
    body: Vec<u8>,
    deferred: Deferred,
}

impl DeferredCalls {
    pub(super) fn new(orb: &Orb, work: &WorkOperation, plan: Plan) -> Self {
        // Nobody may read the replies while the client sends, so that client and server may wait for each other's room; and a
        // CancelRequest that is sent in part ends the connection.
        let disturbs = plan.is_sound && !plan.gives_up;
        Self {
            may_defer: !disturbs && orb.strategies().connection.wait() != WaitStrategy::Read,
            work: work.clone(),
            begun: Vec::new(),
            ended: Vec::new(),
        }
    }

    pub(super) fn may_defer(&self) -> bool {
        self.may_defer
    }

    pub(super) fn begin(
        &mut self,
        worker: &Worker,
        call: u32,
        asleep_us: u32,
        timeout: Duration,
        body: &[u8],
    ) {
        let inputs = vec![
            Value::ULong(call),
            Value::Short(-1),
            Value::ULong(asleep_us),
            Value::ULong(0),
            Value::Octets(body.to_vec()),
        ];
        let object = worker.as_object().with_timeout(timeout);
        let request = Request::new(&object, &self.work.operation, &self.work.types, inputs);
        let request = request.expect("the values are of their types");
        let begun_ns = world::now_ns();
        self.begun.push(DeferredCall {
            call,
            begun_ns,
            timeout,
            body: body.to_vec(),
            deferred: request.defer(),
        });
    }

    /// Fetches the replies of all, or forgets some.
    pub(super) fn finish(&mut self, random: &mut Random) {
        for begun in std::mem::take(&mut self.begun) {
            let DeferredCall {
                call,
                timeout,
                mut deferred,
                ..
            } = begun;
            if random.one_in(4) {
                self.ended.push(CallEnd::unknown(call));
                continue;
            }
            // Others were waited for, but one that is over needs no wait.
            let waits = !deferred.is_ready();
            let outcome = match deferred.wait() {
                Ok(results) => {
                    let Value::Octets(reply) = &results.returns else {
                        panic!("work returns bytes");
                    };
                    check_reply(call, Some(reply), &begun.body);
                    Ok(())
                }
                Err(Failure::System(exception)) => Err(exception),
                Err(_) => Err(SystemException::from(ExceptionKind::Unknown)),
            };
            let begun_ns = if waits {
                begun.begun_ns
            } else {
                world::now_ns()
            };
            self.ended
                .push(CallEnd::new(call, false, begun_ns, timeout, outcome));
        }
    }
}
