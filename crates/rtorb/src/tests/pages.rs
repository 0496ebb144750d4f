//! The parts of the reference pages that this crate determines.

use std::fmt::Write as _;
use std::time::Duration;

use rtorb_tests::pages::{check_part, comment_before};
use rtorb_wire::exception::{NOT_UNDERSTOOD, broken_rule};
use rustix::io::Errno;

use crate::Limits;
use crate::exception::{
    COLLOCATED_DEPTH, Cause, CompletionStatus, ExceptionKind, NO_USABLE_PROFILE, OMG, Phase, RTORB,
    SystemException, inconsistent, local, oneway, text,
};

#[test]
fn the_page_of_limits_is_what_the_code_says() {
    let source = include_str!("../limits.rs");
    let defaults = format!("{:?}", Limits::default());
    let fields = defaults
        .trim_start_matches("Limits { ")
        .trim_end_matches(" }");
    let mut table = "| limit | default | meaning |\n|---|--:|---|\n".to_owned();
    for field in fields.split(", ") {
        let (name, value) = field.split_once(": ").expect("a field has a value");
        let comment = comment_before(source, &format!("pub {name}:"));
        let value = value.parse().map_or_else(|_| value.to_owned(), grouped);
        writeln!(table, "| `{name}` | {value} | {comment} |").expect("a String takes everything");
    }
    check_part("reference/limits.md", "limits", &table);
}

#[test]
fn the_page_of_exceptions_is_what_the_code_says() {
    check_part("reference/exceptions.md", "kinds", &kinds());
    check_part("reference/exceptions.md", "steps", &steps());
    check_part("reference/exceptions.md", "minor codes", &minor_codes());
}

/// Every exception of the standard, and its meaning.
fn kinds() -> String {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../rtorb-wire/src/exception.rs"
    );
    let source =
        std::fs::read_to_string(path).expect("the source of rtorb-wire is beside that of rtorb");
    let mut table = "| exception | meaning |\n|---|---|\n".to_owned();
    let declared = source
        .split("\nkinds! {\n")
        .nth(1)
        .and_then(|rest| rest.split("\n}").next())
        .expect("the exceptions are declared");
    for line in declared.lines().filter(|line| !line.contains("///")) {
        let name = line.split('"').nth(1).expect("an exception has a name");
        let variant = line.split_whitespace().next().expect("it has a variant");
        let comment = comment_before(declared, variant);
        writeln!(table, "| {name} | {comment} |").expect("a String takes everything");
    }
    table
}

/// The steps of an invocation, as texts of exceptions name them, and the remedy if one fails.
fn steps() -> String {
    let mut table = "| the text says | exception | remedy |\n|---|---|---|\n".to_owned();
    for (phase, exception) in [
        (Phase::Resolve, ExceptionKind::Transient.into()),
        (Phase::Resolve, ExceptionKind::Timeout.into()),
        (Phase::Connect, ExceptionKind::Transient.into()),
        (Phase::Connect, ExceptionKind::Timeout.into()),
        (Phase::SetUp, ExceptionKind::NoResources.into()),
        (Phase::Handshake, ExceptionKind::Transient.into()),
        (Phase::Handshake, ExceptionKind::Timeout.into()),
        (Phase::Send, ExceptionKind::CommFailure.into()),
        (Phase::Send, ExceptionKind::Timeout.into()),
        (Phase::AwaitReply, ExceptionKind::Transient.into()),
        (Phase::AwaitReply, ExceptionKind::Timeout.into()),
        (Phase::AwaitUnserved, ExceptionKind::Timeout.into()),
        (Phase::DecodeReply, ExceptionKind::Marshal.into()),
        (Phase::Forward, ExceptionKind::Transient.into()),
        (Phase::Forward, ExceptionKind::Timeout.into()),
        (Phase::Listen, ExceptionKind::Initialize.into()),
        (Phase::Schedule, local::PRIORITY_REFUSED),
    ] {
        table.push_str(&step(&phase.to_string(), phase, exception.clone(), None));
        if phase == Phase::Listen {
            let text = format!("{phase} ..., Permission denied");
            table.push_str(&step(&text, phase, exception, Some(Errno::ACCESS)));
        }
    }
    table
}

/// The row of a step that fails.
fn step(text: &str, phase: Phase, exception: SystemException, errno: Option<Errno>) -> String {
    let exception = exception.with_cause(Cause {
        phase,
        endpoint: None,
        elapsed: Duration::ZERO,
        errno: errno.map(Into::into),
    });
    let (kind, advice) = (exception.kind, exception.advice().unwrap_or_default());
    format!("| {text} | {kind} | {advice} |\n")
}

/// The minor codes for which this ORB has a remedy.
fn minor_codes() -> String {
    let mut table = "| exception | minor code | rule or remedy |\n|---|---|---|\n".to_owned();
    let of_the_standard = [7, 8, 9, 10].map(|code| (ExceptionKind::BadParam, OMG | code));
    let local = local::ALL.iter().map(|(kind, minor, _)| (*kind, *minor));
    let depth = [NO_USABLE_PROFILE, COLLOCATED_DEPTH].map(|minor| (ExceptionKind::ImpLimit, minor));
    let oneways = [oneway::UNCONNECTED, oneway::BEHIND_ANOTHER, oneway::IN_USE];
    let oneways = oneways.map(|minor| (ExceptionKind::Transient, minor));
    let policies = [
        inconsistent::SET_TWICE,
        inconsistent::BANDS_WITHOUT_MODEL,
        inconsistent::NO_BAND,
        inconsistent::NO_LANE,
        inconsistent::NO_PROTOCOL,
        inconsistent::SYNC_NONE_ON_SHARED,
    ];
    let policies = policies.map(|minor| (ExceptionKind::InvPolicy, minor));
    let policies = policies
        .into_iter()
        .chain([(ExceptionKind::CommFailure, NOT_UNDERSTOOD)]);
    let rules = (RTORB + 1..)
        .take_while(|minor| broken_rule(*minor).is_some())
        .map(|minor| (ExceptionKind::Marshal, minor));
    let all = of_the_standard.into_iter().chain(local).chain(depth);
    let all = all.chain(text::CODES);
    for (kind, minor) in all.chain(oneways).chain(policies).chain(rules) {
        let exception = SystemException::new(kind, minor, CompletionStatus::No);
        let advice = exception.advice().expect("each of these has a text");
        writeln!(table, "| {kind} | `{minor:#010x}` | {advice} |")
            .expect("a String takes everything");
    }
    table
}

/// The digits of a number in groups of three.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut shown = String::with_capacity(digits.len() * 2);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}
