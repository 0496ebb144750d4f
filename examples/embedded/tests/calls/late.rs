//! Replies that come after the time of their call.

use super::link::{MESSAGE_BYTES_MAX, client_of};
use rtorb_embedded::{
    ExceptionKind, FixedPriority, Link, LinkError, Object, ObjectRef, Server, SystemException, Tie,
};
use rtorb_embedded_cubit::exchange::{Party, PartyServant};

/// A link to a server that answers at once. The first reply comes in two parts, with a timeout between them.
#[derive(Default)]
struct Halting {
    requests: Vec<u8>,
    replies: Vec<u8>,
    /// What [`receive`](Link::receive) does next; it delivers all there is once this is empty.
    steps: Vec<Step>,
    /// The number of requests that it still takes before it breaks once; it loses what it has then.
    until_broken: Option<usize>,
}

enum Step {
    Deliver(usize),
    TimeOut,
}

/// The server's end.
struct Served<'l>(&'l mut Halting);

struct Seven;

const KEY: &[u8] = b"party";

impl PartyServant for Seven {
    fn name(&self) -> Result<String, SystemException> {
        Ok("a name that is longer than half a header".to_owned())
    }

    fn level(&self) -> Result<i32, SystemException> {
        Ok(7)
    }

    fn set_level(&self, _value: i32) -> Result<(), SystemException> {
        Ok(())
    }
}

impl Link for Served<'_> {
    fn send(&mut self, bytes: &[u8]) -> Result<(), LinkError> {
        self.0.replies.extend_from_slice(bytes);
        Ok(())
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<usize, LinkError> {
        Ok(take(&mut self.0.requests, into, usize::MAX))
    }
}

impl Link for Halting {
    fn send(&mut self, bytes: &[u8]) -> Result<(), LinkError> {
        self.until_broken = match self.until_broken {
            Some(0) => {
                self.until_broken = None;
                self.replies.clear();
                return Err(LinkError::Broken);
            }
            left => left.map(|left| left - 1),
        };
        self.requests.extend_from_slice(bytes);
        Ok(())
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<usize, LinkError> {
        if !self.requests.is_empty() {
            let servant = Tie::<Party, _>::new(Seven);
            let objects = [Object {
                key: KEY,
                servant: &servant,
            }];
            let mut server = Server::new(&objects, MESSAGE_BYTES_MAX);
            let served = server.serve_next(&mut Served(self), &mut FixedPriority);
            served.map_err(|_| LinkError::Broken)?;
        }
        match self.steps.pop() {
            Some(Step::TimeOut) => Err(LinkError::TimedOut),
            Some(Step::Deliver(most)) => Ok(take(&mut self.replies, into, most)),
            None => Ok(take(&mut self.replies, into, usize::MAX)),
        }
    }
}

fn take(from: &mut Vec<u8>, into: &mut [u8], most: usize) -> usize {
    let count = from.len().min(into.len()).min(most);
    for (to, byte) in into.iter_mut().zip(from.drain(..count)) {
        *to = byte;
    }
    count
}

#[test]
fn a_timeout_amid_a_reply_costs_one_call() {
    // In a header, behind it, and in the body.
    for part in [5, 12, 30] {
        let link = Halting {
            steps: vec![Step::TimeOut, Step::Deliver(part)],
            ..Halting::default()
        };
        let object = ObjectRef::new(client_of(link), "IDL:Exchange/Party:1.0", KEY);
        let party = Party::unchecked_narrow(object);
        let late = party.name().unwrap_err();
        assert_eq!(late.kind, ExceptionKind::Timeout);
        assert_eq!(party.level(), Ok(7), "{part} bytes came in time");
    }
}

#[test]
fn a_link_that_breaks_before_a_request_loses_the_rest_of_the_reply_before() {
    let link = Halting {
        steps: vec![Step::TimeOut, Step::Deliver(30)],
        until_broken: Some(1),
        ..Halting::default()
    };
    let object = ObjectRef::new(client_of(link), "IDL:Exchange/Party:1.0", KEY);
    let party = Party::unchecked_narrow(object);
    assert_eq!(party.name().unwrap_err().kind, ExceptionKind::Timeout);
    assert_eq!(party.level().unwrap_err().kind, ExceptionKind::CommFailure);
    assert_eq!(party.level(), Ok(7));
}
