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

/// Every symbolic link below `folder`, in order, without those in the folders of git and cargo.
pub(crate) fn links_below(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut left = vec![folder.to_owned()];
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_symlink() {
                found.push(entry.path());
            } else if kind.is_dir() && entry.file_name() != ".git" && entry.file_name() != "target"
            {
                left.push(entry.path());
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
    use std::fs;
    use std::os::unix::fs::symlink;

    use xshell::Shell;

    use super::{code_of, links_below};

    #[test]
    fn links_are_found_beside_files_and_in_folders_but_not_where_cargo_builds() {
        let sh = Shell::new().expect("a folder to start in");
        let folder = sh.create_temp_dir().expect("a folder of our own");
        let root = folder.path();
        for name in ["src", "target"] {
            fs::create_dir(root.join(name)).expect("a folder of our own");
            symlink("/", root.join(name).join("link")).expect("a link of our own");
        }
        fs::write(root.join("file"), "").expect("a file of our own");
        let found = links_below(root).expect("it can be read");
        assert_eq!(found, [root.join("src/link")]);
    }

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
