//! The receive buffer of one connection, and the whole messages in it.

use super::reassembly::{Accepted, Reassembly};
use super::server_connection::ServerConnection;
use crate::giop::{Header, MessageType};
use crate::{DecodeError, Reader};
use alloc::vec;
use alloc::vec::Vec;

/// Turns received bytes into whole messages: framing, fragments, limits. Client and server use it.
///
/// A driver receives into [`free`](Self::free), reports that by [`advance`](Self::advance), and asks for the
/// [`next`](Self::next) message until there is none. A message that came whole is borrowed from the buffer. It lies at the
/// buffer's start, so that its numbers have the alignment of this machine and can be borrowed too. It stays there until the
/// next call of a method that changes the receiver.
#[derive(Debug)]
pub struct Receiver {
    buffer: Vec<u8>,
    /// Bytes in the buffer.
    end: usize,
    /// The end of the free part that was returned last.
    free_end: usize,
    /// The size of the next message once it is known to be incomplete; otherwise 0.
    expected: usize,
    /// Bytes at the start of the buffer that belong to the message returned last.
    used: usize,
    side: Side,
    /// Requests and replies come to this end.
    is_bidirectional: bool,
    limits: ReceiveLimits,
    reassembly: Reassembly,
    /// The message returned last if it came in fragments; otherwise empty.
    assembled: Vec<u8>,
}

/// The limits of a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveLimits {
    /// Bytes of one message, header included, and of all incomplete messages in fragments together.
    pub message_bytes_max: usize,
    /// Messages in fragments that are incomplete at a time.
    pub fragmented_messages_max: usize,
}

/// The end of a connection that receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The end that sent the requests.
    Client,
    /// The end that replies.
    Server,
}

/// A message, or the beginning of one.
#[derive(Clone, Copy, Debug)]
pub struct Message<'r> {
    /// Its header.
    pub header: Header,
    /// Its bytes, header included; fewer than the header says if the rest is not received yet.
    pub bytes: &'r [u8],
}

/// The reason why the connection ends: the peer sent wrong bytes, CloseConnection or MessageError.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReceiveError {
    /// The bytes are not a message, or break a limit.
    #[error(transparent)]
    Malformed(#[from] DecodeError),
    /// A message of a type that the peer must not send to this end.
    #[error("a message of type {0:?} came to the wrong end of a connection")]
    OutOfPlace(MessageType),
    /// The peer closed the connection in an orderly way (CloseConnection).
    #[error("the peer closed the connection")]
    Closed {
        /// True if the first fragments of a message had arrived.
        amid_message: bool,
    },
    /// The peer did not understand a message (MessageError).
    #[error("the peer did not understand a message")]
    MessageError,
}

/// The first size of the buffer in bytes: large enough for nearly all messages, and small enough for a thousand connections.
const BUFFER_BYTES_MIN: usize = 8 << 10;

/// The size of a small buffer in bytes: large enough for most messages, and for a silent connection to keep.
const SMALL_BUFFER_BYTES: usize = 1 << 10;

/// The most bytes that [`Receiver::free`] offers behind an incomplete message, whatever the size of the buffer. After so
/// many, a thread that reads several connections turns to the next one. Moving up the rest after each message stays cheap.
const AHEAD_BYTES: usize = 64 << 10;

impl Receiver {
    /// An empty receiver.
    pub fn new(side: Side, limits: ReceiveLimits) -> Self {
        Self {
            buffer: Self::new_buffer(),
            free_end: BUFFER_BYTES_MIN,
            ..Self::without_buffer(side, limits)
        }
    }

    /// An empty receiver without a buffer: [lend](Self::lend) it one before it receives. Until then its free part is empty.
    pub fn without_buffer(side: Side, limits: ReceiveLimits) -> Self {
        Self {
            buffer: Vec::new(),
            end: 0,
            free_end: 0,
            expected: 0,
            used: 0,
            side,
            is_bidirectional: false,
            limits,
            reassembly: Reassembly::new(limits.message_bytes_max, limits.fragmented_messages_max),
            assembled: Vec::new(),
        }
    }

    /// Takes requests and replies from now on, on either side.
    //= GIOP 1.2 §15.8
    //# On a bidirectional connection, both ends send requests and replies.
    pub fn become_bidirectional(&mut self) {
        self.is_bidirectional = true;
    }

    /// A buffer as large as a new receiver's.
    pub fn new_buffer() -> Vec<u8> {
        vec![0; BUFFER_BYTES_MIN]
    }

    /// A buffer for messages of up to 1 KiB, of a connection that may be silent for long. [`exchange`](Self::exchange) it for one that grows
    /// once a message [needs](Self::needs_larger_buffer) that.
    pub fn new_small_buffer() -> Vec<u8> {
        vec![0; SMALL_BUFFER_BYTES]
    }

    /// True if the message that is incomplete does not fit into its [small](Self::new_small_buffer) buffer.
    pub fn needs_larger_buffer(&self) -> bool {
        self.has_small_buffer() && self.expected > SMALL_BUFFER_BYTES
    }

    fn has_small_buffer(&self) -> bool {
        self.buffer.len() == SMALL_BUFFER_BYTES
    }

    /// Goes on with another buffer, which has room for all bytes that have been received; returns its own one.
    ///
    /// # Panics
    /// If `buffer` is too small.
    pub fn exchange(&mut self, mut buffer: Vec<u8>) -> Vec<u8> {
        buffer[..self.end].copy_from_slice(&self.buffer[..self.end]);
        core::mem::replace(&mut self.buffer, buffer)
    }

    /// True if it has a buffer.
    pub fn has_buffer(&self) -> bool {
        !self.buffer.is_empty()
    }

    /// Gives the receiver a buffer, if it has none: one of [`new_buffer`](Self::new_buffer), or that of another receiver.
    pub fn lend(&mut self, mut buffer: Vec<u8>) {
        if self.has_buffer() {
            return;
        }
        if buffer.len() < BUFFER_BYTES_MIN {
            buffer.resize(BUFFER_BYTES_MIN, 0);
        }
        self.buffer = buffer;
    }

    /// Removes the buffer if no received bytes wait in it. Returns it, or frees it if it has grown.
    pub fn take_buffer(&mut self) -> Option<Vec<u8>> {
        if !self.has_buffer() || !self.is_empty() || !self.reassembly.is_empty() {
            return None;
        }
        self.clear();
        self.free_end = 0;
        let buffer = core::mem::take(&mut self.buffer);
        (buffer.len() == BUFFER_BYTES_MIN).then_some(buffer)
    }

    /// The free part of the buffer, for the bytes received next. It is not empty if there is a buffer and [`next`](Self::next) has
    /// returned `None`, unless the message [needs a larger one](Self::needs_larger_buffer). It has a bound on the bytes received ahead of the
    /// next message.
    #[inline]
    pub fn free(&mut self) -> &mut [u8] {
        self.release();
        self.free_end = self.buffer.len();
        if self.free_end > AHEAD_BYTES {
            return self.free_ahead();
        }
        &mut self.buffer[self.end..]
    }

    #[cold]
    fn free_ahead(&mut self) -> &mut [u8] {
        let ahead = self.expected.max(self.end) + AHEAD_BYTES;
        self.free_end = self.free_end.min(ahead);
        &mut self.buffer[self.end..self.free_end]
    }

    /// Reports that `count` bytes were received into the part returned last.
    #[inline]
    pub fn advance(&mut self, count: usize) {
        self.end += count;
        debug_assert!(
            self.end <= self.free_end,
            "received more bytes than were free"
        );
    }

    /// The next whole message; `None` if more bytes are needed.
    ///
    /// # Errors
    /// When the bytes are not a message, break a limit, or are a message that the peer must not send; and for
    /// CloseConnection and MessageError. Nothing that follows on the connection is read.
    #[inline]
    #[expect(
        clippy::should_implement_trait,
        reason = "a message borrows from the receiver, which an iterator's item cannot"
    )]
    pub fn next(&mut self) -> Result<Option<Message<'_>>, ReceiveError> {
        self.next_at_least::<false>(None)
    }

    /// As [`next`](Self::next), and notes in the state of a server's connection how long messages in fragments take.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    #[inline]
    pub fn next_of(
        &mut self,
        connection: &ServerConnection,
    ) -> Result<Option<Message<'_>>, ReceiveError> {
        self.next_at_least::<false>(Some(connection))
    }

    /// As [`next`](Self::next), but also returns the beginning of a reply that is larger than the buffer.
    ///
    /// The driver then receives the [missing](Message::missing) bytes from the transport itself, straight to their destination,
    /// before it asks for another message.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    #[inline]
    pub fn next_or_beginning(&mut self) -> Result<Option<Message<'_>>, ReceiveError> {
        self.next_at_least::<true>(None)
    }

    /// Moves the whole message that was returned last to the start of `into`, which may be longer; returns its size.
    ///
    /// The buffers change places if nothing lies behind the message, so that most messages are not copied.
    pub fn take(&mut self, into: &mut Vec<u8>) -> usize {
        if !self.assembled.is_empty() {
            *into = core::mem::take(&mut self.assembled);
            return into.len();
        }
        let bytes = self.used;
        if bytes < self.end {
            if into.len() < bytes {
                into.resize(bytes, 0);
            }
            into[..bytes].copy_from_slice(&self.buffer[..bytes]);
            return bytes;
        }
        core::mem::swap(&mut self.buffer, into);
        (self.end, self.used, self.expected) = (0, 0, 0);
        if self.buffer.len() < BUFFER_BYTES_MIN {
            self.buffer.resize(BUFFER_BYTES_MIN, 0);
        }
        bytes
    }

    /// Drops all received bytes and keeps the buffer, for the next connection.
    pub fn clear(&mut self) {
        (self.end, self.used, self.expected) = (0, 0, 0);
        self.assembled = Vec::new();
        self.reassembly = Reassembly::new(
            self.limits.message_bytes_max,
            self.limits.fragmented_messages_max,
        );
    }

    /// True if a part of a message has come: bytes that are no whole message, or fragments without the last one.
    #[cold]
    pub fn has_partial(&self) -> bool {
        let rest = &self.buffer[self.used..self.end];
        let next = Header::parse(rest, self.limits.message_bytes_max);
        let is_whole = matches!(next, Ok(Some(next)) if next.message_bytes() <= rest.len());
        !self.reassembly.is_empty() || !(rest.is_empty() || is_whole)
    }

    /// True if no bytes wait behind the message returned last.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.end == self.used
    }

    /// True if the received bytes filled the part that [`free`](Self::free) returned last: the transport may have more.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.end == self.free_end
    }

    // Always inlined: every call uses it, and it parses the header once.
    #[inline(always)]
    fn next_at_least<const BEGINNING: bool>(
        &mut self,
        connection: Option<&ServerConnection>,
    ) -> Result<Option<Message<'_>>, ReceiveError> {
        self.release();
        let Some(header) = self.header()? else {
            return Ok(None);
        };
        let is_plain = self.is_plain(&header);
        let bytes = header.message_bytes();
        if self.end < bytes && !(BEGINNING && is_plain && bytes > self.buffer.len()) {
            self.make_room(bytes);
            return Ok(None);
        }
        if is_plain {
            return Ok(Some(self.buffered(header)));
        }
        self.next_unusual(header, connection)
    }

    /// Drops the message returned last and moves up the bytes behind it.
    #[inline]
    fn release(&mut self) {
        if self.used == 0 {
            return;
        }
        if self.used < self.end || !self.assembled.is_empty() {
            self.move_up();
        }
        self.end -= self.used;
        self.used = 0;
    }

    #[cold]
    fn move_up(&mut self) {
        self.buffer.copy_within(self.used..self.end, 0);
        self.assembled = Vec::new();
    }

    #[inline]
    fn header(&self) -> Result<Option<Header>, DecodeError> {
        Header::parse(&self.buffer[..self.end], self.limits.message_bytes_max)
    }

    /// The message at the start of the buffer, or the part of it that has arrived.
    #[inline]
    fn buffered(&mut self, header: Header) -> Message<'_> {
        self.used = header.message_bytes().min(self.end);
        self.expected = 0;
        Message {
            header,
            bytes: &self.buffer[..self.used],
        }
    }

    /// True for a whole request to a server and a whole reply to a client, as nearly every message is.
    #[inline]
    fn is_plain(&self, header: &Header) -> bool {
        let usual = match self.side {
            Side::Client => MessageType::Reply,
            Side::Server => MessageType::Request,
        };
        header.message_type == usual && !header.more_fragments
    }

    #[cold]
    fn next_unusual(
        &mut self,
        mut header: Header,
        connection: Option<&ServerConnection>,
    ) -> Result<Option<Message<'_>>, ReceiveError> {
        loop {
            //= GIOP 1.2 §15.4.1
            //# Each message type may be sent by one end only, or by both.
            if !self.is_bidirectional && !self.side.receives(header.message_type) {
                return Err(ReceiveError::OutOfPlace(header.message_type));
            }
            match header.message_type {
                MessageType::CloseConnection => {
                    return Err(ReceiveError::Closed {
                        amid_message: !self.reassembly.is_empty(),
                    });
                }
                MessageType::MessageError => return Err(ReceiveError::MessageError),
                _ => {}
            }
            let part = self.buffered(header).bytes.len();
            self.reassembly.now = connection.map_or(0, ServerConnection::chain_time);
            let accepted = self.reassembly.accept(&header, &self.buffer[..part])?;
            if let Some(connection) = connection {
                connection.note_oldest_chain(self.reassembly.oldest());
            }
            match accepted {
                Accepted::Whole => return Ok(Some(self.buffered(header))),
                Accepted::Message(header, message) => {
                    self.assembled = message;
                    let bytes = &self.assembled;
                    return Ok(Some(Message { header, bytes }));
                }
                Accepted::Kept => self.release(),
            }
            match self.header()? {
                Some(next) if next.message_bytes() <= self.end => header = next,
                Some(next) => {
                    self.make_room(next.message_bytes());
                    return Ok(None);
                }
                None => return Ok(None),
            }
        }
    }

    /// Makes room for the rest of a message.
    ///
    /// The buffer at most doubles: a peer must send bytes to make it grow, not just announce them.
    #[cold]
    fn make_room(&mut self, message_bytes: usize) {
        self.expected = message_bytes;
        if self.end == self.buffer.len() && !self.has_small_buffer() {
            let size = message_bytes.min(2 * self.buffer.len()).max(self.end + 1);
            self.buffer.resize(size, 0);
        }
    }
}

impl Side {
    /// True if the peer may send a message of this type to this end.
    const fn receives(self, kind: MessageType) -> bool {
        match kind {
            MessageType::Request | MessageType::CancelRequest | MessageType::LocateRequest => {
                matches!(self, Self::Server)
            }
            MessageType::Reply | MessageType::LocateReply => matches!(self, Self::Client),
            MessageType::CloseConnection | MessageType::MessageError | MessageType::Fragment => {
                true
            }
        }
    }
}

impl<'r> Message<'r> {
    /// A reader at the first byte behind the header.
    #[inline]
    pub fn reader(&self) -> Reader<'r> {
        self.header.reader(self.bytes)
    }

    /// The number of bytes of the message that are not received yet; 0 unless
    /// [`next_or_beginning`](Receiver::next_or_beginning) returned it.
    #[inline]
    pub fn missing(&self) -> usize {
        self.header.message_bytes() - self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Writer;
    use crate::giop::{
        self, ReplyStatus, RequestStart, Response, Version, begin_reply, begin_request, end_message,
    };

    const LIMITS: ReceiveLimits = ReceiveLimits {
        message_bytes_max: 1 << 20,
        fragmented_messages_max: 2,
    };

    fn request(request_id: u32, body_bytes: usize) -> Vec<u8> {
        let mut w = Writer::new(Vec::new(), 1 << 20);
        let start = RequestStart {
            request_id,
            response: Response::FromTarget,
            object_key: b"key",
            operation: "op",
            contexts: &[],
        };
        begin_request(&mut w, Version::V1_2, &start).expect("it fits");
        let body = vec![request_id as u8; body_bytes];
        giop::encode_body(&mut w, Version::V1_2, |w| w.octets(&body)).expect("it fits");
        end_message(&mut w).expect("it fits");
        w.to_bytes()
    }

    fn reply(request_id: u32, body_bytes: usize) -> Vec<u8> {
        let mut w = Writer::new(Vec::new(), 1 << 20);
        let status = ReplyStatus::NoException;
        begin_reply(&mut w, Version::V1_2, request_id, status, &[]).expect("it fits");
        w.octets(&vec![request_id as u8; body_bytes])
            .expect("it fits");
        end_message(&mut w).expect("it fits");
        w.to_bytes()
    }

    /// Receives `bytes` in parts of at most `part` bytes; the messages that came out.
    fn receive(receiver: &mut Receiver, bytes: &[u8], part: usize) -> Vec<Vec<u8>> {
        let mut messages = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            let free = receiver.free();
            let count = free.len().min(part).min(rest.len());
            free[..count].copy_from_slice(&rest[..count]);
            receiver.advance(count);
            rest = &rest[count..];
            while let Some(message) = receiver.next().expect("they are messages") {
                assert_eq!(message.missing(), 0);
                messages.push(message.bytes.to_vec());
            }
        }
        messages
    }

    #[test]
    fn finds_the_same_messages_however_the_bytes_are_split() {
        let sent = [
            request(2, 0),
            request(4, 50),
            request(6, 20_000),
            request(8, 3),
        ];
        let bytes = sent.concat();
        for part in (1..200).chain([1000, 8191, 8192, 8193, bytes.len()]) {
            let mut receiver = Receiver::new(Side::Server, LIMITS);
            assert_eq!(receive(&mut receiver, &bytes, part), sent, "{part}");
            assert!(receiver.is_empty());
        }
    }

    #[test]
    //= GIOP 1.2 §15.4.9
    //% test
    fn joins_interleaved_fragments_however_the_bytes_are_split() {
        let (first, second, third) = (request(2, 300), request(4, 200), request(6, 10));
        let mut first_parts = giop::fragments(&first, 64);
        let mut second_parts = giop::fragments(&second, 64);
        let mut bytes = Vec::new();
        for _ in 0..8 {
            bytes.extend(first_parts.next().unwrap_or_default());
            bytes.extend(second_parts.next().unwrap_or_default());
            bytes.extend_from_slice(&third);
        }
        assert!(first_parts.next().is_none() && second_parts.next().is_none());
        for part in (1..100).chain([bytes.len()]) {
            let mut receiver = Receiver::new(Side::Server, LIMITS);
            let messages = receive(&mut receiver, &bytes, part);
            assert!(receiver.reassembly.is_empty());
            assert_eq!(messages.len(), 10);
            for whole in [&first, &second] {
                assert_eq!(
                    messages.iter().filter(|it| *it == whole).count(),
                    1,
                    "{part}"
                );
            }
        }
    }

    #[test]
    //= GIOP 1.2 §15.8
    //% test
    fn a_bidirectional_connection_takes_requests_and_replies_in_fragments_too() {
        let sent = [request(2, 300), reply(1, 600), request(4, 0), reply(3, 9)];
        let mut parts = [giop::fragments(&sent[0], 64), giop::fragments(&sent[1], 64)];
        let mut bytes = Vec::new();
        for _ in 0..20 {
            for part in &mut parts {
                bytes.extend(part.next().unwrap_or_default());
            }
        }
        bytes.extend(sent[2..].concat());
        for side in [Side::Client, Side::Server] {
            for part in [1, 100, bytes.len()] {
                let mut receiver = Receiver::new(side, LIMITS);
                receiver.become_bidirectional();
                assert_eq!(
                    receive(&mut receiver, &bytes, part),
                    sent,
                    "{side:?} {part}"
                );
            }
        }
    }

    #[test]
    fn takes_a_message_out_without_what_lies_behind_it() {
        let (first, second) = (reply(2, 5), reply(4, 7));
        let mut receiver = Receiver::new(Side::Client, LIMITS);
        let bytes = [first.clone(), second.clone()].concat();
        receiver.free()[..bytes.len()].copy_from_slice(&bytes);
        receiver.advance(bytes.len());
        let mut out = vec![9; 100];
        assert!(matches!(receiver.next(), Ok(Some(_))));
        assert_eq!(receiver.take(&mut out), first.len());
        assert_eq!(&out[..first.len()], &first[..]);
        assert!(matches!(receiver.next(), Ok(Some(_))));
        assert_eq!(receiver.take(&mut out), second.len());
        assert_eq!(&out[..second.len()], &second[..]);
        assert_eq!(receiver.next().map(|it| it.is_none()), Ok(true));
        assert!(receiver.is_empty() && !receiver.free().is_empty());
    }

    #[test]
    fn takes_a_message_out_that_came_in_fragments() {
        let (first, second) = (reply(2, 100), reply(4, 7));
        let mut bytes: Vec<u8> = giop::fragments(&first, 32).flatten().collect();
        bytes.extend_from_slice(&second);
        let mut receiver = Receiver::new(Side::Client, LIMITS);
        receiver.free()[..bytes.len()].copy_from_slice(&bytes);
        receiver.advance(bytes.len());
        let mut out = Vec::new();
        for sent in [first, second] {
            let message = receiver.next().expect("it is a message");
            assert_eq!(message.expect("it is there").bytes, sent);
            let bytes = receiver.take(&mut out);
            assert_eq!(&out[..bytes], &sent[..]);
        }
        assert_eq!(receiver.next().map(|it| it.is_none()), Ok(true));
    }

    #[test]
    fn the_beginning_of_a_large_reply_is_enough() {
        let large = reply(2, 50_000);
        let mut receiver = Receiver::new(Side::Client, LIMITS);
        let free = receiver.free();
        let count = free.len();
        free.copy_from_slice(&large[..count]);
        receiver.advance(count);
        let message = receiver.next_or_beginning().expect("it is a message");
        let message = message.expect("its beginning is there");
        assert_eq!(message.bytes, &large[..count]);
        assert_eq!(message.missing(), large.len() - count);
        assert_eq!(receiver.free().len(), count);
        assert_eq!(receiver.next().map(|it| it.is_none()), Ok(true));
    }

    #[test]
    fn a_large_message_lets_no_flood_in_behind_it() {
        let mut receiver = Receiver::new(Side::Server, LIMITS);
        receive(&mut receiver, &request(2, 500_000), usize::MAX);
        assert_eq!(receiver.free().len(), AHEAD_BYTES);
        receiver.advance(AHEAD_BYTES);
        assert!(receiver.is_full());
        let mut receiver = Receiver::new(Side::Server, LIMITS);
        receive(&mut receiver, &request(2, 500_000), usize::MAX);
        // One that is awaited comes whole.
        let second = request(4, 200_000);
        receiver.free()[..20].copy_from_slice(&second[..20]);
        receiver.advance(20);
        assert_eq!(receiver.next().map(|it| it.is_none()), Ok(true));
        assert!(receiver.free().len() >= second.len() - 20);
        assert!(!receiver.is_full());
    }

    #[test]
    fn an_announced_size_takes_no_memory_before_its_bytes_come() {
        let mut receiver = Receiver::new(Side::Server, LIMITS);
        let large = request(2, 900_000);
        let part = &large[..BUFFER_BYTES_MIN];
        assert!(receive(&mut receiver, part, usize::MAX).is_empty());
        assert_eq!(receiver.buffer.len(), 2 * BUFFER_BYTES_MIN);
    }

    #[test]
    //= GIOP 1.2 §15.4.1
    //% test
    fn messages_that_the_peer_must_not_send_are_refused_even_their_first_fragment() {
        let next = |side, bytes: &[u8]| {
            let mut receiver = Receiver::new(side, LIMITS);
            receiver.free()[..bytes.len()].copy_from_slice(bytes);
            receiver.advance(bytes.len());
            receiver.next().map(|message| message.is_some())
        };
        let (request, reply) = (request(2, 100), reply(2, 100));
        let out_of_place = |kind| Err(ReceiveError::OutOfPlace(kind));
        assert_eq!(next(Side::Server, &request), Ok(true));
        assert_eq!(next(Side::Client, &reply), Ok(true));
        assert_eq!(next(Side::Server, &reply), out_of_place(MessageType::Reply));
        assert_eq!(
            next(Side::Client, &request),
            out_of_place(MessageType::Request)
        );
        let begun = giop::fragments(&request, 32).next().unwrap_or_default();
        assert_eq!(
            next(Side::Client, &begun),
            out_of_place(MessageType::Request)
        );
        assert_eq!(next(Side::Server, &begun), Ok(false));
        let bad_magic = Err(ReceiveError::Malformed(DecodeError::BadMagic));
        assert_eq!(next(Side::Server, b"GET / HTTP/1.1"), bad_magic);
        let last = giop::fragments(&request, 32).last().unwrap_or_default();
        assert!(next(Side::Server, &last).is_err(), "a fragment of nothing");
    }

    /// Receives `bytes` at a server's connection; the number of messages that came out.
    fn receive_at(receiver: &mut Receiver, connection: &ServerConnection, bytes: &[u8]) -> usize {
        receiver.free()[..bytes.len()].copy_from_slice(bytes);
        receiver.advance(bytes.len());
        let mut messages = 0;
        while let Some(message) = receiver
            .next_of(connection)
            .expect("they are messages")
            .map(|message| message.header.version)
        {
            connection.note_message(message);
            connection.note_answered();
            messages += 1;
        }
        messages
    }

    fn cancel(request_id: u32) -> Vec<u8> {
        let mut w = Writer::new(Vec::new(), 64);
        giop::write_cancel_request(&mut w, Version::V1_2, request_id).expect("it fits");
        w.to_bytes()
    }

    #[test]
    fn a_message_in_fragments_is_late_whatever_comes_between_them() {
        let whole = request(2, 300);
        let parts: Vec<_> = giop::fragments(&whole, 64).collect();
        let others = [cancel(99), request(6, 9), request(8, 0)];
        for other in &others {
            let (mut receiver, connection) =
                (Receiver::new(Side::Server, LIMITS), ServerConnection::new());
            for look in 0..3 {
                assert_eq!(receive_at(&mut receiver, &connection, other), 1);
                assert!(!connection.look_at_partial(), "{look}: nothing has begun");
            }
            assert_eq!(receive_at(&mut receiver, &connection, &parts[0]), 0);
            assert!(!connection.look_at_partial(), "it has just begun");
            assert_eq!(receive_at(&mut receiver, &connection, other), 1);
            assert_eq!(receive_at(&mut receiver, &connection, &parts[1]), 0);
            assert!(connection.look_at_partial(), "one more part is no excuse");
        }
    }

    #[test]
    fn each_message_in_fragments_has_a_time_of_its_own() {
        let (mut receiver, connection) =
            (Receiver::new(Side::Server, LIMITS), ServerConnection::new());
        let slow = request(2, 300);
        let quick = request(4, 300);
        let slow: Vec<_> = giop::fragments(&slow, 64).collect();
        let quick: Vec<_> = giop::fragments(&quick, 64).collect();
        for round in 0..3 {
            // Each is whole at the second look, when the next has begun.
            let (first, rest) = quick.split_first().expect("it has parts");
            assert_eq!(receive_at(&mut receiver, &connection, first), 0);
            assert!(!connection.look_at_partial(), "{round}");
            let messages = receive_at(&mut receiver, &connection, &rest.concat());
            assert_eq!(messages, 1);
        }
        assert_eq!(receive_at(&mut receiver, &connection, &slow[0]), 0);
        connection.take();
        for _ in 0..3 {
            assert!(!connection.look_at_partial(), "a request is in progress");
        }
        connection.served();
        assert!(!connection.look_at_partial(), "it has just begun");
        // Another one that is whole in time, and one that is given up.
        assert_eq!(receive_at(&mut receiver, &connection, &quick.concat()), 1);
        assert_eq!(receive_at(&mut receiver, &connection, &quick[0]), 0);
        assert_eq!(receive_at(&mut receiver, &connection, &cancel(4)), 1);
        assert!(connection.look_at_partial(), "the rest has not come");
        assert_eq!(receive_at(&mut receiver, &connection, &cancel(2)), 1);
        assert!(!connection.look_at_partial(), "it was given up");
    }

    #[test]
    fn a_small_buffer_does_not_grow_and_another_one_goes_on() {
        for bytes in [100, SMALL_BUFFER_BYTES, 3 * BUFFER_BYTES_MIN] {
            let sent = request(1, bytes);
            let mut receiver = Receiver::without_buffer(Side::Server, LIMITS);
            let none = receiver.exchange(Receiver::new_small_buffer());
            assert!(none.is_empty() && receiver.has_small_buffer());
            let mut left = &sent[..];
            let mut exchanged = 0;
            let whole = loop {
                if let Some(message) = receiver.next().expect("a request") {
                    break message.bytes.to_vec();
                }
                if receiver.needs_larger_buffer() {
                    let small = receiver.exchange(Receiver::new_buffer());
                    assert_eq!(small.len(), SMALL_BUFFER_BYTES);
                    exchanged += 1;
                }
                let free = receiver.free();
                let count = free.len().min(left.len());
                assert!(count > 0, "there is room");
                free[..count].copy_from_slice(&left[..count]);
                receiver.advance(count);
                left = &left[count..];
            };
            assert_eq!(whole, sent);
            assert_eq!(exchanged, usize::from(bytes > 100));
        }
    }
}
