//! The naming service (CosNaming 1.3): names for references, in contexts, in a persistent store.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use rtorb_services::naming::{NamingConfig, NamingService};
//!
//! let orb = rtorb::Orb::builder().args(std::env::args()).build()?;
//! let naming = NamingService::serve(&orb, NamingConfig::stored_at("names.redb"))?;
//! println!("{}", naming.reference().as_object());
//! orb.run()?;
//! # Ok(())
//! # }
//! ```
//!
//! An acknowledged change is on the disk: it is committed before its reply is sent, and changes that come at the same time share
//! a commit. Names are resolved in memory, by a hash of context, id and kind, and never wait for the disk.

#[cfg(feature = "naming-service")]
mod bootstrap;
#[cfg(feature = "naming-service")]
mod changes;
pub mod client;
#[cfg(feature = "naming-service")]
mod config;
#[cfg(feature = "naming-service")]
mod context;
#[cfg(all(test, feature = "naming-service"))]
mod disk_full;
#[cfg(feature = "naming-service")]
mod draft;
#[cfg(feature = "naming-service")]
mod error;
mod exception;
mod failure;
#[cfg(feature = "naming-service")]
mod federation;
#[cfg(feature = "naming-service")]
mod iterators;
#[cfg(all(test, feature = "naming-service"))]
mod memory_store;
#[cfg(all(feature = "naming-service", any(test, feature = "store-tests")))]
mod model;
#[cfg(feature = "naming-service")]
mod names;
#[cfg(feature = "naming-service")]
mod record;
#[cfg(feature = "naming-service")]
mod replica;
#[cfg(all(test, feature = "naming-service"))]
mod replica_tests;
#[cfg(feature = "naming-service")]
mod servant;
#[cfg(feature = "naming-service")]
mod service;
#[cfg(feature = "naming-service")]
pub mod shared_store;
#[cfg(feature = "naming-service")]
mod store;
#[cfg(feature = "naming-service")]
mod store_log;
#[cfg(feature = "naming-service")]
mod tree;

#[cfg(feature = "naming-service")]
pub use config::NamingConfig;
#[cfg(feature = "naming-service")]
pub use context::NamingStatistics;
#[cfg(feature = "naming-service")]
pub use error::{NamingError, StoreError};
pub use failure::StoreFailure;
#[cfg(all(feature = "naming-service", any(test, feature = "store-tests")))]
pub use model::random_changes_agree_with_the_model;
#[cfg(feature = "naming-service")]
pub use service::NamingService;
#[cfg(feature = "naming-service")]
pub use store_log::StoreLog;
