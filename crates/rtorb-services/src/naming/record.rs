//! The stored forms of contexts and bindings: values of all stores, and the keys of a shared one.

use super::tree::{BindingKey, BindingTarget, ContextId, Effect};
use rtorb::cdr::{Decode, Encode, Reader, Writer};
use rtorb::ior::Ior;
use rtorb::url;
use std::io;
use std::sync::Arc;

/// What a key of a shared store is about. Keys are text, so that an operator can read them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RecordKey {
    /// `about`: the schema and the identity of the store.
    About,
    /// `contexts/ID`: a context.
    Context(ContextId),
    /// `bindings/ID/NAME`: a binding; the name has the form of a stringified name (Naming 1.3, 2.4).
    Binding(Arc<BindingKey>),
}

impl RecordKey {
    /// The key as text.
    pub(super) fn text(&self) -> String {
        match self {
            Self::About => ABOUT.to_owned(),
            Self::Context(id) => format!("{CONTEXTS}{:016x}", id.0),
            Self::Binding(place) => {
                let name = url::format_name(core::slice::from_ref(&place.component));
                format!("{BINDINGS}{:016x}/{name}", place.context.0)
            }
        }
    }

    /// Reads a key; `None` for one that this program does not write.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let number = |hex: &str| u64::from_str_radix(hex, 16).ok().map(ContextId);
        if text == ABOUT {
            Some(Self::About)
        } else if let Some(id) = text.strip_prefix(CONTEXTS) {
            number(id).map(Self::Context)
        } else {
            let (context, name) = text.strip_prefix(BINDINGS)?.split_once('/')?;
            let context = number(context)?;
            let mut name = url::parse_name(name).ok()?.into_iter();
            match (name.next(), name.next()) {
                (Some(component), None) => {
                    Some(Self::Binding(Arc::new(BindingKey { context, component })))
                }
                _ => None,
            }
        }
    }
}

/// The key that a change is about, and its new value; `None` if it is removed.
pub(super) fn written(
    effect: &Effect,
    reference_bytes_max: usize,
) -> io::Result<(RecordKey, Option<Vec<u8>>)> {
    Ok(match effect {
        Effect::Bind(place, target) => (
            RecordKey::Binding(Arc::clone(place)),
            Some(to_bytes(target, reference_bytes_max)?),
        ),
        Effect::Unbind(place) => (RecordKey::Binding(Arc::clone(place)), None),
        Effect::Create(id) => (RecordKey::Context(*id), Some(Vec::new())),
        Effect::Destroy(id) => (RecordKey::Context(*id), None),
    })
}

/// The change of the tree that a written key means; `None` for what is none, or cannot be read.
pub(super) fn effect(key: &str, value: Option<&[u8]>) -> Option<Effect> {
    match (RecordKey::parse(key)?, value) {
        (RecordKey::About, _) => None,
        (RecordKey::Context(id), Some(_)) => Some(Effect::Create(id)),
        (RecordKey::Context(id), None) => Some(Effect::Destroy(id)),
        (RecordKey::Binding(place), Some(value)) => Some(Effect::Bind(place, from_bytes(value)?)),
        (RecordKey::Binding(place), None) => Some(Effect::Unbind(place)),
    }
}

const ABOUT: &str = "about";
const CONTEXTS: &str = "contexts/";
const BINDINGS: &str = "bindings/";

/// The stored form of a target: one byte for its kind, then an id or the reference's encapsulation.
pub(super) fn to_bytes(target: &BindingTarget, reference_bytes_max: usize) -> io::Result<Vec<u8>> {
    let (tag, ior) = match target {
        BindingTarget::Object(ior) => (OBJECT, ior),
        BindingTarget::Elsewhere(ior) => (ELSEWHERE, ior),
        BindingTarget::Context(id) => return Ok([&[CONTEXT][..], &id.0.to_le_bytes()].concat()),
    };
    let mut w = Writer::new(Vec::new(), 2 * reference_bytes_max + OVERHEAD_BYTES);
    let written = w.encapsulation(|w| ior.encode(w));
    written.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    // The encapsulation's length in front of it is not needed.
    let bytes = w.to_bytes();
    Ok([&[tag][..], &bytes[LENGTH_BYTES..]].concat())
}

pub(super) fn from_bytes(bytes: &[u8]) -> Option<BindingTarget> {
    let (tag, rest) = bytes.split_first()?;
    if *tag == CONTEXT {
        let id = u64::from_le_bytes(rest.try_into().ok()?);
        return Some(BindingTarget::Context(ContextId(id)));
    }
    let mut r = Reader::encapsulated(rest).ok()?;
    let ior = Arc::new(Ior::decode(&mut r).ok()?);
    match *tag {
        OBJECT => Some(BindingTarget::Object(ior)),
        ELSEWHERE => Some(BindingTarget::Elsewhere(ior)),
        _ => None,
    }
}

const OBJECT: u8 = 0;
const CONTEXT: u8 = 1;
const ELSEWHERE: u8 = 2;

/// The length in front of an encapsulation.
const LENGTH_BYTES: usize = 4;

/// Lengths and padding of a reference, beside its bytes.
const OVERHEAD_BYTES: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use rtorb::url::NameComponent;

    #[test]
    fn a_key_is_read_as_it_was_written() {
        let components = [
            ("", ""),
            ("a", ""),
            ("", "k"),
            ("a/b", "c.d"),
            ("\\", "/"),
            ("\u{e9}", "."),
        ];
        let bindings = components.map(|(id, kind)| {
            let component = NameComponent {
                id: id.to_owned(),
                kind: kind.to_owned(),
            };
            let context = ContextId(u64::MAX);
            RecordKey::Binding(Arc::new(BindingKey { context, component }))
        });
        let others = [RecordKey::About, RecordKey::Context(ContextId(17))];
        for key in bindings.into_iter().chain(others) {
            assert_eq!(RecordKey::parse(&key.text()), Some(key));
        }
        for wrong in [
            "",
            "version",
            "contexts/x",
            "bindings/1",
            "bindings/1/a/b",
            "bindings/1/a.b.c",
        ] {
            assert_eq!(RecordKey::parse(wrong), None, "{wrong}");
        }
    }
}
