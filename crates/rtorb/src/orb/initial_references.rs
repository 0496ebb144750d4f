//! Objects that a program finds by a name that everybody knows.

use rtorb_os::sync::Mutex;
use std::collections::BTreeMap;

/// Names and the references, as text, that they stand for.
#[derive(Debug, Default)]
pub(crate) struct InitialReferences {
    texts: Mutex<BTreeMap<String, String>>,
}

impl InitialReferences {
    pub(crate) fn new(texts: BTreeMap<String, String>) -> Self {
        Self {
            texts: Mutex::new(texts),
        }
    }

    pub(crate) fn register(&self, name: &str, text: String) {
        self.texts.lock().insert(name.to_owned(), text);
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.texts.lock().get(name).cloned()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.texts.lock().keys().cloned().collect()
    }
}
