//! Object keys. A server identifies its objects by them; clients pass them on as they are.
//!
//! The key of a transient object contains its place in the object table: four bytes of magic, the ORB's epoch, index and
//! generation. The key of a persistent object is readable, `ADAPTER/ID`, so that a `corbaloc:` URL can contain it.

use rtorb_os::slab::Key;

/// The first bytes of a transient object's key. No adapter's name begins with them.
const MAGIC: [u8; 4] = [0, b'r', b't', 1];

/// The length of a transient object's key.
pub(crate) const TRANSIENT_BYTES: usize = 20;

/// A decoded object key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObjectKey<'m> {
    /// The key of a transient object.
    Transient {
        /// The epoch of the ORB that made the key: it identifies a run of a server.
        epoch: u64,
        /// The object's place in that ORB's object table.
        place: Key,
    },
    /// Any other key.
    Named(&'m [u8]),
}

impl<'m> ObjectKey<'m> {
    #[inline]
    pub(crate) fn parse(bytes: &'m [u8]) -> Self {
        if bytes.len() == TRANSIENT_BYTES
            && let Some((magic, rest)) = bytes.split_first_chunk::<4>()
            && let Some((epoch, rest)) = rest.split_first_chunk::<8>()
            && let Some((index, rest)) = rest.split_first_chunk::<4>()
            && let Some(generation) = rest.first_chunk::<4>()
            && *magic == MAGIC
        {
            let place = Key {
                index: u32::from_be_bytes(*index),
                generation: u32::from_be_bytes(*generation),
            };
            return Self::Transient {
                epoch: u64::from_be_bytes(*epoch),
                place,
            };
        }
        Self::Named(bytes)
    }

    pub(crate) fn transient(epoch: u64, place: Key) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(TRANSIENT_BYTES);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&epoch.to_be_bytes());
        bytes.extend_from_slice(&place.index.to_be_bytes());
        bytes.extend_from_slice(&place.generation.to_be_bytes());
        bytes
    }

    /// Returns the key of the object with that id in the adapter with that path.
    ///
    /// A `/` in the id is written as `%2F`, so the last `/` of a key always ends the path: the keys of `x` in `A/B` and of `B/x` in
    /// `A` differ.
    pub(crate) fn named(adapter: &str, id: &[u8]) -> Vec<u8> {
        let mut key = [adapter.as_bytes(), b"/"].concat();
        for &byte in id {
            match byte {
                b'/' => key.extend_from_slice(b"%2F"),
                b'%' => key.extend_from_slice(b"%25"),
                _ => key.push(byte),
            }
        }
        key
    }
}

/// Returns the id in a readable key; `None` if the key is not one of the adapter with that path.
pub(crate) fn id_in(key: &[u8], adapter: &str) -> Option<Vec<u8>> {
    let escaped = key.strip_prefix(adapter.as_bytes())?.strip_prefix(b"/")?;
    let mut id = Vec::with_capacity(escaped.len());
    unescape(escaped, &mut id).then_some(id)
}

/// Splits a readable key into the path of the adapter, with its last `/`, and the escaped id.
pub(crate) fn split(key: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = key.iter().rposition(|&byte| byte == b'/')?;
    Some(key.split_at(end + 1))
}

/// Unescapes an id of a key into `id`. Returns false if the text is not an escaped id.
pub(crate) fn unescape(escaped: &[u8], id: &mut Vec<u8>) -> bool {
    id.clear();
    let mut rest = escaped;
    while let Some((&byte, after)) = rest.split_first() {
        let (byte, after) = match (byte, after) {
            (b'/', _) => return false,
            (b'%', [b'2', b'F', after @ ..]) => (b'/', after),
            (b'%', [b'2', b'5', after @ ..]) => (b'%', after),
            _ => (byte, after),
        };
        id.push(byte);
        rest = after;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transient_key_is_read_back() {
        let place = Key {
            index: 7,
            generation: 0x0102_0304,
        };
        let bytes = ObjectKey::transient(42, place);
        assert_eq!(bytes.len(), TRANSIENT_BYTES);
        assert_eq!(
            ObjectKey::parse(&bytes),
            ObjectKey::Transient { epoch: 42, place }
        );
    }

    #[test]
    fn no_two_objects_have_one_name() {
        let names = [("A/B", "x"), ("A", "B/x"), ("A", "B%2Fx"), ("A", "B%252Fx")];
        let keys = names.map(|(adapter, id)| ObjectKey::named(adapter, id.as_bytes()));
        for (index, key) in keys.iter().enumerate() {
            assert!(
                !keys[..index].contains(key),
                "{}",
                String::from_utf8_lossy(key)
            );
        }
        assert_eq!(ObjectKey::named("Radar", b"tracks-1"), b"Radar/tracks-1");
        for ((adapter, id), key) in names.iter().zip(&keys) {
            assert_eq!(id_in(key, adapter), Some(id.as_bytes().to_vec()));
        }
        assert_eq!(id_in(&keys[0], "A"), None);
    }

    #[test]
    fn any_other_bytes_are_a_name() {
        for bytes in [
            &b""[..],
            b"NameService",
            &[0, b'r', b't', 1],
            &[0; TRANSIENT_BYTES],
        ] {
            assert_eq!(ObjectKey::parse(bytes), ObjectKey::Named(bytes));
        }
    }
}
