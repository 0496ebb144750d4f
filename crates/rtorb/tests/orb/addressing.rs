//! Servers that want another form of target address (NEEDS_ADDRESSING_MODE).

use crate::started_calls::LEADING;
use rtorb::cdr::Decode as _;
use rtorb::exception::Phase;
use rtorb::{CompletionStatus, ExceptionKind, Limits, ObjectRef, Orb, SystemException};
use rtorb_tests::fake::{FakeServer, Peer, reply, yes};
use rtorb_tests::raw::{LOCATE_REQUEST, Stream};
use rtorb_wire::giop::{Header, LocateRequestHeader, RequestHeader, Target};
use std::sync::{Arc, Mutex};

const LOCATE_REPLY: u8 = 4;
const KEY: u16 = 0;
const PROFILE: u16 = 1;
const REFERENCE: u16 = 2;
/// The status of a reply and of a locate reply.
const NEEDS_ADDRESSING_MODE: u32 = 5;
const OBJECT_HERE: u32 = 1;

/// A server that wants that form, and the forms that it was sent.
fn server(wanted: u16) -> (FakeServer, Arc<Mutex<Vec<u16>>>) {
    let sent = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&sent);
    let server = FakeServer::new(move |_, mut peer: Peer| {
        while let Some(message) = peer.message() {
            let (id, form, is_locate) = addressed(&message);
            seen.lock().expect("no panic").push(form);
            let is_right = form == wanted;
            peer.send(&match (is_locate, is_right) {
                (true, true) => locate_reply(id, OBJECT_HERE, |_| {}),
                (true, false) => locate_reply(id, NEEDS_ADDRESSING_MODE, |body| {
                    body.ushort(wanted);
                }),
                (false, true) => yes(id),
                (false, false) => reply(id, NEEDS_ADDRESSING_MODE, |body| {
                    body.ushort(wanted);
                }),
            });
        }
    });
    (server, sent)
}

fn locate_reply(id: u32, status: u32, body: impl FnOnce(&mut Stream)) -> Vec<u8> {
    let mut stream = Stream::new(LOCATE_REPLY, 2, false);
    stream.ulong(id).ulong(status);
    body(&mut stream);
    stream.message()
}

/// The id of a request, its form of address, and whether it is a LocateRequest. The address leads to the object.
fn addressed(message: &[u8]) -> (u32, u16, bool) {
    let header = Header::parse(message, 1 << 20);
    let header = header.expect("a message").expect("a whole header");
    let mut reader = header.reader(message);
    let is_locate = message[7] == LOCATE_REQUEST;
    let (id, target) = if is_locate {
        let request = LocateRequestHeader::decode(&mut reader).expect("a request");
        (request.request_id, request.target)
    } else {
        let request = RequestHeader::decode(&mut reader).expect("a request");
        (request.request_id, request.target)
    };
    assert_eq!(target.object_key(), Ok(&b"object"[..]));
    let form = match target {
        Target::Key(_) => KEY,
        Target::Profile { .. } => PROFILE,
        Target::Reference { .. } => REFERENCE,
    };
    (id, form, is_locate)
}

/// A reference of an ORB that follows no forward.
fn object(server: &FakeServer) -> ObjectRef {
    let limits = Limits::with(|limits| limits.forwards_max = 0);
    let orb = Orb::builder().connection(LEADING).limits(limits);
    let orb = orb.build().expect("the ORB can be built");
    orb.string_to_object(&server.reference())
        .expect("a reference")
}

//= GIOP 1.2 §15.4.3.2
//% test
#[test]
fn a_server_gets_the_form_of_address_that_it_wants_and_keeps_getting_it() {
    for wanted in [KEY, PROFILE, REFERENCE] {
        let (server, sent) = server(wanted);
        let object = object(&server);
        assert_eq!(object.is_a("IDL:Any:1.0"), Ok(true));
        assert_eq!(object.is_a("IDL:Any:1.0"), Ok(true));
        assert_eq!(object.validate_connection(), Ok(()));
        let mut expected = vec![KEY, wanted, wanted, wanted];
        if wanted == KEY {
            expected.pop();
        }
        assert_eq!(*sent.lock().expect("no panic"), expected);
    }
}

/// The result of the same question by a started call.
fn started(object: &ObjectRef) -> Result<bool, SystemException> {
    let asked = object.start("_is_a", |w| w.str("IDL:Any:1.0"), bool::decode);
    asked.wait()
}

#[test]
fn a_started_call_is_sent_again_too() {
    for wanted in [PROFILE, REFERENCE] {
        let (server, sent) = server(wanted);
        let object = object(&server);
        assert_eq!(started(&object), Ok(true));
        assert_eq!(started(&object), Ok(true));
        assert_eq!(*sent.lock().expect("no panic"), [KEY, wanted, wanted]);
    }
}

//= GIOP 1.2 §15.4.3.2
//% test
#[test]
fn a_locate_request_is_sent_again_too() {
    for wanted in [PROFILE, REFERENCE] {
        let (server, sent) = server(wanted);
        assert_eq!(object(&server).validate_connection(), Ok(()));
        assert_eq!(*sent.lock().expect("no panic"), [KEY, wanted]);
    }
}

#[test]
fn a_server_that_is_never_content_is_asked_twice() {
    let server = FakeServer::new(|_, mut peer: Peer| {
        while let Some(id) = peer.request() {
            peer.send(&reply(id, NEEDS_ADDRESSING_MODE, |body| {
                body.ushort(PROFILE);
            }));
        }
    });
    let object = object(&server);
    for asked in [object.is_a("IDL:Any:1.0"), started(&object)] {
        let failed = asked.expect_err("it refuses");
        assert_eq!(
            (failed.kind, failed.completed),
            (ExceptionKind::NoImplement, CompletionStatus::No)
        );
        assert_eq!(
            failed.cause.map(|cause| cause.phase),
            Some(Phase::AwaitReply)
        );
    }
}
