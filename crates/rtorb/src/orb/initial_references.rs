//! Objects that a program finds by a name that everybody knows.

use super::Orb;
use crate::exception::{ExceptionKind, SystemException};
use crate::reference::ObjectRef;
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

    pub(crate) fn resolve(&self, orb: &Orb, name: &str) -> Result<ObjectRef, SystemException> {
        let text = self.texts.lock().get(name).cloned();
        match text {
            // A name that stands for itself would be looked up for ever.
            Some(text) if text.contains(":rir:") => {
                Err(SystemException::omg(ExceptionKind::BadParam, 9))
            }
            Some(text) => orb.string_to_object(&text),
            None => Err(ExceptionKind::InvObjref.into()),
        }
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.texts.lock().keys().cloned().collect()
    }
}
