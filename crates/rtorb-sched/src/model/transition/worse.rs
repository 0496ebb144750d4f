//! A behaviour that is at least as demanding as an old and a new one.

use std::collections::BTreeMap;

use super::super::system::{
    ArrivalBurst, Behaviour, Call, Enforcement, Execution, Section, Trigger,
};
use super::{SystemMode, TransitionError, fixed};

/// Returns the behaviour of both modes, with the deadline, the execution and the enforcement of the new one: [`work`] has those of both.
///
/// # Errors
/// Its trigger would become one of another kind.
pub(super) fn worse(old: &Behaviour, new: &Behaviour) -> Result<Behaviour, TransitionError> {
    Ok(Behaviour {
        trigger: trigger(old, new)?,
        criticality: old.criticality.max(new.criticality),
        jitter_ns: old.jitter_ns.max(new.jitter_ns),
        sections: sections(&old.sections, &new.sections),
        calls: calls(&old.calls, &new.calls),
        ..new.clone()
    })
}

/// Returns the execution and the enforcement of both modes. A demotion bounds what others wait for only if it does with all that the
/// behaviour locks and waits for in either mode.
pub(super) fn work(
    old: &Behaviour,
    new: &Behaviour,
    is_bounded_by_demotion: bool,
) -> (Execution, Enforcement) {
    if old.enforcement == new.enforcement {
        let ns = old.execution.worst_ns().max(new.execution.worst_ns());
        return (Execution::Fixed { ns }, new.enforcement);
    }
    let modes = [old, new];
    let [old_ns, new_ns] = modes.map(|one| one.urgent_ns(is_bounded_by_demotion));
    let ns = old_ns.max(new_ns);
    let demotion = |one: &Behaviour| match one.enforcement {
        // The lesser budget of two would bound the jobs of the other mode too.
        Enforcement::Demote(budget) if !is_bounded_by_demotion => Some(budget),
        Enforcement::Count | Enforcement::Demote(_) | Enforcement::Stop(_) => None,
    };
    // Jobs of a mode that demotes may block others as demoted ones.
    let demotions = modes.into_iter().filter_map(demotion);
    let least = demotions.min_by_key(|budget| budget.bound(u64::MAX));
    let enforcement = least.map_or(Enforcement::Count, Enforcement::Demote);
    (Execution::Fixed { ns }, enforcement)
}

/// Returns the deadline of a behaviour: its own, or the least period of its roots.
pub(super) fn effective_deadline(mode: SystemMode<'_>, behaviour: usize) -> Option<u64> {
    let one = &mode.system.behaviours[behaviour];
    let period = |(root, _): &(String, Option<u64>)| {
        let root = mode.system.behaviour(root)?;
        mode.system.behaviours[root].trigger.period_ns()
    };
    let of_roots = || {
        let mut bounds = mode.report.behaviours.iter();
        let bound = bounds.find(|bound| bound.behaviour == one.name)?;
        bound.by_root.iter().filter_map(period).min()
    };
    one.deadline_ns.or_else(of_roots)
}

fn trigger(old: &Behaviour, new: &Behaviour) -> Result<Trigger, TransitionError> {
    match (old.trigger, new.trigger) {
        (Trigger::Called, Trigger::Called) => Ok(Trigger::Called),
        (
            Trigger::Periodic {
                period_ns,
                offset_ns,
            },
            Trigger::Periodic {
                period_ns: new_ns,
                offset_ns: new_offset_ns,
            },
        ) => Ok(Trigger::Periodic {
            period_ns: period_ns.min(new_ns),
            // Other arrivals have any distance from those of other behaviours.
            offset_ns: offset_ns.filter(|_| (period_ns, offset_ns) == (new_ns, new_offset_ns)),
        }),
        (
            Trigger::Sporadic { gap_ns, burst },
            Trigger::Sporadic {
                gap_ns: new_ns,
                burst: new_burst,
            },
        ) => {
            let gap_ns = gap_ns.min(new_ns);
            let both = burst.zip(new_burst).map(|(old, new)| ArrivalBurst {
                jobs: old.jobs.max(new.jobs),
                window_ns: old.window_ns.min(new.window_ns),
            });
            Ok(Trigger::Sporadic {
                gap_ns,
                burst: both
                    .filter(|both| gap_ns.saturating_mul(both.jobs.into()) <= both.window_ns),
            })
        }
        _ => Err(fixed(
            &format!("what releases {}", new.name),
            "jobs of both kinds would be there, and no period bounds them together",
        )),
    }
}

/// Returns as many sections of each resource as either has, each as long as the longer one.
fn sections(old: &[Section], new: &[Section]) -> Vec<Section> {
    let mut lengths: BTreeMap<usize, [Vec<u64>; 2]> = BTreeMap::new();
    for (mode, sections) in [old, new].into_iter().enumerate() {
        for section in sections {
            let known = lengths.entry(section.resource).or_default();
            known[mode].push(section.length_ns);
        }
    }
    let mut both = Vec::new();
    for (resource, mut modes) in lengths {
        for lengths in &mut modes {
            lengths.sort_unstable_by(|one, other| other.cmp(one));
        }
        let [old, new] = &modes;
        let of = |lengths: &[u64], at: usize| lengths.get(at).copied().unwrap_or(0);
        both.extend((0..old.len().max(new.len())).map(|at| Section {
            resource,
            length_ns: of(old, at).max(of(new, at)),
        }));
    }
    both
}

/// Returns the calls of both: those of the old one that the new one has too, with the larger payload and count, and the others.
fn calls(old: &[Call], new: &[Call]) -> Vec<Call> {
    let mut both = new.to_vec();
    let mut is_taken = vec![false; new.len()];
    for call in old {
        let same =
            |&at: &usize| !is_taken[at] && (&new[at].to, new[at].way) == (&call.to, call.way);
        match (0..new.len()).find(same) {
            Some(at) => {
                is_taken[at] = true;
                let known = &mut both[at];
                known.payload_bytes = known.payload_bytes.max(call.payload_bytes);
                known.count = known.count.max(call.count);
                known.lingering_ns = known.lingering_ns.max(call.lingering_ns);
            }
            None => both.push(call.clone()),
        }
    }
    both
}
