//! The clauses of the standards that the code cites: what is kept, what is tested, and what is left out with its reason.
//!
//! A citation is two or more comment lines. The code that keeps a requirement says it in our own words:
//!
//! ```text
//! //= GIOP 1.2 §15.4.2.2
//! //# A request that expects a reply carries an id not in use on this connection.
//! ```
//!
//! A clause is its number, or its title where editions number it differently (`RT-CORBA 1.2 §Threadpools`). A test of it has `//% test` as its second line. `xtask/spec/exceptions.toml` lists what is left out.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use xshell::Shell;

use crate::sources::rust_files;

/// Prints the list, as text or as JSON, and fails if a citation or an exception is wrong.
pub(crate) fn run(sh: &Shell, json: bool) -> anyhow::Result<()> {
    let (list, faults) = read(sh)?;
    if json {
        println!("{}", serde_json::to_string_pretty(&list)?);
    } else {
        print!("{list}");
    }
    for fault in &faults {
        eprintln!("{fault}");
    }
    if !faults.is_empty() {
        bail!("{} wrong citations or exceptions", faults.len());
    }
    Ok(())
}

/// The documents that may be cited.
const DOCUMENTS: [&str; 3] = ["CORBA 3", "GIOP 1.2", "RT-CORBA 1.2"];
/// The folders that are searched for citations.
const FOLDERS: [&str; 2] = ["crates", "tests"];
const EXCEPTIONS: &str = "xtask/spec/exceptions.toml";

/// All cited clauses of each document.
#[derive(Debug, Default, Serialize)]
struct List(BTreeMap<String, BTreeMap<Clause, Coverage>>);

/// A clause of a document. Numbers are ordered by their parts, not by their characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Clause {
    Number(Vec<u32>),
    Title(String),
}

/// The places where one clause is kept and tested, and the requirements of it that are left out.
#[derive(Debug, Default, Serialize)]
struct Coverage {
    kept: Vec<Requirement>,
    tested: Vec<String>,
    left_out: Vec<Exception>,
}

/// A requirement and the place that keeps it.
#[derive(Debug, Serialize)]
struct Requirement {
    place: String,
    text: String,
}

/// The contents of the file of exceptions.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Exceptions {
    exception: Vec<Exception>,
}

/// A requirement that is left out.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Exception {
    #[serde(skip_serializing)]
    document: String,
    #[serde(skip_serializing)]
    clause: String,
    requirement: String,
    reason: String,
}

fn read(sh: &Shell) -> anyhow::Result<(List, Vec<String>)> {
    let workspace = sh.current_dir();
    let (mut list, mut faults) = (List::default(), Vec::new());
    for folder in FOLDERS {
        for file in rust_files(&workspace.join(folder))? {
            let name = file.strip_prefix(&workspace).unwrap_or(&file);
            let text = sh.read_file(&file)?;
            list.cite(&name.display().to_string(), &text, &mut faults);
        }
    }
    let exceptions: Exceptions = toml::from_str(&sh.read_file(EXCEPTIONS)?).context(EXCEPTIONS)?;
    list.except(exceptions.exception, &mut faults);
    list.find_faults(&mut faults);
    Ok((list, faults))
}

impl List {
    /// Adds the citations of one file.
    fn cite(&mut self, file: &str, text: &str, faults: &mut Vec<String>) {
        let mut lines = (1..).zip(text.lines().map(str::trim)).peekable();
        while let Some((number, line)) = lines.next() {
            let place = format!("{file}:{number}");
            let Some(reference) = line.strip_prefix("//= ") else {
                if ["//=", "//# ", "//% "]
                    .iter()
                    .any(|sign| line.starts_with(sign))
                {
                    faults.push(format!("{place}: write `//= DOCUMENT §CLAUSE` first"));
                }
                continue;
            };
            let mut requirement = String::new();
            let mut is_test = false;
            while let Some((_, line)) = lines.next_if(|(_, line)| is_continuation(line)) {
                match line.strip_prefix("//# ") {
                    Some(text) if requirement.is_empty() => requirement.push_str(text),
                    Some(text) => requirement.extend([" ", text]),
                    None => is_test = true,
                }
            }
            let coverage = match self.coverage(reference) {
                Ok(coverage) => coverage,
                Err(reason) => {
                    faults.push(format!("{place}: {reason}"));
                    continue;
                }
            };
            if is_test == requirement.is_empty() {
                if is_test {
                    coverage.tested.push(place);
                } else {
                    let text = requirement;
                    coverage.kept.push(Requirement { place, text });
                }
            } else {
                faults.push(format!(
                    "{place}: follow it with `//# REQUIREMENT`, or with `//% test`, not both"
                ));
            }
        }
    }

    /// Adds the requirements that are left out.
    fn except(&mut self, exceptions: Vec<Exception>, faults: &mut Vec<String>) {
        for exception in exceptions {
            let reference = format!("{} §{}", exception.document, exception.clause);
            match self.coverage(&reference) {
                Ok(coverage) => coverage.left_out.push(exception),
                Err(reason) => faults.push(format!("{EXCEPTIONS}: {reason}")),
            }
        }
    }

    fn find_faults(&self, faults: &mut Vec<String>) {
        for (document, clauses) in &self.0 {
            for (clause, coverage) in clauses {
                if let (Some(kept), false) = (coverage.kept.first(), coverage.left_out.is_empty()) {
                    let place = &kept.place;
                    faults.push(format!(
                        "{EXCEPTIONS}: {document} {clause} is left out, but {place} keeps it"
                    ));
                }
                if let ([], Some(place)) = (&coverage.kept[..], coverage.tested.first()) {
                    faults.push(format!(
                        "{place}: {document} {clause} is tested, but cited nowhere as kept"
                    ));
                }
            }
        }
    }

    /// The entry for a reference such as `GIOP 1.2 §15.4.2.2`.
    fn coverage(&mut self, reference: &str) -> Result<&mut Coverage, String> {
        let (document, clause) = reference
            .split_once(" §")
            .ok_or_else(|| format!("`{reference}` is not `DOCUMENT §CLAUSE`"))?;
        if !DOCUMENTS.contains(&document) {
            let known = DOCUMENTS.join(", ");
            return Err(format!("`{document}` is not a document; known are {known}"));
        }
        let clause = Clause::parse(clause)
            .ok_or_else(|| format!("`{clause}` is neither the number nor the title of a clause"))?;
        let clauses = self.0.entry(document.to_owned()).or_default();
        Ok(clauses.entry(clause).or_default())
    }
}

fn is_continuation(line: &str) -> bool {
    line.starts_with("//# ") || line == "//% test"
}

impl Clause {
    fn parse(text: &str) -> Option<Self> {
        if text.starts_with(|first: char| first.is_ascii_uppercase()) {
            return Some(Self::Title(text.to_owned()));
        }
        let parts: Result<_, _> = text.split('.').map(str::parse).collect();
        parts.ok().map(Self::Number)
    }
}

impl fmt::Display for Clause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(parts) => {
                let parts: Vec<_> = parts.iter().map(ToString::to_string).collect();
                write!(f, "§{}", parts.join("."))
            }
            Self::Title(title) => write!(f, "§{title}"),
        }
    }
}

impl Serialize for Clause {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (document, clauses) in &self.0 {
            let all = || clauses.values();
            let kept = all().filter(|coverage| !coverage.kept.is_empty());
            writeln!(
                f,
                "{document}: {} requirements kept in {} clauses, {} of them tested; {} left out",
                all().map(|coverage| coverage.kept.len()).sum::<usize>(),
                kept.clone().count(),
                kept.filter(|coverage| !coverage.tested.is_empty()).count(),
                all().map(|coverage| coverage.left_out.len()).sum::<usize>(),
            )?;
            for (clause, coverage) in clauses {
                writeln!(f, "  {clause}")?;
                for Requirement { place, text } in &coverage.kept {
                    writeln!(f, "    kept     {place}  {text}")?;
                }
                for place in &coverage.tested {
                    writeln!(f, "    tested   {place}")?;
                }
                for exception in &coverage.left_out {
                    writeln!(f, "    left out {}", exception.requirement)?;
                    writeln!(f, "             because {}", exception.reason)?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Exception, List, read};

    fn list_of(text: &str) -> (List, Vec<String>) {
        let (mut list, mut faults) = (List::default(), Vec::new());
        list.cite("a.rs", text, &mut faults);
        (list, faults)
    }

    #[test]
    fn the_citations_of_the_workspace_are_right() {
        let (list, faults) =
            read(&crate::workspace().expect("the workspace")).expect("all files are readable");
        assert!(faults.is_empty(), "\n{}", faults.join("\n"));
        assert!(!list.0.is_empty());
    }

    #[test]
    fn requirements_tests_and_exceptions_are_listed_by_clause() {
        let kept =
            "    //= GIOP 1.2 §15.4.10\n    //# One line,\n    //# and another.\n    let a = 1;\n";
        let tested = "//= GIOP 1.2 §15.4.2\n//# First.\n//= GIOP 1.2 §15.4.2\n//% test\n";
        let (mut list, mut faults) = list_of(&[kept, tested].concat());
        let exception = Exception {
            document: "CORBA 3".to_owned(),
            clause: "Threadpools".to_owned(),
            requirement: "R".to_owned(),
            reason: "no need".to_owned(),
        };
        list.except(vec![exception], &mut faults);
        list.find_faults(&mut faults);
        assert_eq!(faults, [""; 0]);
        let text = "\
CORBA 3: 0 requirements kept in 0 clauses, 0 of them tested; 1 left out
  §Threadpools
    left out R
             because no need
GIOP 1.2: 2 requirements kept in 2 clauses, 1 of them tested; 0 left out
  §15.4.2
    kept     a.rs:5  First.
    tested   a.rs:7
  §15.4.10
    kept     a.rs:1  One line, and another.
";
        assert_eq!(list.to_string(), text);
        let json = serde_json::to_value(&list).expect("it is plain data");
        assert_eq!(json["GIOP 1.2"]["§15.4.2"]["tested"][0], "a.rs:7");
    }

    #[test]
    fn every_wrong_citation_is_named_with_its_line() {
        for (text, fault) in [
            ("//= IIOP 9 §1\n//# R.", "is not a document"),
            ("//= GIOP 1.2 15.4\n//# R.", "is not `DOCUMENT §CLAUSE`"),
            ("//= GIOP 1.2 §15.x\n//# R.", "is neither the number nor"),
            ("//= GIOP 1.2 §15.4\nlet a = 1;", "follow it with"),
            ("//= GIOP 1.2 §15.4\n//# R.\n//% test", "not both"),
            ("//# R.", "first"),
            ("//% test", "first"),
        ] {
            let (_, faults) = list_of(text);
            let [found] = &faults[..] else {
                panic!("{text}: {faults:?}")
            };
            assert!(
                found.starts_with("a.rs:1: ") && found.contains(fault),
                "{found}"
            );
        }
    }

    #[test]
    fn a_clause_is_not_both_kept_and_left_out_nor_tested_without_being_kept() {
        let (mut list, mut faults) = list_of("//= GIOP 1.2 §1\n//# R.\n//= GIOP 1.2 §2\n//% test");
        let exception = Exception {
            document: "GIOP 1.2".to_owned(),
            clause: "1".to_owned(),
            requirement: "R".to_owned(),
            reason: "no need".to_owned(),
        };
        list.except(vec![exception], &mut faults);
        list.find_faults(&mut faults);
        let [both, untested] = &faults[..] else {
            panic!("{faults:?}")
        };
        assert!(both.contains("but a.rs:1 keeps it"), "{both}");
        assert!(
            untested.contains("§2 is tested, but cited nowhere"),
            "{untested}"
        );
    }
}
