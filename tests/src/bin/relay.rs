//! A server of one Relay whose clients propagate their priority: a station of a call through several processes.
//!
//! `relay NAME FILE [NEXT]` writes FILE when it is ready and ends on `shutdown`. NEXT is the reference of the Relay that it
//! calls; NAME is also the strategy of its dispatch, or `lanes` for a pool with lanes 10, 20 and 30.
#![forbid(unsafe_code)]

use std::error::Error;
use std::fs;

use rtorb::rt::{LanedThreadpool, Priority, PriorityModel, ThreadpoolLane};
use rtorb::{Orb, PoaPolicies};
use rtorb_tests::relay::Relayer;
use rtorb_tests::stubs::Relay;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [name, file] => serve(name, file, None),
        [name, file, next] => serve(name, file, Some(next)),
        _ => Err("usage: relay thread_per_connection|reactive|...|lanes FILE [NEXT]".into()),
    }
}

fn serve(name: &str, file: &str, next: Option<&str>) -> Result<(), Box<dyn Error>> {
    let builder = Orb::builder();
    let orb = match name {
        "lanes" => builder.build()?,
        dispatch => builder.dispatch(dispatch.parse()?).build()?,
    };
    let next = match next {
        Some(reference) => Some(Relay::unchecked_narrow(orb.string_to_object(reference)?)),
        None => None,
    };
    let rt_orb = orb.rt_orb();
    let mut policies = PoaPolicies::default()
        .with(rt_orb.create_priority_model_policy(PriorityModel::ClientPropagated, Priority::MIN));
    if name == "lanes" {
        let lanes = [10, 20, 30]
            .map(lane)
            .into_iter()
            .collect::<Result<_, _>>()?;
        let pool = rt_orb.create_threadpool_with_lanes(LanedThreadpool {
            lanes,
            ..LanedThreadpool::default()
        })?;
        policies = policies.with(rt_orb.create_threadpool_policy(pool));
    }
    let poa = orb.root_poa()?.create_poa("Relays", policies)?;
    let relay: Relay = poa.activate(Relayer {
        name: name.to_owned(),
        orb: orb.clone(),
        next,
    })?;
    let draft = format!("{file}.draft");
    fs::write(&draft, orb.object_to_string(relay.as_object()))?;
    fs::rename(draft, file)?;
    Ok(orb.run()?)
}

fn lane(priority: i16) -> Result<ThreadpoolLane, Box<dyn Error>> {
    Ok(ThreadpoolLane {
        lane_priority: Priority::new(priority)?,
        static_threads: 1,
        ..ThreadpoolLane::default()
    })
}
