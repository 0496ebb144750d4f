//! A page of the tutorial, and its blocks.

use std::fs;
use std::path::Path;

/// A page of the tutorial.
pub(crate) struct Page {
    name: String,
    text: String,
}

/// A block of a page.
pub(crate) struct Block<'a> {
    pub(crate) language: &'a str,
    pub(crate) text: &'a str,
}

impl Page {
    pub(crate) fn read(name: &str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../docs/tutorial")
            .join(format!("{name}.md"));
        let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{name}: {e}"));
        Self {
            name: name.to_owned(),
            text,
        }
    }

    /// Its blocks in order.
    pub(crate) fn blocks(&self) -> Vec<Block<'_>> {
        let inside = self.text.split("```").skip(1).step_by(2);
        let blocks = inside.map(|block| {
            let (language, text) = block.split_once('\n').expect("a block has lines");
            Block { language, text }
        });
        blocks.collect()
    }

    /// Panics unless one of its blocks is this file of the package.
    pub(crate) fn shows(&self, language: &str, file: &str) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        let content = fs::read_to_string(path).unwrap_or_else(|e| panic!("{file}: {e}"));
        let is_shown = self
            .blocks()
            .iter()
            .any(|block| block.language == language && block.text == content);
        assert!(is_shown, "{}: it does not show {file} as it is", self.name);
    }
}
