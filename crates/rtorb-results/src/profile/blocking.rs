//! How long the kernel kept the CPU from the most urgent thread, at worst: the blocking term of a response-time analysis.

use serde::{Deserialize, Serialize};

use super::Source;
use crate::{LabelValue, Results, Series};

/// The longest time that the most urgent thread was seen to wait for the CPU, of all loads that it was measured under.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Blocking {
    /// The unit of all its values: `ns`.
    pub unit: String,
    /// The worst wake-up under any load: no less was blocked, and what a wake-up always takes is in it.
    pub bound: f64,
    /// The same less the median of a wake-up without load: what was waited beyond that. `None` where it was not measured without.
    pub beyond_wakeup: Option<f64>,
    /// The same by the 99th percentile, which what happens to a virtual machine now and then does not reach; `None` in
    /// profiles that were made before there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usual: Option<UsualBlocking>,
    /// Under which load it was.
    pub load: String,
    /// Every load that was tried: of others it says nothing.
    pub loads: Vec<String>,
    /// How many samples there were under all of them.
    pub count: u64,
    /// How many seeds there were of each, in an emulated machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seeds: Option<u64>,
    /// Where the worst one was measured.
    pub source: Source,
}

/// How long the most urgent thread waited, all but once in a hundred times, under the load where that was longest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UsualBlocking {
    /// 99 of 100 wake-ups took at most this: thefts are rarer, and of a few in a second a higher percentile would be one.
    pub p99: f64,
    /// The same less the median of a wake-up without load. `None` where it was not measured without.
    pub beyond_wakeup: Option<f64>,
    /// Under which load it was.
    pub load: String,
    /// How many samples there were under that load: of fewer than a hundred it is the largest one.
    pub count: u64,
}

impl Blocking {
    /// From `os/wakeup` under load; nothing where it was measured without load alone, which blocks nobody.
    pub(super) fn of(all: &[&Results]) -> Option<Self> {
        let results = all
            .iter()
            .find(|results| results.experiment == "os/wakeup")?;
        let ours = |series: &&Series| {
            let is = |name: &str, value: &str| series.labels.get(name) == Some(&value.into());
            let is_right = series.wrong == 0 && series.count > 0;
            is_right && is("tool", "rtorb") && !is("cpu", "awake")
        };
        let measured: Vec<&Series> = results.series.iter().filter(ours).collect();
        let (without, under): (Vec<&Series>, Vec<&Series>) =
            measured.iter().partition(|series| load(series) == "none");
        let longest = |by: fn(&Series) -> f64| {
            let mut under = under.iter().copied();
            let first = under.next()?;
            Some(under.fold(first, |longest, series| {
                if by(series) > by(longest) {
                    series
                } else {
                    longest
                }
            }))
        };
        let worst = longest(|series| series.statistics.max)?;
        let usual = longest(|series| series.statistics.p99)?;
        let undisturbed = without.first().map(|series| series.median_of_rounds());
        let beyond = |ns: f64| undisturbed.map(|wakeup| (ns - wakeup).max(0.0));
        let bound = worst.statistics.max;
        let seeds = worst.rounds_max.len() as u64;
        Some(Self {
            unit: worst.unit.clone(),
            bound,
            beyond_wakeup: beyond(bound),
            usual: Some(UsualBlocking {
                p99: usual.statistics.p99,
                beyond_wakeup: beyond(usual.statistics.p99),
                load: load(usual),
                count: usual.count,
            }),
            load: load(worst),
            loads: under.iter().map(|series| load(series)).collect(),
            count: under.iter().map(|series| series.count).sum(),
            seeds: (seeds > 0).then_some(seeds),
            source: Source {
                experiment: results.experiment.clone(),
                run: results.run.clone(),
                derived: None,
                labels: worst.labels.clone(),
            },
        })
    }
}

fn load(series: &Series) -> String {
    let load = series.labels.get("load").map(LabelValue::to_string);
    load.unwrap_or_else(|| "none".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{labels, synthetic};

    fn wakeups(load: &str, cpu: &str, worst_ns: u64) -> Series {
        let of = labels([
            ("tool", "rtorb".into()),
            ("load", load.into()),
            ("cpu", cpu.into()),
        ]);
        synthetic::series(of, [4_000, 4_000, worst_ns])
    }

    #[test]
    fn the_worst_under_any_load_is_the_bound() {
        let results = synthetic::results(
            "os/wakeup",
            vec![
                wakeups("none", "idle", 5_000),
                wakeups("none", "awake", 9_000_000),
                wakeups("tmpfs", "loaded", 900_000),
                wakeups("fork", "loaded", 30_000),
            ],
        );
        let found = Blocking::of(&[&results]).unwrap();
        assert_eq!(
            (found.bound, found.load.as_str(), found.count),
            (900_000.0, "tmpfs", 6)
        );
        let beyond = found.beyond_wakeup.unwrap();
        assert!((beyond - 896_000.0).abs() <= 10.0, "{beyond}");
        assert_eq!(found.loads, ["tmpfs", "fork"]);
    }

    #[test]
    fn what_is_rarer_than_one_in_a_hundred_is_in_the_bound_alone() {
        let with = |load: &str, usual_ns: u64, worst_ns: u64| {
            let of = labels([("tool", "rtorb".into()), ("load", load.into())]);
            let usual = (0..4_960).map(move |_| usual_ns);
            let samples_ns = usual.chain((0..40).map(move |_| worst_ns));
            synthetic::series(of, samples_ns)
        };
        let series = vec![
            with("none", 5_000, 5_000),
            with("mix", 20_000, 9_000_000),
            with("fork", 30_000, 40_000),
        ];
        let found = Blocking::of(&[&synthetic::results("os/wakeup", series)]).unwrap();
        assert_eq!((found.bound, found.load.as_str()), (9_000_000.0, "mix"));
        let usual = found.usual.unwrap();
        assert_eq!((usual.load.as_str(), usual.count), ("fork", 5_000));
        assert!((usual.p99 - 30_000.0).abs() <= 100.0, "{usual:?}");
        let beyond = usual.beyond_wakeup.unwrap();
        assert!((beyond - 25_000.0).abs() <= 150.0, "{beyond}");
    }

    #[test]
    fn wrong_answers_are_no_bound() {
        let wrong = Series {
            wrong: 1,
            ..wakeups("tmpfs", "loaded", 900_000)
        };
        let series = vec![wrong, wakeups("fork", "loaded", 30_000)];
        let found = Blocking::of(&[&synthetic::results("os/wakeup", series)]).unwrap();
        assert_eq!((found.bound, found.load.as_str()), (30_000.0, "fork"));
        assert_eq!(found.loads, ["fork"]);
    }

    #[test]
    fn without_load_there_is_no_bound() {
        let results = synthetic::results("os/wakeup", vec![wakeups("none", "idle", 5_000)]);
        assert_eq!(Blocking::of(&[&results]), None);
    }
}
