use super::*;
use crate::experiment::{self, Progress};
use crate::processes::interrupt::Interrupt;
use rtorb_results::claim::Declaration;
use rtorb_results::metric::{Metric, Statistic::P50, Step::Over};
use rtorb_results::{LabelValue, PlotKind, Results, StatisticName, Verdict, labels};

const SAYS: Statements = Statements {
    claims: &[
        Declaration::at_most("growth", Metric::of(P50).with(&[Over(P50, "size=1")]), 2.1)
            .of("size=2, colour=red", "twice as large, twice as long"),
    ],
    ..Statements::NONE
};

/// A whole experiment: two factors, one plot, one claim.
const TOY: Study<Toy> = toy(|_, _| {
    Ok(Toy {
        fails_in: None,
        keeps: false,
    })
});

const fn toy<S: Subject>(start: fn(&Context, &[Cell<'_>]) -> Result<S, LabError>) -> Study<S> {
    Study {
        name: "toy/size",
        title: "How long a toy takes, by size and colour",
        reproduces: "nothing that was published",
        amounts: Amounts {
            glance: 5,
            emulated: 5,
            quick: [6, 5],
            full: [12, 5],
            samples: "samples_per_round",
        },
        factors: FACTORS,
        fixed: "material=wood",
        columns: &["colour"],
        plots: || {
            vec![Plot {
                kind: PlotKind::Bars,
                x: "size".to_owned(),
                lines: vec!["colour".to_owned()],
                values: vec![StatisticName::P50],
                ..Plot::line_chart("toy", "A toy's time by its size")
            }]
        },
        says: SAYS,
        ..Study::with(start)
    }
}

const FACTORS: &[Factor] = &[
    Factor::texts("colour", &["red", "blue"]),
    Factor::numbers("size", &[1, 2]),
];

/// One that squeaks, if it is blue.
const SQUEAKING: Study<Toy> = Study {
    factors: &[
        Factor::texts("colour", &["red", "blue"]),
        Factor::numbers("size", &[1]),
        Factor::texts("sound", &["squeak"]).or_absent(),
    ],
    parameters: &[(
        "warm_up",
        Value::ByEffort(ByEffort {
            glance: 0,
            emulated: 1,
            quick: 2,
            full: 3,
        }),
    )],
    leaves_out: |cell, _| cell.has("sound") && cell.is("colour", "red"),
    ..TOY
};

/// One whose calls fail in round 3, if it is red.
const BREAKING: Study<Toy> = Study {
    start: |_, _| {
        Ok(Toy {
            fails_in: Some(3),
            keeps: false,
        })
    },
    ..TOY
};

/// One whose samples are computed: how much longer each takes than the shortest of its round.
const KEEPING: Study<Toy> = Study {
    start: |_, _| {
        Ok(Toy {
            fails_in: None,
            keeps: true,
        })
    },
    computed: |_, conditions| {
        let mut found = Computed::default();
        for kept in &conditions.answers {
            let times_ns = kept.answer.samples[0].iter();
            let longer: Vec<f64> = times_ns.map(|ns| *ns as f64 - 1_000.0).collect();
            found.cells.add_computed(&kept.labels, kept.round, &longer);
        }
        let effort = conditions.effort.name();
        found.notes.push(format!("a {effort} look"));
        found
    },
    ..TOY
};

#[derive(Debug)]
struct Toy {
    fails_in: Option<usize>,
    keeps: bool,
}

impl Subject for Toy {
    fn measure(&mut self, cell: &Cell<'_>, turn: &Turn<'_>) -> Result<Sampled, LabError> {
        if self.fails_in == Some(turn.round) && cell.is("colour", "red") {
            return Err(LabError::process("toy", "it broke"));
        }
        let time_ns = 1_000 * cell.number("size") as u64;
        let thread = |name: &str| ObtainedScheduling {
            process: name.to_owned(),
            threads: 1,
            policy: "SCHED_FIFO".to_owned(),
            priority: 1,
            cpus: "0".to_owned(),
            real_time: true,
        };
        let answer = Answer {
            samples: vec![vec![time_ns; turn.samples]],
            scheduling: vec![thread("toy"), thread("waits")],
            ..Answer::default()
        };
        let sampled = if self.keeps {
            Sampled::kept(answer)
        } else {
            Sampled::of(answer)
        };
        Ok(sampled.of_threads(&["toy"]))
    }

    fn notes(&self) -> Vec<String> {
        vec!["a toy".to_owned()]
    }

    fn parameters(effort: Effort) -> Parameters {
        labels([("warm", (effort == Effort::Quick).into())])
    }
}

/// One whose colours are measured one after the other.
struct Painted(Toy);

impl Subject for Painted {
    const BLOCKS: Option<&'static str> = Some("colour");

    fn measure(&mut self, cell: &Cell<'_>, turn: &Turn<'_>) -> Result<Sampled, LabError> {
        self.0.measure(cell, turn)
    }
}

struct Steps(Vec<String>);

impl Progress for Steps {
    fn begin(&mut self, _: usize) {}
    fn step(&mut self, next: &str) {
        self.0.push(next.to_owned());
    }
    fn note(&mut self, _: &str) {}
}

struct Silent;

impl Progress for Silent {
    fn begin(&mut self, _: usize) {}
    fn step(&mut self, _: &str) {}
    fn note(&mut self, _: &str) {}
}

fn results_of(study: &Study<Toy>) -> Results {
    let context = Context::new(Effort::Quick, "/bin/false".into(), Interrupt::new());
    experiment::run(study, &context.expect("a folder"), &mut Silent).expect("it runs")
}

#[test]
fn a_study_is_its_cells_its_claims_and_its_plots() {
    let results = results_of(&TOY);
    let labels: Vec<String> = results
        .series
        .iter()
        .map(|series| format!("{} {}", series.labels["colour"], series.labels["size"]))
        .collect();
    assert_eq!(labels, ["red 1", "red 2", "blue 1", "blue 2"]);
    assert!(results.series.iter().all(|series| series.count == 30));
    assert_eq!(results.series[0].labels["material"], "wood".into());
    assert_eq!(results.parameters["size"], "1 2".into());
    assert_eq!(results.parameters["warm"], true.into());
    // A host that takes the CPU away adds a note of its own.
    assert_eq!(results.notes[0], "a toy");
    assert_eq!((results.plots.len(), results.lost.len()), (1, 0));
    let claim = &results.claims[0];
    assert_eq!(
        (claim.id.as_str(), claim.value),
        ("toy/size.growth", Some(2.0))
    );
}

#[test]
fn a_level_may_be_absent_and_a_parameter_depend_on_the_effort() {
    let results = results_of(&SQUEAKING);
    let sounds: Vec<Option<&LabelValue>> = results
        .series
        .iter()
        .map(|series| series.labels.get("sound"))
        .collect();
    assert_eq!(sounds, [None, None, Some(&"squeak".into())]);
    assert_eq!(results.parameters["sound"], "squeak".into());
    assert_eq!(results.parameters["warm_up"], 2usize.into());
}

#[test]
fn a_level_may_be_measured_in_all_rounds_before_the_next_one() {
    let painted = toy(|_, _| {
        Ok(Painted(Toy {
            fails_in: None,
            keeps: false,
        }))
    });
    let context = Context::new(Effort::Quick, "/bin/false".into(), Interrupt::new());
    let mut steps = Steps(Vec::new());
    experiment::run(&painted, &context.expect("a folder"), &mut steps).expect("it runs");
    assert_eq!(steps.0.len(), 24);
    let expected = [
        "round 1 of 6: colour red, size 1",
        "round 1 of 6: colour red, size 2",
        "round 2 of 6: colour red, size 2",
    ];
    assert_eq!(steps.0[..3], expected);
    assert_eq!(steps.0[12], "round 1 of 6: colour blue, size 1");
}

#[test]
fn samples_are_computed_from_the_answers_that_were_kept() {
    let results = results_of(&KEEPING);
    let found: Vec<(u64, f64)> = results
        .series
        .iter()
        .map(|series| (series.count, series.statistics.mean))
        .collect();
    assert_eq!(found, [(30, 0.0), (30, 1_000.0), (30, 0.0), (30, 1_000.0)]);
    assert_eq!(results.series[0].labels["real_time"], true.into());
    assert_eq!(
        results.scheduling.len(),
        1,
        "a thread that only waits is not measured"
    );
    assert_eq!(results.notes[..2], ["a toy", "a quick look"]);
}

#[test]
fn a_claim_over_a_lost_round_is_not_judged() {
    let results = results_of(&BREAKING);
    assert!(results.complete, "the other rounds were measured");
    let lost: Vec<(usize, &str)> = results
        .lost
        .iter()
        .map(|lost| (lost.round, lost.what.as_str()))
        .collect();
    let both = ["colour red, size 1", "colour red, size 2"];
    assert_eq!(lost.len(), 2);
    assert!(
        lost.iter()
            .all(|(round, what)| *round == 3 && both.contains(what))
    );
    let claim = &results.claims[0];
    assert_eq!(claim.verdict, Verdict::NotJudged);
    assert_eq!(claim.reason, "1 of 6 rounds were lost");
}
