//! `#include`: finds and reads files, within limits.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use crate::builtin;
use crate::diagnostic::Diagnostic;
use crate::lexer::{Lexer, Token, TokenKind};
use crate::source::{Location, SourceFile};

use super::Preprocessor;

impl Preprocessor<'_> {
    /// Reads a file that the user gave, unless an earlier one has included it.
    pub(super) fn main_file(&mut self, path: &Path) {
        let mut known = self.sources.files().iter().filter_map(SourceFile::path);
        if known.any(|known| same_file(known, path)) {
            return;
        }
        match read_text(path) {
            Ok(text) => self.read(
                SourceFile::new(path.to_string_lossy(), text)
                    .at_path(path)
                    .main(),
            ),
            Err(reason) => {
                self.output.incomplete = true;
                let message = format!("cannot read `{}`: {reason}", path.display());
                self.diagnostics.push(Diagnostic::error(message));
            }
        }
    }

    /// `#include "file"`, `#include <file>` and `#include MACRO`.
    pub(super) fn include_directive(&mut self, lexer: &mut Lexer, directive: Location) {
        let (text, location) = lexer.rest_of_line(self.diagnostics);
        let spelled = if text.starts_with(['"', '<']) {
            text
        } else {
            self.expanded_name(&text, location)
        };
        let quoted = spelled
            .strip_prefix('"')
            .and_then(|rest| rest.split_once('"'));
        let angled = spelled
            .strip_prefix('<')
            .and_then(|rest| rest.split_once('>'));
        match (quoted, angled) {
            (Some((name, _)), _) if !name.is_empty() => self.include(name, true, location),
            (_, Some((name, _))) if !name.is_empty() => self.include(name, false, location),
            _ => {
                let at = if spelled.is_empty() {
                    directive
                } else {
                    location
                };
                let label = "expected \"file.idl\" or <file.idl>";
                self.diagnostics
                    .error(at, "`#include` needs the name of a file", label);
            }
        }
    }

    /// Handles `#pragma once`: the current file is not read again.
    pub(super) fn once_only(&mut self) {
        let path = self.current_path().map(Path::to_path_buf);
        self.once.extend(path);
    }

    /// The path of the file that is being read.
    fn current_path(&self) -> Option<&Path> {
        let file = *self.open.last()?;
        self.sources.files()[file as usize].path()
    }

    fn expanded_name(&mut self, text: &str, location: Location) -> String {
        let mut lexer = Lexer::new(location.file, text.into());
        let mut output = Vec::new();
        loop {
            let token = lexer.next(self.diagnostics);
            if token.kind == TokenKind::End {
                return output.iter().map(Token::spelling).collect();
            }
            self.macros.expand_from(
                Token { location, ..token },
                &mut lexer,
                self.diagnostics,
                &mut output,
            );
        }
    }

    fn include(&mut self, name: &str, quoted: bool, location: Location) {
        if self.is_limit_exceeded {
            return;
        }
        // Files from Windows may separate folders with a backslash.
        let found = self
            .find(name, quoted)
            .or_else(|| self.find(&name.replace('\\', "/"), quoted));
        let Some(path) = found else {
            return self.include_built_in(name, quoted, location);
        };
        if self.once.iter().any(|once| same_file(once, &path)) {
            return;
        }
        if self.open.len() >= INCLUDES_MAX {
            return self.too_deep(&path, location);
        }
        match read_text(&path) {
            Ok(text) => {
                let file = SourceFile::new(path.to_string_lossy(), text)
                    .at_path(&path)
                    .included_from(location);
                self.read(if self.is_given(&path) {
                    file.main()
                } else {
                    file
                });
            }
            Err(reason) => {
                self.output.incomplete = true;
                let message = format!("cannot read `{}`: {reason}", path.display());
                self.diagnostics.error(location, message, "included here");
            }
        }
    }

    fn include_built_in(&mut self, name: &str, quoted: bool, location: Location) {
        let Some(text) = builtin::file(name) else {
            return self.not_found(name, quoted, location);
        };
        if self.options.shared_with.is_some() && !OF_EVERY_COMPILER.contains(&name) {
            let warning = Diagnostic::warning(format!("omniidl has no file `{name}`"))
                .at(location, "built into this compiler")
                .help("add the directory that contains it: `-I DIRECTORY`, for both compilers");
            self.diagnostics.push(warning);
        }
        let name = format!("<built in>/{name}");
        self.read(SourceFile::new(name, text).included_from(location));
    }

    /// Finds a file. Searches for a name in quotes beside the including file first (CORBA 3.3 part 1, 7.3: as in C++).
    fn find(&self, name: &str, quoted: bool) -> Option<PathBuf> {
        let beside = self
            .current_path()
            .and_then(Path::parent)
            .filter(|_| quoted);
        let dirs = self.options.include_dirs.iter().map(PathBuf::as_path);
        // `join` ignores the folder if the name is absolute.
        let anywhere = Path::new(name).is_absolute().then_some(Path::new(""));
        let mut paths = beside.into_iter().chain(dirs).chain(anywhere);
        paths.find_map(|folder| Some(folder.join(name)).filter(|path| path.is_file()))
    }

    fn is_given(&self, path: &Path) -> bool {
        self.given.iter().any(|given| same_file(given, path))
    }

    fn not_found(&mut self, name: &str, quoted: bool, location: Location) {
        self.output.incomplete = true;
        let mut diagnostic = Diagnostic::error(format!("cannot find the file `{name}`"))
            .at(location, "included here");
        let beside = quoted.then(|| "the folder of the including file".to_owned());
        let dirs = self.options.include_dirs.iter();
        let searched = beside
            .into_iter()
            .chain(dirs.map(|dir| format!("`{}`", dir.display())));
        let searched = searched.collect::<Vec<_>>().join(", ");
        if !searched.is_empty() {
            diagnostic = diagnostic.note(format!("searched: {searched}"));
        }
        if self.options.include_dirs.is_empty() {
            diagnostic = diagnostic.note("no include directory is given");
        }
        self.diagnostics
            .push(diagnostic.help("add the directory that contains it: `-I DIRECTORY`"));
    }

    fn too_deep(&mut self, path: &Path, location: Location) {
        let cyclic = self
            .open
            .iter()
            .any(|&file| self.sources.files()[file as usize].path() == Some(path));
        if cyclic {
            self.is_limit_exceeded = true;
            self.output.incomplete = true;
            self.diagnostics.push(
                Diagnostic::error(format!("`{}` includes itself without end", path.display()))
                    .at(location, format!("included {INCLUDES_MAX} deep here"))
                    .help("guard the file: `#ifndef NAME`, `#define NAME`, its text, `#endif`; or write `#pragma once`"),
            );
        } else {
            let message = "files are included too deep";
            let unit = "files within each other";
            self.report_exceeded_limit(Some(location), message, INCLUDES_MAX, unit);
        }
    }
}

/// The built-in files that omniidl finds, too.
const OF_EVERY_COMPILER: [&str; 1] = ["orb.idl"];
/// The most levels of included files.
const INCLUDES_MAX: usize = 64;
/// The most files of a run. Each inclusion counts.
pub(super) const FILES_MAX: usize = 10_000;
/// The most bytes of a run. Each inclusion counts.
pub(super) const BYTES_MAX: usize = 64 << 20;

fn same_file(one: &Path, other: &Path) -> bool {
    one == other
        || match (one.canonicalize(), other.canonicalize()) {
            (Ok(one), Ok(other)) => one == other,
            _ => false,
        }
}

/// Reads a file as UTF-8, or else as ISO 8859-1, which old IDL files have in comments.
fn read_text(path: &Path) -> Result<String, String> {
    let is_of_shell = path.starts_with("/dev") || path.starts_with("/proc");
    let kind = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if kind.file_type().is_fifo() && !is_of_shell {
        return Err("it is a named pipe, which may never have a writer".to_owned());
    }
    let mut bytes = Vec::new();
    let read =
        File::open(path).and_then(|file| file.take(BYTES_MAX as u64 + 1).read_to_end(&mut bytes));
    read.map_err(|error| error.to_string())?;
    if bytes.len() > BYTES_MAX {
        return Err(format!("it is longer than {BYTES_MAX} bytes"));
    }
    if let Some(at) = bytes.iter().position(|byte| *byte == 0) {
        return Err(format!("it is no text: byte {at} is 0"));
    }
    let latin1 = |bytes: Vec<u8>| bytes.into_iter().map(char::from).collect();
    Ok(String::from_utf8(bytes).unwrap_or_else(|error| latin1(error.into_bytes())))
}
