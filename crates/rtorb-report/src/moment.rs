//! Moments as a reader writes them.

/// `2026-11-20T13:14:15Z` as a reader writes it.
pub(crate) fn said(moment: &str) -> String {
    match moment.strip_suffix('Z').and_then(|utc| utc.split_once('T')) {
        Some((day, time)) => format!("{day} {time} UTC"),
        None => moment.to_owned(),
    }
}
