//! The conditions of P1: all clients are released at once, servers are less urgent than their clients or have a CPU of their
//! own, and a request takes a millisecond, as long as P1's ORBs took themselves.

use rtorb_results::by_round::ByRound;
use rtorb_results::cells::Cells;
use rtorb_results::{
    Claim, Derived, Highlight, Labels, Plot, PlotKind, StatisticName, labels, labels_with,
    labels_without,
};

use super::super::mt_cubit::{
    self, ABOVE, BELOW, BETWEEN, Calls, JITTER, LOAD, LOW_CLIENTS, LineUp, ONE_CPU, Of, P50, P99,
    PLACEMENT, PRESET, RELEASE, SERVER_CPU, SPREAD, Servants, TEN_HERTZ, TOGETHER, TWO_HOSTS,
    URGENCY, WORK, is_on, kernels, published, requests_meet,
};
use crate::experiment::Effort;
use crate::study::{
    Amounts, ByEffort, Cell, Conditions, Factor, Findings, Study,
    Value::{Number, Text},
};

/// The architectures under P1's conditions.
pub(super) const STUDY: Study<LineUp> = Study {
    name: super::KIND.name,
    title: "Under the conditions of P1",
    reproduces: super::KIND.reproduces,
    // In a full run P1's 4,000 calls at its 20 Hz over the rounds: six hours on one host, with the other conditions.
    amounts: Amounts {
        glance: 110,
        emulated: 1_000,
        quick: [5, 200],
        full: [5, 40_000],
        samples: "run_of_p1_ms",
    },
    factors: &[
        Factor {
            label: PLACEMENT,
            levels: &[Text(ONE_CPU), Text(SERVER_CPU), Text(TWO_HOSTS)],
        },
        Factor {
            label: URGENCY,
            levels: &[Text(ABOVE), Text(BETWEEN), Text(BELOW)],
        },
        Factor {
            label: RELEASE,
            levels: &[Text(TOGETHER), Text(SPREAD)],
        },
        Factor {
            label: WORK,
            levels: &[Number(0), Number(REQUEST_US)],
        },
        // P1's steps.
        Factor {
            label: LOW_CLIENTS,
            levels: &[
                Number(FEWEST),
                Number(5),
                Number(10),
                Number(15),
                Number(20),
                Number(25),
                Number(30),
                Number(35),
                Number(40),
                Number(45),
                Number(50),
            ],
        },
        Factor {
            label: PRESET,
            levels: &[
                Text(PROMISED),
                Text("mt_orbix"),
                Text("minicool"),
                Text("corbaplus"),
                Text("minicool_rt"),
                Text("corbaplus_rt"),
            ],
        },
    ],
    fixed: &[
        ("transport", Text("tcp")),
        ("operation", Text("octet")),
        (LOAD, Text(TEN_HERTZ)),
    ],
    parameters: &mt_cubit::parameters(HIGH_HZ, RUN_OF_OTHERS_MS, Servants::One),
    run_ms: |cell, effort| {
        if requests_meet(cell) && is_faithful(cell) {
            STUDY.amounts.of(effort).1
        } else {
            RUN_OF_OTHERS_MS.of(effort)
        }
    },
    leaves_out,
    obstacle: |context| {
        let is_one_cpu = context.effort.seeds().is_some() && context.other_cpu().is_none();
        let is_agents = context.launcher.agent().is_some() && context.effort != Effort::Full;
        let obstacles = [(is_one_cpu, ONE_CPU_HERE), (is_agents, ON_AN_AGENT)];
        let obstacle = obstacles.into_iter().find(|(is_so, _)| *is_so);
        obstacle.map(|(_, why)| why)
    },
    plots,
    findings,
    notes: |context| {
        let quick = context.if_quick(QUICK);
        [FAITHFUL.to_owned()].into_iter().chain(quick).collect()
    },
    kernels: Some(kernels::architectures),
    ..mt_cubit::study(|context, cells| {
        LineUp::start(context, cells, Servants::One, HIGH_HZ.of(context.effort))
    })
};

/// A full run has all conditions, and those in which requests meet in all of P1's steps. Others have these alone: an emulated
/// machine in all steps, a host with the fewest clients and the most.
fn leaves_out(cell: &Cell<'_>, effort: Effort) -> bool {
    let low_clients = cell.number(LOW_CLIENTS);
    let is_extreme = [FEWEST as usize, 50].contains(&low_clients);
    let is_measured = match effort {
        Effort::Full => return !(requests_meet(cell) || is_extreme),
        Effort::Glance => is_on(cell, ONE_CPU, BELOW) && low_clients == 5,
        Effort::Quick => is_on(cell, ONE_CPU, BELOW) && is_extreme,
        // The machine has two CPUs, as each of P1's hosts.
        Effort::Emulated { .. } => is_on(cell, SERVER_CPU, BETWEEN),
    };
    !(requests_meet(cell) && is_faithful(cell) && is_measured)
}

fn is_faithful(cell: &Cell<'_>) -> bool {
    !cell
        .level(PRESET)
        .is_some_and(|preset| is_improved(&preset))
}

/// True for the strategies of P1 with RT-CORBA's priorities, which P1 did not measure.
fn is_improved(preset: &str) -> bool {
    preset.ends_with("_rt")
}

fn plots() -> Vec<Plot> {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let plot = |(id, title, value): (&str, &str, StatisticName)| Plot {
        kind: PlotKind::Lines,
        of: labels([("part", "call".into()), ("role", "high".into())]),
        choose: words(&[PLACEMENT, URGENCY, RELEASE, WORK]),
        lines: words(&[PRESET]),
        x: LOW_CLIENTS.to_owned(),
        x_title: "low-priority clients".to_owned(),
        values: vec![value],
        log_y: true,
        ..Plot::named(id, title)
    };
    [
        (
            "p1-latency",
            "The high-priority client's latency under P1's conditions (P1 Figure 7)",
            StatisticName::Mean,
        ),
        (
            "p1-tail",
            "Its 99th percentile under P1's conditions",
            StatisticName::P99,
        ),
        (
            "p1-jitter",
            "Its jitter under P1's conditions (P1 Figure 8)",
            StatisticName::Stddev,
        ),
    ]
    .map(plot)
    .into()
}

fn findings(cells: &Cells, _: &Conditions) -> Findings {
    let calls = Calls(cells);
    let most = calls.beside_most();
    let shown = nearest_to_p1(&most);
    let growth = most.iter().flat_map(|labels| {
        let labels_of_both = labels_without(labels, &["part"]);
        GROWTHS.map(|(name, of)| {
            let growth = calls.growth(labels, of);
            Derived::of_rounds(name, labels_of_both.clone(), "ratio", &growth)
        })
    });
    Findings {
        highlights: shown
            .iter()
            .filter_map(|labels| calls.highlight(labels))
            .collect(),
        derived: growth.flatten().collect(),
        claims: most
            .iter()
            .flat_map(|labels| calls.claims_of_p1(labels))
            .collect(),
        published: published::p1(cells),
        conclusions: calls.conclusion_of_p1(&shown).into_iter().collect(),
        ..Findings::default()
    }
}

/// All architectures under one condition: one that is near P1's if there is one.
fn nearest_to_p1<'a>(most: &[&'a Labels]) -> Vec<&'a Labels> {
    let mut all = most.iter();
    let near = all.find(|labels| requests_meet(&Cell::of(labels)));
    let Some(one) = near.or(most.first()) else {
        return Vec::new();
    };
    let condition = labels_without(one, &[PRESET]);
    let all = most.iter().copied();
    all.filter(|labels| labels_without(labels, &[PRESET]) == condition)
        .collect()
}

/// Each by the name of its growth.
const GROWTHS: [(&str, Of); 3] = [
    ("growth_of_p50", P50),
    ("growth_of_p99", P99),
    ("growth_of_jitter", JITTER),
];

impl<'a> Calls<'a> {
    /// The labels of the high-priority client's calls beside the most low-priority clients, under each condition.
    fn beside_most(self) -> Vec<&'a Labels> {
        let number = |labels: &Labels| labels[LOW_CLIENTS].number();
        let most = self.of("high").map(number).max();
        let all = self.of("high");
        all.filter(|labels| Some(number(labels)) == most).collect()
    }

    /// From the fewest low-priority clients to the most.
    fn growth(self, labels: &Labels, of: Of) -> ByRound {
        let fewest = labels_with(labels, [(LOW_CLIENTS, (FEWEST as usize).into())]);
        self.rounds(labels, of)
            .divided_by(&self.rounds(&fewest, of))
    }

    /// What the promised preset takes, as a share of what this one does.
    fn share(self, labels: &Labels, of: Of) -> ByRound {
        let promised = labels_with(labels, [(PRESET, PROMISED.into())]);
        self.rounds(&promised, of)
            .divided_by(&self.rounds(labels, of))
    }

    fn highlight(self, labels: &Labels) -> Option<Highlight> {
        let us = |labels: &Labels| Some(self.median(labels, P99)? / 1e3);
        let fewest = labels_with(labels, [(LOW_CLIENTS, (FEWEST as usize).into())]);
        Some(Highlight {
            what: format!(
                "{}: high-priority p99 beside {} low-priority clients, P1's conditions",
                labels[PRESET], labels[LOW_CLIENTS]
            ),
            value: us(labels)?,
            unit: "us".to_owned(),
            beside: format!("{:.0} us beside {FEWEST}", us(&fewest)?),
        })
    }

    /// `tao` does not feel the clients. P1's other architectures do where requests meet.
    fn claims_of_p1(self, labels: &Labels) -> Vec<Claim> {
        let preset = labels[PRESET].to_string();
        let condition = [PLACEMENT, URGENCY, RELEASE, WORK].map(|label| labels[label].to_string());
        let in_words = format!(
            "P1's conditions ({}; server {} the clients; released {}; {} us a request)",
            condition[0].replace('_', " "),
            condition[1],
            condition[2],
            condition[3]
        );
        let claim = |(id, text, rounds, limit): (&str, String, ByRound, f64)| {
            let id = format!("p1-{id}.{preset}.{}us", condition.join("."));
            Claim::at_most(id, format!("{in_words}: {text}"), &rounds, limit, "ratio")
        };
        let most = &labels[LOW_CLIENTS];
        let beside = format!("beside {most} low-priority clients");
        let claims = if preset == PROMISED {
            let growth = |id, what, of, limit| {
                let text =
                    format!("{preset}, high-priority {what} {beside}, to that beside {FEWEST}");
                (id, text, self.growth(labels, of), limit)
            };
            vec![
                growth("growth-p50", "median", P50, MEDIAN_GROWTH_MAX),
                growth("growth-p99", "p99", P99, TAIL_GROWTH_MAX),
            ]
        } else if !requests_meet(&Cell::of(labels)) || is_improved(&preset) {
            Vec::new()
        } else {
            let share = |id, what, of| {
                let text =
                    format!("high-priority {what} {beside}: tao's, as a share of {preset}'s");
                (id, text, self.share(labels, of), SHARE_MAX)
            };
            vec![
                share("share-p99", "p99", P99),
                share("share-jitter", "jitter", JITTER),
            ]
        };
        claims.into_iter().filter_map(claim).collect()
    }

    /// The architectures in the order of their tails.
    fn conclusion_of_p1(self, shown: &[&Labels]) -> Option<String> {
        let first = shown.first()?;
        let of_preset = |labels: &&Labels| {
            let us = |of| self.median(labels, of).map(|ns| ns / 1e3);
            let growth = |of| self.growth(labels, of).median();
            let (p50, p99) = (us(P50)?, us(P99)?);
            let (of_p50, of_p99) = (growth(P50)?, growth(P99)?);
            let words = format!(
                "{} {p50:.0} us in the median ({of_p50:.1} times) and {p99:.0} us in the p99 ({of_p99:.1} times)",
                labels[PRESET]
            );
            Some((p99, words))
        };
        let mut found: Vec<(f64, String)> = shown.iter().filter_map(of_preset).collect();
        found.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        let words: Vec<String> = found.into_iter().map(|(_, words)| words).collect();
        Some(format!(
            "Under P1's conditions, the high-priority client beside {} low-priority ones, and how much more that is than beside \
             {FEWEST}: {}.",
            first[LOW_CLIENTS],
            words.join("; ")
        ))
    }
}

/// The preset of which it is claimed that it does not feel the clients.
const PROMISED: &str = "tao";
/// What a request took in P1's ORBs.
const REQUEST_US: i64 = 1_000;
const FEWEST: i64 = 1;
const MEDIAN_GROWTH_MAX: f64 = 1.1;
const TAIL_GROWTH_MAX: f64 = 1.5;
/// Below this, `tao` is clearly better.
const SHARE_MAX: f64 = 0.5;
/// P1's 20 Hz. A quick run has more calls, which fall on all parts of a burst.
const HIGH_HZ: ByEffort = ByEffort {
    glance: 50,
    emulated: 20,
    quick: 50,
    full: 20,
};
/// How long each run takes under conditions that are not P1's: a tenth of the calls.
const RUN_OF_OTHERS_MS: ByEffort = ByEffort {
    glance: 110,
    emulated: 1_000,
    quick: 200,
    full: 4_000,
};
const FAITHFUL: &str = "CORBAplus and miniCOOL were no real-time ORBs: their pools have threads of one priority, which serve requests in \
     the order of their arrival. `corbaplus_rt` and `minicool_rt` (in a full run) have the same strategies with RT-CORBA's \
     priorities, which is better than what P1 measured.";
const ONE_CPU_HERE: &str =
    "P1's conditions need a machine with two CPUs: `rtorb lab kernel run --machine p1`.";
const ON_AN_AGENT: &str = "P1's conditions on two hosts are measured by `--full`.";
const QUICK: &str = "P1's conditions in a quick run: one CPU, a server below its clients, the fewest and the most clients, 50 Hz. \
     `--full` has all placements, priorities of the server and releases, with P1's steps and rates.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;
    use rtorb_results::Verdict;

    fn call(preset: &str, low_clients: i64) -> Labels {
        labels([
            (PRESET, preset.into()),
            (PLACEMENT, ONE_CPU.into()),
            (URGENCY, BELOW.into()),
            (RELEASE, TOGETHER.into()),
            (WORK, 1_000usize.into()),
            (LOAD, TEN_HERTZ.into()),
            (LOW_CLIENTS, (low_clients as usize).into()),
            ("role", "high".into()),
            ("part", "call".into()),
        ])
    }

    /// The verdicts when each call beside 50 others takes so long in the rounds: first those of `tao`, then of `minicool`.
    fn found(tao_ns: [u64; 6], minicool_ns: [u64; 6]) -> Findings {
        let mut cells = Cells::default();
        for round in 0..6 {
            for (preset, most_ns) in [("tao", tao_ns), ("minicool", minicool_ns)] {
                let times = |ns: u64| [ns, ns, ns, ns + ns / 10, 2 * ns];
                cells.add(&call(preset, FEWEST), round, &times(50_000), 0);
                cells.add(&call(preset, 50), round, &times(most_ns[round]), 0);
            }
        }
        findings(&cells, &Conditions::default())
    }

    #[test]
    fn each_claim_can_be_held_missed_and_not_judged() {
        let verdicts = |tao_ns, minicool_ns| {
            let claims = found(tao_ns, minicool_ns).claims.into_iter();
            let claims: Vec<(String, Verdict)> =
                claims.map(|claim| (claim.id, claim.verdict)).collect();
            claims
        };
        let ids = [
            "growth-p50.tao",
            "growth-p99.tao",
            "share-p99.minicool",
            "share-jitter.minicool",
        ];
        let all = |verdict| {
            ids.map(|id| (format!("p1-{id}.one_cpu.below.together.1000us"), verdict))
                .to_vec()
        };
        assert_eq!(verdicts([51_000; 6], [900_000; 6]), all(Verdict::Held));
        assert_eq!(verdicts([90_000; 6], [90_000; 6]), all(Verdict::Missed));
        let unsteady = [51_000, 110_000, 51_000, 110_000, 51_000, 110_000];
        let between = [180_000, 110_000, 180_000, 110_000, 180_000, 110_000];
        assert_eq!(verdicts(unsteady, between), all(Verdict::NotJudged));
    }

    #[test]
    fn the_architectures_are_told_in_the_order_of_their_tails() {
        let found = found([50_000; 6], [500_000; 6]);
        let growth = |name: &str| {
            let mut derived = found.derived.iter().rev();
            derived
                .find(|found| found.name == name)
                .map(|found| found.value)
        };
        assert_eq!(growth("growth_of_p50"), Some(10.0));
        let p99_us: Vec<f64> = found.highlights.iter().map(|found| found.value).collect();
        assert_eq!(p99_us.len(), 2);
        assert!(p99_us[0] < p99_us[1], "{p99_us:?}");
        let told = &found.conclusions[0];
        assert!(
            told.contains("tao 50 us in the median (1.0 times)"),
            "{told}"
        );
        assert!(
            told.contains("; minicool 500 us in the median (10.0 times)"),
            "{told}"
        );
    }

    #[test]
    fn a_full_run_has_every_condition_and_a_quick_one_little_time() {
        let conditions = 3 * 3 * 2 * 2;
        let full = STUDY.cells(Effort::Full);
        assert_eq!(full.len(), (3 * 11 + (conditions - 3) * 2) * 6);
        let quick = STUDY.parameters(Effort::Quick);
        assert_eq!(quick["paced_seconds"], 8usize.into());
        assert_eq!(quick[LOW_CLIENTS], "1 50".into());
    }
}
