//! What is said of the architectures under P1's conditions.

use super::super::mt_cubit::says::JITTER_US;
use crate::experiments::prelude::*;

/// The cells of a pattern where requests meet in the server.
macro_rules! where_they_meet {
    ($of:literal) => {
        concat!(
            $of, ", servant_work_us>0, first_release=together, placement=one_cpu, server_urgency=below | ",
            $of, ", servant_work_us>0, first_release=together, placement=server_cpu, server_urgency=between | ",
            $of, ", servant_work_us>0, first_release=together, placement=two_hosts, server_urgency=between"
        )
    };
}

/// The preset of which it is claimed that it does not feel the clients.
const PROMISED: &str = "preset=tao, role=high, part=call, low_clients=50";
/// P1's other ORBs, which served requests in the order of their arrival.
const OTHERS: &str = where_they_meet!(
    "preset!=tao, preset!=minicool_rt, preset!=corbaplus_rt, preset!=minicool_per_request, role=high, part=call, \
     low_clients=50"
);

/// Of 90th percentiles: in a quick run a round has 34 calls.
pub(super) const SAYS: Statements = Statements {
    highlights: &[HighlightOf {
        what: "{preset}: high-priority latency (90 %) beside {low_clients} low-priority clients, P1's conditions",
        of: "preset!=tao, preset!=minicool_rt, preset!=corbaplus_rt, preset!=minicool_per_request, role=high, part=call, low_clients=50, \
             servant_work_us>0, first_release=together, placement=one_cpu, server_urgency=below",
        metric: P90_US,
        beside: Words::with(
            "{0} beside one; tao {1}",
            &[P90_US.at("low_clients=1"), P90_US.at("preset=tao")],
        ),
    }],
    claims: &[
        Declaration::at_most(
            "p1-growth-p50.{preset}.{placement}.{server_urgency}.{first_release}.{servant_work_us}us",
            Metric::of(P50).with(&[Over(P50, "low_clients=1")]),
            1.1,
        )
        .of(
            PROMISED,
            "P1's conditions ({placement}; server {server_urgency} the clients; released {first_release}; {servant_work_us} us a \
             request): {preset}, high-priority median beside {low_clients} low-priority clients, to that beside one",
        ),
        Declaration::at_most(
            "p1-growth-p90.{preset}.{placement}.{server_urgency}.{first_release}.{servant_work_us}us",
            Metric::of(P90).with(&[Over(P90, "low_clients=1")]),
            1.5,
        )
        .of(
            PROMISED,
            "P1's conditions ({placement}; server {server_urgency} the clients; released {first_release}; {servant_work_us} us a \
             request): {preset}, high-priority 90th percentile beside {low_clients} low-priority clients, to that beside one",
        ),
        // Below a half, `tao` is clearly better.
        Declaration::at_most(
            "p1-share-p90.{preset}.{placement}.{server_urgency}.{first_release}.{servant_work_us}us",
            Metric::of(P90).at("preset=tao").with(&[Over(P90, "")]),
            0.5,
        )
        .of(
            OTHERS,
            "P1's conditions ({placement}; server {server_urgency} the clients; released {first_release}; {servant_work_us} us a \
             request): high-priority 90th percentile beside {low_clients} low-priority clients: tao's, as a share of {preset}'s",
        ),
        Declaration::at_most(
            "p1-share-jitter.{preset}.{placement}.{server_urgency}.{first_release}.{servant_work_us}us",
            Metric::of(Deviation).at("preset=tao").with(&[Over(Deviation, "")]),
            0.5,
        )
        .of(
            OTHERS,
            "P1's conditions ({placement}; server {server_urgency} the clients; released {first_release}; {servant_work_us} us a \
             request): high-priority jitter beside {low_clients} low-priority clients: tao's, as a share of {preset}'s",
        ),
        // The thread that reads starts one thread after another. A lane has its thread, and reads by itself.
        Declaration::at_most(
            "p1-share-p90.{preset}.{placement}.{server_urgency}.{first_release}.{servant_work_us}us",
            Metric::of(P90).at("preset=tao").with(&[Over(P90, "")]),
            1.0,
        )
        .of(
            where_they_meet!("preset=minicool_per_request, role=high, part=call, low_clients=50"),
            "P1's conditions ({placement}; server {server_urgency} the clients; released {first_release}; {servant_work_us} us a \
             request): high-priority 90th percentile beside {low_clients} low-priority clients: tao's, as a share of that with a \
             thread for each request ({preset})",
        ),
    ],
    published: &[
        figure_7(
            "TAO: growth of high-priority latency from 1 to 50 low-priority clients",
            "about 0.7 ms",
            where_they_meet!("preset=tao, role=high, part=call, low_clients=50"),
            LATENCY,
        ),
        figure_7(
            "MT-Orbix: high-priority latency from 1 to 50 low-priority clients",
            "from about 2 ms to about 14 ms",
            where_they_meet!("preset=mt_orbix, role=high, part=call, low_clients=50"),
            LATENCY,
        ),
        figure_7(
            "miniCOOL: high-priority latency",
            "10 ms with 20 low-priority clients, 2.5 ms with 25",
            where_they_meet!("preset=minicool, role=high, part=call, low_clients=50"),
            LATENCY,
        ),
        figure_7(
            "CORBAplus: high-priority latency",
            "high with few clients, drops at 10, then rises again",
            where_they_meet!("preset=corbaplus, role=high, part=call, low_clients=50"),
            LATENCY,
        ),
        figure_7(
            "CORBAplus: low-priority latency at 50 clients, to TAO's",
            "25 times",
            where_they_meet!("preset=corbaplus, role=low, part=call, low_clients=50"),
            LATENCY_TO_TAO,
        ),
        figure_7(
            "MT-Orbix: low-priority latency at 50 clients, to TAO's",
            "7 times",
            where_they_meet!("preset=mt_orbix, role=low, part=call, low_clients=50"),
            LATENCY_TO_TAO,
        ),
        figure_7(
            "miniCOOL: low-priority latency at 50 clients, to TAO's",
            "about 3 times",
            where_they_meet!("preset=minicool, role=low, part=call, low_clients=50"),
            LATENCY_TO_TAO,
        ),
        figure_8(
            "TAO: high-priority jitter",
            "less than 1 ms",
            where_they_meet!("preset=tao, role=high, part=call, low_clients=50"),
            JITTER,
        ),
        figure_8(
            "CORBAplus: low-priority jitter in the worst case, to TAO's",
            "300 times",
            where_they_meet!("preset=corbaplus, role=low, part=call, low_clients=50"),
            JITTER_TO_TAO,
        ),
        figure_8(
            "MT-Orbix: low-priority jitter in the worst case, to TAO's",
            "25 times",
            where_they_meet!("preset=mt_orbix, role=low, part=call, low_clients=50"),
            JITTER_TO_TAO,
        ),
    ],
    ..Statements::NONE
};

const fn figure_7(
    what: &'static str,
    published: &'static str,
    of: &'static str,
    ours: Words,
) -> PublishedOf {
    PublishedOf {
        source: "P1 Figure 7 (Solaris, 2 machines, ATM)",
        what,
        published,
        of,
        ours,
    }
}

const fn figure_8(
    what: &'static str,
    published: &'static str,
    of: &'static str,
    ours: Words,
) -> PublishedOf {
    PublishedOf {
        source: "P1 Figure 8 (Solaris, 2 machines, ATM)",
        ..figure_7(what, published, of, ours)
    }
}

const LATENCY: Words = Words::with(
    "{0} beside one, {1} beside {low_clients} ({placement}, {servant_work_us} us of work)",
    &[MEAN_US.at("low_clients=1"), MEAN_US],
);
const JITTER: Words = Words::with(
    "{0} beside one, {1} beside {low_clients} ({placement}, {servant_work_us} us of work)",
    &[JITTER_US.at("low_clients=1"), JITTER_US],
);
const LATENCY_TO_TAO: Words = Words::with(
    "{0}, with {low_clients} clients ({placement}, {servant_work_us} us of work)",
    &[Metric::of(Mean).with(&[Over(Mean, "preset=tao")])],
);
const JITTER_TO_TAO: Words = Words::with(
    "{0}, with {low_clients} clients ({placement}, {servant_work_us} us of work)",
    &[Metric::of(Deviation).with(&[Over(Deviation, "preset=tao")])],
);
