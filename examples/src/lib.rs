//! What the examples that measure real-time threads share.
#![forbid(unsafe_code)]
use anyhow::{Context, bail};
use rtorb::rt::{Policy, Priority, PriorityModel, ThreadpoolLane};
use rtorb::{Orb, Poa, PoaPolicies};
use rtorb_os::clock::thread_cpu_ns;
use std::path::PathBuf;

/// Keeps the CPU for so much time of the calling thread.
pub fn compute(ns: u64) {
    let end_ns = thread_cpu_ns() + ns;
    while thread_cpu_ns() < end_ns {}
}

/// Gives the calls of this thread, and the thread itself, that priority.
///
/// # Errors
/// If the host refuses it.
pub fn take_priority(client: &Orb, priority: i16) -> anyhow::Result<()> {
    let current = client.rt_current();
    Ok(current.set_the_priority(Priority::new(priority)?)?)
}

/// Makes an adapter whose objects are served by the lane with that priority.
///
/// # Errors
/// If the server has no such lane.
pub fn adapter(server: &Orb, priority: i16) -> anyhow::Result<Poa> {
    let policies = PoaPolicies::default().with(Policy::PriorityModel {
        model: PriorityModel::ServerDeclared,
        server_priority: Priority::new(priority)?,
    });
    let root = server.root_poa()?;
    Ok(root.create_poa(&format!("Priority{priority}"), policies)?)
}

/// A lane with one thread of that priority.
///
/// # Errors
/// If the priority is negative.
pub fn lane(priority: i16) -> anyhow::Result<ThreadpoolLane> {
    Ok(ThreadpoolLane {
        lane_priority: Priority::new(priority)?,
        ..ThreadpoolLane::default()
    })
}

/// A path for the socket of a server. A UNIX socket needs no kernel thread, which threads with a priority would delay.
pub fn socket(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("rtorb-{name}-{}", std::process::id()))
}

/// Reads `[--json] [OPTION N]` from the command line: whether the result is JSON, and the number, `otherwise` if there is none.
///
/// # Errors
/// If there is anything else, with the usage of `program`.
pub fn arguments(program: &str, option: &str, otherwise: u64) -> anyhow::Result<(bool, u64)> {
    let (mut is_json, mut number) = (false, otherwise);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        if argument == "--json" {
            is_json = true;
        } else if argument == option {
            let value = arguments.next();
            let value = value.with_context(|| format!("{option} needs a number"))?;
            let parsed = value.parse();
            number = parsed.with_context(|| format!("{option} needs a number"))?;
        } else {
            bail!("usage: {program} [--json] [{option} N]");
        }
    }
    Ok((is_json, number))
}
