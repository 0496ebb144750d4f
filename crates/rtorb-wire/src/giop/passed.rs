//! Messages that pass through a proxy: their bytes stay as they came, but for the time that is left.

use super::contexts::{self, CodeSets};
use super::expiry::shortened;
use super::service_context::{ContextBuffer, ServiceContext, ServiceContexts, write_contexts};
use super::{
    Address, BODY_ALIGNMENT, HEADER_BYTES, Header, MessageType, ReplyHeader, RequestHeader, Target,
    begin_message, end_message,
};
use crate::code_sets::UTF_16;
use crate::{DecodeError, EncodeError, Reader, Writer};
use alloc::vec::Vec;

/// The object to which a request is passed.
#[derive(Clone, Copy, Debug)]
pub struct PassedTarget<'x> {
    /// Its key.
    pub object_key: &'x [u8],
    /// The form of address that its server has asked for. Requests before GIOP 1.2 have only the key.
    pub address: Option<Address<'x>>,
}

/// The deadline of a request that is passed on.
#[derive(Clone, Copy, Debug)]
pub enum PassedDeadline<'x> {
    /// The one that it states. An end time stays; of a remaining time, `spent_ns` are gone.
    Stated {
        /// How long the request has been here, in nanoseconds.
        spent_ns: u64,
    },
    /// Another one, which replaces it.
    Replaced(ServiceContext<'x>),
}

/// A request as it came, to be sent to another object.
///
/// Byte order, GIOP version, operation, service contexts and body stay. The request id and the object key change, and the time that is left
/// of its deadline.
#[derive(Clone, Debug)]
pub struct PassedRequest<'m> {
    header: Header,
    message: &'m [u8],
    request: RequestHeader<'m>,
    /// The bytes of the principal, which GIOP 1.2 does not have.
    principal: &'m [u8],
    body: &'m [u8],
    /// The position of the body in the message.
    body_at: usize,
    code_sets: Option<CodeSets>,
    /// Contexts that replace those that the ORB does not make itself.
    added: Option<&'m ContextBuffer>,
    /// When it arrived, on the clock of the driver; `None` if nothing depends on that.
    arrived_ns: Option<u64>,
}

impl<'m> PassedRequest<'m> {
    /// Reads the header of a whole request, on a connection whose client named these code sets.
    ///
    /// # Errors
    /// When the bytes are not a request.
    pub fn parse(message: &'m [u8], code_sets: Option<CodeSets>) -> Result<Self, DecodeError> {
        let header = Header::parse(message, usize::MAX)?.ok_or(DecodeError::BadMagic)?;
        let mut r = header.reader(message);
        let request = RequestHeader::decode(&mut r)?;
        let body_at = r.position();
        let principal = match header.version.minor {
            0 | 1 => principal(&header, message)?,
            _ => &[],
        };
        Ok(Self {
            header,
            message,
            request,
            principal,
            body: message.get(body_at..).unwrap_or_default(),
            body_at,
            code_sets,
            added: None,
            arrived_ns: None,
        })
    }

    /// Adds service contexts, which replace all but the priority and the deadline.
    #[must_use]
    pub const fn with_contexts(mut self, added: &'m ContextBuffer) -> Self {
        self.added = Some(added);
        self
    }

    /// Says when it arrived, on the clock of the driver: its remaining time counts from then.
    #[must_use]
    pub const fn with_arrival(mut self, arrived_ns: u64) -> Self {
        self.arrived_ns = Some(arrived_ns);
        self
    }

    /// How long it has been here at `now_ns`; 0 if nothing says when it arrived.
    pub fn spent_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.arrived_ns.unwrap_or(now_ns))
    }

    /// Its header.
    pub const fn request(&self) -> &RequestHeader<'m> {
        &self.request
    }

    /// The code sets that the client named for its connection.
    pub const fn code_sets(&self) -> Option<CodeSets> {
        self.code_sets
    }

    /// The encoded arguments.
    pub const fn body(&self) -> &'m [u8] {
        self.body
    }

    /// A reader of the arguments.
    pub fn reader(&self) -> Reader<'m> {
        let mut r = self.header.reader(self.message);
        let behind = self.body_at.min(self.message.len());
        r.skip_buffered(behind.saturating_sub(HEADER_BYTES));
        r
    }

    /// Writes the request for another object on another connection. `priority` replaces the CORBA priority that the client
    /// sent. The writer must be empty.
    ///
    /// Leaves out the service contexts about the client's own connection. Every request names the client's code sets instead,
    /// because the server does not know them on the other connection. The listen points of a bidirectional connection have no
    /// substitute: the server cannot reach the client by the other connection.
    ///
    /// # Errors
    /// When the message would exceed its limit.
    pub fn write(
        &self,
        w: &mut Writer<'_>,
        request_id: u32,
        target: PassedTarget<'_>,
        priority: Option<i16>,
        deadline: PassedDeadline<'_>,
    ) -> Result<(), EncodeError> {
        let (spent_ns, deadline) = match deadline {
            PassedDeadline::Stated { spent_ns } => (spent_ns, None),
            PassedDeadline::Replaced(deadline) => (0, Some(deadline)),
        };
        let code_sets = self.code_sets.map(|named| with_wide(named).to_data());
        let priority = priority.map(contexts::priority);
        let own = [
            (contexts::CODE_SETS, code_sets.as_ref().map(|it| &it[..])),
            (
                contexts::RT_CORBA_PRIORITY,
                priority.as_ref().map(|it| &it[..]),
            ),
        ];
        let is_kept = |context: &ServiceContext<'_>| match context.id {
            contexts::CODE_SETS | contexts::BI_DIR_IIOP => false,
            contexts::RT_CORBA_PRIORITY => priority.is_none(),
            contexts::INVOCATION_POLICIES | contexts::REMAINING_TIME => deadline.is_none(),
            _ => self.added.is_none(),
        };
        let own = own.into_iter();
        let own = own.filter_map(|(id, data)| Some(ServiceContext { id, data: data? }));
        let kept = self.request.contexts.iter().filter(is_kept);
        let kept: Vec<_> = kept.map(|it| (it.id, shortened(it, spent_ns))).collect();
        let kept = kept
            .iter()
            .map(|(id, data)| ServiceContext { id: *id, data });
        let mut list: Vec<_> = kept.chain(own).chain(deadline).collect();
        list.extend(self.added.iter().flat_map(|added| added.iter()));
        w.set_order(self.header.order);
        self.write_header(w, request_id, target, &list)?;
        if !self.body.is_empty() && w.position() % BODY_ALIGNMENT != self.body_at % BODY_ALIGNMENT {
            // Before GIOP 1.2, another key or other contexts may have moved the body by half its alignment.
            list.push(FILLER);
            w.truncate(0);
            self.write_header(w, request_id, target, &list)?;
        }
        w.octets(self.body)?;
        end_message(w)
    }

    fn write_header(
        &self,
        w: &mut Writer<'_>,
        request_id: u32,
        target: PassedTarget<'_>,
        list: &[ServiceContext<'_>],
    ) -> Result<(), EncodeError> {
        let version = self.header.version;
        begin_message(w, version, MessageType::Request)?;
        if version.minor < 2 {
            write_contexts(w, list)?;
        }
        w.primitive(request_id)?;
        w.primitive(self.request.response.byte(version))?;
        if version.minor > 0 {
            w.octets(&[0; 3])?;
        }
        match target.address {
            Some(address) if version.minor >= 2 => address.encode(w)?,
            _ => Target::encode_key(w, target.object_key)?,
        }
        w.terminated_bytes(self.request.operation)?;
        if version.minor < 2 {
            return w.counted_bytes(self.principal);
        }
        write_contexts(w, list)?;
        if self.body.is_empty() {
            return Ok(());
        }
        w.align(BODY_ALIGNMENT)
    }
}

/// Names UTF-16 for wide text if the client names no code set for it, as omniORB in GIOP 1.1: it sends no wide text then, and the ORB of the JDK
/// refuses all requests with such a context (DATA_CONVERSION).
const fn with_wide(named: CodeSets) -> CodeSets {
    CodeSets {
        wchar_data: if named.wchar_data == 0 {
            UTF_16
        } else {
            named.wchar_data
        },
        ..named
    }
}

/// A context that no receiver knows, and so ignores. Its 12 bytes move what follows by 4 modulo 8.
//= CORBA 3 §13.7
//# A service context is an id and bytes. A receiver ignores contexts that it does not know.
const FILLER: ServiceContext<'static> = ServiceContext {
    id: 0x7274_6200,
    data: &[0; 4],
};

/// The principal at the end of a request header of GIOP 1.0 or 1.1.
fn principal<'m>(header: &Header, message: &'m [u8]) -> Result<&'m [u8], DecodeError> {
    let mut r = header.reader(message);
    ServiceContexts::decode(&mut r)?;
    r.primitive::<u32>()?;
    r.primitive::<u8>()?;
    if header.version.minor > 0 {
        r.take(3)?;
    }
    Target::decode(&mut r)?;
    r.string_bytes()?;
    r.octets()
}

/// A reply as it came, to be sent to another client.
///
/// Everything but the request id stays.
#[derive(Clone, Debug)]
pub struct PassedReply {
    header: Header,
    message: Vec<u8>,
}

impl PassedReply {
    /// Copies a whole reply.
    ///
    /// # Errors
    /// When the bytes are not a reply.
    pub fn copy(message: &[u8]) -> Result<Self, DecodeError> {
        let header = Header::parse(message, usize::MAX)?.ok_or(DecodeError::BadMagic)?;
        ReplyHeader::decode(&mut header.reader(message))?;
        let message = message.to_vec();
        Ok(Self { header, message })
    }

    /// Its header, and a reader of its body.
    ///
    /// # Errors
    /// None, because the header was read before.
    pub fn read(&self) -> Result<(ReplyHeader<'_>, Reader<'_>), DecodeError> {
        let mut r = self.header.reader(&self.message);
        Ok((ReplyHeader::decode(&mut r)?, r))
    }

    /// Writes the reply with another request id. The writer must be empty.
    ///
    /// # Errors
    /// When the message would exceed its limit.
    pub fn write(&self, w: &mut Writer<'_>, request_id: u32) -> Result<(), EncodeError> {
        w.set_order(self.header.order);
        begin_message(w, self.header.version, MessageType::Reply)?;
        w.octets(self.message.get(HEADER_BYTES..).unwrap_or_default())?;
        w.patch_u32(self.id_at(), request_id);
        end_message(w)
    }

    /// The position of the request id.
    fn id_at(&self) -> usize {
        if self.header.version.minor >= 2 {
            return HEADER_BYTES;
        }
        let mut r = self.header.reader(&self.message);
        match ServiceContexts::decode(&mut r).and_then(|_| r.align(4)) {
            Ok(()) => r.position(),
            Err(_) => HEADER_BYTES,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code_sets::{ISO_8859_1, UTF_8};
    use crate::giop::Version;

    /// A request that came in GIOP 1.1, with its code sets, as it is passed on.
    fn passed(named: CodeSets) -> Vec<u8> {
        let data = named.to_data();
        let context = ServiceContext {
            id: contexts::CODE_SETS,
            data: &data,
        };
        let mut w = Writer::new(Vec::new(), 1000);
        begin_message(&mut w, Version::V1_1, MessageType::Request).expect("room");
        write_contexts(&mut w, &[context]).expect("room");
        w.primitive(7_u32).expect("room");
        w.octets(&[1, 0, 0, 0]).expect("room");
        Target::encode_key(&mut w, b"key").expect("room");
        w.terminated_bytes(b"turn").expect("room");
        w.counted_bytes(&[]).expect("room");
        end_message(&mut w).expect("room");
        let came = w.to_bytes();
        let request = PassedRequest::parse(&came, Some(named)).expect("a request");
        let mut w = Writer::new(Vec::new(), 1000);
        let target = PassedTarget {
            object_key: b"other",
            address: None,
        };
        let deadline = PassedDeadline::Stated { spent_ns: 0 };
        let written = request.write(&mut w, 8, target, None, deadline);
        written.expect("room");
        w.to_bytes().to_vec()
    }

    #[test]
    fn a_passed_request_names_the_code_sets_of_its_client_and_one_for_wide_text_in_any_case() {
        for char_data in [ISO_8859_1, UTF_8] {
            for (wchar_data, passed_on) in [(0, UTF_16), (UTF_16, UTF_16), (7, 7)] {
                let bytes = passed(CodeSets {
                    char_data,
                    wchar_data,
                });
                let request = PassedRequest::parse(&bytes, None).expect("a request");
                assert_eq!(request.request().request_id, 8);
                let data = request.request().contexts.find(contexts::CODE_SETS);
                let named = CodeSets::from_data(data.expect("a context"));
                let expected = CodeSets {
                    char_data,
                    wchar_data: passed_on,
                };
                assert_eq!(named.expect("code sets"), expected);
            }
        }
    }
}
