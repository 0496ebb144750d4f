//! Listening sockets that a service manager passes to a server: clients wait there while the server starts, and while it is started again.

use rtorb::exception::local;
use rtorb::{Orb, OrbError, SystemException};
use rtorb_tests::loopback::own_listener;
use rtorb_tests::passed_sockets::until_a_client_waits;
use rtorb_tests::running::{PATIENCE, until};
use rtorb_tests::scratch::Scratch;
use rtorb_tests::server_process::{ServerProcess, say_ready};
use rtorb_tests::stubs::exchange::{Party, PartyServant};
use rustix::process::{Signal, set_parent_process_death_signal};
use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::thread::{self, ScopedJoinHandle};

/// Two sockets that this test has opened and keeps, as a service manager does.
struct Sockets {
    tcp: TcpListener,
    unix: UnixListener,
    folder: Scratch,
}

impl Sockets {
    fn open() -> Self {
        let folder = Scratch::new();
        let unix = UnixListener::bind(folder.join("socket")).expect("the folder can be written");
        Self {
            tcp: own_listener(),
            unix,
            folder,
        }
    }

    /// Starts a server with both.
    fn start(&self, endpoints: &str, dispatch: &str) -> ServerProcess {
        let tcp = self.tcp.try_clone().expect("a descriptor");
        let unix = self.unix.try_clone().expect("a descriptor");
        let sockets = vec![("tcp", tcp.into()), ("unix", unix.into())];
        start(endpoints, dispatch, sockets)
    }

    fn tcp_url(&self) -> String {
        let address = self.tcp.local_addr().expect("it is bound");
        format!("corbaloc:iiop:1.2@{address}/{KEY}")
    }

    fn unix_url(&self) -> String {
        let path = self.folder.join("socket");
        format!("corbaloc:uiop:1.2@{}|{KEY}", path.display())
    }
}

fn start(endpoints: &str, dispatch: &str, sockets: Vec<(&'static str, OwnedFd)>) -> ServerProcess {
    let variables = [(ENDPOINTS, endpoints), (DISPATCH, dispatch)];
    ServerProcess::start_with_sockets(SERVING, &variables, sockets)
}

/// Its name is the number of its process.
struct Numbered;

impl PartyServant for Numbered {
    fn name(&self) -> Result<String, SystemException> {
        Ok(std::process::id().to_string())
    }

    fn level(&self) -> Result<i32, SystemException> {
        Ok(7)
    }

    fn set_level(&self, _: i32) -> Result<(), SystemException> {
        Ok(())
    }
}

/// The server, in a process of its own. Its reference is that of the object, or the reason why there is none.
#[test]
#[ignore = "a server that other tests start"]
fn serve_at_inherited_sockets() {
    set_parent_process_death_signal(Some(Signal::KILL)).expect("it is a legal signal");
    let variable = |name| std::env::var(name).expect("the test sets it");
    let (endpoints, dispatch) = (variable(ENDPOINTS), variable(DISPATCH));
    let options = ["-ORBListenEndpoints", &endpoints, "-ORBDispatch", &dispatch];
    let options = ["server"].into_iter().chain(options);
    let orb = Orb::builder().args(options.map(str::to_owned));
    let orb = orb.build().expect("an ORB");
    let poa = match orb.root_poa() {
        Ok(poa) => poa,
        Err(refused) => return say_ready(retried(refused)),
    };
    let party: Party = poa.activate(Numbered).expect("there is room");
    orb.bind_object_key(KEY, party.as_object())
        .expect("it is free");
    orb.shutdown_on_signals(|| ()).expect("a thread");
    orb.run_with(|| {
        say_ready(party.as_object());
        Ok::<(), OrbError>(())
    })
    .expect("it serves");
}

/// Returns the exception of an ORB that could not listen, or of another one in the same process that listens at [`OTHER_ENDPOINTS`], if that is
/// set; the endpoints of that one if it listens.
fn retried(refused: SystemException) -> String {
    let Ok(endpoints) = std::env::var(OTHER_ENDPOINTS) else {
        return refused.to_string();
    };
    let orb = Orb::builder().args(["server", "-ORBListenEndpoints", &endpoints].map(str::to_owned));
    let orb = orb.build().expect("an ORB");
    match orb.root_poa() {
        Ok(_) => format!("{refused}; then it listens at {}", orb.endpoints()[0]),
        Err(refused) => refused.to_string(),
    }
}

/// The object at that address, by an ORB of its own.
fn party_at(url: &str) -> Party {
    let orb = Orb::builder().build().expect("an ORB");
    let object = orb.string_to_object(url).expect("it is an address");
    Party::unchecked_narrow(object.with_timeout(Some(PATIENCE)))
}

/// Starts a call that waits at a socket of which nobody accepts clients now.
fn waiting_call<'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    url: String,
    socket: impl AsFd,
) -> ScopedJoinHandle<'scope, Result<String, SystemException>> {
    let call = scope.spawn(move || party_at(&url).name());
    until_a_client_waits(socket);
    assert!(!call.is_finished());
    call
}

#[test]
fn clients_wait_at_inherited_sockets_until_their_server_runs() {
    for dispatch in ["thread_per_connection", "reactive", "worker_pool"] {
        let sockets = Sockets::open();
        let old = party_at(&sockets.tcp_url());
        let mut server = thread::scope(|scope| {
            let calls = [
                waiting_call(scope, sockets.tcp_url(), &sockets.tcp),
                waiting_call(scope, sockets.unix_url(), &sockets.unix),
            ];
            let mut server = sockets.start("inherited://", dispatch);
            server.reference();
            for call in calls {
                let name = call.join().expect("no panic");
                assert_eq!(name, Ok(server.id().to_string()), "{dispatch}");
            }
            server
        });
        assert_eq!(old.name(), Ok(server.id().to_string()));

        // Killed, and then ended by itself: either way, its sockets listen on.
        for ends_by_itself in [false, true] {
            if ends_by_itself {
                server.end();
            } else {
                server.kill();
            }
            server = thread::scope(|scope| {
                let calls = [
                    waiting_call(scope, sockets.tcp_url(), &sockets.tcp),
                    waiting_call(scope, sockets.unix_url(), &sockets.unix),
                ];
                let mut next = sockets.start("inherited://tcp;inherited://unix", dispatch);
                next.reference();
                for call in calls {
                    let name = call.join().expect("no panic");
                    assert_eq!(name, Ok(next.id().to_string()), "{dispatch}");
                }
                next
            });
            // A call of a client whose connection was lost may fail once.
            let name = until("the reference works again", || old.name().ok());
            assert_eq!(name, server.id().to_string());
        }
    }
}

#[test]
fn a_reference_contains_the_address_of_the_socket_or_the_published_one() {
    let sockets = Sockets::open();
    let orb = Orb::builder().build().expect("an ORB");
    let endpoints = |server: &mut ServerProcess| {
        let object = orb.string_to_object(&server.reference());
        let object = object.expect("a reference");
        let endpoints = object.endpoints().map(ToString::to_string);
        endpoints.collect::<Vec<_>>()
    };
    let address = sockets.tcp.local_addr().expect("it is bound");
    let path = sockets.folder.join("socket");
    // The IIOP profile has the UNIX socket too, for clients of this host, and they try it first.
    let unix = format!("uiop://{}", path.display());
    let tcp = format!("iiop://{address}");
    let mut server = sockets.start("inherited://", "reactive");
    assert_eq!(endpoints(&mut server), [&*unix, &tcp, &unix]);
    server.end();
    let published = "inherited://tcp/publish=gate:12809&publish=wall";
    let mut server = sockets.start(published, "reactive");
    let wall = format!("iiop://wall:{}", address.port());
    assert_eq!(endpoints(&mut server), ["iiop://gate:12809", &wall]);
    server.end();
    assert!(path.exists(), "the file is the service manager's");
}

#[test]
fn a_server_waits_for_no_client_at_its_sockets_and_gives_them_to_no_program() {
    let sockets = Sockets::open();
    let mut server = sockets.start("inherited://", "worker_pool");
    server.reference();
    for descriptor in [3, 4] {
        let path = format!("/proc/{}/fdinfo/{descriptor}", server.id());
        let info = fs::read_to_string(&path).expect("the socket is open");
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
        let flags = flags.expect("it has flags").trim();
        let flags = u32::from_str_radix(flags, 8).expect("they are octal");
        assert_eq!(flags & NONBLOCK, NONBLOCK, "{info}");
        assert_eq!(flags & CLOEXEC, CLOEXEC, "{info}");
    }
    server.end();
}

#[test]
fn what_is_no_socket_for_the_endpoint_is_refused_with_the_reason() {
    let sockets = Sockets::open();
    for (endpoints, reason) in [
        ("inherited://plant", "the names are tcp, unix"),
        ("inherited://tcp;inherited://tcp", "descriptor 3 is taken"),
        ("inherited://;inherited://", "all sockets that were passed"),
        ("inherited://unix/publish=gate:1", "none of its sockets"),
        ("inherited://tcp/ssliop", "ssliop:// needs TLS"),
    ] {
        let mut server = sockets.start(endpoints, "reactive");
        let refused = server.reference();
        assert!(refused.contains("INITIALIZE"), "{endpoints}: {refused}");
        assert!(refused.contains("listening on inherited://"), "{refused}");
        assert!(refused.contains(reason), "{endpoints}: {refused}");
    }
    let datagrams = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let datagrams = vec![("tcp", datagrams.into())];
    let refused = start("inherited://tcp", "reactive", datagrams).reference();
    let reason = "descriptor 3 is no listening stream socket";
    assert!(refused.contains(reason), "{refused}");
}

#[test]
fn a_socket_is_free_again_if_the_orb_cannot_listen_elsewhere() {
    let sockets = Sockets::open();
    let busy = own_listener();
    let busy = busy.local_addr().expect("it is bound");
    let endpoints = format!("inherited://;iiop://{busy}");
    let tcp = sockets.tcp.try_clone().expect("a descriptor");
    let variables = [
        (ENDPOINTS, endpoints.as_str()),
        (DISPATCH, "reactive"),
        (OTHER_ENDPOINTS, "inherited://tcp"),
    ];
    let passed = vec![("tcp", tcp.into())];
    let answer = ServerProcess::start_with_sockets(SERVING, &variables, passed).reference();
    let address = sockets.tcp.local_addr().expect("it is bound").to_string();
    for part in ["INITIALIZE", "then it listens at", &address] {
        assert!(answer.contains(part), "{answer}");
    }
}

#[test]
fn an_endpoint_without_a_service_manager_is_refused() {
    let orb = Orb::builder().listen("inherited://plant").build();
    let refused = orb.expect("an ORB").root_poa().map(drop);
    let refused = refused.expect_err("no socket was passed to this test");
    assert_eq!(refused.minor, local::NO_INHERITED_SOCKET.minor, "{refused}");
    for part in ["no socket was passed", "LISTEN_FDS", ".socket unit"] {
        assert!(refused.to_string().contains(part), "{refused}");
    }
}

const SERVING: &str = "inherited_sockets::serve_at_inherited_sockets";
const ENDPOINTS: &str = "RTORB_TEST_ENDPOINTS";
const DISPATCH: &str = "RTORB_TEST_DISPATCH";
const OTHER_ENDPOINTS: &str = "RTORB_TEST_OTHER_ENDPOINTS";
const KEY: &str = "Party";
/// Flags of an open descriptor, as proc_pid_fdinfo(5) shows them.
const NONBLOCK: u32 = 0o4000;
const CLOEXEC: u32 = 0o2_000_000;
