//! `orb/packet-inversion`: urgent calls beside bulk transfers of low priority over one slow link, without and with marks of
//! packets by priority.
//!
//! The link is the same in all cells. Each of its queueing disciplines serves marked packets first; only the marks differ.

use rtorb_results::{Plot, PlotKind, StatisticName};

use crate::contestants::packets::clients::PERIOD_NS;
use crate::contestants::packets::link::{Discipline, Link, RATE_MBIT};
use crate::contestants::packets::{BULK, BULK_BYTES, Pair, Run, URGENT, URGENT_DSCP};
use crate::error::LabError;
use crate::experiment::Context;
use crate::study::{
    Amounts, Cell, Factor, Sampled, Study, Subject, Turn,
    Value::{Number, Text},
};

mod findings;

/// The experiment.
pub const STUDY: Study<SlowLink> = Study {
    name: "orb/packet-inversion",
    title: "How long urgent calls wait for packets of bulk data on a slow link, without and with marks of packets by priority",
    reproduces: "P2 section 3.1.3 (packet-based priority inversion)",
    amounts: Amounts {
        glance: 100,
        emulated: 100,
        quick: [3, 300],
        full: [10, 2_500],
        samples: "run_ms",
    },
    factors: &[
        Factor {
            label: DISCIPLINE,
            levels: &[
                Text(Discipline::ALL[0].name()),
                Text(Discipline::ALL[1].name()),
            ],
        },
        Factor {
            label: NETWORK_PRIORITY,
            levels: &[Text(OFF), Text(ON)],
        },
        Factor {
            label: BULK_DATA,
            levels: &[Text(NONE), Text(BESIDE)],
        },
    ],
    fixed: &[
        ("orb", Text("rtorb")),
        ("preset", Text("tao")),
        ("transport", Text("tcp")),
        ("operation", Text("octet")),
    ],
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
    findings: findings::findings,
    ..Study::with(SlowLink::start)
};

/// A link, and two pairs at its ends.
#[derive(Debug)]
pub struct SlowLink {
    /// `None` if this host has no link.
    used: Option<Used>,
    /// The disciplines that this host has not.
    absent: Vec<Discipline>,
    notes: Vec<String>,
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
        let launcher = &context.launcher;
        let mut link = match Link::start(launcher) {
            Ok(link) => link,
            Err(LabError::Interrupted) => return Err(LabError::Interrupted),
            Err(error) => {
                return Ok(Self {
                    used: None,
                    absent: Vec::new(),
                    notes: vec![format!("Nothing was measured: {error}. {NEEDS}")],
                    skipped: 0,
                });
            }
        };
        let (mut absent, mut notes) = (Vec::new(), Vec::new());
        for discipline in Discipline::ALL {
            match link.queue_by(discipline) {
                Ok(()) => {}
                Err(LabError::Interrupted) => return Err(LabError::Interrupted),
                Err(error) => {
                    absent.push(discipline);
                    let name = discipline.name();
                    notes.push(format!(
                        "The discipline {name} was left out: {error}. {NEEDS}"
                    ));
                }
            }
        }
        let pairs = [
            Pair::start(launcher, &link, false)?,
            Pair::start(launcher, &link, true)?,
        ];
        Ok(Self {
            used: Some(Used { pairs, link }),
            absent,
            notes,
            skipped: 0,
        })
    }
}

impl Subject for SlowLink {
    fn measure(&mut self, cell: &Cell<'_>, turn: &Turn<'_>) -> Result<Sampled, LabError> {
        let is_here = |discipline: &Discipline| !self.absent.contains(discipline);
        let mut here = Discipline::ALL.into_iter().filter(is_here);
        let discipline = here.find(|discipline| cell.is(DISCIPLINE, discipline.name()));
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
        let level = if is_on { ON } else { OFF };
        let numbers = [
            (findings::bulk_bytes(discipline, level), calls.bulk.bytes),
            (findings::bulk_ns(discipline, level), calls.bulk.elapsed_ns),
        ];
        let numbers = numbers.into_iter().filter(|_| is_beside);
        self.skipped += calls.skipped;
        Ok(Sampled {
            wrong: calls.wrong,
            scheduling: calls.scheduling,
            numbers: numbers
                .map(|(name, number)| (name, number as f64))
                .collect(),
            ..Sampled::whole(calls.times_ns)
        })
    }

    fn notes(&self) -> Vec<String> {
        let skipped = (self.skipped > 0).then(|| {
            format!(
                "{} urgent calls were skipped, because the one before still ran: each counts as late as the reply that held it up.",
                self.skipped
            )
        });
        self.notes.iter().cloned().chain(skipped).collect()
    }
}

fn plots() -> Vec<Plot> {
    vec![Plot {
        caption: "From the planned release to having the reply. With marks a call waits for the rest of one packet in each direction, without them for \
                  all packets that came before it."
            .to_owned(),
        kind: PlotKind::Bars,
        x: NETWORK_PRIORITY.to_owned(),
        x_title: "marks of packets by priority".to_owned(),
        choose: vec![DISCIPLINE.to_owned()],
        lines: vec![BULK_DATA.to_owned()],
        values: vec![StatisticName::P50, StatisticName::P99],
        log_y: true,
        ..Plot::named("packets", "Urgent calls alone and beside bulk data")
    }]
}

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
