//! Whether it is a staircase, in numbers and in words.

use super::staircase::{From, Measured, Stair};
use crate::results::statistics::median;
use crate::results::{Derived, Highlight, Published, Target, labels};

/// The worst step of each staircase.
pub(super) fn derived(measured: &Measured) -> Vec<Derived> {
    let mut derived = Vec::new();
    for whose in measured.all() {
        for from in From::ALL {
            let (_, preset, work_us) = whose;
            if let Some(step) = worst_step(&measured.rounds_ns(whose, from)) {
                derived.push(Derived {
                    name: "worst_step".to_owned(),
                    labels: labels([
                        ("preset", preset.into()),
                        ("servant_work_us", work_us.into()),
                        ("part", from.part().into()),
                    ]),
                    unit: "ratio".to_owned(),
                    value: step.ratio,
                    rounds: step.rounds,
                });
            }
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

/// The promise: with the preset `tao` it is a staircase.
pub(super) fn targets(measured: &Measured) -> Vec<Target> {
    let promised = measured.all().filter(|(_, preset, _)| *preset == PROMISED);
    let each = promised.flat_map(|whose| From::ALL.map(|from| (whose, from)));
    each.filter_map(|(whose, from)| {
        let step = worst_step(&measured.rounds_ns(whose, from)).filter(Step::is_judged)?;
        let since = since(from);
        let what = format!(
            "{PROMISED}, {} us of work: the {} Hz client's median from {since}, to that of the {} Hz client (worst step)",
            whose.2, step.upper.rate_hz, step.lower.rate_hz
        );
        Some(Target::at_most(what, step.ratio, step.limit, "ratio"))
    })
    .collect()
}

/// Which promises were not judged, and why.
pub(super) fn notes(measured: &Measured) -> Vec<String> {
    let promised = measured.all().filter(|(_, preset, _)| *preset == PROMISED);
    let each = promised.flat_map(|whose| From::ALL.map(|from| (whose, from)));
    each.filter_map(|(whose, from)| {
        let step = worst_step(&measured.rounds_ns(whose, from)).filter(|step| !step.is_judged())?;
        Some(format!(
            "{PROMISED}, {} us of work, from {}: not judged: too noisy: the rounds of the {} Hz and the {} Hz client differ by {:.0} %",
            whose.2,
            since(from),
            step.upper.rate_hz,
            step.lower.rate_hz,
            step.noise * 100.0
        ))
    })
    .collect()
}

/// A sentence a staircase.
pub(super) fn words(measured: &Measured) -> Vec<String> {
    let each = measured.all().filter_map(|whose| {
        let (_, preset, work_us) = whose;
        let worst = |from| worst_step(&measured.rounds_ns(whose, from));
        let (sent, released) = (worst(From::Sending)?, worst(From::Release)?);
        let worst = [released, sent];
        let inverted = worst.iter().find(|step| step.is_inverted());
        Some(match inverted {
            None if !worst.iter().all(Step::is_judged) => format!(
                "{preset}, {work_us} us of work: not judged: the rounds differ more than the clients."
            ),
            None => format!(
                "{preset}, {work_us} us of work: a staircase: no client is slower than one that calls less often, beyond noise."
            ),
            Some(worst) => format!(
                "{preset}, {work_us} us of work: inverted: the {} Hz client takes {:.2} times as long as the {} Hz client. {}",
                worst.upper.rate_hz,
                worst.ratio,
                worst.lower.rate_hz,
                reason(preset)
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
    /// How long the more urgent one takes, to the less urgent one: the median over rounds, and each round.
    ratio: f64,
    rounds: Vec<f64>,
    /// How much the ratio differs from round to round.
    noise: f64,
    /// From where on it is an inversion and not noise.
    limit: f64,
}

impl Step {
    fn between(
        (upper, upper_ns): &(Stair, &[f64]),
        (lower, lower_ns): &(Stair, &[f64]),
    ) -> Option<Self> {
        let pairs = upper_ns.iter().zip(*lower_ns);
        let rounds: Vec<f64> = pairs.map(|(upper, lower)| upper / lower.max(1.0)).collect();
        let ratio = median(&rounds)?;
        let distances: Vec<f64> = rounds.iter().map(|round| (round - ratio).abs()).collect();
        let noise = NOISE_DISTANCES * median(&distances)?;
        let [least, most] =
            [NOISE_PERCENT, NOISE_PERCENT_MAX].map(|percent| percent as f64 / 100.0);
        Some(Self {
            upper: *upper,
            lower: *lower,
            ratio,
            rounds,
            noise,
            limit: 1.0 + noise.clamp(least, most),
        })
    }

    /// Whether the rounds agree enough: on how long both take, or on which of them is slower.
    fn is_judged(&self) -> bool {
        let is_quiet = self.noise * 100.0 <= NOISE_PERCENT_MAX as f64;
        is_quiet || self.ratio <= 1.0 || self.ratio > 1.0 + self.noise
    }

    fn is_inverted(&self) -> bool {
        self.is_judged() && self.ratio > self.limit
    }
}

/// The step on which the more urgent client is slowest, of all pairs: noise on two steps must not hide a slope.
fn worst_step(rounds_ns: &[(Stair, &[f64])]) -> Option<Step> {
    let pairs = rounds_ns.iter().enumerate().flat_map(|(index, upper)| {
        rounds_ns[index + 1..]
            .iter()
            .filter_map(move |lower| Step::between(upper, lower))
    });
    let beyond_noise = |step: &Step| step.ratio / step.limit;
    pairs.max_by(|a, b| beyond_noise(a).total_cmp(&beyond_noise(b)))
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
            "No connection, thread or queue is shared between two priorities, so this is the host's doing."
        }
    }
}

/// Whose promise it is.
const PROMISED: &str = super::PRESETS[0];
/// Medians of rounds differ by so much without a reason,
pub(super) const NOISE_PERCENT: u64 = 10;
/// or, up to so much, by so many times the distance that a round usually has from them.
const NOISE_DISTANCES: f64 = 2.0;
/// Rounds that differ by more say nothing.
pub(super) const NOISE_PERCENT_MAX: u64 = 25;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::orb_priority_inversion::staircase::Whose;

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
        let targets = targets(&measured);
        assert_eq!(targets.len(), 2);
        assert!((targets[0].value - 1.05).abs() < 1e-2);
        assert!(targets.iter().all(|target| target.holds));
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
        let step = worst_step(&measured.rounds_ns(WHOSE, From::Sending)).unwrap();
        assert_eq!((step.upper, step.lower), (stair(20), stair(5)));
        assert!(targets(&measured).iter().all(|target| !target.holds));
        assert!(words(&measured)[0].contains("inverted"));
        assert_eq!(worst_step(&[]), None);
    }

    #[test]
    fn rounds_that_disagree_say_how_much_noise_there_is() {
        let clients = |upper: &'static [u32]| [(stair(20), upper), (stair(10), &[10_000; 5][..])];
        let judged = |upper| {
            let measured = Measured::with(WHOSE, &clients(upper));
            let holds = targets(&measured).first().map(|target| target.holds);
            assert_eq!(notes(&measured).is_empty(), holds.is_some());
            holds
        };
        // 8 % apart: within 1.2.
        assert_eq!(
            judged(&[11_800, 10_800, 11_800, 12_900, 10_700]),
            Some(true)
        );
        assert_eq!(
            judged(&[12_000, 12_100, 13_000, 11_900, 12_000]),
            Some(false)
        );
        assert_eq!(judged(&[12_000, 8_000, 13_000, 9_000, 14_000]), None);
        // However they differ, all say the same.
        assert_eq!(
            judged(&[20_000, 25_000, 35_000, 15_000, 30_000]),
            Some(false)
        );
        assert_eq!(judged(&[2_000, 5_000, 8_000, 3_000, 9_000]), Some(true));
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
