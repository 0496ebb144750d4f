//! The plain face of a channel.

use std::process;
use std::thread;

use rtorb::Orb;
use rtorb::thread::SchedPolicy;
use rtorb_os::sched::{allowed, apply_policy};
use rtorb_services::events::ChannelConfig;
use rtorb_services::events::plain::{PlainChannel, PlainConfig};
use rtorb_services::stubs::cos_event::cos_event_comm::PushConsumer;
use rtorb_tests::scheduling::{Task, tasks};
use rtorb_tests::skip;

use super::setup::{Serving, serve};

#[test]
fn a_plain_consumers_thread_runs_as_the_one_that_serves_the_channel() {
    const NAME: &str = "plain-consumer";
    if let Err(refused) = allowed(SchedPolicy::Fifo(30)) {
        return skip(&refused.to_string());
    }
    let served = serve(ChannelConfig::default());
    let own = Serving::new(Orb::builder().build().expect("an ORB"));
    let poa = own.orb.root_poa().expect("it listens");
    let channel = served.for_client(&own.orb);
    let plain = PlainChannel::serve(&poa, &channel, PlainConfig::default());
    let plain = plain.expect("a plain channel");
    let absent = own.orb.string_to_object("corbaloc::127.0.0.1:1/absent");
    let consumer = PushConsumer::unchecked_narrow(absent.expect("a reference"));
    let connect = || {
        apply_policy(SchedPolicy::Fifo(30)).expect("it is allowed");
        let consumers = plain.reference().for_consumers().expect("it answers");
        let proxy = consumers.expect("an administration").obtain_push_supplier();
        let proxy = proxy.expect("there is room").expect("a proxy");
        // The objects are collocated, so this thread serves the request.
        proxy.connect_push_consumer(Some(&consumer))
    };
    let connected = thread::scope(|scope| scope.spawn(connect).join());
    connected.expect("no panic").expect("it is connected");
    let mut threads = tasks(process::id());
    threads.retain(|task| task.name == NAME);
    assert_eq!(threads, [Task::new(NAME, 0)]);
    plain.destroy();
}
