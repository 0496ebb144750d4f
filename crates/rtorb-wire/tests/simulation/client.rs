//! The driver of a client's end: a connection that many calls share.

use rtorb_wire::Writer;
use rtorb_wire::cdr::ByteOrder;
use rtorb_wire::connection::{
    ClientState, Outbox, Pending, ReceiveLimits, Receiver, Reply, ReplyError, Side,
};
use rtorb_wire::exception::CompletionStatus;
use rtorb_wire::giop::{self, MessageType, ReplyStatus, RequestStart, Response, Version};

use crate::calls::{Calls, Outcome, filler};
use crate::link::{Link, PIPE, RESET, Received};
use crate::random::Random;

/// How an end of a connection sends.
#[derive(Clone, Copy)]
pub(crate) struct Format {
    pub(crate) version: Version,
    pub(crate) order: ByteOrder,
    pub(crate) fragment_bytes: Option<usize>,
}

impl Format {
    pub(crate) fn writer(self) -> Writer<'static> {
        Writer::new(Vec::new(), MESSAGE_BYTES_MAX).with_order(self.order)
    }

    pub(crate) fn keep(self, message: &Writer<'_>, outbox: &mut Outbox) -> bool {
        match self.fragment_bytes {
            Some(bytes) => outbox.keep_fragments(message, bytes).is_ok(),
            None => outbox.keep(message, 0).is_ok(),
        }
    }
}

pub(crate) const MESSAGE_BYTES_MAX: usize = 64 << 10;
pub(crate) const LIMITS: ReceiveLimits = ReceiveLimits {
    message_bytes_max: MESSAGE_BYTES_MAX,
    fragmented_messages_max: 4,
};
/// What an outbox may hold.
pub(crate) const OUTBOX_BYTES_MAX: usize = 4 * MESSAGE_BYTES_MAX;

pub(crate) struct Client {
    state: ClientState,
    receiver: Receiver,
    outbox: Outbox,
    pending: Pending<Waiting>,
    /// The request whose bytes are not all sent.
    sending: Option<Sending>,
    format: Format,
    pub(crate) is_ended: bool,
}

#[derive(Clone, Copy)]
struct Waiting {
    call: usize,
    request_id: u32,
}

struct Sending {
    call: usize,
    request_id: u32,
    sent: usize,
    bytes: usize,
}

/// What a step of the client needs of the run.
pub(crate) struct Run<'a> {
    pub(crate) calls: &'a mut Calls,
    pub(crate) random: &'a mut Random,
    pub(crate) link: &'a mut Link,
    /// Calls that go again on another connection.
    pub(crate) again: &'a mut Vec<usize>,
    pub(crate) now_ns: u64,
}

impl Client {
    pub(crate) fn new(format: Format) -> Self {
        Self {
            state: ClientState::new(),
            receiver: Receiver::new(Side::Client, LIMITS),
            outbox: Outbox::new(OUTBOX_BYTES_MAX),
            pending: Pending::default(),
            sending: None,
            format,
            is_ended: false,
        }
    }

    /// True if a request can begin.
    pub(crate) fn is_ready(&self) -> bool {
        self.pending.is_open() && self.outbox.is_empty()
    }

    /// True while requests may begin, now or later.
    pub(crate) fn takes_requests(&self) -> bool {
        self.pending.is_open()
    }

    pub(crate) fn begin(&mut self, number: usize, calls: &Calls) {
        let call = &calls.calls[number];
        let request_id = self.state.next_request_id();
        let mut w = self.format.writer();
        let start = RequestStart {
            request_id,
            response: if call.is_oneway {
                Response::None
            } else {
                Response::FromTarget
            },
            object_key: b"key",
            operation: "op",
            contexts: &[],
        };
        giop::begin_request(&mut w, self.format.version, &start).expect("it fits");
        write_body(&mut w, self.format.version, number, call.body_bytes);
        assert!(
            self.format.keep(&w, &mut self.outbox),
            "a message fits into an empty outbox"
        );
        self.sending = Some(Sending {
            call: number,
            request_id,
            sent: 0,
            bytes: self.outbox.len(),
        });
        if !call.is_oneway {
            let waiting = Waiting {
                call: number,
                request_id,
            };
            assert!(self.pending.insert(request_id, waiting));
        }
    }

    pub(crate) fn send(&mut self, run: &mut Run<'_>) {
        if self.is_ended || self.outbox.is_empty() {
            return;
        }
        match run
            .link
            .to_server
            .send(self.outbox.unsent(), run.now_ns, run.random)
        {
            Ok(count) => {
                self.outbox.advance(count);
                let Some(sending) = &mut self.sending else {
                    return;
                };
                sending.sent += count;
                if sending.sent >= sending.bytes {
                    let call = sending.call;
                    self.sending = None;
                    if run.calls.calls[call].is_oneway {
                        run.calls.end(call, Outcome::Done, run.now_ns);
                    }
                }
            }
            Err(os_error) => self.fail(ReplyError::Failed { os_error }, run),
        }
    }

    pub(crate) fn receive(&mut self, run: &mut Run<'_>) {
        if self.is_ended {
            return;
        }
        match run
            .link
            .to_client
            .receive(self.receiver.free(), run.now_ns, run.random)
        {
            Received::Bytes(count) => {
                self.receiver.advance(count);
                self.read(run);
            }
            Received::Nothing => {}
            Received::End => self.fail(ReplyError::Ended, run),
            Received::Reset => self.fail(ReplyError::Failed { os_error: RESET }, run),
        }
        let free = self.receiver.free().len();
        assert!(
            free <= 2 * MESSAGE_BYTES_MAX,
            "the buffer stays within its limit"
        );
    }

    fn read(&mut self, run: &mut Run<'_>) {
        loop {
            let message = match self.receiver.next() {
                Ok(Some(message)) => message,
                Ok(None) => return,
                Err(error) => return self.fail(error.into(), run),
            };
            let kind = message.header.message_type;
            let request_id = Reply::request_id(kind, &mut message.reader()).expect("a reply");
            // The reply to a call that gave up is for nobody.
            let Some(waiting) = self.pending.remove(request_id) else {
                continue;
            };
            self.state.note_reply(kind);
            let mut r = message.reader();
            let reply = Reply::decode(kind, &mut r, request_id).expect("a reply");
            let outcome = match reply.expect("it is for that request") {
                Reply::Results(ReplyStatus::NoException) => {
                    let number: u32 = r.primitive().expect("a number");
                    assert_eq!(
                        number as usize, waiting.call,
                        "a reply reached another request"
                    );
                    let body = r.octets().expect("a body");
                    let call = &run.calls.calls[waiting.call];
                    assert_eq!(body.len(), call.body_bytes);
                    assert!(body.iter().all(|&byte| byte == filler(waiting.call)));
                    Outcome::Done
                }
                Reply::SystemException(body) => {
                    assert_eq!(
                        body.minor as usize, waiting.call,
                        "an exception reached another request"
                    );
                    Outcome::Exception(CompletionStatus::from_number(body.completed))
                }
                other => panic!("no server here sends {other:?}"),
            };
            run.calls.end(waiting.call, outcome, run.now_ns);
        }
    }

    /// Ends calls whose deadline is now.
    pub(crate) fn give_up(&mut self, run: &mut Run<'_>) {
        if let Some(sending) = &self.sending
            && run.calls.calls[sending.call].deadline.at_ns() == Some(run.now_ns)
        {
            let (call, request_id) = (sending.call, sending.request_id);
            let error = if sending.sent == 0 {
                ReplyError::NotSent
            } else {
                ReplyError::SendTimedOut
            };
            self.sending = None;
            self.pending.remove(request_id);
            run.calls.end(call, Outcome::Failed(error), run.now_ns);
            if error == ReplyError::NotSent {
                self.outbox = Outbox::new(OUTBOX_BYTES_MAX);
            } else {
                // Half a request leaves the connection without use.
                run.link.reset();
                self.fail(ReplyError::Ended, run);
            }
        }
        let late: Vec<Waiting> = self.pending.iter().copied().collect();
        for Waiting { call, request_id } in late {
            if run.calls.calls[call].deadline.at_ns() != Some(run.now_ns) {
                continue;
            }
            self.pending.remove(request_id);
            run.calls
                .end(call, Outcome::Failed(ReplyError::TimedOut), run.now_ns);
            if run.random.one_in(2) {
                let mut w = self.format.writer();
                giop::write_cancel_request(&mut w, self.format.version, request_id)
                    .expect("it fits");
                // A connection that takes nothing needs no cancel request.
                let _ = self.outbox.keep(&w, 0);
            }
        }
        assert!(self.outbox.len() <= OUTBOX_BYTES_MAX);
    }

    /// Sends no more requests; those that wait get their replies.
    pub(crate) fn half_close(&mut self, run: &mut Run<'_>) {
        if self.is_ready() {
            self.pending.retire();
            run.link.to_server.finish();
        }
    }

    /// The connection ended: every request on it gets an outcome or goes again.
    pub(crate) fn fail(&mut self, error: ReplyError, run: &mut Run<'_>) {
        self.is_ended = true;
        let of_sending = |sent: usize| match error {
            ReplyError::Closed if sent == 0 => ReplyError::ClosedBefore,
            ReplyError::Closed => ReplyError::Closed,
            ReplyError::Failed { os_error } => self.state.send_failed(os_error),
            _ => self.state.send_failed(PIPE),
        };
        let sending = self.sending.take().map(|it| (it.call, of_sending(it.sent)));
        let mut failed: Vec<(usize, ReplyError)> = Vec::new();
        for waiting in self.pending.end(error) {
            if sending.is_none_or(|it| it.0 != waiting.call) {
                failed.push((waiting.call, error));
            }
        }
        for (number, error) in failed.into_iter().chain(sending) {
            let call = &mut run.calls.calls[number];
            if error.is_stale() && !call.is_retried {
                call.is_retried = true;
                run.again.push(number);
            } else {
                run.calls.end(number, Outcome::Failed(error), run.now_ns);
            }
        }
        self.outbox = Outbox::new(OUTBOX_BYTES_MAX);
        // The client closes its socket.
        run.link.reset();
    }
}

pub(crate) fn write_body(w: &mut Writer<'_>, version: Version, number: usize, bytes: usize) {
    let body = vec![filler(number); bytes];
    giop::encode_body(w, version, |w| {
        w.primitive(number as u32)?;
        w.count(bytes)?;
        w.octets(&body)
    })
    .expect("it fits");
    giop::end_message(w).expect("it fits");
}

/// The message type of each message that a server gets here.
pub(crate) const REQUESTS: [MessageType; 2] = [MessageType::Request, MessageType::CancelRequest];
