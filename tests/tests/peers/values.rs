//! Valuetypes between omniORB and us: nil, shared, boxed, in chunks and truncated.

use std::sync::Arc;

use rtorb::{Orb, SystemException};
use rtorb_tests::peers::omniorb::{Endpoint, omniorb};
use rtorb_tests::scratch::Scratch;
use rtorb_tests::stubs::atlas::{Guide, GuideServant, Link, Pin, Point, Route, Text};

type Linked = (Option<Arc<Link>>, Option<Arc<Text>>);

struct Host;

impl GuideServant for Host {
    fn echo_route(&self, given: &Route) -> Result<Route, SystemException> {
        Ok(given.clone())
    }

    fn echo_link(
        &self,
        given: Option<&Arc<Link>>,
        label: Option<&Arc<Text>>,
    ) -> Result<Linked, SystemException> {
        Ok((given.cloned(), label.cloned()))
    }

    fn echo_pin(&self, given: Option<&Arc<Pin>>) -> Result<Option<Arc<Pin>>, SystemException> {
        Ok(given.cloned())
    }

    fn find(&self) -> Result<Option<Arc<Point>>, SystemException> {
        Ok(Some(Arc::new(Point { x: 5, y: 0.5 })))
    }
}

#[test]
fn its_values_are_served() {
    let Some(omniorb) = omniorb() else { return };
    let orb = Orb::builder().build().expect("loopback has a port");
    let adapter = orb.root_poa().expect("loopback has a port");
    let guide: Guide = adapter.activate(Host).expect("the root adapter takes any");
    let reference = orb.object_to_string(guide.as_object());
    let served = orb.clone();
    let server = std::thread::spawn(move || served.run());
    let lines = omniorb.call("atlas_client", &reference, &[]);
    assert_eq!(lines.len(), 13, "{lines:?}");
    orb.shutdown();
    server.join().expect("no panic").expect("it was shut down");
}

#[test]
fn it_serves_our_values() {
    let Some(omniorb) = omniorb() else { return };
    let scratch = Scratch::new();
    let (_guides, reference) = omniorb.serve("atlas_server", &scratch, Endpoint::Tcp, &[]);
    let orb = Orb::builder().build().expect("nothing is opened");
    let object = orb.string_to_object(&reference).expect("omniORB made it");
    let guide = Guide::unchecked_narrow(object);

    let target = Some(Arc::new(Point { x: 1, y: 0.25 }));
    let equal = Some(Arc::new(Point { x: 1, y: 0.25 }));
    let route = Route {
        target: target.clone(),
        stops: vec![equal, target, None],
    };
    let back = guide.echo_route(&route).expect("it echoes");
    assert_eq!(back, route);
    let (Some(target), [Some(equal), Some(shared), None]) = (&back.target, &back.stops[..]) else {
        panic!("{back:?}")
    };
    assert!(Arc::ptr_eq(target, shared) && !Arc::ptr_eq(target, equal));

    let chain = (0..20).fold(None, |next, number| Some(Arc::new(Link { number, next })));
    let label = Some(Arc::new(Text("boxed".to_owned())));
    let answer = guide.echo_link(chain.as_ref(), label.as_ref());
    assert_eq!(answer.expect("it echoes"), (chain, label));
    assert_eq!(
        guide.echo_link(None, None).expect("it echoes"),
        (None, None)
    );

    let beside = Some(Arc::new(Point { x: 4, y: 0.5 }));
    let pin = Arc::new(Pin {
        x: 3,
        y: 0.75,
        label: "chunked".to_owned(),
        beside,
        after: 9,
    });
    let answer = guide.echo_pin(Some(&pin)).expect("it echoes");
    assert_eq!(answer, Some(pin));
    let found = guide.find().expect("a pin may be truncated to a point");
    assert_eq!(found, Some(Arc::new(Point { x: 5, y: 0.5 })));
}
