//! A servant that passes its calls on to another object as bytes, and records them.

use core::fmt;
use std::sync::Arc;

use rtorb::any::Value;
use rtorb::giop::{PassedReply, PassedRequest};
use rtorb::poa::{DynamicServant, ServerCall};
use rtorb::rt::{Policy, Priority, RtCurrent};
use rtorb::skeleton::PassThrough as _;
use rtorb::{ObjectRef, Orb, PoaPolicies, SystemException};
use rtorb_os::clock::monotonic_ns;
use rtorb_os::sync::Mutex;
use rtorb_wire::Reader;
use rtorb_wire::code_sets::{self, CodeSets};
use rtorb_wire::giop::{ReplyStatus, SystemExceptionBody};
use serde_json::{Map, Value as Json, json};

use crate::interface::Operation;
use crate::json::{EXCEPTION, hex, known};
use crate::own_reference::OwnReference;
use crate::recording::{NOT_DECODED, Record, named};
use crate::request::{Failure, read_exception, read_results};
use crate::search::FoundInterface;
use crate::types::Types;

/// A servant that sends each request to another object as it came, and returns the reply as it came.
///
/// Byte order, GIOP version, code sets, values of any type and depth, exceptions, and operations that every object has, such as
/// `_non_existent`, do not change. Of a deadline that says how much time is left, the target gets what is left then.
///
/// The proxy follows a LOCATION_FORWARD of the target itself, so that the client stays with the proxy. It decodes a copy for the record of the
/// call; if it cannot, the record has the bytes and the reason.
pub struct Proxy {
    target: ObjectRef,
    /// The target's references, by the code sets that clients named. Each has connections of its own.
    by_code_sets: Mutex<Vec<(Option<CodeSets>, ObjectRef)>>,
    current: RtCurrent,
    priority: Option<Priority>,
    found: Option<FoundInterface>,
    repository_id: String,
    own: OwnReference,
    sink: Box<dyn Fn(&Record) + Send + Sync>,
}

impl Proxy {
    /// A servant for the object `target`. `sink` gets the record of each call on the thread of the call, before the client gets its
    /// reply; several threads call it at a time. Operations that every object has are not recorded.
    pub fn new(
        target: ObjectRef,
        orb: &Orb,
        sink: impl Fn(&Record) + Send + Sync + 'static,
    ) -> Self {
        Self {
            repository_id: target.type_id().to_owned(),
            target,
            by_code_sets: Mutex::new(Vec::new()),
            current: orb.rt_current(),
            priority: None,
            found: None,
            own: OwnReference::default(),
            sink: Box::new(sink),
        }
    }

    /// Sets the interface by which the proxy decodes values for the records.
    #[must_use]
    pub fn with_interface(mut self, found: FoundInterface) -> Self {
        self.repository_id
            .clone_from(&found.interface.repository_id);
        self.found = Some(found);
        self
    }

    /// Sets the reference that has a name of its own in the records.
    #[must_use]
    pub fn with_own_reference(mut self, own: &OwnReference) -> Self {
        self.own = own.clone();
        self
    }

    /// Sets the priority of calls to the target. Without this, they have the priority of the client.
    #[must_use]
    pub fn with_priority(mut self, priority: Priority) -> Self {
        self.priority = Some(priority);
        self
    }

    /// The policies for the adapter of this servant: the priority model in the target's reference, if it has one. Calls then have
    /// the same priority as without the proxy.
    pub fn policies(target: &ObjectRef) -> PoaPolicies {
        let is_model = |it: &Policy| matches!(it, Policy::PriorityModel { .. });
        let model = target.policies().into_iter().find(is_model);
        let usual = PoaPolicies::default();
        match model {
            Some(model) => usual.with(model),
            None => usual,
        }
    }

    fn pass(&self, request: &PassedRequest<'_>) -> Result<Option<PassedReply>, SystemException> {
        if let Some(priority) = self.priority {
            self.current.set_the_priority(priority)?;
        }
        self.target_for(request.code_sets())?.pass(request)
    }

    /// The target's reference for clients that named these code sets.
    fn target_for(&self, code_sets: Option<CodeSets>) -> Result<ObjectRef, SystemException> {
        let mut references = self.by_code_sets.lock();
        if let Some((_, object)) = references.iter().find(|it| it.0 == code_sets) {
            return Ok(object.clone());
        }
        if references.len() >= CODE_SETS_MAX {
            // Drops the oldest. Calls in progress have a reference of their own.
            references.remove(0);
        }
        let object = self
            .target
            .set_policy_overrides(&[Policy::PrivateConnection])?;
        references.push((code_sets, object.clone()));
        Ok(object)
    }

    fn begin(&self, operation: &str, request: &PassedRequest<'_>, r: &mut Reader<'_>) -> Call {
        let mut record = Record::begin(&self.repository_id, operation, &self.current);
        let found = self.found.as_ref();
        let known = found.and_then(|it| it.interface.operation(operation));
        // In a request, the name of an attribute is not an operation.
        let known = known.filter(|it| it.name == operation);
        let code_set = match request.code_sets() {
            Some(named) => code_sets::accept(named).ok(),
            None => Some(r.char_code_set()),
        };
        let decoded = match (&known, found, code_set) {
            (Some(operation), Some(found), Some(_)) => arguments(operation, &found.types, r),
            (Some(_), Some(_), None) => Err(UNKNOWN_CODE_SET.to_owned()),
            (None, Some(_), _) => Err(UNKNOWN_OPERATION.to_owned()),
            _ => Err(NOT_DECODED.to_owned()),
        };
        match (decoded, &known) {
            (Ok(values), Some(operation)) => record.arguments = named(operation, &self.own, values),
            (Ok(_), None) => {}
            (Err(reason), _) => {
                record.arguments = bytes_member(request.body());
                record.missing = Some(reason);
            }
        }
        Call {
            record,
            operation: known.filter(|_| code_set.is_some()),
        }
    }

    /// Completes the record with the outcome. `like` is a reader of the request.
    fn end(
        &self,
        call: &mut Call,
        outcome: &Result<Option<PassedReply>, SystemException>,
        like: &Reader<'_>,
    ) {
        let record = &mut call.record;
        let read = match outcome {
            Ok(Some(reply)) => reply.read(),
            Ok(None) => {
                record.answer = Some(Json::Null);
                return;
            }
            Err(exception) => {
                record.raises = raised(exception.clone());
                return;
            }
        };
        let types = self.found.as_ref().map(|it| &*it.types);
        let known = call.operation.as_deref().zip(types);
        let reason = match read {
            Ok((header, r)) => {
                let mut r = r.with_char_code_set(like.char_code_set());
                if let Some(context) = like.context() {
                    r = r.with_context(context);
                }
                describe(record, known, &self.own, header.status, &mut r)
            }
            Err(error) => Err(error.to_string()),
        };
        if let Err(reason) = reason {
            record.missing.get_or_insert(reason);
        }
    }
}

impl DynamicServant for Proxy {
    fn repository_id(&self) -> &str {
        &self.repository_id
    }

    /// Never called, because a proxy passes `_is_a` on.
    fn is_a(&self, repository_id: &str) -> bool {
        repository_id == self.repository_id
    }

    fn is_proxy(&self) -> bool {
        true
    }

    fn dispatch(&self, operation: &str, call: &mut ServerCall<'_>) -> Result<(), SystemException> {
        let request = call.passed()?;
        if OF_EVERY_OBJECT.contains(&operation) {
            return match self.pass(&request)? {
                Some(reply) => call.pass_reply(&reply),
                None => Ok(()),
            };
        }
        let mut recorded = self.begin(operation, &request, call.arguments());
        let begin_ns = monotonic_ns();
        let outcome = self.pass(&request);
        recorded.record.duration_ns = monotonic_ns() - begin_ns;
        self.end(&mut recorded, &outcome, call.arguments());
        (self.sink)(&recorded.record);
        match outcome? {
            Some(reply) => call.pass_reply(&reply),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy")
            .field("target", &self.target)
            .field("repository_id", &self.repository_id)
            .finish_non_exhaustive()
    }
}

/// A call that is in progress: its record, and its operation if its values can be decoded.
struct Call {
    record: Record,
    operation: Option<Arc<Operation>>,
}

/// Puts the body of a reply into a record.
///
/// # Errors
/// The reason why the record has the bytes instead of the values.
pub(crate) fn describe(
    record: &mut Record,
    known: Option<(&Operation, &Types)>,
    own: &OwnReference,
    status: ReplyStatus,
    r: &mut Reader<'_>,
) -> Result<(), String> {
    match status {
        ReplyStatus::NoException => {
            record.answer = Some(Json::Object(bytes_member(r.buffered())));
            let mut json = results(known, r)?;
            own.name_in(&mut json);
            record.answer = Some(json);
        }
        ReplyStatus::SystemException => {
            let body = SystemExceptionBody::decode(r).map_err(|error| error.to_string())?;
            record.raises = raised(body.into());
        }
        _ => {
            let id = r.str().map_err(|error| error.to_string())?.into_owned();
            let mut bytes = bytes_member(r.buffered());
            bytes.insert(EXCEPTION.to_owned(), json!(id));
            record.raises = Some(Json::Object(bytes));
            let mut json = exception(known, &id, r)?;
            own.name_in(&mut json);
            record.raises = Some(json);
        }
    }
    Ok(())
}

/// The arguments of a request in JSON, or the reason why there is none.
pub(crate) fn arguments(
    operation: &Operation,
    types: &Types,
    r: &mut Reader<'_>,
) -> Result<Vec<Json>, String> {
    let known = known(types);
    let inputs = operation.inputs();
    let values = inputs.map(|it| {
        let decoded = Value::decode_with(&it.type_code, &known, r);
        decoded.map_err(|error| format!("the argument `{}` cannot be decoded: {error}", it.name))
    });
    let values: Vec<_> = values.collect::<Result<_, _>>()?;
    let json = operation.inputs_to_json(types, &values);
    json.map_err(|error| format!("the arguments have no JSON: {error}"))
}

/// The results in JSON, or the reason why there is none.
fn results(known: Option<(&Operation, &Types)>, r: &mut Reader<'_>) -> Result<Json, String> {
    let (operation, types) = known.ok_or(NOT_DECODED)?;
    let results = read_results(operation, types, r);
    let results = results.map_err(|error| format!("the results cannot be decoded: {error}"))?;
    let json = operation.results_to_json(types, &results);
    json.map_err(|error| format!("the results have no JSON: {error}"))
}

/// A user exception in JSON, or the reason why there is none.
fn exception(
    known: Option<(&Operation, &Types)>,
    id: &str,
    r: &mut Reader<'_>,
) -> Result<Json, String> {
    let (operation, types) = known.ok_or(NOT_DECODED)?;
    let failure = read_exception(operation, types, id, r);
    let failure = failure.map_err(|error| format!("the exception cannot be decoded: {error}"))?;
    if matches!(failure, Failure::Undeclared { .. }) {
        return Err("the type of the exception is not known".to_owned());
    }
    let json = failure.to_json(types);
    json.map_err(|error| format!("the exception has no JSON: {error}"))
}

fn raised(exception: SystemException) -> Option<Json> {
    Failure::from(exception).to_json(&Types::default()).ok()
}

/// The bytes as the member of an object, if there are any.
pub(crate) fn bytes_member(bytes: &[u8]) -> Map<String, Json> {
    let bytes = Some(bytes).filter(|bytes| !bytes.is_empty());
    let named = bytes.map(|bytes| (OCTETS.to_owned(), json!(hex(bytes))));
    named.into_iter().collect()
}

/// The operations that the ORB of an ordinary servant serves itself.
pub(crate) const OF_EVERY_OBJECT: [&str; 7] = [
    "_is_a",
    "_non_existent",
    "_not_existent",
    "_repository_id",
    "_interface",
    "_component",
    "_domain_managers",
];
/// The name of the bytes in a record.
const OCTETS: &str = "octets";
pub(crate) const UNKNOWN_OPERATION: &str = "the interface has no such operation";
pub(crate) const UNKNOWN_CODE_SET: &str = "the client's code set is not known here";
/// The most pairs of code sets that the clients of one proxy may name.
const CODE_SETS_MAX: usize = 32;
