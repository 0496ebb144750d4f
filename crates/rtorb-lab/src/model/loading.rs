//! What a system that was checked loads, as files: a configuration for the ORB of each component, the priorities, and the answer.

use std::path::{Path, PathBuf};

use rtorb_results::{write_atomically, write_json};
use rtorb_sched::model::{CheckReport, System};
use rtorb_services::scheduling::Schedule;

use crate::error::LabError;

/// Writes `DIR/COMPONENT.orb.toml` for each component, `DIR/priorities.toml` and `DIR/check.json`, and answers which.
///
/// # Errors
/// What the file system said.
pub fn write(
    folder: &Path,
    system: &System,
    checked: &CheckReport,
) -> Result<Vec<PathBuf>, LabError> {
    let mut files = Vec::new();
    let mut write = |name: &str, text: String| {
        let path = folder.join(name);
        write_atomically(&path, text.as_bytes()).map_err(LabError::file(&path))?;
        files.push(path);
        Ok::<(), LabError>(())
    };
    for component in &checked.loading.components {
        let name = format!("{}.orb.toml", file_name(&component.component));
        write(&name, component.to_orb_config(&system.name))?;
    }
    write(PRIORITIES, Schedule::of_model(system, checked).to_toml())?;
    files.push(write_answer(folder, checked)?);
    Ok(files)
}

/// Writes `DIR/check.json`, the answer alone, and answers its path.
///
/// # Errors
/// What the file system said.
pub fn write_answer(folder: &Path, checked: &CheckReport) -> Result<PathBuf, LabError> {
    let path = folder.join(ANSWER);
    write_json(&path, checked).map_err(LabError::file(&path))?;
    Ok(path)
}

/// A name stays in its folder, whatever is in it.
fn file_name(name: &str) -> String {
    let is_kept = |character: char| character.is_alphanumeric() || "-_.".contains(character);
    let kept = name.replace(|character| !is_kept(character), "_");
    if kept.starts_with('.') {
        format!("_{kept}")
    } else {
        kept
    }
}

const PRIORITIES: &str = "priorities.toml";
const ANSWER: &str = "check.json";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_in_its_folder() {
        assert_eq!(file_name("drive-2"), "drive-2");
        assert_eq!(file_name("../../x y"), "_.._.._x_y");
        assert_eq!(file_name(".."), "_..");
    }
}
