//! Consumers of several lanes, whose sending is written down.

use super::*;
use crate::events::Dispatching;
use crate::events::agenda::Agenda;
use crate::events::client::Arrival;
use crate::events::event::{Message, Octets};
use crate::events::outlet::{NotSent, Progress};
use crate::events::priority_source::RtInfoIsPriority;
use crate::stubs::rtec_event::rtec_event_channel_admin::Dependency;
use rtorb::cdr::CharCodeSet;

/// Writes down the priority of each consumer that is sent to.
#[derive(Debug)]
struct Noting {
    priority: i32,
    sent: Arc<Mutex<Vec<i32>>>,
}

impl Outlet for Noting {
    fn push(&self, _: Message<'_>) -> Result<Progress, NotSent> {
        self.sent.lock().push(self.priority);
        Ok(Progress::Whole)
    }

    fn flush(&self) -> Result<Progress, SystemException> {
        Ok(Progress::Whole)
    }

    fn open(&self, _: Priority) -> Result<(), SystemException> {
        Ok(())
    }

    fn ask(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn say_goodbye(&self) {}
}

/// A channel without threads of its own.
fn hub(dispatching: Dispatching, lanes: &[i16]) -> (Orb, Hub) {
    let orb = Orb::builder().listen("iiop://127.0.0.1:0");
    let orb = orb.expect("an endpoint").build().expect("an ORB");
    let poa = orb.root_poa().expect("it listens");
    let priority = |lane: &i16| Priority::new(*lane).expect("a priority");
    let config = ChannelConfig {
        dispatching,
        lanes: lanes.iter().map(priority).collect(),
        ..ChannelConfig::default()
    };
    let hub = Hub::new(config, Arc::new(RtInfoIsPriority), (orb.clone(), poa));
    (orb, hub)
}

fn connect((orb, hub): &(Orb, Hub), priority: i32, sent: &Arc<Mutex<Vec<i32>>>) {
    let everything = Dependency {
        event: Arrival::default().event,
        rt_info: priority,
    };
    let qos = ConsumerQos {
        dependencies: vec![everything],
        is_gateway: false,
    };
    let mut number = 0;
    let proxy = hub.registry().lock().add_consumer(16, |given| {
        number = given;
        orb.string_to_object("corbaloc::127.0.0.1:1/proxy")
    });
    proxy.expect("there is room");
    let subscription = hub.subscription(&qos).expect("a subscription");
    let outlet = Noting {
        priority,
        sent: Arc::clone(sent),
    };
    let consumer = hub.connect_consumer(number, (subscription, false), Arc::new(outlet));
    consumer.expect("there is room").opened();
}

/// Does what the lanes' threads would, the most urgent one first; false if nothing was to be done.
fn work(hub: &Hub) -> bool {
    let mut has_worked = false;
    for lane in hub.lanes() {
        let mut agenda = Agenda::new(16);
        while lane.step(&mut agenda, hub.subscriptions()) {
            has_worked = true;
        }
    }
    has_worked
}

#[test]
fn the_more_urgent_consumers_are_sent_to_before_the_less_urgent_ones() {
    for dispatching in [Dispatching::Reactive, Dispatching::Lanes] {
        let made = hub(dispatching, &[300, 200, 100]);
        let sent = Arc::default();
        for priority in [100, 300, 200, 150, 300, 50] {
            connect(&made, priority, &sent);
        }
        let hub = &made.1;
        work(hub);
        let event = Arrival::default().event;
        let octets = Octets::of(core::slice::from_ref(&event), CharCodeSet::Latin1);
        let octets = octets.expect("it fits");
        for _ in 0..3 {
            let incoming = Incoming {
                header: event.header,
                message: octets.message(),
            };
            hub.dispatch(&incoming, Priority::MIN);
            assert_eq!(work(hub), dispatching == Dispatching::Lanes);
            let sent = core::mem::take(&mut *sent.lock());
            let expected = [300, 300, 200, 150, 100, 50];
            assert_eq!(sent, expected, "{dispatching:?}");
        }
    }
}
