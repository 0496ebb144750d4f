//! A platform: what each service of its operating system and its ORB costs, from the profile that was measured there.

mod blocking;
mod cost;
mod events;
mod kernel;
mod orb;
mod profile;

use std::path::Path;

pub use cost::Cost;
pub use events::EventCost;

use super::verdict::rounded_up;
use crate::toml_file::{FileError, read_text};
use events::Events;
use kernel::Kernel;
use orb::Orb;
use profile::Profile;

/// Which of the measured values a cost is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// The largest that was seen.
    Max,
    /// What 99 of 100 samples are at most.
    P99,
}

/// What the services of one node cost.
#[derive(Clone, Debug)]
pub struct Platform {
    profile: Option<Profile>,
    statistic: Statistic,
    kernel: Kernel,
    orb: Orb,
    events: Events,
}

impl Statistic {
    /// As `--costs` has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Max => "max",
            Self::P99 => "p99",
        }
    }
}

impl Platform {
    /// Reads a profile (docs/profile.md). Costs are its maxima, or its 99th percentiles where it was measured in a virtual machine:
    /// there a maximum holds what the hypervisor took.
    ///
    /// # Errors
    /// The file, the line where there is one, and why it is no profile that this program understands.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, FileError> {
        let path = path.as_ref();
        let text = read_text(path)?;
        Self::parse(&text).map_err(|(line, reason)| FileError {
            path: path.to_owned(),
            line,
            reason,
        })
    }

    /// The same from the text of a profile.
    ///
    /// # Errors
    /// The line where there is one, and the reason.
    pub fn parse(text: &str) -> Result<Self, (Option<usize>, String)> {
        let profile = Profile::parse(text)?;
        let statistic = match profile.is_virtual_machine() {
            true => Statistic::P99,
            false => Statistic::Max,
        };
        Ok(Self::of(profile, statistic))
    }

    fn of(profile: Profile, statistic: Statistic) -> Self {
        Self {
            kernel: Kernel::of(&profile, statistic),
            orb: Orb::of(&profile, statistic),
            events: Events::of(&profile, statistic),
            statistic,
            profile: Some(profile),
        }
    }

    /// One on which everything but the components' own code costs nothing; it says so.
    #[must_use]
    pub fn ideal() -> Self {
        Self {
            profile: None,
            statistic: Statistic::Max,
            kernel: Kernel::default(),
            orb: Orb::default(),
            events: Events::default(),
        }
    }

    /// The same with another statistic.
    #[must_use]
    pub fn with_statistic(self, statistic: Statistic) -> Self {
        match self.profile {
            Some(profile) => Self::of(profile, statistic),
            None => Self { statistic, ..self },
        }
    }

    /// Which of the measured values its costs are.
    #[must_use]
    pub const fn statistic(&self) -> Statistic {
        self.statistic
    }

    /// Whether it costs nothing, for want of a profile.
    #[must_use]
    pub const fn is_ideal(&self) -> bool {
        self.profile.is_none()
    }

    /// The longest that the hypervisor was seen to take the CPU away, in ns: in no bound. 0 where there is none.
    #[must_use]
    pub const fn hypervisor_ns(&self) -> u64 {
        self.kernel.hypervisor_ns
    }

    /// One context switch with so many tasks ready.
    #[must_use]
    pub fn context_switch(&self, ready_tasks: u64) -> Cost {
        self.kernel.switch.at(ready_tasks)
    }

    /// What one tick of the kernel's clock takes.
    #[must_use]
    pub const fn tick(&self) -> &Cost {
        &self.kernel.tick
    }

    /// From one tick to the next where the file does not say: in ns, at least 1.
    #[must_use]
    pub const fn tick_period(&self) -> &Cost {
        &self.kernel.tick_period
    }

    /// What the interrupt takes that releases a task.
    #[must_use]
    pub const fn release_interrupt(&self) -> &Cost {
        &self.kernel.release_interrupt
    }

    /// How much later than its time the most urgent task is released, beyond the interrupt and the switch that are told apart.
    #[must_use]
    pub const fn release_jitter(&self) -> &Cost {
        &self.kernel.release_jitter
    }

    /// How long the kernel keeps the CPU from a more urgent task.
    #[must_use]
    pub const fn blocking(&self) -> &Cost {
        &self.kernel.blocking
    }

    /// What asking for a mutex costs that another holds, beyond the critical section.
    #[must_use]
    pub const fn contended_lock(&self) -> &Cost {
        &self.kernel.contended_lock
    }

    /// From waking a task on another CPU until it runs there.
    #[must_use]
    pub const fn remote_wake(&self) -> &Cost {
        &self.kernel.remote_wake
    }

    /// A two-way call with so many octets of data, both sides, without the servant's work.
    #[must_use]
    pub fn call(&self, payload_octets: u32) -> Cost {
        self.orb.call.at(u64::from(payload_octets))
    }

    /// Sending a oneway with so many octets of data.
    #[must_use]
    pub fn send(&self, payload_octets: u32) -> Cost {
        self.orb.send(payload_octets)
    }

    /// An event with so many octets of data through a channel to so many consumers.
    #[must_use]
    pub fn event(&self, consumers: u64, payload_octets: u32) -> EventCost {
        self.events.at(&self.orb, consumers, payload_octets)
    }

    /// What holds for all of its costs: which statistic they are, what is weak in its profile, what no bound contains. Each cost
    /// says for itself what it assumes.
    #[must_use]
    pub fn assumptions(&self) -> Vec<String> {
        let Some(profile) = &self.profile else {
            return vec![
                "no profile was given, so the operating system and the ORB cost nothing: `rtorb lab run profile --out DIR` measures \
                 what they do, and the node's `profile` names it"
                    .to_owned(),
            ];
        };
        let mut found = vec![self.about_statistic()];
        if !profile.real_time {
            found.push(
                "the profile was not measured in real time, so its costs say what is usual and bound nothing: give the user \
                 real-time priorities and run `rtorb lab run profile` again"
                    .to_owned(),
            );
        }
        found.extend(profile.incomplete.iter().map(|gap| {
            format!(
                "the profile is incomplete: {}: {}; `rtorb lab run profile` measures all of it",
                gap.experiment, gap.why
            )
        }));
        if let Some(virtual_time) = &profile.virtual_time {
            found.push(format!(
                "the profile is of an emulated machine, where a nanosecond is {}: it leaves out {}, so this is no verdict on a \
                 machine; `rtorb lab run profile` on the machine itself replaces it",
                virtual_time.nanosecond_is,
                virtual_time.leaves_out.join(", ")
            ));
        }
        if profile.is_virtual_machine() {
            found.push(self.about_hypervisor(profile));
        }
        found
    }

    fn about_statistic(&self) -> String {
        let kernel = &self.kernel;
        let switch = self.context_switch(0);
        let call = self.call(0);
        let used = [
            &switch,
            &kernel.tick,
            &kernel.release_interrupt,
            &kernel.release_jitter,
            &kernel.blocking,
            &kernel.contended_lock,
            &kernel.remote_wake,
            &call,
        ];
        let samples = used.iter().map(|cost| cost.samples);
        let fewest = samples.filter(|samples| *samples > 0).min().unwrap_or(0);
        match self.statistic {
            Statistic::Max => format!(
                "costs are the largest that were measured, of {fewest} samples or more each: the worst that was seen, not the worst \
                 there is; `rtorb lab run profile --full` takes more samples"
            ),
            Statistic::P99 => format!(
                "costs are what 99 of 100 samples were at most, of {fewest} samples or more each; what comes rarely is reckoned by itself \
                 (ticks, timer interrupts, the kernel's sections). `--costs max` takes the largest that were measured"
            ),
        }
    }

    fn about_hypervisor(&self, profile: &Profile) -> String {
        let seen = match self.kernel.hypervisor_ns {
            0 => "it was not seen to".to_owned(),
            ns => format!("up to {} were seen", rounded_up(ns)),
        };
        format!(
            "the host is a virtual machine ({}), and its hypervisor may take the CPU at any time ({seen}): no bound contains that; only \
             a profile of bare metal does without",
            profile.host.virtualisation
        )
    }
}
