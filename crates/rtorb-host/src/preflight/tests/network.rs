//! What is found about network interfaces.

use std::collections::BTreeMap;

use super::*;

#[test]
fn packets_are_received_in_threads_that_have_a_priority() {
    let napi = |change: fn(&mut Host)| {
        let mut host = Machine::tuned_x86().describe();
        change(&mut host);
        find(&findings(&host), "threaded-napi").clone()
    };
    let by_interrupts = napi(|_| ());
    assert!(
        by_interrupts
            .what
            .starts_with("the threads of its interrupts")
    );
    let by_threads = napi(|host| {
        eth0(host).napi_threaded = Some(true);
        eth0(host).napi_priorities = vec![60, 50];
    });
    assert_eq!(by_threads.severity, Severity::Good);
    assert!(
        by_threads.what.contains("priority 50"),
        "{}",
        by_threads.what
    );
    let by_none = napi(|host| {
        eth0(host).interrupts[0].thread_priority = None;
        host.kernel_options.interrupt_threads = Some(false);
    });
    assert_eq!(by_none.severity, Severity::Advice);
    let hidden = napi(|host| {
        eth0(host).interrupts[0].thread_priority = None;
        host.kernel_threads = None;
    });
    assert_eq!(hidden.severity, Severity::Unknown);
}

#[test]
fn threads_of_interrupts_are_a_finding_only_where_there_may_be_some() {
    let mut host = Machine::tuned_x86().describe();
    eth0(&mut host).interrupts[0].thread_priority = None;
    let id = "network-interrupt-threads";
    assert_eq!(find(&findings(&host), id).severity, Severity::Unknown);
    host.kernel_options.interrupt_threads = Some(false);
    let found = findings(&host);
    assert!(found.iter().all(|finding| finding.id != id));
}

#[test]
fn busy_polling_pays_only_where_threads_have_their_own_cpus() {
    let mut host = Machine::laptop().describe();
    let polling = |host: &Host| find(&findings(host), "busy-polling").severity;
    assert_eq!(polling(&host), Severity::Good);
    host.network.busy_read_us = Some(50);
    assert_eq!(polling(&host), Severity::Advice);
    host.cpus_isolated = "1".to_owned();
    assert_eq!(polling(&host), Severity::Good);
}

#[test]
fn an_interface_without_a_device_has_only_a_queue() {
    let mut host = Machine::tuned_x86().describe();
    eth0(&mut host).has_device = false;
    eth0(&mut host).disciplines = vec!["noqueue".to_owned()];
    let found = findings(&host);
    let network = found.iter().filter(|one| one.topic == Topic::Network);
    let ids: Vec<&str> = network.clone().map(|one| one.id.as_str()).collect();
    assert_eq!(ids, ["network-interfaces", "queueing-discipline"]);
    assert!(network.clone().all(|one| one.severity == Severity::Good));
    host.network.interfaces = Some(BTreeMap::new());
    let found = findings(&host);
    let what = &find(&found, "network-interfaces").what;
    assert!(what.contains("loopback"), "{what}");
}

#[test]
fn interrupts_are_those_of_the_device_or_of_the_device_above_a_virtio_device() {
    let numbers = |machine: &Machine| -> Vec<u32> {
        let mut host = machine.describe();
        let interrupts = &eth0(&mut host).interrupts;
        interrupts
            .iter()
            .map(|interrupt| interrupt.number)
            .collect()
    };
    // The driver does not use interrupt 31.
    let machine = Machine::tuned_x86();
    assert_eq!(numbers(&machine), [30]);
    // The name in /proc/interrupts is all that a device without message-signalled interrupts has.
    let mut board = Machine::rt_board();
    assert_eq!(numbers(&board), [48]);
    assert_eq!(
        eth0(&mut board.describe()).interrupts[0].cpus.as_deref(),
        Some("0-2")
    );
    board.file(
        "/proc/interrupts",
        "  CPU0\n 38:  5  PCI-MSIX 1-edge virtio2-input.0\n",
    );
    board.file(
        "/sys/class/net/eth0/device/modalias",
        "virtio:d00000001v00001AF4",
    );
    board.file("/sys/class/net/eth0/msi_irqs/38", "msix");
    assert_eq!(numbers(&board), [38]);
    let threads = |machine: &Machine| eth0(&mut machine.describe()).interrupts[0].thread_priority;
    assert_eq!(threads(&board), None);
    board.kernel_thread(99, "irq/38-virtio2-input.0", 50);
    assert_eq!(threads(&board), Some(50));
    board.interface((3, "wlan0"), "noqueue");
    assert_eq!(board.describe().network.interfaces.unwrap().len(), 2);
}

#[test]
fn interfaces_of_another_network_namespace_are_not_visible() {
    let machine = Machine::laptop();
    let heads = "Inter-|   Receive\n face |bytes    packets\n";
    let listed = |lines: &str| {
        machine.file("/proc/self/net/dev", &format!("{heads}{lines}"));
        machine.describe().network.interfaces
    };
    let own = "    lo: 9 9\nwlp2s0: 9 9\ndocker0: 0 0\nenp3s0: 0 0\n";
    assert_eq!(listed(own).unwrap().len(), 2);
    assert_eq!(listed("    lo: 9 9\n"), None);
}

#[test]
fn a_finding_names_a_few_interfaces_and_counts_the_others() {
    let mut host = Machine::tuned_x86().describe();
    eth0(&mut host).disciplines = vec!["fq_codel".to_owned()];
    let interface = eth0(&mut host).clone();
    let interfaces = host.network.interfaces.as_mut().unwrap();
    for number in 1..=6 {
        interfaces.insert(format!("eth{number}"), interface.clone());
    }
    let found = findings(&host);
    let what = &find(&found, "queueing-discipline").what;
    assert!(what.contains("eth3") && !what.contains("eth4"), "{what}");
    assert!(what.ends_with("; 3 more interfaces likewise"), "{what}");
}
