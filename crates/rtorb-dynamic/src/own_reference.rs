//! A server's own reference in JSON, as `IOR:self`.

use std::sync::{Arc, OnceLock};

use rtorb_wire::giop::Version;
use rtorb_wire::ior::{
    IiopProfile, Ior, ProfileBody, TaggedComponent, TaggedProfile, component_tag,
};
use rtorb_wire::url::ObjectUrl;
use serde_json::Value as Json;

/// The reference of the server that reads or writes the JSON. The JSON has [`SELF`](Self::SELF) in its place.
///
/// So a recorded session has the same JSON, whichever server replays it. All clones share the reference.
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
        replace_references(json, &|text| match ObjectUrl::parse(text) {
            Ok(ObjectUrl::Ior(ior)) => is_same_object(own, &ior).then(|| Self::SELF.to_owned()),
            _ => None,
        });
    }

    /// Replaces the name by the reference, everywhere in `json`.
    pub(crate) fn resolve_in(&self, json: &mut Json) {
        let Some(own) = self.0.get() else { return };
        replace_references(json, &|text| (text == Self::SELF).then(|| own.to_string()));
    }
}

/// The reference `ior` of a proxy with the GIOP version and the code sets of `target`, so that clients use the same ones as without
/// the proxy.
///
/// If `target` comes from a URL, those of the proxy stay: a URL has no code sets, and its default version, 1.0, says nothing about
/// the server.
pub fn standing_for(ior: &Ior, target: &Ior) -> Ior {
    let mut first = None;
    changed(target, |profile| {
        first.get_or_insert_with(|| (*profile.version, profile.components.clone()));
    });
    let Some((version, components)) = first else {
        return ior.clone();
    };
    let is_code_sets = |it: &TaggedComponent| it.tag == component_tag::CODE_SETS;
    let is_of_url = target.type_id.is_empty() && components.is_empty();
    changed(ior, |profile| {
        if !is_of_url || version.minor > 0 {
            *profile.version = version.min(*profile.version);
        }
        if !is_of_url {
            profile.components.retain(|it| !is_code_sets(it));
            let of_target = components.iter().filter(|it| is_code_sets(it));
            profile.components.extend(of_target.cloned());
        }
    })
}

/// The parts that all profiles have.
struct Parts<'p> {
    version: &'p mut Version,
    components: &'p mut Vec<TaggedComponent>,
}

/// A copy of a reference, edited by `change`. Profiles of other protocols stay the same.
fn changed(ior: &Ior, mut change: impl FnMut(Parts<'_>)) -> Ior {
    macro_rules! change {
        ($profile:ident) => {{
            change(Parts {
                version: &mut $profile.version,
                components: &mut $profile.components,
            });
            $profile.to_tagged().ok()
        }};
    }
    let mut one = |profile: &TaggedProfile| match ProfileBody::from_tagged(profile).ok()? {
        ProfileBody::Iiop(mut it) => change!(it),
        ProfileBody::Uiop(mut it) => change!(it),
        ProfileBody::Shmiop(mut it) => change!(it),
        _ => None,
    };
    let profiles = ior.profiles.iter();
    Ior {
        type_id: ior.type_id.clone(),
        profiles: profiles
            .map(|it| one(it).unwrap_or_else(|| it.clone()))
            .collect(),
    }
}

/// True if both references lead to one object; their types may differ.
fn is_same_object(one: &Ior, other: &Ior) -> bool {
    let place = |it: IiopProfile| (it.host, it.port, it.object_key);
    let of_one: Vec<_> = one.iiop_profiles().map(place).collect();
    one.profiles == other.profiles || other.iiop_profiles().any(|it| of_one.contains(&place(it)))
}

/// Replaces each `IOR:` text for which `other` returns another text.
fn replace_references(json: &mut Json, other: &impl Fn(&str) -> Option<String>) {
    match json {
        Json::String(text) if text.starts_with("IOR:") => {
            if let Some(other) = other(text) {
                *text = other;
            }
        }
        Json::Array(parts) => parts
            .iter_mut()
            .for_each(|it| replace_references(it, other)),
        Json::Object(parts) => parts
            .values_mut()
            .for_each(|it| replace_references(it, other)),
        _ => {}
    }
}
