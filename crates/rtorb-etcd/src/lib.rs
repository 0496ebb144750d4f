//! The names of several naming services of rtorb in one store: [etcd](https://etcd.io).
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use rtorb_etcd::EtcdStore;
//! use rtorb_services::naming::{NamingConfig, NamingService};
//! use std::sync::Arc;
//!
//! let orb = rtorb::Orb::builder().args(std::env::args()).build()?;
//! let store = EtcdStore::open("etcd://127.0.0.1:2379/names")?;
//! let naming = NamingService::serve_shared(&orb, NamingConfig::default(), Arc::new(store))?;
//! println!("{}", naming.reference().as_object());
//! orb.root_poa()?.manager().activate();
//! orb.run()?;
//! # Ok(())
//! # }
//! ```
//!
//! # What is in etcd
//!
//! | key below `PREFIX/` | value |
//! |---|---|
//! | `version` | the mark of the last commit. Its revision in etcd is the revision of the store |
//! | `about` | the schema of these keys and the identity of the store |
//! | `contexts/ID` | nothing: the context is there. ID has 16 hexadecimal digits, and the root has 0 |
//! | `bindings/ID/NAME` | a reference, or the id of a context |
//!
//! A commit is one transaction of etcd, which compares the revision of `version` and writes it. A reader with `etcdctl` disturbs nothing;
//! a key that is written by another program may be seen by a service late or never.
//!
//! # Threads
//!
//! The client of etcd needs the runtime tokio, which runs on one thread, `rtorb-etcd`, with the policy SCHED_OTHER whatever the
//! process has. It decodes what etcd sends, and changes the names of the service. Servants wait for it until the deadline of their
//! call. So changes are never real-time; a name is resolved in the memory of the service, as with every store.
//!
//! Connections to etcd have neither TLS nor a password.
#![forbid(unsafe_code)]

mod location;
mod snapshot;
mod store;
mod watch;

pub use location::LocationError;
pub use store::{EtcdError, EtcdStore};
