//! What is asked of an object, and how it is written.

use super::Channel;
use crate::orb::OrbCore;
use crate::reference::Route;
use crate::rt::Priority;
use rtorb_wire::code_sets;
use rtorb_wire::giop::contexts::{self, CodeSets};
use rtorb_wire::giop::{self, RequestStart, Response, ServiceContext};
use rtorb_wire::{EncodeError, Writer};
use std::sync::Arc;
use std::time::Duration;

/// What shall be called.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'x> {
    pub(crate) orb: &'x Arc<OrbCore>,
    pub(crate) route: &'x Route,
    pub(crate) channel: Channel,
    pub(crate) ask: Ask,
    pub(crate) operation: &'x str,
    pub(crate) response: Response,
    pub(crate) timeout: Option<Duration>,
    /// The CORBA priority that the server shall know (service context RTCorbaPriority).
    pub(crate) priority: Option<Priority>,
}

/// What kind of question it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// An operation.
    Operation,
    /// Whether the object is there: LocateRequest; where the server still has to be told the code set, the operation of the
    /// request, since a LocateRequest has no service contexts.
    Whereabouts,
    /// That the connection be for the priorities of its band (`_bind_priority_band`).
    Band,
}

/// Writes the arguments; called again when the request has to be sent again.
pub(crate) type Arguments<'f, 'a> = &'f dyn Fn(&mut Writer<'a>) -> Result<(), EncodeError>;

/// What a request says of itself on its connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbered {
    pub(super) request_id: u32,
    /// True once the peer knows the code set, or need not.
    pub(super) code_set_told: bool,
}

impl Request<'_> {
    /// A writer into `buffer` for messages of this connection.
    #[inline]
    pub(super) fn writer<'a>(&self, buffer: Vec<u8>) -> Writer<'a> {
        Writer::new(buffer, self.orb.limits.message_octets_max)
            .with_order(self.orb.byte_order)
            .with_char_code_set(self.route.endpoint.char_code_set)
    }

    /// Writes the whole message.
    // Always: it is in the path of every call, and its other callers are rare.
    #[inline(always)]
    pub(super) fn encode<'a>(
        &self,
        w: &mut Writer<'a>,
        numbered: Numbered,
        arguments: Arguments<'_, 'a>,
    ) -> Result<(), EncodeError> {
        let version = self.route.version;
        let id = numbered.request_id;
        match (&self.route.prefix, self.ask, self.priority) {
            (Some(prefix), Ask::Operation, None) if numbered.code_set_told => {
                prefix.begin_request(w, id, self.response, self.operation)?;
            }
            (Some(prefix), Ask::Operation, Some(priority)) if numbered.code_set_told => {
                let priority = priority.get();
                prefix.begin_request_with_priority(
                    w,
                    id,
                    self.response,
                    self.operation,
                    priority,
                )?;
            }
            (_, Ask::Whereabouts, _) if numbered.code_set_told => {
                return giop::write_locate_request(w, version, id, &self.route.object_key);
            }
            _ => self.begin(w, numbered)?,
        }
        giop::encode_body(w, version, arguments)?;
        giop::end_message(w)
    }

    /// Begins a request of an old version, or one with rare contexts: the first one tells the server the code sets.
    #[cold]
    fn begin(&self, w: &mut Writer<'_>, numbered: Numbered) -> Result<(), EncodeError> {
        let code_sets = CodeSets {
            char_data: self.route.endpoint.char_code_set.registry(),
            wchar_data: code_sets::UTF_16,
        };
        let code_sets = (!numbered.code_set_told).then(|| code_sets.to_data());
        let priority = self.priority.map(|own| contexts::priority(own.get()));
        let band = self.channel.band.filter(|_| self.ask == Ask::Band);
        let band = band.map(|band| contexts::priority_range(band.low, band.high));
        let told = [
            (
                contexts::CODE_SETS,
                code_sets.as_ref().map(<[u8; _]>::as_slice),
            ),
            (
                contexts::RT_CORBA_PRIORITY,
                priority.as_ref().map(<[u8; _]>::as_slice),
            ),
            (
                contexts::RT_CORBA_PRIORITY_RANGE,
                band.as_ref().map(<[u8; _]>::as_slice),
            ),
        ];
        let mut list = [ServiceContext { id: 0, data: &[] }; 3];
        let mut count = 0;
        for (id, data) in told {
            if let Some(data) = data {
                list[count] = ServiceContext { id, data };
                count += 1;
            }
        }
        let start = RequestStart {
            request_id: numbered.request_id,
            response: self.response,
            object_key: &self.route.object_key,
            operation: self.operation,
            contexts: &list[..count],
        };
        giop::begin_request(w, self.route.version, &start)
    }
}
