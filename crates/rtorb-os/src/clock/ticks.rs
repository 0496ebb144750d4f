//! The cheapest clock of the host, for measuring where a system call, or sixty instructions, would be too much.

use super::monotonic_ns;
use std::fs;

/// A clock whose ticks are as long on all CPUs of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TickClock {
    /// CLOCK_MONOTONIC: a tick is a nanosecond.
    Monotonic,
    /// The time stamp counter of x86-64, which the kernel's own clock counts too.
    TimeStampCounter,
}

/// A moment, by both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Of the [`TickClock`].
    pub ticks: u64,
    /// Of CLOCK_MONOTONIC.
    pub ns: u64,
}

impl TickClock {
    /// Returns the cheapest clock that the kernel trusts: the time stamp counter if it is the kernel's clock source.
    pub fn of_host() -> Self {
        let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        let is_counter = fs::read_to_string(path).is_ok_and(|source| source.trim() == "tsc");
        if is_counter && has_counter() {
            Self::TimeStampCounter
        } else {
            Self::Monotonic
        }
    }

    /// Returns the ticks now.
    #[inline(always)]
    pub fn now(self) -> u64 {
        self.now_on_cpu().0
    }

    /// Returns the ticks now, and the CPU that the calling thread runs on.
    #[inline(always)]
    pub fn now_on_cpu(self) -> (u64, u16) {
        #[cfg(all(target_arch = "x86_64", not(simulation), not(loom)))]
        if self == Self::TimeStampCounter {
            let mut cpu = 0;
            // SAFETY: `of_host` has found that the processor has the instruction. It writes `cpu` only.
            let ticks = unsafe { core::arch::x86_64::__rdtscp(&raw mut cpu) };
            // Linux keeps the node above the twelve bits of the CPU.
            return (ticks, (cpu & 0xfff) as u16);
        }
        by_system()
    }

    /// Returns this moment by both clocks.
    pub fn moment(self) -> Moment {
        // The thread may be preempted between the two: the shortest of some tries is the exact one.
        let tries = (0..8).map(|_| {
            let before = self.now();
            let ns = monotonic_ns();
            let after = self.now();
            let length = after.saturating_sub(before);
            let ticks = before + length / 2;
            (length, Moment { ticks, ns })
        });
        let best = tries.min_by_key(|(length, _)| *length);
        best.map_or(Moment { ticks: 0, ns: 0 }, |(_, moment)| moment)
    }
}

/// Returns CLOCK_MONOTONIC, and the CPU that the calling thread runs on.
#[cold]
#[inline(never)]
fn by_system() -> (u64, u16) {
    let cpu = rustix::thread::sched_getcpu();
    (monotonic_ns(), u16::try_from(cpu).unwrap_or(u16::MAX))
}

/// Returns true if the processor has the counter, and the instruction that also tells the CPU.
fn has_counter() -> bool {
    #[cfg(all(target_arch = "x86_64", not(simulation), not(loom)))]
    {
        const EXTENDED: u32 = 0x8000_0001;
        const RDTSCP: u32 = 1 << 27;
        let most = core::arch::x86_64::__cpuid(0x8000_0000).eax;
        return most >= EXTENDED && core::arch::x86_64::__cpuid(EXTENDED).edx & RDTSCP != 0;
    }
    #[allow(unreachable_code, reason = "other processors have none")]
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_grow_with_the_time_and_tell_a_cpu_of_the_host() {
        for clock in [TickClock::of_host(), TickClock::Monotonic] {
            let first = clock.moment();
            super::super::sleep_until(first.ns + 2_000_000);
            let second = clock.moment();
            assert!(second.ns >= first.ns + 2_000_000, "{clock:?}");
            assert!(second.ticks > first.ticks, "{clock:?}");
            let (_, cpu) = clock.now_on_cpu();
            let cpus = crate::sched::current_affinity();
            assert!(cpus.contains(&usize::from(cpu)), "{clock:?}: {cpu}");
        }
    }
}
