//! A server whose threads, connections and priorities are as one of the policies has them.

use rtorb::poa::PoaPolicies;
use rtorb::rt::{
    LanedThreadpool, Policy, PriorityModel, RequestBuffering, Threadpool, ThreadpoolId,
};
use rtorb::{ExceptionKind, Orb, SystemException};
use rtorb_os::clock::{monotonic_ns, sleep_until};

use super::idl::{Stage, StageServant};
use super::{BUFFERED_MAX, DECLARED, LOW, LOW_CLIENTS, RtPolicy, Setting, URGENT};
use crate::contestants::clients::{bounded, typed};
use crate::contestants::real_time::{corba, lane};
use crate::contestants::server::Server;
use crate::processes::computation::Computation;

/// Makes a server that listens at the endpoint, and whose pool serves already: an object for urgent calls and one for the others. They
/// call the `next` ones, of urgent calls and of others, if there are any.
///
/// # Errors
/// What the ORB said.
pub fn open(setting: Setting, endpoint: &str, next: &[impl AsRef<str>]) -> Result<Server, String> {
    let orb = bounded(Orb::builder())
        .listen(endpoint)
        .build()
        .map_err(|error| error.to_string())?;
    let pool = start_pool(&orb, setting)?;
    let mut next = typed(&orb, next)?.into_iter();
    let mut activate = |adapter, priority| {
        let policies = PoaPolicies::default()
            .with(priority_model(setting, priority)?)
            .with(Policy::Threadpool(pool));
        activate(&orb, adapter, policies, next.next())
    };
    let references = [
        activate("urgent", URGENT)?,
        activate("others", setting.policy.others().priority)?,
    ];
    Ok(Server::of(orb, references))
}

/// Starts the threads that serve the objects: a lane of one thread for each priority, or threads that take the priority of the call,
/// one for each client.
fn start_pool(orb: &Orb, setting: Setting) -> Result<ThreadpoolId, String> {
    let is = |policy| setting.is_on && setting.policy == policy;
    let rt_orb = orb.rt_orb();
    let pool = match setting.policy {
        RtPolicy::Borrowing | RtPolicy::Buffering => {
            rt_orb.create_threadpool_with_lanes(LanedThreadpool {
                lanes: vec![lane(URGENT)?, lane(LOW)?],
                allow_borrowing: is(RtPolicy::Borrowing),
                request_buffering: is(RtPolicy::Buffering).then_some(RequestBuffering {
                    max_buffered_requests: BUFFERED_MAX,
                    max_request_buffer_size: 0,
                }),
                ..LanedThreadpool::default()
            })
        }
        RtPolicy::Bands | RtPolicy::NestedPriority => rt_orb.create_threadpool(Threadpool {
            static_threads: LOW_CLIENTS as u32 + 1,
            default_priority: corba(idle_priority(setting))?,
            ..Threadpool::default()
        }),
    };
    pool.map_err(|exception| exception.to_string())
}

/// The priority at which threads without a lane wait. A thread reads a request before it knows the priority of the call, so it waits
/// at the declared priority, or at the most urgent of the clients.
const fn idle_priority(setting: Setting) -> u8 {
    match setting.policy {
        RtPolicy::NestedPriority if !setting.is_on => DECLARED,
        _ => URGENT,
    }
}

/// The priority model of an adapter: that of the client, or a declared priority.
fn priority_model(setting: Setting, priority: u8) -> Result<Policy, String> {
    let (model, priority) = match setting.policy {
        RtPolicy::Borrowing | RtPolicy::Buffering => (PriorityModel::ServerDeclared, priority),
        RtPolicy::NestedPriority if !setting.is_on => (PriorityModel::ServerDeclared, DECLARED),
        RtPolicy::Bands | RtPolicy::NestedPriority => (PriorityModel::ClientPropagated, priority),
    };
    Ok(Policy::PriorityModel {
        model,
        server_priority: corba(priority)?,
    })
}

fn activate(
    orb: &Orb,
    adapter: &str,
    policies: PoaPolicies,
    next: Option<Stage>,
) -> Result<String, String> {
    let root = orb.root_poa().map_err(|exception| exception.to_string())?;
    let poa = root
        .create_poa(adapter, policies)
        .map_err(|error| error.to_string())?;
    let stage: Stage = poa
        .activate(Link { next })
        .map_err(|error| error.to_string())?;
    Ok(orb.object_to_string(stage.as_object()))
}

/// The servant: a link of a chain of calls.
#[derive(Debug)]
struct Link {
    /// The next servant; `None` in the last one.
    next: Option<Stage>,
}

impl StageServant for Link {
    fn pass(&self, steps: u32, wait_us: u32) -> Result<u8, SystemException> {
        if let Some(next) = &self.next {
            return Ok(next.pass(steps, wait_us)?.saturating_add(1));
        }
        if steps > STEPS_MAX || wait_us > WAIT_US_MAX {
            return Err(ExceptionKind::BadParam.into());
        }
        Computation {
            steps: steps.into(),
        }
        .run();
        if wait_us > 0 {
            sleep_until(monotonic_ns() + u64::from(wait_us) * 1_000);
        }
        Ok(1)
    }
}

/// Some tens of milliseconds: a servant computes at a priority that few threads preempt.
const STEPS_MAX: u32 = 10_000_000;
const WAIT_US_MAX: u32 = 100_000;
