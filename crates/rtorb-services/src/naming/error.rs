//! Why a naming service cannot start.

use super::failure::StoreFailure;
use super::shared_store::SharedStoreError;
use redb::{DatabaseError, StorageError, TableError};
use rtorb::{ObjectKeyError, PoaError, SystemException};
use std::io;
use std::path::PathBuf;

/// Why there is no naming service.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NamingError {
    /// A bound is out of its range.
    #[error("{bound} is {value}: give it a value from {range}")]
    Bound {
        /// The bound.
        bound: &'static str,
        /// Its value.
        value: String,
        /// Its range.
        range: String,
    },
    /// The store cannot be used; it is unchanged.
    #[error("the store of names {}: {why}", place.display())]
    Store {
        /// Its file.
        place: PathBuf,
        /// The reason.
        #[source]
        why: StoreError,
    },
    /// The object adapter refuses the contexts.
    #[error("the contexts cannot be served: {0}")]
    Adapter(#[from] PoaError),
    /// The ORB refuses the key of the root context or of the bootstrap object: it serves a naming service already.
    #[error("the object keys NameService and INIT cannot be bound: {0}")]
    Key(#[from] ObjectKeyError),
    /// An error of the ORB.
    #[error("the naming service cannot be served: {0}")]
    Orb(#[from] SystemException),
}

/// Why a store cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another process has it open.
    #[error("is in use by another naming service: stop that service, or choose another file")]
    InUse,
    /// A newer program wrote it.
    #[error(
        "has schema {schema}, and this program supports {known}: use the program that wrote it"
    )]
    Newer {
        /// Its schema.
        schema: u64,
        /// The schema of this program.
        known: u64,
    },
    /// The file is not a store.
    #[error("is not a store of names ({why}): choose another file")]
    Foreign {
        /// How this was found out.
        why: String,
    },
    /// The file is damaged.
    #[error("is damaged ({why}): restore it from a copy")]
    Corrupted {
        /// How this was found out.
        why: String,
    },
    /// The store is larger than the configuration allows.
    #[error("holds {what}, more than {bound} = {max} allows: raise the bound")]
    TooMuch {
        /// The content.
        what: String,
        /// The bound.
        bound: &'static str,
        /// Its value.
        max: usize,
    },
    /// A store that several services share does not answer, or refuses.
    #[error("{failure} ({why}): {}", failure.advice())]
    Shared {
        /// What fails.
        failure: StoreFailure,
        /// What the store or the operating system says.
        why: String,
    },
    /// An error of the operating system.
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl From<SharedStoreError> for StoreError {
    fn from(error: SharedStoreError) -> Self {
        Self::Shared {
            failure: error.failure,
            why: error.why,
        }
    }
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
