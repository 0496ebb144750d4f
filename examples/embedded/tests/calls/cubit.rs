//! An embedded server called by an embedded client, by omniORB, and by a peer that breaks the rules.

use super::link::{MESSAGE_BYTES_MAX, Socket, client, pair};
use rtorb_embedded::{
    CallPriority, Ended, ExceptionKind, FixedPriority, Object, ObjectRef, Server, SystemException,
    Tie,
};
use rtorb_embedded_cubit::cubit::{Cubit, Many, Oneof};
use rtorb_embedded_cubit::servant::{Cuber, KEY};
use rtorb_tests::running::Running;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::thread::{self, JoinHandle};

/// The priorities at which a server was called.
#[derive(Default)]
struct Noted {
    entered: Vec<i16>,
    left: usize,
}

impl CallPriority for Noted {
    fn enter(&mut self, priority: i16) {
        self.entered.push(priority);
    }

    fn leave(&mut self) {
        self.left += 1;
    }
}

/// Serves a Cubit at the other end of a link until that ends; answers how it ended, and the priorities of the calls.
fn serve(mut link: Socket<UnixStream>) -> JoinHandle<(Ended, Noted)> {
    thread::spawn(move || {
        let cubit = Tie::<Cubit, _>::new(Cuber::new());
        let objects = [Object {
            key: KEY,
            servant: &cubit,
        }];
        let mut server = Server::new(&objects, MESSAGE_BYTES_MAX);
        let mut noted = Noted::default();
        loop {
            if let Err(ended) = server.serve_next(&mut link, &mut noted) {
                return (ended, noted);
            }
        }
    })
}

#[test]
fn every_operation_of_the_cubit_is_served() {
    let (here, there) = pair();
    let server = serve(there);
    let end = here.try_clone().expect("a descriptor is free");
    let object = ObjectRef::new(client(here), "", KEY);
    let cubit = Cubit::narrow(&object).expect("the server says that it is one");
    assert_eq!(cubit.cube_void(), Ok(()));
    assert_eq!(cubit.cube_oneway(), Ok(()));
    assert_eq!(cubit.cube_octet(3), Ok(27));
    assert_eq!(cubit.cube_short(-3), Ok(-27));
    assert_eq!(cubit.cube_long(-11), Ok(-1331));
    let many = Many { o: 2, l: 3, s: -4 };
    let cubed = Many {
        o: 8,
        l: 27,
        s: -64,
    };
    assert_eq!(cubit.cube_struct(&many), Ok(cubed));
    assert_eq!(cubit.cube_union(&Oneof::Cm(many)), Ok(Oneof::Cm(cubed)));
    let any = rtorb_embedded::Any::from_value(&many).expect("it has a TypeCode");
    let answer = cubit.cube_any(&any).expect("it is served");
    assert_eq!(answer.extract::<Many>(), Ok(cubed));
    assert_eq!(cubit.cube_long_sequence(&[1, -2, 3]), Ok(vec![1, -8, 27]));
    let octets = vec![3; 10_000];
    assert_eq!(cubit.cube_octet_sequence(&octets), Ok(vec![27; 10_000]));
    assert_eq!(cubit.cube_many_sequence(&[many; 3]), Ok(vec![cubed; 3]));
    end.shutdown(std::net::Shutdown::Both).expect("it is open");
    assert_eq!(server.join().expect("it does not panic").0, Ended::Closed);
}

#[test]
fn a_call_has_the_exception_that_the_full_orb_gives() {
    let (here, there) = pair();
    let _server = serve(there);
    let client = client(here);
    let nobody = Cubit::unchecked_narrow(ObjectRef::new(client, "", b"nobody"));
    let exception = SystemException::omg(ExceptionKind::ObjectNotExist, 1);
    assert_eq!(nobody.cube_void(), Err(exception));
    let object = ObjectRef::new(client, "", KEY);
    let unknown = object.invoke("cube_nothing", |_| Ok(()), |_| Ok(()));
    let exception = SystemException::omg(ExceptionKind::BadOperation, 2);
    assert_eq!(unknown, Err(exception));
    // A long is not there.
    let short = object.invoke("cube_long", |w| w.primitive(1u8), |_| Ok(()));
    assert_eq!(short.map_err(|e| e.kind), Err(ExceptionKind::Marshal));
    // The connection goes on.
    assert_eq!(Cubit::unchecked_narrow(object).cube_octet(2), Ok(8));
}

#[test]
fn a_server_is_told_the_priority_of_a_call() {
    let (here, there) = pair();
    let server = serve(there);
    let end = here.try_clone().expect("a descriptor is free");
    let object = ObjectRef::new(client(here), "", KEY);
    for priority in [0, 32_767, 5] {
        let cubit = Cubit::unchecked_narrow(object.clone().with_priority(priority));
        assert_eq!(cubit.cube_octet(2), Ok(8));
    }
    for negative in [-1, i16::MIN] {
        let cubit = Cubit::unchecked_narrow(object.clone().with_priority(negative));
        let refused = SystemException::omg(ExceptionKind::DataConversion, 2);
        assert_eq!(cubit.cube_octet(2), Err(refused));
    }
    assert_eq!(Cubit::unchecked_narrow(object).cube_octet(2), Ok(8));
    end.shutdown(std::net::Shutdown::Both).expect("it is open");
    let (_, noted) = server.join().expect("it does not panic");
    assert_eq!((noted.entered, noted.left), (vec![0, 32_767, 5], 3));
}

#[test]
fn octets_that_are_no_giop_are_refused_and_the_next_connection_is_served() {
    let cubit = Tie::<Cubit, _>::new(Cuber::new());
    let objects = [Object {
        key: KEY,
        servant: &cubit,
    }];
    let mut server = Server::new(&objects, MESSAGE_BYTES_MAX);
    for garbage in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        &[0xff; 40],
        b"GIOP\x01\x02\x01\x00\xff\xff\xff\xff",
    ] {
        let (mut here, mut there) = pair();
        here.write_all(garbage).expect("it is open");
        let refused = server.serve_next(&mut there, &mut FixedPriority);
        assert!(matches!(refused, Err(Ended::Refused(_))), "{refused:?}");
        let mut answer = [0; 12];
        here.read_exact(&mut answer).expect("it is told");
        assert_eq!((&answer[..4], answer[7]), (&b"GIOP"[..], 6), "MessageError");
        // The beginning of a message that broke off is not taken for the beginning of the next one.
        let (here, mut there) = pair();
        let object = ObjectRef::new(client(here), "", KEY);
        let caller = thread::spawn(move || Cubit::unchecked_narrow(object).cube_octet(2));
        let served = server.serve_next(&mut there, &mut FixedPriority);
        assert_eq!(served, Ok(()));
        assert_eq!(caller.join().expect("it does not panic"), Ok(8));
    }
}

#[test]
fn omniorb_calls_every_operation() {
    let Some(omniorb) = rtorb_tests::peers::omniorb::omniorb() else {
        return;
    };
    let mut command = Command::new(env!("CARGO_BIN_EXE_rtorb-embedded-cubit"));
    let (_running, address) = Running::until_line(&mut command, "corbaloc:iiop:");
    let reference = format!("corbaloc:iiop:{address}");
    let lines = omniorb.call(
        "cubit_client",
        &reference,
        &["--lengths", "0,1,4,1021", "--any", "--shutdown"],
    );
    assert!(lines.len() > 30, "{lines:?}");
}
