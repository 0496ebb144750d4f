//! Finds every mistake in the form of a file: TOML that cannot be parsed, unknown and missing fields, and wrong values.
//!
//! A valid file never comes here: the reader of TOML is faster, but stops at the first mistake.

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Error, ValueDeserializer};

use super::tables::{
    BehaviourTable, ChainTable, ChannelTable, ComponentTable, File, LinkTable, NodeTable,
    ResourceTable,
};
use super::{LineError, Lines, clearer};

/// Adds the mistakes to those of `lines`.
pub(super) fn check(text: &str, lines: &Lines) {
    let (root, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        // What follows in a line that cannot be parsed follows from the first mistake in it.
        let line = |error: &Error| Some(lines.place(error.span()?).line);
        let mut last = None;
        for error in &errors {
            if last.is_none() || line(error) != last {
                add(error, lines);
            }
            last = line(error);
        }
        return;
    }
    let (span, mut root) = (root.span(), root.into_inner());
    let components = take(&mut root, "component");
    check_each::<NodeTable>(take(&mut root, "node"), lines);
    check_each::<LinkTable>(take(&mut root, "link"), lines);
    check_each::<ChannelTable>(take(&mut root, "channel"), lines);
    let chains = take(&mut root, "chain");
    check_table::<File>(Spanned::new(span, root), lines);
    for component in components {
        let span = component.span();
        let DeValue::Table(mut component) = component.into_inner() else {
            continue;
        };
        let resources = take(&mut component, "resource");
        let behaviours = take(&mut component, "behaviour");
        check_table::<ComponentTable>(Spanned::new(span, component), lines);
        check_each::<ResourceTable>(resources, lines);
        check_each::<BehaviourTable>(behaviours, lines);
    }
    check_each::<ChainTable>(chains, lines);
}

/// Takes the tables of an array out of a table. What is no array of tables stays, and is a mistake of the table around it.
fn take<'t>(table: &mut DeTable<'t>, name: &str) -> Vec<Spanned<DeValue<'t>>> {
    let is_tables = |value: &Spanned<DeValue<'t>>| {
        let all = value.get_ref().as_array();
        all.is_some_and(|all| all.iter().all(|one| one.get_ref().is_table()))
    };
    if !table.get(name).is_some_and(is_tables) {
        return Vec::new();
    }
    match table.remove(name).map(Spanned::into_inner) {
        Some(DeValue::Array(all)) => all.into_iter().collect(),
        _ => Vec::new(),
    }
}

fn check_each<T: DeserializeOwned>(tables: Vec<Spanned<DeValue<'_>>>, lines: &Lines) {
    for table in tables.into_iter().take_while(|_| !lines.is_full()) {
        let span = table.span();
        if let DeValue::Table(table) = table.into_inner() {
            check_table::<T>(Spanned::new(span, table), lines);
        }
    }
}

/// Checks a table. After each mistake it checks the table again without the field that has the mistake.
fn check_table<T: DeserializeOwned>(table: Spanned<DeTable<'_>>, lines: &Lines) {
    let (span, mut table) = (table.span(), table.into_inner());
    let mut removed = false;
    // Each time, one field less is there.
    for _ in 0..=table.len() {
        let value = Spanned::new(span.clone(), DeValue::Table(table.clone()));
        let Err(error) = T::deserialize(ValueDeserializer::from(value)) else {
            return;
        };
        // A field that was removed is missing now.
        if removed && error.message().starts_with("missing field") {
            return;
        }
        add(&error, lines);
        let Some(wrong) = field_at(&table, &error) else {
            return;
        };
        table.remove(wrong.as_str());
        removed = true;
    }
}

/// Returns the field that an error is about.
fn field_at(table: &DeTable<'_>, error: &Error) -> Option<String> {
    let at = error.span()?.start;
    let mut fields = table.iter();
    let found = fields.find(|(name, value)| {
        name.span().contains(&at) || value.span().contains(&at) || value.span().start == at
    });
    found.map(|(name, _)| name.get_ref().to_string())
}

fn add(error: &Error, lines: &Lines) {
    let reason = clearer(&error.message().replace('\n', "; "));
    lines.add(match error.span() {
        Some(span) => LineError::at(lines.place(span), reason),
        None => LineError {
            place: None,
            reason,
        },
    });
}
