//! The table of cases.

use super::lists::{UNITS_PER_MS, header, key, list};
use rtorb_services::events::filter::{Delivery, FilterKind, FilterLimits, Subscription};
use std::fmt::Write;

#[test]
fn subscriptions_deliver_what_the_table_says() {
    let mut wrong = String::new();
    let mut cases = 0;
    for case in TABLE.split("\n== ").skip(1) {
        cases += 1;
        let mut lines = case.lines().filter(|line| !line.trim().is_empty());
        let title = lines.next().expect("a title");
        let (form, subscription) =
            (lines.next().and_then(|line| line.split_once(' '))).expect("form and subscription");
        let steps: Vec<&str> = lines.map(str::trim).collect();
        assert!(!steps.is_empty(), "nothing happens in `{title}`");
        let kinds: &[FilterKind] = match form {
            "basic" => &[FilterKind::Basic],
            "prefix" => &[FilterKind::Prefix],
            "both" => &[FilterKind::Basic, FilterKind::Prefix],
            _ => panic!("no form `{form}`"),
        };
        for kind in kinds {
            run(subscription, *kind, &steps, &mut |step, got| {
                writeln!(wrong, "{title} ({kind:?}), at `{step}`: {got}").expect("text");
            });
        }
    }
    assert!(cases >= 40, "only {cases} cases were found");
    assert!(wrong.is_empty(), "{wrong}");
}

fn run(text: &str, kind: FilterKind, steps: &[&str], wrong: &mut dyn FnMut(&str, &str)) {
    let limits = FilterLimits::default();
    let mut subscription = match Subscription::build(&list(text), kind, &limits, 0) {
        Ok(subscription) => subscription,
        Err(error) => return wrong(text, &error.to_string()),
    };
    for step in steps {
        let (happens, expected) = step.split_once("->").unwrap_or((step, ""));
        let words: Vec<&str> = happens.split_whitespace().collect();
        let now_ns = words[0].parse::<u64>().expect("a time in ms") * 1_000_000;
        let mut pushes = Vec::new();
        let mut deliver = |delivery: Delivery<'_>| pushes.push(names(delivery));
        match words[1..] {
            ["time"] => subscription.expire(now_ns, &mut deliver),
            [event, name] => {
                let (key, _) = key(event);
                let header = header(key.event_type, key.source, 0);
                subscription.accept(&header, name.as_bytes(), now_ns, &mut deliver);
            }
            _ => panic!("`{step}` is neither `TIME EVENT NAME` nor `TIME time`"),
        }
        let pushes = pushes.join(" ; ");
        if pushes != expected.trim() {
            wrong(step, &format!("got `{pushes}`"));
        }
    }
}

/// Events have their names for octets; those of timeouts are in their headers.
fn names(delivery: Delivery<'_>) -> String {
    let names = delivery.events().map(|event| {
        let due_ms = event.header.creation_time / UNITS_PER_MS;
        match (event.header.r#type, event.header.ttl) {
            (4, 0) => format!("timeout@{due_ms}"),
            (5, 0) => format!("interval@{due_ms}"),
            (6, 0) => format!("deadline@{due_ms}"),
            _ => str::from_utf8(event.bytes).expect("a name").to_owned(),
        }
    });
    names.collect::<Vec<_>>().join(" ")
}

const TABLE: &str = include_str!("cases.txt");
