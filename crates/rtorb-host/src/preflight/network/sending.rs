//! In which order packets leave an interface.

use super::{Finding, Subject, listed};
use crate::description::{Host, Interface};

pub(super) fn queueing_discipline(host: &Host) -> Option<Finding> {
    const SUBJECT: Subject = Subject::new(
        "queueing-discipline",
        "a packet of an urgent call waits until all earlier packets are sent, unless the interface sends by priority \
              (SO_PRIORITY, which `enable_network_priority` sets)",
    );
    let judge = |name: &str, interface: &Interface| {
        let kinds = &interface.disciplines;
        let all_in = |known: &[&str]| kinds.iter().all(|kind| known.contains(&kind.as_str()));
        let any_in = |known: &[&str]| kinds.iter().any(|kind| known.contains(&kind.as_str()));
        let shown = listed(kinds.clone());
        let bands = format!("`tc qdisc replace dev {name} root prio`");
        if kinds.is_empty() {
            SUBJECT.unknown(
                format!("the queueing discipline of {name} is not visible"),
                format!("look at `tc qdisc show dev {name}` on the host itself"),
            )
        } else if all_in(&BY_PRIORITY) {
            SUBJECT.good(format!("{name} sends urgent packets first ({shown})"))
        } else if any_in(&WITHOUT_PRIORITY) {
            SUBJECT.advice(
                format!("{name} sends no packet before others for its priority ({shown})"),
                bands,
            )
        } else if !all_in(&["noqueue"]) {
            SUBJECT.unknown(
                format!(
                    "whether {name} sends urgent packets first depends on the classes of {shown}"
                ),
                format!("look at `tc class show dev {name}`, or use {bands}"),
            )
        } else if interface.has_device {
            SUBJECT.unknown(
                format!(
                    "{name} has no queue in the kernel: what its driver does with urgent packets is not visible"
                ),
                format!(
                    "{bands}, unless the driver has queues of its own, as those for Wi-Fi have"
                ),
            )
        } else {
            SUBJECT.good(format!("{name} has no queue"))
        }
    };
    let all = host.network.interfaces.iter().flatten();
    SUBJECT.of_interfaces(all.map(|(name, interface)| judge(name, interface)))
}

/// Disciplines that send packets of a higher SO_PRIORITY first, as they come (tc-pfifo_fast(8), tc-prio(8), tc-mqprio(8),
/// tc-taprio(8)).
const BY_PRIORITY: [&str; 4] = ["pfifo_fast", "prio", "mqprio", "taprio"];
/// Disciplines that send in the order of arrival, or by flows, whatever SO_PRIORITY says. `fq` gives priorities shares since
/// Linux 6.8, and lets no packet go first.
const WITHOUT_PRIORITY: [&str; 12] = [
    "pfifo", "bfifo", "fq", "fq_codel", "fq_pie", "codel", "pie", "sfq", "sfb", "red", "tbf",
    "cake",
];
