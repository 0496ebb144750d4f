use super::clients::Clients;
use super::*;
use crate::processes::child::value;
use rtorb_os::sched::{SchedPolicy, allowed};

const ENDPOINT: &str = "iiop://127.0.0.1:0";

fn settings() -> impl Iterator<Item = Setting> {
    let both = |policy| [false, true].map(|is_on| Setting { policy, is_on });
    RtPolicy::ALL.iter().copied().flat_map(both)
}

#[test]
fn a_setting_is_read_back_from_its_word() {
    for setting in settings() {
        assert_eq!(value(&word(setting)), Ok(setting));
    }
    let wrong = word(settings().next()).replace("Borrowing", "Lending");
    let error = value::<Setting>(&wrong).unwrap_err();
    assert!(error.contains("Borrowing"), "{error}");
}

#[test]
fn every_call_is_served_or_refused_and_only_a_bound_refuses() {
    if let Err(refused) = allowed(SchedPolicy::Fifo(URGENT)) {
        eprintln!("skipped: {refused}");
        return;
    }
    let run = Run {
        calls: 3,
        has_others: true,
    };
    for setting in settings() {
        let last = server::open(setting, ENDPOINT, &[""; 0]).unwrap();
        let middle = (setting.policy.servants() > 1)
            .then(|| server::open(setting, ENDPOINT, last.references()).unwrap());
        let first = middle.as_ref().unwrap_or(&last);
        let [urgent, others] = first.references() else {
            panic!("two objects");
        };
        let clients = Clients::open(setting, [urgent, others]).unwrap();
        let calls = clients.run(&run).unwrap();
        let (urgent, others) = (&calls.urgent, &calls.others);
        assert_eq!((urgent.served_ns.len(), urgent.wrong), (3, 0), "{setting}");
        let clients = setting.policy.others().clients;
        let made = others.served_ns.len() + others.refused_ns.len();
        assert_eq!((made, others.wrong), (3 * clients, 0), "{setting}");
        let has_bound = setting.policy == RtPolicy::Buffering && setting.is_on;
        assert!(has_bound || others.refused_ns.is_empty(), "{setting}");
        // The servants' waits and computations are in the times of the calls.
        let shortest_ns = others.served_ns.iter().min().copied();
        assert!(
            shortest_ns.is_some_and(|ns| ns > 50_000),
            "{setting}: {shortest_ns:?}"
        );
        for server in middle.iter().chain([&last]) {
            server.orb().destroy().unwrap();
        }
    }
}

#[test]
fn too_many_calls_are_refused() {
    let setting = Setting {
        policy: RtPolicy::Bands,
        is_on: true,
    };
    // Nobody listens there, and nobody is called.
    let nobody = "corbaloc::127.0.0.1:1/nobody";
    let clients = Clients::open(setting, [nobody; 2]).unwrap();
    let refused = clients.run(&Run {
        calls: 1_000_000,
        has_others: false,
    });
    assert!(refused.unwrap_err().contains("too many"));
}
