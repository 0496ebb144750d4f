//! A server's own reference in JSON, as `IOR:self`.

use std::sync::{Arc, OnceLock};

use rtorb::ObjectRef;
use rtorb_wire::ior::{IiopProfile, Ior};
use rtorb_wire::url::ObjectUrl;
use serde_json::Value as Json;

/// The reference of the server that reads or writes the JSON, which names it [`SELF`](Self::SELF).
///
/// So a recorded session has the same JSON, whichever server replays it. All clones are the same reference.
#[derive(Clone, Debug, Default)]
pub struct OwnReference(Arc<OnceLock<Own>>);

#[derive(Debug)]
struct Own {
    ior: Ior,
    /// A key that leads to the object too.
    bound_key: Option<Vec<u8>>,
}

impl OwnReference {
    /// The text that stands for the reference.
    pub const SELF: &str = "IOR:self";

    /// Sets the reference, if none is set, and the other key that is bound to the object.
    pub fn set(&self, object: &ObjectRef, bound_key: Option<&str>) {
        self.0.get_or_init(|| Own {
            ior: object.ior().clone(),
            bound_key: bound_key.map(|key| key.as_bytes().to_vec()),
        });
    }

    /// Replaces the reference by its name, everywhere in `json`.
    pub(crate) fn name_in(&self, json: &mut Json) {
        let Some(own) = self.0.get() else { return };
        each_string(json, &|text| match ObjectUrl::parse(text) {
            Ok(ObjectUrl::Ior(ior)) => own.is(&ior).then(|| Self::SELF.to_owned()),
            _ => None,
        });
    }

    /// Replaces the name by the reference, everywhere in `json`.
    pub(crate) fn resolve_in(&self, json: &mut Json) {
        let Some(own) = self.0.get() else { return };
        each_string(json, &|text| {
            (text == Self::SELF).then(|| own.ior.to_string())
        });
    }
}

impl Own {
    /// True if a reference, of whatever type, leads to the object.
    fn is(&self, ior: &Ior) -> bool {
        let is_key = |key: &[u8], own: &[u8]| key == own || Some(key) == self.bound_key.as_deref();
        let is_own = |it: &IiopProfile| {
            self.ior.iiop_profiles().any(|own| {
                (&it.host, it.port) == (&own.host, own.port)
                    && is_key(&it.object_key, &own.object_key)
            })
        };
        ior.profiles == self.ior.profiles || ior.iiop_profiles().any(|it| is_own(&it))
    }
}

/// Replaces each string for which there is another one.
fn each_string(json: &mut Json, other: &impl Fn(&str) -> Option<String>) {
    match json {
        Json::String(text) if text.starts_with("IOR:") => {
            if let Some(other) = other(text) {
                *text = other;
            }
        }
        Json::Array(parts) => parts.iter_mut().for_each(|it| each_string(it, other)),
        Json::Object(parts) => parts.values_mut().for_each(|it| each_string(it, other)),
        _ => {}
    }
}
