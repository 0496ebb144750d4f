//! Processes with `Cubit` objects, and one that calls them.

use std::fmt::Display;

use rtorb::rt::{Policy, PriorityModel};
use rtorb::{Orb, PoaPolicies, SharedMemoryWait, Strategies};

use super::{Bench, open};
use crate::contestants::real_time::lane;
use crate::contestants::{CALL_TIMEOUT, burst, client_orb_builder};
use crate::processes::child::{NOT_ITS_ARGUMENTS, Role, arguments, is_tcp, number};

/// Servers with one object each, and a client.
pub(crate) const ROLES: &[Role] = &[
    Role::here("cubit-server", |words| match *words {
        [endpoint] => serve_at(endpoint, SharedMemoryWait::default()),
        [endpoint, wait] => serve_at(endpoint, wait.parse().map_err(text)?),
        _ => Err(NOT_ITS_ARGUMENTS.to_owned()),
    })
    .on_agent(|words| matches!(*words, [endpoint] if is_tcp(endpoint))),
    Role::here("declared-lane-server", |words| {
        serve_lane(words, PriorityModel::ServerDeclared)
    })
    .on_agent(is_lane_over_tcp),
    Role::here("propagated-lane-server", |words| {
        serve_lane(words, PriorityModel::ClientPropagated)
    })
    .on_agent(is_lane_over_tcp),
    Role::here("cubit-client", |words| {
        let (reference, wait) = match *words {
            [reference] => (reference, SharedMemoryWait::default()),
            [reference, wait] => (reference, wait.parse().map_err(text)?),
            _ => return Err(NOT_ITS_ARGUMENTS.to_owned()),
        };
        let orb = client_orb_builder(CALL_TIMEOUT).shared_memory_wait(wait);
        let orb = orb.build().map_err(text)?;
        let object = orb.string_to_object(reference).map_err(text)?;
        let bench = Bench::new(&object).map_err(text)?;
        burst::answer(|burst| bench.burst(burst))
    }),
    Role::here("cubit-collocated", |_| call_own()),
];

/// A thread for each client.
fn serve_at(endpoint: &str, wait: SharedMemoryWait) -> Result<(), String> {
    let builder = Orb::builder().shared_memory_wait(wait).listen(endpoint);
    let server = open(builder, PoaPolicies::default());
    server.map_err(text)?.run()
}

/// A client of its own object, for which no thread serves.
fn call_own() -> Result<(), String> {
    let server = open(Orb::builder(), PoaPolicies::default()).map_err(text)?;
    let object = server
        .orb()
        .string_to_object(&server.references().join(" "));
    let bench = Bench::new(&object.map_err(text)?).map_err(text)?;
    burst::answer(|burst| bench.burst(burst))
}

/// One lane of one thread and an object of its priority.
fn serve_lane(words: &[&str], model: PriorityModel) -> Result<(), String> {
    let [endpoint, priority] = arguments(words)?;
    let lane = lane(number(priority)?)?;
    let policies = PoaPolicies::default().with(Policy::PriorityModel {
        model,
        server_priority: lane.lane_priority,
    });
    let builder = Orb::builder()
        .strategies(Strategies::TAO)
        .lanes([lane])
        .listen(endpoint);
    open(builder, policies).map_err(text)?.run()
}

fn is_lane_over_tcp(words: &[&str]) -> bool {
    let is_priority = |word: &str| number::<u8>(word).is_ok_and(|priority| priority <= 99);
    matches!(*words, [endpoint, priority] if is_tcp(endpoint) && is_priority(priority))
}

fn text(error: impl Display) -> String {
    error.to_string()
}
