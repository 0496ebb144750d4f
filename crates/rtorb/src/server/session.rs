//! What all threads that answer on one connection share: its stream, and whose turn it is to send.

use crate::connection::Host;
use crate::orb::OrbCore;
use crate::outgoing;
use crate::rt::ThreadpoolId;
use crate::transport::Stream;
use core::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use rtorb_os::sync::Mutex;
use rtorb_wire::giop::{self, Version};
use rtorb_wire::{EncodeError, Writer};
use rustix::io::Errno;
use std::sync::Arc;

/// A client's connection, as those see it who answer on it.
///
/// It is closed when the last of them is done.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) orb: Arc<OrbCore>,
    /// The same, as references in requests need it.
    pub(super) host: Arc<dyn Host>,
    pub(crate) stream: Stream,
    /// The pool whose endpoint the client came to.
    pub(crate) pool: ThreadpoolId,
    /// Minor version of the last message: what the connection's own messages are sent in.
    minor: AtomicU8,
    is_shared: AtomicBool,
    /// The client knows of nothing that it has to wait for: what it sends now is not pipelined.
    is_answered: AtomicBool,
    sending: Mutex<()>,
}

/// No message has come yet.
const NO_MINOR: u8 = u8::MAX;

impl Session {
    /// A connection that one thread answers on.
    pub(super) fn new(orb: Arc<OrbCore>, stream: Stream, pool: ThreadpoolId) -> Self {
        Self {
            host: Arc::<OrbCore>::clone(&orb),
            orb,
            stream,
            pool,
            minor: AtomicU8::new(NO_MINOR),
            is_shared: AtomicBool::new(false),
            is_answered: AtomicBool::new(true),
            sending: Mutex::new(()),
        }
    }

    /// Lets several threads answer from now on: each waits until the message of another is sent.
    ///
    /// Called by the thread that reads, when nobody is answering; whoever is handed a message by it knows.
    #[inline]
    pub(crate) fn share(&self) {
        self.is_shared.store(true, Ordering::Relaxed);
    }

    /// Lets one thread answer again, and no other: none is answering any more, and the caller reads.
    #[inline]
    pub(crate) fn answer_alone(&self) {
        self.is_shared.store(false, Ordering::Relaxed);
    }

    /// True from when an answer is sent to when the next message is there.
    #[inline]
    pub(crate) fn is_answered(&self) -> bool {
        self.is_answered.load(Ordering::Relaxed)
    }

    /// Tells the client that none of its requests will be served any more (CloseConnection).
    ///
    /// To be called when all that were taken are answered: a client may take those as not carried out.
    pub(crate) fn say_closing(&self) {
        let version = self.version().unwrap_or(Version::V1_0);
        //= GIOP 1.2 §15.5.1.1
        //# A server that closes a connection sends CloseConnection first.
        self.say(|w| giop::write_close_connection(w, version));
    }

    /// Answers octets that are no GIOP, or break a limit, before the connection is closed.
    #[cold]
    pub(super) fn say_error(&self) {
        let version = self.version().unwrap_or(Version::V1_2);
        //= GIOP 1.2 §15.4.8
        //# A peer that receives a message that it does not understand sends MessageError.
        self.say(|w| giop::write_message_error(w, version));
    }

    #[inline]
    pub(super) fn note_message(&self, version: Version) {
        self.minor.store(version.minor, Ordering::Relaxed);
        self.is_answered.store(false, Ordering::Relaxed);
    }

    /// Sends a message, whole before or behind those of other threads.
    #[inline]
    pub(super) fn send(&self, message: &Writer<'_>) -> Result<(), Errno> {
        self.is_answered.store(true, Ordering::Relaxed);
        match self.is_shared.load(Ordering::Relaxed) {
            false => outgoing::send(&self.stream, message, self.orb.fragment_octets),
            true => self.send_in_turn(message),
        }
    }

    fn send_in_turn(&self, message: &Writer<'_>) -> Result<(), Errno> {
        let _sending = self.sending.lock();
        let sent = outgoing::send(&self.stream, message, self.orb.fragment_octets);
        if sent.is_err() {
            // The next message must not stand behind half of this one; and who reads learns that it is over.
            self.stream.shut();
        }
        sent
    }

    fn version(&self) -> Option<Version> {
        match self.minor.load(Ordering::Relaxed) {
            NO_MINOR => None,
            minor => Some(Version { major: 1, minor }),
        }
    }

    fn say(&self, write: impl FnOnce(&mut Writer<'_>) -> Result<(), EncodeError>) {
        let mut w = Writer::new(Vec::new(), giop::HEADER_OCTETS);
        if write(&mut w).is_ok() {
            // A client that is gone needs no telling.
            let _ = self.send(&w);
        }
    }
}
