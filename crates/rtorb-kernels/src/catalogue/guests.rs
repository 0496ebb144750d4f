//! Guests that are no Linux: programs for an emulated board, which `cargo xtask rtos` builds. Nobody offers them.

use std::fs;
use std::path::{Path, PathBuf};

use rtorb_lab::LabError;

use super::Kernel;
use crate::built;
use crate::sha256::sha256;

/// A guest that this program knows.
#[derive(Clone, Copy, Debug)]
pub struct Guest {
    /// Its name as a kernel.
    pub name: &'static str,
    /// What it stands for among the systems of the papers.
    pub stands_for: &'static str,
}

/// Every guest.
pub const GUESTS: [Guest; 2] = [
    Guest {
        name: "freertos",
        stands_for: "VxWorks: priorities, mutexes with inheritance, one address space",
    },
    Guest {
        name: "rtic",
        stands_for: "OSEKWorks: static tasks, resources with priority ceilings, one stack",
    },
];

/// The board of all guests, as the emulator calls it.
pub(crate) const BOARD: &str = "mps2-an385";

/// True if that is the name of a guest.
#[must_use]
pub fn is_guest(name: &str) -> bool {
    GUESTS.iter().any(|guest| guest.name == name)
}

/// The guest of that name, in the folder that RTORB_GUESTS names; or else the one that `cargo xtask rtos` made in the checkout that this
/// program was built in, or in the current folder.
///
/// # Errors
/// That it was not built, and how to build it.
pub fn guest(name: &str) -> Result<Kernel, LabError> {
    let image = image(name)?;
    let octets = fs::read(&image).map_err(|_| LabError::Incomplete {
        what: format!(
            "the guest {name} is not built: there is no {}. In rtorb's workspace: apt install rustc-web cargo-web rust-web-src, \
             then `cargo xtask rtos`, and this command there. RTORB_GUESTS names another folder",
            image.display()
        ),
    })?;
    Ok(Kernel {
        name: name.to_owned(),
        release: name.to_owned(),
        sha256: sha256(&octets),
        image,
        package: None,
        board: Some(BOARD.to_owned()),
    })
}

/// Where the guest should be.
fn image(name: &str) -> Result<PathBuf, LabError> {
    if let Some(named) = std::env::var_os("RTORB_GUESTS") {
        return Ok(Path::new(&named).join(name));
    }
    let executable = std::env::current_exe().map_err(LabError::file("this program"))?;
    let file = format!("rtos/{name}");
    Ok(built::find(&executable, &file).unwrap_or_else(|| Path::new("target").join(file)))
}
