//! Whether it is a staircase, in numbers and in words.

use rtorb_results::by_round::ByRound;
use rtorb_results::{Claim, Derived, Highlight, Published, Verdict, labels};

use super::staircase::{From, Measured, Of, Stair, Whose};

/// The worst step of each staircase.
pub(super) fn derived(measured: &Measured) -> Vec<Derived> {
    let mut derived = Vec::new();
    for whose in measured.all() {
        for from in From::ALL {
            let (_, preset, work_us) = whose;
            let step = worst_step(&measured.rounds_ns(whose, (from, Of::P50)));
            let labels = labels([
                ("preset", preset.into()),
                ("servant_work_us", work_us.into()),
                ("part", from.part().into()),
            ]);
            derived.extend(
                step.and_then(|step| {
                    Derived::of_rounds("worst_step", labels, "ratio", &step.ratios)
                }),
            );
        }
    }
    derived
}

/// Each client of the promised preset, with most work.
pub(super) fn highlights(measured: &Measured) -> Vec<Highlight> {
    let promised = measured.all().filter(|(_, preset, _)| *preset == PROMISED);
    let Some(whose) = promised.max_by_key(|(.., work_us)| *work_us) else {
        return Vec::new();
    };
    let released = measured.medians_ns(whose, From::Release);
    let sent = measured.medians_ns(whose, From::Sending);
    let both = sent.into_iter().zip(released);
    both.map(|((stair, sent_ns), (_, released_ns))| Highlight {
        what: format!(
            "{PROMISED}: {} Hz, priority {}, {} us of work, median from the release",
            stair.rate_hz, stair.priority, whose.2
        ),
        value: released_ns / 1e3,
        unit: "us".to_owned(),
        beside: format!("{:.1} us from sending", sent_ns / 1e3),
    })
    .collect()
}

/// With the preset `tao` it is a staircase, in the median and in the tail.
pub(super) fn claims(measured: &Measured) -> Vec<Claim> {
    let promised = measured.all().filter(|(_, preset, _)| *preset == PROMISED);
    let each = promised.flat_map(|whose| From::ALL.map(|from| (whose, from)));
    let claims = each.flat_map(|(whose, from)| {
        Of::ALL.map(|of| {
            let step = worst_step(&measured.rounds_ns(whose, (from, of)))?;
            Some(step.claim((whose, from, of)))
        })
    });
    claims.flatten().collect()
}

/// A sentence a staircase.
pub(super) fn words(measured: &Measured) -> Vec<String> {
    let each = measured.all().filter_map(|whose| {
        let (_, preset, work_us) = whose;
        let mut judged = Vec::new();
        for from in From::ALL {
            let step = worst_step(&measured.rounds_ns(whose, (from, Of::P50)))?;
            judged.push((step.claim((whose, from, Of::P50)), step));
        }
        let inverted = judged.iter().find(|(claim, _)| claim.is_missed());
        Some(match inverted {
            Some((claim, worst)) => format!(
                "{preset}, {work_us} us of work: inverted: the {} Hz client takes {:.2} times as long as the {} Hz client. {}",
                worst.upper.rate_hz,
                claim.value,
                worst.lower.rate_hz,
                reason(preset)
            ),
            None if judged.iter().all(|(claim, _)| claim.verdict == Verdict::Held) => format!(
                "{preset}, {work_us} us of work: a staircase: no client is slower than one that calls less often, beyond noise."
            ),
            None => format!(
                "{preset}, {work_us} us of work: not judged: the rounds differ more than the clients."
            ),
        })
    });
    each.collect()
}

/// The text of the paper beside what was measured here.
pub(super) fn published(measured: &Measured) -> Vec<Published> {
    let Some(whose) = measured
        .all()
        .find(|(_, preset, work_us)| *preset == PROMISED && *work_us == 0)
    else {
        return Vec::new();
    };
    let medians = measured.medians_ns(whose, From::Sending);
    let each = |number: &dyn Fn(f64) -> String, all: &[(Stair, f64)]| {
        let words: Vec<String> = all
            .iter()
            .map(|(stair, value)| format!("{} at {} Hz", number(*value), stair.rate_hz))
            .collect();
        words.join(", ")
    };
    let latency = each(&|ns| format!("{:.1} us", ns / 1e3), &medians);
    let jitter = each(
        &|share| format!("{:.0} %", share * 100.0),
        &measured.jitters(whose),
    );
    let rows = [
        (
            "P2 Figure 3 (TAO)",
            "latency, Linux",
            "inverted: 289 us at 10 Hz, 269 us at 5 Hz",
            &latency,
        ),
        (
            "P2 Figure 3 (TAO)",
            "latency, LynxOS",
            "no measurable inversion",
            &latency,
        ),
        (
            "P2 Figure 4 (TAO)",
            "jitter to the mean, Linux",
            "28.8 % to 193 %",
            &jitter,
        ),
        (
            "P2 Figure 4 (TAO)",
            "jitter to the mean, LynxOS",
            "6.42 % at 20 Hz, up to 18.8 % at 1 Hz",
            &jitter,
        ),
        (
            "P2 Figure 4 (TAO)",
            "jitter to the mean, Solaris; Windows NT",
            "32.6 % to 41.2 %; 31.3 % to 57.3 %",
            &jitter,
        ),
    ];
    rows.into_iter()
        .map(|(source, what, published, ours)| Published {
            source: source.to_owned(),
            what: what.to_owned(),
            published: published.to_owned(),
            ours: ours.clone(),
        })
        .collect()
}

/// Two clients of a staircase.
#[derive(Clone, Debug, PartialEq)]
struct Step {
    upper: Stair,
    lower: Stair,
    /// How many times as long the more urgent one takes, in each round.
    ratios: ByRound,
}

impl Step {
    fn claim(&self, ((_, preset, work_us), from, of): (Whose<'_>, From, Of)) -> Claim {
        let (id, name) = match of {
            Of::P50 => ("p50", "median"),
            Of::P99 => ("p99", "99th percentile"),
        };
        let statement = format!(
            "{preset}, {work_us} us of work: the {} Hz client's {name} from {}, to that of the {} Hz client (worst step)",
            self.upper.rate_hz,
            since(from),
            self.lower.rate_hz
        );
        let id = format!("staircase-{id}.{work_us}us.{}", from.part());
        let claim = Claim::at_most(id, statement, &self.ratios, STEP_MAX, "ratio");
        claim.expect("a step has rounds")
    }
}

/// The step on which the more urgent client is slowest, of all pairs: noise on two steps must not hide a slope.
fn worst_step(rounds_ns: &[(Stair, &ByRound)]) -> Option<Step> {
    let pairs = rounds_ns.iter().enumerate().flat_map(|(index, upper)| {
        rounds_ns[index + 1..].iter().filter_map(move |lower| {
            let ratios = upper.1.divided_by(lower.1);
            let step = Step {
                upper: upper.0,
                lower: lower.0,
                ratios,
            };
            Some((step.ratios.median()?, step))
        })
    });
    let worst = pairs.max_by(|a, b| a.0.total_cmp(&b.0));
    worst.map(|(_, step)| step)
}

fn since(from: From) -> &'static str {
    match from {
        From::Sending => "sending",
        From::Release => "the release",
    }
}

fn reason(preset: &str) -> &'static str {
    match preset {
        "omniorb" => {
            "All its threads have one priority, so a request waits until the one that is being served is done."
        }
        "default" => {
            "A connection's thread takes the object's priority only once it has read the request."
        }
        _ => {
            "No connection, thread or queue is shared between two priorities: the cause is not known."
        }
    }
}

/// Whose promise it is.
const PROMISED: &str = super::PRESETS[0];
/// From this ratio on, a step is an inversion: beside it, caches and timers of the clients differ by some percent.
const STEP_MAX: f64 = 1.1;

#[cfg(test)]
mod tests {
    use super::*;
    use rtorb_results::Verdicts;

    const WHOSE: Whose<'_> = (0, "tao", 500);

    fn stair(rate_hz: u64) -> Stair {
        Stair {
            priority: rate_hz as u8 + 10,
            rate_hz,
        }
    }

    #[test]
    fn a_staircase_holds_within_noise() {
        let measured = Measured::with(
            WHOSE,
            &[
                (stair(1), &[20_000; 3]),
                (stair(20), &[10_500; 3]),
                (stair(10), &[10_000; 3]),
                (stair(5), &[14_000; 3]),
            ],
        );
        let claims = claims(&measured);
        assert_eq!(Verdicts::of(&claims).held, 4);
        assert!((claims[0].value - 1.05).abs() < 1e-2);
        assert!(words(&measured)[0].contains("a staircase"));
    }

    #[test]
    fn an_inversion_over_more_than_one_step_is_found() {
        let measured = Measured::with(
            WHOSE,
            &[
                (stair(20), &[11_900; 3]),
                (stair(10), &[10_900; 3]),
                (stair(5), &[10_000; 3]),
            ],
        );
        let step = worst_step(&measured.rounds_ns(WHOSE, (From::Sending, Of::P50))).unwrap();
        assert_eq!((step.upper, step.lower), (stair(20), stair(5)));
        assert_eq!(Verdicts::of(&claims(&measured)).missed, 4);
        assert!(words(&measured)[0].contains("inverted"));
        assert_eq!(worst_step(&[]), None);
    }

    #[test]
    fn rounds_that_disagree_decide_nothing() {
        let judged = |upper: &'static [u64]| {
            let clients = [(stair(20), upper), (stair(10), &[10_000; 5][..])];
            claims(&Measured::with(WHOSE, &clients))[0].verdict
        };
        assert_eq!(
            judged(&[10_500, 10_400, 10_500, 10_600, 10_400]),
            Verdict::Held
        );
        assert_eq!(
            judged(&[12_000, 12_100, 13_000, 11_900, 12_000]),
            Verdict::Missed
        );
        assert_eq!(
            judged(&[12_000, 8_000, 13_000, 9_000, 14_000]),
            Verdict::NotJudged
        );
        // However they differ, all say the same.
        assert_eq!(
            judged(&[20_000, 25_000, 35_000, 15_000, 30_000]),
            Verdict::Missed
        );
        assert_eq!(judged(&[2_000, 5_000, 8_000, 3_000, 9_000]), Verdict::Held);
    }

    #[test]
    fn the_most_urgent_client_is_labelled_high() {
        let measured = Measured::with(WHOSE, &[(stair(1), &[3]), (stair(20), &[1])]);
        let high: Vec<_> = measured
            .series(true)
            .into_iter()
            .filter(|series| series.labels["role"].to_string() == "high")
            .map(|series| series.labels["rate_hz"].to_string())
            .collect();
        assert_eq!(high, ["20", "20"]);
    }
}
