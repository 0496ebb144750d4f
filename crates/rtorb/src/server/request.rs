//! Requests that were taken out of their connections, so that other threads can use the connections.

use super::answer::{self, TakenTimes};
use super::names::LocatedId;
use super::reading::Next;
use super::session::Session;
use super::target;
use super::workspace::Workspace;
use crate::exception::{SystemException, local};
use crate::server::ActiveObject;
use crate::timing::QueuePlace;
use rtorb_wire::DecodeError;
use rtorb_wire::cdr::CharCodeSet;
use rtorb_wire::connection::Message;
use rtorb_wire::giop::{Header, RequestHeader};

/// A copy of one request. Its memory is reused for the next one.
#[derive(Debug, Default)]
pub(crate) struct TakenRequest {
    bytes: Vec<u8>,
    char_code_set: CharCodeSet,
    times: TakenTimes,
    /// Its place among the waiting requests of its operation, if that bounds them.
    place: Option<QueuePlace>,
}

/// The most memory that is kept for the next request. More is freed.
const KEPT_BYTES_MAX: usize = 64 << 10;

/// The size of most requests.
const ROOM_BYTES: usize = 512;

impl TakenRequest {
    /// Makes an empty request, with memory for most requests.
    pub(crate) fn with_room() -> Self {
        Self {
            bytes: Vec::with_capacity(ROOM_BYTES),
            ..Self::default()
        }
    }

    /// Copies a request.
    pub(super) fn fill(&mut self, message: &[u8], char_code_set: CharCodeSet, times: TakenTimes) {
        self.bytes.clear();
        self.bytes.extend_from_slice(message);
        self.char_code_set = char_code_set;
        self.times = times;
    }

    /// Takes a place among the waiting requests of its operation. Refuses the request, and returns false, if as many wait as the
    /// operation allows (`@queue`).
    #[cold]
    pub(crate) fn take_place(&mut self, session: &Session, workspace: &mut Workspace) -> bool {
        let timing = self.examine(session, workspace, |object, _, header| {
            Ok(object.and_then(|object| object.servant.timing(header.operation)))
        });
        // The thread that serves the request refuses what cannot be read.
        let bounded = timing.ok().flatten().filter(|it| it.queue_max().is_some());
        let Some(operation) = bounded else {
            return true;
        };
        self.place = QueuePlace::take(&session.orb.timing, operation);
        if self.place.is_none() {
            session.orb.state.note_refused();
            self.refuse(session, workspace, &local::QUEUE_FULL);
        }
        self.place.is_some()
    }

    /// Notes that the request waits no longer.
    pub(crate) fn leave_queue(&mut self) {
        self.place = None;
    }

    /// Frees the memory of a large request, so that the memory of all queued requests stays small.
    pub(crate) fn trim(&mut self) {
        self.leave_queue();
        if self.bytes.capacity() > KEPT_BYTES_MAX {
            self.bytes = Vec::new();
        }
    }

    /// Returns its length in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Returns its deadline, in nanoseconds of the monotonic clock; `u64::MAX` for none.
    pub(crate) fn deadline_ns(&self) -> u64 {
        self.times.deadline_ns
    }

    /// Returns when it arrived; 0 if nothing needs it.
    pub(crate) fn arrived_ns(&self) -> u64 {
        self.times.arrived_ns
    }

    /// Serves the request on the calling thread, and replies on its connection.
    pub(crate) fn serve(&self, session: &Session, workspace: &mut Workspace) -> Next {
        let served = self.header(session).and_then(|header| {
            let bytes = &self.bytes;
            let message = Message { header, bytes };
            let code_set = self.char_code_set;
            answer::taken_request(session, workspace, code_set, self.times, message)
        });
        served.unwrap_or(Next::Over)
    }

    /// Replies with a system exception instead of serving the request; sends nothing for a oneway.
    #[cold]
    pub(crate) fn refuse(
        &self,
        session: &Session,
        workspace: &mut Workspace,
        exception: &SystemException,
    ) {
        // It was decoded when it was taken, so it can be decoded again.
        let _ = self.read(session, |header, request| {
            answer::refuse(session, workspace, header.version, request, exception);
        });
    }

    /// Calls `look` with the object of the request and the request's header.
    ///
    /// # Errors
    /// Those of `look`; MARSHAL if the bytes are not a request, which cannot happen.
    pub(crate) fn examine<T>(
        &self,
        session: &Session,
        workspace: &mut Workspace,
        look: impl FnOnce(
            Option<&ActiveObject>,
            &LocatedId,
            &RequestHeader<'_>,
        ) -> Result<T, SystemException>,
    ) -> Result<T, SystemException> {
        self.read(session, |_, request| {
            let key = request.target.object_key()?;
            let object = target::find(&session.orb, key, &mut workspace.names);
            look(object.as_deref(), &workspace.names.id, request)
        })?
    }

    fn read<T>(
        &self,
        session: &Session,
        look: impl FnOnce(Header, &RequestHeader<'_>) -> T,
    ) -> Result<T, DecodeError> {
        let header = self.header(session)?;
        let request = RequestHeader::decode(&mut header.reader(&self.bytes))?;
        Ok(look(header, &request))
    }

    fn header(&self, session: &Session) -> Result<Header, DecodeError> {
        let bytes_max = session.orb.limits.message_bytes_max;
        Header::parse(&self.bytes, bytes_max)?.ok_or(DecodeError::BadMagic)
    }
}
