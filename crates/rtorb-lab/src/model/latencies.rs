//! The data ages and reaction times of cause-effect chains, from the jobs that a run recorded.
//!
//! No register is there while the system runs. What one would have held follows from the times: it is read when the own code of a
//! stage's first job begins, and written when the stage's last job is done (implicit communication).

use std::collections::HashMap;

use rtorb_results::judgement::{Observed, ObservedChain, ObservedLatency, ObservedStanding};
use rtorb_sched::model::{Communication, LatencyBound, System, Trigger};

use super::judging::Ran;
use super::records::Job;

/// Returns what was observed of every chain with implicit communication. `jobs` are those of each place of the tree.
pub(super) fn observed(
    ran: Ran<'_>,
    jobs: &[Vec<Job>],
    behaviours: &[Observed],
) -> Vec<ObservedChain> {
    let chains = ran.system.cause_effect_chains.iter();
    let bounds = chains.zip(&ran.checked.cause_effect_chains);
    let implicit = bounds.filter(|(chain, _)| chain.communication == Communication::Implicit);
    let observed = implicit.map(|(chain, bound)| {
        let stages = chain
            .stages
            .iter()
            .map(|stage| StageJobs::of(ran, jobs, stage));
        let first = ran.system.behaviours[chain.stages[0][0]].trigger;
        let seen = seen(
            &stages.collect::<Vec<_>>(),
            matches!(first, Trigger::Sporadic { .. }),
        );
        let host = worst_standing(ran.system, &chain.stages, behaviours);
        ObservedChain {
            chain: chain.name.clone(),
            data_age: latency(&seen.data_ages_ns, &bound.data_age, host),
            reaction_time: latency(&seen.reaction_times_ns, &bound.reaction_time, host),
        }
    });
    observed.collect()
}

fn latency(all_ns: &[u64], bound: &LatencyBound, host: ObservedStanding) -> ObservedLatency {
    let worst_ns = all_ns.iter().copied().max();
    ObservedLatency {
        bound_ns: bound.bound_ns,
        limit_ns: bound.limit_ns,
        count: all_ns.len() as u64,
        worst_ns,
        standing: match (worst_ns, bound.bound_ns) {
            (None, _) => ObservedStanding::Unseen,
            (_, None) => ObservedStanding::Unbounded,
            (Some(worst_ns), Some(bound_ns)) if worst_ns <= bound_ns => ObservedStanding::Within,
            _ => host,
        },
    }
}

/// Returns what a latency above its bound means: responses of the chain's behaviours were above their bounds, or jobs were skipped, because the
/// host took the CPU; or nothing explains it.
fn worst_standing(
    system: &System,
    stages: &[Vec<usize>],
    behaviours: &[Observed],
) -> ObservedStanding {
    let is_of_chain = |one: &&Observed| {
        let mut all = stages.iter().flatten();
        all.any(|&behaviour| system.behaviours[behaviour].name == one.behaviour)
    };
    let is_held_up =
        |one: &Observed| one.standing == ObservedStanding::ExplainedByTheHost || one.skipped > 0;
    if behaviours.iter().filter(is_of_chain).any(is_held_up) {
        ObservedStanding::ExplainedByTheHost
    } else {
        ObservedStanding::Unexplained
    }
}

/// The jobs of a stage.
#[derive(Clone, Debug, Default)]
struct StageJobs {
    /// The arrival, the read and the number of each job of the first behaviour, in the order of reads.
    reads: Vec<(u64, u64, u32)>,
    /// The moment of each write, and the number of the first behaviour's job, in order.
    writes: Vec<(u64, u32)>,
}

impl StageJobs {
    fn of(ran: Ran<'_>, jobs: &[Vec<Job>], stage: &[usize]) -> Self {
        let tree = &ran.plan.tree;
        let along = |way: &[usize]| {
            let places = (0..tree.places.len()).filter(|&place| tree.is_way(place, way));
            places.flat_map(|place| &jobs[place]).collect::<Vec<_>>()
        };
        let read = |job: &Job| (job.release_ns, job.begin_ns, job.number);
        let mut reads: Vec<_> = along(&stage[..1]).into_iter().map(read).collect();
        reads.sort_unstable_by_key(|&(_, begin_ns, _)| begin_ns);
        let write = |job: &Job| (job.end_ns, job.number);
        let mut writes: Vec<_> = along(stage).into_iter().map(write).collect();
        writes.sort_unstable();
        Self { reads, writes }
    }
}

/// The data ages and the reaction times of a chain.
#[derive(Debug, Default, PartialEq, Eq)]
struct ChainTimes {
    data_ages_ns: Vec<u64>,
    reaction_times_ns: Vec<u64>,
}

/// Follows the data through the registers. If the cause releases the first stage, a reaction counts from its arrival.
fn seen(stages: &[StageJobs], cause_releases_first: bool) -> ChainTimes {
    let Some(first) = stages.first() else {
        return ChainTimes::default();
    };
    // The writes of the register before: when, and when its input was read.
    let mut register: Option<Vec<(u64, u64)>> = None;
    for stage in stages {
        let value = |at_ns: u64| match &register {
            None => Some(at_ns),
            Some(register) => {
                let written = register.partition_point(|&(write_ns, _)| write_ns <= at_ns);
                Some(register[written.checked_sub(1)?].1)
            }
        };
        let reads = stage.reads.iter();
        let read: HashMap<u32, u64> = reads
            .filter_map(|&(_, begin_ns, number)| Some((number, value(begin_ns)?)))
            .collect();
        let writes = stage.writes.iter();
        let writes = writes.filter_map(|(end_ns, number)| Some((*end_ns, *read.get(number)?)));
        register = Some(writes.collect());
    }
    let outputs = register.unwrap_or_default();
    let ages = outputs
        .iter()
        .map(|(at_ns, read_ns)| at_ns.saturating_sub(*read_ns));
    let causes: Vec<(u64, u64)> = if cause_releases_first {
        first
            .reads
            .iter()
            .map(|&(arrival_ns, begin_ns, _)| (arrival_ns, begin_ns))
            .collect()
    } else {
        let pairs = first.reads.windows(2);
        pairs.map(|pair| (pair[0].1, pair[1].1)).collect()
    };
    let mut left = outputs.iter().peekable();
    let reactions = causes.into_iter().map_while(|(cause_ns, read_ns)| {
        while left.next_if(|(_, of_ns)| *of_ns < read_ns).is_some() {}
        left.peek().map(|(at_ns, _)| at_ns.saturating_sub(cause_ns))
    });
    ChainTimes {
        data_ages_ns: ages.collect(),
        reaction_times_ns: reactions.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::places::Places;
    use crate::model::plan::Plan;
    use crate::model::tests::by_hand;

    const CHAIN: &str = r#"
name = "chain"
[[node]]
name = "here"
[[component]]
name = "only"
  [[component.behaviour]]
  name = "read"
  period = "10ms"
  execution = "1ms"
  priority = 40
  [[component.behaviour]]
  name = "act"
  period = "15ms"
  execution = "2ms"
  priority = 30
[[cause_effect_chain]]
name = "data"
through = ["only.read", "only.act"]
"#;

    /// Six jobs of a behaviour. One arrives in each period, reads when it arrives, and writes `response_ns` later.
    fn jobs(place: u32, period_ns: u64, response_ns: u64) -> Vec<Job> {
        let job = |number: u32| {
            let release_ns = u64::from(number) * period_ns;
            Job {
                place,
                number,
                release_ns,
                begin_ns: release_ns,
                own_end_ns: release_ns + response_ns,
                end_ns: release_ns + response_ns,
            }
        };
        (0..6).map(job).collect()
    }

    fn observed_with(behaviours: &[Observed], response_ns: u64) -> ObservedChain {
        let system = by_hand::system(CHAIN);
        let options = rtorb_sched::model::CheckOptions::default();
        let platforms = [rtorb_sched::model::Platform::ideal()];
        let checked = rtorb_sched::model::check(&system, &platforms, &options).unwrap();
        let plan = Plan::of(&system, &checked, (1_000_000_000, 1)).unwrap();
        let places = Places {
            of: [((0, 0), 1)].into(),
        };
        let ran = Ran {
            system: &system,
            plan: &plan,
            checked: &checked,
            places: &places,
        };
        let all = [
            jobs(0, 10_000_000, 1_000_000),
            jobs(1, 15_000_000, response_ns),
        ];
        observed(ran, &all, behaviours).remove(0)
    }

    /// By hand, in ms: read writes at 1, 11, 21, 31, 41, 51; act reads at 0 (nothing), 15 (of 10), 30 (of 20), 45 (of 40), 60 (of 50), 75 (of 50),
    /// and writes 3 later. Ages: 8, 13, 8, 13, 28. Reactions: just after 0 until 18, after 10 until 33, after 20 until 48 and
    /// after 30 until 48, after 40 until 63.
    #[test]
    fn data_is_followed_through_the_register() {
        let one = observed_with(&[], 3_000_000);
        assert_eq!(
            (one.data_age.count, one.data_age.worst_ns),
            (5, Some(28_000_000))
        );
        assert_eq!(
            (one.reaction_time.count, one.reaction_time.worst_ns),
            (5, Some(28_000_000))
        );
        // The bounds are 10 + 3 and 10 + 15 + 3: read stopped after 50, so the last output is older than it may be, and no response says why.
        assert_eq!(one.reaction_time.standing, ObservedStanding::Within);
        assert_eq!(one.data_age.bound_ns, Some(13_000_000));
        assert_eq!(one.data_age.standing, ObservedStanding::Unexplained);
        assert!(!one.is_kept());
    }

    #[test]
    fn a_late_response_explains_a_late_reaction() {
        let late = Observed {
            behaviour: "only.act".to_owned(),
            standing: ObservedStanding::ExplainedByTheHost,
            ..Observed::default()
        };
        let one = observed_with(&[late], 9_000_000);
        assert_eq!(
            one.reaction_time.standing,
            ObservedStanding::ExplainedByTheHost
        );
        assert!(one.is_kept());
    }

    #[test]
    fn what_has_not_been_written_is_not_seen() {
        assert_eq!(seen(&[], false), ChainTimes::default());
        let nothing = [StageJobs::default(), StageJobs::default()];
        assert_eq!(seen(&nothing, true), ChainTimes::default());
    }
}
