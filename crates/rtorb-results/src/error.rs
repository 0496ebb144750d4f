//! Why results cannot be read, written, compared or used.

use std::path::PathBuf;

use crate::file::is_wrong_path;

/// Why something could not be made of results.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file system refused.
    #[error("{}: {error}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// What the system said. It is in the text, and so no source: that would be told again.
        error: std::io::Error,
    },
    /// A folder is not what it must be.
    #[error("{} {what}", folder.display())]
    Folder {
        /// Which folder.
        folder: PathBuf,
        /// What is wrong with it, and what to do.
        what: String,
    },
    /// Two measurements cannot be set beside each other.
    #[error("{what}")]
    NotComparable {
        /// Why, and what to do.
        what: String,
    },
    /// Results lack what something is made of.
    #[error("{what}")]
    Incomplete {
        /// What is missing, and how to get it.
        what: String,
    },
}

impl Error {
    /// Whether other folders or files could be used: everything but a failure of the file system, such as a full disk.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::File { error, .. } => is_wrong_path(error),
            _ => true,
        }
    }

    /// For `map_err` on operations on files.
    pub fn file(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |error| Self::File { path, error }
    }

    /// A folder is not what it must be: what is wrong, and what to do.
    #[must_use]
    pub fn folder(folder: impl Into<PathBuf>, what: impl Into<String>) -> Self {
        Self::Folder {
            folder: folder.into(),
            what: what.into(),
        }
    }
}
