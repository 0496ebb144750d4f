//! How noisy a CPU is before a run: what takes it from a thread that runs at a high priority for most of a second.

use rtorb_host::description::stolen_ms;
use rtorb_os::clock::monotonic_ns;
use rtorb_os::sched::SchedPolicy;
use rtorb_os::thread::{ThreadConfig, spawn};
use rtorb_sched::model::rounded;

use super::component::work::STEP_NS_MAX;
use crate::error::LabError;
use crate::experiment::Context;
use crate::processes::gaps::Gaps;

/// What took the CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Noise {
    /// The CPU; `None` if the host does not pin threads.
    pub cpu: Option<usize>,
    /// How long it was observed, in ns.
    pub observed_ns: u64,
    /// The number of interruptions of at least 10 us.
    pub interruptions: usize,
    /// How long they were in all, in ns.
    pub interrupted_ns: u64,
    /// The longest of them, in ns.
    pub longest_ns: u64,
    /// What the hypervisor took, as the kernel counts it, in ms; `None` if the kernel does not say.
    pub stolen_ms: Option<u64>,
}

impl Noise {
    /// Observes the measured CPU, with SCHED_FIFO if the host grants it.
    ///
    /// # Errors
    /// That the thread could not be started.
    pub fn measure(context: &Context) -> Result<Self, LabError> {
        let cpu = context.launcher.placement.cpu;
        let config = ThreadConfig {
            policy: context
                .host
                .fifo_granted
                .then_some(SchedPolicy::Fifo(PRIORITY)),
            affinity: cpu.into_iter().collect(),
            stack_bytes: None,
        };
        let before = stolen_ms(cpu);
        let observer = spawn("noise", &config, || {
            let mut gaps = Gaps::with_room(STEP_NS_MAX, ROOM);
            let begin_ns = gaps.begin();
            gaps.spin_until(begin_ns + OBSERVED_NS);
            let observed_ns = monotonic_ns() - begin_ns;
            let lengths = gaps.kept().iter().map(|gap| gap.length_ns);
            let long: Vec<u64> = lengths.filter(|ns| *ns >= INTERRUPTION_NS).collect();
            (observed_ns, long)
        });
        let failed = |what: String| LabError::process("the observer of noise", what);
        let observer = observer.map_err(|refused| failed(refused.to_string()))?;
        let observed = observer.join().ok().flatten();
        let (observed_ns, long) = observed.ok_or_else(|| failed("it ended early".to_owned()))?;
        Ok(Self {
            cpu,
            observed_ns,
            interruptions: long.len(),
            interrupted_ns: long.iter().sum(),
            longest_ns: long.iter().copied().max().unwrap_or(0),
            stolen_ms: stolen_ms(cpu)
                .zip(before)
                .map(|(after, before)| after.saturating_sub(before)),
        })
    }
}

impl core::fmt::Display for Noise {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let of = self
            .cpu
            .map_or_else(|| "a CPU".to_owned(), |cpu| format!("CPU {cpu}"));
        let time = |ns: u64| rounded(ns as f64);
        write!(f, "in {} ", time(self.observed_ns))?;
        match self.interruptions {
            0 => write!(f, "nothing took {of} for 10us or longer")?,
            count => write!(
                f,
                "{count} interruptions took {of} for {} in all, the longest for {}",
                time(self.interrupted_ns),
                time(self.longest_ns)
            )?,
        }
        match self.stolen_ms {
            Some(ms @ 1..) => write!(f, "; the hypervisor took {ms}ms"),
            _ => Ok(()),
        }
    }
}

/// Most of a second. The kernel permits SCHED_FIFO for 0.95 of each second by default, and takes the CPU beyond that.
const OBSERVED_NS: u64 = 900_000_000;
/// An ordinary tick is shorter.
const INTERRUPTION_NS: u64 = 10_000;
/// Above the threads of systems by default.
const PRIORITY: u8 = 90;
/// Gaps at which the observation still finds the longest.
const ROOM: usize = 100_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_told_in_a_line() {
        let quiet = Noise {
            cpu: Some(1),
            observed_ns: 900_000_000,
            stolen_ms: Some(0),
            ..Noise::default()
        };
        assert_eq!(
            quiet.to_string(),
            "in 900ms nothing took CPU 1 for 10us or longer"
        );
        let noisy = Noise {
            interruptions: 12,
            interrupted_ns: 3_400_000,
            longest_ns: 1_500_000,
            stolen_ms: Some(10),
            ..quiet
        };
        assert_eq!(
            noisy.to_string(),
            "in 900ms 12 interruptions took CPU 1 for 3.4ms in all, the longest for 1.5ms; the hypervisor took 10ms"
        );
    }
}
