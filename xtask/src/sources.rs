//! Finds source files, and reads their code without comments and without the tests at their end.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// Every Rust file below `folder`, in order.
pub(crate) fn rust_files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = files_below(folder)?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "rs"));
    Ok(files)
}

/// Every file below `folder`, in order.
pub(crate) fn files_below(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut left = vec![folder.to_owned()];
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() {
                left.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The lines of code of a file, without comments, up to its unit tests, which stand last.
pub(crate) fn code(file: &Path) -> anyhow::Result<Vec<String>> {
    let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
    Ok(code_of(&text))
}

fn code_of(text: &str) -> Vec<String> {
    let mut nexts = text.lines().skip(1);
    let lines = text.lines().take_while(|line| {
        let next = nexts.next().unwrap_or_default();
        // Other items for tests, such as an import, may stand anywhere.
        line.trim() != "#[cfg(test)]" || !next.starts_with("mod ") || next.ends_with(';')
    });
    let code = lines.map(|line| without_comment(line).to_owned());
    code.filter(|line| !line.trim().is_empty()).collect()
}

/// A `//` inside a string is not a comment, so the quotes before it must be even in number.
fn without_comment(line: &str) -> &str {
    let comment = line
        .match_indices("//")
        .find(|(at, _)| line[..*at].matches('"').count().is_multiple_of(2));
    comment.map_or(line, |(at, _)| &line[..at])
}

#[cfg(test)]
mod tests {
    use super::code_of;

    #[test]
    fn comments_and_tests_are_no_code() {
        let text = "//! std::net\nuse std::fmt; // std::fs\n#[cfg(test)]\nuse a::b;\nlet url = \"a://b\";\n\n#[cfg(test)]\nmod tests { std::time }\n";
        let code = [
            "use std::fmt; ",
            "#[cfg(test)]",
            "use a::b;",
            "let url = \"a://b\";",
        ];
        assert_eq!(code_of(text), code);
    }
}
