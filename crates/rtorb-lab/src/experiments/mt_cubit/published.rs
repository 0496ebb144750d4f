//! The papers' figures, as far as their text has numbers, beside ours.

use rtorb_results::Published;

use super::measured::{Key, Measured, Of, Role};
use super::plan::{Cell, Condition, Load};

/// P0: one ORB (TAO 1.2) on several operating systems; ours is the preset `tao` on this one.
pub(super) fn p0(measured: &Measured) -> Vec<Published> {
    let growth = || growth(measured, "tao", Of::P50);
    let jitter = || growth_of_jitter(measured, "tao");
    let rows = [
        (
            "P0 Figure 4 (TAO 1.2)",
            "high-priority latency as low-priority clients grow, VxWorks and QNX",
            "nearly constant; a slight increase",
            growth(),
        ),
        (
            "P0 Figure 4 (TAO 1.2)",
            "the same, Linux",
            "lowest of all with few low-priority clients, above Linux/RT with many",
            growth(),
        ),
        (
            "P0 Figure 6 (TAO 1.2)",
            "high-priority jitter with many low-priority clients, Linux/RT",
            "about 200 us, constant",
            jitter(),
        ),
        (
            "P0 Figure 5 (TAO 1.2)",
            "high-priority jitter, VxWorks and QNX",
            "essentially unchanged",
            jitter(),
        ),
    ];
    rows.into_iter().filter_map(published).collect()
}

/// P1: four ORBs on Solaris; ours are the presets of their architectures.
pub(super) fn p1(measured: &Measured) -> Vec<Published> {
    let to_tao = |preset, of| times_taos(measured, preset, Role::Low, of);
    let rows = [
        (
            F7,
            "TAO: growth of high-priority latency from 1 to 50 low-priority clients",
            "about 0.7 ms",
            growth(measured, "tao", Of::Mean),
        ),
        (
            F7,
            "MT-Orbix: high-priority latency from 1 to 50 low-priority clients",
            "from about 2 ms to about 14 ms",
            growth(measured, "mt_orbix", Of::Mean),
        ),
        (
            F7,
            "miniCOOL: high-priority latency",
            "10 ms with 20 low-priority clients, 2.5 ms with 25",
            growth(measured, "minicool", Of::Mean),
        ),
        (
            F7,
            "CORBAplus: high-priority latency",
            "high with few clients, drops at 10, then rises again",
            growth(measured, "corbaplus", Of::Mean),
        ),
        (
            F7,
            "CORBAplus: low-priority latency at 50 clients, to TAO's",
            "25 times",
            to_tao("corbaplus", Of::Mean),
        ),
        (
            F7,
            "MT-Orbix: low-priority latency at 50 clients, to TAO's",
            "7 times",
            to_tao("mt_orbix", Of::Mean),
        ),
        (
            F7,
            "miniCOOL: low-priority latency at 50 clients, to TAO's",
            "about 3 times",
            to_tao("minicool", Of::Mean),
        ),
        (
            F8,
            "TAO: high-priority jitter",
            "less than 1 ms",
            growth_of_jitter(measured, "tao"),
        ),
        (
            F8,
            "CORBAplus: low-priority jitter in the worst case, to TAO's",
            "300 times",
            to_tao("corbaplus", Of::Jitter),
        ),
        (
            F8,
            "MT-Orbix: low-priority jitter in the worst case, to TAO's",
            "25 times",
            to_tao("mt_orbix", Of::Jitter),
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
fn growth(measured: &Measured, preset: &str, of: Of) -> Option<String> {
    let (few, many) = ends(measured, preset, Role::High)?;
    let us = |key: &Key| measured.median(key, of).map(|ns| ns / 1e3);
    Some(format!(
        "{:.1} us with {}, {:.1} us with {} ({} us of work)",
        us(few)?,
        few.cell.low_clients,
        us(many)?,
        many.cell.low_clients,
        many.cell.condition.servant_work_us
    ))
}

fn growth_of_jitter(measured: &Measured, preset: &str) -> Option<String> {
    growth(measured, preset, Of::Jitter)
}

fn times_taos(measured: &Measured, preset: &str, role: Role, of: Of) -> Option<String> {
    let (_, many) = ends(measured, preset, role)?;
    let (_, taos) = ends(measured, "tao", role)?;
    let ratio = measured.median(many, of)? / measured.median(taos, of)?;
    Some(format!(
        "{ratio:.1} times, with {} clients and {} us of work",
        many.cell.low_clients, many.cell.condition.servant_work_us
    ))
}

/// The cells with the fewest and the most low-priority clients, at 10 Hz.
fn ends<'a>(measured: &'a Measured, preset: &str, role: Role) -> Option<(&'a Key, &'a Key)> {
    let of_preset = |key: &&Key| {
        let Cell {
            condition: Condition { load, .. },
            low_clients,
        } = key.cell;
        key.preset == preset && load == Load::TenHertz && low_clients > 0
    };
    let work = |key: &&Key| key.cell.condition.servant_work_us;
    let least_us = measured
        .keys(role)
        .filter(of_preset)
        .map(|key| work(&key))
        .min()?;
    let keys = || {
        measured
            .keys(role)
            .filter(of_preset)
            .filter(|key| work(key) == least_us)
    };
    let few = keys().min_by_key(|key| key.cell.low_clients)?;
    let many = keys().max_by_key(|key| key.cell.low_clients)?;
    Some((few, many))
}

const F7: &str = "P1 Figure 7 (Solaris, 2 machines, ATM)";
const F8: &str = "P1 Figure 8 (Solaris, 2 machines, ATM)";
