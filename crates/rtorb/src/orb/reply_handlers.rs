//! The callback model of CORBA Messaging: calls whose results are told to reply handlers, by the threads that run reply drivers.

use crate::exception::{CompletionStatus, SystemException, local};
use crate::reference::{ReadReply, ReplyPoller, UntypedCall};
use crate::thread_state::EndingCalls;
use crate::wait::reply_reader::ReplyReader;
use core::any::Any;
use rtorb_os::sync::Mutex;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::Instant;

/// The calls of an ORB whose results go to handlers, once for each call.
///
/// There are at most as many as started calls, and their memory is used again.
#[derive(Debug)]
pub(crate) struct ReplyHandlers {
    ended: Arc<EndedCalls>,
    places: Mutex<HandledCalls>,
}

#[derive(Debug, Default)]
struct HandledCalls {
    /// Each place that was ever used.
    all: Vec<HandlerPlace>,
    /// The numbers of those without a call.
    free: Vec<usize>,
    /// True once the ORB has ended: no call is added.
    is_closed: bool,
}

#[derive(Debug)]
struct HandlerPlace {
    waker: Waker,
    call: Option<HandledCall>,
}

/// The numbers of the places whose calls may have ended.
#[derive(Debug)]
struct EndedCalls {
    numbers: Mutex<VecDeque<usize>>,
    reader: Arc<ReplyReader>,
}

/// Notes that the call at a place may have ended.
struct PlaceWaker {
    number: usize,
    ended: Arc<EndedCalls>,
}

/// A call, and the handler of its reply.
#[derive(Debug)]
struct HandledCall {
    call: UntypedCall,
    handler: Arc<dyn Any + Send + Sync>,
    tell: DeliverReply,
}

/// Tells a handler the result of a call. Returns false if the request was sent again instead.
type DeliverReply = fn(EndedCall<'_>) -> bool;

/// Support API for generated code. Not public.
///
/// A call that has ended, and the handler of its reply.
#[doc(hidden)]
#[derive(Debug)]
pub struct EndedCall<'c> {
    call: &'c mut UntypedCall,
    handler: &'c (dyn Any + Send + Sync),
}

impl ReplyPoller {
    /// Support API for generated code. Not public.
    ///
    /// Has the thread of a reply driver tell `handler` the result of the call, by `tell`.
    ///
    /// # Errors
    /// The exception of a call that could not be started, and BAD_INV_ORDER 4 if the ORB has ended: the handler is not called.
    #[doc(hidden)]
    pub fn hand_to<H: Send + Sync + 'static>(
        self,
        handler: &Arc<H>,
        tell: DeliverReply,
    ) -> Result<(), SystemException> {
        if let Some(refused) = self.call.refusal() {
            return Err(refused);
        }
        let orb = self.operation_target().orb();
        let handled = HandledCall {
            call: self.call,
            handler: Arc::clone(handler) as Arc<dyn Any + Send + Sync>,
            tell,
        };
        let refused = orb.core.reply_handlers.add(handled);
        refused.map_or(Ok(()), |_| Err(local::SHUT_DOWN))
    }
}

impl EndedCall<'_> {
    /// Reads the result, and gives it to the handler. Returns false if the request was sent again instead.
    pub fn tell<H: 'static, T, E: From<SystemException>>(
        self,
        read: ReadReply<T, E>,
        tell: impl FnOnce(&H, Result<T, E>),
    ) -> bool {
        let Some(result) = read(self.call, Instant::now()) else {
            return false;
        };
        if let Some(handler) = self.handler.downcast_ref() {
            tell(handler, result);
        }
        true
    }
}

impl ReplyHandlers {
    /// Makes an empty table. `reader` is the one that the threads of the application wait at.
    pub(super) fn new(reader: Arc<ReplyReader>) -> Self {
        let ended = EndedCalls {
            numbers: Mutex::default(),
            reader,
        };
        Self {
            ended: Arc::new(ended),
            places: Mutex::default(),
        }
    }

    /// Returns what the threads of the application wait at.
    pub(super) fn reader(&self) -> &Arc<ReplyReader> {
        &self.ended.reader
    }

    /// Tells the handlers of all calls that have ended by now. Returns true if there was one.
    pub(super) fn tell_ended(&self) -> bool {
        // Not those that end meanwhile: a handler may send the next call.
        let count = self.ended.numbers.lock().len();
        let mut has_told = false;
        for _ in 0..count {
            let Some(number) = self.ended.numbers.lock().pop_front() else {
                break;
            };
            if let Some(handled) = self.take_ended(number) {
                has_told = true;
                self.tell(handled);
            }
        }
        has_told
    }

    /// Tells the handlers of all calls: the result if it is there, or else that the ORB has ended.
    pub(super) fn close(&self) {
        let mut places = self.places.lock();
        places.is_closed = true;
        let left: Vec<HandledCall> = (places.all.iter_mut())
            .filter_map(|place| place.call.take())
            .collect();
        drop(places);
        for mut handled in left {
            if !handled.call.is_ready() {
                handled.give_up();
            }
            self.tell(handled);
        }
    }

    fn tell(&self, handled: HandledCall) {
        // This thread may be the one that ends the others.
        let _ending = EndingCalls::begin();
        if let Some(sent_again) = handled.tell()
            && let Some(mut refused) = self.add(sent_again)
        {
            refused.give_up();
            refused.tell();
        }
    }

    /// Adds a call. Returns it if the ORB has ended.
    fn add(&self, handled: HandledCall) -> Option<HandledCall> {
        let mut places = self.places.lock();
        if places.is_closed {
            return Some(handled);
        }
        let number = places.free.pop().unwrap_or_else(|| {
            let number = places.all.len();
            let waker = PlaceWaker {
                number,
                ended: Arc::clone(&self.ended),
            };
            places.all.push(HandlerPlace {
                waker: Waker::from(Arc::new(waker)),
                call: None,
            });
            // A place is noted at most twice before a driver looks at it, and no later call grows a list.
            places.free.reserve(number + 1);
            self.ended.numbers.lock().reserve(2 * (number + 1));
            number
        });
        let place = &mut places.all[number];
        let has_ended = handled.call.await_as_task(&place.waker);
        place.call = Some(handled);
        drop(places);
        if has_ended {
            self.ended.note(number);
        }
        None
    }

    /// Takes the call at a place, if there is one that has ended, and frees the place.
    fn take_ended(&self, number: usize) -> Option<HandledCall> {
        let mut places = self.places.lock();
        let place = &mut places.all[number];
        // Under the lock, so that a later wake of the place finds the call there.
        if !place.call.as_ref()?.call.await_as_task(&place.waker) {
            return None;
        }
        let ended = place.call.take();
        places.free.push(number);
        ended
    }
}

impl HandledCall {
    /// Tells the handler the result. Returns the call if its request was sent again instead.
    ///
    /// A panic of the handler ends only the handler, and the panic hook has reported it.
    fn tell(self) -> Option<Self> {
        let told = catch_unwind(AssertUnwindSafe(move || {
            let mut handled = self;
            let ended = EndedCall {
                call: &mut handled.call,
                handler: &*handled.handler,
            };
            let is_told = (handled.tell)(ended);
            (!is_told).then_some(handled)
        }));
        told.ok().flatten()
    }

    /// Gives the call up because the ORB has ended.
    fn give_up(&mut self) {
        let ended = local::SHUT_DOWN.with_completion(CompletionStatus::Maybe);
        self.call = UntypedCall::failed(ended);
    }
}

impl EndedCalls {
    fn note(&self, number: usize) {
        self.numbers.lock().push_back(number);
        self.reader.end_wait();
    }
}

impl Wake for PlaceWaker {
    fn wake(self: Arc<Self>) {
        self.ended.note(self.number);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.ended.note(self.number);
    }
}
