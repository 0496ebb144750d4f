//! A platform: the cost of each service of its operating system and its ORB, from a measured profile.

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
use crate::text_file::{FileErrors, Mistake, read_text};
use events::EventCosts;
use kernel::KernelCosts;
use orb::OrbCosts;
use profile::Profile;

/// The statistic that a cost is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// The largest measured value.
    Max,
    /// The 99th percentile.
    P99,
}

/// The costs of one node's services.
#[derive(Clone, Debug)]
pub struct Platform {
    profile: Option<Profile>,
    statistic: Statistic,
    kernel: KernelCosts,
    orb: OrbCosts,
    events: EventCosts,
}

impl Statistic {
    /// Returns the name that `--costs` takes.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Max => "max",
            Self::P99 => "p99",
        }
    }
}

impl Platform {
    /// Reads a profile (docs/reference/profile.md). Costs are its maxima, or its 99th percentiles if it was measured in a virtual machine:
    /// there a maximum contains what the hypervisor took.
    ///
    /// # Errors
    /// [`FileErrors`] with all mistakes, and how a profile is made.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, FileErrors> {
        let path = path.as_ref();
        let text = read_text(path)?;
        Self::parse(&text)
            .map_err(|mistakes| FileErrors::new(path, text, mistakes).with_remedy(profile::MADE_BY))
    }

    /// Parses the text of a profile.
    ///
    /// # Errors
    /// All mistakes; at least one.
    pub fn parse(text: &str) -> Result<Self, Vec<Mistake>> {
        let profile = Profile::parse(text)?;
        let statistic = if profile.is_virtual_machine() {
            Statistic::P99
        } else {
            Statistic::Max
        };
        Ok(Self::of(profile, statistic))
    }

    fn of(profile: Profile, statistic: Statistic) -> Self {
        Self {
            kernel: KernelCosts::of(&profile, statistic),
            orb: OrbCosts::of(&profile, statistic),
            events: EventCosts::of(&profile, statistic),
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
            kernel: KernelCosts::default(),
            orb: OrbCosts::default(),
            events: EventCosts::default(),
        }
    }

    /// Returns the platform with another statistic.
    #[must_use]
    pub fn with_statistic(self, statistic: Statistic) -> Self {
        match self.profile {
            Some(profile) => Self::of(profile, statistic),
            None => Self { statistic, ..self },
        }
    }

    /// Returns the statistic of its costs.
    #[must_use]
    pub const fn statistic(&self) -> Statistic {
        self.statistic
    }

    /// Returns whether it has no profile, so that it costs nothing.
    #[must_use]
    pub const fn is_ideal(&self) -> bool {
        self.profile.is_none()
    }

    /// Returns the longest time for which the hypervisor was seen to take the CPU, in ns; in no bound. 0 if there is no
    /// hypervisor.
    #[must_use]
    pub const fn hypervisor_ns(&self) -> u64 {
        self.kernel.hypervisor_ns
    }

    /// Returns the cost of one context switch with this number of ready tasks.
    #[must_use]
    pub fn context_switch(&self, ready_tasks: u64) -> Cost {
        self.kernel.switch.at(ready_tasks)
    }

    /// Returns the cost of one tick of the kernel's clock.
    #[must_use]
    pub const fn tick(&self) -> &Cost {
        &self.kernel.tick
    }

    /// Returns the tick's period if the file does not give one: in ns, at least 1.
    #[must_use]
    pub const fn tick_period(&self) -> &Cost {
        &self.kernel.tick_period
    }

    /// Returns the cost of the interrupt that releases a task.
    #[must_use]
    pub const fn release_interrupt(&self) -> &Cost {
        &self.kernel.release_interrupt
    }

    /// Returns the release jitter of the most urgent task, without the interrupt and the switch, which are separate costs.
    #[must_use]
    pub const fn release_jitter(&self) -> &Cost {
        &self.kernel.release_jitter
    }

    /// Returns the longest time for which the kernel keeps the CPU from a more urgent task.
    #[must_use]
    pub const fn blocking(&self) -> &Cost {
        &self.kernel.blocking
    }

    /// Returns the cost of locking a mutex that another thread holds, without the critical section.
    #[must_use]
    pub const fn contended_lock(&self) -> &Cost {
        &self.kernel.contended_lock
    }

    /// Returns the time from waking a task on another CPU until it runs there.
    #[must_use]
    pub const fn remote_wake(&self) -> &Cost {
        &self.kernel.remote_wake
    }

    /// Returns the cost of a two-way call with this payload, on both sides, without the servant's work.
    #[must_use]
    pub fn call(&self, payload_bytes: u32) -> Cost {
        self.orb.call.at(u64::from(payload_bytes))
    }

    /// Returns the cost of sending a oneway with this payload.
    #[must_use]
    pub fn send(&self, payload_bytes: u32) -> Cost {
        self.orb.send(payload_bytes)
    }

    /// Returns the cost of an event with this payload through a channel to this number of consumers.
    #[must_use]
    pub fn event(&self, consumers: u64, payload_bytes: u32) -> EventCost {
        self.events.at(&self.orb, consumers, payload_bytes)
    }

    /// Returns the assumptions of all its costs: their statistic, weaknesses of the profile, and what no bound contains. Each
    /// cost states its own assumptions.
    #[must_use]
    pub fn assumptions(&self) -> Vec<String> {
        let Some(profile) = &self.profile else {
            return vec![
                "there is no profile, so the operating system and the ORB cost nothing: `rtorb lab run profile --out DIR` measures \
                 their costs, and the node's `profile` names the result"
                    .to_owned(),
            ];
        };
        let mut found = vec![self.about_statistic()];
        if !profile.real_time {
            found.push(
                "the profile was not measured in real time, so its costs are typical values and bound nothing: give the user \
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
                "the profile is of an emulated machine, where a nanosecond is {}: it leaves out {}, so this is no verdict on a real \
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
                "costs are the largest measured values, of at least {fewest} samples each. A worse value may exist; \
                 `rtorb lab run profile --full` takes more samples"
            ),
            Statistic::P99 => format!(
                "costs are 99th percentiles, of at least {fewest} samples each. Rare costs are separate terms \
                 (ticks, timer interrupts, the kernel's sections). `--costs max` takes the largest measured values"
            ),
        }
    }

    fn about_hypervisor(&self, profile: &Profile) -> String {
        let seen = match self.kernel.hypervisor_ns {
            0 => "none was seen".to_owned(),
            ns => format!("up to {} were seen", rounded_up(ns)),
        };
        format!(
            "the host is a virtual machine ({}), and its hypervisor may take the CPU at any time ({seen}): no bound contains that, and only \
             a profile of bare metal avoids it",
            profile.host.virtualisation
        )
    }
}
