//! Makes a reference from its text.

use super::Orb;
use super::config_file::read_bounded;
use crate::exception::{ExceptionKind, SystemException, local};
use crate::reference::ObjectRef;
use crate::suggest;
use core::error::Error as _;
use core::fmt;
use rtorb_wire::ior::Ior;
use rtorb_wire::url::{Location, NameComponent, ObjectUrl, UrlError, parse_name};
use rtorb_wire::{Decode, Encode, EncodeError, Writer};
use std::path::Path;

/// Makes the reference that a text names. Reads files and calls naming contexts.
pub(super) fn resolve(orb: &Orb, text: &str) -> Result<ObjectRef, SystemException> {
    orb.within_timeout(|| resolve_within(orb, text, INDIRECTIONS_MAX))
}

/// Returns the object registered under a name in this ORB.
pub(super) fn resolve_initial(orb: &Orb, name: &str) -> Result<ObjectRef, SystemException> {
    orb.within_timeout(|| resolve_initial_within(orb, name, INDIRECTIONS_MAX))
}

/// The most names and files that refer to each other, so that a circle ends.
const INDIRECTIONS_MAX: usize = 8;

/// `left` is the number of names and files that it may still read.
fn resolve_within(orb: &Orb, text: &str, left: usize) -> Result<ObjectRef, SystemException> {
    let left = left.checked_sub(1);
    let left = left.ok_or(local::REFERENCES_IN_CIRCLE)?;
    match ObjectUrl::parse(text).map_err(|error| malformed(text, error))? {
        ObjectUrl::Ior(ior) => of_ior(orb, ior),
        ObjectUrl::Corbaloc(location) => of_location(orb, &location, left),
        ObjectUrl::Corbaname { context, name } => {
            let context = of_location(orb, &context, left)?;
            if name.is_empty() {
                return Ok(context);
            }
            let parsed = parse_name(&name).map_err(|error| malformed(&name, error))?;
            let not_bound = || local::NOT_BOUND.with_detail(Quoted(&name));
            look_up(&context, &parsed, not_bound)
        }
        ObjectUrl::File { path } => {
            let text = read_bounded(Path::new(&path)).map_err(|error| {
                local::UNREADABLE_FILE.with_detail(format_args!("{}: {error}", Quoted(&path)))
            })?;
            resolve_within(orb, &text, left)
        }
    }
}

fn resolve_initial_within(
    orb: &Orb,
    name: &str,
    left: usize,
) -> Result<ObjectRef, SystemException> {
    let text = orb.core.initial_references.lock().get(name).cloned();
    resolve_within(orb, &text.ok_or_else(|| not_initial(orb, name))?, left)
}

/// Returns the exception for a name that the ORB does not have, with a similar one that it has.
fn not_initial(orb: &Orb, name: &str) -> SystemException {
    let known = orb.list_initial_services();
    let near = suggest::closest(name, known.iter().map(String::as_str));
    let name = Quoted(name);
    local::NO_INITIAL_REFERENCE.with_detail(match near {
        Some(near) => format!("there is no initial reference {name}: did you mean {near:?}?"),
        None if known.is_empty() => {
            format!("there is no initial reference {name}: the ORB has none")
        }
        None => format!(
            "there is no initial reference {name}: the ORB has {}",
            known.join(", ")
        ),
    })
}

fn malformed(text: &str, error: UrlError) -> SystemException {
    let exception = SystemException::omg(ExceptionKind::BadParam, error.minor());
    match (error, error.source()) {
        // The text of the minor code says the same.
        (UrlError::Scheme, _) => exception.with_detail(Quoted(text)),
        (_, Some(source)) => exception.with_detail(format_args!("{error}: {source}")),
        (_, None) => exception.with_detail(format_args!("{}: {error}", Quoted(text))),
    }
}

/// Returns the beginning of a text, as a Rust literal.
struct Quoted<'t>(&'t str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(QUOTED_CHARACTERS_MAX) {
            Some((end, _)) => write!(f, "{:?}...", &self.0[..end]),
            None => write!(f, "{:?}", self.0),
        }
    }
}

/// The number of characters that is enough to recognise a text.
const QUOTED_CHARACTERS_MAX: usize = 60;

fn of_ior(orb: &Orb, ior: Ior) -> Result<ObjectRef, SystemException> {
    if ior.is_nil() {
        return Err(local::NIL_REFERENCE);
    }
    Ok(ObjectRef::new(orb.client(), ior))
}

fn of_location(orb: &Orb, location: &Location, left: usize) -> Result<ObjectRef, SystemException> {
    match location {
        Location::Initial(name) => resolve_initial_within(orb, name, left),
        Location::Addresses(corbaloc) => Ok(ObjectRef::new(orb.client(), corbaloc.to_ior("")?)),
    }
}

/// Resolves a name in a naming context. `not_bound` makes the exception for a name that is not bound.
fn look_up(
    context: &ObjectRef,
    name: &[NameComponent],
    not_bound: impl Fn() -> SystemException,
) -> Result<ObjectRef, SystemException> {
    let bound = context.invoke_raising(
        "resolve",
        |w| encode_name(name, w),
        Option::<ObjectRef>::decode,
        |_, _| Ok(Some(not_bound())),
    )?;
    bound.ok_or_else(not_bound)
}

fn encode_name<'a>(name: &'a [NameComponent], w: &mut Writer<'a>) -> Result<(), EncodeError> {
    w.count(name.len())?;
    name.iter().try_for_each(|component| {
        component.id.encode(w)?;
        component.kind.encode(w)
    })
}
