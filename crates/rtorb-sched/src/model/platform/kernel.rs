//! The costs of the operating system.

use super::cost::{Cost, Curve, middle};
use super::profile::{Profile, Service, whole_ns};
use super::{Statistic, blocking};

/// The services of the operating system.
#[derive(Clone, Debug, Default)]
pub(super) struct KernelCosts {
    pub(super) switch: Curve,
    pub(super) tick: Cost,
    pub(super) tick_period: Cost,
    pub(super) release_interrupt: Cost,
    pub(super) release_jitter: Cost,
    pub(super) blocking: Cost,
    pub(super) contended_lock: Cost,
    pub(super) remote_wake: Cost,
    pub(super) hypervisor_ns: u64,
}

const PROFILE: &str = "rtorb lab run profile";

impl KernelCosts {
    pub(super) fn of(profile: &Profile, statistic: Statistic) -> Self {
        let switch = switch(profile, statistic);
        let tick = tick(profile, statistic);
        let release_interrupt = release_interrupt(profile, statistic, &tick);
        let apart_ns = release_interrupt.ns.saturating_add(switch.at(0).ns);
        Self {
            release_jitter: release_jitter(profile, statistic, apart_ns),
            tick_period: tick_period(profile),
            blocking: blocking::of(profile, statistic),
            contended_lock: contended_lock(profile, statistic),
            remote_wake: remote_wake(profile, statistic),
            hypervisor_ns: hypervisor_ns(profile),
            switch,
            tick,
            release_interrupt,
        }
    }
}

/// Returns the context switch by the number of ready tasks, the worst of the resolutions (P3 section 4.2, Figures 14 to 16).
fn switch(profile: &Profile, statistic: Statistic) -> Curve {
    let queues = profile.all("scheduler", "ready_queue_switch");
    let by_length = queues.filter_map(|service| {
        let length = service.number("ready_tasks")?;
        Some((length, service.ns(statistic), service))
    });
    Curve::through(by_length, statistic, "ready tasks").unwrap_or_else(|| {
        let what = "a context switch by the number of ready tasks";
        let by = "rtorb lab run os/ready-queue";
        let plain = Cost::worst(profile.all("scheduler", "context_switch"), statistic);
        Curve::flat(match plain {
            Some(cost) => cost.instead_of(what, by),
            None => Cost::unknown(what, by),
        })
    })
}

fn tick(profile: &Profile, statistic: Statistic) -> Cost {
    if let Some(cost) = Cost::worst(profile.all("kernel", "tick"), statistic) {
        return cost;
    }
    let what = "the cost of a kernel tick";
    if let Some(cost) = Cost::worst(profile.all("kernel", "interruption"), statistic) {
        return cost.instead_of(what, PROFILE);
    }
    // The program's own timer: at a fine resolution the many ticks outweigh other delays.
    let signals = |service: &&Service| service.says("tick") == Some("signal");
    let ticks = profile.all("clock", "tick_from_medians").filter(signals);
    let finest = ticks.min_by_key(|service| service.number("resolution_us").unwrap_or(u64::MAX));
    match finest {
        Some(service) => Cost::of(service, statistic).instead_of(what, PROFILE),
        None => Cost::unknown(what, PROFILE),
    }
}

fn tick_period(profile: &Profile) -> Cost {
    match profile.tick_period_ns {
        Some(ns) if ns > 0 => Cost {
            ns,
            samples: 1,
            source: "tick_period_ns of the profile".to_owned(),
            assumption: None,
        },
        _ => Cost {
            ns: FASTEST_TICK_NS,
            samples: 0,
            source: "the shortest usual period of a kernel".to_owned(),
            assumption: Some(format!(
                "the profile has no period of the kernel's tick: 1ms is used, the shortest in use (CONFIG_HZ=1000). The \
                 node's `tick`, or a new profile of `{PROFILE}`, supplies it"
            )),
        },
    }
}

/// Returns the cost of the interrupt that ends a task's sleep; a tick has the same timer.
fn release_interrupt(profile: &Profile, statistic: Statistic, tick: &Cost) -> Cost {
    if let Some(cost) = Cost::worst(profile.all("timer", "release_interrupt"), statistic) {
        return cost;
    }
    let what = "the interrupt of a release";
    match tick.samples {
        0 => Cost::unknown(what, PROFILE),
        _ => tick.clone().instead_of(what, PROFILE),
    }
}

/// Returns the release jitter of the most urgent task: the time from its release to its first instruction, minus its interrupt
/// and the switch, which are separate terms. Subtracting the whole smallest lateness would give the largest minus the smallest;
/// but the part of the smallest that is neither interrupt nor switch occurs in every release.
fn release_jitter(profile: &Profile, statistic: Statistic, apart_ns: u64) -> Cost {
    let highest = |service: &&Service| service.says("priority") == Some("highest");
    let lateness: Vec<&Service> = profile
        .all("timer", "release_lateness")
        .chain(profile.all("timer", "release_lateness_alone"))
        .filter(highest)
        .collect();
    let what = "the lateness of releases at the highest priority";
    let Some(worst) = Cost::worst(lateness.iter().copied(), statistic) else {
        let by = "rtorb lab run os/interval-jitter";
        let woken = profile.all("timer", "wakeup");
        let least = woken.clone().map(|service| whole_ns(service.min)).min();
        return match (Cost::worst(woken, statistic), least) {
            (Some(cost), Some(least_ns)) => {
                beyond(cost, least_ns.min(apart_ns)).instead_of(what, by)
            }
            _ => Cost::unknown(what, by),
        };
    };
    let least = lateness.iter().map(|service| whole_ns(service.min)).min();
    let least_ns = least.unwrap_or(0).min(apart_ns);
    match statistic {
        Statistic::Max => beyond(worst, least_ns),
        Statistic::P99 => {
            // Two samples of a few hundred that the hypervisor delayed determine the 99th percentile; the median configuration
            // has none.
            let usual = middle(lateness.iter().map(|service| service.p99).collect());
            let cost = Cost {
                ns: usual,
                samples: lateness.iter().map(|service| service.count).sum(),
                source: format!(
                    "the median p99 of timer release_lateness at the highest priority in {} configurations",
                    lateness.len()
                ),
                assumption: None,
            };
            beyond(cost, least_ns)
        }
    }
}

fn beyond(cost: Cost, ns: u64) -> Cost {
    Cost {
        ns: cost.ns.saturating_sub(ns),
        source: format!(
            "{}, minus {ns}ns of the interrupt and the switch",
            cost.source
        ),
        ..cost
    }
}

fn contended_lock(profile: &Profile, statistic: Statistic) -> Cost {
    if let Some(cost) = Cost::worst(profile.all("mutex", "contended_lock"), statistic) {
        return cost;
    }
    let what = "the lock of a mutex that another thread holds";
    let by = "rtorb lab run os/services";
    let inherits = |service: &&Service| service.says("mutex") == Some("inheritance");
    match Cost::worst(
        profile.all("mutex", "hand_over").filter(inherits),
        statistic,
    ) {
        Some(cost) => cost.instead_of(what, by),
        None => Cost::unknown(what, by),
    }
}

/// Returns the wake-up of another CPU: the worse of a sleeping one and an awake one.
fn remote_wake(profile: &Profile, statistic: Statistic) -> Cost {
    let elsewhere = |service: &&Service| service.says("cpu") == Some("other");
    let here = |service: &&Service| service.says("cpu").is_none();
    let wakes = profile.all("scheduler", "wake");
    if let Some(cost) = Cost::worst(wakes.clone().filter(elsewhere), statistic) {
        return cost;
    }
    let what = "the wake-up of another CPU";
    let tcp = |service: &&Service| service.says("transport") == Some("tcp");
    let trips = profile.all("transport", "round_trip").filter(tcp);
    if let Some(mut trip) = Cost::worst(trips.clone().filter(elsewhere), statistic) {
        let near = trips
            .filter(here)
            .map(|service| whole_ns(service.min))
            .min();
        trip.ns = trip.ns.saturating_sub(near.unwrap_or(0)).div_ceil(2);
        trip.source = format!("half of the difference to one CPU: {}", trip.source);
        return trip.instead_of(what, PROFILE);
    }
    match Cost::worst(wakes.filter(here), statistic) {
        Some(cost) => cost.instead_of(what, PROFILE),
        None => Cost::unknown(what, PROFILE),
    }
}

/// Returns the largest theft, or else the largest excess of a release or wake-up over its 99th percentile.
fn hypervisor_ns(profile: &Profile) -> u64 {
    if !profile.is_virtual_machine() {
        return 0;
    }
    let thefts = profile.all("hypervisor", "theft");
    if let Some(longest) = thefts.map(|service| whole_ns(service.max)).max() {
        return longest;
    }
    let watched = ["wakeup", "release_lateness", "release_lateness_alone"];
    let excess = watched
        .iter()
        .flat_map(|service| profile.all("timer", service))
        .map(|service| whole_ns(service.max - service.p99));
    excess.max().unwrap_or(0)
}

const FASTEST_TICK_NS: u64 = 1_000_000;
