//! Options that say where the interface of an object is declared.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;
use rtorb_dynamic::search::{Search, SearchError};

use crate::orb_options::usage;

/// Options for the search for an interface.
#[derive(Debug, Args)]
pub(crate) struct InterfaceOptions {
    /// IDL file with the interface. May be given more than once. The IDL of naming, events, scheduling and Cubit is built in.
    #[arg(long, value_name = "FILE")]
    idl: Vec<PathBuf>,
    /// Folder to search for IDL files. May be given more than once. Those of RTORB_IDL_PATH follow.
    #[arg(short = 'I', value_name = "DIR")]
    include_dirs: Vec<PathBuf>,
    /// Interface of the object: its name in IDL, or its repository id [default: what the reference, the object or the session says].
    #[arg(long, value_name = "NAME")]
    pub(crate) interface: Option<String>,
}

impl InterfaceOptions {
    /// Returns where to look for the interface.
    pub(crate) fn search(&self) -> Search {
        Search {
            files: self.idl.clone(),
            folders: self.folders(),
            interface: self.interface.clone(),
        }
    }

    /// Returns the folders of this command line, and then those of the environment.
    fn folders(&self) -> Vec<PathBuf> {
        let path = std::env::var_os("RTORB_IDL_PATH").unwrap_or_default();
        let inherited = std::env::split_paths(&path).filter(|it| !it.as_os_str().is_empty());
        self.include_dirs.iter().cloned().chain(inherited).collect()
    }
}

/// Converts the error of a search, with the names that the options have on this command line. An object that cannot be asked is no
/// wrong use.
pub(crate) fn interface_error(error: SearchError) -> anyhow::Error {
    match error {
        SearchError::Object(_) => anyhow!(error),
        SearchError::NotFound { .. } => usage(format!("{error} (--idl FILE, --interface NAME)")),
        _ => usage(error),
    }
}
