//! The wait strategies of shared memory: what a thread does for a moment before it sleeps.
//!
//! Each has a bound: a peer that stops or takes long costs a thread of the same priority no more than the bound.

use crate::strategies::SharedMemoryWait;
use core::sync::atomic::{AtomicU32, Ordering};
use rtorb_os::byte_rings::ByteRings;
use rustix::io::Errno;
use rustix::thread::{sched_getcpu, sched_yield};

/// The wait strategy of a connection.
#[derive(Debug)]
pub(super) struct Lingering {
    strategy: SharedMemoryWait,
    /// With [`SharedMemoryWait::Adaptive`], the number of waits since lingering helped last.
    in_vain: AtomicU32,
}

/// How often a thread yields before it sleeps. Threads of its priority on its CPU run meanwhile.
const YIELDS_MAX: u32 = 50;

/// How often a thread checks the rings before it sleeps, with a pause of the CPU in between: some 50 us on current machines.
const LOOKS_MAX: u32 = 1000;

/// The number of waits in vain after which an adaptive thread sleeps at once for a while.
const IN_VAIN_MAX: u32 = 4;

/// The number of waits after which a resting adaptive thread lingers again.
const REST: u32 = 64;

impl Lingering {
    pub(super) const fn new(strategy: SharedMemoryWait) -> Self {
        Self {
            strategy,
            in_vain: AtomicU32::new(0),
        }
    }

    /// Returns true if a thread may wait without sleeping.
    #[inline]
    pub(super) fn lingers(&self) -> bool {
        self.strategy != SharedMemoryWait::Futex
    }

    /// Waits for a moment without sleeping. Returns true if `is_over` became true.
    #[inline]
    pub(super) fn linger(
        &self,
        rings: &ByteRings,
        is_over: impl Fn() -> Result<bool, Errno>,
    ) -> Result<bool, Errno> {
        match self.strategy {
            SharedMemoryWait::Futex => Ok(false),
            SharedMemoryWait::Yield => repeat(YIELDS_MAX, sched_yield, is_over),
            SharedMemoryWait::Spin => repeat(LOOKS_MAX, core::hint::spin_loop, is_over),
            SharedMemoryWait::Adaptive => self.adapt(rings, is_over),
        }
    }

    /// Spins if the peer runs on another CPU, and yields otherwise. Does neither if recent waits were in vain.
    fn adapt(
        &self,
        rings: &ByteRings,
        is_over: impl Fn() -> Result<bool, Errno>,
    ) -> Result<bool, Errno> {
        let cpu = sched_getcpu();
        rings.note_cpu(cpu);
        let in_vain = self.in_vain.load(Ordering::Relaxed);
        if in_vain >= IN_VAIN_MAX && !in_vain.is_multiple_of(REST) {
            self.in_vain
                .store(in_vain.wrapping_add(1), Ordering::Relaxed);
            return Ok(false);
        }
        let helped = match rings.peer_cpu() {
            Some(other) if other != cpu => repeat(LOOKS_MAX, core::hint::spin_loop, is_over),
            _ => repeat(YIELDS_MAX, sched_yield, is_over),
        }?;
        let in_vain = if helped { 0 } else { in_vain.wrapping_add(1) };
        self.in_vain.store(in_vain, Ordering::Relaxed);
        Ok(helped)
    }
}

#[inline]
fn repeat(
    times: u32,
    pause: impl Fn(),
    is_over: impl Fn() -> Result<bool, Errno>,
) -> Result<bool, Errno> {
    for _ in 0..times {
        pause();
        if is_over()? {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;
    use rtorb_os::byte_rings::{CAPACITY_MIN, Duplex};

    #[test]
    fn each_strategy_lingers_up_to_its_bound() {
        let (duplex, _file) = Duplex::create(CAPACITY_MIN).expect("the host has memory");
        let rings = duplex.rings;
        for (strategy, bound) in [
            (SharedMemoryWait::Futex, 0),
            (SharedMemoryWait::Yield, YIELDS_MAX),
            (SharedMemoryWait::Spin, LOOKS_MAX),
        ] {
            let looks = Cell::new(0);
            let never = || {
                looks.set(looks.get() + 1);
                Ok(false)
            };
            let lingering = Lingering::new(strategy);
            assert_eq!(lingering.linger(&rings, never), Ok(false));
            assert_eq!(looks.get(), bound, "{strategy}");
            let helped = lingering.linger(&rings, || Ok(true));
            assert_eq!(helped, Ok(bound > 0), "{strategy}");
        }
    }

    #[test]
    fn an_adaptive_thread_that_lingers_in_vain_sleeps_at_once_for_a_while() {
        let (duplex, _file) = Duplex::create(CAPACITY_MIN).expect("the host has memory");
        let rings = duplex.rings;
        let lingering = Lingering::new(SharedMemoryWait::Adaptive);
        let times = (0..200).filter(|_| {
            let has_looked = Cell::new(false);
            let never = || {
                has_looked.set(true);
                Ok(false)
            };
            assert_eq!(lingering.linger(&rings, never), Ok(false));
            has_looked.get()
        });
        // The first four, and one in 64 from then on.
        assert_eq!(times.count(), 4 + 200 / REST as usize);
        let helped = (0..REST).any(|_| lingering.linger(&rings, || Ok(true)) == Ok(true));
        assert!(helped, "it tries again");
        assert_eq!(lingering.linger(&rings, || Ok(true)), Ok(true));
    }
}
