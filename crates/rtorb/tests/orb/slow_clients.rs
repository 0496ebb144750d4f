//! Clients that never read their replies, and connections that stay silent, hold up nobody.
//!
//! `RTORB_SLOW_CLIENTS=64 RTORB_SILENT_CONNECTIONS=5000` are the sizes of the acceptance, which needs 12,000 file descriptors;
//! the gate's are smaller. `RTORB_LONGEST_CALL_MS=50` is its bound on an idle machine. `RTORB_DISPATCH=reactive` tries that strategy
//! alone.

use rtorb::any::Any;
use rtorb::{DispatchStrategy, ExceptionKind, Limits, Orb, SystemException};
use rtorb_tests::good::Good;
use rtorb_tests::ours::Ours;
use rtorb_tests::raw::{CLOSE_CONNECTION, Connection, Request};
use rtorb_tests::running::until;
use rtorb_tests::scratch::Scratch;
use rtorb_tests::stubs::{Cubit, CubitServant, Many, Oneof};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

fn size(variable: &str, otherwise: usize) -> usize {
    std::env::var(variable).map_or(otherwise, |text| text.parse().expect("a number"))
}

#[test]
fn a_good_client_is_served_beside_clients_that_never_read_and_silent_connections() {
    let slow = size("RTORB_SLOW_CLIENTS", 16);
    let silent = size("RTORB_SILENT_CONNECTIONS", 200);
    // A loaded machine interrupts calls for a while; the failures that this test is for last seconds.
    let longest_allowed = Duration::from_millis(size("RTORB_LONGEST_CALL_MS", 500) as u64);
    let limits =
        Limits::with(|limits| limits.connections_max = if silent > 1024 { 1024 } else { 128 });
    // The clients' sockets are in this process too: its table of descriptors shall not grow while the server accepts.
    let any = std::io::stdin();
    drop(rustix::io::fcntl_dupfd_cloexec(
        &any,
        (3 * (slow + silent)) as i32,
    ));
    // One strategy at a time is measured undisturbed by the end of another's threads and connections.
    let only = std::env::var("RTORB_DISPATCH").ok();
    for (name, dispatch) in DispatchStrategy::ALL {
        if only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        let longest = || {
            let limits = limits.clone();
            let ours = Ours::serve_as(Orb::builder().dispatch(dispatch).limits(limits));
            let longest = longest_call(&ours, slow, silent);
            println!(
                "{name}: longest call {longest:?} beside {slow} that never read and {silent} silent"
            );
            longest
        };
        // A client that holds others up does so in each try, and a busy host in one of many.
        let is_served = (0..3).any(|_| longest() < longest_allowed);
        assert!(is_served, "{name}: it waits for others");
    }
}

/// The longest call of a good client while others come, and for a while after.
fn longest_call(ours: &Ours, slow: usize, silent: usize) -> Duration {
    let client = Orb::builder().build().expect("an ORB");
    let good = client.string_to_object(&ours.text(ours.cubit.as_object()));
    let good = Cubit::unchecked_narrow(good.expect("a reference"));
    good.cube_void().expect("it is served");
    let address = ours.address();
    let wordy: Cubit = ours.poa.activate(Wordy).expect("room");
    let key = ours.key(wordy.as_object());
    let crowd = thread::spawn(move || {
        let mut request = Request::two_way(&key, "cube_octet_sequence").head();
        request.align(8).octets(&[]);
        let requests = request.message().repeat(REPLIES);
        let slow: Vec<_> = (0..slow)
            .map(|_| {
                let mut socket = TcpStream::connect(address).expect("the server listens");
                socket.write_all(&requests).expect("the server reads");
                socket
            })
            .collect();
        let connect = |number| {
            // A full backlog would delay a connection by a second, in which the kernel tries again.
            if number % 32 == 0 {
                thread::sleep(Duration::from_millis(5));
            }
            TcpStream::connect(address).expect("the server listens")
        };
        let silent: Vec<_> = (0..silent).map(connect).collect();
        (slow, silent)
    });
    let mut longest = Duration::ZERO;
    let mut after = 0;
    while after < 300 {
        let begun = Instant::now();
        good.cube_void()
            .expect("a client that does nothing wrong is served");
        longest = longest.max(begun.elapsed());
        after += usize::from(crowd.is_finished());
        thread::sleep(Duration::from_micros(500));
    }
    drop(crowd.join().expect("no panic"));
    longest
}

/// Replies that a client that never reads asks for: more than sockets hold.
const REPLIES: usize = 10;

/// Returns many octets whatever it is asked, which costs a server little.
struct Wordy;

impl CubitServant for Wordy {
    fn cube_octet_sequence(&self, _: &[u8]) -> Result<Vec<u8>, SystemException> {
        Ok(vec![0; 512 << 10])
    }

    fn cube_oneway(&self) -> Result<(), SystemException> {
        Err(ExceptionKind::NoImplement.into())
    }

    fn cube_void(&self) -> Result<(), SystemException> {
        Err(ExceptionKind::NoImplement.into())
    }

    fn cube_octet(&self, _: u8) -> Result<u8, SystemException> {
        Err(ExceptionKind::NoImplement.into())
    }

    fn cube_short(&self, _: i16) -> Result<i16, SystemException> {
        Err(ExceptionKind::NoImplement.into())
    }

    fn cube_long(&self, _: i32) -> Result<i32, SystemException> {
        Err(ExceptionKind::NoImplement.into())
    }

    fn cube_struct(&self, _: &Many) -> Result<Many, SystemException> {
        Err(ExceptionKind::NoImplement.into())
    }

    fn cube_union(&self, _: &Oneof) -> Result<Oneof, SystemException> {
        Err(ExceptionKind::NoImplement.into())
    }

    fn cube_any(&self, _: &Any) -> Result<Any, SystemException> {
        Err(ExceptionKind::NoImplement.into())
    }

    fn cube_long_sequence(&self, _: &[i32]) -> Result<Vec<i32>, SystemException> {
        Err(ExceptionKind::NoImplement.into())
    }

    fn cube_many_sequence(&self, _: &[Many]) -> Result<Vec<Many>, SystemException> {
        Err(ExceptionKind::NoImplement.into())
    }

    fn shutdown(&self) -> Result<(), SystemException> {
        Err(ExceptionKind::NoImplement.into())
    }
}

/// Requests whose replies are more than sockets hold.
fn pipelined_requests(key: &[u8]) -> Vec<u8> {
    let requests = (0..16).flat_map(|id| {
        let mut stream = Request {
            id,
            ..Request::two_way(key, "cube_octet_sequence")
        }
        .head();
        stream.align(8).octets(&[3; 64 << 10]);
        stream.message()
    });
    requests.collect()
}

#[test]
fn a_client_that_never_reads_is_closed_after_the_send_timeout() {
    for (name, dispatch) in DispatchStrategy::ALL {
        let limits = Limits::with(|limits| limits.send_timeout = Duration::from_millis(300));
        let ours = Ours::serve_as(Orb::builder().dispatch(dispatch).limits(limits));
        // A busy host may delay one of them. Without this limit, each would last longer.
        let closed = (1..=3).find(|_| time_until_closed(&ours) < Duration::from_secs(4));
        let clients = closed.unwrap_or_else(|| panic!("{name}: it is not closed in time"));
        let counted = until(&format!("{name}: it is counted"), || {
            let counted = ours.orb.connection_counts().slow_receivers;
            (counted > 0).then_some(counted)
        });
        assert!(counted <= clients, "{name}: {counted} of {clients}");
        Good::to(&ours).call();
    }
}

/// How long a client that never reads can send.
fn time_until_closed(ours: &Ours) -> Duration {
    let key = ours.key(ours.cubit.as_object());
    let mut socket = TcpStream::connect(ours.address()).expect("the server listens");
    let bound = Some(Duration::from_secs(5));
    socket.set_write_timeout(bound).expect("not zero");
    let pipelined = pipelined_requests(&key);
    let begun = Instant::now();
    while socket.write_all(&pipelined).is_ok() {}
    begun.elapsed()
}

#[test]
fn a_client_that_reads_late_gets_every_reply() {
    for (name, dispatch) in DispatchStrategy::ALL {
        // Longer than the test takes.
        let limits = Limits::with(|limits| limits.send_timeout = Duration::from_secs(60));
        let ours = Ours::serve_as(Orb::builder().dispatch(dispatch).limits(limits));
        let key = ours.key(ours.cubit.as_object());
        let socket = TcpStream::connect(ours.address()).expect("the server listens");
        let mut connection = Connection::over(socket.try_clone().expect("a descriptor"));
        connection.send(&pipelined_requests(&key)[..]);
        connection.finish();
        until_full(&socket);
        let mut ids: Vec<_> = std::iter::from_fn(|| connection.answer())
            .map(|reply| reply.id)
            .collect();
        ids.sort_unstable();
        assert_eq!(ids, (0..16).collect::<Vec<_>>(), "{name}");
    }
}

/// Waits until as many bytes have come as the client's socket takes, or until no more come.
pub(super) fn until_full(socket: &TcpStream) {
    let mut before = 0;
    until("no more bytes come", || {
        let bytes = rustix::io::ioctl_fionread(socket).expect("it is a socket");
        let is_full = bytes > 0 && bytes == before;
        before = bytes;
        is_full.then_some(())
    });
}

#[test]
fn clients_that_pipeline_hear_that_the_server_ends() {
    for (name, dispatch) in DispatchStrategy::ALL {
        for _ in 0..5 {
            let is_told = until("the host delays no client", || {
                end_beside_pipelining(dispatch)
            });
            assert!(is_told, "{name}: no CloseConnection");
        }
    }
}

/// Ends a server while two clients pipeline. Returns whether both are told so; `None` if they are not, and the host has delayed one for
/// longer than a server waits.
fn end_beside_pipelining(dispatch: DispatchStrategy) -> Option<bool> {
    // Longer than the test takes.
    let limits = Limits::with(|limits| limits.send_timeout = Duration::from_secs(60));
    let ours = Ours::serve_as(Orb::builder().dispatch(dispatch).limits(limits));
    let key = ours.key(ours.cubit.as_object());
    let (sent, sends) = channel();
    let clients: Vec<_> = (0..2)
        .map(|_| pipelining_client(ours.address(), &key, &sent))
        .collect();
    // They send without pause by now.
    for _ in 0..20 {
        sends.recv().expect("they send");
    }
    drop(ours);
    let ended = clients.into_iter().map(|it| it.join().expect("no panic"));
    let ended: Vec<_> = ended.collect();
    let is_told = ended.iter().all(|(is_told, _)| *is_told);
    let is_delayed = ended.iter().any(|(_, delay)| *delay > MOST_DELAY);
    (is_told || !is_delayed).then_some(is_told)
}

/// A server that ends waits for 500 ms for what its client's host takes.
const MOST_DELAY: Duration = Duration::from_millis(200);

/// How long the calling thread has waited for a CPU so far; 0 if the kernel does not say.
fn delay_of_thread() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let delay_ns = text.split(' ').nth(1).and_then(|word| word.parse().ok());
    Duration::from_nanos(delay_ns.unwrap_or(0))
}

/// Sends requests without pause, and reads what comes slower; returns whether the last message is CloseConnection, and how long it has
/// waited for a CPU.
fn pipelining_client(
    server: SocketAddr,
    key: &[u8],
    sent: &Sender<()>,
) -> thread::JoinHandle<(bool, Duration)> {
    let request = Request::two_way(key, "cube_long").of_long(3).repeat(50);
    let mut socket = TcpStream::connect(server).expect("the server listens");
    // It is accepted once it is served.
    assert!(
        Connection::over(socket.try_clone().expect("a descriptor"))
            .ask(&request)
            .is_some()
    );
    let mut sending = socket.try_clone().expect("a descriptor");
    sending
        .set_write_timeout(Some(Duration::from_millis(200)))
        .expect("not zero");
    let sent = sent.clone();
    thread::spawn(move || {
        let sender = thread::spawn(move || {
            while sending.write_all(&request).is_ok() {
                // Nobody counts any more once the server ends.
                let _ = sent.send(());
            }
        });
        until_full(&socket);
        let mut received = Vec::new();
        // A reset behind CloseConnection takes nothing away.
        let _ = socket.read_to_end(&mut received);
        let _ = socket.shutdown(std::net::Shutdown::Both);
        sender.join().expect("no panic");
        let is_told =
            received.len() >= 12 && received[received.len() - 12..][7] == CLOSE_CONNECTION;
        (is_told, delay_of_thread())
    })
}

#[test]
fn a_server_that_ends_leaves_the_socket_file_of_another() {
    let scratch = Scratch::new();
    let path = scratch.join("socket");
    let endpoint = format!("uiop://{}", path.display());
    let serve = || Ours::serve_as(Orb::builder().listen(&endpoint));
    let first = serve();
    std::fs::remove_file(&path).expect("it is there");
    let second = serve();
    drop(first);
    assert!(path.exists(), "the second server's file");
    let text = second.text(second.cubit.as_object());
    let client = Orb::builder().build().expect("an ORB");
    let object = client.string_to_object(&text).expect("a reference");
    assert_eq!(object.is_a("IDL:Cubit:1.0"), Ok(true));
    drop(second);
    assert!(!path.exists(), "its own file");
}
