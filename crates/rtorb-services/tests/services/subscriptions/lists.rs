//! Lists of dependencies written as text: what the tests subscribe to, without the crate's own builder.

use rtorb_services::events::filter::{Key, types};
use rtorb_services::stubs::rtec_event::rtec_event_channel_admin::{ConsumerQos, Dependency};
use rtorb_services::stubs::rtec_event::rtec_event_comm::{Event, EventData, EventHeader};

/// One entry of a list.
pub(crate) fn dependency(event_type: i32, source: i32, creation_time: u64) -> Dependency {
    Dependency {
        event: Event {
            header: header(event_type, source, creation_time),
            data: EventData {
                pad1: 0,
                payload: Vec::new(),
                any_value: Default::default(),
            },
        },
        rt_info: 0,
    }
}

/// The header of an event.
pub(crate) fn header(event_type: i32, source: i32, creation_time: u64) -> EventHeader {
    EventHeader {
        r#type: event_type,
        source,
        ttl: 1,
        creation_time,
        ec_recv_time: 0,
        ec_send_time: 0,
    }
}

/// The list that the text describes; periods are in milliseconds.
pub(crate) fn list(text: &str) -> ConsumerQos {
    let mut dependencies = Vec::new();
    for tree in text.split(" + ") {
        let rest = expression(tree.trim(), &mut dependencies);
        assert!(rest.trim().is_empty(), "`{rest}` is left of `{tree}`");
    }
    ConsumerQos {
        dependencies,
        is_gateway: false,
    }
}

/// `source/type`, decimal or with `0x`; what is left of the text.
pub(crate) fn key(text: &str) -> (Key, &str) {
    let (source, rest) = number(text);
    let rest = rest
        .strip_prefix('/')
        .unwrap_or_else(|| panic!("no `/` in `{text}`"));
    let (event_type, rest) = number(rest);
    (Key { source, event_type }, rest)
}

/// Writes one expression into the list; what is left of the text.
fn expression<'a>(text: &'a str, list: &mut Vec<Dependency>) -> &'a str {
    let text = text.trim_start();
    if !text.starts_with(|first: char| first.is_ascii_alphabetic()) {
        let (key, rest) = key(text);
        list.push(dependency(key.event_type, key.source, 0));
        return rest;
    }
    let end = text
        .find(|c: char| !c.is_ascii_alphabetic())
        .unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    let designator = list.len();
    let event_type = match word {
        "conjunction" => types::CONJUNCTION,
        "disjunction" => types::DISJUNCTION,
        "and" => types::LOGICAL_AND,
        "not" => types::NEGATION,
        "mask" => types::BITMASK,
        "masked" => types::MASKED_TYPE,
        "timeout" => types::TIMEOUT,
        "interval" => types::INTERVAL_TIMEOUT,
        "deadline" => types::DEADLINE_TIMEOUT,
        "null" => types::NULL,
        "global" => types::GLOBAL,
        _ => panic!("unknown word `{word}`"),
    };
    list.push(dependency(event_type, 0, 0));
    let Some(mut rest) = rest.strip_prefix('(') else {
        return rest;
    };
    let mut operands = 0;
    loop {
        let header = &mut list[designator].event.header;
        rest = match event_type {
            types::TIMEOUT | types::INTERVAL_TIMEOUT | types::DEADLINE_TIMEOUT => {
                let (period_ms, rest) = number(rest);
                header.creation_time = period_ms as u64 * UNITS_PER_MS;
                rest
            }
            _ => expression(rest, list),
        };
        operands += 1;
        match rest.trim_start().strip_prefix(',') {
            Some(next) => rest = next,
            None => break,
        }
    }
    if matches!(
        event_type,
        types::CONJUNCTION | types::DISJUNCTION | types::LOGICAL_AND
    ) {
        list[designator].event.header.source = operands;
    }
    (rest.trim_start().strip_prefix(')')).unwrap_or_else(|| panic!("no `)` before `{rest}`"))
}

fn number(text: &str) -> (i32, &str) {
    let is_number = |c: char| c.is_ascii_hexdigit() || c == 'x' || c == '-';
    let end = text.find(|c: char| !is_number(c)).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    let number = match digits.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16).map(u32::cast_signed).ok(),
        None => digits.parse().ok(),
    };
    (
        number.unwrap_or_else(|| panic!("no number at `{text}`")),
        rest,
    )
}

/// In units of 100 ns.
pub(crate) const UNITS_PER_MS: u64 = 10_000;
