//! A gateway to a channel that cannot serve it.

use std::sync::mpsc;
use std::time::Duration;

use rtorb::{Collocation, CurrentCall, ExceptionKind, Orb, SystemException};
use rtorb_os::thread::thread_id;
use rtorb_services::events::ChannelConfig;
use rtorb_services::events::client::ConnectError;
use rtorb_services::events::gateway::{End, Ends, Gateway, GatewayConfig, News};
use rtorb_services::stubs::rtec_event::rtec_event_channel_admin::event_channel::CantAppendObserver;
use rtorb_services::stubs::rtec_event::rtec_event_channel_admin::{
    ConsumerAdmin, EventChannel, EventChannelAppendObserverError, EventChannelRemoveObserverError,
    EventChannelServant, Observer, SupplierAdmin,
};
use rtorb_tests::asleep::until_asleep;

use super::setup::{Consumer, PATIENCE, Serving, serve};

/// A channel as TAO's is without an observer strategy. It may refuse consumers too.
struct Unobserved {
    channel: EventChannel,
    refuses_consumers: bool,
}

impl EventChannelServant for Unobserved {
    fn for_consumers(&self) -> Result<Option<ConsumerAdmin>, SystemException> {
        if self.refuses_consumers {
            return Err(ExceptionKind::NoPermission.into());
        }
        self.channel.for_consumers()
    }

    fn for_suppliers(&self) -> Result<Option<SupplierAdmin>, SystemException> {
        self.channel.for_suppliers()
    }

    fn destroy(&self) -> Result<(), SystemException> {
        Err(ExceptionKind::NoPermission.into())
    }

    fn append_observer(
        &self,
        _: Option<&Observer>,
    ) -> Result<u32, EventChannelAppendObserverError> {
        Err(CantAppendObserver.into())
    }

    fn remove_observer(&self, handle: u32) -> Result<(), EventChannelRemoveObserverError> {
        self.channel.remove_observer(handle)
    }
}

#[test]
fn a_channel_that_accepts_no_observer_is_named_with_the_option_of_tao() {
    let served = serve(ChannelConfig::default());
    let own = Serving::of_a_client();
    let channel = served.for_client(&own.orb);
    let poa = own.orb.root_poa().expect("it listens");
    let unobserved = poa.activate(Unobserved {
        channel: channel.clone(),
        refuses_consumers: false,
    });
    let unobserved: EventChannel = unobserved.expect("there is room");
    let ends = Ends {
        from: Box::new(move || Ok(channel.clone())),
        to: Box::new(move || Ok(unobserved.clone())),
    };
    let config = GatewayConfig {
        tries_max: 1,
        ..GatewayConfig::default()
    };
    let (sender, news) = mpsc::channel();
    let tell = move |news: &News| {
        let _ = sender.send(news.to_string());
    };
    let gateway = Gateway::start(&own.orb, ends, config, tell).expect("it can be started");
    let failed = news.recv_timeout(PATIENCE).expect("it reports");
    for part in [
        "the channel that events go to",
        "CANT_APPEND_OBSERVER",
        "-ECObserver basic",
    ] {
        assert!(failed.contains(part), "{part} in {failed}");
    }
    let end = news.recv_timeout(PATIENCE).expect("it reports");
    assert_eq!(end, News::GaveUp.to_string());
    gateway.stop();
    served.statistics_when("it has disconnected", |it| {
        it.connected_suppliers.is_empty()
    });
}

#[test]
fn a_gateway_whose_subscription_is_refused_gives_up_after_its_tries() {
    let served = serve(ChannelConfig::default());
    let _consumer = Consumer::connect(&served, &[(16, 1)], 0);
    let own = Serving::of_a_client();
    let poa = own.orb.root_poa().expect("it listens");
    let to = served.for_client(&own.orb);
    let refusing = poa.activate(Unobserved {
        channel: to.clone(),
        refuses_consumers: true,
    });
    let refusing: EventChannel = refusing.expect("there is room");
    let ends = Ends {
        from: Box::new(move || Ok(refusing.clone())),
        to: Box::new(move || Ok(to.clone())),
    };
    let config = GatewayConfig {
        tries_max: 3,
        pause_min: Duration::from_millis(1),
        ..GatewayConfig::default()
    };
    let (sender, news) = mpsc::channel();
    let tell = move |news: &News| {
        let _ = sender.send(news.clone());
    };
    let gateway = Gateway::start(&own.orb, ends, config, tell).expect("it can be started");
    let next = || news.recv_timeout(PATIENCE).expect("it reports");
    for expected in 1..=3 {
        assert_eq!(next(), News::Connected);
        let News::Failed { end, error, tries } = next() else {
            panic!("the subscription is refused");
        };
        assert_eq!((end, tries), (End::From, expected), "{error}");
        let ConnectError::System(exception) = error else {
            panic!("{error}");
        };
        assert_eq!(exception.kind, ExceptionKind::NoPermission);
    }
    assert_eq!(next(), News::GaveUp);
    gateway.stop();
}

#[test]
fn every_thread_that_stops_a_gateway_waits_until_it_has_ended() {
    let own = Serving::of_a_client();
    let (begin, begun) = mpsc::channel();
    let (finish, finished) = mpsc::channel::<()>();
    let ends = Ends {
        from: Box::new(move || {
            let _ = begin.send(());
            let _ = finished.recv_timeout(PATIENCE);
            Err(ExceptionKind::Transient.into())
        }),
        to: Box::new(|| Err(ExceptionKind::Transient.into())),
    };
    let gateway = Gateway::start(&own.orb, ends, GatewayConfig::default(), |_| {});
    let gateway = gateway.expect("it can be started");
    begun
        .recv_timeout(PATIENCE)
        .expect("it looks for a channel");
    let (tell, told) = mpsc::channel();
    let stop = &|tell: mpsc::Sender<u32>| {
        let _ = tell.send(thread_id());
        // The test has all ids when no sender is left.
        drop(tell);
        gateway.stop();
        gateway.has_ended()
    };
    let has_ended = std::thread::scope(|scope| {
        let callers = [tell.clone(), tell].map(|tell| scope.spawn(move || stop(tell)));
        until_asleep(&told.iter().collect::<Vec<u32>>());
        drop(finish);
        callers.map(|caller| caller.join().expect("it returns"))
    });
    assert_eq!(has_ended, [true, true]);
}

/// What each call of a [`Timed`] channel takes at least.
const MOMENT: Duration = Duration::from_millis(20);

/// A slow channel that notes the time that its clients give it for each call.
struct Timed {
    channel: EventChannel,
    given: mpsc::Sender<(&'static str, Option<Duration>)>,
}

impl Timed {
    fn note(&self, operation: &'static str) {
        let remaining = CurrentCall::get().and_then(|call| call.remaining());
        let _ = self.given.send((operation, remaining));
        std::thread::sleep(MOMENT);
    }
}

impl EventChannelServant for Timed {
    fn for_consumers(&self) -> Result<Option<ConsumerAdmin>, SystemException> {
        self.note("for_consumers");
        self.channel.for_consumers()
    }

    fn for_suppliers(&self) -> Result<Option<SupplierAdmin>, SystemException> {
        self.note("for_suppliers");
        self.channel.for_suppliers()
    }

    fn destroy(&self) -> Result<(), SystemException> {
        Err(ExceptionKind::NoPermission.into())
    }

    fn append_observer(
        &self,
        observer: Option<&Observer>,
    ) -> Result<u32, EventChannelAppendObserverError> {
        self.note("append_observer");
        self.channel.append_observer(observer)
    }

    fn remove_observer(&self, handle: u32) -> Result<(), EventChannelRemoveObserverError> {
        self.note("remove_observer");
        self.channel.remove_observer(handle)
    }
}

#[test]
fn all_calls_of_a_step_of_a_gateway_share_the_timeout_of_one() {
    let served = serve(ChannelConfig::default());
    let between = Serving::of_a_client();
    let (given, calls) = mpsc::channel();
    let channel = served.for_client(&between.orb);
    let timed = (between.orb.root_poa().expect("it listens")).activate(Timed { channel, given });
    let timed: EventChannel = timed.expect("there is room");
    let builder = Orb::builder()
        .collocation(Collocation::Transport)
        .round_trip_timeout(Some(PATIENCE))
        .listen("iiop://127.0.0.1:0");
    let own = Serving::new(builder.build().expect("an ORB"));
    let find = || {
        let (orb, text) = (own.orb.clone(), timed.as_object().to_string());
        Box::new(move || {
            let channel = EventChannel::unchecked_narrow(orb.string_to_object(&text)?);
            // The channel learns the deadline of each call, and so the time of the step if that ends before.
            let channel = channel.with_deadline(PATIENCE);
            // What finds a channel may call it.
            channel.for_consumers()?;
            Ok(channel)
        })
    };
    let ends = Ends {
        from: find(),
        to: find(),
    };
    let gateway = Gateway::start(&own.orb, ends, GatewayConfig::default(), |_| {});
    let gateway = gateway.expect("it can be started");
    served.statistics_when("it is connected", |it| !it.connected_suppliers.is_empty());
    for (expected, before) in [
        ("for_consumers", 0),
        ("for_consumers", 1),
        ("for_suppliers", 2),
        ("append_observer", 3),
    ] {
        let (operation, remaining) = calls.recv_timeout(PATIENCE).expect("it connects");
        assert_eq!(operation, expected);
        let remaining = remaining.expect("the call has a deadline");
        let left = PATIENCE - before * MOMENT;
        assert!(remaining <= left, "{operation}: {remaining:?}");
    }
    gateway.stop();
    let (operation, remaining) = calls.recv_timeout(PATIENCE).expect("it disconnects");
    assert_eq!(operation, "remove_observer");
    assert!(remaining.is_some_and(|remaining| remaining <= PATIENCE));
}
