//! One run of an experiment: its load, its surroundings, and which verdicts it supports.

use std::collections::BTreeSet;

use rtorb_host::Host;
use rtorb_host::description::StolenByCpu;
use rtorb_host::preflight::{self, Finding};
use rtorb_host::system::cpu_list;
use rtorb_os::clock::monotonic_ns;
use rtorb_results::timestamp;
use rtorb_results::{
    LabelValue, ObtainedScheduling, Results, SCHEMA, Series, Verdict, all_real_time,
};

use super::{Context, Experiment, Parameters, Progress};
use crate::effort::Effort;
use crate::error::LabError;
use crate::processes::agent::Agent;
use crate::processes::awake::{AWAKE_AT_MOST, Awake};

/// The note of a run that is not complete.
const INTERRUPTED: &str =
    "The run was interrupted: what is shown was measured, the rest is missing.";

/// The note of a run whose processes were not scheduled as the claims ask for.
const NOT_REAL_TIME: &str = "The claims are for processes that have SCHED_FIFO on one CPU: they were not judged in this run.";

/// Why nothing is judged where servers ran in a virtual machine elsewhere.
const UNSEEN_THEFT: &str =
    "an agent's host is a virtual machine: what its hypervisor took is not seen here";

/// Why a time is not judged in an emulated machine.
const EMULATED_TIME: &str = "a time of hardware cannot be judged by counts of instructions";

/// Runs an experiment and describes the run.
///
/// # Errors
/// As [`Experiment::run`].
pub fn run(
    experiment: &dyn Experiment,
    context: &Context,
    progress: &mut dyn Progress,
) -> Result<Results, LabError> {
    let started = timestamp::now();
    let begin_ns = monotonic_ns();
    let stolen_before = StolenByCpu::now();
    let mut parameters = experiment.parameters(context.effort);
    if context.effort.seeds().is_some() {
        // As `Awake` has it.
        parameters.insert("cpu_kept_awake".to_owned(), false.into());
    }
    // An emulated machine is booted for one load: there is nothing to vary.
    let varies_load = experiment.varies_load() && context.effort.seeds().is_none();
    let running = if varies_load {
        None
    } else {
        Some(context.start_load(&context.load, experiment.agents_max())?)
    };
    let awake = keep_awake(experiment, context);
    let mut results = match experiment.run(context, progress) {
        // Nothing can be reached any more, whatever it looked like.
        Err(_) if context.launcher.agent_lost().is_some() => Results::default(),
        results => results?,
    };
    if let Some(awake) = awake {
        parameters.insert("cpus_kept_awake".to_owned(), awake.is_kept().into());
    }
    let mut server_hosts =
        describe_agents(experiment, context, &mut parameters, &mut results).into_iter();
    if let Some(mut running) = running {
        running.check()?;
        label_with_load(&mut results.series, context);
        parameters.insert("load".to_owned(), context.load.to_string().into());
        if !context.load.is_none() {
            parameters.insert("load_generator".to_owned(), running.generator().into());
        }
    }
    let cpus = used_cpus(context.launcher.placement.cpu, &results.scheduling);
    let stolen_ms = StolenByCpu::now().since(&stolen_before).most_ms(&cpus);
    let duration_s = (monotonic_ns() - begin_ns) as f64 / 1e9;
    let stolen_share = stolen_ms.unwrap_or(0) as f64 / 1e3 / duration_s.max(1e-3);
    let is_seen = !agents(experiment, context).iter().any(hides_theft);
    judge(
        &mut results,
        context.effort,
        is_seen.then_some(stolen_share),
    );
    finish(&mut results, experiment, context.effort);
    results
        .notes
        .extend(stolen_ms.and_then(note_of_stolen_time));
    Ok(Results {
        schema: SCHEMA.to_owned(),
        experiment: experiment.name().to_owned(),
        title: experiment.title().to_owned(),
        host: context.host.clone(),
        reproduces: experiment.reproduces().to_owned(),
        run: context.run.clone(),
        started,
        duration_s,
        stolen_ms,
        parameters,
        findings: findings(context),
        server_host: server_hosts.next(),
        further_hosts: server_hosts.collect(),
        ..results
    })
}

/// None of an emulated machine: what a host should be set to says nothing about it.
fn findings(context: &Context) -> Vec<Finding> {
    match context.effort {
        Effort::Emulated { .. } => Vec::new(),
        Effort::Glance | Effort::Quick | Effort::Full => preflight::findings(&context.host),
    }
}

/// The measured CPU, and all that the measured threads could use.
fn used_cpus(measured: Option<usize>, scheduling: &[ObtainedScheduling]) -> BTreeSet<usize> {
    let of_threads = scheduling.iter().flat_map(|had| cpu_list(&had.cpus));
    measured.into_iter().chain(of_threads).collect()
}

fn note_of_stolen_time(stolen_ms: u64) -> Option<String> {
    (stolen_ms > 0).then(|| {
        format!(
            "The hypervisor gave a measured CPU to others for {stolen_ms} ms while this was measured: that is in the largest samples, \
             and says nothing about this kernel or the ORB."
        )
    })
}

/// Keeps the clients' CPU from sleeping while its caller waits for another host; agents do the same with the servers'.
/// On one host the two sides keep the CPU busy in turn.
fn keep_awake(experiment: &dyn Experiment, context: &Context) -> Option<Awake> {
    let uses = !agents(experiment, context).is_empty();
    uses.then(|| Awake::keep(context.launcher.placement.cpu, AWAKE_AT_MOST))
}

/// The agents on which the servers of an experiment run.
fn agents<'a>(experiment: &dyn Experiment, context: &'a Context) -> &'a [Agent] {
    let all = &context.launcher.agents;
    &all[..all.len().min(experiment.agents_max())]
}

/// Whether a hypervisor may take CPUs from an agent's servers without this host seeing it.
fn hides_theft(agent: &Agent) -> bool {
    agent.host().is_virtual_machine() && !agent.has_our_clock()
}

/// Records the agents, and returns the hosts of those that ran servers.
fn describe_agents(
    experiment: &dyn Experiment,
    context: &Context,
    parameters: &mut Parameters,
    results: &mut Results,
) -> Vec<Host> {
    if context.launcher.agents.is_empty() {
        return Vec::new();
    }
    if let Some((agent, why)) = context.launcher.agent_lost() {
        results.complete = false;
        let address = agent.address();
        results.notes.push(format!(
            "The agent at {address} was lost: {why}. What is shown was measured before, the rest is missing."
        ));
    }
    let agents = agents(experiment, context);
    if agents.is_empty() {
        results.notes.push(AGENT_UNUSED.to_owned());
        return Vec::new();
    }
    let addresses: Vec<&str> = agents.iter().map(Agent::address).collect();
    parameters.insert("agent".to_owned(), addresses.join(" ").into());
    agents.iter().map(|agent| agent.host().clone()).collect()
}

/// Says under which load each series was measured. Where `load` says how clients call, it is `background_load`. In an emulated
/// machine none is a load too: it stands beside the others in one table.
fn label_with_load(series: &mut [Series], context: &Context) {
    let load = &context.load;
    if load.is_none() && context.effort.seeds().is_none() {
        return;
    }
    let load: LabelValue = load.to_string().into();
    for series in series {
        match series.labels.get("load") {
            Some(known) if *known == load => continue,
            Some(_) => series
                .labels
                .insert("background_load".to_owned(), load.clone()),
            None => series.labels.insert("load".to_owned(), load.clone()),
        };
    }
}

/// Completes what an experiment cannot know of its run.
fn finish(results: &mut Results, experiment: &dyn Experiment, effort: Effort) {
    for claim in &mut results.claims {
        claim.id = format!("{}.{}", experiment.name(), claim.id);
    }
    if effort.seeds().is_none() {
        // Their rounds are no seeds: the largest of all is what counts.
        let each = results.series.iter_mut();
        each.for_each(|series| series.rounds_max.clear());
    }
}

/// Takes back the verdicts that this run cannot support, and adds the notes that every reader needs. `stolen_share` is the share of the
/// time that a hypervisor took; `None` if it may have taken some unseen.
fn judge(results: &mut Results, effort: Effort, stolen_share: Option<f64>) {
    let is_real_time = all_real_time(&results.scheduling);
    let is_complete = results.complete;
    for claim in &mut results.claims {
        match effort {
            Effort::Glance => {
                // So few samples may be none of a part.
                claim.excused |= claim.verdict == Verdict::NotMeasured;
                claim.take_back(A_GLANCE);
            }
            // Quotients compare instructions with instructions, and counts are exact; a time that was claimed is one of real hardware.
            Effort::Emulated { .. } if TIMES.contains(&claim.unit.as_str()) => {
                claim.take_back(EMULATED_TIME);
            }
            _ if !is_complete => claim.take_back(INTERRUPTED),
            _ if !is_real_time => claim.take_back(NOT_REAL_TIME),
            _ => match stolen_share {
                None => claim.take_back(UNSEEN_THEFT),
                Some(share) if share > claim.stolen_share_max() => claim.take_back(format!(
                    "the hypervisor took {:.2} % of the time; at most {:.2} % are allowed",
                    100.0 * share,
                    100.0 * claim.stolen_share_max()
                )),
                Some(_) => {}
            },
        }
    }
    let mut note = |text: &str| {
        if !results.notes.iter().any(|known| known == text) {
            results.notes.push(text.to_owned());
        }
    };
    if !is_complete {
        note(INTERRUPTED);
    }
    if !results.claims.is_empty() && !is_real_time {
        note(NOT_REAL_TIME);
    }
    match effort {
        Effort::Glance => note(A_GLANCE),
        Effort::Emulated { .. } => note(IN_INSTRUCTIONS),
        Effort::Quick | Effort::Full => {}
    }
}

const AGENT_UNUSED: &str = "Measured on the laboratory's host alone: the agent had no part in it.";
/// What a reader must know of results of an emulated machine.
pub const IN_INSTRUCTIONS: &str = "Measured in an emulated machine: a nanosecond is an instruction of the guest. There are no caches, no buses and \
                        one CPU, so this compares the lengths of paths through kernel and ORB and says nothing of hardware.";
/// The units of times.
const TIMES: [&str; 4] = ["ns", "us", "ms", "s"];
const A_GLANCE: &str =
    "A glance: that it runs. There are far too few samples for any number here to mean something.";

#[cfg(test)]
mod tests {
    use super::*;
    use rtorb_results::cells::Cells;
    use rtorb_results::claim::{Declaration, Grounds};
    use rtorb_results::metric::{Metric, Statistic};
    use rtorb_results::{Claim, Labels, ObtainedScheduling};

    use crate::processes::interrupt::Interrupt;

    fn threads(real_time: bool) -> ObtainedScheduling {
        ObtainedScheduling {
            process: "measured".to_owned(),
            threads: 1,
            policy: "SCHED_FIFO".to_owned(),
            priority: 50,
            cpus: "1".to_owned(),
            real_time,
        }
    }

    /// Claims over six rounds: a time that is held, a quotient that is missed, and a count that is held.
    fn outcome(complete: bool, real_time: bool) -> Results {
        let value = Metric::of(Statistic::P50);
        let declared = [
            Declaration::at_most("time", value.in_unit("us"), 2.0),
            Declaration::at_most("quotient", value.in_unit("ratio"), 1.0),
            Declaration::count("count", value.in_unit("events"), 2.0),
        ];
        let cells = declared[0].made_up(&Labels::new(), &[1.0; 6], 0);
        let claims = declared.map(|declared| judged(&declared, &cells));
        Results {
            complete,
            claims: claims.concat(),
            scheduling: vec![threads(real_time)],
            ..Results::default()
        }
    }

    fn judged(declaration: &Declaration, cells: &Cells) -> Vec<Claim> {
        declaration.judge(&Grounds::of(cells, 6))
    }

    fn verdicts(mut outcome: Results, effort: Effort, stolen: f64) -> [Verdict; 3] {
        judge(&mut outcome, effort, Some(stolen));
        [0, 1, 2].map(|index| outcome.claims[index].verdict)
    }

    #[test]
    fn a_run_that_cannot_support_a_claim_does_not_judge_it() {
        use Verdict::{Held, Missed, NotJudged};
        let good = || outcome(true, true);
        assert_eq!(verdicts(good(), Effort::Quick, 0.0), [Held, Missed, Held]);
        assert_eq!(verdicts(good(), Effort::Glance, 0.0), [NotJudged; 3]);
        assert_eq!(verdicts(good(), Effort::Quick, 0.02), [NotJudged; 3]);
        let others = [outcome(false, true), outcome(true, false)];
        for unfit in others {
            assert_eq!(verdicts(unfit, Effort::Quick, 0.0), [NotJudged; 3]);
        }
        let emulated = Effort::Emulated {
            seeds: 3,
            full: false,
        };
        assert_eq!(verdicts(good(), emulated, 0.0), [NotJudged, Missed, Held]);
    }

    #[test]
    fn theft_that_nobody_sees_unjudges_everything() {
        let mut unseen = outcome(true, true);
        judge(&mut unseen, Effort::Quick, None);
        for claim in &unseen.claims {
            assert_eq!(
                (claim.verdict, claim.reason.as_str()),
                (Verdict::NotJudged, UNSEEN_THEFT)
            );
        }
    }

    #[test]
    fn stolen_time_that_makes_a_percentile_unjudges_it() {
        let p99 = Declaration::at_most("p99", Metric::of(Statistic::P99), 2.0);
        let p50 = Declaration::at_most("p50", Metric::of(Statistic::P50), 2.0);
        let spread = Declaration::at_most("spread", Metric::of(Statistic::Deviation), 2.0);
        let cells = p99.made_up(&Labels::new(), &[0.5; 6], 0);
        let verdicts = |stolen: f64| {
            let mut outcome = Results {
                complete: true,
                claims: [&p50, &p99, &spread]
                    .map(|declared| judged(declared, &cells))
                    .concat(),
                scheduling: vec![threads(true)],
                ..Results::default()
            };
            judge(&mut outcome, Effort::Quick, Some(stolen));
            outcome
                .claims
                .iter()
                .map(|claim| claim.verdict)
                .collect::<Vec<_>>()
        };
        assert_eq!(verdicts(0.0005), [Verdict::Held; 3]);
        // Half of the slowest hundredth can be theft.
        let [held, not_judged] = [Verdict::Held, Verdict::NotJudged];
        assert_eq!(verdicts(0.005), [held, not_judged, not_judged]);
        assert_eq!(verdicts(0.02), [not_judged; 3]);
    }

    #[test]
    fn every_series_of_an_emulated_machine_says_its_load() {
        let effort = Effort::Emulated {
            seeds: 1,
            full: false,
        };
        let mut context = Context::new(effort, "/bin/false".into(), Interrupt::new()).unwrap();
        let of = |load: Option<&str>| {
            let labels = load.map(|load| ("load".to_owned(), load.into()));
            let labels = labels.into_iter().collect();
            Series::from_recorder(labels, &rtorb_results::statistics::Recorder::new())
        };
        let mut series = [of(None), of(Some("none")), of(Some("10hz"))];
        label_with_load(&mut series, &context);
        let shown =
            |index: usize, name: &str| series[index].labels.get(name).map(ToString::to_string);
        assert_eq!(shown(0, "load").as_deref(), Some("none"));
        assert_eq!(
            (shown(1, "load").as_deref(), shown(1, "background_load")),
            (Some("none"), None)
        );
        assert_eq!(shown(2, "load").as_deref(), Some("10hz"));
        assert_eq!(shown(2, "background_load").as_deref(), Some("none"));
        context.effort = Effort::Quick;
        let mut series = [of(None)];
        label_with_load(&mut series, &context);
        assert!(series[0].labels.is_empty());
    }

    #[test]
    fn every_cpu_of_a_measured_thread_is_watched() {
        let on = |cpus: &str| ObtainedScheduling {
            cpus: cpus.to_owned(),
            ..threads(true)
        };
        let used = |measured, all: &[ObtainedScheduling]| {
            used_cpus(measured, all).into_iter().collect::<Vec<_>>()
        };
        assert_eq!(used(Some(3), &[]), [3]);
        assert_eq!(used(Some(3), &[on("3"), on("1"), on("5-6")]), [1, 3, 5, 6]);
        assert_eq!(used(None, &[on("0")]), [0]);
    }

    #[test]
    fn what_is_missing_is_said_once() {
        let mut outcome = Results {
            notes: vec![INTERRUPTED.to_owned()],
            ..Results::default()
        };
        judge(&mut outcome, Effort::Glance, Some(0.0));
        assert_eq!(outcome.notes, [INTERRUPTED, A_GLANCE]);
    }
}
