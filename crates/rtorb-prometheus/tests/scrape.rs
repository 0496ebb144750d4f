//! Scrapes of a process that calls itself.

use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::process::{self, Command};

use rtorb::Orb;
use rtorb_tests::ours::Ours;
use rtorb_tests::running::{Running, until};

/// Starts the endpoint for a target; returns it and its address.
fn endpoint(target: &str) -> (Running, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rtorb-prometheus"));
    command.args(["--listen", "127.0.0.1:0", target]);
    let (running, line) = Running::until_line(&mut command, "http://");
    let address = line.trim().trim_start_matches("http://");
    let address = address.trim_end_matches("/metrics").to_owned();
    (running, address)
}

/// Returns the status line, with the headers, and the body of an answer.
fn get(address: &str, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("there is room");
    let mut answer = String::new();
    stream
        .read_to_string(&mut answer)
        .expect("it is text, and ends");
    let (head, body) = answer.split_once("\r\n\r\n").expect("headers end");
    (head.to_owned(), body.to_owned())
}

#[test]
fn calls_are_in_the_scrape_of_their_process_by_operation_side_and_outcome() {
    let ours = Ours::serve_as(Orb::builder().recorder());
    for number in 0..20 {
        assert_eq!(ours.cubit.cube_short(number), Ok(number * number * number));
    }
    let process = process::id().to_string();
    let (_endpoint, address) = endpoint(&process);
    // The kernel keeps 15 bytes of it.
    let named = fs::read_to_string("/proc/self/comm").expect("this process");
    let named = named.trim();
    let labels = |side: &str| {
        format!("process=\"{named}\",pid=\"{process}\",side=\"{side}\",operation=\"cube_short\"")
    };
    let calls = |side: &str, outcome: &str| {
        format!(
            "rtorb_calls_total{{{},outcome=\"{outcome}\"}} ",
            labels(side)
        )
    };
    // The server counts a call once it has replied.
    let body = until("the calls are counted", || {
        let (head, body) = get(&address, "/metrics");
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        assert!(head.contains("application/openmetrics-text"), "{head}");
        let line = calls("server", "done");
        body.contains(&format!("\n{line}20\n")).then_some(body)
    });
    let value = |start: &str| {
        let mut found = body.lines().filter_map(|line| line.strip_prefix(start));
        let value = found
            .next()
            .unwrap_or_else(|| panic!("no {start} in {body}"));
        value.parse::<f64>().expect("a number")
    };
    for side in ["client", "server"] {
        assert!(value(&calls(side, "timeout")).abs() < 0.5);
        for count in ["rtorb_deadline_misses_total", "rtorb_demotions_total"] {
            assert!(value(&format!("{count}{{{}}} ", labels(side))).abs() < 0.5);
        }
        let labels = labels(side);
        let count = value(&format!("rtorb_call_time_seconds_count{{{labels}}} "));
        let all = value(&format!(
            "rtorb_call_time_seconds_bucket{{le=\"+Inf\",{labels}}} "
        ));
        assert!((count, all) == (20.0, 20.0), "{count} {all}");
        let longest_s = value(&format!("rtorb_longest_call_seconds{{{labels}}} "));
        let sum_s = value(&format!("rtorb_call_time_seconds_sum{{{labels}}} "));
        assert!(0.0 < longest_s && longest_s <= sum_s, "{longest_s} {sum_s}");
    }
    let labels = format!("process=\"{named}\",pid=\"{process}\"");
    for reason in ["refused", "shed", "expired"] {
        let unserved = format!("rtorb_unserved_total{{{labels},reason=\"{reason}\"}} ");
        assert!(value(&unserved).abs() < 0.5);
    }
    assert!(body.ends_with("# EOF\n"), "{body}");
}

#[test]
fn what_is_not_there_is_refused_and_a_process_that_has_ended_has_no_counters() {
    let (_endpoint, address) = endpoint("no-such-process");
    let (head, body) = get(&address, "/");
    assert!(head.starts_with("HTTP/1.1 404 "), "{head}");
    assert!(body.contains("/metrics"), "{body}");
    let (head, body) = get(&address, "/metrics");
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert!(!body.contains("pid="), "{body}");
}

#[test]
fn an_address_that_is_taken_ends_the_command() {
    let (_endpoint, address) = endpoint("no-such-process");
    let output = Command::new(env!("CARGO_BIN_EXE_rtorb-prometheus"))
        .args(["--listen", &address])
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains(&address), "{said}");
    // The status is the same if standard error is closed.
    let (reader, writer) = io::pipe().expect("a pipe");
    drop(reader);
    let status = Command::new(env!("CARGO_BIN_EXE_rtorb-prometheus"))
        .args(["--listen", &address])
        .stderr(writer)
        .status()
        .expect("it runs");
    assert_eq!(status.code(), Some(1));
}
