//! Files of JSON, each of a form that its `schema` names.

use std::io::{Error, ErrorKind};
use std::path::Path;

use rtorb_sched::text_file::read_bounded;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::file::write_atomically;

/// Writes a value as indented JSON, in whole or not at all.
///
/// # Errors
/// What the file system said.
pub fn write_json(path: &Path, value: &impl Serialize) -> std::io::Result<()> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    write_atomically(path, text.as_bytes())
}

/// Reads JSON of the form `schema`.
///
/// # Errors
/// What the file system said, or that the file is of another form.
pub fn read_json<T: DeserializeOwned>(path: &Path, schema: &str) -> std::io::Result<T> {
    let invalid = |what: String| Error::new(ErrorKind::InvalidData, what);
    let text = read_text(path)?;
    let Form { schema: found } =
        serde_json::from_str(&text).map_err(|error| invalid(error.to_string()))?;
    if found != schema {
        let what = format!("it has schema {found:?}, this program reads {schema:?}");
        return Err(invalid(what));
    }
    serde_json::from_str(&text).map_err(|error| invalid(error.to_string()))
}

/// Reads the text of a file of results, or of what was made of them.
///
/// # Errors
/// The error of the file system, or that the file is too long or no text.
pub fn read_text(path: &Path) -> std::io::Result<String> {
    read_bounded(path, FILE_BYTES_MAX)
}

#[derive(Deserialize)]
struct Form {
    schema: String,
}

/// Far more than the results of the longest campaign.
const FILE_BYTES_MAX: u64 = 256 << 20;
