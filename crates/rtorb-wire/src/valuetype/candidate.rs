//! Values of one of several types: where a message contains an abstract valuetype or `ValueBase`.

use super::{ValueType, read_state};
use crate::cdr::{ValueHead, ValueStart};
use crate::{DecodeError, Reader};
use alloc::sync::Arc;
use core::any::Any;

/// A valuetype that can stand where an abstract one is expected. `E` is the enum of all such types.
#[derive(Debug)]
pub struct Candidate<E> {
    repository_id: &'static str,
    read: fn(&ValueStart<'_>, &mut Reader<'_>) -> Result<E, DecodeError>,
    shared: fn(Arc<dyn Any + Send + Sync>) -> Option<E>,
}

impl<E> Candidate<E> {
    /// The valuetype `T`.
    pub const fn of<T: ValueType>() -> Self
    where
        E: From<Arc<T>>,
    {
        Self {
            repository_id: T::REPOSITORY_ID,
            read: |start, r| {
                r.keep_value(start.position, |r| read_state::<T>(start, r))
                    .map(E::from)
            },
            shared: |value| value.downcast::<T>().ok().map(E::from),
        }
    }
}

/// Reads a value of the sent type if it is one of `candidates`, else of the first base to which it may be truncated.
///
/// # Errors
/// [`DecodeError::UnknownValue`] when it is none of them; the error of its state.
pub fn read_one_of<E>(
    candidates: &[Candidate<E>],
    r: &mut Reader<'_>,
) -> Result<Option<E>, DecodeError> {
    r.approach_value();
    match r.value_head()? {
        ValueHead::Null => Ok(None),
        ValueHead::Indirection { position } => {
            let value = r.value_at(position)?;
            let mut candidates = candidates.iter();
            let found = candidates.find_map(|candidate| (candidate.shared)(Arc::clone(&value)));
            found.map(Some).ok_or(DecodeError::UnknownValue)
        }
        ValueHead::Value(start) => {
            let found = start.repository_ids.iter().find_map(|id| {
                let mut candidates = candidates.iter();
                candidates.find(|candidate| candidate.repository_id.as_bytes() == *id)
            });
            let candidate = found.ok_or(DecodeError::UnknownValue)?;
            (candidate.read)(&start, r).map(Some)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::valuetype;
    use crate::{ByteOrder, Decode, Encode, EncodeError, Writer};

    #[derive(Debug, PartialEq)]
    struct Plain(u8);

    impl Encode for Plain {
        fn encode<'a>(&'a self, w: &mut Writer<'a>) -> Result<(), EncodeError> {
            self.0.encode(w)
        }
    }

    impl Decode for Plain {
        const BYTES_MIN: usize = 1;
        fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
            Decode::decode(r).map(Self)
        }
    }

    impl ValueType for Plain {
        const REPOSITORY_ID: &'static str = "IDL:P:1.0";
    }

    /// Writes its own state, with values in every place.
    #[derive(Debug, PartialEq)]
    struct Custom {
        before: Option<Arc<Plain>>,
        number: u8,
        inner: Option<Arc<Custom>>,
        after: Option<Arc<Plain>>,
    }

    impl Encode for Custom {
        fn encode<'a>(&'a self, w: &mut Writer<'a>) -> Result<(), EncodeError> {
            self.before.encode(w)?;
            self.number.encode(w)?;
            self.inner.encode(w)?;
            self.after.encode(w)
        }
    }

    impl Decode for Custom {
        const BYTES_MIN: usize = 13;
        fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
            Ok(Self {
                before: Decode::decode(r)?,
                number: Decode::decode(r)?,
                inner: Decode::decode(r)?,
                after: Decode::decode(r)?,
            })
        }
    }

    impl ValueType for Custom {
        const REPOSITORY_ID: &'static str = "IDL:C:1.0";
        const CUSTOM: bool = true;
    }

    #[derive(Debug, PartialEq)]
    enum Either {
        Plain(Arc<Plain>),
        Custom(Arc<Custom>),
    }

    impl From<Arc<Plain>> for Either {
        fn from(value: Arc<Plain>) -> Self {
            Self::Plain(value)
        }
    }

    impl From<Arc<Custom>> for Either {
        fn from(value: Arc<Custom>) -> Self {
            Self::Custom(value)
        }
    }

    const EITHER: &[Candidate<Either>] = &[Candidate::of::<Plain>(), Candidate::of::<Custom>()];

    fn custom(plain: &Arc<Plain>, inner: Option<Arc<Custom>>) -> Arc<Custom> {
        Arc::new(Custom {
            before: Some(Arc::clone(plain)),
            number: 3,
            inner,
            after: Some(Arc::clone(plain)),
        })
    }

    fn written(values: &[Option<Arc<Custom>>], order: ByteOrder) -> Vec<u8> {
        let mut w = Writer::new(Vec::new(), 1 << 20).with_order(order);
        for value in values {
            valuetype::write(value.as_ref(), &mut w).expect("it can be sent");
        }
        w.to_bytes()
    }

    //= GIOP 1.2 §15.3.4
    //% test
    #[test]
    fn a_custom_state_is_in_chunks_between_its_values() {
        let value = Custom {
            before: None,
            number: 3,
            inner: None,
            after: Some(Arc::new(Plain(7))),
        };
        let bytes = written(&[Some(Arc::new(value))], ByteOrder::Little);
        let expected: [&[u8]; 4] = [
            b"\x0a\xff\xff\x7f\x0a\0\0\0IDL:C:1.0\0\0\0",
            b"\x0c\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0",
            b"\x0a\xff\xff\x7f\x0a\0\0\0IDL:P:1.0\0\0\0\x01\0\0\0\x07\0\0\0\xfe\xff\xff\xff",
            b"\xff\xff\xff\xff",
        ];
        assert_eq!(bytes, expected.concat());
    }

    #[test]
    fn values_of_any_candidate_come_back_and_stay_shared() {
        let plain = Arc::new(Plain(9));
        let values = [
            Some(custom(&plain, Some(custom(&plain, None)))),
            None,
            Some(custom(&plain, None)),
        ];
        for order in [ByteOrder::Big, ByteOrder::Little] {
            let mut w = Writer::new(Vec::new(), 1 << 20).with_order(order);
            valuetype::write(Some(&plain), &mut w).unwrap();
            for value in &values {
                valuetype::write(value.as_ref(), &mut w).unwrap();
            }
            let bytes = w.to_bytes();
            let mut r = Reader::new(&bytes, order);
            let Ok(Some(Either::Plain(first))) = read_one_of(EITHER, &mut r) else {
                panic!("the plain value comes first")
            };
            for value in &values {
                let read = read_one_of(EITHER, &mut r).unwrap();
                assert_eq!(read, value.clone().map(Either::Custom));
                if let Some(Either::Custom(read)) = read {
                    let after = read.after.as_ref().unwrap();
                    assert!(Arc::ptr_eq(&first, after));
                }
            }
            assert_eq!(r.remaining(), 0);
            for end in 0..bytes.len() {
                let mut r = Reader::new(&bytes[..end], order);
                let all = [(); 4].map(|()| read_one_of(EITHER, &mut r));
                assert!(all.iter().any(Result::is_err), "{end}");
            }
        }
    }

    #[test]
    fn a_value_of_no_candidate_is_refused_and_a_base_of_it_is_not() {
        let bytes = written(
            &[Some(custom(&Arc::new(Plain(1)), None))],
            ByteOrder::NATIVE,
        );
        let known = [Candidate::of::<Plain>()];
        let read: Result<Option<Either>, _> =
            read_one_of(&known, &mut Reader::new(&bytes, ByteOrder::NATIVE));
        assert_eq!(read, Err(DecodeError::UnknownValue));
        let derived =
            b"\x0e\xff\xff\x7f\x02\0\0\0\x0a\0\0\0IDL:W:1.0\0\0\0\x0a\0\0\0IDL:P:1.0\0\0\0\
            \x01\0\0\0\x07\0\0\0\x04\0\0\0\x0a\0\0\0\xff\xff\xff\xff";
        let read = read_one_of(&known, &mut Reader::new(derived, ByteOrder::Little));
        assert_eq!(read, Ok(Some(Either::Plain(Arc::new(Plain(7))))));
        // Without its repository id, a value is of the expected type, which is abstract.
        let nameless = b"\x00\xff\xff\x7f\x07";
        let read: Result<Option<Either>, _> =
            read_one_of(EITHER, &mut Reader::new(nameless, ByteOrder::Little));
        assert_eq!(read, Err(DecodeError::UnknownValue));
    }

    #[test]
    fn a_list_of_custom_values_is_bounded() {
        let plain = Arc::new(Plain(1));
        let list = |length| (0..length).fold(None, |inner, _| Some(custom(&plain, inner)));
        let bytes = written(&[list(40)], ByteOrder::NATIVE);
        let read = read_one_of(EITHER, &mut Reader::new(&bytes, ByteOrder::NATIVE));
        assert_eq!(read, Ok(list(40).map(Either::Custom)));
        let (long, short) = (list(100), list(1));
        let mut w = Writer::new(Vec::new(), 1 << 20);
        let refused = valuetype::write(long.as_ref(), &mut w);
        assert!(matches!(refused, Err(EncodeError::TooDeep { .. })));
        // The writer goes on after the error.
        w.truncate(0);
        valuetype::write(short.as_ref(), &mut w).unwrap();
        assert_eq!(
            w.to_bytes(),
            written(core::slice::from_ref(&short), ByteOrder::NATIVE)
        );
    }
}
