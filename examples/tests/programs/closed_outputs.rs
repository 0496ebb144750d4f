//! Outputs that nobody reads: an example ends with an error, and does not panic.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[test]
fn a_server_whose_reference_nobody_reads_ends_with_an_error() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_hello-server"));
    command.stdout(writer).stderr(Stdio::piped());
    let output = command.output().expect("the server runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("Broken pipe"), "{said}");
}

#[test]
fn no_example_uses_a_macro_that_panics_if_its_output_is_closed() {
    let mut found = Vec::new();
    for file in sources(Path::new(env!("CARGO_MANIFEST_DIR"))) {
        let text = fs::read_to_string(&file).expect("a source file");
        if ["println!", "print!"]
            .iter()
            .any(|name| text.contains(name))
        {
            found.push(file);
        }
    }
    assert!(
        found.is_empty(),
        "write `writeln!(stdout(), ...)?` in {found:?}"
    );
}

/// The Rust files of the programs below `folder`. Tests and build scripts may print.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or("");
        if path.is_dir() && name != "tests" && name != "target" {
            found.extend(sources(&path));
        } else if name.ends_with(".rs") && name != "build.rs" {
            found.push(path);
        }
    }
    found
}
