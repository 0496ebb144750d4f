//! The values of a `context` clause: names and their values, sent behind the arguments of a request.

use super::{Decode, Encode, Reader, Writer};
use crate::{DecodeError, EncodeError};
use alloc::collections::BTreeMap;
use alloc::string::String;

/// Context values of a call: strings with names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContextValues(pub BTreeMap<String, String>);

impl ContextValues {
    /// Writes the values whose names match one of `patterns`. A pattern with `*` at its end matches names with the text before it.
    ///
    /// # Errors
    /// When the message would exceed its limit.
    pub fn encode_matching<'a>(
        &'a self,
        patterns: &[&str],
        w: &mut Writer<'a>,
    ) -> Result<(), EncodeError> {
        let is_sent = |name: &str| {
            patterns
                .iter()
                .any(|pattern| match pattern.strip_suffix('*') {
                    Some(beginning) => name.starts_with(beginning),
                    None => name == *pattern,
                })
        };
        let sent = || self.0.iter().filter(|(name, _)| is_sent(name));
        //= GIOP 1.2 §15.4.2.2
        //# The context is a sequence of strings behind the arguments: names and values in turn.
        w.count(2 * sent().count())?;
        sent().try_for_each(|(name, value)| {
            name.encode(w)?;
            value.encode(w)
        })
    }
}

impl Decode for ContextValues {
    const BYTES_MIN: usize = 4;

    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let count = r.count(String::BYTES_MIN)?;
        if count % 2 != 0 {
            let count = u32::try_from(count).unwrap_or(u32::MAX);
            return Err(DecodeError::bad_tag("the number of context strings", count));
        }
        let mut values = BTreeMap::new();
        for _ in 0..count / 2 {
            values.insert(String::decode(r)?, String::decode(r)?);
        }
        Ok(Self(values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ByteOrder;

    fn values(all: &[(&str, &str)]) -> ContextValues {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        ContextValues(all.iter().map(owned).collect())
    }

    //= GIOP 1.2 §15.4.2.2
    //% test
    #[test]
    fn only_matching_values_are_sent() {
        let given = values(&[
            ("USER", "a"),
            ("USER_ID", "b"),
            ("HOST", "c"),
            ("HOSTS", "d"),
        ]);
        let mut w = Writer::new(Vec::new(), 1024).with_order(ByteOrder::Little);
        given
            .encode_matching(&["USER*", "HOST"], &mut w)
            .expect("it fits");
        let bytes = w.to_bytes();
        assert_eq!(bytes[..4], [6, 0, 0, 0], "three names and three values");
        let mut r = Reader::new(&bytes, ByteOrder::Little);
        let expected = values(&[("USER", "a"), ("USER_ID", "b"), ("HOST", "c")]);
        assert_eq!(ContextValues::decode(&mut r), Ok(expected));
    }

    #[test]
    fn a_name_without_a_value_is_refused() {
        let mut r = Reader::new(b"\x01\0\0\0\x02\0\0\0A\0", ByteOrder::Little);
        assert!(matches!(
            ContextValues::decode(&mut r),
            Err(DecodeError::BadTag { .. })
        ));
    }
}
