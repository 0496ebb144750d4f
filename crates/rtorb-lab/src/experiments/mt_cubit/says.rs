//! What is said of MT_Cubit: how much of the load the high-priority client feels.

use crate::experiments::prelude::*;

pub(in crate::experiments) const JITTER_US: Metric =
    Metric::of(Deviation).with(&[Times(1e-3)]).in_unit("us");
const P50_TO_ALONE: Metric = Metric::of(P50).with(&[Over(P50, "low_clients=0")]);
const P99_TO_ALONE: Metric = Metric::of(P99).with(&[Over(P99, "low_clients=0")]);

/// The calls of the preset in which nothing is shared between priorities: it alone is judged.
const OVER_TCP: &str = "preset=tao, role=high, part=call, low_clients>0, transport=tcp";
const OVER_OTHERS: &str = "preset=tao, role=high, part=call, low_clients>0, transport!=tcp";
const OVER_SHM: &str = "preset=tao, role=high, part=call, low_clients>0, transport=shm";

/// What is said of both experiments.
pub(in crate::experiments) const SAYS: Statements = Statements {
    highlights: &[HighlightOf {
        what: "{preset} over {transport}: high-priority median beside {low_clients} low-priority clients, {load}",
        of: "role=high, part=call, load=saturating, servant_work_us=500, low_clients=50",
        metric: US,
        beside: Words::with(
            "{0} without them, p99 {1}",
            &[US.at("low_clients=0"), P99_US],
        ),
    }],
    claims: &[TO_ALONE_P50, TO_ALONE_P99, TO_RAW],
    ..Statements::NONE
};

/// What is said of `orb/latency-jitter`, which has other transports too. P0 has one ORB (TAO 1.2) on several operating systems; ours is
/// the preset `tao` on this one.
pub(in crate::experiments) const LATENCY_JITTER: Statements = Statements {
    claims: &[
        TO_ALONE_P50,
        TO_ALONE_P99,
        TO_RAW,
        median(
            "to-alone-p50.{load}.{servant_work_us}us.{low_clients}.{transport}",
            P50_TO_ALONE,
        )
        .of(OVER_OTHERS, MEDIAN_TO_ALONE),
        tail(
            "to-alone-p99.{load}.{servant_work_us}us.{low_clients}.{transport}",
            P99_TO_ALONE,
        )
        .of(OVER_OTHERS, TAIL_TO_ALONE),
        median(
            "to-unix-p50.{load}.{servant_work_us}us.{low_clients}.{transport}",
            Metric::of(P50).with(&[Over(P50, "transport=unix")]),
        )
        .of(
            OVER_SHM,
            "{preset} over {transport}, {low_clients} low-priority clients, {load}, {servant_work_us} us of work: high-priority \
             median, to that over the UNIX socket",
        ),
        tail(
            "to-unix-p99.{load}.{servant_work_us}us.{low_clients}.{transport}",
            Metric::of(P99).with(&[Over(P99, "transport=unix")]),
        )
        .of(
            OVER_SHM,
            "{preset} over {transport}, {low_clients} low-priority clients, {load}, {servant_work_us} us of work: high-priority p99, \
             to that over the UNIX socket",
        ),
    ],
    published: &[
        p0(
            "P0 Figure 4 (TAO 1.2)",
            "high-priority latency as low-priority clients grow, VxWorks and QNX",
            "nearly constant; a slight increase",
            LATENCY,
        ),
        p0(
            "P0 Figure 4 (TAO 1.2)",
            "the same, Linux",
            "lowest of all with few low-priority clients, above Linux/RT with many",
            LATENCY,
        ),
        p0(
            "P0 Figure 6 (TAO 1.2)",
            "high-priority jitter with many low-priority clients, Linux/RT",
            "about 200 us, constant",
            JITTER,
        ),
        p0(
            "P0 Figure 5 (TAO 1.2)",
            "high-priority jitter, VxWorks and QNX",
            "essentially unchanged",
            JITTER,
        ),
    ],
    ..SAYS
};

const TO_ALONE_P50: Declaration = median(
    "to-alone-p50.{load}.{servant_work_us}us.{low_clients}",
    P50_TO_ALONE,
)
.of(OVER_TCP, MEDIAN_TO_ALONE);
const TO_ALONE_P99: Declaration = tail(
    "to-alone-p99.{load}.{servant_work_us}us.{low_clients}",
    P99_TO_ALONE,
)
.of(OVER_TCP, TAIL_TO_ALONE);
const TO_RAW: Declaration = Declaration::at_most(
    "to-raw.{load}.{servant_work_us}us.{low_clients}",
    Metric::of(P50).with(&[Over(P50, "orb=raw")]),
    3.0,
)
.of(
    OVER_TCP,
    "{preset}, {low_clients} low-priority clients, {load}, {servant_work_us} us of work: high-priority median, to the raw TCP round trip \
     (a goal)",
);

const fn median(id: &'static str, metric: Metric) -> Declaration {
    Declaration::at_most(id, metric, 1.3)
}

const fn tail(id: &'static str, metric: Metric) -> Declaration {
    Declaration::at_most(id, metric, 1.5)
}

const fn p0(
    source: &'static str,
    what: &'static str,
    published: &'static str,
    ours: Words,
) -> PublishedOf {
    PublishedOf {
        source,
        what,
        published,
        of: "preset=tao, transport=tcp, role=high, part=call, load=10hz, servant_work_us=0, low_clients=50",
        ours,
    }
}

const MEDIAN_TO_ALONE: &str = "{preset} over {transport}, {low_clients} low-priority clients, {load}, {servant_work_us} us of work: \
     high-priority median, to that without them";
const TAIL_TO_ALONE: &str = "{preset} over {transport}, {low_clients} low-priority clients, {load}, {servant_work_us} us of work: \
     high-priority p99, to that without them";
const LATENCY: Words = Words::with(
    "{0} without low-priority clients, {1} beside {low_clients}",
    &[US.at("low_clients=0"), US],
);
const JITTER: Words = Words::with(
    "{0} without low-priority clients, {1} beside {low_clients}",
    &[JITTER_US.at("low_clients=0"), JITTER_US],
);
