//! omniORB's client against our server: every operation, every version, both transports.

use std::path::Path;
use std::time::Duration;

use rtorb::cdr::CharCodeSet;
use rtorb::{DispatchStrategy, ExceptionKind, Orb, PoaPolicies};
use rtorb_tests::ours::{Ours, activate_readable};
use rtorb_tests::peers::omniorb::{decoded, omniorb};
use rtorb_tests::scratch::Scratch;
use rtorb_tests::servants::Cubes;
use rtorb_tests::stubs::Cubit;

#[test]
fn every_operation_in_every_version() {
    let Some(omniorb) = omniorb() else { return };
    let ours = Ours::serve();
    let (cubit, desk) = (
        ours.text(ours.cubit.as_object()),
        ours.text(ours.desk.as_object()),
    );
    for version in ["1.0", "1.1", "1.2"] {
        omniorb.call(
            "cubit_client",
            &cubit,
            &["--any", "-ORBmaxGIOPVersion", version],
        );
        let wide: &[&str] = if version == "1.2" {
            &[]
        } else {
            &["--no-wide"]
        };
        omniorb.call(
            "desk_client",
            &desk,
            &[&["-ORBmaxGIOPVersion", version], wide].concat(),
        );
    }
}

#[test]
fn a_server_with_its_native_code_set_takes_its_place() {
    let Some(omniorb) = omniorb() else { return };
    for (set, name) in [
        (CharCodeSet::Latin1, "ISO-8859-1"),
        (CharCodeSet::Latin9, "ISO-8859-15"),
    ] {
        let ours = Ours::serve_as(Orb::builder().native_char_code_set(set));
        let desk = ours.text(ours.desk.as_object());
        let options = ["--high-char", "-ORBnativeCharCodeSet", name];
        omniorb.call("desk_client", &desk, &options);
    }
}

#[test]
fn a_reactive_server_serves_it_too() {
    let Some(omniorb) = omniorb() else { return };
    let ours = Ours::serve_as(Orb::builder().dispatch(DispatchStrategy::Reactive));
    omniorb.call("cubit_client", &ours.text(ours.cubit.as_object()), &[]);
}

#[test]
fn a_key_of_the_applications_leads_it_to_an_object_active_or_located() {
    let Some(omniorb) = omniorb() else { return };
    let ours = Ours::serve();
    let cubit = ours.cubit.as_object();
    ours.orb
        .bind_object_key("Cubit", cubit)
        .expect("it is free");
    let root = ours.orb.root_poa().expect("the ORB runs");
    let made = root.create_poa("Located", PoaPolicies::PERSISTENT);
    let poa = made.expect("it is free");
    let orb = ours.orb.clone();
    let set = poa.set_servant_locator::<Cubit, _, _>(move |id| match id {
        b"root" => Ok(Cubes { orb: orb.clone() }),
        _ => Err(ExceptionKind::ObjectNotExist.into()),
    });
    set.expect("it has none");
    let located: Cubit = poa.create_reference_with_id("root").expect("persistent");
    ours.orb
        .bind_object_key("Located", located.as_object())
        .expect("it is free");
    for key in ["Cubit", "Located", "Located/root"] {
        for version in ["1.0", "1.1", "1.2"] {
            let url = format!("corbaloc:iiop:{version}@{}/{key}", ours.address());
            omniorb.call("cubit_client", &url, &["--lengths", "3"]);
        }
    }
}

#[test]
fn fragmented_requests_are_put_together() {
    let Some(omniorb) = omniorb() else { return };
    let ours = Ours::serve();
    // omniORB fragments what outgrows its buffer of 8 KiB: structs at every 8,192 octets, numbers once.
    for version in ["1.0", "1.1", "1.2"] {
        let options = [
            "--lengths",
            "1100,20000,100000",
            "-ORBmaxGIOPVersion",
            version,
        ];
        omniorb.call("cubit_client", &ours.text(ours.cubit.as_object()), &options);
    }
}

#[test]
fn fragmented_replies_are_put_together_by_it() {
    let Some(omniorb) = omniorb() else { return };
    let ours = Ours::serve_as(Orb::builder().fragment_bytes(512));
    omniorb.call(
        "cubit_client",
        &ours.text(ours.cubit.as_object()),
        &["--lengths", "0,1,1021,20000"],
    );
}

#[test]
fn both_byte_orders_are_read_by_it() {
    let Some(omniorb) = omniorb() else { return };
    let order = match rtorb_wire::ByteOrder::NATIVE {
        rtorb_wire::ByteOrder::Big => rtorb_wire::ByteOrder::Little,
        rtorb_wire::ByteOrder::Little => rtorb_wire::ByteOrder::Big,
    };
    let ours = Ours::serve_as(Orb::builder().byte_order(order));
    for version in ["1.0", "1.1", "1.2"] {
        let options = ["-ORBmaxGIOPVersion", version];
        omniorb.call("cubit_client", &ours.text(ours.cubit.as_object()), &options);
    }
    omniorb.call("desk_client", &ours.text(ours.desk.as_object()), &[]);
}

#[test]
fn over_a_unix_socket() {
    let Some(omniorb) = omniorb() else { return };
    let scratch = Scratch::new();
    let ours = Ours::serve_as(listening(&format!(
        "uiop://{}",
        scratch.join("socket").display()
    )));
    let cubit = ours.text(ours.cubit.as_object());
    let said = decoded(&cubit);
    assert!(
        said.contains("TAG_OMNIORB_UNIX_TRANS") && said.contains(path(&scratch.join("socket"))),
        "{said}"
    );
    omniorb.call("cubit_client", &cubit, &["--any"]);
    omniorb.call("desk_client", &ours.text(ours.desk.as_object()), &[]);
}

#[test]
fn catior_decodes_our_references() {
    if omniorb().is_none() {
        return;
    }
    let scratch = Scratch::new();
    let builder = listening("iiop://127.0.0.1:0/hostname_in_ior=example.org");
    let builder = builder.listen("iiop://127.0.0.1:0");
    let builder = builder.listen(&format!("uiop://{}", scratch.join("socket").display()));
    let ours = Ours::serve_as(builder);
    let said = decoded(&ours.text(ours.cubit.as_object()));
    for part in [
        "Type ID: \"IDL:Cubit:1.0\"",
        "IIOP 1.2 example.org ",
        "TAG_CODE_SETS",
        "char native code set:       UTF-8",
        "wchar native code set:      UTF-16",
        "TAG_ALTERNATE_IIOP_ADDRESS 127.0.0.1",
        "TAG_OMNIORB_UNIX_TRANS",
    ] {
        assert!(said.contains(part), "{part} is not in\n{said}");
    }
}

#[test]
fn a_corbaloc_finds_our_persistent_objects() {
    let Some(omniorb) = omniorb() else { return };
    let ours = Ours::serve();
    activate_readable(&ours.orb, "Interop");
    for version in ["1.0", "1.1", "1.2"] {
        let at = format!("corbaloc::{version}@{}/Interop", ours.address());
        omniorb.call("cubit_client", &format!("{at}/cubit"), &[]);
        // A corbaloc says nothing of code sets, so wide characters cannot be sent.
        omniorb.call("desk_client", &format!("{at}/desk"), &["--no-wide"]);
    }
}

#[test]
fn its_shutdown_ends_our_server() {
    let Some(omniorb) = omniorb() else { return };
    let ours = Ours::serve();
    omniorb.call(
        "cubit_client",
        &ours.text(ours.cubit.as_object()),
        &["--lengths", "1", "--shutdown"],
    );
    // The ORB still exists; a client that comes now shall be refused, and not wait for an answer.
    rtorb_tests::running::until("nobody listens any more", || {
        std::net::TcpStream::connect_timeout(&ours.address(), Duration::from_secs(1))
            .is_err()
            .then_some(())
    });
}

fn listening(endpoint: &str) -> rtorb::OrbBuilder {
    Orb::builder().listen(endpoint)
}

fn path(path: &Path) -> &str {
    path.to_str().expect("the temporary folder's path is UTF-8")
}

/// The program that the example in-flight compares with.
#[test]
fn a_hundred_threads_of_omniorb_share_a_connection() {
    let Some(omniorb) = omniorb() else { return };
    assert!(omniorb.calls_per_s(2000) > 0.0);
}
