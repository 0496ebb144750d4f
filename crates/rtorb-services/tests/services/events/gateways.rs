//! A gateway to a channel that cannot serve it.

use std::sync::mpsc;

use rtorb::{ExceptionKind, SystemException};
use rtorb_services::events::ChannelConfig;
use rtorb_services::events::gateway::{Ends, Gateway, GatewayConfig, News};
use rtorb_services::stubs::rtec_event::rtec_event_channel_admin::event_channel::CantAppendObserver;
use rtorb_services::stubs::rtec_event::rtec_event_channel_admin::{
    ConsumerAdmin, EventChannel, EventChannelAppendObserverError, EventChannelRemoveObserverError,
    EventChannelServant, Observer, SupplierAdmin,
};

use super::setup::{PATIENCE, Serving, serve};

/// A channel as TAO's is without an observer strategy.
struct Unobserved(EventChannel);

impl EventChannelServant for Unobserved {
    fn for_consumers(&self) -> Result<Option<ConsumerAdmin>, SystemException> {
        self.0.for_consumers()
    }

    fn for_suppliers(&self) -> Result<Option<SupplierAdmin>, SystemException> {
        self.0.for_suppliers()
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
        self.0.remove_observer(handle)
    }
}

#[test]
fn a_channel_that_accepts_no_observer_is_named_with_the_option_of_tao() {
    let served = serve(ChannelConfig::default());
    let own = Serving::of_a_client();
    let channel = served.for_client(&own.orb);
    let poa = own.orb.root_poa().expect("it listens");
    let unobserved = poa.activate(Unobserved(channel.clone()));
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
