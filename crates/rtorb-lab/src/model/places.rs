//! Which CPU of this host plays which processor of the system.

use std::collections::{BTreeMap, BTreeSet};

use rtorb_sched::model::System;

/// A CPU of a node: the node's place in the system, and the CPU's number.
pub(crate) type Processor = (usize, u32);

/// Every processor that something runs on, with its CPU of the host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Places {
    pub(super) of: BTreeMap<Processor, usize>,
}

impl Places {
    /// One CPU a processor, from the `measured` one downwards, and what is asked for before that.
    ///
    /// # Errors
    /// In words, what does not fit, and what to do.
    pub(super) fn of(
        system: &System,
        (allowed, measured): (&[usize], Option<usize>),
        (asked, share): (&BTreeMap<(String, u32), usize>, bool),
    ) -> Result<Self, String> {
        let mut of = asked_for(system, allowed, asked)?;
        let used = processors(system);
        of.retain(|processor, _| used.contains(processor));
        let taken: BTreeSet<usize> = of.values().copied().collect();
        let mut free = downwards(allowed, measured);
        free.retain(|cpu| !taken.contains(cpu));
        let mut free = free.into_iter();
        for processor in &used {
            if !of.contains_key(processor) {
                let cpu = free.next().ok_or_else(|| too_few(system, &used, allowed))?;
                of.insert(*processor, cpu);
            }
        }
        let places = Self { of };
        match places.shared().first() {
            Some(cpu) if !share => Err(format!(
                "CPU {cpu} would play several processors of {}: no bound holds then. Give each a CPU of its own, or ask for sharing if \
                 only the building is of interest",
                system.name
            )),
            _ => Ok(places),
        }
    }

    /// The CPUs of the host, each once.
    pub(super) fn cpus(&self) -> Vec<usize> {
        let cpus: BTreeSet<usize> = self.of.values().copied().collect();
        cpus.into_iter().collect()
    }

    /// Those that play more than one processor.
    pub(super) fn shared(&self) -> Vec<usize> {
        let plays = |cpu: &usize| self.of.values().filter(|other| *other == cpu).count();
        self.cpus()
            .into_iter()
            .filter(|cpu| plays(cpu) > 1)
            .collect()
    }
}

/// As `NODE/CPU`.
pub(super) fn name(system: &System, (node, cpu): Processor) -> String {
    format!("{}/{cpu}", system.nodes[node].name)
}

fn processors(system: &System) -> BTreeSet<Processor> {
    let components = system.components.iter().map(|one| (one.node, one.cpu));
    let channels = system.channels.iter().map(|one| (one.node, one.cpu));
    components.chain(channels).collect()
}

fn asked_for(
    system: &System,
    allowed: &[usize],
    asked: &BTreeMap<(String, u32), usize>,
) -> Result<BTreeMap<Processor, usize>, String> {
    let mut of = BTreeMap::new();
    for ((node, cpu), host_cpu) in asked {
        let mut nodes = system.nodes.iter();
        let found = nodes.position(|known| known.name == *node && *cpu < known.cpus);
        let found = found.ok_or_else(|| {
            let known: Vec<String> = processors(system)
                .into_iter()
                .map(|p| name(system, p))
                .collect();
            format!(
                "{} has no processor {node}/{cpu}; there are {}",
                system.name,
                known.join(", ")
            )
        })?;
        if !allowed.contains(host_cpu) {
            return Err(format!(
                "{node}/{cpu} cannot be CPU {host_cpu}: this process may use {allowed:?}"
            ));
        }
        of.insert((found, *cpu), *host_cpu);
    }
    Ok(of)
}

/// The measured one, those before it, then the rest from the last on.
fn downwards(allowed: &[usize], measured: Option<usize>) -> Vec<usize> {
    let mut sorted = allowed.to_vec();
    sorted.sort_unstable_by(|one, other| other.cmp(one));
    let at = sorted.iter().position(|cpu| Some(*cpu) == measured);
    sorted.rotate_left(at.unwrap_or(0));
    sorted
}

fn too_few(system: &System, used: &BTreeSet<Processor>, allowed: &[usize]) -> String {
    let names: Vec<String> = used.iter().map(|p| name(system, *p)).collect();
    format!(
        "{} runs on {} processors ({}), and this process may use {} CPUs: allow it more, put the components of the system on fewer \
         processors, or place several on one CPU and ask for sharing, which breaks the bounds",
        system.name,
        used.len(),
        names.join(", "),
        allowed.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tests::by_hand::example;

    fn placed(
        allowed: &[usize],
        asked: &[(&str, u32, usize)],
        share: bool,
    ) -> Result<Vec<usize>, String> {
        let asked = asked.iter();
        let asked = asked.map(|(node, cpu, host)| (((*node).to_owned(), *cpu), *host));
        let asked = asked.collect();
        let system = example("robot-arm.toml");
        let placed = Places::of(&system, (allowed, Some(3)), (&asked, share))?;
        Ok(placed.of.into_values().collect())
    }

    #[test]
    fn processors_go_from_the_measured_cpu_downwards() {
        assert_eq!(placed(&[0, 1, 2, 3, 4], &[], false), Ok(vec![3, 2]));
        assert_eq!(placed(&[0, 3], &[], false), Ok(vec![3, 0]));
        assert_eq!(
            placed(&[0, 1, 2, 3], &[("control", 0, 3)], false),
            Ok(vec![2, 3])
        );
    }

    #[test]
    fn what_does_not_fit_is_told() {
        let few = placed(&[3], &[], false).unwrap_err();
        assert!(
            few.contains("arm/0, control/0") && few.contains("sharing"),
            "{few}"
        );
        let both = [("arm", 0, 3), ("control", 0, 3)];
        let shared = placed(&[3], &both, false).unwrap_err();
        assert!(shared.contains("no bound holds"), "{shared}");
        assert_eq!(placed(&[3], &both, true), Ok(vec![3, 3]));
        let nowhere = placed(&[3], &[("leg", 0, 3)], false).unwrap_err();
        assert!(nowhere.contains("there are arm/0, control/0"), "{nowhere}");
        let refused = placed(&[3], &[("arm", 0, 9)], false).unwrap_err();
        assert!(refused.contains("may use [3]"), "{refused}");
    }
}
