//! TLS over a listening socket that a service manager passed.

use crate::pki::{Pki, orb};
use rtorb::{Orb, SystemException};
use rtorb_tests::ours::Ours;
use rtorb_tests::passed_sockets::until_a_client_waits;
use rtorb_tests::running::PATIENCE;
use rtorb_tests::server_process::{ServerProcess, say_ready};
use rtorb_tests::stubs::Cubit;
use rtorb_tls::keys::Purpose;
use rtorb_tls::{Tls, TlsBuilder};
use rustix::process::{Signal, set_parent_process_death_signal};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;

#[test]
#[ignore = "a server that another test starts"]
fn serve_over_tls_at_an_inherited_socket() {
    set_parent_process_death_signal(Some(Signal::KILL)).expect("it is a legal signal");
    let keys = PathBuf::from(std::env::var(KEYS).expect("the test sets it"));
    let tls = Tls::builder()
        .certificate(keys.join("server.pem"), keys.join("server.key"))
        .authorities(keys.join("ca.pem"));
    let tls = tls.build().expect("right files");
    let builder = Orb::builder().secure_transport(tls.transport());
    let ours = Ours::serve_as(builder.listen("inherited://plant/ssliop"));
    ours.orb
        .bind_object_key("Cubit", ours.cubit.as_object())
        .expect("it is free");
    let (ends, ended) = mpsc::channel();
    let signal = move || ends.send(()).expect("the test waits");
    let watched = ours.orb.shutdown_on_signals(signal);
    watched.expect("a thread");
    say_ready(ours.orb.endpoints()[0].to_string());
    ended.recv().expect("a signal");
}

fn cube(client: TlsBuilder, url: &str) -> Result<i32, SystemException> {
    let orb = orb(client).build().expect("an ORB");
    let object = orb.string_to_object(url).expect("it is an address");
    Cubit::unchecked_narrow(object.with_timeout(Some(PATIENCE))).cube_long(3)
}

#[test]
fn a_client_waits_for_its_handshake_until_the_server_of_the_socket_runs() {
    let pki = Pki::new();
    pki.issue(Purpose::Server, "server", &["127.0.0.1"]);
    let client = pki.client();
    let keys = pki.folder.display().to_string();
    let socket = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = socket.local_addr().expect("it is bound");
    let url = &format!("corbaloc:ssliop:1.2@{address}/Cubit");
    // Killed or ended by itself: either way, the socket listens on.
    for ends_by_itself in [false, true, false] {
        thread::scope(|scope| {
            let own_client = client.clone();
            let call = scope.spawn(move || cube(own_client, url));
            until_a_client_waits(&socket);
            assert!(!call.is_finished());
            let own = socket.try_clone().expect("a descriptor");
            let sockets = vec![("plant", own.into())];
            let mut server = ServerProcess::start_with_sockets(SERVING, &[(KEYS, &keys)], sockets);
            assert_eq!(server.reference(), format!("ssliop://{address}"));
            assert_eq!(call.join().expect("no panic"), Ok(27));
            if ends_by_itself {
                server.end();
            } else {
                server.kill();
            }
        });
    }
}

const SERVING: &str = "inherited::serve_over_tls_at_an_inherited_socket";
const KEYS: &str = "RTORB_TEST_KEYS";
