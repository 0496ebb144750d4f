//! The server's half of a bidirectional connection: it carries requests of this ORB, and finds who waits for their replies.

use super::session::Session;
use crate::connection::{BidirectionalConnection, RequestCarrier};
use crate::outgoing::{CancelRequest, CancelSent};
use crate::transport::Unsent;
use crate::wait::lock_until;
use rtorb_wire::Writer;
use rtorb_wire::cdr::CharCodeSet;
use rtorb_wire::connection::ReplyError;
use rtorb_wire::giop::{MessageType, RequestHeader, Version, contexts};
use rustix::io::Errno;
use std::sync::{Arc, Weak};

impl Session {
    /// True if both ends send requests.
    pub(crate) fn is_bidirectional(&self) -> bool {
        self.bidirectional.get().is_some()
    }

    /// Has both ends of a connection that this ORB has opened send requests. `make` makes the caller's half.
    pub(super) fn carry(
        &self,
        make: &mut dyn FnMut(Weak<dyn RequestCarrier>) -> BidirectionalConnection,
    ) -> Arc<BidirectionalConnection> {
        // The end that sent requests first had GIOP 1.2, and is not a stranger.
        self.state.note_message(Version::V1_2);
        self.state.share_sending();
        let carrier: Weak<dyn RequestCarrier> = Weak::<Self>::clone(&self.own);
        let connection = self.bidirectional.get_or_make(|| Arc::new(make(carrier)));
        Arc::clone(connection)
    }

    /// Accepts a client's offer to be called back over this connection, if the request has one. Returns true the first time: from then on,
    /// replies come too.
    //= GIOP 1.2 §15.8
    //# The service context BI_DIR_IIOP has the listen points of the client. Requests to objects whose profiles have one of these
    //# addresses may be sent over its connection.
    pub(super) fn note_offer(
        &self,
        version: Version,
        request: &RequestHeader<'_>,
        char_code_set: CharCodeSet,
    ) -> bool {
        match request.contexts.find(contexts::BI_DIR_IIOP) {
            Some(data) if version >= Version::V1_2 => self.accept_offer(data, char_code_set),
            _ => false,
        }
    }

    #[cold]
    fn accept_offer(&self, data: &[u8], char_code_set: CharCodeSet) -> bool {
        let client = &self.orb.client;
        let (Some(table), Some(host)) =
            (client.core.sharing.bidirectional(), client.host.upgrade())
        else {
            return false;
        };
        // A context that cannot be read is one that this ORB does not know.
        let Ok(mut points) = contexts::from_data::<Vec<contexts::ListenPoint>>(data) else {
            return false;
        };
        let known = self.bidirectional.get();
        if known.is_some_and(|known| known.is_opened_here()) {
            return false;
        }
        let connection = self.bidirectional.get_or_make(|| {
            let carrier: Weak<dyn RequestCarrier> = Weak::<Self>::clone(&self.own);
            Arc::new(BidirectionalConnection::accepted(carrier, char_code_set))
        });
        if known.is_none() {
            self.state.share_sending();
        }
        // A client does not get the calls of this ORB's own objects.
        let own = host.listen_points();
        points.retain(|point| !own.contains(point));
        table.claim(points, connection);
        known.is_none()
    }

    /// Delivers a reply to the thread that waits for it.
    pub(super) fn deliver(
        &self,
        kind: MessageType,
        request_id: u32,
        take: impl FnOnce(&mut Vec<u8>) -> usize,
    ) {
        if let Some(connection) = self.bidirectional.get() {
            connection.deliver(kind, request_id, take);
        }
    }

    /// Ends the calls that wait for replies over this connection.
    #[cold]
    pub(super) fn end_calls(&self, why: ReplyError) {
        let Some(connection) = self.bidirectional.get() else {
            return;
        };
        connection.end(why);
        if let Some(table) = self.orb.client.core.sharing.bidirectional() {
            table.forget(connection);
        }
    }
}

impl RequestCarrier for Session {
    fn identity(&self) -> u64 {
        self.stream.identity()
    }

    fn send_request(&self, request: &Writer<'_>, deadline_ns: Option<u64>) -> Result<(), Unsent> {
        let late = || Unsent::whole(Errno::AGAIN);
        let mut sending = lock_until(&self.sending, deadline_ns).ok_or_else(late)?;
        while !sending.outbox.is_empty() {
            match deadline_ns {
                None => self.drained.wait(&mut sending),
                Some(deadline_ns) => {
                    if !self.drained.wait_until(&mut sending, deadline_ns) {
                        return Err(late());
                    }
                }
            }
        }
        self.send_holding(sending, request).map_err(Unsent::whole)
    }

    fn send_cancel(&self, cancel: &CancelRequest) {
        if let Some(sending) = self.sending.try_lock()
            && sending.outbox.is_empty()
            && cancel.send(&self.stream) == CancelSent::Part
        {
            // No other message may follow. The reading thread finds the end.
            self.stream.shut();
        }
    }

    fn leave(&self) {
        self.give_way();
    }
}
