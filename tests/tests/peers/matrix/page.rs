//! The table of docs/reference/interop.md.

use std::fmt::Write as _;

use rtorb_tests::pages::check_part;

use super::Cell;
use super::known::{Difference, Known};

const ORBS: [&str; 4] = ["rtorb", "omniORB", "JacORB", "JDK"];

/// Compares the page with the cells, or writes it.
pub(super) fn check(cells: &[Cell], known: &Known) {
    check_part("reference/interop.md", "the matrix", &matrix(cells));
    check_part(
        "reference/interop.md",
        "the differences",
        &differences(cells, known),
    );
}

fn matrix(cells: &[Cell]) -> String {
    let differ = cells.iter().filter(|it| it.said != "ok").count();
    let mut text = format!(
        "{} cells were tried. {differ} of them differ.\n",
        cells.len()
    );
    let operations = cells
        .iter()
        .filter(|it| it.client == "rtorb" && it.server == "rtorb");
    let operations = operations.filter(|it| it.version == "1.0" && !it.is_recorded);
    let operations: Vec<&str> = operations.map(|it| it.operation.as_str()).collect();
    for client in ORBS {
        let _ = write!(text, "\n### {client} as the client\n\n| type |");
        ORBS.iter()
            .for_each(|server| text += &format!(" {server} |"));
        text += "\n|---|---|---|---|---|\n";
        for operation in &operations {
            let _ = write!(text, "| {} |", type_of(operation));
            for server in ORBS {
                let of_pair = cells.iter().filter(|it| {
                    it.operation == *operation && is(&it.client, client) && is(&it.server, server)
                });
                text += &format!(" {} |", counted(of_pair));
            }
            text.push('\n');
        }
    }
    text
}

/// Whether the participant is this ORB; rtorb is two, one for each byte order.
fn is(participant: &str, orb: &str) -> bool {
    participant.trim_end_matches("-big") == orb
}

/// The number of cells, and of those that differ.
fn counted<'c>(cells: impl Iterator<Item = &'c Cell>) -> String {
    let said: Vec<bool> = cells.map(|it| it.said == "ok").collect();
    match said.iter().filter(|is_ok| !**is_ok).count() {
        0 => said.len().to_string(),
        differ => format!("{}, **{differ} differ**", said.len()),
    }
}

/// `unsigned long` of `an_unsigned_long`.
fn type_of(operation: &str) -> String {
    let words = operation.split_once('_').map_or(operation, |it| it.1);
    words.replace('_', " ")
}

fn differences(cells: &[Cell], known: &Known) -> String {
    known
        .difference
        .iter()
        .fold(String::new(), |text, it| text + &described(cells, it))
}

fn described(cells: &[Cell], it: &Difference) -> String {
    let count = cells.iter().filter(|cell| it.is_at(cell)).count();
    let types: Vec<String> = it.types.iter().map(|it| type_of(it)).collect();
    let types = if types.is_empty() {
        "every type".to_owned()
    } else {
        types.join(", ")
    };
    let list = |list: &[String], all: &str| match list {
        [] => all.to_owned(),
        some => some.join(", "),
    };
    let path = match it.recorded {
        None => "",
        Some(true) => ", recorded",
        Some(false) => ", directly",
    };
    format!(
        "* **{types}**: {} to {}, GIOP {}{path}; {count} cells. Seen: `{}`. {}\n",
        list(&it.clients, "every client"),
        list(&it.servers, "every server"),
        list(&it.versions, "of every version"),
        it.seen.join("`, `"),
        it.reason.trim(),
    )
}
