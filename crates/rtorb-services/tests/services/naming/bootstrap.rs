//! The bootstrap object of a naming service, as the JDK's ORB calls it: GIOP 1.0, big-endian, object key `INIT`.

use super::serving::Serving;
use rtorb_services::naming::NamingConfig;
use rtorb_services::stubs::initial_references::InitialReferences;
use rtorb_tests::raw::{Answer, Connection, Request};
use std::net::SocketAddr;

fn request(operation: &str) -> Request<'_> {
    Request {
        minor: 0,
        big: true,
        ..Request::two_way(b"INIT", operation)
    }
}

fn ask(connection: &mut Connection, message: &[u8]) -> Answer {
    let answer = connection.ask(message).expect("an answer");
    assert_eq!((answer.minor, answer.status), (0, 0), "{answer:?}");
    answer
}

#[test]
fn it_leads_a_client_that_knows_host_and_port_to_the_root() {
    let serving = Serving::new(NamingConfig::default());
    let mut connection = Connection::to(SocketAddr::from(([127, 0, 0, 1], serving.port())));
    let names = ask(&mut connection, &request("list").empty());
    assert_eq!(
        names.body,
        [&long(1)[..], &long(12), b"NameService\0"].concat()
    );

    let mut get = request("get").head();
    get.string("NameService");
    let root = ask(&mut connection, &get.message());
    let type_id = b"IDL:omg.org/CosNaming/NamingContextExt:1.0\0";
    assert!(root.body.starts_with(&[&long(43)[..], type_id].concat()));

    let mut get = request("get").head();
    get.string("EventService");
    let nil = ask(&mut connection, &get.message());
    // An empty type with padding, and no profiles.
    assert_eq!(nil.body, [long(1), [0; 4], long(0)].concat());
}

/// In the byte order of the server, which is this host's.
fn long(value: u32) -> [u8; 4] {
    value.to_ne_bytes()
}

#[test]
fn it_ends_with_the_service() {
    let serving = Serving::new(NamingConfig::default());
    let url = format!("corbaloc::1.2@127.0.0.1:{}/INIT", serving.port());
    let object = serving.client.string_to_object(&url).expect("a reference");
    let bootstrap = InitialReferences::unchecked_narrow(object.clone());
    let root = bootstrap.get("NameService").expect("it answers");
    let root = root.expect("it is not nil");
    assert_eq!(root.to_string(), serving.root.as_object().to_string());
    serving.service.end();
    assert_eq!(object.non_existent(), Ok(true));
}
