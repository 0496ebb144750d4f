//! The papers' figures, as far as their text has numbers, beside ours.

use rtorb_results::cells::Cells;
use rtorb_results::{Labels, Published, labels_without};

use super::findings::{Calls, JITTER, MEAN, Of, P50};
use super::{LOAD, LOW_CLIENTS, PRESET, TEN_HERTZ, WORK, requests_meet};
use crate::study::Cell;

/// P0: one ORB (TAO 1.2) on several operating systems; ours is the preset `tao` on this one.
pub(in crate::experiments) fn p0(cells: &Cells) -> Vec<Published> {
    let calls = Calls(cells);
    let of_tao = |of| growth(calls, "tao", of);
    let rows = [
        (
            "P0 Figure 4 (TAO 1.2)",
            "high-priority latency as low-priority clients grow, VxWorks and QNX",
            "nearly constant; a slight increase",
            of_tao(P50),
        ),
        (
            "P0 Figure 4 (TAO 1.2)",
            "the same, Linux",
            "lowest of all with few low-priority clients, above Linux/RT with many",
            of_tao(P50),
        ),
        (
            "P0 Figure 6 (TAO 1.2)",
            "high-priority jitter with many low-priority clients, Linux/RT",
            "about 200 us, constant",
            of_tao(JITTER),
        ),
        (
            "P0 Figure 5 (TAO 1.2)",
            "high-priority jitter, VxWorks and QNX",
            "essentially unchanged",
            of_tao(JITTER),
        ),
    ];
    rows.into_iter().filter_map(published).collect()
}

/// P1: four ORBs on Solaris; ours are the presets of their architectures.
pub(in crate::experiments) fn p1(cells: &Cells) -> Vec<Published> {
    let calls = Calls(cells);
    let to_tao = |preset, of| times_taos(calls, preset, of);
    let rows = [
        (
            F7,
            "TAO: growth of high-priority latency from 1 to 50 low-priority clients",
            "about 0.7 ms",
            growth(calls, "tao", MEAN),
        ),
        (
            F7,
            "MT-Orbix: high-priority latency from 1 to 50 low-priority clients",
            "from about 2 ms to about 14 ms",
            growth(calls, "mt_orbix", MEAN),
        ),
        (
            F7,
            "miniCOOL: high-priority latency",
            "10 ms with 20 low-priority clients, 2.5 ms with 25",
            growth(calls, "minicool", MEAN),
        ),
        (
            F7,
            "CORBAplus: high-priority latency",
            "high with few clients, drops at 10, then rises again",
            growth(calls, "corbaplus", MEAN),
        ),
        (
            F7,
            "CORBAplus: low-priority latency at 50 clients, to TAO's",
            "25 times",
            to_tao("corbaplus", MEAN),
        ),
        (
            F7,
            "MT-Orbix: low-priority latency at 50 clients, to TAO's",
            "7 times",
            to_tao("mt_orbix", MEAN),
        ),
        (
            F7,
            "miniCOOL: low-priority latency at 50 clients, to TAO's",
            "about 3 times",
            to_tao("minicool", MEAN),
        ),
        (
            F8,
            "TAO: high-priority jitter",
            "less than 1 ms",
            growth(calls, "tao", JITTER),
        ),
        (
            F8,
            "CORBAplus: low-priority jitter in the worst case, to TAO's",
            "300 times",
            to_tao("corbaplus", JITTER),
        ),
        (
            F8,
            "MT-Orbix: low-priority jitter in the worst case, to TAO's",
            "25 times",
            to_tao("mt_orbix", JITTER),
        ),
    ];
    rows.into_iter().filter_map(published).collect()
}

fn published(
    (source, what, published, ours): (&str, &str, &str, Option<String>),
) -> Option<Published> {
    Some(Published {
        source: source.to_owned(),
        what: what.to_owned(),
        published: published.to_owned(),
        ours: ours?,
    })
}

/// From the fewest low-priority clients to the most, under the papers' own load with the least work that was measured.
fn growth(calls: Calls<'_>, preset: &str, of: Of) -> Option<String> {
    let [few, many] = ends(calls, preset, "high")?;
    let us = |labels: &Labels| calls.median(labels, of).map(|ns| ns / 1e3);
    Some(format!(
        "{:.1} us with {}, {:.1} us with {} ({} us of work)",
        us(few)?,
        few[LOW_CLIENTS],
        us(many)?,
        many[LOW_CLIENTS],
        many[WORK]
    ))
}

fn times_taos(calls: Calls<'_>, preset: &str, of: Of) -> Option<String> {
    let [_, many] = ends(calls, preset, "low")?;
    let [_, taos] = ends(calls, "tao", "low")?;
    let ratio = calls.median(many, of)? / calls.median(taos, of)?;
    Some(format!(
        "{ratio:.1} times, with {} clients and {} us of work",
        many[LOW_CLIENTS], many[WORK]
    ))
}

/// The calls beside the fewest and the most low-priority clients, at 10 Hz, under one condition.
fn ends<'a>(calls: Calls<'a>, preset: &str, role: &str) -> Option<[&'a Labels; 2]> {
    let number = |labels: &Labels, label: &str| labels[label].number();
    let of_preset = || {
        let all = calls.of(role);
        all.filter(|labels| {
            labels[PRESET] == preset.into()
                && labels[LOAD] == TEN_HERTZ.into()
                && number(labels, LOW_CLIENTS) > Some(0)
        })
    };
    let few = of_preset().min_by_key(|labels| {
        let is_near = requests_meet(&Cell::of(labels));
        (!is_near, number(labels, WORK), number(labels, LOW_CLIENTS))
    })?;
    let condition = labels_without(few, &[LOW_CLIENTS]);
    let same = of_preset().filter(|labels| labels_without(labels, &[LOW_CLIENTS]) == condition);
    let many = same.max_by_key(|labels| number(labels, LOW_CLIENTS))?;
    Some([few, many])
}

const F7: &str = "P1 Figure 7 (Solaris, 2 machines, ATM)";
const F8: &str = "P1 Figure 8 (Solaris, 2 machines, ATM)";
