//! Any file of a system is read or refused: valid files mean what they say, and errors name an existing line.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use rtorb_sched::model::{CallWay, System, Timing, Trigger};

/// Annotations for the operation that these files name.
fn annotations(_: &[PathBuf]) -> Result<BTreeMap<String, Timing>, String> {
    let timing = Timing {
        worst_ns: Some(3_000_000),
        period_ns: Some(50_000_000),
        ..Timing::default()
    };
    Ok(BTreeMap::from([(
        "Avionics::Nav::update".to_owned(),
        timing,
    )]))
}

fn parse(text: &str) -> Result<System, (Option<usize>, String)> {
    System::parse(text, Path::new("/systems"), &annotations)
}

/// Checks that the text is read, or refused with a line of the text and a short message.
fn is_answered(text: &str) -> Result<(), TestCaseError> {
    if let Err((line, reason)) = parse(text) {
        let lines = text.matches('\n').count() + 1;
        prop_assert!(
            line.is_none_or(|line| (1..=lines).contains(&line)),
            "{line:?}"
        );
        prop_assert!(!reason.is_empty() && reason.len() < 100_000, "{reason}");
    }
    Ok(())
}

const FILES: [&str; 6] = [
    include_str!("system_files/good.toml"),
    include_str!("../../../../examples/model/avionics.toml"),
    include_str!("../../../../examples/model/two-receivers.toml"),
    include_str!("../../../../examples/model/robot-arm.toml"),
    include_str!("../../../../examples/model/overloaded.toml"),
    include_str!("../../../../examples/model/engine-control.toml"),
];

/// The replacements of a change.
const WORDS: [&str; 24] = [
    "0",
    "-1",
    "1",
    "99999999999999999999",
    "1.5",
    "nan",
    "true",
    "\"\"",
    "\"0ns\"",
    "\"1ns\"",
    "\"86400s\"",
    "\"18446744073709551615ns\"",
    "\"sensors.sample\"",
    "\"filter\"",
    "\"edf\"",
    "\"event\"",
    "\"two-way\"",
    "[]",
    "{}",
    "[[node]]",
    "1979-05-27",
    "\u{7f}",
    "é",
    "=",
];

/// A change of a text: a line or a word is removed, doubled or replaced.
#[derive(Clone, Debug)]
enum Slip {
    DropLine(usize),
    RepeatLine(usize, usize),
    ChangeWord(usize, usize),
    CopyWord(usize, usize),
    Cut(usize),
}

fn slip() -> impl Strategy<Value = Slip> {
    let place = 0..10_000_usize;
    prop_oneof![
        3 => place.clone().prop_map(Slip::DropLine),
        3 => (place.clone(), place.clone()).prop_map(|(from, to)| Slip::RepeatLine(from, to)),
        6 => (place.clone(), 0..WORDS.len()).prop_map(|(at, word)| Slip::ChangeWord(at, word)),
        6 => (place.clone(), place.clone()).prop_map(|(at, from)| Slip::CopyWord(at, from)),
        1 => place.prop_map(Slip::Cut),
    ]
}

/// Returns the positions of the values and names of a text, between blanks and punctuation.
fn words(text: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut start = None;
    for (at, character) in text.char_indices().chain([(text.len(), ' ')]) {
        let inside = !character.is_whitespace() && !"=,[]{}".contains(character);
        match (inside, start) {
            (true, None) => start = Some(at),
            (false, Some(begin)) => {
                found.push((begin, at));
                start = None;
            }
            _ => {}
        }
    }
    found
}

fn changed(text: &str, slip: &Slip) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let words = words(text);
    if lines.is_empty() || words.is_empty() {
        return text.to_owned();
    }
    let mut changed = lines.clone();
    let replaced = |at: usize, word: &str| {
        let (begin, end) = words[at % words.len()];
        format!("{}{word}{}", &text[..begin], &text[end..])
    };
    match slip {
        Slip::DropLine(at) => {
            changed.remove(at % lines.len());
            changed.join("\n")
        }
        Slip::RepeatLine(from, to) => {
            changed.insert(to % lines.len(), lines[from % lines.len()]);
            changed.join("\n")
        }
        Slip::ChangeWord(at, word) => replaced(*at, WORDS[*word]),
        Slip::CopyWord(at, from) => {
            let (begin, end) = words[from % words.len()];
            replaced(*at, &text[begin..end])
        }
        Slip::Cut(at) => text
            .chars()
            .take(at % text.chars().count().max(1))
            .collect(),
    }
}

/// A valid system, described by a few numbers.
#[derive(Clone, Debug)]
struct Right {
    nodes: usize,
    /// For each behaviour its kind, its times, and its callees.
    behaviours: Vec<(usize, u64, Vec<usize>)>,
}

fn right() -> impl Strategy<Value = Right> {
    let behaviour = (
        0..4_usize,
        1..1_000_u64,
        prop::collection::vec(0..64_usize, 0..4),
    );
    (1..4_usize, prop::collection::vec(behaviour, 1..24))
        .prop_map(|(nodes, behaviours)| Right { nodes, behaviours })
}

/// Kinds: 0 and 1 are roots, 2 is called two-way, 3 is called one-way.
fn callees(right: &Right, place: usize) -> Vec<usize> {
    let after = right.behaviours.iter().enumerate().skip(place + 1);
    let called: Vec<usize> = after
        .filter(|(_, one)| one.0 >= 2)
        .map(|(at, _)| at)
        .collect();
    let mut callees: Vec<usize> = Vec::new();
    if let Some(next) = called.first() {
        // The next behaviour is always called, so that each called behaviour has a caller.
        callees.push(*next);
        let wished = right.behaviours[place].2.iter();
        callees.extend(wished.map(|wish| called[wish % called.len()]));
    }
    callees.sort_unstable();
    callees.dedup();
    callees
}

fn text_of(right: &Right) -> String {
    let mut text = "name = \"random\"\n".to_owned();
    for node in 0..right.nodes {
        writeln!(text, "[[node]]\nname = \"n{node}\"").expect("a string takes all");
        for other in 0..node {
            writeln!(
                text,
                "[[link]]\nbetween = [\"n{node}\", \"n{other}\"]\nlatency = \"1us\""
            )
            .expect("a string takes all");
        }
    }
    text += "[[channel]]\nname = \"all\"\nnode = \"n0\"\n";
    for (place, (kind, time, _)) in right.behaviours.iter().enumerate() {
        let node = place % right.nodes;
        let trigger = match kind {
            0 => format!("period = \"{time}us\"\n"),
            1 => format!("minimum_gap = \"{time}us\"\n"),
            _ if place == 0 => "period = \"1s\"\n".to_owned(),
            _ => String::new(),
        };
        let calls =
            callees(right, place)
                .into_iter()
                .map(|callee| match right.behaviours[callee] {
                    (2, ..) => format!("{{ to = \"c{callee}.b\" }}"),
                    (_, time, _) if time % 2 == 0 => {
                        format!("{{ to = \"c{callee}.b\", way = \"one-way\" }}")
                    }
                    _ => {
                        format!("{{ to = [\"c{callee}.b\"], way = \"event\", channel = \"all\" }}")
                    }
                });
        let calls: Vec<String> = calls.collect();
        write!(
            text,
            "[[component]]\nname = \"c{place}\"\nnode = \"n{node}\"\n[[component.behaviour]]\nname = \"b\"\nexecution = \"{time}ns\"\n{trigger}calls = [{}]\n",
            calls.join(", ")
        )
        .expect("a string takes all");
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_changed_file_is_read_or_refused(file in 0..FILES.len(), changes in prop::collection::vec(slip(), 1..6)) {
        let text = changes.iter().fold(FILES[file].to_owned(), |text, one| changed(&text, one));
        is_answered(&text)?;
    }

    #[test]
    fn any_text_is_read_or_refused(text in "(?s).{0,400}") {
        is_answered(&text)?;
    }

    #[test]
    fn a_valid_file_is_read(right in right()) {
        let text = text_of(&right);
        let system = parse(&text).map_err(|wrong| TestCaseError::fail(format!("{wrong:?}\n{text}")))?;
        prop_assert_eq!(system.behaviours.len(), right.behaviours.len());
        for (place, behaviour) in system.behaviours.iter().enumerate() {
            let (kind, time, _) = right.behaviours[place];
            let called = kind >= 2 && place > 0;
            prop_assert_eq!(behaviour.trigger == Trigger::Called, called);
            prop_assert_eq!(behaviour.execution.worst_ns(), time);
            let to: Vec<usize> = behaviour.calls.iter().flat_map(|call| call.to.clone()).collect();
            prop_assert_eq!(&to, &callees(&right, place));
            for call in &behaviour.calls {
                let two_way = right.behaviours[call.to[0]].0 == 2;
                prop_assert_eq!(call.way == CallWay::TwoWay, two_way);
            }
        }
    }
}

/// The number of random files for each property.
fn cases() -> u32 {
    let chosen = std::env::var("RTORB_SYSTEM_FILES").ok();
    chosen.map_or(300, |text| {
        text.parse()
            .expect("RTORB_SYSTEM_FILES is a number of files")
    })
}
