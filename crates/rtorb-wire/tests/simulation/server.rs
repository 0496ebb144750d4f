//! The driver of a server's end: requests wait in a bounded queue, and run one or several at a time.

use rtorb_wire::Writer;
use rtorb_wire::connection::{Outbox, Receiver, Side};
use rtorb_wire::giop::{
    self, MessageType, ReplyStatus, RequestHeader, Response, SystemExceptionBody, Version,
};

use crate::calls::{Calls, filler};
use crate::client::{
    Format, LIMITS, MESSAGE_BYTES_MAX, OUTBOX_BYTES_MAX, REQUESTS, Run, write_body,
};
use crate::link::Received;

pub(crate) struct Server {
    receiver: Receiver,
    outbox: Outbox,
    /// Requests read and not begun.
    waiting: Vec<Request>,
    running: Vec<Running>,
    format: Format,
    /// True once it takes no more requests and ends in an orderly way.
    is_closing: bool,
    pub(crate) is_ended: bool,
}

struct Request {
    request_id: u32,
    call: usize,
    expects_reply: bool,
    version: Version,
}

struct Running {
    request: Request,
    end_ns: u64,
}

/// Requests that are read at most before one begins.
const WAITING_MAX: usize = 4;

impl Server {
    pub(crate) fn new(format: Format) -> Self {
        Self {
            receiver: Receiver::new(Side::Server, LIMITS),
            outbox: Outbox::new(OUTBOX_BYTES_MAX),
            waiting: Vec::new(),
            running: Vec::new(),
            format,
            is_closing: false,
            is_ended: false,
        }
    }

    pub(crate) fn receive(&mut self, run: &mut Run<'_>) {
        if self.is_ended || self.is_closing || self.waiting.len() >= WAITING_MAX {
            return;
        }
        match run
            .link
            .to_server
            .receive(self.receiver.free(), run.now_ns, run.random)
        {
            Received::Bytes(count) => self.receiver.advance(count),
            Received::Nothing => {}
            // What was read is served, as a server with a queue does.
            Received::End if self.is_idle() => self.end(run),
            Received::End => {}
            Received::Reset => return self.end(run),
        }
        self.read(run.calls);
        let free = self.receiver.free().len();
        assert!(
            free <= 2 * MESSAGE_BYTES_MAX,
            "the buffer stays within its limit"
        );
    }

    fn read(&mut self, calls: &Calls) {
        while self.waiting.len() < WAITING_MAX {
            let message = self
                .receiver
                .next()
                .expect("the client sends what is right");
            let Some(message) = message else { return };
            let kind = message.header.message_type;
            assert!(REQUESTS.contains(&kind));
            let mut r = message.reader();
            if kind == MessageType::CancelRequest {
                let request_id: u32 = r.primitive().expect("an id");
                self.waiting
                    .retain(|request| request.request_id != request_id);
                continue;
            }
            let header = RequestHeader::decode(&mut r).expect("a request");
            let number: u32 = r.primitive().expect("a number");
            let call = number as usize;
            let body = r.octets().expect("a body");
            assert_eq!(body.len(), calls.calls[call].body_bytes);
            assert!(body.iter().all(|&byte| byte == filler(call)));
            self.waiting.push(Request {
                request_id: header.request_id,
                call,
                expects_reply: header.response != Response::None,
                version: message.header.version,
            });
        }
    }

    /// Begins the oldest request, or refuses it.
    pub(crate) fn begin(&mut self, run: &mut Run<'_>) {
        if self.waiting.is_empty() || self.is_closing {
            return;
        }
        let request = self.waiting.remove(0);
        if request.expects_reply && run.random.one_in(10) {
            self.refuse(&request, run, 1);
            return;
        }
        run.calls.execute(request.call);
        let end_ns = run.now_ns + run.random.below(2_000_000) as u64;
        self.running.push(Running { request, end_ns });
        self.read(run.calls);
    }

    /// Replies to requests that have ended.
    pub(crate) fn reply(&mut self, run: &mut Run<'_>) {
        let due = self.running.iter().position(|it| it.end_ns <= run.now_ns);
        let Some(due) = due else { return };
        let Running { request, .. } = self.running.swap_remove(due);
        if !request.expects_reply || self.is_ended {
            return;
        }
        if run.random.one_in(10) {
            let completed = if run.random.one_in(2) { 0 } else { 2 };
            return self.refuse(&request, run, completed);
        }
        let mut w = self.format.writer();
        let status = ReplyStatus::NoException;
        giop::begin_reply(&mut w, request.version, request.request_id, status, &[])
            .expect("it fits");
        let bytes = run.calls.calls[request.call].body_bytes;
        write_body(&mut w, request.version, request.call, bytes);
        self.keep(&w, run);
    }

    /// Replies with a system exception.
    fn refuse(&mut self, request: &Request, run: &mut Run<'_>, completed: u32) {
        let mut w = self.format.writer();
        let status = ReplyStatus::SystemException;
        giop::begin_reply(&mut w, request.version, request.request_id, status, &[])
            .expect("it fits");
        let body = SystemExceptionBody {
            repository_id: b"IDL:omg.org/CORBA/TRANSIENT:1.0",
            minor: request.call as u32,
            completed,
        };
        giop::encode_body(&mut w, request.version, |w| body.encode(w)).expect("it fits");
        giop::end_message(&mut w).expect("it fits");
        self.keep(&w, run);
    }

    /// A client that does not read loses its connection when the outbox is full.
    fn keep(&mut self, message: &Writer<'_>, run: &mut Run<'_>) {
        if !self.format.keep(message, &mut self.outbox) {
            run.link.reset();
            self.end(run);
        }
        assert!(self.outbox.len() <= OUTBOX_BYTES_MAX);
    }

    pub(crate) fn send(&mut self, run: &mut Run<'_>) {
        if self.is_ended {
            return;
        }
        if !self.outbox.is_empty() {
            match run
                .link
                .to_client
                .send(self.outbox.unsent(), run.now_ns, run.random)
            {
                Ok(count) => self.outbox.advance(count),
                Err(_) => self.end(run),
            }
        } else if self.is_closing && self.running.is_empty() {
            run.link.to_client.finish();
            self.is_ended = true;
        }
    }

    /// Takes no more requests. CloseConnection follows the replies to those that run.
    pub(crate) fn close(&mut self) {
        if self.is_ended || self.is_closing || !self.running.is_empty() {
            return;
        }
        //= GIOP 1.2 §15.4.7
        //% test
        self.waiting.clear();
        self.is_closing = true;
        let mut w = self.format.writer();
        giop::write_close_connection(&mut w, self.format.version).expect("it fits");
        assert!(
            self.outbox.keep(&w, 0).is_ok(),
            "there is room for CloseConnection"
        );
    }

    /// Ends without CloseConnection; replies that are not sent are lost.
    pub(crate) fn half_close(&mut self, run: &mut Run<'_>) {
        if !self.is_ended && !self.is_closing {
            run.link.to_client.finish();
            self.end(run);
        }
    }

    fn end(&mut self, run: &mut Run<'_>) {
        // What was read may be carried out or not: the client cannot know.
        if run.random.one_in(2) {
            self.waiting.clear();
        }
        self.is_ended = true;
    }

    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.running.is_empty() && self.outbox.is_empty()
    }

    pub(crate) fn next_end(&self) -> Option<u64> {
        self.running.iter().map(|it| it.end_ns).min()
    }
}
