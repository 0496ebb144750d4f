//! What a reader asks first: what a call costs here, and whether a loop of 1 kHz can make one in each turn.

use rtorb_host::preflight::Severity;
use rtorb_results::summary::words::time;
use rtorb_results::{Results, SAMPLES_BEYOND, Series};

use crate::campaign::is_emulated;

/// The answer, from the calls of one experiment and the wake-ups of another one.
pub(crate) struct Answer {
    /// The section with the calls.
    pub(crate) anchor: String,
    /// Way, median, 99th percentile, worst, count.
    pub(crate) rows: Vec<[String; 5]>,
    /// Whether a turn of the loop had time for the call.
    pub(crate) verdict: &'static str,
    pub(crate) sentences: Vec<String>,
}

impl Answer {
    /// `None` where no such call was timed, or on several hosts.
    pub(crate) fn of(shown: &[&Results]) -> Option<Self> {
        let calls = only(shown, CALLS)?;
        let ways: Vec<(&str, &Series)> = WAYS
            .iter()
            .filter_map(|(transport, way)| Some((*way, plain_call(calls, transport)?)))
            .collect();
        let (way, first) = *ways.first()?;
        let wake_ups = only(shown, WAKE_UPS);
        let [alone, beside] =
            [true, false].map(|is_alone| wake_ups.and_then(|it| latest_ns(it, is_alone)));
        let turn_ns = first.statistics.max + alone.unwrap_or(0.0);
        let (took, percent) = (time(turn_ns), 100.0 * turn_ns / TURN_NS);
        let mut sentences = vec![match alone {
            Some(_) => format!(
                "A turn has 1 ms. The latest wake-up of a thread ({WAKE_UPS}) and the slowest call {way} took {took} together, \
                 {percent:.0} % of it."
            ),
            None => format!(
                "A turn has 1 ms. The slowest call {way} took {took}, {percent:.0} % of it. {WAKE_UPS} was not measured: it shows how late \
                 a thread wakes."
            ),
        }];
        sentences.extend(beside.map(|ns| {
            let then = if ns > TURN_NS {
                ", which is too late"
            } else {
                ""
            };
            format!(
                "Under load the latest wake-up was after {}{then}.",
                time(ns)
            )
        }));
        sentences.extend(doubts(calls, first.count));
        Some(Self {
            anchor: crate::section::anchor(calls),
            rows: ways.iter().map(|(way, series)| row(way, series)).collect(),
            verdict: if calls.is_loaded() {
                UNDER_LOAD
            } else {
                verdict(
                    turn_ns,
                    first.statistics.max + beside.unwrap_or(0.0),
                    first.count,
                )
            },
            sentences,
        })
    }
}

/// The results of that experiment; `None` without any, and where several hosts or runs have some.
fn only<'a>(shown: &[&'a Results], experiment: &str) -> Option<&'a Results> {
    let is_it = |results: &&&Results| results.experiment == experiment && !is_emulated(results);
    let mut found = shown.iter().filter(is_it);
    let one = found.next()?;
    found.next().is_none().then_some(*one)
}

/// The calls with one integer, by the default architecture; `None` if there are none with right answers.
fn plain_call<'a>(results: &'a Results, transport: &str) -> Option<&'a Series> {
    let mut found = results.series.iter().filter(|series| {
        has(series, "orb", "rtorb")
            && has(series, "operation", "long")
            && has(series, "part", "call")
            && has(series, "transport", transport)
            && !series.labels.contains_key("preset")
    });
    found
        .next()
        .filter(|series| series.count > 0 && series.wrong == 0)
}

/// How late a thread of the highest priority woke at most, without load or with it.
fn latest_ns(results: &Results, is_alone: bool) -> Option<f64> {
    let ours = results.series.iter().filter(|series| {
        has(series, "tool", "rtorb") && has(series, "load", "none") == is_alone && series.count > 0
    });
    ours.map(|series| series.statistics.max).reduce(f64::max)
}

fn has(series: &Series, name: &str, value: &str) -> bool {
    let found = series.labels.get(name);
    found.is_some_and(|found| found.to_string() == value)
}

fn row(way: &str, series: &Series) -> [String; 5] {
    let found = &series.statistics;
    let p99 = if series.count < COUNT_OF_P99 {
        "too few calls".to_owned()
    } else {
        time(found.p99)
    };
    [
        way.to_owned(),
        time(series.median_of_rounds()),
        p99,
        time(found.max),
        series.count.to_string(),
    ]
}

fn verdict(turn_ns: f64, loaded_ns: f64, count: u64) -> &'static str {
    if turn_ns > TURN_NS {
        "No, not in this run."
    } else if count < COUNT_OF_VERDICT {
        "Too few calls to tell."
    } else if loaded_ns > TURN_NS {
        "Without load yes, under load no, in this run."
    } else if turn_ns <= TURN_NS / 2.0 {
        "Yes, in this run."
    } else {
        "Only just, in this run."
    }
}

/// What this run cannot promise.
fn doubts(calls: &Results, count: u64) -> Vec<String> {
    let mut doubts = vec![format!(
        "The worst case is that of {count} calls: a rarer delay was not seen."
    )];
    if !calls.is_real_time() {
        doubts.push("Not all threads had a real-time priority.".to_owned());
    }
    let mut findings = calls.findings.iter();
    if findings.any(|finding| finding.severity == Severity::Unfit) {
        doubts
            .push("This host is not fit for real time: another run may be much slower.".to_owned());
    }
    doubts
}

const UNDER_LOAD: &str = "The calls were made under load: a run without it tells.";
const CALLS: &str = "orb/throughput";
const WAKE_UPS: &str = "os/wakeup";
/// The period of 1 kHz.
const TURN_NS: f64 = 1e6;
/// The calls of one second, which the loop would make.
const COUNT_OF_VERDICT: u64 = 1_000;
/// Of fewer calls, few decide the 99th percentile, as in a claim.
const COUNT_OF_P99: u64 = 100 * SAMPLES_BEYOND;
/// The first one that was measured decides.
const WAYS: [(&str, &str); 3] = [
    ("tcp", "over TCP"),
    ("unix", "over a UNIX socket"),
    ("shm", "through shared memory"),
];

#[cfg(test)]
mod tests {
    use rtorb_results::statistics::Recorder;
    use rtorb_results::{LabelValue, labels, synthetic};

    use super::*;

    fn series<const N: usize>(of: [(&str, LabelValue); N], worst_ns: u64) -> Series {
        let mut recorder = Recorder::new();
        (0..999).for_each(|_| recorder.record(9_000));
        recorder.record(worst_ns);
        Series::from_recorder(labels(of), &recorder)
    }

    fn calls(worst_ns: u64) -> Results {
        let of = |transport: &str, preset: &[(&str, LabelValue)]| {
            let own = [
                ("orb", "rtorb".into()),
                ("operation", "long".into()),
                ("part", "call".into()),
                ("transport", transport.into()),
            ];
            let mut series = series(own, worst_ns);
            let preset = preset.iter().cloned();
            series
                .labels
                .extend(preset.map(|(name, value)| (name.to_owned(), value)));
            series
        };
        let all = [
            of("tcp", &[("preset", "tao".into())]),
            of("unix", &[]),
            of("tcp", &[]),
        ];
        synthetic::results(CALLS, all.to_vec())
    }

    fn wake_ups(alone_ns: u64, beside_ns: u64) -> Results {
        let of = |load: &str, ns| series([("tool", "rtorb".into()), ("load", load.into())], ns);
        synthetic::results(WAKE_UPS, vec![of("none", alone_ns), of("mix", beside_ns)])
    }

    #[test]
    fn the_answer_is_the_slowest_call_and_the_latest_wake_up() {
        let (calls, wake_ups) = (calls(60_000), wake_ups(90_000, 1_540_000));
        let answer = Answer::of(&[&wake_ups, &calls]).expect("calls were timed");
        assert_eq!(
            answer.rows[0],
            ["over TCP", "9.01 us", "9.01 us", "60.00 us", "1000"]
        );
        assert_eq!(
            (answer.rows.len(), answer.verdict),
            (2, "Without load yes, under load no, in this run.")
        );
        let text = answer.sentences.join(" ");
        assert!(
            text.contains("took 150.0 us together, 15 % of it."),
            "{text}"
        );
        assert!(text.contains("after 1.54 ms, which is too late."), "{text}");
        assert!(text.contains("that of 1000 calls"), "{text}");
    }

    #[test]
    fn a_turn_that_is_too_short_is_said_to_be_so() {
        for (worst_ns, verdict) in [
            (700_000, "Only just, in this run."),
            (1_200_000, "No, not in this run."),
        ] {
            let answer = Answer::of(&[&calls(worst_ns)]).expect("calls were timed");
            assert_eq!(answer.verdict, verdict);
            assert!(answer.sentences[0].contains("was not measured"));
        }
    }

    #[test]
    fn calls_under_load_or_with_wrong_answers_have_no_verdict() {
        let mut loaded = calls(60_000);
        loaded.parameters.insert("load".to_owned(), "mix".into());
        let answer = Answer::of(&[&loaded]).expect("calls were timed");
        assert_eq!(answer.verdict, UNDER_LOAD);
        let mut wrong = calls(60_000);
        wrong.series.iter_mut().for_each(|series| series.wrong = 1);
        assert!(Answer::of(&[&wrong]).is_none());
    }

    #[test]
    fn a_percentile_is_shown_of_as_many_calls_as_a_claim_needs() {
        let shown = |count: u64| {
            let mut recorder = Recorder::new();
            (0..count).for_each(|_| recorder.record(9_000));
            let [_, _, p99, ..] = row("over TCP", &Series::from_recorder(labels([]), &recorder));
            p99
        };
        assert_eq!(shown(999), "too few calls");
        assert_eq!(shown(1_000), "9.00 us");
    }

    #[test]
    fn a_glance_has_too_few_calls_for_a_verdict() {
        assert_eq!(verdict(20_000.0, 0.0, 20), "Too few calls to tell.");
        assert_eq!(verdict(2_000_000.0, 0.0, 20), "No, not in this run.");
    }

    #[test]
    fn a_loop_that_has_time_also_under_load_has_time() {
        let answer = Answer::of(&[&calls(60_000), &wake_ups(90_000, 800_000)]).expect("both");
        assert_eq!(answer.verdict, "Yes, in this run.");
    }

    #[test]
    fn calls_of_two_runs_have_no_single_answer() {
        let (one, other) = (calls(60_000), calls(70_000));
        assert!(Answer::of(&[&one, &other]).is_none() && Answer::of(&[]).is_none());
    }
}
