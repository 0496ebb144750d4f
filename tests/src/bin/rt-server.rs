//! A server whose threads a test looks at from outside: `rt-server FILE [--lanes PRIORITY:THREADS,...] [-ORB...]`.
//!
//! FILE, when it is ready, has two lines: a Cubit of the root adapter, or of one with a pool of these lanes; and a Relay of
//! an adapter without a pool. The clients of both adapters but the root propagate their priority.
#![forbid(unsafe_code)]

use std::error::Error;
use std::fs;

use rtorb::rt::{LanedThreadpool, Policy, PriorityModel, ThreadpoolLane};
use rtorb::{Orb, Poa, PoaPolicies};
use rtorb_tests::relay::{Relayer, model, priority};
use rtorb_tests::servants::Cubes;
use rtorb_tests::stubs::{Cubit, Relay};

fn main() -> Result<(), Box<dyn Error>> {
    let builder = Orb::builder().args(std::env::args());
    let arguments = builder.remaining_arguments().to_vec();
    let orb = builder.build()?;
    let root = orb.root_poa()?;
    let propagated = PoaPolicies::default().with(model(PriorityModel::ClientPropagated, 0));
    let relays = root.create_poa("Relays", propagated.clone())?;
    let (file, cubits) = match &arguments[..] {
        [_, file] => (file, root),
        [_, file, option, lanes] if option == "--lanes" => {
            (file, with_lanes(&orb, &root, lanes, propagated)?)
        }
        _ => {
            return Err("usage: rt-server FILE [--lanes PRIORITY:THREADS,...] [-ORB...]".into());
        }
    };
    let cubit: Cubit = cubits.activate(Cubes { orb: orb.clone() })?;
    let relay: Relay = relays.activate(Relayer {
        name: "server".to_owned(),
        orb: orb.clone(),
        next: None,
    })?;
    let objects = [cubit.as_object(), relay.as_object()].map(|object| orb.object_to_string(object));
    let draft = format!("{file}.draft");
    fs::write(&draft, objects.join("\n"))?;
    fs::rename(draft, file)?;
    Ok(orb.run()?)
}

/// An adapter with a pool of its own.
fn with_lanes(
    orb: &Orb,
    root: &Poa,
    lanes: &str,
    policies: PoaPolicies,
) -> Result<Poa, Box<dyn Error>> {
    let lane = |text: &str| -> Result<ThreadpoolLane, Box<dyn Error>> {
        let (number, threads) = text.split_once(':').ok_or("a lane is PRIORITY:THREADS")?;
        Ok(ThreadpoolLane {
            lane_priority: priority(number.parse()?),
            static_threads: threads.parse()?,
            ..ThreadpoolLane::default()
        })
    };
    let pool = orb.rt_orb().create_threadpool_with_lanes(LanedThreadpool {
        lanes: lanes.split(',').map(lane).collect::<Result<_, _>>()?,
        ..LanedThreadpool::default()
    })?;
    Ok(root.create_poa("Lanes", policies.with(Policy::Threadpool(pool)))?)
}
