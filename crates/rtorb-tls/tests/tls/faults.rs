//! Peers that keep a server waiting in the handshake, or send rubbish before and after it.

use crate::calls::cubit;
use crate::pki::{Pki, orb, serving, serving_with};
use crate::references::secure_port;
use rtorb::exception::Phase;
use rtorb::giop::Version;
use rtorb::security::SecurityReport;
use rtorb::thread::ThreadConfig;
use rtorb::url::{Corbaloc, CorbalocAddress};
use rtorb::{CompletionStatus, ConnectionStrategy, ExceptionKind, WaitStrategy, Warning};
use rtorb_os::clock::monotonic_ns;
use rtorb_tests::loopback::own_listener;
use rtorb_tests::ours::Ours;
use rtorb_tests::running::until;
use std::io::{IoSlice, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

const LONG_NS: u64 = 60_000_000_000;

/// Reports nothing.
fn quiet() -> SecurityReport {
    Arc::new(|_| {})
}

#[test]
fn a_client_that_does_not_go_on_gives_its_place_up() {
    let pki = Pki::new();
    let reports = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&reports);
    let one = pki
        .server()
        .handshakes_at_once(1)
        .handshake_timeout(Duration::from_millis(100));
    let tls = one.build().expect("right files");
    let ours = Ours::serve_as(serving_with(&tls).on_warning(move |warning| {
        if let Warning::Refused(text) = warning {
            noted.lock().expect("no panic").push(text.clone());
        }
    }));
    let reference = ours.text(ours.cubit.as_object());
    let silent = TcpStream::connect(("127.0.0.1", secure_port(&reference)));
    let mut silent = silent.expect("it listens");
    until("the server reports it", || {
        let reports = reports.lock().expect("no panic");
        let is_it = |text: &String| text.contains("handshake is not over after 100ms");
        reports.iter().any(is_it).then_some(())
    });
    assert_eq!(silent.read(&mut [0; 8]).expect("it is closed"), 0);
    let counts = tls.handshakes();
    let so_far = (counts.late, counts.refused, counts.completed);
    assert_eq!(so_far, (1, 0, 0), "{counts:?}");
    // A busy host may keep an honest client from its handshake for as long.
    let client = pki.client();
    let cubed = until("a client ends its handshake in time", || {
        cubit(orb(client.clone()), &reference).cube_long(3).ok()
    });
    assert_eq!((cubed, tls.handshakes().completed), (27, 1));
}

/// More clients than have a place say nothing, for longer than the test lasts.
#[test]
fn silent_clients_give_way_to_one_that_makes_its_handshake() {
    let pki = Pki::new();
    let long = pki.server().handshake_timeout(Duration::from_secs(3600));
    let tls = long.build().expect("right files");
    let ours = Ours::serve_as(serving_with(&tls));
    let reference = ours.text(ours.cubit.as_object());
    let port = secure_port(&reference);
    let silent = (0..150).map(|_| TcpStream::connect(("127.0.0.1", port)).expect("it listens"));
    let silent: Vec<_> = silent.collect();
    assert_eq!(cubit(orb(pki.client()), &reference).cube_long(3), Ok(27));
    let counts = tls.handshakes();
    // 64 have a place, and each other one takes that of an older one.
    assert!((1..=150).contains(&counts.gave_way), "{counts:?}");
    assert_eq!((counts.completed, counts.late), (1, 0), "{counts:?}");
    drop(silent);
}

#[test]
fn rubbish_before_and_after_the_handshake_ends_its_connection_alone() {
    let pki = Pki::new();
    let tls = pki.server().build().expect("right files");
    let ours = Ours::serve_as(serving_with(&tls));
    let reference = ours.text(ours.cubit.as_object());
    let port = secure_port(&reference);
    let client = pki.client();
    let good = cubit(orb(client.clone()), &reference);
    assert_eq!(good.cube_long(3), Ok(27));
    let connect = || TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    let ends = |mut socket: &TcpStream| {
        let mut answer = Vec::new();
        // The server may reset the connection.
        let _ = socket.read_to_end(&mut answer);
    };

    let mut rubbish = connect();
    rubbish
        .write_all(&[0x16, 3, 1, 0x40, 0, 1, 2, 3, 4, 5, 6, 7])
        .expect("it is open");
    rubbish.write_all(&[0; 0x4000]).expect("it is open");
    ends(&rubbish);
    let mut plain = connect();
    plain.write_all(b"GIOP").expect("it is open");
    ends(&plain);
    assert_eq!(tls.handshakes().refused, 2);

    let transport = client.build().expect("right files").transport();
    let secured = |socket: &TcpStream| {
        let until_ns = monotonic_ns() + LONG_NS;
        transport.connect(socket.as_fd(), "127.0.0.1", until_ns, &quiet())
    };
    // A record that nobody has sealed.
    let mut socket = connect();
    let _link = secured(&socket).expect("right certificates");
    socket.write_all(&[0x17, 3, 3, 0, 32]).expect("it is open");
    socket.write_all(&[7; 32]).expect("it is open");
    ends(&socket);

    // Sealed bytes that are no GIOP.
    let socket = connect();
    let link = secured(&socket).expect("right certificates");
    let sent = link.send_now(socket.as_fd(), &[IoSlice::new(b"GET / HTTP/1.1\r\n\r\n")]);
    assert_eq!(sent, Ok(18));
    ends(&socket);

    assert_eq!(good.cube_long(3), Ok(27), "other connections go on");
}

/// A server that the host connects clients to, and that says nothing.
fn silent() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("it is bound").port();
    (listener, port)
}

#[test]
fn a_call_goes_on_to_the_next_address_if_the_first_is_silent_in_the_handshake() {
    let pki = Pki::new();
    let ours = Ours::serve_as(serving(pki.server()));
    let (_listener, silent) = silent();
    let good = secure_port(&ours.text(ours.cubit.as_object()));
    let addresses = [silent, good].map(|port| CorbalocAddress::Ssliop {
        version: Version::V1_2,
        host: "127.0.0.1".to_owned(),
        port,
    });
    let both = Corbaloc {
        addresses: addresses.into(),
        object_key: ours.key(ours.cubit.as_object()),
    };
    let (both, client) = (both.to_string(), pki.client());
    let object = |connection| {
        let client = orb(client.clone()).connection(connection);
        // Half of it is for the server that says nothing.
        let client = client.round_trip_timeout(Some(Duration::from_secs(4)));
        cubit(client, &both)
    };
    // A busy host may need the rest of the time for itself.
    let tries = || 0..5;
    thread::scope(|scope| {
        scope.spawn(|| {
            let exclusive = object(ConnectionStrategy::Exclusive);
            let mut called = tries().map(|_| exclusive.cube_long(3));
            assert_eq!(called.find(Result::is_ok), Some(Ok(27)));
        });
        let shared = object(ConnectionStrategy::Multiplexed {
            wait: WaitStrategy::LeaderFollowers,
        });
        let shared = shared.as_object();
        let start = || shared.start("cube_long", |w| w.primitive(3_i32), |r| r.primitive());
        let mut called = tries().map(|_| start().wait());
        assert_eq!(called.find(Result::is_ok), Some(Ok(27_i32)));
    });
}

#[test]
fn a_timeout_in_the_handshake_ends_the_call_in_time() {
    let pki = Pki::new();
    let (_listener, silent) = silent();
    let client = orb(pki.client()).round_trip_timeout(Some(Duration::from_millis(20)));
    let cubit = cubit(client, &format!("corbaloc:ssliop:1.2@127.0.0.1:{silent}/x"));
    // On a busy host, the time may pass before the handshake begins.
    until("a timeout is one of the handshake", || {
        let began = Instant::now();
        let late = cubit.cube_long(3).expect_err("nobody answers");
        assert_eq!(late.kind, ExceptionKind::Timeout);
        assert_eq!(late.completed, CompletionStatus::No);
        // Without it, the default of the ORB would end the call.
        assert!(began.elapsed() < Duration::from_secs(30), "{late}");
        let cause = late.cause.as_ref().expect("a cause");
        (cause.phase == Phase::Handshake).then_some(())
    });
}

#[test]
fn a_full_port_goes_on_when_its_clients_are_accepted() {
    let pki = Pki::new();
    let server = pki.server().handshakes_per_second(100_000);
    let server = server.handshakes_at_once(1_000);
    let server = server.handshake_timeout(Duration::from_secs(3_600));
    let socket = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = socket.local_addr().expect("it is bound");
    let transport = server.build().expect("right files").transport();
    let listener = transport.listen(socket.into(), Arc::new(|_| {}));
    let listener = listener.expect("a thread");
    let client = pki.client().build().expect("right files").transport();
    let connect = |for_ns| {
        let socket = TcpStream::connect(address).expect("it listens");
        let until_ns = monotonic_ns() + for_ns;
        let link = client.connect(socket.as_fd(), "127.0.0.1", until_ns, &quiet());
        (socket, link)
    };
    // Clients in their handshakes take no place of those that wait to be accepted.
    let _silent = TcpStream::connect(address).expect("it listens");
    let mut ready: Vec<_> = (0..64).map(|_| connect(LONG_NS)).collect();
    assert!(ready.iter().all(|(_, link)| link.is_ok()));
    // The server may begin a further handshake before it knows that the last one is over.
    let mut further = (0..4).map(|_| connect(200_000_000));
    let late = further.find_map(|(socket, link)| match link {
        Ok(_) => {
            ready.push((socket, link));
            None
        }
        Err(_) => Some(socket),
    });
    assert!(late.is_some(), "there is no room");
    for _ in &ready {
        until("a client is ready", || listener.accept().ok());
    }
    let (_socket, next) = connect(LONG_NS / 2);
    next.expect("there is room again");
}

#[test]
fn a_port_is_closed_whose_thread_is_refused() {
    let pki = Pki::new();
    let nowhere = ThreadConfig {
        affinity: vec![1_023],
        ..ThreadConfig::default()
    };
    let server = pki.server().handshake_thread(nowhere);
    let transport = server.build().expect("right files").transport();
    // No other test gets this port next.
    let socket = own_listener();
    let address = socket.local_addr().expect("it is bound");
    let listener = transport.listen(socket.into(), Arc::new(|_| {}));
    listener.expect_err("the host has no such CPU");
    TcpStream::connect(address).expect_err("nobody listens");
}

#[test]
fn files_that_are_wrong_now_are_reported_beside_a_flood_of_bad_clients() {
    let pki = Pki::new();
    let reports = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&reports);
    let server = pki.server().revocations(pki.revocations());
    let ours = Ours::serve_as(serving(server).on_warning(move |warning| {
        if let Warning::Refused(text) = warning {
            noted.lock().expect("no panic").push(text.clone());
        }
    }));
    let port = secure_port(&ours.text(ours.cubit.as_object()));
    std::fs::write(pki.revocations(), "rubbish").expect("it can be written");
    until("the server reports the file", || {
        for _ in 0..20 {
            let mut bad = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
            bad.write_all(b"GIOP").expect("it is open");
            let _ = bad.read_to_end(&mut Vec::new());
        }
        let reports = reports.lock().expect("no panic");
        let is_it = |text: &String| text.contains("crl.pem");
        reports.iter().any(is_it).then_some(())
    });
}
