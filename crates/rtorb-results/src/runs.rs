//! Several complete runs in one folder: where each is written, and how all are read again.

use std::path::{Path, PathBuf};

use crate::Results;
use crate::error::Error;

/// One run as it was read: the results of its experiments.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Its folder's own name where there are several (`run-2`), otherwise empty.
    pub name: String,
    /// Where its results were found.
    pub folder: PathBuf,
    /// What its experiments found, in the order of their names.
    pub results: Vec<Results>,
}

/// The folder of each of `count` runs: `folder` itself for one, `folder/run-1` and so on for several.
///
/// # Errors
/// That other runs are there already, which these ones would be mixed with.
pub fn folders(folder: &Path, count: usize) -> Result<Vec<PathBuf>, Error> {
    let there = numbered(folder);
    if count == 1 {
        return match there.first() {
            Some((number, _)) => Err(mixed(folder, &format!("run-{number}"))),
            None => Ok(vec![folder.to_owned()]),
        };
    }
    if folder.join(RESULTS).exists() {
        return Err(mixed(folder, "the results of a single run"));
    }
    match there.last() {
        Some((number, _)) if *number > count => Err(mixed(folder, &format!("run-{number}"))),
        _ => Ok((1..=count)
            .map(|number| folder.join(format!("{RUN_PREFIX}{number}")))
            .collect()),
    }
}

/// Makes the folder if it is not there, and sees whether files can be written in it: better before measuring than after.
///
/// # Errors
/// What the file system said, and what to do.
pub fn prepare(folder: &Path) -> Result<(), Error> {
    if folder.exists() && !folder.is_dir() {
        let what = "is no folder, and results need one: choose another with `--out DIR`";
        return Err(Error::folder(folder, what));
    }
    let tried = std::fs::create_dir_all(folder).and_then(|()| tempfile::tempfile_in(folder));
    tried.map(drop).map_err(|error| {
        let what = format!(
            "cannot hold results: {error}. Choose a folder that you may write to with `--out DIR`"
        );
        Error::folder(folder, what)
    })
}

/// Reads the run, or all runs, of a folder that `rtorb measure` or `rtorb lab run` wrote.
///
/// # Errors
/// That there are no results, that there are those of one run and of several, or what reading said.
pub fn read(folder: &Path) -> Result<Vec<Run>, Error> {
    let there = numbered(folder);
    let single = folder.join(RESULTS).is_dir();
    if single && !there.is_empty() {
        let what = "holds a single run and a folder of several: name the one that you mean, such as its run-1";
        return Err(Error::folder(folder, what));
    }
    if single {
        return Ok(vec![read_run(folder, String::new())?]);
    }
    if there.is_empty() {
        return Err(Error::folder(folder, HOLDS_NO_RESULTS));
    }
    there
        .into_iter()
        .map(|(number, path)| read_run(&path, format!("{RUN_PREFIX}{number}")))
        .collect()
}

fn read_run(folder: &Path, name: String) -> Result<Run, Error> {
    let unreadable = |error: std::io::Error| {
        let what = format!(
            "holds results that cannot be read: {error}. Measure again, or remove what is not a results file"
        );
        Error::folder(folder, what)
    };
    let results = if folder.join(RESULTS).is_dir() {
        Results::read_folder(folder).map_err(unreadable)?
    } else {
        Vec::new()
    };
    if results.is_empty() {
        return Err(Error::folder(folder, HOLDS_NO_RESULTS));
    }
    Ok(Run {
        name,
        folder: folder.to_owned(),
        results,
    })
}

/// The folders `run-1`, `run-2` and so on, in the order of their numbers.
fn numbered(folder: &Path) -> Vec<(usize, PathBuf)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<_> = entries
        .filter_map(|entry| {
            let name = entry.file_name();
            let number = name.to_str()?.strip_prefix(RUN_PREFIX)?.parse().ok()?;
            entry.path().is_dir().then(|| (number, entry.path()))
        })
        .collect();
    found.sort();
    found
}

fn mixed(folder: &Path, there: &str) -> Error {
    let what = format!(
        "holds {there} already, which these runs would be mixed with: remove it, or choose another folder"
    );
    Error::folder(folder, what)
}

const RESULTS: &str = "results";
const RUN_PREFIX: &str = "run-";
const HOLDS_NO_RESULTS: &str = "holds no results: give a folder that `rtorb measure --out DIR` or `rtorb lab run NAME --out DIR` \
                                wrote (with DIR/results, or with DIR/run-1 and so on of `--runs N`)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_run_is_the_folder_itself_and_several_are_below_it() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(folders(folder.path(), 1).unwrap(), [folder.path()]);
        let three = folders(folder.path(), 3).unwrap();
        assert_eq!(three[2], folder.path().join("run-3"));
        assert_eq!(three.len(), 3);
    }

    #[test]
    fn runs_are_not_mixed_with_others() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("run-10")).unwrap();
        assert!(folders(folder.path(), 1).is_err());
        assert!(folders(folder.path(), 9).is_err());
        assert!(folders(folder.path(), 10).is_ok());
        std::fs::create_dir(folder.path().join("results")).unwrap();
        let error = folders(folder.path(), 10).unwrap_err().to_string();
        assert!(error.contains("single run"), "{error}");
    }

    #[test]
    fn a_folder_that_cannot_hold_results_is_told_of_before_measuring() {
        let folder = tempfile::tempdir().unwrap();
        prepare(&folder.path().join("new/below")).unwrap();
        assert!(folder.path().join("new/below").is_dir());
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        for bad in [file.clone(), file.join("below")] {
            let error = prepare(&bad).unwrap_err().to_string();
            assert!(error.contains("--out DIR"), "{error}");
        }
    }

    #[test]
    fn a_folder_without_results_says_what_to_give() {
        let folder = tempfile::tempdir().unwrap();
        let error = read(folder.path()).unwrap_err().to_string();
        assert!(error.contains("rtorb measure --out"), "{error}");
        assert!(error.contains(&folder.path().display().to_string()));
        std::fs::create_dir_all(folder.path().join("run-1/results")).unwrap();
        let error = read(folder.path()).unwrap_err().to_string();
        assert!(error.contains("run-1 holds no results"), "{error}");
    }

    #[test]
    fn a_broken_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = Results::path(folder.path(), "os/mutex");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "{\"schema\": ").unwrap();
        let error = read(folder.path()).unwrap_err().to_string();
        assert!(error.contains("cannot be read"), "{error}");
        assert!(error.contains("os/mutex.json"), "{error}");
    }
}
