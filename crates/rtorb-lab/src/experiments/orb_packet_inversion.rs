//! `orb/packet-inversion`: urgent calls beside bulk transfers of low priority over one slow link, without and with marks of
//! packets by priority.
//!
//! The link is the same in all cells. Each of its queueing disciplines serves marked packets first; only the marks differ.

use crate::contestants::packets::clients::PERIOD_NS;
use crate::contestants::packets::link::{Discipline, Link, PACKET_NS, RATE_MBIT};
use crate::contestants::packets::{BULK, BULK_BYTES, Pair, Run, URGENT, URGENT_DSCP};
use crate::experiments::prelude::*;
use crate::processes::Launcher;

/// The experiment.
pub const STUDY: Study<SlowLink> = Study {
    name: "orb/packet-inversion",
    title: "How long urgent calls wait for packets of bulk data on a slow link, without and with marks of packets by priority",
    reproduces: "P2 section 3.1.3 (packet-based priority inversion)",
    amounts: Amounts {
        glance: 100,
        emulated: 100,
        quick: [6, 150],
        full: [10, 2_500],
        samples: "run_ms",
    },
    factors: &[
        Factor::texts(DISCIPLINE, Discipline::VARIANTS),
        Factor::texts(NETWORK_PRIORITY, &[OFF, ON]),
        Factor::texts(BULK_DATA, &[NONE, BESIDE]),
    ],
    fixed: "orb=rtorb, preset=tao, transport=tcp, operation=octet",
    parameters: &[
        ("link_mbit", Number(RATE_MBIT as i64)),
        ("urgent_hz", Number((1_000_000_000 / PERIOD_NS) as i64)),
        ("urgent_priority", Number(URGENT as i64)),
        ("urgent_dscp", Number(URGENT_DSCP as i64)),
        ("bulk_priority", Number(BULK as i64)),
        ("bulk_clients", Number(BULK_CLIENTS as i64)),
        ("bulk_bytes", Number(BULK_BYTES as i64)),
    ],
    columns: &[BULK_DATA],
    run_ms: |_, effort| STUDY.amounts.of(effort).1,
    obstacle: |context| context.launcher.placement.fifo.is_none().then_some(NO_FIFO),
    modules: &["veth", "sch_htb", "cls_u32", "sch_prio"],
    plots,
    says: SAYS,
    ..Study::with(SlowLink::start)
};

/// A link, and two pairs at its ends.
#[derive(Debug)]
pub struct SlowLink {
    /// `None` if this host has no link.
    used: Option<Used>,
    /// What this host does not have, with the reason.
    absent: Vec<(Labels, String)>,
    /// Urgent calls of all turns that were skipped.
    skipped: u64,
}

/// In this order: the pairs are in the namespaces of the link.
#[derive(Debug)]
struct Used {
    /// The second one marks its packets.
    pairs: [Pair; 2],
    link: Link,
}

impl SlowLink {
    fn start(context: &Context, _: &[Cell<'_>]) -> Result<Self, LabError> {
        match Self::on_link(&context.launcher) {
            Err(LabError::Refused { what }) => {
                let why = format!("Nothing was measured: {what}.");
                Ok(Self {
                    used: None,
                    absent: vec![(Labels::new(), why)],
                    skipped: 0,
                })
            }
            started => started,
        }
    }

    fn on_link(launcher: &Launcher) -> Result<Self, LabError> {
        let mut link = Link::start(launcher, 1)?;
        let mut absent = Vec::new();
        for discipline in Discipline::ALL {
            match link.queue_by(discipline) {
                Ok(()) => {}
                Err(LabError::Refused { what }) => {
                    let name = discipline.name();
                    absent.push((
                        labels([(DISCIPLINE, name.into())]),
                        format!("The discipline {name} was left out: {what}."),
                    ));
                }
                Err(error) => return Err(error),
            }
        }
        let pairs = [
            Pair::start(launcher, &link, false)?,
            Pair::start(launcher, &link, true)?,
        ];
        Ok(Self {
            used: Some(Used { pairs, link }),
            absent,
            skipped: 0,
        })
    }
}

impl Subject for SlowLink {
    fn measure(&mut self, cell: &Cell<'_>, turn: &Turn<'_>) -> Result<Sampled, LabError> {
        if self.absent.iter().any(|(labels, _)| cell.is_of(labels)) {
            return Ok(Sampled::default());
        }
        let mut all = Discipline::ALL.into_iter();
        let discipline = all.find(|discipline| cell.is(DISCIPLINE, discipline.name()));
        let (Some(Used { pairs, link }), Some(discipline)) = (&mut self.used, discipline) else {
            return Ok(Sampled::default());
        };
        link.queue_by(discipline)?;
        let [unmarked, marked] = pairs;
        let is_on = cell.is(NETWORK_PRIORITY, ON);
        let pair = if is_on { marked } else { unmarked };
        let is_beside = cell.is(BULK_DATA, BESIDE);
        let calls = pair.run(&Run {
            duration_ns: turn.run_ms as u64 * 1_000_000,
            bulk_clients: if is_beside { BULK_CLIENTS } else { 0 },
        })?;
        let bulk = calls.bulk;
        let share = bulk.bytes as f64 * 8e3 / f64::from(RATE_MBIT) / bulk.elapsed_ns.max(1) as f64;
        let share = (labels([("part", BULK_SHARE.into())]), share, ("ratio", 1));
        self.skipped += calls.skipped;
        Ok(Sampled {
            wrong: calls.wrong,
            scheduling: calls.scheduling,
            counts: is_beside.then_some(share).into_iter().collect(),
            parts: vec![(labels([("part", CALL.into())]), calls.times_ns)],
            ..Sampled::default()
        })
    }

    fn notes(&self) -> Vec<String> {
        let needs = (!self.absent.is_empty()).then(|| NEEDS.to_owned());
        let skipped = (self.skipped > 0).then(|| {
            format!(
                "{} urgent calls were skipped, because the one before still ran: each counts as late as the reply that held it up.",
                self.skipped
            )
        });
        needs.into_iter().chain(skipped).collect()
    }

    fn absent(&self) -> Vec<(Labels, String)> {
        self.absent.clone()
    }
}

fn plots() -> Vec<Plot> {
    vec![Plot::bars("packets", "Urgent calls alone and beside bulk data")
        .caption(
            "From the planned release to having the reply. With marks a call waits for the rest of one packet in each direction, without them for \
             all packets that came before it.",
        )
        .of(labels([("part", CALL.into())]))
        .x(NETWORK_PRIORITY)
        .x_title("marks of packets by priority")
        .choose([DISCIPLINE])
        .lines([BULK_DATA])
        .values([StatisticName::P50, StatisticName::P90])
        .log_y()]
}

const TO_ALONE: Metric = Metric::of(P90).with(&[Over(P90, "bulk=none")]);
const MARKED: &str = "network_priority=on, bulk=beside, part=call";

const SAYS: Statements = Statements {
    highlights: &[HighlightOf {
        what: "an urgent call beside bulk data, {discipline}, packets marked by priority, 90 %",
        of: MARKED,
        metric: P90_US,
        beside: Words::with(
            "without marks {0}; alone {1}",
            &[P90_US.at("network_priority=off"), P90_US.at("bulk=none")],
        ),
    }],
    claims: &[
        // A packet that the link has begun to carry is not interrupted: there may be one ahead of the request and one ahead of the
        // reply. The third is for timers and threads that are late.
        Declaration::at_most(
            "packets-ahead-{discipline}-p90",
            Metric::of(P90).with(&[Less(P90, "bulk=none"), Times(1.0 / PACKET_NS as f64)]).in_unit("packets"),
            3.0,
        )
        .of(
            MARKED,
            "{discipline}, with marks: what bulk data adds to the 90th percentile of an urgent call, in times of a full packet on the \
             link",
        ),
        // Without marks, a call waits for the packets of all bulk clients in each direction: at least twice as many.
        Declaration::at_most(
            "marked-to-unmarked-{discipline}-p90",
            Metric::of(P90).with(&[Over(P90, "network_priority=off")]),
            0.5,
        )
        .of(
            MARKED,
            "{discipline}, beside bulk data: the 90th percentile of an urgent call with marks, to that without",
        ),
    ],
    published: &[PublishedOf {
        source: "P2 section 3.1.3",
        what: "packet-based priority inversion",
        published: "FIFO queueing of packets: higher priority threads must block until their packet is at the front of the queue",
        of: MARKED,
        ours: Words::with(
            "{discipline}: beside bulk data an urgent call takes (90 %) {0} without marks, {1} as long as alone; with marks {2}, {3}",
            &[
                P90_US.at("network_priority=off"),
                Metric::of(P90).at("network_priority=off").with(&[Over(P90, "network_priority=off, bulk=none")]),
                P90_US,
                TO_ALONE,
            ],
        ),
    }],
    ..Statements::NONE
};

/// The value of the label `part` of urgent calls.
const CALL: &str = "call";
/// The same of a count: the bulk data in one direction, as a share of what the link can carry.
const BULK_SHARE: &str = "bulk_share";
/// The label of the queueing discipline of the link.
const DISCIPLINE: &str = "discipline";
/// The label of the marks of packets.
const NETWORK_PRIORITY: &str = "network_priority";
const OFF: &str = "off";
const ON: &str = "on";
/// The label of what is transferred meanwhile.
const BULK_DATA: &str = "bulk";
const NONE: &str = "none";
const BESIDE: &str = "beside";
/// TCP leaves about three packets of a connection in the queue of the host (`tcp_limit_output_bytes` in the kernel's
/// ip-sysctl.rst): with one client the queue would be too short to tell one order from another.
const BULK_CLIENTS: usize = 4;
const NO_FIFO: &str = "Nothing was measured: without SCHED_FIFO, calls have no priorities by which packets could be marked.";
const NEEDS: &str = "The experiment makes a slow link of its own. It needs root (CAP_SYS_ADMIN and CAP_NET_ADMIN) and a kernel with \
                     CONFIG_NET_NS, CONFIG_VETH, CONFIG_NET_SCH_HTB and CONFIG_NET_CLS_U32, and for the discipline prio CONFIG_NET_SCH_PRIO; \
                     their modules are veth, sch_htb, cls_u32 and sch_prio.";
