//! The data age and the reaction time of each cause-effect chain.

use std::collections::BTreeSet;

use super::super::composition::sum_ns;
use super::super::report::{
    Assumption, CauseEffectBound, CommunicationLabel, LatencyBound, LatencyShare, Standing,
};
use super::super::system::{CauseEffectChain, Communication, Enforcement, System, Trigger};
use super::super::verdict::rounded_up;
use super::bounds;
use super::goals::period_ns;
use super::steps::{Analysis, View};
use crate::cause_effect::{LatencyPart, Passes, Stage, data_age, has_known_phases, reaction_time};
use crate::holistic::SchedulingPolicy;
use crate::times::text_of_ns;
use crate::{Phase, Response};

/// Returns the bounds of every cause-effect chain.
pub(super) fn chains(view: &View<'_>, analysis: &Analysis) -> Vec<CauseEffectBound> {
    let chains = view.system.cause_effect_chains.iter().enumerate();
    let bounded = chains.map(|(index, chain)| {
        let bound = ChainAnalysis {
            view,
            analysis,
            chain,
            activations: &view.goals.of_stage[index],
        };
        bound.bound()
    });
    bounded.collect()
}

/// Returns the first cause-effect chain that exceeds a limit.
pub(super) fn first_miss(chains: &[CauseEffectBound]) -> Option<String> {
    let misses = |one: &&CauseEffectBound| {
        let both = [&one.data_age, &one.reaction_time];
        both.iter().any(|one| one.standing == Standing::Misses)
    };
    chains.iter().find(misses).map(|one| one.chain.clone())
}

/// Returns what the bounds of cause-effect chains assume.
pub(super) fn assumptions(system: &System) -> Vec<Assumption> {
    let chains = || system.cause_effect_chains.iter();
    let uses = |communication| chains().any(|chain| chain.communication == communication);
    let texts = [
        (Communication::Implicit, IMPLICIT),
        (Communication::LogicalExecutionTime, ON_TIME),
    ];
    let used = texts
        .into_iter()
        .filter(|&(communication, _)| uses(communication));
    let mut found: Vec<String> = used.map(|(_, text)| text.to_owned()).collect();
    let through: BTreeSet<usize> = chains()
        .flat_map(|chain| &chain.stages)
        .flatten()
        .copied()
        .collect();
    let enforced = through.into_iter().map(|one| &system.behaviours[one]);
    let enforced = enforced.filter(|one| one.enforcement != Enforcement::Count);
    found.extend(enforced.map(|one| {
        format!(
            "no job of {} exceeds its budget: one that does may write late or never, and data gets older than the bounds of its cause-effect chains",
            one.name
        )
    }));
    let whole = |what| Assumption { node: None, what };
    found.into_iter().map(whole).collect()
}

const IMPLICIT: &str = "registers hold the last value. With implicit communication, a behaviour that begins a stage reads its register at its \
     start, and one that ends a stage writes it at its end";

const ON_TIME: &str = "with logical execution time, registers are read exactly at arrivals and written exactly at the ends of periods, before reads \
     of the same moment";

/// A cause-effect chain and the bounds of its stages.
struct ChainAnalysis<'a> {
    view: &'a View<'a>,
    analysis: &'a Analysis,
    chain: &'a CauseEffectChain,
    /// The activations that end each stage.
    activations: &'a [Vec<usize>],
}

/// Why a chain has no bound.
struct Boundless {
    standing: Standing,
    reason: String,
}

impl ChainAnalysis<'_> {
    fn bound(&self) -> CauseEffectBound {
        let name = |&behaviour: &usize| self.name(behaviour).to_owned();
        let stages = self.stages();
        let stages = stages.as_ref().map(Vec::as_slice);
        let first = self.view.system.behaviours[self.chain.stages[0][0]].trigger;
        let is_caused = matches!(first, Trigger::Sporadic { .. });
        let is_let = self.chain.communication == Communication::LogicalExecutionTime;
        CauseEffectBound {
            chain: self.chain.name.clone(),
            stages: self
                .chain
                .stages
                .iter()
                .map(|stage| stage.iter().map(name).collect())
                .collect(),
            communication: match self.chain.communication {
                Communication::Implicit => CommunicationLabel::Implicit,
                Communication::LogicalExecutionTime => CommunicationLabel::Let,
            },
            is_exact: is_let && stages.is_ok_and(has_known_phases),
            data_age: self.latency(stages, self.chain.data_age_max_ns, 0, data_age),
            // The gap of a first stage that the event itself causes does not matter.
            reaction_time: self.latency(
                stages,
                self.chain.reaction_time_max_ns,
                usize::from(is_caused),
                |stages| reaction_time(stages, is_caused),
            ),
        }
    }

    fn name(&self, behaviour: usize) -> &str {
        &self.view.system.behaviours[behaviour].name
    }

    /// Returns the bound that `of` finds. The gaps of the stages from `gaps_from` on matter to it.
    fn latency(
        &self,
        stages: Result<&[Stage], &Boundless>,
        limit_ns: Option<u64>,
        gaps_from: usize,
        of: impl Fn(&[Stage]) -> Option<Vec<LatencyPart>>,
    ) -> LatencyBound {
        let found = match stages {
            Ok(stages) => {
                of(stages).ok_or_else(|| (Standing::Misses, self.pauses(stages, gaps_from)))
            }
            Err(boundless) => Err((boundless.standing, boundless.reason.clone())),
        };
        match found {
            Ok(parts) => self.bounded(&parts, limit_ns),
            Err((standing, explanation)) => LatencyBound {
                limit_ns,
                bound_ns: None,
                slack_ns: None,
                standing: limit_ns.map_or(Standing::Holds, |_| standing),
                shares: Vec::new(),
                explanation,
            },
        }
    }

    fn bounded(&self, parts: &[LatencyPart], limit_ns: Option<u64>) -> LatencyBound {
        let bound_ns = parts
            .iter()
            .fold(0, |sum: u64, part| sum.saturating_add(part.ns));
        let response = Response::Bounded { ns: bound_ns };
        let standing = limit_ns.map_or(Standing::Holds, |limit_ns| {
            bounds::standing(response, limit_ns)
        });
        LatencyBound {
            limit_ns,
            bound_ns: Some(bound_ns),
            slack_ns: limit_ns.and_then(|limit_ns| bounds::slack_ns(response, limit_ns)),
            standing,
            shares: parts.iter().map(|part| self.share(*part)).collect(),
            explanation: match (limit_ns, standing) {
                (Some(limit_ns), Standing::Misses) => self.explanation(parts, bound_ns, limit_ns),
                _ => String::new(),
            },
        }
    }

    fn share(&self, part: LatencyPart) -> LatencyShare {
        let stage = &self.chain.stages[part.stage];
        let (first, last) = (self.name(stage[0]), self.name(stage[stage.len() - 1]));
        let what = match part.passes {
            Passes::InInput => format!("input of {first}"),
            Passes::InRegister => format!("register of {last}"),
            Passes::InJob if first == last => first.to_owned(),
            Passes::InJob => format!("{first} to {last}"),
        };
        LatencyShare { what, ns: part.ns }
    }

    fn explanation(&self, parts: &[LatencyPart], bound_ns: u64, limit_ns: u64) -> String {
        let mut largest = parts.to_vec();
        largest.sort_by_key(|part| core::cmp::Reverse(part.ns));
        let told = largest.iter().take(SHARES_TOLD).map(|part| {
            let share = self.share(*part);
            format!("{} {}", rounded_up(share.ns), share.what)
        });
        format!(
            "It may be {} more than its limit of {}. The largest shares of its {} are {}.{}",
            rounded_up(bound_ns.saturating_sub(limit_ns)),
            text_of_ns(limit_ns),
            rounded_up(bound_ns),
            told.collect::<Vec<_>>().join(", "),
            match largest.first().map(|part| part.passes) {
                Some(Passes::InInput | Passes::InRegister) => {
                    " Shorter periods shorten the time in a register, offsets on one node may, and a call or an event instead of the register removes it."
                }
                _ => "",
            }
        )
    }

    /// Says which stage may pause for any time, of those from `gaps_from` on.
    fn pauses(&self, stages: &[Stage], gaps_from: usize) -> String {
        let pausing = stages.iter().zip(&self.chain.stages).skip(gaps_from);
        let mut pausing = pausing.filter(|(stage, _)| stage.gap_max_ns.is_none());
        let first = pausing.next().map_or("", |(_, of)| self.name(of[0]));
        format!(
            "It has no bound, because nothing says how often {first} arrives at least: write its maximum_gap."
        )
    }

    fn stages(&self) -> Result<Vec<Stage>, Boundless> {
        let all = 0..self.chain.stages.len();
        all.map(|place| self.stage(place)).collect()
    }

    fn stage(&self, place: usize) -> Result<Stage, Boundless> {
        let root = self.chain.stages[place][0];
        let behaviour = &self.view.system.behaviours[root];
        let response_ns = self.response_ns(place)?;
        let clock = self.view.system.placement(root).node;
        let (gap_max_ns, phase) = match behaviour.trigger {
            Trigger::Periodic {
                period_ns,
                offset_ns,
            } => (
                Some(period_ns),
                offset_ns.map(|offset_ns| Phase { offset_ns, clock }),
            ),
            Trigger::Sporadic { .. } | Trigger::Called => (behaviour.gap_max_ns, None),
        };
        let (visible_ns, response_ns) = match self.chain.communication {
            Communication::Implicit => (
                self.precedence_ns(place).unwrap_or(response_ns),
                response_ns,
            ),
            Communication::LogicalExecutionTime => {
                let period_ns = period_ns(behaviour);
                if response_ns > period_ns {
                    return Err(Boundless {
                        standing: Standing::Misses,
                        reason: format!(
                            "{} may end {} after its period of {}, at whose end it has to write: shorten its execution, or raise its priority.",
                            self.ends_with(place),
                            rounded_up(response_ns - period_ns),
                            text_of_ns(period_ns)
                        ),
                    });
                }
                (period_ns, period_ns)
            }
        };
        Ok(Stage {
            gap_max_ns,
            phase,
            visible_ns,
            response_ns,
        })
    }

    /// Returns the name of the last behaviour of a stage.
    fn ends_with(&self, place: usize) -> &str {
        let stage = &self.chain.stages[place];
        self.name(stage[stage.len() - 1])
    }

    /// Returns the bound from the arrival of a stage's first behaviour to the end of its last one.
    fn response_ns(&self, place: usize) -> Result<u64, Boundless> {
        let activations = self.activations[place].iter();
        let mut responses = activations.map(|&index| {
            let done = self.view.composition.activations[index].done;
            self.analysis.found[done].response
        });
        responses.try_fold(0, |longest: u64, response| {
            let name = self.ends_with(place);
            match response {
                Response::Bounded { ns } => Ok(longest.max(ns)),
                Response::Unbounded => Err(Boundless {
                    standing: Standing::Misses,
                    reason: format!("The response of {name} has no bound."),
                }),
                Response::Undecided { .. } => Err(Boundless {
                    standing: Standing::NotProven,
                    reason: format!("The search for the response of {name} ended undecided."),
                }),
            }
        })
    }

    /// Returns the longest time from the arrival of a stage to its release, if no job of the next stage can start between that release
    /// and the write: all segments of the stage execute on the CPU of the next one's first segment, one after the other without a delay, by
    /// fixed priorities, and are more urgent.
    fn precedence_ns(&self, place: usize) -> Option<u64> {
        let (segments, steps) = (&self.view.composition.segments, &self.analysis.steps);
        let reader = self.chain.stages.get(place + 1)?[0];
        let reads = (0..segments.len())
            .find(|&one| segments[one].root == reader && segments[one].after.is_none())?;
        if self.analysis.policies[steps[reads].processor] != SchedulingPolicy::FixedPriority {
            return None;
        }
        let precedes = |&one: &usize| {
            steps[one].processor == steps[reads].processor
                && steps[one].level < steps[reads].level
                && sum_ns(&segments[one].delay) == 0
        };
        let mut jitter_ns = 0;
        for &activation in &self.activations[place] {
            let done = self.view.composition.activations[activation].done;
            let path: Vec<usize> =
                core::iter::successors(Some(done), |&one| segments[one].after).collect();
            if !path.iter().all(precedes) {
                return None;
            }
            let first = path[path.len() - 1];
            jitter_ns = jitter_ns.max(steps[first].task.jitter_ns);
        }
        Some(jitter_ns)
    }
}

/// The number of shares in an explanation.
const SHARES_TOLD: usize = 4;
