//! Turns the text of a reference into the reference.

use super::Orb;
use super::config_file::read_bounded;
use crate::exception::{ExceptionKind, SystemException};
use crate::reference::ObjectRef;
use crate::wait;
use rtorb_wire::connection::Deadline;
use rtorb_wire::ior::Ior;
use rtorb_wire::url::{Location, NameComponent, ObjectUrl, UrlError, parse_name};
use rtorb_wire::{Decode, Encode, EncodeError, Writer};
use std::path::Path;

/// Returns the object that a text names. Reads files and asks naming contexts.
pub(super) fn resolve(orb: &Orb, text: &str) -> Result<ObjectRef, SystemException> {
    resolve_within(orb, text, Left::whole(orb))
}

/// Returns the object registered under a name in this ORB.
pub(super) fn resolve_initial(orb: &Orb, name: &str) -> Result<ObjectRef, SystemException> {
    resolve_initial_within(orb, name, Left::whole(orb))
}

/// What is left for resolving one text.
#[derive(Clone, Copy)]
struct Left {
    indirections: usize,
    /// When the last call to a naming context has to end, if the application chose a timeout.
    deadline: Option<Deadline>,
}

impl Left {
    fn whole(orb: &Orb) -> Self {
        let timeout = orb.core.client.chosen_timeout();
        Self {
            indirections: INDIRECTIONS_MAX,
            deadline: timeout.map(|timeout| wait::deadline(Some(timeout))),
        }
    }

    fn after_one(self) -> Result<Self, SystemException> {
        let indirections = self.indirections.checked_sub(1);
        Ok(Self {
            indirections: indirections.ok_or(BAD_SPECIFIC_PART)?,
            ..self
        })
    }
}

/// Bound on names and files that refer to each other, so that a circle ends.
const INDIRECTIONS_MAX: usize = 8;

fn resolve_within(orb: &Orb, text: &str, left: Left) -> Result<ObjectRef, SystemException> {
    let left = left.after_one()?;
    match ObjectUrl::parse(text).map_err(malformed)? {
        ObjectUrl::Ior(ior) => of_ior(orb, ior),
        ObjectUrl::Corbaloc(location) => of_location(orb, &location, left),
        ObjectUrl::Corbaname { context, name } => {
            let context = of_location(orb, &context, left)?;
            if name.is_empty() {
                return Ok(context);
            }
            let name = parse_name(&name).map_err(malformed)?;
            match left.deadline {
                Some(deadline) => look_up(&context.with_deadline(deadline), &name),
                None => look_up(&context, &name),
            }
        }
        ObjectUrl::File { path } => {
            let text = read_bounded(Path::new(&path)).map_err(|_| BAD_SPECIFIC_PART)?;
            resolve_within(orb, &text, left)
        }
    }
}

fn resolve_initial_within(orb: &Orb, name: &str, left: Left) -> Result<ObjectRef, SystemException> {
    let text = orb.core.initial_references.lock().get(name).cloned();
    resolve_within(orb, &text.ok_or(ExceptionKind::InvObjref)?, left)
}

const BAD_SPECIFIC_PART: SystemException = SystemException::omg(ExceptionKind::BadParam, 9);

fn malformed(error: UrlError) -> SystemException {
    SystemException::omg(ExceptionKind::BadParam, error.minor())
}

fn of_ior(orb: &Orb, ior: Ior) -> Result<ObjectRef, SystemException> {
    if ior.is_nil() {
        return Err(ExceptionKind::InvObjref.into());
    }
    Ok(ObjectRef::new(orb.client(), ior))
}

fn of_location(orb: &Orb, location: &Location, left: Left) -> Result<ObjectRef, SystemException> {
    match location {
        Location::Initial(name) => resolve_initial_within(orb, name, left),
        Location::Addresses(corbaloc) => Ok(ObjectRef::new(orb.client(), corbaloc.to_ior("")?)),
    }
}

/// Resolves a name in a naming context; BAD_PARAM 10 if the name is not bound.
fn look_up(context: &ObjectRef, name: &[NameComponent]) -> Result<ObjectRef, SystemException> {
    let not_bound = SystemException::omg(ExceptionKind::BadParam, 10);
    let bound = context.invoke_raising(
        "resolve",
        |w| encode_name(name, w),
        Option::<ObjectRef>::decode,
        |_, _| Ok(Some(not_bound.clone())),
    )?;
    bound.ok_or(not_bound)
}

fn encode_name<'a>(name: &'a [NameComponent], w: &mut Writer<'a>) -> Result<(), EncodeError> {
    w.count(name.len())?;
    name.iter().try_for_each(|component| {
        component.id.encode(w)?;
        component.kind.encode(w)
    })
}
