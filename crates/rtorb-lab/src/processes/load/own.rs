//! The load that this program makes itself, in a child: `load KIND FOLDER SECONDS`, and `load tool PROGRAM ...`; on an agent's host
//! `agent-load KIND SECONDS`.
//!
//! It says `ready` when every part of it has done something, and then how it does it if that is not as usual. No kind depends on the time of day or on chance.

use std::hint::black_box;
use std::io;
use std::path::Path;
use std::time::Duration;

use rtorb_os::sched::{SchedPolicy, apply_policy};
use rustix::thread::{CpuSet, sched_setaffinity};

use super::kind::Kind;
use super::{FULL_MINUTES, HOGS, disk_folder};
use crate::processes::child::{Role, end_with_input, number, ready, refused};
use crate::processes::tools::exec_tool;
use workers::{Begun, Workers, lower_priority};

mod files;
mod memory;
mod network;
mod processes;
mod timers;
mod workers;

/// Makes load, and becomes a tool that does; makes those kinds on an agent's host that P4 has.
pub(crate) const ROLES: &[Role] = &[
    Role::here("load", |words| {
        play(words).map_err(|error| error.to_string())
    }),
    Role::here("agent-load", |words| {
        end_with_input()?;
        on_agent(words).map_err(|error| error.to_string())
    })
    .on_agent(|words| match words {
        [kind, seconds] => {
            let is_p4s = Kind::named(kind).is_some_and(|kind| Kind::MIX.contains(&kind));
            is_p4s && number::<u64>(seconds).is_ok_and(|seconds| seconds <= SECONDS_MAX)
        }
        _ => false,
    }),
];

/// Returns when the time is over, or with what the system refused.
fn play(role: &[&str]) -> io::Result<()> {
    // What the exec load becomes, again and again.
    if role == [NOTHING] {
        return Ok(());
    }
    // Whatever the laboratory itself runs with.
    apply_policy(SchedPolicy::Other).map_err(io::Error::other)?;
    match role {
        ["tool", program, arguments @ ..] => {
            lower_priority()?;
            Err(exec_tool(program, arguments))
        }
        [kind, folder, seconds] => {
            let kind = Kind::named(kind).ok_or_else(|| io::Error::other("no such load"))?;
            let seconds: u64 = seconds.parse().map_err(io::Error::other)?;
            make(kind, Path::new(folder), Duration::from_secs(seconds))
        }
        _ => Err(io::Error::other("a load has KIND FOLDER SECONDS")),
    }
}

/// An agent gives its servers a CPU and a priority, which are not for a load. Without a disk, the load on disks is refused.
fn on_agent(role: &[&str]) -> io::Result<()> {
    let mut all = CpuSet::new();
    (0..CpuSet::MAX_CPU).for_each(|cpu| all.set(cpu));
    sched_setaffinity(None, &all)?;
    let own = std::env::temp_dir();
    let folder = match role {
        ["disk", _] => disk_folder::place(&own),
        _ => Ok(&*own),
    };
    let folder = match folder {
        Ok(folder) => folder,
        Err(why) => {
            refused(&why);
            return Ok(());
        }
    };
    let folder = folder.to_string_lossy();
    match role {
        [kind, seconds] => play(&[kind, &folder, seconds]),
        _ => play(role),
    }
}

fn make(kind: Kind, folder: &Path, at_most: Duration) -> io::Result<()> {
    let mut workers = Workers::new();
    let mut how = String::new();
    match kind {
        Kind::Hog => (0..HOGS).try_for_each(|_| workers.start("hog", compute))?,
        Kind::Disk => {
            let folder = folder.to_owned();
            workers.start("disk", move |begun| files::write_to_disk(&folder, begun))?;
        }
        Kind::Network => how = network::over_own_link(&mut workers)?,
        Kind::Fork => workers.start("fork", memory::fork)?,
        Kind::Munmap => workers.start("munmap", memory::map_and_unmap)?,
        Kind::Pipes => processes::pipes(&mut workers)?,
        Kind::Tcp => network::stream(&mut workers)?,
        Kind::Udp => network::datagrams(&mut workers, super::DATAGRAM_BYTES)?,
        Kind::Proc => workers.start("proc", files::read_proc)?,
        Kind::Tmpfs => workers.start("tmpfs", files::write_to_memory)?,
        Kind::Timers => workers.start("timers", timers::expire_together)?,
        Kind::Exec => workers.start("exec", processes::start_programs)?,
        Kind::Unix => network::ping_pong(&mut workers)?,
    }
    workers.await_begin(at_most)?;
    lower_priority()?;
    ready(&how);
    std::thread::sleep(at_most);
    Ok(())
}

fn compute(mut begun: Begun) -> io::Result<()> {
    let mut number = 1u64;
    loop {
        for _ in 0..1 << 16 {
            number = black_box(number.wrapping_mul(MULTIPLIER).wrapping_add(1));
        }
        begun.done_something()?;
    }
}

/// The longest load of all.
const SECONDS_MAX: u64 = FULL_MINUTES * 60;
/// The role of a process that only ends.
const NOTHING: &str = "nothing";
/// Of Knuth's linear congruential generator, MMIX.
const MULTIPLIER: u64 = 6_364_136_223_846_793_005;
