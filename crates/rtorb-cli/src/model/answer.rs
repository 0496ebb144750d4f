//! Prints a report for people: the verdict, the bounds with their shares, and the configuration of the ORBs.

use rtorb_results::table::Table;
use rtorb_sched::model::{
    BehaviourBound, CauseEffectBound, ChainBound, CheckReport, CommunicationLabel,
    ComponentLoading, LaneLoading, LaneOrder, LatencyBound, Layer, Share, Standing, rounded_down,
    rounded_up,
};
use rtorb_sched::times::text_of_ns;

use crate::colour::Tone;
use crate::output::{columns, indented, line, line_in, print_table};

/// Prints the whole report.
pub(super) fn print(checked: &CheckReport) -> anyhow::Result<()> {
    let tone = Tone::of(standing_word(checked.standing));
    verdict(tone, &checked.verdict())?;
    print_explanations(checked)?;
    print_behaviours(checked)?;
    print_layers(checked)?;
    print_chains(checked)?;
    print_cause_effect_chains(checked)?;
    print_processors(checked)?;
    print_loading(checked)?;
    print_assumptions(checked)
}

/// Prints the shares of a behaviour's bound.
pub(super) fn print_behaviour(one: &BehaviourBound) -> anyhow::Result<()> {
    let end = if one.behaviour == one.root {
        one.behaviour.clone()
    } else {
        format!("{} from the arrival of {}", one.behaviour, one.root)
    };
    print_shares(&end, one.bound_ns, &one.shares)?;
    let others = one.by_root.iter().filter(|(root, _)| *root != one.root);
    for (root, bound_ns) in others {
        line(format!(
            "  from the arrival of {root}: {}",
            bound(*bound_ns)
        ))?;
    }
    explain(&one.explanation)
}

/// Prints the shares of a chain's bound.
pub(super) fn print_chain(one: &ChainBound) -> anyhow::Result<()> {
    print_shares(&one.chain, one.bound_ns, &one.shares)?;
    explain(&one.explanation)
}

/// Prints the shares of a cause-effect chain's data age and reaction time.
pub(super) fn print_cause_effect_chain(one: &CauseEffectBound) -> anyhow::Result<()> {
    for (what, latency) in latencies(one) {
        let rows = latency.shares.iter();
        let rows = rows.map(|share| vec![share.what.clone(), rounded_up(share.ns)]);
        let last = vec![format!("{what} of {}", one.chain), bound(latency.bound_ns)];
        print_table(&table(["", ""], rows.chain([last]).collect()))?;
        explain(&latency.explanation)?;
    }
    Ok(())
}

fn explain(explanation: &str) -> anyhow::Result<()> {
    if explanation.is_empty() {
        Ok(())
    } else {
        paragraph(explanation, ["", ""])
    }
}

fn print_shares(name: &str, bound_ns: Option<u64>, shares: &[Share]) -> anyhow::Result<()> {
    let rows = shares.iter().map(|share| {
        vec![
            share.what.clone(),
            share.layer.to_string(),
            share.times.to_string(),
            signed(share.ns, rounded_up),
        ]
    });
    let bound = vec![
        format!("bound of {name}"),
        String::new(),
        String::new(),
        bound(bound_ns),
    ];
    print_table(&table(
        ["", "layer", "times", "in all"],
        rows.chain([bound]).collect(),
    ))
}

fn print_explanations(checked: &CheckReport) -> anyhow::Result<()> {
    let behaviours = checked.behaviours.iter();
    let behaviours = behaviours.map(|one| (&one.behaviour, one.standing, &one.explanation));
    let chains = checked.chains.iter();
    let chains = chains.map(|one| (&one.chain, one.standing, &one.explanation));
    for (name, standing, explanation) in behaviours.chain(chains) {
        if !explanation.is_empty() {
            let text = format!("{name} {}: {explanation}", standing_word(standing));
            paragraph(&text, ["  * ", "    "])?;
        }
    }
    for one in &checked.cause_effect_chains {
        for (what, latency) in latencies(one) {
            if latency.standing != Standing::Holds {
                let (word, why) = (standing_word(latency.standing), &latency.explanation);
                let text = format!("{} {word}, {what}: {why}", one.chain);
                paragraph(&text, ["  * ", "    "])?;
            }
        }
    }
    Ok(())
}

fn print_behaviours(checked: &CheckReport) -> anyhow::Result<()> {
    let head = [
        "behaviour",
        "",
        "bound",
        "deadline",
        "slack",
        "may grow",
        "priority",
        "period",
        "processor",
    ];
    let only = match checked.processors.as_slice() {
        [only] => format!(" (all on {}/{})", only.node, only.cpu),
        _ => String::new(),
    };
    heading(&format!(
        "Behaviours: latest end, from the arrival of their root{only}"
    ))?;
    let rows = checked.behaviours.iter().map(|one| {
        let mut row = behaviour_row(one);
        row.push(if only.is_empty() {
            one.processor.clone()
        } else {
            String::new()
        });
        row
    });
    print_table(&table(head, rows.collect()))?;
    if checked.behaviours.iter().any(|one| one.assigned) {
        let text = format!("* priority assigned by the strategy {}", checked.strategy);
        paragraph(&text, ["  ", "    "])?;
    }
    print_what_breaks(checked)
}

/// Prints what misses its deadline first when a behaviour grows by more than it may, once for all behaviours with the same
/// result.
fn print_what_breaks(checked: &CheckReport) -> anyhow::Result<()> {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for one in &checked.behaviours {
        let found = one.sensitivity.as_ref();
        let may_grow = found.filter(|found| found.may_grow_ns.is_some_and(|ns| ns >= 0));
        let Some(first) = may_grow.and_then(|found| found.breaks_first.as_deref()) else {
            continue;
        };
        match groups.iter_mut().find(|(known, _)| *known == first) {
            Some((_, of)) => of.push(&one.behaviour),
            None => groups.push((first, vec![&one.behaviour])),
        }
    }
    groups.into_iter().try_for_each(|(first, of)| {
        let text = match of.as_slice() {
            [only] if *only == first => {
                format!("if {only} grows by more, it misses its own deadline first")
            }
            of => format!(
                "if {} grows by more, {first} misses its deadline first",
                of.join(" or ")
            ),
        };
        paragraph(&text, ["  ", "    "])
    })
}

fn behaviour_row(one: &BehaviourBound) -> Vec<String> {
    let priority = one.priority.map_or_else(String::new, |priority| {
        let mark = if one.assigned { "*" } else { "" };
        format!("{priority}{mark}")
    });
    let grow = one.sensitivity.as_ref().and_then(|found| found.may_grow_ns);
    vec![
        one.behaviour.clone(),
        standing_word(one.standing).to_owned(),
        bound(one.bound_ns),
        text_of_ns(one.deadline_ns),
        left(one.slack_ns),
        left(grow),
        priority,
        text_of_ns(one.period_ns),
    ]
}

fn print_layers(checked: &CheckReport) -> anyhow::Result<()> {
    let legend: Vec<String> = from_the_top()
        .map(|layer| format!("{} {layer}", pattern(layer)))
        .collect();
    heading(&format!(
        "Shares of the bounds: {} (--explain NAME shows one in full)",
        legend.join(", ")
    ))?;
    let behaviours = checked.behaviours.iter();
    let behaviours = behaviours.map(|one| (&one.behaviour, one.layers_ns()));
    let chains = checked.chains.iter();
    let chains = chains.map(|one| (&one.chain, one.layers_ns()));
    let rows = behaviours.chain(chains).map(|(name, layers)| {
        let cells = layers.iter().rev().map(|(_, ns)| match ns {
            0 => String::new(),
            ns => signed(*ns, rounded_up),
        });
        [name.clone(), bar(layers)]
            .into_iter()
            .chain(cells)
            .collect()
    });
    let mut head = vec![String::new(), String::new()];
    head.extend(from_the_top().map(|layer| pattern(layer).to_owned()));
    print_table(&Table {
        head,
        rows: rows.collect(),
    })
}

/// The order of layers in a bar: the user's code comes first.
fn from_the_top() -> impl Iterator<Item = Layer> {
    Layer::ALL.into_iter().rev()
}

/// Returns each layer's share as characters; a share above 0 has at least one character.
fn bar(layers: [(Layer, i64); 4]) -> String {
    let parts = layers.map(|(layer, ns)| (layer, usize::try_from(ns).unwrap_or(0)));
    let whole: u128 = parts.iter().map(|(_, ns)| *ns as u128).sum();
    let places = |ns: usize| match ns {
        0 => 0,
        ns => (ns as u128 * BAR as u128 / whole).max(1) as usize,
    };
    let mut drawn = parts.map(|(layer, ns)| (layer, places(ns)));
    let used: usize = drawn.iter().map(|(_, places)| *places).sum();
    if let Some(largest) = drawn.iter_mut().max_by_key(|(_, places)| *places) {
        // The largest share absorbs the rounding errors.
        largest.1 = (largest.1 + BAR).saturating_sub(used) * usize::from(used > 0);
    }
    let drawn = drawn.iter().rev();
    drawn
        .map(|(layer, places)| pattern(*layer).repeat(*places))
        .collect()
}

fn print_chains(checked: &CheckReport) -> anyhow::Result<()> {
    if checked.chains.is_empty() {
        return Ok(());
    }
    heading("Chains: latest end, from the arrival of their first behaviour")?;
    let rows = checked.chains.iter().map(|one: &ChainBound| {
        vec![
            one.chain.clone(),
            standing_word(one.standing).to_owned(),
            bound(one.bound_ns),
            text_of_ns(one.deadline_ns),
            left(one.slack_ns),
        ]
    });
    let head = ["chain", "", "bound", "deadline", "slack"];
    print_table(&table(head, rows.collect()))?;
    checked.chains.iter().try_for_each(|one| {
        let text = format!("{}: {}", one.chain, one.through.join(" > "));
        paragraph(&text, ["  ", "    "])
    })
}

fn print_cause_effect_chains(checked: &CheckReport) -> anyhow::Result<()> {
    if checked.cause_effect_chains.is_empty() {
        return Ok(());
    }
    heading(
        "Cause-effect chains: how old data is when an output follows from it, and how long an input takes to have an effect (> calls, | reads the register)",
    )?;
    let rows = checked.cause_effect_chains.iter().flat_map(|one| {
        let row = |(what, latency): (&str, &LatencyBound)| {
            let standing = latency
                .limit_ns
                .map_or("", |_| standing_word(latency.standing));
            vec![
                one.chain.clone(),
                what.to_owned(),
                standing.to_owned(),
                bound(latency.bound_ns),
                latency.limit_ns.map_or_else(String::new, text_of_ns),
                left(latency.slack_ns),
            ]
        };
        latencies(one).map(row)
    });
    let head = ["chain", "", "", "bound", "limit", "slack"];
    print_table(&table(head, rows.collect()))?;
    for one in &checked.cause_effect_chains {
        let stages: Vec<String> = one.stages.iter().map(|stage| stage.join(" > ")).collect();
        let communication = match one.communication {
            CommunicationLabel::Implicit => "implicit",
            CommunicationLabel::Let if one.is_exact => "logical execution time, exact",
            CommunicationLabel::Let => "logical execution time",
        };
        let text = format!("{} ({communication}): {}", one.chain, stages.join(" | "));
        paragraph(&text, ["  ", "    "])?;
        for (what, latency) in latencies(one) {
            let shares = latency.shares.iter();
            let shares = shares.map(|share| format!("{} {}", rounded_up(share.ns), share.what));
            let shares: Vec<String> = shares.collect();
            let text = if shares.is_empty() {
                latency.explanation.clone()
            } else {
                shares.join(", ")
            };
            paragraph(&format!("{what}: {text}"), ["    ", "      "])?;
        }
    }
    Ok(())
}

fn latencies(one: &CauseEffectBound) -> [(&'static str, &LatencyBound); 2] {
    [
        ("data age", &one.data_age),
        ("reaction time", &one.reaction_time),
    ]
}

fn print_processors(checked: &CheckReport) -> anyhow::Result<()> {
    heading("Processors: utilisation by layer")?;
    let rows = checked.processors.iter().map(|one| {
        let rule = match one.scheduling {
            "fixed_priority" => "",
            _ => ", earliest deadline first",
        };
        let mut row = vec![
            format!("{}/{}{rule}", one.node, one.cpu),
            percent(one.utilisation_millionths),
        ];
        row.extend(from_the_top().map(|layer| {
            let own = one.layers_millionths.iter().find(|(of, _)| *of == layer);
            percent(own.map_or(0, |(_, millionths)| *millionths))
        }));
        row
    });
    let [hardware, os, orb, application] = Layer::ALL.map(short);
    let head = ["processor", "used", application, orb, os, hardware];
    print_table(&table(head, rows.collect()))
}

fn print_loading(checked: &CheckReport) -> anyhow::Result<()> {
    let loading = &checked.loading;
    if loading.components.is_empty() && loading.channels.is_empty() {
        return Ok(());
    }
    heading("Configuration of the ORBs (--out DIR writes the files)")?;
    for one in &loading.components {
        paragraph(
            &format!("{}: {}", one.component, lanes_and_bands(one)),
            ["  ", "    "],
        )?;
    }
    loading.channels.iter().try_for_each(|(name, lanes)| {
        let priorities: Vec<String> = lanes.iter().map(|lane| lane.priority.to_string()).collect();
        let text = if priorities.is_empty() {
            format!("{name}: an event channel without consumers")
        } else {
            format!(
                "{name}: rtorb events serve --lanes {}",
                priorities.join(",")
            )
        };
        paragraph(&text, ["  ", "    "])
    })
}

/// Formats the lanes and bands of a component.
fn lanes_and_bands(one: &ComponentLoading) -> String {
    let lane = |lane: &LaneLoading| match (lane.order, lane.threads) {
        (LaneOrder::EarliestDeadline, levels) => {
            format!("{} by deadline with {levels} levels", lane.priority)
        }
        (LaneOrder::Fifo, 1) => lane.priority.to_string(),
        (LaneOrder::Fifo, threads) => format!("{} with {threads} threads", lane.priority),
    };
    let band = |&(low, high): &(i16, i16)| {
        if low == high {
            low.to_string()
        } else {
            format!("{low} to {high}")
        }
    };
    let parts = [
        ("lanes", one.lanes.iter().map(lane).collect::<Vec<_>>()),
        ("bands", one.bands.iter().map(band).collect()),
    ];
    let process = one.process_with.join(", ");
    let process = (!process.is_empty()).then(|| format!("one process with {process}"));
    let filled = parts.iter().filter(|(_, of)| !of.is_empty());
    let texts = filled.map(|(name, of)| format!("{name} {}", of.join(", ")));
    let texts: Vec<String> = texts.chain(process).collect();
    if let Some(reason) = &one.lacks_lane {
        format!("no lane: {reason}")
    } else if texts.is_empty() {
        "neither lanes nor bands, because it has no callers and no callees".to_owned()
    } else {
        texts.join("; ")
    }
}

fn print_assumptions(checked: &CheckReport) -> anyhow::Result<()> {
    if checked.assumptions.is_empty() {
        return Ok(());
    }
    heading("Assumptions")?;
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for one in &checked.assumptions {
        let node = one.node.as_deref();
        match groups.iter_mut().find(|(what, _)| *what == one.what) {
            Some((_, nodes)) => nodes.extend(node),
            None => groups.push((&one.what, node.into_iter().collect())),
        }
    }
    groups.into_iter().try_for_each(|(what, nodes)| {
        let text = if nodes.is_empty() {
            what.to_owned()
        } else {
            format!("{}: {what}", nodes.join(", "))
        };
        paragraph(&text, ["  * ", "    "])
    })
}

/// Formats a standing so that it stands out in a long table.
pub(super) fn standing_word(standing: Standing) -> &'static str {
    match standing {
        Standing::Holds => "holds",
        Standing::NotProven => "NOT PROVEN",
        Standing::Misses => "MISSES",
    }
}

pub(super) fn bound(ns: Option<u64>) -> String {
    ns.map_or_else(|| "none".to_owned(), rounded_up)
}

/// Formats slack; negative if the time is too long.
fn left(ns: Option<i64>) -> String {
    ns.map_or_else(String::new, |ns| {
        if ns < 0 {
            signed(ns, rounded_up)
        } else {
            signed(ns, rounded_down)
        }
    })
}

fn signed(ns: i64, rounded: fn(u64) -> String) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    format!("{sign}{}", rounded(ns.unsigned_abs()))
}

/// Formats millionths as percent, rounded up, because 100.01 % is an overload.
fn percent(millionths: u64) -> String {
    let hundredths = millionths.div_ceil(100);
    format!("{}.{:02} %", hundredths / 100, hundredths % 100)
}

/// Returns a short name of a layer.
fn short(layer: Layer) -> &'static str {
    match layer {
        Layer::Hardware => "hardware",
        Layer::OperatingSystem => "OS",
        Layer::Orb => "ORB",
        Layer::Application => "application",
    }
}

fn pattern(layer: Layer) -> &'static str {
    match layer {
        Layer::Hardware => "#",
        Layer::OperatingSystem => "+",
        Layer::Orb => "o",
        Layer::Application => "=",
    }
}

pub(super) fn table<const N: usize>(head: [&str; N], rows: Vec<Vec<String>>) -> Table {
    Table {
        head: head.map(str::to_owned).to_vec(),
        rows,
    }
}

pub(super) fn heading(text: &str) -> anyhow::Result<()> {
    line("")?;
    paragraph(text, ["", "  "])
}

/// Prints the verdict in the colour of its tone.
pub(super) fn verdict(tone: Tone, text: &str) -> anyhow::Result<()> {
    indented(text, ["", ""], columns())
        .into_iter()
        .try_for_each(|text| line_in(tone, text))
}

pub(super) fn paragraph(text: &str, indents: [&str; 2]) -> anyhow::Result<()> {
    indented(text, indents, columns())
        .into_iter()
        .try_for_each(line)
}

/// The number of characters of a bar.
const BAR: usize = 14;
