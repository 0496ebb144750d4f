//! MT_Cubit on each operating system.

use crate::experiments::prelude::*;
use rtorb_results::summary::words::shown;

/// P0 Figures 4 and 5, and P4's finding.
pub(in crate::experiments) fn latency_jitter(gathered: &Gathered<'_>) -> Results {
    let high = labels([
        ("orb", "rtorb".into()),
        ("part", "call".into()),
        ("preset", "tao".into()),
        ("role", "high".into()),
    ]);
    let under = gathered.under;
    let figures = TableView::new(
        "latency-and-jitter",
        "High-priority latency, jitter in parentheses",
    )
    .caption("Over the number of low-priority clients, as P0 Figures 4 and 5.")
    .of(high.clone())
    .rows(gathered.with_load(&[SYSTEM]))
    .columns(CLIENTS.map(str::to_owned).to_vec())
    .values([CellValue::MeanAndDeviation]);
    let hardest = hardest(gathered, &high);
    let finding = under_load(&high, under);
    let line = |id: &str, title: &str, value: StatisticName| {
        Plot::line_chart(id, title)
            .caption("Preset `tao`, a line a system.")
            .of(high.clone())
            .choose([under, "load", "servant_work_us"])
            .lines([SYSTEM])
            .x("low_clients")
            .x_title("low-priority clients")
            .values([value])
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
    let mut outcome = compared.results(gathered, vec![finding, figures], plots);
    outcome.conclusions.splice(0..0, by_load(gathered, &high));
    outcome
}

/// P4's finding: the worst call of these series by system and load.
fn under_load(high: &Labels, under: &str) -> TableView {
    TableView::new("under-load", "The high-priority client under load: its worst call")
        .caption(
            "P4's question: what load does to the most urgent call on each system, from the moment at which the client is to \
             call until it has the reply. A column for each crowd of low-priority clients beside it.",
        )
        .of(high.clone())
        .rows([SYSTEM, under])
        .columns(CLIENTS.map(str::to_owned).to_vec())
        .values([CellValue::Worst])
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
    let unit = gathered.unit();
    let mut said = Vec::new();
    for load in gathered.values(high, gathered.under) {
        for part in gathered.parts.iter().filter(|_| load != none) {
            let (Some(alone_ns), Some(loaded_ns)) =
                (worst(&part.name, &none), worst(&part.name, &load))
            else {
                continue;
            };
            said.push(format!(
                "Worst call of the high-priority client on {}: {} {unit} without load, {} {unit} under {load}: {:.2} times.",
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
pub(in crate::experiments) fn architectures(gathered: &Gathered<'_>) -> Results {
    let high = labels([
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
        TableView::new(
            &format!("architectures-{load}"),
            &format!("The high-priority client by architecture, load {load}"),
        )
        .caption(format!(
            "Of each architecture alone and beside low-priority clients ({}).",
            condition(&hardest)
        ))
        .of(of)
        .rows(["preset", "low_clients"])
        .columns([SYSTEM])
        .values(WHOLE.to_vec())
    };
    let bars = Plot::bars("architectures", "Worst call of the high-priority client")
        .caption(format!("By architecture ({}).", condition(&hardest)))
        .of(hardest.clone())
        .choose([under])
        .lines([SYSTEM])
        .x("preset")
        .x_title("architecture")
        .values([StatisticName::Max])
        .log_y();
    let compared = Compared {
        what: "Worst call of the high-priority client",
        of: &hardest,
        by: By::Worst,
    };
    let loads = gathered.values(&high, under);
    compared.results(gathered, loads.into_iter().map(table).collect(), vec![bars])
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
