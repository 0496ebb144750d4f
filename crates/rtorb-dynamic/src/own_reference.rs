//! A server's own reference in JSON, as `IOR:self`.

use std::sync::{Arc, OnceLock};

use rtorb_wire::ior::{IiopProfile, Ior, ProfileBody, TaggedProfile};
use rtorb_wire::url::ObjectUrl;
use serde_json::Value as Json;

/// The reference of the server that reads or writes the JSON, which names it [`SELF`](Self::SELF).
///
/// So a recorded session has the same JSON, whichever server replays it. All clones are the same reference.
#[derive(Clone, Debug, Default)]
pub struct OwnReference(Arc<OnceLock<Ior>>);

impl OwnReference {
    /// The text that stands for the reference.
    pub const SELF: &str = "IOR:self";

    /// Sets the reference, if none is set.
    pub fn set(&self, ior: &Ior) {
        self.0.get_or_init(|| ior.clone());
    }

    /// Replaces the reference by its name, everywhere in `json`.
    pub(crate) fn name_in(&self, json: &mut Json) {
        let Some(own) = self.0.get() else { return };
        each_string(json, &|text| match ObjectUrl::parse(text) {
            Ok(ObjectUrl::Ior(ior)) => is_same_object(own, &ior).then(|| Self::SELF.to_owned()),
            _ => None,
        });
    }

    /// Replaces the name by the reference, everywhere in `json`.
    pub(crate) fn resolve_in(&self, json: &mut Json) {
        let Some(own) = self.0.get() else { return };
        each_string(json, &|text| (text == Self::SELF).then(|| own.to_string()));
    }
}

/// The same reference with another object key, which is bound to the object.
pub fn with_object_key(ior: &Ior, key: &str) -> Ior {
    let changed = |profile: &TaggedProfile| {
        let object_key = key.as_bytes().to_vec();
        match ProfileBody::from_tagged(profile).ok()? {
            ProfileBody::Iiop(mut it) => {
                it.object_key = object_key;
                it.to_tagged().ok()
            }
            ProfileBody::Uiop(mut it) => {
                it.object_key = object_key;
                it.to_tagged().ok()
            }
            ProfileBody::Shmiop(mut it) => {
                it.object_key = object_key;
                it.to_tagged().ok()
            }
            _ => None,
        }
    };
    let profiles = ior.profiles.iter();
    Ior {
        type_id: ior.type_id.clone(),
        profiles: profiles
            .map(|it| changed(it).unwrap_or_else(|| it.clone()))
            .collect(),
    }
}

/// True if both references lead to one object; their types may differ.
fn is_same_object(one: &Ior, other: &Ior) -> bool {
    let place = |it: IiopProfile| (it.host, it.port, it.object_key);
    let of_one: Vec<_> = one.iiop_profiles().map(place).collect();
    one.profiles == other.profiles || other.iiop_profiles().any(|it| of_one.contains(&place(it)))
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
