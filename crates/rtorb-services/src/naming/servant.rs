//! The servant of a context: CosNaming's operations.

use super::context::{Lookup, Naming, OBJECT_NOT_EXIST, Resolved, context_of};
use super::draft::{Change, ChangeOutcome};
use super::exception::NamingException;
use super::federation::ForwardKind;
use super::names;
use super::tree::{ContextId, View};
use crate::stubs::naming::cos_naming::naming_context::InvalidName;
use crate::stubs::naming::cos_naming::naming_context_ext::InvalidAddress;
use crate::stubs::naming::cos_naming::{
    BindingIterator, BindingList, Name, NameComponent, NamingContext,
    NamingContextBindContextError, NamingContextBindError, NamingContextBindNewContextError,
    NamingContextDestroyError, NamingContextExt, NamingContextExtResolveStrError,
    NamingContextExtServant, NamingContextExtToNameError, NamingContextExtToString_Error,
    NamingContextExtToUrlError, NamingContextRebindContextError, NamingContextRebindError,
    NamingContextResolveError, NamingContextServant, NamingContextUnbindError,
};
use rtorb::cdr::{Decode, DecodeError, Encode, Reader};
use rtorb::exception::local;
use rtorb::skeleton::{ServedBy, ServerCall};
use rtorb::url::{self, UrlError};
use rtorb::{ObjectRef, PoaError, SystemException};
use std::sync::Arc;

/// Lets requests to contexts in. A context needs no activation, now or later.
pub(super) fn open(naming: &Arc<Naming>) -> Result<(), PoaError> {
    let naming_of_contexts = Arc::clone(naming);
    let locate = move |id: &[u8]| {
        let naming = &naming_of_contexts;
        let context = context_of(id).filter(|id| naming.tree.lock().has_context(*id));
        Ok(DirectContext(ContextServant {
            naming: Arc::clone(naming),
            context: context.ok_or(OBJECT_NOT_EXIST)?,
        }))
    };
    naming
        .poa
        .set_servant_locator::<NamingContextExt, _, _>(locate)
}

/// The servant of a context.
#[derive(Debug)]
pub(super) struct ContextServant {
    naming: Arc<Naming>,
    context: ContextId,
}

impl ContextServant {
    /// Makes a change here, or forwards it to the server that the name leads to.
    fn change<E>(
        &self,
        name: &[NameComponent],
        change: Change,
        forward: impl FnOnce(&NamingContext, &[NameComponent]) -> Result<(), E>,
    ) -> Result<(), NamingException>
    where
        NamingException: From<E>,
    {
        let name = names::checked(names::from_wire(name), &self.naming.config)?;
        match self.naming.change(self.context, &name, change)? {
            Lookup::Here(_) => Ok(()),
            Lookup::Elsewhere(there, at) => {
                let rest = names::to_wire(&name[at..]);
                self.naming
                    .federation
                    .forward(&there, rest, ForwardKind::Change, forward)
            }
        }
    }

    fn created(&self, done: ChangeOutcome) -> NamingContext {
        match done {
            ChangeOutcome::Created(id) => self.naming.reference(id).into(),
            // Unreachable: a change that makes a context returns its id.
            ChangeOutcome::Changed => self.naming.reference(self.context).into(),
        }
    }

    fn object(&self, resolved: Resolved) -> Result<Option<ObjectRef>, SystemException> {
        match resolved {
            Resolved::Bound(ior) => Ok(Some(
                self.naming.federation.context(&ior)?.as_object().clone(),
            )),
            Resolved::Object(object) => Ok(object),
        }
    }
}

impl NamingContextServant for ContextServant {
    fn bind(
        &self,
        n: &[NameComponent],
        obj: Option<&ObjectRef>,
    ) -> Result<(), NamingContextBindError> {
        let target = self.naming.object(obj)?;
        let forward = |there: &NamingContext, rest: &[NameComponent]| there.bind(rest, obj);
        Ok(self.change(n, Change::Bind(target), forward)?)
    }

    fn rebind(
        &self,
        n: &[NameComponent],
        obj: Option<&ObjectRef>,
    ) -> Result<(), NamingContextRebindError> {
        let target = self.naming.object(obj)?;
        let forward = |there: &NamingContext, rest: &[NameComponent]| there.rebind(rest, obj);
        Ok(self.change(n, Change::RebindObject(target), forward)?)
    }

    fn bind_context(
        &self,
        n: &[NameComponent],
        nc: Option<&NamingContext>,
    ) -> Result<(), NamingContextBindContextError> {
        let target = self.naming.context(nc)?;
        let forward = |there: &NamingContext, rest: &[NameComponent]| there.bind_context(rest, nc);
        Ok(self.change(n, Change::Bind(target), forward)?)
    }

    fn rebind_context(
        &self,
        n: &[NameComponent],
        nc: Option<&NamingContext>,
    ) -> Result<(), NamingContextRebindContextError> {
        let target = self.naming.context(nc)?;
        let forward =
            |there: &NamingContext, rest: &[NameComponent]| there.rebind_context(rest, nc);
        Ok(self.change(n, Change::RebindContext(target), forward)?)
    }

    fn resolve(&self, n: &[NameComponent]) -> Result<Option<ObjectRef>, NamingContextResolveError> {
        let resolved = self.naming.resolve(self.context, names::from_wire(n))?;
        Ok(self.object(resolved)?)
    }

    fn unbind(&self, n: &[NameComponent]) -> Result<(), NamingContextUnbindError> {
        Ok(self.change(n, Change::Unbind, NamingContext::unbind)?)
    }

    fn new_context(&self) -> Result<Option<NamingContext>, SystemException> {
        match self.naming.change(self.context, &[], Change::NewContext) {
            Ok(Lookup::Here(done)) => Ok(Some(self.created(done))),
            Ok(Lookup::Elsewhere(..)) => Err(local::CONTRADICTION),
            Err(NamingException::System(exception)) => Err(exception),
            Err(_) => Err(local::CONTRADICTION),
        }
    }

    fn bind_new_context(
        &self,
        n: &[NameComponent],
    ) -> Result<Option<NamingContext>, NamingContextBindNewContextError> {
        let name = names::checked(names::from_wire(n), &self.naming.config)?;
        match self
            .naming
            .change(self.context, &name, Change::BindNewContext)?
        {
            Lookup::Here(done) => Ok(Some(self.created(done))),
            Lookup::Elsewhere(there, at) => {
                let rest = names::to_wire(&name[at..]);
                let forward = NamingContext::bind_new_context;
                let federation = &self.naming.federation;
                Ok(federation.forward(&there, rest, ForwardKind::Change, forward)?)
            }
        }
    }

    fn destroy(&self) -> Result<(), NamingContextDestroyError> {
        self.naming.change(self.context, &[], Change::Destroy)?;
        Ok(())
    }

    fn list(
        &self,
        how_many: u32,
    ) -> Result<(BindingList, Option<BindingIterator>), SystemException> {
        self.naming.list(self.context, how_many)
    }
}

impl NamingContextExtServant for ContextServant {
    fn to_string_(&self, n: &[NameComponent]) -> Result<String, NamingContextExtToString_Error> {
        if n.is_empty() {
            Err(InvalidName.into())
        } else {
            Ok(url::format_name(&names::from_wire(n)))
        }
    }

    fn to_name(&self, sn: &str) -> Result<Name, NamingContextExtToNameError> {
        Ok(names::to_wire(&names::parse(sn)?))
    }

    fn to_url(&self, addr: &str, sn: &str) -> Result<String, NamingContextExtToUrlError> {
        // A `corbaname:` without a name means the context.
        if !sn.is_empty() {
            names::parse(sn)?;
        }
        url::format_corbaname(addr, sn).map_err(|_: UrlError| InvalidAddress.into())
    }

    fn resolve_str(&self, sn: &str) -> Result<Option<ObjectRef>, NamingContextExtResolveStrError> {
        let name = names::parse(sn)?;
        let resolved = self.naming.resolve(self.context, name)?;
        Ok(self.object(resolved)?)
    }
}

/// A context whose `resolve` sends the bound reference unchanged, without decoding it, and whose `list` sends every name.
#[derive(Debug)]
pub(super) struct DirectContext(ContextServant);

impl ServedBy<DirectContext> for NamingContextExt {
    fn find_operation(name: &[u8]) -> Option<usize> {
        <Self as ServedBy<ContextServant>>::find_operation(name)
    }

    fn dispatch(
        servant: &DirectContext,
        operation: usize,
        call: &mut ServerCall<'_>,
    ) -> Result<(), SystemException> {
        let ContextServant { naming, context } = &servant.0;
        let is = |name: &[u8]| {
            <Self as ServedBy<DirectContext>>::find_operation(name) == Some(operation)
        };
        if is(b"list") {
            let code_set = call.arguments().char_code_set();
            let how_many = call.argument()?;
            let (mut listed, others) = naming.list(*context, how_many)?;
            names::escape_unsendable(&mut listed, code_set);
            return call.reply(|w| {
                listed.encode(w)?;
                others.encode(w)
            });
        }
        let name = if is(b"resolve") {
            Ok(read_name(call.arguments())?)
        } else if is(b"resolve_str") {
            let text = call.arguments().str()?;
            names::parse(&text)
        } else {
            return <Self as ServedBy<ContextServant>>::dispatch(&servant.0, operation, call);
        };
        let resolved = name
            .map_err(NamingException::InvalidName)
            .and_then(|name| naming.resolve(*context, name));
        match resolved {
            Ok(Resolved::Bound(ior)) => call.reply(|w| ior.encode(w)),
            Ok(Resolved::Object(object)) => call.reply(|w| object.encode(w)),
            Err(NamingException::NotFound(exception)) => call.raise(&exception),
            Err(NamingException::CannotProceed(exception)) => call.raise(&exception),
            Err(NamingException::InvalidName(exception)) => call.raise(&exception),
            Err(NamingException::System(exception)) => Err(exception),
            Err(NamingException::AlreadyBound(_) | NamingException::NotEmpty(_)) => {
                Err(local::CONTRADICTION)
            }
        }
    }
}

/// Decodes a name.
fn read_name(r: &mut Reader<'_>) -> Result<Vec<url::NameComponent>, DecodeError> {
    let count = r.count(COMPONENT_BYTES_MIN)?;
    (0..count)
        .map(|_| {
            Ok(url::NameComponent {
                id: String::decode(r)?,
                kind: String::decode(r)?,
            })
        })
        .collect()
}

/// The size of two empty strings.
const COMPONENT_BYTES_MIN: usize = 10;
