//! Records of calls whose messages a server has copied itself.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

use rtorb::Orb;
use rtorb::giop::{PassedReply, PassedRequest};
use rtorb::recorder::CopiedCall;
use rtorb_os::clock::monotonic_ns;
use rtorb_wire::Reader;
use rtorb_wire::code_sets::{self, CodeSets};
use rtorb_wire::giop::ReplyStatus;
use serde_json::{Map, Value as Json};

use crate::interface::{Interface, Operation};
use crate::own_reference::OwnReference;
use crate::proxy::{
    OF_EVERY_OBJECT, UNKNOWN_CODE_SET, UNKNOWN_OPERATION, arguments, bytes_member, describe,
};
use crate::recording::{NOT_DECODED, Record, named};
use crate::types::Types;

/// Makes records of the calls that a [`CallReader`](rtorb::recorder::CallReader) reads.
///
/// A call is decoded by the interface that the object's servant names; if no IDL has it, by the one that was stated for all. What cannot be
/// decoded is recorded as bytes with the reason, as a [`Proxy`](crate::Proxy) does.
pub struct CallDecoder {
    orb: Orb,
    types: Arc<Types>,
    stated: Option<Arc<Interface>>,
    own: OwnReference,
    /// The time of day at the moment 0 of CLOCK_MONOTONIC, in ns since 1970.
    epoch_ns: i128,
    /// The texts of object keys.
    keys: HashMap<Vec<u8>, String>,
}

impl CallDecoder {
    /// Decodes by these types. References in values belong to `orb`.
    pub fn new(orb: &Orb, types: Arc<Types>) -> Self {
        let now = jiff::Timestamp::now().as_nanosecond();
        Self {
            orb: orb.clone(),
            types,
            stated: None,
            own: OwnReference::default(),
            epoch_ns: now - i128::from(monotonic_ns()),
            keys: HashMap::new(),
        }
    }

    /// Sets the interface of objects whose own is in no IDL.
    #[must_use]
    pub fn with_interface(mut self, stated: Arc<Interface>) -> Self {
        self.stated = Some(stated);
        self
    }

    /// Makes the record of a call. `None` for an operation that every object has, such as `_is_a`.
    pub fn record(&mut self, call: &CopiedCall) -> Option<Record> {
        let mut record = Record {
            interface: call.repository_id.clone(),
            start: self.time_of_day(call.began_ns),
            duration_ns: call.ended_ns.saturating_sub(call.began_ns),
            priority: call.priority,
            ..Record::default()
        };
        let Some(message) = &call.request else {
            record.missing = Some(NOT_WHOLE.to_owned());
            return Some(record);
        };
        let request = match PassedRequest::parse(message, call.code_sets) {
            Ok(request) => request,
            Err(error) => {
                record.missing = Some(format!("the request cannot be read: {error}"));
                return Some(record);
            }
        };
        let operation = String::from_utf8_lossy(request.request().operation);
        if OF_EVERY_OBJECT.contains(&&*operation) {
            return None;
        }
        record.operation = operation.into_owned();
        let key = request.request().target.object_key().unwrap_or_default();
        record.object = Some(self.key_text(key));
        let interface = self.types.interface_by_id(&call.repository_id);
        let interface = interface.or(self.stated.as_ref());
        if let Some(interface) = interface {
            record.interface.clone_from(&interface.repository_id);
        }
        let known = interface.and_then(|it| it.operation(&record.operation));
        // In a request, the name of an attribute is not an operation.
        let known = known.filter(|it| it.name == record.operation);
        let is_interface_known = interface.is_some();
        self.fill(
            &mut record,
            &request,
            call,
            known.as_deref(),
            is_interface_known,
        );
        Some(record)
    }

    /// Puts the values of a call into its record.
    fn fill(
        &self,
        record: &mut Record,
        request: &PassedRequest<'_>,
        call: &CopiedCall,
        known: Option<&Operation>,
        is_interface_known: bool,
    ) {
        let code_set = code_sets::accept(call.code_sets.unwrap_or(CodeSets {
            char_data: 0,
            wchar_data: 0,
        }));
        let context = self.orb.reader_context();
        let decoded = match (known, &code_set) {
            (Some(operation), Ok(code_set)) => {
                let mut r = request.reader().with_char_code_set(*code_set);
                r = r.with_context(context);
                arguments(operation, &self.types, &mut r)
                    .map(|values| named(operation, &self.own, values))
            }
            (Some(_), Err(_)) => Err(UNKNOWN_CODE_SET.to_owned()),
            (None, _) if is_interface_known => Err(UNKNOWN_OPERATION.to_owned()),
            (None, _) => Err(NOT_DECODED.to_owned()),
        };
        match decoded {
            Ok(values) => record.arguments = values,
            Err(reason) => {
                record.arguments = bytes_member(request.body());
                record.missing = Some(reason);
            }
        }
        if call.is_deferred {
            record.missing.get_or_insert(DEFERRED.to_owned());
            return;
        }
        if call.reply.is_empty() {
            record.answer = Some(Json::Null);
            return;
        }
        let known = known.filter(|_| code_set.is_ok());
        let described = PassedReply::copy(&call.reply)
            .map_err(|error| error.to_string())
            .and_then(|reply| {
                let (header, r) = reply.read().map_err(|error| error.to_string())?;
                if !ENDINGS.contains(&header.status) {
                    return Err(FORWARDED.to_owned());
                }
                let mut r: Reader<'_> = r.with_char_code_set(code_set.unwrap_or_default());
                r = r.with_context(context);
                let known = known.map(|operation| (operation, &*self.types));
                describe(record, known, &self.own, header.status, &mut r)
            });
        if let Err(reason) = described {
            record.missing.get_or_insert(reason);
        }
    }

    fn time_of_day(&self, at_ns: u64) -> String {
        let since_1970 = self.epoch_ns + i128::from(at_ns);
        let time = jiff::Timestamp::from_nanosecond(since_1970);
        time.map_or_else(|_| String::new(), |time| time.to_string())
    }

    /// The key of an object as a `corbaloc:` URL has it.
    fn key_text(&mut self, key: &[u8]) -> String {
        if let Some(text) = self.keys.get(key) {
            return text.clone();
        }
        let text = escaped(key);
        if self.keys.len() < KEYS_MAX {
            self.keys.insert(key.to_vec(), text.clone());
        }
        text
    }
}

impl core::fmt::Debug for CallDecoder {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("CallDecoder").finish_non_exhaustive()
    }
}

/// Keeps the lines of a recorded session that are calls of the object with that key; others become empty, so that lines keep their
/// numbers.
pub fn session_of(text: &str, object: &str) -> String {
    let of_object = |line: &&str| {
        serde_json::from_str::<Map<String, Json>>(line)
            .is_ok_and(|record| record.get("object").is_none_or(|it| it == object))
    };
    let lines = text.lines();
    let kept = lines.map(|line| if of_object(&line) { line } else { "" });
    kept.fold(String::new(), |text, line| text + line + "\n")
}

/// Returns the keys of the objects in a recorded session, in their order.
pub fn objects_of(text: &str) -> Vec<String> {
    let records = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Record>(line).ok());
    let mut objects: Vec<String> = records.filter_map(|record| record.object).collect();
    objects.sort_unstable();
    objects.dedup();
    objects
}

fn escaped(key: &[u8]) -> String {
    key.iter().fold(String::new(), |mut text, byte| {
        if byte.is_ascii_alphanumeric() || PLAIN.contains(byte) {
            text.push(char::from(*byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(text, "%{byte:02x}");
        }
        text
    })
}

/// The characters that a `corbaloc:` URL has unescaped, besides letters and digits.
const PLAIN: &[u8] = b";/:?@&=+$,-_.!~*'()";
/// The replies that end a call.
const ENDINGS: [ReplyStatus; 3] = [
    ReplyStatus::NoException,
    ReplyStatus::UserException,
    ReplyStatus::SystemException,
];
const FORWARDED: &str = "the client was forwarded to another place";
const NOT_WHOLE: &str = "the request was not whole in memory";
const DEFERRED: &str = "another thread has sent the reply, which is not copied";
/// The most texts of keys that are kept.
const KEYS_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_written_as_in_a_url() {
        assert_eq!(escaped(b"plant/valve-1"), "plant/valve-1");
        assert_eq!(escaped(&[0, b'a', 0xff, b' ', b'%']), "%00a%ff%20%25");
    }

    #[test]
    fn the_lines_of_another_object_are_left_out_and_the_others_keep_their_numbers() {
        let line = |object: &str| {
            let record = Record {
                object: Some(object.to_owned()),
                ..Record::default()
            };
            serde_json::to_string(&record).expect("a line")
        };
        let text = [line("a"), line("b"), line("a")].join("\n");
        assert_eq!(objects_of(&text), ["a", "b"]);
        assert_eq!(session_of(&text, "b"), format!("\n{}\n\n", line("b")));
    }
}
