//! Loads that take and give back memory: `fork` and `munmap`.

use std::hint::black_box;
use std::io;

use rtorb_instruments::process::fork_and_wait;
use rustix::thread::disable_transparent_huge_pages;

use super::workers::Begun;
use crate::processes::load::{MAPPED_BYTES, TOUCHED_BYTES};

/// Every copy has as many page tables to make and to take down as this process has touched pages.
pub(super) fn fork(mut begun: Begun) -> io::Result<()> {
    let _touched = touched(TOUCHED_BYTES)?;
    loop {
        fork_and_wait().map_err(io::Error::other)?;
        begun.done_something()?;
    }
}

/// The C library maps an allocation of this size by itself, and unmaps it when it is given back.
pub(super) fn map_and_unmap(mut begun: Begun) -> io::Result<()> {
    // A small one first: whoever waits for the load need not wait for a whole one beside everything else.
    drop(touched(FIRST_BYTES)?);
    begun.done_something()?;
    loop {
        drop(touched(MAPPED_BYTES)?);
    }
}

/// Memory whose pages are there, each of its own: with huge ones there would be nothing to do.
fn touched(bytes: usize) -> io::Result<Vec<u8>> {
    disable_transparent_huge_pages(true)?;
    let mut memory = vec![0; bytes];
    for page in memory.chunks_mut(PAGE_BYTES) {
        page[0] = 1;
    }
    Ok(black_box(memory))
}

/// The smallest that there are.
const PAGE_BYTES: usize = 4096;
/// Still a mapping of its own.
const FIRST_BYTES: usize = 1 << 20;
