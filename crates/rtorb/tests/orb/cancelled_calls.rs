//! Calls that their clients give up while a servant works for them.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rtorb::{CurrentCall, DispatchStrategy, Orb, SystemException};
use rtorb_tests::ours::Ours;
use rtorb_tests::raw::{Connection, Request, Stream};
use rtorb_tests::stubs::exchange::{Party, PartyServant};

/// Longer than any test needs.
const PATIENCE: Duration = Duration::from_secs(20);

const CANCEL_REQUEST: u8 = 2;
const THREAD_CANCELLED: &str = "IDL:omg.org/CORBA/THREAD_CANCELLED:1.0";
/// The minor code of a call that its client has given up.
const CALL_CANCELLED: u32 = 0x7274_6011;
const COMPLETED_MAYBE: u32 = 2;

/// A servant that works until it should stop: at once for `level`, long for `name`. It reports that it has begun.
#[derive(Clone, Debug)]
struct Diligent(Arc<Mutex<Sender<()>>>);

impl Diligent {
    fn new() -> (Self, Receiver<()>) {
        let (reports, begun) = channel();
        (Self(Arc::new(Mutex::new(reports))), begun)
    }

    /// Works at most for this time.
    fn work(&self, time: Duration) -> Result<(), SystemException> {
        let call = CurrentCall::get().expect("it is in a servant");
        self.0.lock().expect("no panic").send(()).expect("a test");
        let end = Instant::now() + time;
        loop {
            call.check()?;
            if Instant::now() >= end {
                return Ok(());
            }
            thread::yield_now();
        }
    }
}

impl PartyServant for Diligent {
    fn name(&self) -> Result<String, SystemException> {
        self.work(PATIENCE).map(|()| String::new())
    }

    fn level(&self) -> Result<i32, SystemException> {
        self.work(Duration::ZERO).map(|()| 0)
    }

    fn set_level(&self, _: i32) -> Result<(), SystemException> {
        Ok(())
    }
}

//= GIOP 1.2 §15.4.4
//% test
#[test]
fn a_servant_that_asks_stops_when_its_client_gives_the_call_up() {
    for (name, dispatch) in DispatchStrategy::ALL {
        let ours = Ours::serve_as(Orb::builder().dispatch(dispatch));
        let root = ours.orb.root_poa().expect("it listens");
        let (servant, begun) = Diligent::new();
        let party: Party = root.activate(servant).expect("room");
        let key = ours.key(party.as_object());
        let mut client = Connection::to(ours.address());
        let request = |id, operation| Request {
            minor: 2,
            big: false,
            id,
            reply: true,
            key: &key,
            operation,
        };
        for id in [1, 3, 5] {
            client.send(&request(id, "_get_level").empty());
            begun.recv_timeout(PATIENCE).expect("it is called");
            let answer = client.answer().expect("a reply");
            assert_eq!((answer.id, answer.status), (id, 0), "{name}");

            client.send(&request(id + 1, "_get_name").empty());
            begun.recv_timeout(PATIENCE).expect("it is called");
            let mut cancel = Stream::new(CANCEL_REQUEST, 2, false);
            cancel.ulong(id + 1);
            client.send(&cancel.message());
            let stopped = client.answer().expect("the servant returns the error");
            let exception = (THREAD_CANCELLED.to_owned(), CALL_CANCELLED, COMPLETED_MAYBE);
            assert_eq!(stopped.exception(), exception, "{name}");
        }
    }
}

/// A client may use the id of a request again that has its reply.
#[test]
fn a_request_with_the_id_of_a_cancelled_one_is_not_cancelled() {
    for (name, dispatch) in DispatchStrategy::ALL {
        let ours = Ours::serve_as(Orb::builder().dispatch(dispatch));
        let root = ours.orb.root_poa().expect("it listens");
        let (servant, begun) = Diligent::new();
        let party: Party = root.activate(servant).expect("room");
        let key = ours.key(party.as_object());
        let mut client = Connection::to(ours.address());
        let request = |operation| Request {
            id: 2,
            ..Request::two_way(&key, operation)
        };
        // A pool does not read the connection of a new client during its first request.
        client.ask(&request("_get_level").empty()).expect("a reply");
        begun.recv_timeout(PATIENCE).expect("it is called");
        for _ in 0..3 {
            client.send(&request("_get_name").empty());
            begun.recv_timeout(PATIENCE).expect("it is called");
            let mut cancel = Stream::new(CANCEL_REQUEST, 2, false);
            cancel.ulong(2);
            client.send(&cancel.message());
            let stopped = client.answer().expect("the servant returns the error");
            assert_eq!(stopped.exception().1, CALL_CANCELLED, "{name}");

            let answer = client.ask(&request("_get_level").empty());
            begun.recv_timeout(PATIENCE).expect("it is called");
            let answer = answer.expect("a reply");
            assert_eq!((answer.id, answer.status), (2, 0), "{name}");
        }
    }
}
