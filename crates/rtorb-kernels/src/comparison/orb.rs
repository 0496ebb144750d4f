//! What the ORB does on each operating system.

use rtorb_lab::experiment::Outcome;
use rtorb_results::campaign::SYSTEM;
use rtorb_results::summary::words::shown;
use rtorb_results::{CellValue, LabelValue, Labels, Plot, PlotKind, StatisticName, TableView};

use super::differences::{By, Compared};
use super::gathered::Gathered;
use super::with;

/// P0 Figure 2: operations a second by type.
pub(super) fn throughput(gathered: &Gathered<'_>) -> Outcome {
    let of = with(&[
        ("orb", "rtorb".into()),
        ("part", "call".into()),
        ("preset", "default".into()),
        ("transport", "tcp".into()),
    ]);
    let table = |id: &str, title: &str, value: CellValue| TableView {
        id: id.to_owned(),
        title: title.to_owned(),
        caption: SECOND.to_owned(),
        of: of.clone(),
        rows: gathered.with_load(&[SYSTEM]),
        columns: vec!["operation".to_owned(), "len".to_owned()],
        values: vec![value],
        ..TableView::default()
    };
    let bars = Plot {
        id: "throughput".to_owned(),
        title: "Operations a second".to_owned(),
        caption: format!("Over TCP, one client. {SECOND}"),
        kind: PlotKind::Bars,
        of: of.clone(),
        choose: vec!["load".to_owned()],
        lines: vec![SYSTEM.to_owned()],
        x: "operation".to_owned(),
        x_title: "operation".to_owned(),
        values: vec![StatisticName::CallsPerSecond],
        ..Plot::default()
    };
    let tables = vec![
        table(
            "calls",
            "Operations a second over TCP",
            CellValue::CallsPerSecond,
        ),
        table("time", "A call over TCP", CellValue::Median),
    ];
    let compared = Compared {
        what: "A call over TCP",
        of: &of,
        by: By::Median,
    };
    compared.outcome(gathered, tables, vec![bars])
}

/// P0 Figures 4 and 5, and P4's finding.
pub(super) fn latency_jitter(gathered: &Gathered<'_>) -> Outcome {
    let high = with(&[
        ("orb", "rtorb".into()),
        ("part", "call".into()),
        ("preset", "tao".into()),
        ("role", "high".into()),
    ]);
    let under = gathered.under;
    let figures = TableView {
        id: "latency-and-jitter".to_owned(),
        title: "High-priority latency, jitter in parentheses".to_owned(),
        caption: "Over the number of low-priority clients, as P0 Figures 4 and 5.".to_owned(),
        of: high.clone(),
        rows: gathered.with_load(&[SYSTEM]),
        columns: CLIENTS.map(str::to_owned).to_vec(),
        values: vec![CellValue::MeanAndDeviation],
        ..TableView::default()
    };
    // A call begins when the client runs: that it ran late, which is what load does on a kernel, is before it.
    let mut released = high.clone();
    released.insert("part".to_owned(), "from_release".into());
    let hardest = hardest(gathered, &released);
    let finding = under_load(&released, under);
    let line = |id: &str, title: &str, value: StatisticName| Plot {
        id: id.to_owned(),
        title: title.to_owned(),
        caption: "Preset `tao`, a line a system.".to_owned(),
        kind: PlotKind::Lines,
        of: high.clone(),
        choose: vec![
            under.to_owned(),
            "load".to_owned(),
            "servant_work_us".to_owned(),
        ],
        lines: vec![SYSTEM.to_owned()],
        x: "low_clients".to_owned(),
        x_title: "low-priority clients".to_owned(),
        values: vec![value],
        ..Plot::default()
    };
    let compared = Compared {
        what: "Worst call of the high-priority client, with its wake-up",
        of: &hardest,
        by: By::Worst,
    };
    let plots = vec![
        line(
            "high-latency",
            "High-priority latency (P0 Figure 4)",
            StatisticName::Mean,
        ),
        line(
            "high-jitter",
            "High-priority jitter (P0 Figure 5)",
            StatisticName::Stddev,
        ),
    ];
    let mut outcome = compared.outcome(gathered, vec![finding, figures], plots);
    outcome
        .conclusions
        .splice(0..0, by_load(gathered, &released));
    outcome
}

/// P4's finding: the worst call of these series by system and load.
fn under_load(released: &Labels, under: &str) -> TableView {
    TableView {
        id: "under-load".to_owned(),
        title: "The high-priority client under load: its worst call".to_owned(),
        caption: "P4's question: what load does to the most urgent call on each system, from the moment at which the client is to \
                  call until it has the reply. A column for each crowd of low-priority clients beside it."
            .to_owned(),
        of: released.clone(),
        rows: vec![SYSTEM.to_owned(), under.to_owned()],
        columns: CLIENTS.map(str::to_owned).to_vec(),
        values: vec![CellValue::Worst],
        ..TableView::default()
    }
}

/// What each load does to the worst call on each system, over all crowds of clients.
fn by_load(gathered: &Gathered<'_>, high: &Labels) -> Vec<String> {
    let worst = |system: &str, load: &LabelValue| {
        let mut of = high.clone();
        of.insert(SYSTEM.to_owned(), system.into());
        of.insert(gathered.under.to_owned(), load.clone());
        worst_of(gathered, &of)
    };
    let none = LabelValue::from("none");
    let mut said = Vec::new();
    for load in gathered.values(high, gathered.under) {
        for part in gathered.parts.iter().filter(|_| load != none) {
            let (Some(alone_ns), Some(loaded_ns)) =
                (worst(&part.name, &none), worst(&part.name, &load))
            else {
                continue;
            };
            said.push(format!(
                "Worst call of the high-priority client on {}: {} k instr without load, {} k instr under {load}: {:.2} times.",
                part.name,
                shown(alone_ns, "ns"),
                shown(loaded_ns, "ns"),
                loaded_ns / alone_ns.max(1.0)
            ));
        }
    }
    said
}

fn worst_of(gathered: &Gathered<'_>, of: &Labels) -> Option<f64> {
    let found = gathered.matching(of).into_iter();
    found.map(|series| series.statistics.max).reduce(f64::max)
}

/// P1: the architectures of four ORBs, on each system.
pub(super) fn architectures(gathered: &Gathered<'_>) -> Outcome {
    let high = with(&[
        ("orb", "rtorb".into()),
        ("part", "call".into()),
        ("role", "high".into()),
    ]);
    let hardest = hardest(gathered, &high);
    let under = gathered.under;
    let table = |load: LabelValue| {
        let mut of = hardest.clone();
        of.remove("low_clients");
        of.insert(under.to_owned(), load.clone());
        TableView {
            id: format!("architectures-{load}"),
            title: format!("The high-priority client by architecture, load {load}"),
            caption: format!(
                "Of each architecture alone and beside low-priority clients ({}).",
                condition(&hardest)
            ),
            of,
            rows: vec!["preset".to_owned(), "low_clients".to_owned()],
            columns: vec![SYSTEM.to_owned()],
            values: WHOLE.to_vec(),
            ..TableView::default()
        }
    };
    let bars = Plot {
        id: "architectures".to_owned(),
        title: "Worst call of the high-priority client".to_owned(),
        caption: format!("By architecture ({}).", condition(&hardest)),
        kind: PlotKind::Bars,
        of: hardest.clone(),
        choose: vec![under.to_owned()],
        lines: vec![SYSTEM.to_owned()],
        x: "preset".to_owned(),
        x_title: "architecture".to_owned(),
        values: vec![StatisticName::Max],
        log_y: true,
        ..Plot::default()
    };
    let compared = Compared {
        what: "Worst call of the high-priority client",
        of: &hardest,
        by: By::Worst,
    };
    let loads = gathered.values(&high, under);
    let mut outcome =
        compared.outcome(gathered, loads.into_iter().map(table).collect(), vec![bars]);
    outcome
        .conclusions
        .splice(0..0, by_architecture(gathered, &hardest));
    outcome
}

/// The worst call of each architecture on each system, the shortest first.
fn by_architecture(gathered: &Gathered<'_>, hardest: &Labels) -> Vec<String> {
    let mut said = Vec::new();
    // The most real-time system first: architectures are chosen for that.
    let reference = gathered.reference().map(|part| part.name.as_str());
    let mut parts: Vec<_> = gathered.parts.iter().collect();
    parts.sort_by_key(|part| Some(part.name.as_str()) != reference);
    for part in parts {
        let mut of = hardest.clone();
        of.insert(SYSTEM.to_owned(), part.name.clone().into());
        let worst = |preset: LabelValue| {
            let mut of = of.clone();
            of.insert("preset".to_owned(), preset.clone());
            Some((preset, worst_of(gathered, &of)?))
        };
        let presets = gathered.values(&of, "preset").into_iter();
        let mut found: Vec<(LabelValue, f64)> = presets.filter_map(worst).collect();
        found.sort_by(|left, right| left.1.total_cmp(&right.1));
        let (Some((_, least_ns)), Some((last, most_ns))) = (found.first(), found.last()) else {
            continue;
        };
        let told = found
            .iter()
            .map(|(preset, ns)| format!("{preset} {}", shown(*ns, "ns")));
        said.push(format!(
            "Worst call of the high-priority client on {}, {}: {}. {last} takes {:.1} times as long as the best.",
            part.name,
            gathered.unit(),
            told.collect::<Vec<_>>().join(", "),
            most_ns / least_ns.max(1.0)
        ));
    }
    said
}

/// P2 Figures 3 and 4.
pub(super) fn priority_inversion(gathered: &Gathered<'_>) -> Outcome {
    let of = with(&[
        ("orb", "rtorb".into()),
        ("part", "call".into()),
        ("preset", "tao".into()),
    ]);
    let table = TableView {
        id: "inversion".to_owned(),
        title: "Latency by rate, jitter in parentheses".to_owned(),
        caption: "The more often a client calls, the higher its priority: where the numbers fall from left to right, a more urgent \
                  client waits for a less urgent one."
            .to_owned(),
        of: of.clone(),
        rows: gathered.with_load(&[SYSTEM]),
        columns: vec!["servant_work_us".to_owned(), "rate_hz".to_owned()],
        values: vec![CellValue::MeanAndDeviation],
        ..TableView::default()
    };
    let bars = |id: &str, title: &str, value: StatisticName| Plot {
        id: id.to_owned(),
        title: title.to_owned(),
        caption: "A group a system, a bar a client.".to_owned(),
        kind: PlotKind::Bars,
        of: of.clone(),
        choose: vec!["servant_work_us".to_owned(), "load".to_owned()],
        lines: vec!["rate_hz".to_owned()],
        x: SYSTEM.to_owned(),
        x_title: "operating system".to_owned(),
        values: vec![value],
        ..Plot::default()
    };
    let compared = Compared {
        what: "Worst call",
        of: &of,
        by: By::Worst,
    };
    let plots = vec![
        bars(
            "inversion-latency",
            "Latency by rate (P2 Figure 3)",
            StatisticName::Mean,
        ),
        bars(
            "inversion-jitter",
            "Jitter by rate (P2 Figure 4)",
            StatisticName::Stddev,
        ),
    ];
    compared.outcome(gathered, vec![table], plots)
}

/// P4 Figures 6 to 8.
pub(super) fn histogram(gathered: &Gathered<'_>) -> Outcome {
    let of = with(&[("role", "high".into()), ("part", "call".into())]);
    let mut apart = gathered.telling(&of);
    apart.retain(|name| name != "load");
    let table = TableView {
        id: "histogram".to_owned(),
        title: "From the edge to the output, high-priority receiver".to_owned(),
        caption: "P4 Figures 6 to 8 in numbers.".to_owned(),
        of: of.clone(),
        rows: vec![SYSTEM.to_owned(), "load".to_owned()],
        columns: apart.clone(),
        values: WHOLE.to_vec(),
        ..TableView::default()
    };
    let picture = Plot {
        id: "histogram".to_owned(),
        title: "Latency histograms (P4 Figures 6 to 8)".to_owned(),
        caption: "Of each system without and with load: how far to the right the last sample lies counts for a deadline.".to_owned(),
        kind: PlotKind::Histogram,
        of: of.clone(),
        choose: apart,
        lines: vec![SYSTEM.to_owned(), "load".to_owned()],
        log_x: true,
        log_y: true,
        ..Plot::default()
    };
    let compared = Compared {
        what: "Worst from edge to output",
        of: &of,
        by: By::Worst,
    };
    compared.outcome(gathered, vec![table], vec![picture])
}

/// With these labels, the most low-priority clients that keep the CPU busy.
fn hardest(gathered: &Gathered<'_>, of: &Labels) -> Labels {
    let mut hardest = of.clone();
    let saturating = LabelValue::from("saturating");
    if gathered.values(&hardest, "load").contains(&saturating) {
        hardest.insert("load".to_owned(), saturating);
    }
    for name in ["servant_work_us", "low_clients"] {
        if let Some(most) = gathered.most(&hardest, name) {
            hardest.insert(name.to_owned(), most);
        }
    }
    hardest
}

/// Under which circumstances the clients called, in words.
fn condition(labels: &Labels) -> String {
    let names = CLIENTS.map(str::to_owned);
    rtorb_results::summary::words::said_of(&names, labels)
}

/// What tells the crowds of low-priority clients apart.
const CLIENTS: [&str; 3] = ["load", "servant_work_us", "low_clients"];
/// A whole distribution in three numbers.
const WHOLE: [CellValue; 3] = [CellValue::Median, CellValue::P99, CellValue::Worst];
const SECOND: &str = "A second is one of virtual time: 1,000,000,000 guest instructions.";
