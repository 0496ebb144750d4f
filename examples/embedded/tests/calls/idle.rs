//! Servers whose link times out, and contexts that no client of this crate sends.

use super::link::MESSAGE_BYTES_MAX;
use rtorb_embedded::wire::code_sets::{UTF_8, UTF_16};
use rtorb_embedded::wire::connection::ReceiveError;
use rtorb_embedded::wire::giop::contexts::{self, CodeSets};
use rtorb_embedded::wire::giop::{
    self, Header, ReplyHeader, ReplyStatus, RequestStart, Response, ServiceContext, Version,
};
use rtorb_embedded::wire::{Reader, Writer};
use rtorb_embedded::{
    Clock, Ended, FixedPriority, Link, LinkError, Object, Server, SystemException, Tie,
};
use rtorb_embedded_cubit::exchange::{Party, PartyServant};
use rtorb_embedded_cubit::periods::{Beat, BeatServant};
use std::collections::VecDeque;

/// A link that receives what a test says, and keeps what is sent.
#[derive(Default)]
struct Scripted {
    /// What [`receive`](Link::receive) gives; `None` is a timeout.
    steps: VecDeque<Option<Vec<u8>>>,
    sent: Vec<u8>,
}

impl Link for Scripted {
    fn send(&mut self, bytes: &[u8]) -> Result<(), LinkError> {
        self.sent.extend_from_slice(bytes);
        Ok(())
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<usize, LinkError> {
        match self.steps.pop_front() {
            Some(Some(bytes)) => {
                into[..bytes.len()].copy_from_slice(&bytes);
                Ok(bytes.len())
            }
            Some(None) => Err(LinkError::TimedOut),
            None => Ok(0),
        }
    }
}

const KEY: &[u8] = b"party";

/// Not in ISO 8859-1.
const NAME: &str = "\u{17b}aneta";

struct Guest;

impl PartyServant for Guest {
    fn name(&self) -> Result<String, SystemException> {
        Ok(NAME.to_owned())
    }

    fn level(&self) -> Result<i32, SystemException> {
        Ok(7)
    }

    fn set_level(&self, _value: i32) -> Result<(), SystemException> {
        Ok(())
    }
}

impl BeatServant for Guest {
    fn tick(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn tock(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn rest(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

fn request(operation: &str, context: Option<(u32, &[u8])>) -> Vec<u8> {
    let context = context.map(|(id, data)| ServiceContext { id, data });
    let start = RequestStart {
        request_id: 2,
        response: Response::FromTarget,
        object_key: KEY,
        operation,
        contexts: context.as_slice(),
    };
    let mut w = Writer::new(Vec::new(), MESSAGE_BYTES_MAX);
    giop::begin_request(&mut w, Version::V1_2, &start).unwrap();
    giop::end_message(&mut w).unwrap();
    w.to_bytes()
}

/// The reply to the last request, and a reader of its body.
fn reply(sent: &[u8]) -> (ReplyHeader<'_>, Reader<'_>) {
    let header = Header::parse(sent, MESSAGE_BYTES_MAX).unwrap().unwrap();
    assert_eq!(header.message_bytes(), sent.len());
    let mut r = header.reader(sent);
    (ReplyHeader::decode(&mut r).unwrap(), r)
}

#[test]
fn a_connection_goes_on_after_a_timeout_with_its_code_sets() {
    let servant = Tie::<Party, _>::new(Guest);
    let objects = [Object {
        key: KEY,
        servant: &servant,
    }];
    let sets = CodeSets {
        char_data: UTF_8,
        wchar_data: UTF_16,
    };
    let named = request(
        "_get_level",
        Some((contexts::CODE_SETS, &sets.to_data()[..])),
    );
    let second = request("_get_name", None);
    // In a header, behind it, and before the end.
    for part in [5, 12, second.len() - 1] {
        let (first_part, rest) = second.split_at(part);
        let mut link = Scripted::default();
        link.steps.extend([
            Some(named.clone()),
            None,
            Some(first_part.to_vec()),
            None,
            Some(rest.to_vec()),
        ]);
        let mut server = Server::new(&objects, MESSAGE_BYTES_MAX);
        let mut serve = |link: &mut Scripted| server.serve_next(link, &mut FixedPriority);
        let timed_out = Err(Ended::Link(LinkError::TimedOut));
        assert_eq!(serve(&mut link), Ok(()));
        assert_eq!(serve(&mut link), timed_out);
        link.sent.clear();
        assert_eq!(serve(&mut link), timed_out);
        assert_eq!(serve(&mut link), Ok(()), "{part} bytes came in time");
        let (header, mut body) = reply(&link.sent);
        assert_eq!(header.status, ReplyStatus::NoException);
        assert_eq!(body.string_bytes(), Ok(NAME.as_bytes()));
        assert_eq!(serve(&mut link), Err(Ended::Closed));
    }
}

#[test]
fn only_the_priority_of_a_context_is_sent_back() {
    let servant = Tie::<Party, _>::new(Guest);
    let objects = [Object {
        key: KEY,
        servant: &servant,
    }];
    let bytes_max = 4096;
    let asking = |data: &[u8]| request("_get_level", Some((contexts::RT_CORBA_PRIORITY, data)));
    let mut data = vec![0; bytes_max - asking(&[]).len()];
    data[..contexts::PRIORITY_BYTES].copy_from_slice(&contexts::priority(5));
    let mut link = Scripted::default();
    link.steps.push_back(Some(asking(&data)));
    let mut server = Server::new(&objects, bytes_max);
    assert_eq!(server.serve_next(&mut link, &mut FixedPriority), Ok(()));
    let (header, mut body) = reply(&link.sent);
    assert_eq!(header.status, ReplyStatus::NoException);
    let sent_back = header.contexts.find(contexts::RT_CORBA_PRIORITY);
    assert_eq!(sent_back, Some(&contexts::priority(5)[..]));
    assert_eq!(body.primitive::<i32>(), Ok(7));
}

/// A clock that stands still.
struct Midnight;

impl Clock for Midnight {
    fn now_ns(&self) -> u64 {
        0
    }
}

#[test]
fn a_call_with_a_malformed_priority_does_not_count_for_its_period() {
    let servant = Tie::<Beat, _>::new(Guest);
    let objects = [Object {
        key: KEY,
        servant: &servant,
    }];
    let server = Server::new(&objects, MESSAGE_BYTES_MAX);
    let mut server = server.enforce_periods(&Midnight).unwrap();
    let mut status = |context: Option<&[u8]>| {
        let context = context.map(|data| (contexts::RT_CORBA_PRIORITY, data));
        let mut link = Scripted::default();
        link.steps.push_back(Some(request("tick", context)));
        assert_eq!(server.serve_next(&mut link, &mut FixedPriority), Ok(()));
        reply(&link.sent).0.status
    };
    assert_eq!(status(Some(&[9])), ReplyStatus::SystemException);
    let negative = contexts::priority(-1);
    assert_eq!(status(Some(&negative)), ReplyStatus::SystemException);
    assert_eq!(status(None), ReplyStatus::NoException);
    assert_eq!(status(None), ReplyStatus::SystemException, "too soon");
}

#[test]
fn message_error_has_no_answer() {
    let mut error = Writer::new(Vec::new(), MESSAGE_BYTES_MAX);
    giop::write_message_error(&mut error, Version::V1_2).unwrap();
    let mut link = Scripted::default();
    link.steps.push_back(Some(error.to_bytes()));
    let mut server = Server::new(&[], MESSAGE_BYTES_MAX);
    let ended = server.serve_next(&mut link, &mut FixedPriority);
    assert_eq!(ended, Err(Ended::Refused(ReceiveError::MessageError)));
    assert_eq!(link.sent, []);
}
