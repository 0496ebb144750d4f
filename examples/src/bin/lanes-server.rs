//! Serves a Greeter by two lanes: urgent calls have a thread, an endpoint and connections that no other call uses.
#![forbid(unsafe_code)]
use rtorb::rt::{LanedThreadpool, Priority, PriorityModel, ThreadpoolLane};
use rtorb::{Orb, PoaPolicies, SystemException};
use std::io::{Write, stderr, stdout};

rtorb::include_idl!("greeter");

struct Host {
    orb: Orb,
}

impl GreeterServant for Host {
    fn greet(&self, name: &str) -> Result<String, SystemException> {
        let priority = self.orb.rt_current().the_priority()?;
        Ok(format!("Hello, {name}! This is priority {priority}."))
    }
}

fn main() -> anyhow::Result<()> {
    let builder = Orb::builder().on_warning(|warning| {
        let _ = writeln!(stderr(), "{warning}");
    });
    let orb = builder.args(std::env::args()).build()?;
    let rt_orb = orb.rt_orb();
    let lanes = LanedThreadpool {
        lanes: vec![lane(60, 1)?, lane(10, 2)?],
        ..LanedThreadpool::default()
    };
    let pool = rt_orb.create_threadpool_with_lanes(lanes)?;
    let of_the_client = PriorityModel::ClientPropagated;
    let policies = PoaPolicies::default()
        .with(rt_orb.create_priority_model_policy(of_the_client, Priority::new(10)?))
        .with(rt_orb.create_threadpool_policy(pool));
    let poa = orb.root_poa()?.create_poa("Lanes", policies)?;
    let greeter: Greeter = poa.activate(Host { orb: orb.clone() })?;
    writeln!(stdout(), "{greeter}")?;
    orb.run()?;
    Ok(())
}

fn lane(priority: i16, threads: u32) -> Result<ThreadpoolLane, SystemException> {
    Ok(ThreadpoolLane {
        lane_priority: Priority::new(priority)?,
        static_threads: threads,
        ..ThreadpoolLane::default()
    })
}
