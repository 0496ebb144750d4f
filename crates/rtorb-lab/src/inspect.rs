//! Looking at what is there: what a reference says, and whether its object answers.

use std::path::Path;

use rtorb::ior::{Component, Ior};

pub mod ior;
pub mod ping;
pub mod repeat;

/// The reference that a command line means: text that is one is taken as it is, anything else is the name of a file
/// that holds one.
///
/// # Errors
/// That it is neither, in words that help.
pub fn reference_text(argument: &str) -> Result<String, String> {
    let scheme = argument
        .split(':')
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase();
    if argument.contains(':') && SCHEMES.contains(&scheme.as_str()) {
        return Ok(argument.to_owned());
    }
    let path = Path::new(argument);
    match std::fs::read_to_string(path) {
        Ok(text) if text.trim().is_empty() => Err(format!(
            "{argument} is empty: its server may not be ready yet"
        )),
        Ok(text) => Ok(text.trim().to_owned()),
        Err(error) => Err(format!(
            "{argument} is no IOR:, corbaloc: or corbaname:, and cannot be read as a file that holds one ({error})"
        )),
    }
}

/// True if a server built of TAO made the reference.
#[must_use]
pub fn is_of_tao(ior: &Ior) -> bool {
    const TAO: u32 = 0x5441_4f00;
    let mut components = ior.iiop_profiles().flat_map(|profile| profile.components);
    components.any(|component| {
        matches!(Component::from_tagged(&component), Ok(Component::OrbType(orb)) if orb == TAO)
    })
}

const SCHEMES: [&str; 4] = ["ior", "corbaloc", "corbaname", "file"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_told_from_files() {
        assert_eq!(reference_text("IOR:00").unwrap(), "IOR:00");
        assert_eq!(
            reference_text("corbaloc:iiop:host:1/key").unwrap(),
            "corbaloc:iiop:host:1/key"
        );
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cubit.ior");
        std::fs::write(&path, "IOR:0102\n").unwrap();
        assert_eq!(
            reference_text(&path.display().to_string()).unwrap(),
            "IOR:0102"
        );
        std::fs::write(&path, "").unwrap();
        assert!(
            reference_text(&path.display().to_string())
                .unwrap_err()
                .contains("not be ready")
        );
        assert!(
            reference_text("/nowhere/at.all")
                .unwrap_err()
                .contains("corbaloc:")
        );
    }
}
