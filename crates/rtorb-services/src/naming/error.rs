//! Why a naming service cannot start.

use redb::{DatabaseError, StorageError, TableError};
use rtorb::{ObjectKeyError, PoaError, SystemException};
use std::io;
use std::path::PathBuf;

/// Why there is no naming service.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NamingError {
    /// A bound out of its range.
    #[error("{bound} is {value}: give it a value from {range}")]
    Bound {
        /// Which.
        bound: &'static str,
        /// What it was given.
        value: String,
        /// What it may be.
        range: String,
    },
    /// A store that cannot be used; it is left as it was.
    #[error("the store of names {}: {why}", place.display())]
    Store {
        /// Its file.
        place: PathBuf,
        /// Why not.
        #[source]
        why: StoreError,
    },
    /// The ORB's adapters would not have the contexts.
    #[error("the contexts cannot be served: {0}")]
    Adapter(#[from] PoaError),
    /// The ORB would not have the root's key: it serves names already.
    #[error("the root context cannot have the key NameService: {0}")]
    Key(#[from] ObjectKeyError),
    /// The ORB cannot serve.
    #[error("the naming service cannot be served: {0}")]
    Orb(#[from] SystemException),
}

/// Why a store cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another process has it open.
    #[error("is in use: another naming service has it open; end that one, or choose another file")]
    InUse,
    /// A later program has written it.
    #[error("has schema {schema}, and this program knows {known}: use the program that wrote it")]
    Newer {
        /// What it has.
        schema: u64,
        /// What is known here.
        known: u64,
    },
    /// The file is something else.
    #[error("is not a store of names ({why}): choose another file")]
    Foreign {
        /// How that shows.
        why: String,
    },
    /// The file is damaged.
    #[error("is damaged ({why}): restore it from a copy")]
    Corrupted {
        /// How that shows.
        why: String,
    },
    /// The configuration allows less than there is.
    #[error("holds {what}, more than {bound} = {max} allows: raise the bound")]
    TooMuch {
        /// What there is.
        what: String,
        /// The bound.
        bound: &'static str,
        /// Its value.
        max: usize,
    },
    /// The operating system refused something.
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl From<DatabaseError> for StoreError {
    fn from(error: DatabaseError) -> Self {
        match error {
            DatabaseError::DatabaseAlreadyOpen => Self::InUse,
            DatabaseError::Storage(error) => error.into(),
            DatabaseError::UpgradeRequired(version) => Self::Foreign {
                why: format!("redb file format {version}"),
            },
            error => Self::Corrupted {
                why: error.to_string(),
            },
        }
    }
}

impl From<StorageError> for StoreError {
    fn from(error: StorageError) -> Self {
        match error {
            // So redb calls a file without its magic number.
            StorageError::Io(error) if error.kind() == io::ErrorKind::InvalidData => {
                Self::Foreign {
                    why: error.to_string(),
                }
            }
            StorageError::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Self::Corrupted {
                    why: "it is cut short".to_owned(),
                }
            }
            StorageError::Io(error) => Self::Io(error),
            error => Self::Corrupted {
                why: error.to_string(),
            },
        }
    }
}

impl From<TableError> for StoreError {
    fn from(error: TableError) -> Self {
        match error {
            TableError::Storage(error) => error.into(),
            error => Self::Foreign {
                why: error.to_string(),
            },
        }
    }
}

impl From<redb::Error> for StoreError {
    fn from(error: redb::Error) -> Self {
        match error {
            redb::Error::Io(error) => Self::Io(error),
            error => Self::Corrupted {
                why: error.to_string(),
            },
        }
    }
}
