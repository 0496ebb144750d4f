//! What the overheads say, beside what P3 says.

use rtorb_results::statistics::median;
use rtorb_results::{Plot, PlotKind, Published, PublishedPoints, StatisticName, labels};

use super::PROGRAM_NS;
use super::equations::FINE_BELOW_NS;
use super::measured::{Cell, Measured};
use super::tick::Tick;

/// Whether a tick costs less when it comes more rarely, how much of the CPU ticks take, and whether they all came.
pub(super) fn conclusions(measured: &Measured) -> Vec<String> {
    let of_ticks = Tick::ALL.into_iter().flat_map(|tick| {
        [
            falls(measured, tick),
            noise(measured, tick),
            by_count(measured, tick),
            shares(measured, tick),
        ]
        .into_iter()
        .flatten()
    });
    of_ticks.chain(counts(measured)).collect()
}

/// From the finest resolution to the coarsest at which Eq. (5) is defined and a tick stands out, compared within each round
/// by counted ticks: what Eq. (3) leaves out would be taken for a fall.
fn falls(measured: &Measured, tick: Tick) -> Option<String> {
    let cells: Vec<_> = measured
        .cells(tick)
        .filter(|(resolution_ns, cell)| *resolution_ns < PROGRAM_NS && cell.is_above_noise())
        .collect();
    let [(fine_ns, finest), .., (coarse_ns, coarsest)] = cells[..] else {
        return None;
    };
    let pairs = finest
        .overhead_by_count_ns
        .iter()
        .zip(&coarsest.overhead_by_count_ns);
    let (mut rounds, mut falling, mut growing) = (0usize, 0usize, 0usize);
    for (fine, coarse) in pairs {
        rounds += 1;
        falling += usize::from(coarse < fine);
        growing += usize::from(coarse > fine);
    }
    let verdict = match (falling * 4 >= rounds * 3, growing * 4 >= rounds * 3) {
        (true, _) => "falls as the resolution gets coarser, as P3 found",
        (_, true) => "grows as the resolution gets coarser, against P3",
        _ => "neither falls nor grows with the resolution beyond the noise of this run",
    };
    Some(format!(
        "The overhead of a tick by {} (from medians, by the ticks that were counted) {verdict}: {} us at {} us, {} us at {} us, the coarsest at which it stands out; \
         less at the coarser one in {falling} of {rounds} rounds.",
        tick.label(),
        us(finest.by_count_ns()?),
        fine_ns / 1_000,
        us(coarsest.by_count_ns()?),
        coarse_ns / 1_000,
    ))
}

/// Where Eq. (5) over e_0 says little of the tick.
fn noise(measured: &Measured, tick: Tick) -> Option<String> {
    let of = |(resolution_ns, cell): (u64, &Cell)| {
        Some(format!(
            "at {} us it says {} us, and {} us of executions without any tick (from medians: {} us)",
            resolution_ns / 1_000,
            us(cell.eq_5_ns()?),
            us(cell.no_tick_ns()?),
            us(cell.typical_ns()?),
        ))
    };
    let drowned = measured
        .cells(tick)
        .filter(|(_, cell)| !cell.is_above_noise());
    let each: Vec<String> = drowned.filter_map(of).collect();
    (!each.is_empty()).then(|| {
        format!(
            "Eq. (5) over the shortest execution, as P3 has it, is no measure of a tick by {} where few ticks come: {}.",
            tick.label(),
            each.join("; ")
        )
    })
}

/// Without any equation, where ticks come while ticks are served.
fn by_count(measured: &Measured, tick: Tick) -> Option<String> {
    let of = |(resolution_ns, cell): (u64, &Cell)| {
        Some(format!(
            "{} us instead of {} at {} us",
            us(cell.by_count_ns()?),
            us(cell.typical_ns()?),
            resolution_ns / 1_000
        ))
    };
    let fine = measured
        .cells(tick)
        .filter(|(resolution_ns, _)| *resolution_ns <= FINE_BELOW_NS);
    let each: Vec<String> = fine.filter_map(of).collect();
    (!each.is_empty()).then(|| {
        format!(
            "By the ticks that were counted, and no equation, one by {} takes {} (Eq. (5) from medians).",
            tick.label(),
            each.join(", ")
        )
    })
}

fn shares(measured: &Measured, tick: Tick) -> Option<String> {
    let share = |(resolution_ns, cell): (u64, &Cell)| {
        let share = median(&cell.shares(resolution_ns))?;
        Some(format!(
            "{:.2} % at {} us",
            share * 100.0,
            resolution_ns / 1_000
        ))
    };
    let cells = measured.cells(tick);
    let all: Vec<String> = cells
        .filter(|(resolution_ns, _)| *resolution_ns <= SHARES_UP_TO_NS)
        .filter_map(share)
        .collect();
    (!all.is_empty()).then(|| {
        format!(
            "Ticks by {} take of the CPU: {}.",
            tick.label(),
            all.join(", ")
        )
    })
}

fn counts(measured: &Measured) -> Option<String> {
    let cells = Tick::ALL
        .into_iter()
        .flat_map(|tick| measured.cells(tick).map(|(_, cell)| cell));
    let (all, off) = cells.fold((0.0, 0.0), |(all, off), cell| {
        let (more, more_off) = cell.executions_and_off();
        (all + more, off + more_off)
    });
    (all > 0.0).then(|| {
        format!("In {off:.0} of {all:.0} executions the ticks that were counted differed by more than one from those that the measured \
                 time has room for.")
    })
}

/// P3's text beside the least and the most of the resolutions at which its own equation is defined, and a tick stands out.
pub(super) fn published(measured: &Measured) -> Vec<Published> {
    let ours = |value: fn(&Cell) -> Option<f64>| {
        let of = |tick: Tick| {
            let cells = measured.cells(tick).filter(|(resolution_ns, cell)| {
                *resolution_ns < PROGRAM_NS && cell.is_above_noise()
            });
            let values: Vec<f64> = cells.filter_map(|(_, cell)| value(cell)).collect();
            let least = values.iter().copied().reduce(f64::min)?;
            let most = values.iter().copied().reduce(f64::max)?;
            Some(format!(
                "{} to {} us by {}",
                us(least),
                us(most),
                tick.label()
            ))
        };
        let each: Vec<String> = Tick::ALL.into_iter().filter_map(of).collect();
        each.join(", ")
    };
    let typical = ours(Cell::typical_ns);
    if typical.is_empty() {
        return Vec::new();
    }
    let max = ours(|cell| Some(cell.max_ns()));
    let beside = |what: &str, published: &str, ours: &str| Published {
        source: "P3 section 5.1".to_owned(),
        what: what.to_owned(),
        published: published.to_owned(),
        ours: ours.to_owned(),
    };
    let mut all = vec![
        beside(
            "normal overhead of a tick, QNX on Pentium 133 and 166",
            "around 5 to 7 us",
            &typical,
        ),
        beside("maximum, QNX", "around 30 us", &max),
        beside(
            "normal overhead of a tick, Real-Time Linux on Pentium 133 and 166",
            "around 20 us",
            &typical,
        ),
        beside("maximum, Real-Time Linux", "around 60 us", &max),
        beside(
            "overhead of a tick, OSEKWorks on an MPC 555",
            "around 60 us, 70 us at 0.1 ms",
            &typical,
        ),
    ];
    let fall = Tick::ALL
        .into_iter()
        .filter_map(|tick| falls(measured, tick));
    all.push(beside(
        "overhead against the distance of ticks",
        "tends to decrease in general as the duration between clock ticks increases",
        &fall.collect::<Vec<_>>().join(" "),
    ));
    all
}

pub(super) fn plots(resolutions_us: &[u64]) -> Vec<Plot> {
    if resolutions_us.len() < 2 {
        return Vec::new();
    }
    let against_resolution = Plot {
        kind: PlotKind::Lines,
        x: "resolution_us".to_owned(),
        x_title: "from tick to tick (us)".to_owned(),
        values: vec![
            StatisticName::Min,
            StatisticName::P50,
            StatisticName::Mean,
            StatisticName::Max,
        ],
        log_x: true,
        log_y: true,
        ..Plot::default()
    };
    let overhead = Plot {
        id: "overhead-against-resolution".to_owned(),
        title: "What a tick costs, against the distance of ticks".to_owned(),
        caption: "Minimum, median, mean and maximum of Eq. (5) over all executions. What else delays the program is divided by the number \
                  of ticks and counted as theirs: the fewer ticks, the more of it. The published levels are from the text, \
                  which names no resolution but 0.1 ms."
            .to_owned(),
        of: labels([("what", "overhead".into())]),
        choose: vec!["tick".to_owned()],
        published: published_levels(resolutions_us),
        ..against_resolution.clone()
    };
    let noise = Plot {
        id: "overhead-and-noise".to_owned(),
        title: "What of that is the tick".to_owned(),
        caption: "Medians of the rounds. `overhead` is Eq. (5) over the shortest execution without ticks, as P3 has it; \
                  `overhead_of_no_tick` what it says of executions without any tick; `overhead_from_medians` Eq. (5) over their \
                  median, in which what else delays the program cancels."
            .to_owned(),
        choose: vec!["tick".to_owned()],
        lines: vec!["what".to_owned()],
        values: vec![StatisticName::P50],
        ..against_resolution.clone()
    };
    let execution = Plot {
        id: "execution-against-resolution".to_owned(),
        title: "How long the program takes, against the distance of ticks".to_owned(),
        caption: "What was measured: e_m of Eq. (1). The point without ticks stands at 100 ms."
            .to_owned(),
        of: labels([("what", "execution".into()), ("part", "execution".into())]),
        lines: vec!["tick".to_owned()],
        log_y: false,
        ..against_resolution
    };
    vec![overhead, noise, execution]
}

/// P3's levels, as lines from the finest resolution of this run to its coarsest.
fn published_levels(resolutions_us: &[u64]) -> Vec<PublishedPoints> {
    let [finest, .., coarsest] = resolutions_us else {
        return Vec::new();
    };
    let level = |name: &str, value: f64| PublishedPoints {
        source: "P3 section 5.1".to_owned(),
        name: name.to_owned(),
        points: vec![((*finest).into(), value), ((*coarsest).into(), value)],
        ..PublishedPoints::default()
    };
    let mut published = vec![
        level("QNX, normal, lower end", 5.0),
        level("QNX, normal, upper end", 7.0),
        level("QNX, maximum", 30.0),
        level("Real-Time Linux", 20.0),
        level("Real-Time Linux, maximum", 60.0),
    ];
    let mut osek = level("OSEKWorks", 60.0);
    if let [100, next, ..] = resolutions_us {
        osek.points[0] = ((*next).into(), 60.0);
        osek.points.insert(0, ((*finest).into(), 70.0));
    }
    published.push(osek);
    published
}

/// What a reader must know of the numbers.
pub(super) fn notes(kernel_hz: Option<u32>, real_time: bool) -> Vec<String> {
    let kernel = match kernel_hz {
        Some(hz) => format!("The kernel's own tick (CONFIG_HZ={hz})"),
        None => "The kernel's own tick".to_owned(),
    };
    let mut notes = vec![
        "The tick is a real timer on the program's CPU. `signal`: a periodic POSIX timer whose signal the program's own thread \
         handles. `thread`: a thread of higher priority that wakes at an absolute time and sleeps again, which is an interrupt \
         and two context switches."
            .to_owned(),
        format!("{kernel} comes in all executions, those without ticks of ours too: it is in e, and not in the overhead."),
        "Every execution begins in phase with its tick: the first comes one resolution after the beginning of the program. At \
         resolutions longer than the program none would come and Eq. (5) would divide by 0: there the first comes in its middle."
            .to_owned(),
        "e is the shortest execution without ticks of the same round (Eq. 6). An execution shorter than that has a negative \
         overhead, which counts as 0 in the series (`clamped_share`). Whatever else delays the program counts as overhead, as \
         in P3: `overhead_of_no_tick` is what Eq. (5) says of the executions without ticks themselves. \
         `overhead_from_medians` compares the median with and without ticks, so that it cancels; conclusions use it."
            .to_owned(),
        "Eq. (3) and (4) leave out ticks that come while ticks are served, beyond the first or at all: at a tick that takes a third \
         of its resolution Eq. (5) finds a tenth too much. `overhead_by_counted_ticks` divides by the ticks that were counted."
            .to_owned(),
    ];
    if !real_time {
        notes.push(NOT_REAL_TIME.to_owned());
    }
    notes
}

fn us(ns: f64) -> String {
    format!("{:.2}", ns / 1e3)
}

/// Above this, a tick takes less of the CPU than this experiment sees.
const SHARES_UP_TO_NS: u64 = 1_000_000;

const NOT_REAL_TIME: &str = "Program and tick did not have SCHED_FIFO: others ran in between, and the thread may tick late or not \
                             at all while the program runs. The numbers are those of the host, not of its timer.";

#[cfg(test)]
mod tests {
    use super::super::NO_TICK_NS;
    use super::super::measured::tests::measured;
    use super::super::probe::Executions;
    use super::*;
    use crate::processes::probe::Answer;

    #[test]
    fn the_verdict_follows_the_numbers() {
        let said = |overhead: fn(u64) -> u64| conclusions(&measured(overhead)).join("\n");
        let falling = said(|resolution_ns| 9_000 - resolution_ns / 10_000);
        assert!(falling.contains("falls as the resolution"), "{falling}");
        assert!(falling.contains("in 3 of 3 rounds"), "{falling}");
        let growing = said(|resolution_ns| 5_000 + resolution_ns / 10_000);
        assert!(growing.contains("against P3"), "{growing}");
    }

    #[test]
    fn what_eq_3_leaves_out_is_not_taken_for_a_fall() {
        // A tick of 32 us at any resolution, ticks among those that are served included.
        let mut measured = Measured::default();
        let asked = [NO_TICK_NS, 100_000, 200_000, 1_000_000].map(|resolution_ns| Executions {
            tick: Tick::Signal,
            resolution_ns,
            first_ns: resolution_ns,
            count: 1,
        });
        for _ in 0..4 {
            let mut samples = vec![vec![10_500_000], vec![0]];
            for resolution_ns in [100_000, 200_000, 1_000_000] {
                let ticks = 10_500_000 / (resolution_ns - 32_000);
                samples.extend([vec![10_500_000 + ticks * 32_000], vec![ticks]]);
            }
            let answer = Answer {
                samples,
                ..Answer::default()
            };
            measured.add(&asked, answer);
        }
        let said = conclusions(&measured).join("\n");
        assert!(said.contains("neither falls nor grows"), "{said}");
        assert!(said.contains("32.00 us instead of 34.81"), "{said}");
    }

    #[test]
    fn where_other_delays_drown_the_tick_that_is_said_and_not_compared() {
        // Executions without ticks differ by 4 us, of which the median is 2 us: as much as five ticks of 1 us are not.
        let said = conclusions(&measured(|_| 1_000)).join("\n");
        assert!(said.contains("no measure of a tick by signal"), "{said}");
        assert!(
            said.contains("at 10000 us it says 3.00 us, and 2.00 us of executions without any tick (from medians: 1.00 us)"),
            "{said}"
        );
        assert!(
            said.contains("1000 us, the coarsest at which it stands out"),
            "{said}"
        );
        assert!(said.contains("1.00 us instead of 1.00 at 500 us"), "{said}");
        let clear = conclusions(&measured(|_| 7_000)).join("\n");
        assert!(!clear.contains("no measure"), "{clear}");
    }

    #[test]
    fn shares_and_lost_ticks_are_told() {
        let said = conclusions(&measured(|_| 5_000)).join("\n");
        assert!(said.contains("1.00 % at 500 us"), "{said}");
        assert!(said.contains("In 0 of 36 executions"), "{said}");
    }

    #[test]
    fn every_published_figure_has_ours_beside_it() {
        let all = published(&measured(|_| 5_000));
        assert!(all.iter().all(|one| !one.ours.is_empty()));
        assert!(all[0].ours.contains("5.00 to 5.00 us by signal"), "{all:?}");
        assert!(published(&Measured::default()).is_empty());
        // 3 us at 10 ms are not twice the 2 us of executions without any tick: they are left out.
        let drowned = published(&measured(|resolution_ns| match resolution_ns {
            10_000_000 => 3_000,
            _ => 5_000,
        }));
        let ours = &drowned[0].ours;
        assert!(ours.contains("5.00 to 5.00 us by signal"), "{ours}");
    }

    #[test]
    fn published_levels_span_the_axis() {
        let plots = plots(&[100, 200, 10_000]);
        let osek = plots[0].published.last().unwrap();
        assert_eq!(
            osek.points,
            [
                (100u64.into(), 70.0),
                (200u64.into(), 60.0),
                (10_000u64.into(), 60.0)
            ]
        );
        assert!(super::plots(&[100]).is_empty());
    }
}
