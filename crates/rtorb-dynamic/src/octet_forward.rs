//! A servant that passes calls on as bytes, for an object whose IDL is not known.

use core::fmt;

use rtorb::poa::{DynamicServant, ServerCall};
use rtorb::rt::RtCurrent;
use rtorb::{ObjectRef, Orb, SystemException};
use rtorb_os::clock::monotonic_ns;
use rtorb_wire::cdr::{ByteOrder, CharCodeSet};
use rtorb_wire::{DecodeError, EncodeError, Reader, Writer};
use serde_json::{Map, Value as Json, json};

use crate::forward::Forward;
use crate::json::{EXCEPTION, hex};
use crate::recording::{NOT_DECODED, Record};
use crate::request::Failure;
use crate::servant::Servant as _;
use crate::types::Types;

/// Makes the same request to a target, with the same bytes, and returns the bytes that the target returns.
///
/// The bytes of values depend on the byte order, the GIOP version, the code set and the alignment of their message. If those of
/// the client's connection and of the target's differ, the client gets MARSHAL.
pub struct OctetForward {
    forward: Forward,
    repository_id: String,
    current: RtCurrent,
    sink: Box<dyn Fn(&Record) + Send + Sync>,
}

impl OctetForward {
    /// A servant with the target of `forward`, which has the interface `repository_id`. `sink` gets a record of each call before
    /// the client gets its reply, and on the thread of the call: several at a time.
    pub fn new(
        forward: Forward,
        repository_id: &str,
        orb: &Orb,
        sink: impl Fn(&Record) + Send + Sync + 'static,
    ) -> Self {
        Self {
            forward,
            repository_id: repository_id.to_owned(),
            current: orb.rt_current(),
            sink: Box::new(sink),
        }
    }

    fn pass(
        &self,
        operation: &str,
        arguments: &Octets,
        expects_reply: bool,
    ) -> Result<Octets, OctetFailure> {
        self.forward.set_priority()?;
        let target = self.forward.target();
        if !expects_reply {
            target.invoke_oneway(operation, |w| arguments.write(w))?;
            return Ok(Octets::default());
        }
        target.invoke_raising(
            operation,
            |w| arguments.write(w),
            Octets::rest_of,
            |id, r| {
                let repository_id = id.to_owned();
                let members = Octets::rest_of(r)?;
                Ok(Some(OctetFailure::User {
                    repository_id,
                    members,
                }))
            },
        )
    }
}

impl DynamicServant for OctetForward {
    fn repository_id(&self) -> &str {
        &self.repository_id
    }

    fn is_a(&self, repository_id: &str) -> bool {
        let asked = || self.forward.target().is_a(repository_id);
        repository_id == self.repository_id || asked().unwrap_or(false)
    }

    fn dispatch(&self, operation: &str, call: &mut ServerCall<'_>) -> Result<(), SystemException> {
        let arguments = Octets::rest_of(call.arguments())?;
        let mut record = Record::begin(&self.repository_id, operation, &self.current);
        record.missing = Some(NOT_DECODED.to_owned());
        record.arguments = arguments.named();
        let begin_ns = monotonic_ns();
        let outcome = self.pass(operation, &arguments, call.expects_reply());
        record.duration_ns = monotonic_ns() - begin_ns;
        match &outcome {
            Ok(results) => record.answer = Some(Json::Object(results.named())),
            Err(failure) => record.raises = failure.to_json(),
        }
        (self.sink)(&record);
        match outcome {
            Ok(results) => call.reply(|w| results.write(w)),
            Err(OctetFailure::User {
                repository_id,
                members,
            }) => call.raise_with(&repository_id, |w| members.write(w)),
            Err(OctetFailure::System(exception)) => Err(exception),
        }
    }

    fn interface_definition(&self) -> Option<ObjectRef> {
        self.forward.interface_definition()
    }
}

impl fmt::Debug for OctetForward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OctetForward")
            .field("forward", &self.forward)
            .field("repository_id", &self.repository_id)
            .finish_non_exhaustive()
    }
}

/// The encoded values of a message, and the form of the message. There is no form without bytes.
#[derive(Default)]
struct Octets {
    octets: Vec<u8>,
    form: Option<Form>,
}

/// The properties of a message that the bytes of values depend on.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Form {
    order: ByteOrder,
    giop_minor: u8,
    /// The position of the first byte, modulo the largest alignment.
    phase: usize,
    /// `None` if all bytes are ASCII, which every code set has.
    char_code_set: Option<CharCodeSet>,
}

impl Octets {
    /// All that is not read yet.
    fn rest_of(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (position, char_code_set) = (r.position(), r.char_code_set());
        let octets = r.take(r.remaining())?.to_vec();
        let form = Form {
            order: r.order(),
            giop_minor: r.giop_minor(),
            phase: position % ALIGNMENT_MAX,
            char_code_set: (!octets.is_ascii()).then_some(char_code_set),
        };
        let form = (!octets.is_empty()).then_some(form);
        Ok(Self { octets, form })
    }

    fn write(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        let Some(form) = self.form else {
            return Ok(());
        };
        let own = Form {
            order: w.order(),
            giop_minor: w.giop_minor(),
            phase: w.position() % ALIGNMENT_MAX,
            char_code_set: form.char_code_set.map(|_| w.char_code_set()),
        };
        if own != form {
            return Err(EncodeError::OtherForm);
        }
        w.octets(&self.octets)
    }

    /// The bytes as the member of an object, if there are any.
    fn named(&self) -> Map<String, Json> {
        let octets = Some(&self.octets).filter(|octets| !octets.is_empty());
        let named = octets.map(|octets| (OCTETS.to_owned(), json!(hex(octets))));
        named.into_iter().collect()
    }
}

/// Why an operation returns nothing.
enum OctetFailure {
    User {
        repository_id: String,
        members: Octets,
    },
    System(SystemException),
}

impl From<SystemException> for OctetFailure {
    fn from(exception: SystemException) -> Self {
        Self::System(exception)
    }
}

impl OctetFailure {
    fn to_json(&self) -> Option<Json> {
        match self {
            Self::User {
                repository_id,
                members,
            } => {
                let mut object = members.named();
                object.insert(EXCEPTION.to_owned(), json!(repository_id));
                Some(Json::Object(object))
            }
            Self::System(exception) => {
                let failure = Failure::from(exception.clone());
                failure.to_json(&Types::default()).ok()
            }
        }
    }
}

/// The name of the bytes in a record.
const OCTETS: &str = "octets";
/// The largest alignment of a value in CDR.
const ALIGNMENT_MAX: usize = 8;
