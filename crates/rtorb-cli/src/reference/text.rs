//! REF: the reference that a command line means.

use std::io::Read as _;
use std::path::Path;

use rtorb_sched::text_file::{open, shortened};

/// Returns the reference that a command line means: the argument itself, or the content of the file that it names.
///
/// # Errors
/// That it is neither, in words that help. The text is short, however long the argument or the file is.
pub(crate) fn reference_text(argument: &str) -> Result<ReferenceText, String> {
    if has_scheme(argument) {
        return Ok(ReferenceText::of(argument));
    }
    if argument.trim().is_empty() {
        return Err("the reference is empty: give an IOR:, a corbaloc: or a corbaname:, or a file that holds one".to_owned());
    }
    let name = shortened(argument);
    let unreadable = |error: std::io::Error| {
        format!(
            "{name} is no IOR:, corbaloc: or corbaname:, and cannot be read as a file that holds one ({error})"
        )
    };
    let file = open(Path::new(argument)).map_err(unreadable)?;
    let mut bytes = Vec::new();
    let read = file.take(REFERENCE_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(unreadable)?;
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim();
    if text.is_empty() {
        return Err(format!("{name} is empty: its server may not be ready yet"));
    }
    if text.contains('\0') {
        return Err(format!("the file {name} holds no reference: it is no text"));
    }
    if !has_scheme(text) {
        let line = text.lines().next().unwrap_or_default();
        return Err(format!(
            "the file {name} holds no reference: it begins with {:?}, and a reference with IOR:, corbaloc: or corbaname:",
            shortened(line)
        ));
    }
    if bytes.len() as u64 > REFERENCE_BYTES_MAX {
        return Err(format!(
            "the file {name} is longer than any reference: it has more than {REFERENCE_BYTES_MAX} bytes"
        ));
    }
    Ok(ReferenceText::of(text))
}

/// The text of a reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReferenceText {
    /// The text, without white space inside an `IOR:`.
    pub(crate) text: String,
    /// True if there was white space inside it. A mail client that wraps lines leaves some.
    pub(crate) was_wrapped: bool,
}

impl ReferenceText {
    fn of(text: &str) -> Self {
        let is_wrapped = is_ior(text)
            && text.contains(|one: char| one.is_ascii_whitespace())
            && text[IOR.len()..]
                .chars()
                .all(|one| one.is_ascii_hexdigit() || one.is_ascii_whitespace());
        if !is_wrapped {
            let text = text.to_owned();
            return Self {
                text,
                was_wrapped: false,
            };
        }
        Self {
            text: text.split_ascii_whitespace().collect(),
            was_wrapped: text.trim().contains(|one: char| one.is_ascii_whitespace()),
        }
    }
}

/// Returns true if the text is that of an `IOR:`, which has everything in itself.
pub(crate) fn is_ior(text: &str) -> bool {
    let scheme = text.split_once(':').map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("ior"))
}

fn has_scheme(text: &str) -> bool {
    let scheme = text.split_once(':').map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| {
        SCHEMES
            .iter()
            .any(|known| known.eq_ignore_ascii_case(scheme))
    })
}

const IOR: &str = "IOR:";
const SCHEMES: [&str; 4] = ["ior", "corbaloc", "corbaname", "file"];
/// A reference of ten thousand profiles fits.
const REFERENCE_BYTES_MAX: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_told_from_files() {
        assert_eq!(reference_text("IOR:00").unwrap().text, "IOR:00");
        assert_eq!(
            reference_text("corbaloc:iiop:host:1/key").unwrap().text,
            "corbaloc:iiop:host:1/key"
        );
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cubit.ior");
        std::fs::write(&path, "IOR:0102\n").unwrap();
        assert_eq!(
            reference_text(&path.display().to_string()).unwrap().text,
            "IOR:0102"
        );
        let name = path.display().to_string();
        for content in ["x".repeat(2 << 20), "# A page\n".repeat(1 << 16)] {
            std::fs::write(&path, content).unwrap();
            let said = reference_text(&name).unwrap_err();
            assert!(
                said.contains("holds no reference") && said.len() < 400,
                "{said}"
            );
        }
        std::fs::write(&path, format!("IOR:{}", "00".repeat(1 << 20))).unwrap();
        assert!(reference_text(&name).unwrap_err().contains("longer than"));
        assert!(reference_text(&"y".repeat(100_000)).unwrap_err().len() < 400);
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
