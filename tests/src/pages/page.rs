//! A page of the project, and its blocks.

use std::fs;
use std::path::{Path, PathBuf};

/// A page: the README, or a file below `docs/`.
#[derive(Debug)]
pub struct Page {
    /// Its place in the project, such as `docs/how-to/call.md`.
    pub name: String,
    text: String,
}

/// A block of a page.
#[derive(Debug)]
pub struct Block<'a> {
    /// What stands behind its opening quotes, such as `sh`.
    pub language: &'a str,
    /// Its lines.
    pub text: &'a str,
    /// The text between the block before and this one.
    pub before: &'a str,
}

impl Page {
    /// Reads a page by its place in the project.
    ///
    /// # Panics
    ///
    /// If there is no such page.
    #[must_use]
    pub fn read(name: &str) -> Self {
        let text = fs::read_to_string(project().join(name));
        Self {
            name: name.to_owned(),
            text: text.unwrap_or_else(|e| panic!("{name}: {e}")),
        }
    }

    /// The README, and all pages of the book's four kinds.
    ///
    /// # Panics
    ///
    /// If a page cannot be read.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let mut names = vec!["README.md".to_owned()];
        for kind in ["tutorial", "how-to", "reference", "explanation"] {
            let folder = Path::new("docs").join(kind);
            let files = fs::read_dir(project().join(&folder)).expect("a folder of pages");
            let files = files.map(|file| folder.join(file.expect("a file").file_name()));
            let pages = files.filter(|file| file.extension().is_some_and(|it| it == "md"));
            names.extend(pages.map(|page| page.display().to_string()));
        }
        names.sort();
        names.iter().map(|name| Self::read(name)).collect()
    }

    /// Its blocks in order.
    ///
    /// # Panics
    ///
    /// If a block is not closed.
    #[must_use]
    pub fn blocks(&self) -> Vec<Block<'_>> {
        let parts: Vec<&str> = self.text.split("```").collect();
        assert!(parts.len() % 2 == 1, "{}: a block is open", self.name);
        let pairs = parts.as_chunks().0;
        let blocks = pairs.iter().map(|[before, block]| {
            let (language, text) = block.split_once('\n').expect("a block has lines");
            Block {
                language,
                text,
                before,
            }
        });
        blocks.collect()
    }

    /// Panics unless one of its blocks is this file of the project, as a whole.
    ///
    /// # Panics
    ///
    /// See above.
    pub fn shows(&self, language: &str, file: &str) {
        let content = fs::read_to_string(project().join(file));
        let content = content.unwrap_or_else(|e| panic!("{file}: {e}"));
        let blocks = self.blocks();
        let mut blocks = blocks.iter().filter(|block| block.language == language);
        assert!(
            blocks.any(|block| block.text == content),
            "{}: it does not show {file} as it is",
            self.name
        );
    }
}

impl<'a> Block<'a> {
    /// The file that the block is: the last name in backquotes of the line before it, if the name has no folder and the ending is the
    /// block's language.
    #[must_use]
    pub fn file(&self) -> Option<&'a str> {
        let line = self.before.trim_end().lines().next_back()?;
        let name = line.split('`').skip(1).step_by(2).last()?;
        let ending = Path::new(name).extension()?;
        (ending == self.language && !name.contains('/')).then_some(name)
    }

    /// Whether nothing stands between the block before and this one.
    #[must_use]
    pub fn follows_directly(&self) -> bool {
        self.before.trim().is_empty()
    }

    /// Its commands in order, if it has some: in the language `sh` all lines are commands; in `console`, those behind `$ `.
    #[must_use]
    pub fn commands(&self) -> Vec<Dialogue> {
        let mut commands: Vec<Dialogue> = Vec::new();
        let mut is_open = false;
        for line in self.text.lines() {
            let last = commands.last_mut().filter(|_| is_open);
            match (self.language, last) {
                ("sh" | "console", Some(last)) => {
                    last.command.push('\n');
                    last.command.push_str(line);
                }
                ("sh", None) => commands.extend(Dialogue::begin(line)),
                ("console", None) => match (line.strip_prefix("$ "), commands.last_mut()) {
                    (Some(command), _) => commands.extend(Dialogue::begin(command)),
                    (None, Some(last)) => {
                        let output = last.output.get_or_insert_default();
                        output.push_str(line);
                        output.push('\n');
                    }
                    (None, None) => {}
                },
                _ => return commands,
            }
            is_open = commands.last().is_some_and(Dialogue::is_quote_open);
        }
        commands
    }
}

/// A command of a page, and what the page says of its run.
#[derive(Debug, Default)]
pub struct Dialogue {
    /// The command, without its comment.
    pub command: String,
    /// The comment behind it.
    pub comment: String,
    /// The output that follows in the same block.
    pub output: Option<String>,
}

impl Dialogue {
    fn begin(line: &str) -> Option<Self> {
        let (command, comment) = line.split_at(comment_start(line));
        let command = command.trim();
        (!command.is_empty()).then(|| Self {
            command: command.to_owned(),
            comment: comment.trim_start_matches('#').trim().to_owned(),
            output: None,
        })
    }

    /// Whether the command goes on in the next line.
    fn is_quote_open(&self) -> bool {
        self.command.matches('\'').count() % 2 == 1
    }

    /// Whether the comment says that the command goes on while the next ones run.
    #[must_use]
    pub fn is_kept_running(&self) -> bool {
        self.clauses().any(|clause| clause == "keep it running")
    }

    /// The output that the comment says: `prints TEXT`.
    #[must_use]
    pub fn printed(&self) -> Option<&str> {
        self.clauses()
            .find_map(|clause| clause.strip_prefix("prints "))
    }

    /// The exit status that the comment says: `exit status N`. Without it, 0.
    ///
    /// # Panics
    ///
    /// If N is no number.
    #[must_use]
    pub fn status(&self) -> i32 {
        let status = self
            .clauses()
            .find_map(|clause| clause.strip_prefix("exit status "));
        status.map_or(0, |status| {
            let number = status.parse();
            number.unwrap_or_else(|_| panic!("{}: {status} is no exit status", self.command))
        })
    }

    fn clauses(&self) -> impl Iterator<Item = &str> {
        self.comment.split(';').map(str::trim)
    }
}

/// Where the comment of a line begins, or its end.
fn comment_start(line: &str) -> usize {
    let mut quote = None;
    let mut before = ' ';
    for (place, character) in line.char_indices() {
        match (quote, character) {
            (Some(open), close) if open == close => quote = None,
            (None, '\'' | '"') => quote = Some(character),
            (None, '#') if before == ' ' => return place,
            _ => {}
        }
        before = character;
    }
    line.len()
}

/// The folder of the project.
#[must_use]
pub fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
