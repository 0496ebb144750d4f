//! `orb/receive-inversion`: urgent calls beside a flood of packets that come by the same device, by the way in which the kernel receives
//! them.

use rtorb_host::placement::Placement;
use rtorb_os::clock::monotonic_ns;

use crate::contestants::packets::clients::PERIOD_NS;
use crate::contestants::packets::flood::{DATAGRAM_BYTES, DATAGRAMS_HZ, Flood};
use crate::contestants::packets::link::{FLOOD_QUEUE, Link, Receiving, URGENT_QUEUE};
use crate::contestants::packets::{Pair, Run, URGENT};
use crate::experiments::prelude::*;
use crate::processes::awake::{AWAKE_AT_MOST, Awake};

/// The experiment.
pub const STUDY: Study<Receiver> = Study {
    name: "orb/receive-inversion",
    title: "How long urgent calls wait for a flood of received packets, by interrupts, threads with priorities, and polling",
    reproduces: "P2 section 2 (the I/O subsystem)",
    amounts: Amounts {
        glance: 100,
        emulated: 100,
        quick: [6, 100],
        full: [10, 2_500],
        samples: "run_ms",
    },
    factors: &[
        Factor::texts(RECEIVING, Receiving::VARIANTS),
        Factor::texts(FLOOD, &[NONE, BESIDE]),
    ],
    fixed: "orb=rtorb, preset=tao, transport=tcp, operation=octet",
    parameters: &[
        ("urgent_hz", Number((1_000_000_000 / PERIOD_NS) as i64)),
        ("urgent_priority", Number(URGENT as i64)),
        ("datagrams_hz", Number(DATAGRAMS_HZ as i64)),
        ("datagram_bytes", Number(DATAGRAM_BYTES as i64)),
    ],
    columns: &[FLOOD],
    run_ms: |_, effort| STUDY.amounts.of(effort).1,
    obstacle: |context| {
        let no_cpu = context.other_cpu().is_none().then_some(NO_CPU);
        let no_fifo = context.launcher.placement.fifo.is_none();
        no_fifo.then_some(NO_FIFO).or(no_cpu)
    },
    modules: &["veth"],
    plots,
    says: SAYS,
    ..Study::with(Receiver::start)
};

fn plots() -> Vec<Plot> {
    vec![Plot::bars("receiving", "Urgent calls alone and beside a flood")
        .caption(
            "From the planned release to having the reply. Work of the kernel that comes before all threads, or in the order of arrival, \
             makes an urgent call wait for the packets of others.",
        )
        .of(labels([("part", CALL.into())]))
        .x(RECEIVING)
        .x_title("how the kernel receives")
        .lines([FLOOD])
        .values([StatisticName::P50, StatisticName::P90])
        .log_y()]
}

const SAYS: Statements = Statements {
    highlights: &[HighlightOf {
        what: "an urgent call beside a flood of packets, received by {receiving}, 90 %",
        of: "flood=beside, part=call",
        metric: P90_US,
        beside: Words::with("alone {0}", &[P90_US.at("flood=none")]),
    }],
    claims: &[
        // The thread of the urgent queue preempts that of the flood, between two of its turns of at most 64 packets. The interrupt comes
        // first, and its queue has up to a thousand.
        Declaration::at_most(
            "priority-to-{receiving}-p90",
            Metric::of(P90).at("receiving=threads_by_priority").with(&[Over(P90, "")]),
            1.0,
        )
        .of(
            "flood=beside, part=call, receiving=softirq",
            "beside a flood: the 90th percentile of an urgent call whose packets a thread of its own priority receives, to that with \
             {receiving}",
        ),
    ],
    published: &[PublishedOf {
        source: "P2 section 2",
        what: "priorities in the I/O subsystem",
        published: "threads of the kernel with the priorities of applications process the packets for them",
        of: "flood=beside, part=call",
        ours: Words::with(
            "{receiving}: beside a flood an urgent call takes (90 %) {0}, {1} as long as alone",
            &[P90_US, Metric::of(P90).with(&[Over(P90, "flood=none")])],
        ),
    }],
    ..Statements::NONE
};

/// The label of how the kernel receives packets.
const RECEIVING: &str = "receiving";
/// The label of what else is received meanwhile.
const FLOOD: &str = "flood";
const NONE: &str = "none";
const BESIDE: &str = "beside";
/// The value of the label `part` of urgent calls.
const CALL: &str = "call";
/// The same of a count: the datagrams that were sent, as a share of those that should have been.
const FLOOD_SHARE: &str = "flood_share";
const NO_CPU: &str =
    "Nothing was measured: the flood comes from another CPU, and there is one here.";
const NO_FIFO: &str = "Nothing was measured: without SCHED_FIFO, calls have no priorities that packets could be received by.";

/// A link, a pair at its ends, and a flood from another CPU.
#[derive(Debug)]
pub struct Receiver {
    /// `None` if this host has no link. In this order: the processes are in the namespaces of the link.
    used: Option<(Pair, Flood, Link)>,
    /// The CPU that receives and calls.
    cpu: usize,
    /// Keeps it awake: an idle CPU takes longer to wake than the packets of a flood.
    _awake: Awake,
    /// What this host does not do, with the reason.
    absent: Vec<(Labels, String)>,
}

impl Receiver {
    fn start(context: &Context, _: &[Cell<'_>]) -> Result<Self, LabError> {
        let cpu = context.launcher.placement.cpu.unwrap_or_default();
        let mut receiver = Self {
            used: None,
            cpu,
            _awake: Awake::keep(Some(cpu), AWAKE_AT_MOST),
            absent: Vec::new(),
        };
        match receiver.use_link(context) {
            Ok(()) => {}
            Err(LabError::Refused { what }) => {
                let why = format!("Nothing was measured: {what}. {NEEDS}");
                receiver.absent = vec![(Labels::new(), why)];
            }
            Err(error) => return Err(error),
        }
        Ok(receiver)
    }

    fn use_link(&mut self, context: &Context) -> Result<(), LabError> {
        let other = context.other_cpu().unwrap_or_default();
        let mut link = Link::start(&context.launcher, 2)?;
        link.send_by(URGENT_QUEUE, self.cpu)?;
        link.send_by(FLOOD_QUEUE, other)?;
        for receiving in Receiving::ALL {
            let why = match link.receive_by(receiving, self.cpu) {
                Ok(()) => receiving.other_polling(),
                Err(LabError::Refused { what }) => Some(what),
                Err(error) => return Err(error),
            };
            let name = receiving.name();
            self.absent.extend(why.map(|why| {
                let of = labels([(RECEIVING, name.into())]);
                (of, format!("{name} was left out: {why}."))
            }));
        }
        let there = context.launcher.placed(Placement {
            cpu: Some(other),
            fifo: None,
        });
        let flood = Flood::start(&there, &link)?;
        let pair = Pair::start(&context.launcher, &link, false)?;
        self.used = Some((pair, flood, link));
        Ok(())
    }
}

impl Subject for Receiver {
    fn measure(&mut self, cell: &Cell<'_>, turn: &Turn<'_>) -> Result<Sampled, LabError> {
        if self.absent.iter().any(|(labels, _)| cell.is_of(labels)) {
            return Ok(Sampled::default());
        }
        let mut all = Receiving::ALL.into_iter();
        let receiving = all.find(|receiving| cell.is(RECEIVING, receiving.name()));
        let (Some((pair, flood, link)), Some(receiving)) = (&mut self.used, receiving) else {
            return Ok(Sampled::default());
        };
        link.receive_by(receiving, self.cpu)?;
        let is_beside = cell.is(FLOOD, BESIDE);
        if is_beside {
            flood.begin()?;
        }
        let begin_ns = monotonic_ns();
        let calls = pair.run(&Run {
            duration_ns: turn.run_ms as u64 * 1_000_000,
            bulk_clients: 0,
        });
        let flooded_ns = (monotonic_ns() - begin_ns).max(1);
        let datagrams = flood.end()?;
        let calls = calls?;
        let share = datagrams as f64 * 1e9 / flooded_ns as f64 / DATAGRAMS_HZ as f64;
        let share = (labels([("part", FLOOD_SHARE.into())]), share, ("ratio", 1));
        Ok(Sampled {
            wrong: calls.wrong,
            scheduling: calls.scheduling,
            counts: is_beside.then_some(share).into_iter().collect(),
            parts: vec![(labels([("part", CALL.into())]), calls.times_ns)],
            ..Sampled::default()
        })
    }

    fn absent(&self) -> Vec<(Labels, String)> {
        self.absent.clone()
    }
}

const NEEDS: &str = "The experiment makes a link of its own. It needs root (CAP_SYS_ADMIN and CAP_NET_ADMIN) and a kernel with \
                     CONFIG_NET_NS, CONFIG_VETH, CONFIG_XPS and CONFIG_RPS.";
