//! The gateway and its motor, as two processes, and a browser.

use rtorb_tests::loopback::own_endpoint;
use rtorb_tests::running::Running;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::thread;

/// Sends a request, and returns the status and the body of the answer.
fn asked(address: &str, method: &str, path: &str) -> (u16, String) {
    let mut browser = TcpStream::connect(address).expect("the gateway listens");
    let request = format!("{method} {path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n");
    browser
        .write_all(request.as_bytes())
        .expect("there is room");
    let mut answer = String::new();
    browser.read_to_string(&mut answer).expect("it is text");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).expect("a status");
    (status.parse().expect("a number"), body.to_owned())
}

#[test]
fn a_browser_turns_a_motor() {
    let mut motor = Command::new(env!("CARGO_BIN_EXE_motor"));
    motor.args(["-ORBListenEndpoints", &own_endpoint()]);
    let (motor, reference) = Running::until_line(&mut motor, "IOR:");
    let mut gateway = Command::new(env!("CARGO_BIN_EXE_gateway"));
    gateway.args([&format!("IOR:{reference}"), "127.0.0.1:0"]);
    let (_gateway, address) = Running::until_line(&mut gateway, "listening on ");
    let address = address.trim();
    assert_eq!(
        asked(address, "POST", "/turn?degrees=10"),
        (200, "{\"position\":10}".to_owned())
    );
    // Fifty at once: each alone takes 20 ms, and all share one connection and one thread on each side.
    let turns: Vec<_> = (0..50)
        .map(|_| {
            let address = address.to_owned();
            thread::spawn(move || asked(&address, "POST", "/turn?degrees=20"))
        })
        .collect();
    let mut answers: Vec<_> = turns
        .into_iter()
        .map(|turn| turn.join().expect("no panic"))
        .collect();
    assert!(answers.iter().all(|it| it.0 == 200), "{answers:?}");
    answers.sort_by_key(|(_, body)| (body.len(), body.clone()));
    let one_by_one = (1..=50).map(|turn| (200, format!("{{\"position\":{}}}", 10 + 20 * turn)));
    assert!(one_by_one.ne(answers), "one after another");
    // A turn that takes longer than the deadline.
    let (status, body) = asked(address, "POST", "/turn?degrees=100000");
    assert_eq!(status, 504, "{body}");
    assert!(body.contains("TIMEOUT"), "{body}");
    assert_eq!(asked(address, "POST", "/turn").0, 400);
    assert_eq!(asked(address, "GET", "/turn?degrees=1").0, 405);
    drop(motor);
    let (status, body) = asked(address, "POST", "/turn?degrees=1");
    assert_eq!(status, 503, "{body}");
}
