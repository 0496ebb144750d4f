//! Writes the golden conversations of other ORBs into crates/rtorb-wire/tests/golden.
//!
//! One file a conversation: lines that begin with `#` are words, the others are the number of the connection,
//! `client` or `server`, and one GIOP message in hex. `references.txt` has lines of a name and a reference.
#![forbid(unsafe_code)]

use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use rtorb_tests::peers::jacorb::jacorb;
use rtorb_tests::peers::omniorb::{Endpoint, OmniOrb, omniorb};
use rtorb_tests::recorder::{Message, Recorder, Sender};

fn main() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/rtorb-wire/tests/golden");
    let scratch = std::env::temp_dir().join(format!("rtorb-record-{}", std::process::id()));
    fs::create_dir_all(&scratch).expect("the temporary folder can be written");
    let mut references = "# Names and references of other ORBs; written by `cargo run -p rtorb-tests --bin record`.\n".to_owned();
    if let Some(omniorb) = omniorb() {
        record_omniorb(omniorb, &scratch, &golden, &mut references);
    }
    if let Some(jacorb) = jacorb() {
        let (_server, reference) = jacorb.serve("CubitServer", &scratch);
        let _ = writeln!(references, "jacorb-cubit {reference}");
        let (recorder, at) = recorded(&reference);
        jacorb.call("CubitClient", &at, &["0,1,4"]);
        let words = "JacORB 3.9 with itself, Cubit, GIOP 1.2, big-endian";
        write(
            &golden.join("jacorb-cubit-1.2.txt"),
            words,
            &recorder.messages(),
        );
        let (_server, reference) = jacorb.serve("DeskServer", &scratch);
        let _ = writeln!(references, "jacorb-desk {reference}");
        let (recorder, at) = recorded(&reference);
        jacorb.call("DeskClient", &at, &[]);
        let words = "JacORB 3.9 with itself, Desk, GIOP 1.2, big-endian";
        write(
            &golden.join("jacorb-desk-1.2.txt"),
            words,
            &recorder.messages(),
        );
    }
    write_text(&golden.join("references.txt"), &references);
    fs::remove_dir_all(&scratch).expect("the temporary folder can be removed");
}

fn record_omniorb(omniorb: &OmniOrb, scratch: &Path, golden: &Path, references: &mut String) {
    for program in ["cubit", "desk"] {
        let server = format!("{program}_server");
        let (_server, reference) = omniorb.serve(&server, scratch, Endpoint::Tcp, &[]);
        fs::remove_file(scratch.join(format!("{server}.ior"))).expect("the server wrote it");
        let _ = writeln!(references, "omniorb-{program} {reference}");
        for version in ["1.0", "1.1", "1.2"] {
            let (recorder, at) = recorded(&reference);
            let mut options = vec!["-ORBmaxGIOPVersion", version];
            options.extend(if program == "cubit" {
                ["--lengths", "0,1,4"].as_slice()
            } else {
                &[]
            });
            options.extend(if program == "desk" && version != "1.2" {
                ["--no-wide"].as_slice()
            } else {
                &[]
            });
            omniorb.call(&format!("{program}_client"), &at, &options);
            let words =
                format!("omniORB 4.2.5 with itself, {program}, GIOP {version}, little-endian");
            write(
                &golden.join(format!("omniorb-{program}-{version}.txt")),
                &words,
                &recorder.messages(),
            );
        }
        if program == "cubit" {
            let (recorder, at) = recorded(&reference);
            omniorb.call("cubit_client", &at, &["--lengths", "1100"]);
            let long = recorder
                .messages()
                .into_iter()
                .filter(|message| message.octets.len() > 300)
                .collect::<Vec<_>>();
            let words = "omniORB 4.2.5 with itself, GIOP 1.2: sequences of 1100, the structs in fragments; long messages only";
            write(&golden.join("omniorb-fragments-1.2.txt"), words, &long);
        }
    }
    let socket = scratch.join("socket");
    let (_server, reference) = omniorb.serve("cubit_server", scratch, Endpoint::Unix(&socket), &[]);
    let _ = writeln!(references, "omniorb-unix {reference}");
}

/// The address on loopback in `IOR:...`, and the same reference with the address of `recorder`, made of it.
fn recorded(reference: &str) -> (Recorder, String) {
    // The host is a string with its terminator at a multiple of four, so the port follows at once.
    let host = "127.0.0.1\0"
        .bytes()
        .fold(String::new(), |hex, octet| hex + &format!("{octet:02x}"));
    let lower = reference.to_lowercase().replacen("ior:", "IOR:", 1);
    let at = lower.find(&host).expect("the server is on loopback") + host.len();
    let port = u16::from_str_radix(&lower[at..at + 4], 16).expect("a reference is hex");
    let little = lower.starts_with("IOR:01");
    let turned = |port: u16| if little { port.swap_bytes() } else { port };
    let recorder = Recorder::before(SocketAddr::from(([127, 0, 0, 1], turned(port))));
    let through = format!(
        "{}{:04x}{}",
        &lower[..at],
        turned(recorder.address().port()),
        &lower[at + 4..]
    );
    (recorder, through)
}

fn write(file: &Path, words: &str, messages: &[Message]) {
    let mut text = format!("# {words}; written by `cargo run -p rtorb-tests --bin record`.\n");
    for message in messages {
        let sender = match message.sender {
            Sender::Client => "client",
            Sender::Server => "server",
        };
        let _ = write!(text, "{} {sender} ", message.connection);
        for octet in &message.octets {
            let _ = write!(text, "{octet:02x}");
        }
        text.push('\n');
    }
    write_text(file, &text);
}

fn write_text(file: &Path, text: &str) {
    fs::write(file, text).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    println!("{}: {} lines", file.display(), text.lines().count());
}
