//! The metrics of a scrape.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use rtorb::recorder::{CallOutcome, CountedOperation, Histogram, ProcessSnapshot};
use rtorb_recording::counters::ProcessCounters;
use rtorb_recording::short_name;

/// The processes that are scraped.
#[derive(Debug)]
pub(crate) struct Wanted {
    /// Ids, or names; empty for all.
    targets: Vec<String>,
}

impl Wanted {
    pub(crate) fn new(targets: Vec<String>) -> Self {
        Self { targets }
    }

    /// Returns the counters of these processes in OpenMetrics' text form.
    pub(crate) fn scrape(&self) -> Result<String, fmt::Error> {
        let snapshots = ProcessSnapshot::processes()
            .into_iter()
            .filter_map(|process| {
                // It may have ended since.
                let snapshot = ProcessSnapshot::counters_of_process(process).ok()?;
                self.has(&snapshot).then_some(snapshot)
            });
        text_of(snapshots.collect())
    }

    fn has(&self, snapshot: &ProcessSnapshot) -> bool {
        self.targets.is_empty()
            || self.targets.iter().any(|target| {
                target.parse() == Ok(snapshot.process) || short_name(target) == snapshot.name
            })
    }
}

fn text_of(snapshots: Vec<ProcessSnapshot>) -> Result<String, fmt::Error> {
    let processes = snapshots.into_iter().map(Process::of).collect();
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Scrape { processes }));
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

/// A process in a scrape.
#[derive(Debug)]
struct Process {
    labels: [(&'static str, String); 2],
    operations: Vec<CountedOperation>,
    counters: ProcessCounters,
}

impl Process {
    fn of(snapshot: ProcessSnapshot) -> Self {
        Self {
            labels: [
                ("process", snapshot.name.clone()),
                ("pid", snapshot.process.to_string()),
            ],
            operations: snapshot.operations(),
            counters: ProcessCounters::of(&snapshot, None),
        }
    }

    /// Returns the labels of the process, and further ones.
    fn labels(&self, further: &[(&'static str, String)]) -> Vec<(&'static str, String)> {
        [&self.labels, further].concat()
    }

    fn labels_of(&self, operation: &CountedOperation) -> Vec<(&'static str, String)> {
        self.labels(&[
            ("side", operation.side.name().to_owned()),
            ("operation", operation.name.clone()),
        ])
    }
}

/// All processes of a scrape.
#[derive(Debug)]
struct Scrape {
    processes: Vec<Process>,
}

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.calls(&mut encoder)?;
        self.times(&mut encoder)?;
        self.queues(&mut encoder)?;
        self.longest(&mut encoder)?;
        self.violations(&mut encoder)?;
        self.unserved(&mut encoder)?;
        self.lanes(&mut encoder)?;
        self.refused_threads(&mut encoder)
    }
}

impl Scrape {
    fn operations(&self) -> impl Iterator<Item = (&Process, &CountedOperation)> {
        self.processes
            .iter()
            .flat_map(|process| process.operations.iter().map(move |it| (process, it)))
    }

    fn calls(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Calls that ended, by their outcome";
        let mut family =
            encoder.encode_descriptor("rtorb_calls", help, None, MetricType::Counter)?;
        for (process, operation) in self.operations() {
            for outcome in CallOutcome::ALL {
                let mut labels = process.labels_of(operation);
                labels.push(("outcome", outcome.name().to_owned()));
                family
                    .encode_family(&labels)?
                    .encode_counter::<NoLabelSet, _, f64>(
                        &operation.outcomes[outcome as usize],
                        None,
                    )?;
            }
        }
        Ok(())
    }

    fn times(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Times of calls: of a client all of a call, of a server the servant's turn with the reply. The sum is that of the upper \
                    ends of the recorder's buckets, at most a quarter too large";
        self.histograms(encoder, "rtorb_call_time", help, |it| &it.times)
    }

    fn queues(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help =
            "Times of requests in a queue of the server; those that went into none are not counted";
        self.histograms(encoder, "rtorb_queue_time", help, |it| &it.waits)
    }

    fn histograms(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        name: &str,
        help: &str,
        histogram: impl Fn(&CountedOperation) -> &Histogram,
    ) -> fmt::Result {
        let mut family =
            encoder.encode_descriptor(name, help, Some(&Unit::Seconds), MetricType::Histogram)?;
        for (process, operation) in self.operations() {
            let Buckets { sum, count, counts } = Buckets::of(histogram(operation));
            family
                .encode_family(&process.labels_of(operation))?
                .encode_histogram::<NoLabelSet>(sum, count, &counts, None)?;
        }
        Ok(())
    }

    fn longest(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "The longest time of a call since the recorder was started";
        let seconds = Some(&Unit::Seconds);
        let mut family =
            encoder.encode_descriptor("rtorb_longest_call", help, seconds, MetricType::Gauge)?;
        for (process, operation) in self.operations() {
            family
                .encode_family(&process.labels_of(operation))?
                .encode_gauge(&operation.longest.as_secs_f64())?;
        }
        Ok(())
    }

    /// What operations did against their annotations.
    fn violations(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        type Count = fn(&CountedOperation) -> u64;
        let each: [(&str, &str, Count); 2] = [
            (
                "rtorb_deadline_misses",
                "Calls that ended later than the deadline of their operation's annotation",
                |operation| operation.deadline_misses,
            ),
            (
                "rtorb_demotions",
                "Requests whose threads were demoted, because the servant executed longer than its worst case",
                |operation| operation.demotions,
            ),
        ];
        for (name, help, count) in each {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for (process, operation) in self.operations() {
                family
                    .encode_family(&process.labels_of(operation))?
                    .encode_counter::<NoLabelSet, _, f64>(&count(operation), None)?;
            }
        }
        Ok(())
    }

    fn unserved(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Requests that were not served: refused by a queue without room, shed for a more critical one, or expired. Those of a thread \
                    that has ended count until a thread of another lane takes its place in the recorder: the sum becomes less then";
        let mut family =
            encoder.encode_descriptor("rtorb_unserved", help, None, MetricType::Counter)?;
        for process in &self.processes {
            let unserved = process.counters.unserved;
            for (reason, count) in [
                ("refused", unserved.refused),
                ("shed", unserved.shed),
                ("expired", unserved.expired),
            ] {
                family
                    .encode_family(&process.labels(&[("reason", reason.to_owned())]))?
                    .encode_counter::<NoLabelSet, _, f64>(&count, None)?;
            }
        }
        Ok(())
    }

    fn lanes(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Calls that the threads of a lane served";
        let mut family =
            encoder.encode_descriptor("rtorb_lane_served", help, None, MetricType::Counter)?;
        let rows = || {
            self.processes.iter().flat_map(|process| {
                process.counters.lanes.iter().map(move |row| {
                    let labels = process.labels(&[
                        ("pool", row.pool.to_string()),
                        ("priority", row.priority.to_string()),
                    ]);
                    (labels, row)
                })
            })
        };
        for (labels, row) in rows() {
            family
                .encode_family(&labels)?
                .encode_counter::<NoLabelSet, _, f64>(&row.served, None)?;
        }
        let help = "The most requests that the queue of a lane had accepted and not served";
        let mut family =
            encoder.encode_descriptor("rtorb_lane_most_accepted", help, None, MetricType::Gauge)?;
        for (labels, row) in rows() {
            family
                .encode_family(&labels)?
                .encode_gauge(&(row.most_accepted as f64))?;
        }
        Ok(())
    }

    fn refused_threads(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Threads that are not recorded, because the recorder has no room for more";
        let mut family =
            encoder.encode_descriptor("rtorb_refused_threads", help, None, MetricType::Counter)?;
        for process in &self.processes {
            family
                .encode_family(&process.labels(&[]))?
                .encode_counter::<NoLabelSet, _, f64>(&process.counters.refused_threads, None)?;
        }
        Ok(())
    }
}

/// A histogram in the buckets that Prometheus has.
#[derive(Debug, PartialEq)]
struct Buckets {
    sum: f64,
    count: u64,
    /// Upper ends in seconds, and how many times are in each bucket.
    counts: Vec<(f64, u64)>,
}

impl Buckets {
    /// Puts each bucket of the recorder into the first one of ours that has all its times.
    fn of(histogram: &Histogram) -> Self {
        let mut counts: BTreeMap<usize, u64> = BTreeMap::new();
        let mut sum = 0.0;
        for (upper, count) in histogram.buckets() {
            *counts.entry(place(upper)).or_default() += count;
            sum += upper.as_secs_f64() * count as f64;
        }
        let ends = ENDS_US.iter().map(|us| f64::from(*us) / 1e6);
        let ends = ends.chain([f64::INFINITY]).enumerate();
        Self {
            sum,
            count: histogram.count(),
            counts: ends
                .map(|(place, end)| (end, counts.get(&place).copied().unwrap_or(0)))
                .collect(),
        }
    }
}

/// Returns the number of the bucket for times below `upper`.
fn place(upper: Duration) -> usize {
    ENDS_US.partition_point(|us| Duration::from_micros(u64::from(*us)) < upper)
}

/// The upper ends of the buckets, in us: 1, 2 and 5 of each power of ten, from a collocated call to the timeouts of slow ones.
const ENDS_US: [u32; 22] = [
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000,
    200_000, 500_000, 1_000_000, 2_000_000, 5_000_000, 10_000_000,
];

#[cfg(test)]
mod tests {
    use super::*;
    use rtorb::recorder::{CallSide, RecordedLane, ThreadSnapshot};

    #[test]
    fn a_time_is_in_the_first_bucket_that_ends_behind_it() {
        let us = Duration::from_micros;
        assert_eq!(place(Duration::from_nanos(7)), 0);
        assert_eq!(place(us(1)), 0);
        assert_eq!(place(Duration::from_nanos(1_001)), 1);
        assert_eq!(place(us(10_000_000)), ENDS_US.len() - 1);
        assert_eq!(place(us(10_000_001)), ENDS_US.len(), "without an end");
        assert!(ENDS_US.is_sorted());
    }

    /// A process whose counters all differ.
    fn plant() -> ProcessSnapshot {
        let operation = CountedOperation {
            name: "get".to_owned(),
            side: CallSide::Server,
            outcomes: [1, 2, 3, 4, 5, 6],
            times: Histogram::new(1e9, |bucket| if bucket == 1 { 21 } else { 0 }),
            longest: Duration::from_secs(9),
            waits: Histogram::new(1e9, |bucket| if bucket == 1 { 8 } else { 0 }),
            deadline_misses: 10,
            demotions: 11,
        };
        let thread = ThreadSnapshot {
            thread: 1,
            name: "worker".to_owned(),
            lane: Some(RecordedLane {
                pool: 2,
                priority: 60,
            }),
            most_accepted: 12,
            refused: 13,
            shed: 14,
            expired: 15,
            operations: vec![operation],
            events: Vec::new(),
            overwritten: 0,
        };
        ProcessSnapshot {
            process: 7,
            name: "plant".to_owned(),
            at_ns: 2_000,
            started_ns: 1_000,
            threads: vec![thread],
            refused_threads: 16,
        }
    }

    #[test]
    fn each_counter_has_its_line() {
        let text = text_of(vec![plant()]).expect("it can be written");
        let of_process = "process=\"plant\",pid=\"7\"";
        let get = format!("{of_process},side=\"server\",operation=\"get\"");
        let lane = format!("{of_process},pool=\"2\",priority=\"60\"");
        let mut expected = vec![
            format!("rtorb_call_time_seconds_count{{{get}}} 21"),
            format!("rtorb_queue_time_seconds_count{{{get}}} 8"),
            format!("rtorb_longest_call_seconds{{{get}}} 9.0"),
            format!("rtorb_deadline_misses_total{{{get}}} 10"),
            format!("rtorb_demotions_total{{{get}}} 11"),
            format!("rtorb_lane_served_total{{{lane}}} 21"),
            format!("rtorb_lane_most_accepted{{{lane}}} 12.0"),
            format!("rtorb_refused_threads_total{{{of_process}}} 16"),
        ];
        for (outcome, count) in CallOutcome::ALL.iter().zip(1..) {
            let outcome = outcome.name();
            expected.push(format!(
                "rtorb_calls_total{{{get},outcome=\"{outcome}\"}} {count}"
            ));
        }
        for (reason, count) in [("refused", 13), ("shed", 14), ("expired", 15)] {
            expected.push(format!(
                "rtorb_unserved_total{{{of_process},reason=\"{reason}\"}} {count}"
            ));
        }
        for line in expected {
            assert!(text.lines().any(|it| it == line), "no {line} in {text}");
        }
    }

    #[test]
    fn without_a_process_the_text_has_its_end_alone() {
        let text = text_of(Vec::new()).expect("it can be written");
        assert!(text.ends_with("# EOF\n"), "{text}");
        assert!(!text.contains('{'), "{text}");
    }
}
