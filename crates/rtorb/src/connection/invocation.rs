//! An invocation of an object by one of its routes. It writes the request.

use super::Channel;
use super::client::{Client, ClientCore};
use super::route::Route;
use crate::clock::{known_utc_origin, monotonic_ns, utc_origin};
use crate::deadline::NONE_NS;
use crate::distributable::ThreadCall;
use crate::exception::{Cause, ExceptionKind, Phase, SystemException};
use crate::outgoing::CancelRequest;
use crate::realtime::Priority;
use core::cell::RefCell;
use rtorb_wire::code_sets;
use rtorb_wire::connection::Deadline;
use rtorb_wire::giop::contexts::{self, CodeSets};
use rtorb_wire::giop::{
    self, ContextBuffer, END_TIMES_BYTES, PassedDeadline, PassedRequest, PassedTarget,
    REMAINING_TIME_BYTES, RequestPrefix, RequestStart, Response, ServiceContext, UtcTime,
    remaining_time,
};
use rtorb_wire::ior::Ior;
use rtorb_wire::{EncodeError, Writer};
use std::sync::Arc;

/// An invocation of an object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Invocation<'x> {
    pub(crate) core: &'x Arc<ClientCore>,
    /// The client for references in the reply.
    pub(crate) client: &'x Client,
    pub(crate) kind: InvocationKind<'x>,
    pub(crate) operation: &'x str,
    pub(crate) response: Response,
    /// The deadline of the whole call: connecting, further routes, forwards and repetitions share it.
    pub(crate) deadline: Deadline,
    /// True if the deadline may be near or have passed. The watchdog then checks the wait at once.
    pub(crate) is_delayed: bool,
    /// The deadline in the request; [`NONE_NS`] for none.
    pub(crate) expiry_ns: u64,
    /// The number of routes that the call may still try, this one included. They share its time.
    pub(crate) routes_left: u32,
    pub(crate) route: &'x Route,
    pub(crate) channel: Channel,
    /// The CORBA priority to send with the request (service context RTCorbaPriority).
    pub(crate) priority: Option<Priority>,
}

/// The kind of request that an invocation sends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum InvocationKind<'x> {
    /// An operation.
    Operation,
    /// An operation with service contexts of a distributable thread or of interceptors.
    WithContexts(&'x AddedContexts<'x>),
    /// A LocateRequest. Until the server knows the code sets, the operation of the invocation is called instead, because a
    /// LocateRequest has no service contexts.
    Locate {
        /// The priority of the call, if it is not the calling thread's.
        at: Option<Priority>,
        /// The code point of the connection, if an operation states it.
        dscp: Option<u8>,
    },
    /// `_bind_priority_band`, which tells the server the band of the connection.
    BindBand,
    /// A request of another client, which is sent unchanged, but for the time that is left of its deadline. Its results are the body of any
    /// reply except a forward.
    Passed(&'x PassedRequest<'x>),
    /// A request of this client that was sent before. It states what is left of its deadline now.
    SentAgain(&'x PassedRequest<'x>),
}

/// The service contexts of a request that few requests have.
#[derive(Debug)]
pub(crate) struct AddedContexts<'x> {
    /// The distributable thread that calls.
    pub(crate) thread: Option<&'x ThreadCall>,
    /// The request as interceptors see it.
    pub(crate) intercepted: Option<InterceptedRequest<'x>>,
}

/// A request that interceptors see.
#[derive(Debug)]
pub(crate) struct InterceptedRequest<'x> {
    /// The contexts that they have added.
    pub(crate) contexts: &'x ContextBuffer,
    /// The location to which the server has forwarded the client.
    pub(crate) forward: RefCell<Option<Box<Ior>>>,
}

impl<'x> AddedContexts<'x> {
    /// Makes the service contexts of a request that interceptors see. `thread` is the distributable thread that makes it.
    pub(crate) fn of_interceptors(
        contexts: &'x ContextBuffer,
        thread: Option<&'x ThreadCall>,
    ) -> Self {
        Self {
            thread,
            intercepted: Some(InterceptedRequest {
                contexts,
                forward: RefCell::new(None),
            }),
        }
    }

    /// Returns the location to which the server has forwarded the client of a request that interceptors see.
    pub(crate) fn forward(&self) -> Option<Box<Ior>> {
        self.intercepted.as_ref()?.forward.take()
    }
}

impl<'x> InvocationKind<'x> {
    /// Returns the distributable thread that calls.
    #[inline]
    pub(crate) fn thread(self) -> Option<&'x ThreadCall> {
        match self {
            Self::WithContexts(added) => added.thread,
            _ => None,
        }
    }

    /// Returns the request for interceptors.
    #[inline]
    pub(crate) fn intercepted(self) -> Option<&'x InterceptedRequest<'x>> {
        match self {
            Self::WithContexts(added) => added.intercepted.as_ref(),
            _ => None,
        }
    }
}

/// The context that marks a collocated request as seen by interceptors: the server looks for them only where a request has contexts.
const INTERCEPTED: ServiceContext<'static> = ServiceContext {
    id: 0x7274_6201,
    data: &[],
};

/// The most contexts of the ORB itself.
const OWN_CONTEXTS_MAX: usize = 7;

/// Writes the arguments. It runs again if the request has to be sent again.
pub(crate) type Arguments<'f, 'a> = &'f dyn Fn(&mut Writer<'a>) -> Result<(), EncodeError>;

impl<'x> Invocation<'x> {
    /// Returns the same invocation, of a call that is delayed.
    #[must_use]
    pub(super) fn delayed(&self) -> Self {
        Self {
            is_delayed: true,
            ..*self
        }
    }

    /// Returns the time at which the call began, or the current time if the call is delayed.
    #[inline]
    pub(super) fn now_ns(&self) -> u64 {
        if self.is_delayed {
            monotonic_ns()
        } else {
            self.deadline.begun_ns()
        }
    }

    /// Returns TIMEOUT, COMPLETED_NO, if the deadline has passed before the request is sent.
    #[cold]
    pub(crate) fn check_time(&self, phase: Phase) -> Result<(), SystemException> {
        let now_ns = monotonic_ns();
        if !self.deadline.has_passed(now_ns) {
            return Ok(());
        }
        let timeout = SystemException::omg(ExceptionKind::Timeout, 2);
        Err(timeout.with_cause(Cause {
            phase,
            endpoint: Some(Arc::clone(&self.route.endpoint.endpoint)),
            elapsed: self.deadline.elapsed(now_ns),
            errno: None,
        }))
    }
}

impl Invocation<'_> {
    /// Returns the message that cancels its request.
    #[cold]
    pub(super) fn cancel_request(&self, request_id: u32) -> CancelRequest {
        CancelRequest::new(self.route.version, self.core.byte_order, request_id)
    }

    /// Makes a writer into `buffer` for messages of this invocation's connection.
    #[inline]
    pub(super) fn writer<'a>(&self, buffer: Vec<u8>) -> Writer<'a> {
        Writer::new(buffer, self.core.limits.message_bytes_max)
            .with_order(self.core.byte_order)
            .with_char_code_set(self.route.endpoint.char_code_set)
    }

    /// Writes the whole request.
    // Always: it is in the path of every call, and its other callers are rare.
    #[inline(always)]
    pub(super) fn encode<'a>(
        &self,
        w: &mut Writer<'a>,
        request_id: u32,
        needs_code_sets: bool,
        arguments: Arguments<'_, 'a>,
    ) -> Result<(), EncodeError> {
        let route = self.route;
        match (&route.prefix, self.kind) {
            (Some(prefix), InvocationKind::Operation) if !needs_code_sets => {
                prefix.begin_request(w, request_id, self.response, self.operation)?;
                if self.expiry_ns != NONE_NS {
                    self.add_deadline(w, prefix)?;
                } else if let Some(priority) = self.priority {
                    RequestPrefix::add_priority(w, priority.get())?;
                }
            }
            (_, InvocationKind::Locate { .. }) if !needs_code_sets => {
                return self.write_locate_request(w, request_id);
            }
            (_, InvocationKind::Passed(request)) => {
                return self.write_passed(w, request_id, request, NONE_NS);
            }
            (_, InvocationKind::SentAgain(request)) => {
                return self.write_passed(w, request_id, request, self.expiry_ns);
            }
            _ => self.begin(w, request_id, needs_code_sets)?,
        }
        giop::encode_body(w, route.version, arguments)?;
        giop::end_message(w)
    }

    /// Writes the whole request with the service context that offers a bidirectional connection, whose data is `listen_points`.
    ///
    /// A request of another client is sent unchanged.
    #[cold]
    pub(super) fn encode_with_listen_points<'a>(
        &self,
        w: &mut Writer<'a>,
        request_id: u32,
        (needs_code_sets, listen_points): (bool, &[u8]),
        arguments: Arguments<'_, 'a>,
    ) -> Result<(), EncodeError> {
        if let InvocationKind::Passed(_) | InvocationKind::SentAgain(_) = self.kind {
            return self.encode(w, request_id, needs_code_sets, arguments);
        }
        self.begin_with_listen_points(w, request_id, needs_code_sets, Some(listen_points))?;
        giop::encode_body(w, self.route.version, arguments)?;
        giop::end_message(w)
    }

    /// Adds the service contexts of a request that has a deadline: the deadline and the priority.
    // It saves no registers, because it calls other functions only at its end.
    #[inline(never)]
    fn add_deadline(&self, w: &mut Writer<'_>, prefix: &RequestPrefix) -> Result<(), EncodeError> {
        if self.route.tells_end_time
            && self.priority.is_none()
            && !self.is_delayed
            && let Some(origin) = known_utc_origin(self.deadline.begun_ns())
            && prefix.add_end_time(w, UtcTime::after(origin, self.expiry_ns))
        {
            return Ok(());
        }
        self.add_deadline_context(w)
    }

    /// Adds the deadline in any form, and the priority.
    #[inline(never)]
    fn add_deadline_context(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        let mut room = [0; END_TIMES_BYTES];
        let deadline = self.deadline_context(&mut room);
        let priority = self.priority.map(|own| contexts::priority(own.get()));
        match &priority {
            None => RequestPrefix::add_contexts(w, &[deadline]),
            Some(data) => {
                let id = contexts::RT_CORBA_PRIORITY;
                RequestPrefix::add_contexts(w, &[deadline, ServiceContext { id, data }])
            }
        }
    }

    /// Makes the service context of the deadline, in a form that the server can use.
    fn deadline_context<'r>(&self, room: &'r mut [u8; END_TIMES_BYTES]) -> ServiceContext<'r> {
        if self.route.tells_end_time {
            *room = UtcTime::after(utc_origin(self.now_ns()), self.expiry_ns).end_times();
            return ServiceContext {
                id: contexts::INVOCATION_POLICIES,
                data: room,
            };
        }
        let data = &mut room[..REMAINING_TIME_BYTES];
        data.copy_from_slice(&remaining_time(
            self.expiry_ns.saturating_sub(self.now_ns()),
        ));
        ServiceContext {
            id: contexts::REMAINING_TIME,
            data,
        }
    }

    /// Begins a request of an old version, or one with rare service contexts.
    #[cold]
    #[inline(never)]
    fn begin(
        &self,
        w: &mut Writer<'_>,
        request_id: u32,
        needs_code_sets: bool,
    ) -> Result<(), EncodeError> {
        self.begin_with_listen_points(w, request_id, needs_code_sets, None)
    }

    /// As [`begin`](Self::begin), with the data of the service context that offers a bidirectional connection.
    #[cold]
    fn begin_with_listen_points(
        &self,
        w: &mut Writer<'_>,
        request_id: u32,
        needs_code_sets: bool,
        listen_points: Option<&[u8]>,
    ) -> Result<(), EncodeError> {
        let code_sets = CodeSets {
            char_data: self.route.endpoint.char_code_set.registry(),
            wchar_data: code_sets::UTF_16,
        };
        let code_sets = needs_code_sets.then(|| code_sets.to_data());
        let priority = self.priority.map(|own| contexts::priority(own.get()));
        let band = self
            .channel
            .band
            .filter(|_| matches!(self.kind, InvocationKind::BindBand));
        let band = band.map(|band| contexts::priority_range(band.low, band.high));
        let thread = self.kind.thread().map(|call| call.context.as_slice());
        let intercepted = self.kind.intercepted();
        let mark = (intercepted.is_some() && self.route.is_collocated).then_some(INTERCEPTED);
        let added = intercepted.into_iter().flat_map(|it| it.contexts.iter());
        let mut room = [0; END_TIMES_BYTES];
        let deadline = (self.expiry_ns != NONE_NS).then(|| self.deadline_context(&mut room));
        let present = [
            (
                contexts::CODE_SETS,
                code_sets.as_ref().map(<[u8; _]>::as_slice),
            ),
            (
                contexts::RT_CORBA_PRIORITY,
                priority.as_ref().map(<[u8; _]>::as_slice),
            ),
            (
                contexts::RT_CORBA_PRIORITY_RANGE,
                band.as_ref().map(<[u8; _]>::as_slice),
            ),
            (giop::DISTRIBUTABLE_THREAD, thread),
            (contexts::BI_DIR_IIOP, listen_points),
        ];
        let present = present
            .into_iter()
            .filter_map(|(id, data)| Some(ServiceContext { id, data: data? }));
        let contexts = present.chain(deadline).chain(mark).chain(added);
        let mut list = [INTERCEPTED; OWN_CONTEXTS_MAX + ContextBuffer::CONTEXTS_MAX];
        let mut count = 0;
        for (place, context) in list.iter_mut().zip(contexts) {
            *place = context;
            count += 1;
        }
        let start = RequestStart {
            request_id,
            response: self.response,
            object_key: &self.route.object_key,
            operation: self.operation,
            contexts: &list[..count],
        };
        match self.route.address() {
            Some(address) => giop::begin_request_at(w, &start, address),
            None => giop::begin_request(w, self.route.version, &start),
        }
    }

    /// Writes a request that exists, with the deadline `expiry_ns` instead of the one that it states; [`NONE_NS`] leaves that one, without the
    /// time that the request has spent here.
    #[cold]
    #[inline(never)]
    fn write_passed(
        &self,
        w: &mut Writer<'_>,
        request_id: u32,
        request: &PassedRequest<'_>,
        expiry_ns: u64,
    ) -> Result<(), EncodeError> {
        let mut room = [0; END_TIMES_BYTES];
        let deadline = if expiry_ns == NONE_NS {
            PassedDeadline::Stated {
                spent_ns: request.spent_ns(monotonic_ns()),
            }
        } else {
            PassedDeadline::Replaced(self.deadline_context(&mut room))
        };
        let priority = self.priority.map(Priority::get);
        let target = PassedTarget {
            object_key: &self.route.object_key,
            address: self.route.address(),
        };
        request.write(w, request_id, target, priority, deadline)
    }

    #[cold]
    fn write_locate_request(&self, w: &mut Writer<'_>, request_id: u32) -> Result<(), EncodeError> {
        let route = self.route;
        match route.address() {
            Some(address) => giop::write_locate_request_to(w, request_id, address),
            None => giop::write_locate_request(w, route.version, request_id, &route.object_key),
        }
    }
}
