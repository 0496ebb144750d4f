//! Loads of many tasks: `exec`, `pipes`.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;

use super::NOTHING;
use super::workers::{Begun, Workers};
use crate::processes::load::PIPE_ENDS;

/// This program again, which ends at once. It is started as vfork(2) does it, stays in the process group, and has the death
/// signal that every child has: nothing of it outlives the load.
pub(super) fn start_programs(mut begun: Begun) -> io::Result<()> {
    let parent = std::process::id().to_string();
    loop {
        let status = Command::new("/proc/self/exe")
            .args(["child", "--parent", &parent, "load", NOTHING])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()?;
        if !status.success() {
            return Err(io::Error::other(format!("a program failed: {status}")));
        }
        begun.done_something()?;
    }
}

/// As one group of hackbench: each of the ones writes to each of the others.
pub(super) fn pipes(workers: &mut Workers) -> io::Result<()> {
    let mut ends = Vec::with_capacity(PIPE_ENDS);
    for _ in 0..PIPE_ENDS {
        let (reader, writer) = io::pipe()?;
        workers.start("reader", move |begun| read_all(reader, begun))?;
        ends.push(writer);
    }
    let ends: Arc<[PipeWriter]> = ends.into();
    for _ in 0..PIPE_ENDS {
        let ends = Arc::clone(&ends);
        workers.start("writer", move |begun| write_to_each(&ends, begun))?;
    }
    Ok(())
}

fn read_all(mut reader: PipeReader, mut begun: Begun) -> io::Result<()> {
    let mut message = [0; MESSAGE_BYTES];
    loop {
        reader.read_exact(&mut message)?;
        begun.done_something()?;
    }
}

fn write_to_each(ends: &[PipeWriter], mut begun: Begun) -> io::Result<()> {
    let message = [0x5a; MESSAGE_BYTES];
    loop {
        for mut writer in ends {
            writer.write_all(&message)?;
        }
        begun.done_something()?;
    }
}

/// As hackbench has it.
const MESSAGE_BYTES: usize = 100;
