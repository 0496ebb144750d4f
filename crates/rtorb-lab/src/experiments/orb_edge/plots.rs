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
        Plot {
            caption: "One receiver. P4 shows it for a kernel with PREEMPT_RT under load, and for one without, both without and with load."
                .to_owned(),
            choose: words(&["transport"]),
            lines: words(&["load"]),
            ..plot(
                "one-receiver",
                "Without and with load (P4 Figures 6 to 8)",
                PlotKind::Histogram,
                &[call.clone(), (RECEIVERS, 1usize.into()), none.clone()],
            )
        },
        Plot {
            caption: "Both receivers are called: the edges of the low one come up to 100 us before those of the high one."
                .to_owned(),
            lines: words(&["role"]),
            ..plot(
                "two-receivers",
                "Two receivers of different priority (P4 Figure 9)",
                PlotKind::Histogram,
                &[(RECEIVERS, 2usize.into())],
            )
        },
        Plot {
            caption: "The high receiver, by whether a call to the low one was in progress when its edge came: without priority inversion \
                      the lines are one."
                .to_owned(),
            lines: words(&["low_call"]),
            ..plot(
                "high-meets-low",
                "Whether the high receiver waits for a low call",
                PlotKind::Percentiles,
                &[("part", MEETING.into())],
            )
        },
        Plot {
            caption: "The high receiver alone, and while the low one is called too. The lines differ for another reason too: caches are colder when the high receiver is alone."
                .to_owned(),
            choose: words(&["transport"]),
            lines: words(&[RECEIVERS, "load"]),
            ..plot(
                "high-alone-and-with-low",
                "What the high receiver feels of the low one",
                PlotKind::Percentiles,
                &[("role", "high".into()), call, none],
            )
        },
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
        Plot {
            caption: "From the edge on the input until the output is set.".to_owned(),
            // No size and 64 KiB are on no scale of numbers together.
            x: SIZE.to_owned(),
            x_title: "bytes of data in a call".to_owned(),
            choose: words(&["load"]),
            values: vec![Min, P50, P99, Max],
            ..plot(
                "latency-against-payload",
                "From best to worst against the size of the process data image (P4 Figure 10)",
                PlotKind::Bars,
                &sizes,
            )
        },
        Plot {
            choose: words(&["load"]),
            lines: words(&[SIZE]),
            ..plot("payload-percentiles", "The tail, for each size", PlotKind::Percentiles, &sizes)
        },
        Plot {
            caption: "P4's figure is of the event alone; beside it the same edge by a call, in the same run.".to_owned(),
            lines: words(&[PATH]),
            ..plot(
                "event-and-call",
                "An event through the channel (P4 Figure 12), and a call",
                PlotKind::Histogram,
                &[one, (SIZE, 0usize.into())],
            )
        },
    ]
}

fn plot(id: &str, title: &str, kind: PlotKind, of: &[(&'static str, LabelValue)]) -> Plot {
    let of = of.iter();
    let of = of.map(|(name, value)| ((*name).to_owned(), value.clone()));
    Plot {
        kind,
        of: labels([("part", "call".into())])
            .into_iter()
            .chain(of)
            .collect(),
        x_title: "from the edge on the input until the output is set, us".to_owned(),
        choose: words(&["transport", "load"]),
        log_x: kind != PlotKind::Bars,
        log_y: true,
        ..Plot::named(id, title)
    }
}
