//! The results file of a run: series of responses, bounds beside them, and what follows.

use std::collections::BTreeSet;

use rtorb_host::preflight;
use rtorb_results::judgement::{Judgement, Observed, ObservedStanding};
use rtorb_results::judgement_views::{self, END};
use rtorb_results::statistics::Recorder;
use rtorb_results::{Claim, Highlight, Labels, Results, Series, labels};

use super::RunOptions;
use super::conductor::Evidence;
use super::judging::Ran;
use super::words::time;
use crate::experiment::Context;

/// Puts it together.
pub(super) fn results(
    ran: Ran<'_>,
    (evidence, judgement): (&Evidence, Judgement),
    (options, context): (&RunOptions, &Context),
    (started, duration_s): (String, f64),
) -> Results {
    let cpu = context.launcher.placement.cpu;
    let stolen = judgement.cpus.iter();
    let stolen_ms = stolen.filter_map(|cpu| cpu.stolen_ms).max();
    let name = &ran.system.name;
    let experiment = format!("model/{}", file_name(name));
    let title = format!("{name}: responses beside their bounds");
    Results {
        reproduces:
            "P3 section 6: what the composition of measured components says of an application"
                .to_owned(),
        run: context.run.clone(),
        started,
        duration_s,
        stolen_ms,
        complete: true,
        parameters: parameters(ran, (options, judgement.interruption_from_ns), cpu),
        findings: preflight::findings(&context.host),
        scheduling: evidence.scheduling.clone(),
        highlights: highlights(&judgement),
        series: series(ran, evidence, &judgement),
        columns: vec!["root".to_owned()],
        plots: judgement_views::plots(),
        derived: judgement_views::derived(ran.checked, &judgement),
        claims: claims(&judgement),
        conclusions: conclusions(&judgement),
        notes: notes(ran, &judgement),
        judgement: Some(judgement),
        ..Results::of(experiment, title, context.host.clone())
    }
}

/// A name that is one of a file.
fn file_name(name: &str) -> String {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    name.chars()
        .map(|letter| if allowed(letter) { letter } else { '-' })
        .collect()
}

fn parameters(
    ran: Ran<'_>,
    (options, from_ns): (&RunOptions, u64),
    measured: Option<usize>,
) -> Labels {
    let mut parameters = labels([
        ("system", ran.system.name.clone().into()),
        (
            "seconds",
            (options.duration.as_millis() as f64 / 1e3)
                .to_string()
                .into(),
        ),
        ("forced", options.force.into()),
        ("seed", options.seed.into()),
        ("transport", "tcp".into()),
        ("strategy", ran.checked.strategy.clone().into()),
        ("interruption_from_ns", from_ns.into()),
    ]);
    if let Some(cpu) = measured {
        parameters.insert("measured_cpu".to_owned(), cpu.into());
    }
    for (processor, cpu) in &ran.places.of {
        let name = super::places::name(ran.system, *processor);
        parameters.insert(format!("cpu_of_{name}"), (*cpu).into());
    }
    parameters
}

/// A series for each behaviour and each root that begins it, and one for each chain.
fn series(ran: Ran<'_>, evidence: &Evidence, judgement: &Judgement) -> Vec<Series> {
    let mut found = Vec::new();
    for one in all(judgement) {
        let mut recorder = Recorder::new();
        let ours = places(ran, one);
        for job in evidence.jobs.iter().filter(|job| ours.contains(&job.place)) {
            recorder.record(job.end_ns.saturating_sub(job.release_ns));
        }
        if recorder.count() == 0 {
            continue;
        }
        let labels = labels([
            (END, one.name().into()),
            ("behaviour", one.behaviour.clone().into()),
            ("chain", one.chain.clone().into()),
            ("root", one.root.clone().into()),
            ("what", "response".into()),
        ]);
        found.push(Series::from_recorder(labels, &recorder));
    }
    found
}

/// Where in the tree a behaviour from its root is, or the end of a chain.
fn places(ran: Ran<'_>, one: &Observed) -> BTreeSet<u32> {
    let (system, tree) = (ran.system, &ran.plan.tree);
    let mut chains = system.chains.iter();
    let chain = chains.find(|chain| chain.name == one.chain);
    let is_it = |place: &usize| match chain {
        Some(chain) => tree.is_way(*place, &chain.through),
        None => {
            let at = &tree.places[*place];
            let name = |behaviour: usize| &system.behaviours[behaviour].name;
            *name(at.behaviour) == one.behaviour && *name(at.root) == one.root
        }
    };
    let places = (0..tree.places.len()).filter(is_it);
    places.map(|place| place as u32).collect()
}

fn highlights(judgement: &Judgement) -> Vec<Highlight> {
    let tightest = of_most_urgent(judgement);
    let mut found: Vec<Highlight> = tightest
        .into_iter()
        .filter_map(|one| {
            Some(Highlight {
                what: format!("{}, worst response where the host was quiet", one.behaviour),
                value: one.quiet_worst_ns? as f64 / 1e3,
                unit: "us".to_owned(),
                beside: format!("bound {}", time(one.bound_ns?)),
            })
        })
        .collect();
    let all = all(judgement);
    let misses: u64 = all.map(|one| one.misses).sum();
    found.push(Highlight {
        what: "missed deadlines, of behaviours and chains".to_owned(),
        value: misses as f64,
        unit: String::new(),
        beside: if judgement.promised {
            "none was promised to be missed"
        } else {
            "the analysis promises nothing"
        }
        .to_owned(),
    });
    found
}

fn claims(judgement: &Judgement) -> Vec<Claim> {
    let mut found = Vec::new();
    let quiet = all(judgement).filter_map(|one| {
        let ratio = one.quiet_worst_ns? as f64 / one.bound_ns.filter(|ns| *ns > 0)? as f64;
        Some(ratio)
    });
    if let Some(worst) = quiet.max_by(f64::total_cmp) {
        let what = "where the host was quiet, the longest response beside its bound, of all behaviours and chains";
        found.push(Claim::counted(
            "model.quiet-worst",
            what,
            worst,
            1.0,
            "ratio",
        ));
    }
    if judgement.standing >= ObservedStanding::Within {
        let unexplained: u64 = all(judgement).map(|one| one.unexplained).sum();
        let what = "responses above their bound that interruptions of the host do not explain";
        found.push(Claim::counted(
            "model.unexplained",
            what,
            unexplained as f64,
            0.0,
            "",
        ));
    }
    if let Some(one) = of_most_urgent(judgement)
        && let Some(ratio) = one.ratio
    {
        let what = format!(
            "the bound of {}, the most urgent, beside its longest response where the host was quiet",
            one.behaviour
        );
        found.push(Claim::counted("model.tightness", what, ratio, 2.0, "ratio"));
    }
    found
}

/// The verdict, and what was not as promised; the tables have the rest.
fn conclusions(judgement: &Judgement) -> Vec<String> {
    let words = all(judgement)
        .filter(|one| !one.is_as_promised())
        .map(|one| one.words.clone());
    std::iter::once(judgement.verdict()).chain(words).collect()
}

fn notes(ran: Ran<'_>, judgement: &Judgement) -> Vec<String> {
    let mut notes = vec![judgement.rule.clone()];
    for cpu in ran.places.shared() {
        notes.push(format!(
            "CPU {cpu} played several processors of the system: no bound holds for what ran there."
        ));
    }
    let cpus = judgement.cpus.iter().filter(|cpu| cpu.interruptions > 0);
    notes.extend(cpus.map(|cpu| {
        let stolen = match cpu.stolen_ms {
            Some(stolen_ms) if stolen_ms > 0 => {
                format!("; the kernel counts {stolen_ms} ms as stolen by the hypervisor")
            }
            _ => String::new(),
        };
        format!(
            "CPU {} was interrupted {} times, for {:.1} ms in all and {} at the longest{stolen}.",
            cpu.host_cpu,
            cpu.interruptions,
            cpu.interrupted_ns as f64 / 1e6,
            time(cpu.longest_ns)
        )
    }));
    let assumptions = ran.checked.assumptions.iter();
    notes.extend(assumptions.map(|assumption| match &assumption.node {
        Some(node) => format!("{node}: {}", assumption.what),
        None => assumption.what.clone(),
    }));
    notes.extend(judgement.remarks.iter().cloned());
    notes
}

pub(super) fn all(judgement: &Judgement) -> impl Iterator<Item = &Observed> {
    judgement.behaviours.iter().chain(&judgement.chains)
}

/// Of the highest priority, the one that is a root if there is one.
fn of_most_urgent(judgement: &Judgement) -> Option<&Observed> {
    let each = judgement.behaviours.iter();
    each.max_by_key(|one| (one.priority, one.behaviour == one.root))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_a_system_has_no_letters_that_lead_elsewhere() {
        assert_eq!(file_name("robot-arm_2"), "robot-arm_2");
        assert_eq!(file_name("../a b"), "---a-b");
    }
}
