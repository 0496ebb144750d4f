//! Every decoder, run on arbitrary bytes. None may panic, and a decoded value must encode to the same value.
//!
//! The fuzz targets (`fuzz/`) use it, and so do tests that need no nightly compiler.
#![allow(dead_code, reason = "each user shows octets to some of the decoders")]

use rtorb_wire::cdr::{CharCodeSet, Fixed, LongDouble, ValueHead, ValueStart, WChar, WString};
use rtorb_wire::connection::{ReceiveError, ReceiveLimits, Receiver, Side};
use rtorb_wire::giop::{
    Expiry, Header, LocateReplyHeader, LocateRequestHeader, MessageType, ReplyHeader, ReplyStatus,
    RequestHeader, ServiceContexts, SystemExceptionBody, ThreadContext, UtcOrigin,
    cancelled_requests, contexts, fragments,
};
use rtorb_wire::ior::{
    Component, IiopProfile, Ior, ListenPoint, PolicyValue, ProfileBody, TaggedComponent,
    UiopProfile,
};
use rtorb_wire::url::{Location, ObjectUrl, format_name, parse_name};
use rtorb_wire::valuetype::ValueType;
use rtorb_wire::{
    Any, ByteOrder, Decode, DecodeError, Encode, EncodeError, Reader, TypeCode, Writer,
};
use std::sync::Arc;

/// No message of the tests is longer.
pub(crate) const BYTES_MAX: usize = 1 << 20;

/// One GIOP message: its header, the header of its kind, its contexts, and the exception in it.
pub(crate) fn giop(octets: &[u8]) {
    let Ok(Some(header)) = Header::parse(octets, BYTES_MAX) else {
        return;
    };
    let mut r = header.reader(octets);
    match header.message_type {
        MessageType::Request => {
            if let Ok(request) = RequestHeader::decode(&mut r) {
                let _ = request.target.object_key();
                show_contexts(request.contexts);
            }
        }
        MessageType::Reply => {
            if let Ok(reply) = ReplyHeader::decode(&mut r) {
                show_contexts(reply.contexts);
                match reply.status {
                    ReplyStatus::SystemException => drop(SystemExceptionBody::decode(&mut r)),
                    ReplyStatus::LocationForward => drop(Ior::decode(&mut r)),
                    _ => {}
                }
            }
        }
        MessageType::LocateRequest => drop(LocateRequestHeader::decode(&mut r)),
        MessageType::LocateReply => drop(LocateReplyHeader::decode(&mut r)),
        _ => drop(r.primitive::<u32>()),
    }
}

/// A connection's stream of messages, put together within bounds.
pub(crate) fn stream(octets: &[u8]) {
    cancelled_requests(octets).for_each(drop);
    for side in [Side::Client, Side::Server] {
        let _ = receive(&mut receiver(side), octets, giop);
    }
}

/// A receiver of messages of any size.
pub(crate) fn receiver(side: Side) -> Receiver {
    let limits = ReceiveLimits {
        message_bytes_max: BYTES_MAX,
        fragmented_messages_max: 2,
    };
    Receiver::new(side, limits)
}

/// Receives bytes, and calls `each` with every whole message.
pub(crate) fn receive(
    receiver: &mut Receiver,
    bytes: &[u8],
    mut each: impl FnMut(&[u8]),
) -> Result<(), ReceiveError> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let free = receiver.free();
        let count = free.len().min(rest.len());
        free[..count].copy_from_slice(&rest[..count]);
        receiver.advance(count);
        rest = &rest[count..];
        while let Some(message) = receiver.next()? {
            each(message.bytes);
        }
    }
    Ok(())
}

/// A whole message, taken apart and put together again.
pub(crate) fn parts(octets: &[u8]) {
    let Ok(Some(header)) = Header::parse(octets, BYTES_MAX) else {
        return;
    };
    // Reserved flags are not kept.
    if header.message_bytes() != octets.len() || octets[6] > 1 {
        return;
    }
    let side = match header.message_type {
        MessageType::Request | MessageType::LocateRequest => Side::Server,
        MessageType::Reply | MessageType::LocateReply => Side::Client,
        _ => return,
    };
    let mut receiver = receiver(side);
    let mut whole = None;
    for part in fragments(octets, 64) {
        receive(&mut receiver, &part, |message| {
            whole = Some(message.to_vec())
        })
        .expect("a part of ours fits");
    }
    assert_eq!(whole.as_deref(), Some(octets), "the parts make the message");
}

/// A reference as it travels, its profiles, and its text.
pub(crate) fn reference(octets: &[u8]) {
    let Ok(ior) = Reader::encapsulated(octets).and_then(|mut r| Ior::decode(&mut r)) else {
        return;
    };
    let text = ior.to_string();
    assert_eq!(
        Ior::parse(&text).as_ref(),
        Ok(&ior),
        "a reference comes back from its text"
    );
    for profile in &ior.profiles {
        let _ = ProfileBody::from_tagged(profile);
        if let Ok(iiop) = IiopProfile::from_tagged(profile) {
            let again = iiop.to_tagged().expect("what was read can be written");
            assert_eq!(IiopProfile::from_tagged(&again).as_ref(), Ok(&iiop));
            iiop.components.iter().for_each(component);
        }
        if let Ok(uiop) = UiopProfile::from_tagged(profile) {
            let again = uiop.to_tagged().expect("what was read can be written");
            assert_eq!(UiopProfile::from_tagged(&again).as_ref(), Ok(&uiop));
        }
    }
}

/// A tagged component.
fn component(tagged: &TaggedComponent) {
    let _ = tagged.describe();
    if let Ok(component) = Component::from_tagged(tagged) {
        let again = component.to_tagged().expect("what was read can be written");
        assert_eq!(Component::from_tagged(&again).as_ref(), Ok(&component));
    }
    if let Ok(component) = Component::from_uiop_tagged(tagged) {
        let again = component.to_tagged().expect("what was read can be written");
        assert_eq!(Component::from_uiop_tagged(&again).as_ref(), Ok(&component));
    }
}

/// The text of a reference, or of a name.
pub(crate) fn text(octets: &[u8]) {
    let Ok(text) = core::str::from_utf8(octets) else {
        return;
    };
    if let Ok(ior) = Ior::parse(text) {
        assert_eq!(Ior::parse(&ior.to_string()), Ok(ior));
    }
    if let Ok(ObjectUrl::Corbaloc(Location::Addresses(corbaloc))) = ObjectUrl::parse(text) {
        let again = ObjectUrl::parse(&corbaloc.to_string());
        assert_eq!(
            again,
            Ok(ObjectUrl::Corbaloc(Location::Addresses(corbaloc)))
        );
    }
    if let Ok(name) = parse_name(text) {
        assert_eq!(parse_name(&format_name(&name)), Ok(name));
    }
}

/// A TypeCode, and an any: the first octet says in which byte order, version and code set.
pub(crate) fn any(octets: &[u8]) {
    let Some((&how, octets)) = octets.split_first() else {
        return;
    };
    let r = reader(how, octets);
    comes_back::<TypeCode>(octets, &r);
    comes_back::<Any>(octets, &r);
    let Ok(any) = Any::decode(&mut reader(how, octets)) else {
        return;
    };
    let _ = format!("{any:?}");
    if let Ok(value) = any.value() {
        let again = Any::from_parts(any.type_code().clone(), &value).expect("its own value");
        let again = again.value().expect("as deep as before");
        // Not by `==`: a NaN is not equal to itself.
        assert_eq!(format!("{again:?}"), format!("{value:?}"));
    }
}

/// Values: the first octet says in which byte order, version and code set the others are.
pub(crate) fn values(octets: &[u8]) {
    let Some((&how, octets)) = octets.split_first() else {
        return;
    };
    value_tags(reader(how, octets));
    let r = reader(how, octets);
    comes_back::<String>(octets, &r);
    comes_back::<WString>(octets, &r);
    comes_back::<WChar>(octets, &r);
    comes_back::<char>(octets, &r);
    comes_back::<bool>(octets, &r);
    comes_back::<Vec<u8>>(octets, &r);
    comes_back::<Vec<i16>>(octets, &r);
    comes_back::<Vec<i64>>(octets, &r);
    comes_back::<Vec<bool>>(octets, &r);
    comes_back::<Vec<String>>(octets, &r);
    comes_back::<Vec<Vec<u32>>>(octets, &r);
    comes_back::<Fixed<5, 2>>(octets, &r);
    comes_back::<Fixed<31, 0>>(octets, &r);
    comes_back::<LongDouble>(octets, &r);
    comes_back::<Vec<Option<Arc<Link>>>>(octets, &r);
}

/// A valuetype that holds another of its type.
#[derive(Debug, PartialEq)]
struct Link {
    number: u16,
    next: Option<Arc<Link>>,
}

impl Encode for Link {
    fn encode<'a>(&'a self, w: &mut Writer<'a>) -> Result<(), EncodeError> {
        self.number.encode(w)?;
        self.next.encode(w)
    }
}

impl Decode for Link {
    const BYTES_MIN: usize = 6;

    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            number: Decode::decode(r)?,
            next: Decode::decode(r)?,
        })
    }
}

impl ValueType for Link {
    const REPOSITORY_ID: &'static str = "IDL:L:1.0";
}

/// Heads of valuetypes and their chunks, as far as they go.
fn value_tags(mut r: Reader<'_>) {
    while let Ok(head) = r.value_head() {
        if let ValueHead::Value(ValueStart { chunked: true, .. }) = head
            && r.skip_chunks(1).is_err()
        {
            return;
        }
    }
}

fn reader(how: u8, octets: &[u8]) -> Reader<'_> {
    let set = match how & 18 {
        0 => CharCodeSet::Latin1,
        16 => CharCodeSet::Latin9,
        _ => CharCodeSet::Utf8,
    };
    Reader::new(octets, ByteOrder::from_flag(how))
        .with_giop_minor(how >> 2 & 3)
        .with_char_code_set(set)
}

/// What was read can be written, and is then read as the same.
fn comes_back<T: Decode + Encode + PartialEq + core::fmt::Debug>(
    octets: &[u8],
    as_in: &Reader<'_>,
) {
    let reader = |octets| {
        let r = Reader::new(octets, as_in.order()).with_giop_minor(as_in.giop_minor());
        r.with_char_code_set(as_in.char_code_set())
    };
    let Ok(value) = T::decode(&mut reader(octets)) else {
        return;
    };
    let mut w = Writer::new(Vec::new(), 4 * BYTES_MAX)
        .with_order(as_in.order())
        .with_giop_minor(as_in.giop_minor())
        .with_char_code_set(as_in.char_code_set());
    value.encode(&mut w).expect("what was read can be written");
    let written = w.to_bytes();
    drop(w);
    assert_eq!(T::decode(&mut reader(&written)), Ok(value));
}

fn show_contexts(list: ServiceContexts<'_>) {
    let origin = UtcOrigin {
        earliest_ticks: 5,
        latest_ticks: 5,
    };
    let _ = Expiry::of(list).end.map(|end| end.latest_ns_after(origin));
    for context in list {
        let data = context.data;
        let _ = contexts::decode_priority(data);
        let _ = contexts::decode_priority_range(data);
        let _ = contexts::CodeSets::from_data(data);
        let _ = contexts::from_data::<Vec<ListenPoint>>(data);
        let _ = contexts::from_data::<Vec<PolicyValue>>(data);
        let _ = contexts::from_data::<WString>(data);
        if let Ok(read) = ThreadContext::read(data) {
            let mut written = Vec::new();
            read.write(&mut written, ByteOrder::NATIVE)
                .expect("it was read");
            assert_eq!(ThreadContext::read(&written), Ok(read));
        }
    }
}
