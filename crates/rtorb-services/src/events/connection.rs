//! The connection of a channel to one consumer.

use super::event::Message;
use crate::stubs::rtec_event::rtec_event_comm::PushConsumer;
use core::cell::Cell;
use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};
use rtorb::cdr::{Encode, EncodeError};
use rtorb::exception::local;
use rtorb::rt::{Policy, Priority};
use rtorb::{CompletionStatus, ExceptionKind, ObjectRef, SyncScope, SystemException};
use std::time::Duration;

/// The calls of a channel to a consumer. Pushing never waits; the keeper makes the calls that may.
pub(crate) trait ConsumerConnection: fmt::Debug + Send + Sync {
    /// Sends a message, or as much of it as goes without waiting. One thread at a time calls this and [`flush`](Self::flush).
    ///
    /// # Errors
    /// [`NotSent`], if nothing of it was sent.
    fn push(&self, message: Message<'_>) -> Result<SendProgress, NotSent>;

    /// Sends more of the last message, without waiting.
    ///
    /// # Errors
    /// If the connection is broken.
    fn flush(&self) -> Result<SendProgress, SystemException>;

    /// Opens the connection for threads of that priority. May wait.
    ///
    /// # Errors
    /// If the consumer cannot be reached or does not exist.
    fn open(&self, priority: Priority) -> Result<(), SystemException>;

    /// Asks whether the consumer exists. May wait.
    ///
    /// # Errors
    /// If it cannot be reached or does not exist.
    fn ping(&self) -> Result<(), SystemException>;

    /// Calls the consumer's `disconnect_push_consumer`. May wait.
    fn notify_disconnected(&self);
}

/// How much of a message is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendProgress {
    /// The connection took the whole message.
    Whole,
    /// The connection took a part and keeps the rest.
    Partly,
}

impl SendProgress {
    fn of(is_whole: bool) -> Self {
        if is_whole { Self::Whole } else { Self::Partly }
    }
}

/// Why a message was not sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NotSent {
    /// The connection takes nothing at the moment.
    Busy,
    /// The connection is broken; nothing of the message has arrived.
    Broken,
    /// The connection broke while the message was sent: it may have arrived.
    BrokenMeanwhile,
    /// The message cannot be encoded for this consumer.
    Unsendable,
}

/// A consumer that is called through its reference.
#[derive(Debug)]
pub(crate) struct RemoteConsumer {
    /// The reference for events, with a private connection. It also opens that connection, because only it follows its forwards.
    events: ObjectRef,
    /// The reference for other calls, over another connection: an event never waits behind a reply that does not come.
    calls: PushConsumer,
    /// True once the bytes of an event did not fit this consumer: another GIOP version or byte order.
    needs_values: AtomicBool,
}

impl RemoteConsumer {
    /// Calls to the consumer time out after `call_timeout`.
    ///
    /// # Errors
    /// INV_POLICY if the ORB cannot give the reference a private connection.
    pub(crate) fn new(
        consumer: &PushConsumer,
        call_timeout: Duration,
    ) -> Result<Self, SystemException> {
        let bounded = consumer.with_timeout(call_timeout);
        Ok(Self {
            events: (bounded.as_object()).set_policy_overrides(&[Policy::PrivateConnection])?,
            calls: bounded,
            needs_values: AtomicBool::new(false),
        })
    }

    /// Sends the bytes as they are; `None` if they do not fit the consumer.
    fn push_bytes(&self, message: Message<'_>) -> Option<Result<bool, SystemException>> {
        let fits = Cell::new(true);
        let sent = self.events.invoke_oneway_at_once("push", |w| {
            fits.set(message.goes_into(w));
            if fits.get() {
                message.write(w)
            } else {
                // Nothing of a request that fails to encode is sent.
                Err(EncodeError::WrongType)
            }
        });
        fits.get().then_some(sent)
    }

    #[cold]
    fn push_values(&self, message: Message<'_>) -> Result<bool, SystemException> {
        let events = message.values()?;
        self.events
            .invoke_oneway_at_once("push", |w| events.encode(w))
    }
}

impl ConsumerConnection for RemoteConsumer {
    fn push(&self, message: Message<'_>) -> Result<SendProgress, NotSent> {
        let needs_values = self.needs_values.load(Ordering::Relaxed);
        let sent = if needs_values {
            None
        } else {
            self.push_bytes(message)
        };
        let sent = sent.unwrap_or_else(|| {
            self.needs_values.store(true, Ordering::Relaxed);
            self.push_values(message)
        });
        let is_whole = sent.map_err(|exception| not_sent(&exception))?;
        Ok(SendProgress::of(is_whole))
    }

    fn flush(&self) -> Result<SendProgress, SystemException> {
        self.events.flush().map(SendProgress::of)
    }

    fn open(&self, priority: Priority) -> Result<(), SystemException> {
        self.events.validate_connection_at(priority)
    }

    fn ping(&self) -> Result<(), SystemException> {
        if self.calls.as_object().non_existent()? {
            return Err(local::OBJECT_GONE);
        }
        Ok(())
    }

    fn notify_disconnected(&self) {
        // A consumer that this does not reach gets OBJECT_NOT_EXIST from its proxy later.
        let _ = self.calls.disconnect_push_consumer();
    }
}

fn not_sent(exception: &SystemException) -> NotSent {
    match (exception.kind, exception.minor, exception.completed) {
        (ExceptionKind::Transient, SyncScope::BEHIND_ANOTHER | SyncScope::IN_USE, _) => {
            NotSent::Busy
        }
        (ExceptionKind::Transient | ExceptionKind::CommFailure, _, CompletionStatus::No) => {
            NotSent::Broken
        }
        // All other exceptions before the sending concern the message.
        (_, _, CompletionStatus::No) => NotSent::Unsendable,
        _ => NotSent::BrokenMeanwhile,
    }
}
