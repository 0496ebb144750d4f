//! When the host took CPUs from a system that was run, and where bounds were broken.

use plotly::common::{Marker, MarkerSymbol, Mode};
use plotly::{Layout, Plot, Scatter};
use rtorb_results::Results;
use rtorb_results::judgement::{Interruption, Judgement, Observed, Outlier};

use super::{Figure, LINE_COLORS, Scales, axis, drawn_choice, id};

/// The figure of a run; without choices where the host took nothing, and no bound was broken.
pub(super) fn figure(results: &Results) -> Option<Figure> {
    let judgement = results.judgement.as_ref()?;
    let broken = broken(judgement);
    let is_empty = judgement.interruptions.is_empty() && broken.is_empty();
    let source = format!(
        "{} interruptions and {} responses above their bounds",
        judgement.interruptions.len(),
        broken.len()
    );
    let choices = (!is_empty).then(|| drawn_choice("", drawn(judgement, &broken), source));
    Some(Figure {
        id: id(results, "interruptions"),
        title: "When the host took the CPU, and where bounds were broken".to_owned(),
        caption: "A point is a time in which nothing of the system executed on a CPU though it could have, and how long it was; only the \
                  longest are kept. A cross is a response above its bound, by how much: where points beneath it are as long, the host \
                  explains it."
            .to_owned(),
        scales: Some(Scales {
            log_x: None,
            log_y: true,
            counts: false,
        }),
        choices: choices.into_iter().collect(),
    })
}

/// The responses above their bounds, of those that are kept.
fn broken(judgement: &Judgement) -> Vec<(&Observed, &Outlier)> {
    let all = judgement.behaviours.iter().chain(&judgement.chains);
    let each = all.flat_map(|of| of.outliers.iter().map(move |outlier| (of, outlier)));
    each.filter(|(_, outlier)| outlier.excess_ns > 0).collect()
}

fn drawn(judgement: &Judgement, broken: &[(&Observed, &Outlier)]) -> Plot {
    let mut plot = Plot::new();
    let mut cpus: Vec<usize> = judgement
        .interruptions
        .iter()
        .map(|one| one.host_cpu)
        .collect();
    cpus.sort_unstable();
    cpus.dedup();
    for (at, cpu) in cpus.into_iter().enumerate() {
        let own = judgement.interruptions.iter();
        let own: Vec<&Interruption> = own.filter(|one| one.host_cpu == cpu).collect();
        let x = own.iter().map(|one| one.begin_ns as f64 / 1e9).collect();
        let y = own.iter().map(|one| one.length_ns as f64 / 1e3).collect();
        let trace = Scatter::new(x, y)
            .name(format!("CPU {cpu} was taken"))
            .mode(Mode::Markers)
            .marker(
                Marker::new()
                    .color(LINE_COLORS[at % LINE_COLORS.len()])
                    .size(7),
            )
            .hover_template("after %{x:.3f} s, for %{y:,.4~r} us");
        plot.add_trace(trace);
    }
    if !broken.is_empty() {
        let x = broken
            .iter()
            .map(|(_, one)| one.release_ns as f64 / 1e9)
            .collect();
        let y = broken
            .iter()
            .map(|(_, one)| one.excess_ns as f64 / 1e3)
            .collect();
        let text = broken.iter().map(|(of, one)| {
            let taken_us = one.interrupted_ns as f64 / 1e3;
            format!("{}: the host took {taken_us:.0} us on the way", of.name())
        });
        let trace = Scatter::new(x, y)
            .name("response above its bound, by so much")
            .mode(Mode::Markers)
            .marker(
                Marker::new()
                    .color("#d0342c")
                    .symbol(MarkerSymbol::X)
                    .size(10),
            )
            .text_array(text.collect())
            .hover_template("after %{x:.3f} s, %{y:,.4~r} us above its bound, %{text}");
        plot.add_trace(trace);
    }
    let x = axis("seconds from the beginning of the run");
    plot.set_layout(Layout::new().x_axis(x).y_axis(axis("us")));
    plot
}
