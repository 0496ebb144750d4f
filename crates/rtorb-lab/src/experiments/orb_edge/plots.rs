//! The latencies as pictures: P4 Figures 6 to 10 and 12.

use rtorb_results::StatisticName::{Max, Min, P50, P99};

use super::{MEETING, PATH, RECEIVERS, SIZE};
use crate::experiments::prelude::*;

pub(super) fn plots() -> Vec<Plot> {
    of_receivers()
        .into_iter()
        .chain(of_data_and_events())
        .collect()
}

fn of_receivers() -> [Plot; 4] {
    let (call, none) = ((PATH, "call".into()), (SIZE, 0usize.into()));
    [
        plot(
            "one-receiver",
            "Without and with load (P4 Figures 6 to 8)",
            PlotKind::Histogram,
            &[call.clone(), (RECEIVERS, 1usize.into()), none.clone()],
        )
        .caption(
            "One receiver. P4 shows it for a kernel with PREEMPT_RT under load, and for one without, both without and with load.",
        )
        .choose(["transport"])
        .lines(["load"]),
        plot(
            "two-receivers",
            "Two receivers of different priority (P4 Figure 9)",
            PlotKind::Histogram,
            &[(RECEIVERS, 2usize.into())],
        )
        .caption(
            "Both receivers are called: the edges of the low one come up to 100 us before those of the high one.",
        )
        .lines(["role"]),
        plot(
            "high-meets-low",
            "Whether the high receiver waits for a low call",
            PlotKind::Percentiles,
            &[("part", MEETING.into())],
        )
        .caption(
            "The high receiver, by whether a call to the low one was in progress when its edge came: without priority inversion \
             the lines are one.",
        )
        .lines(["low_call"]),
        plot(
            "high-alone-and-with-low",
            "What the high receiver feels of the low one",
            PlotKind::Percentiles,
            &[("role", "high".into()), call, none],
        )
        .caption(
            "The high receiver alone, and while the low one is called too. The lines differ for another reason too: caches are colder when the high receiver is alone.",
        )
        .choose(["transport"])
        .lines([RECEIVERS, "load"]),
    ]
}

fn of_data_and_events() -> [Plot; 3] {
    let one = (RECEIVERS, 1usize.into());
    let sizes = [
        ("transport", "tcp".into()),
        (PATH, "call".into()),
        one.clone(),
    ];
    [
        // No size and 64 KiB are on no scale of numbers together.
        plot(
            "latency-against-payload",
            "From best to worst against the size of the process data image (P4 Figure 10)",
            PlotKind::Bars,
            &sizes,
        )
        .caption("From the edge on the input until the output is set.")
        .x(SIZE)
        .x_title("bytes of data in a call")
        .choose(["load"])
        .values([Min, P50, P99, Max]),
        plot("payload-percentiles", "The tail, for each size", PlotKind::Percentiles, &sizes)
            .choose(["load"])
            .lines([SIZE]),
        plot(
            "event-and-call",
            "An event through the channel (P4 Figure 12), and a call",
            PlotKind::Histogram,
            &[one, (SIZE, 0usize.into())],
        )
        .caption(
            "P4's figure is of the event alone; beside it the same edge by a call, in the same run.",
        )
        .lines([PATH]),
    ]
}

fn plot(id: &str, title: &str, kind: PlotKind, of: &[(&'static str, LabelValue)]) -> Plot {
    let of = of.iter();
    let of = of.map(|(name, value)| ((*name).to_owned(), value.clone()));
    let of = labels([("part", "call".into())]).into_iter().chain(of);
    let plot = Plot::line_chart(id, title)
        .kind(kind)
        .of(of.collect())
        .x_title("from the edge on the input until the output is set, us")
        .choose(["transport", "load"])
        .log_y();
    if kind == PlotKind::Bars {
        plot
    } else {
        plot.log_x()
    }
}
