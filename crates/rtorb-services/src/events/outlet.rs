//! Where the events of one consumer go out: its reference, behind the few questions that a channel asks of it.

use super::event::Message;
use crate::stubs::rtec_event::rtec_event_comm::PushConsumer;
use core::cell::Cell;
use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};
use rtorb::codegen::EncodeError;
use rtorb::rt::{Policy, Priority};
use rtorb::{CompletionStatus, ExceptionKind, ObjectRef, SyncScope, SystemException};
use std::time::Duration;

/// A way out that never waits, but for the calls of the keeper.
pub(crate) trait Outlet: fmt::Debug + Send + Sync {
    /// Sends a message, or as much of it as goes without waiting. One thread at a time calls this and [`flush`](Self::flush).
    ///
    /// # Errors
    /// [`NotSent`], and then nothing of it went.
    fn push(&self, message: Message<'_>) -> Result<Progress, NotSent>;

    /// Sends more of the last message, without waiting.
    ///
    /// # Errors
    /// When the connection is broken.
    fn flush(&self) -> Result<Progress, SystemException>;

    /// Opens the connection for threads of that priority; may wait. The keeper's.
    ///
    /// # Errors
    /// When the consumer cannot be reached, or is not there.
    fn open(&self, priority: Priority) -> Result<(), SystemException>;

    /// Asks whether the consumer is there; may wait. The keeper's.
    ///
    /// # Errors
    /// When it cannot be reached, or is not there.
    fn ask(&self) -> Result<(), SystemException>;

    /// Tells the consumer that it is disconnected; may wait. The keeper's.
    fn say_goodbye(&self);
}

/// How far a message has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The connection has taken it whole.
    Whole,
    /// The connection has taken a part, and keeps the rest.
    Partly,
}

impl Progress {
    fn of(is_whole: bool) -> Self {
        match is_whole {
            true => Self::Whole,
            false => Self::Partly,
        }
    }
}

/// Why a message did not go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NotSent {
    /// The connection can take nothing for now.
    Busy,
    /// The connection is broken; nothing of the message has arrived.
    Broken,
    /// The connection broke while the message was sent: it may have arrived.
    BrokenMeanwhile,
    /// The message cannot be written for this consumer, and never will.
    Unsendable,
}

/// A consumer behind its reference.
#[derive(Debug)]
pub(crate) struct Remote {
    /// For events, with a connection of its own; it opens that too, since only so it knows where the object has moved to.
    events: ObjectRef,
    /// For questions and the goodbye, by another connection: an event must not stand behind an answer that does not come.
    questions: ObjectRef,
    /// True once octets turned out not to fit this consumer: another GIOP version or byte order.
    needs_values: AtomicBool,
}

impl Remote {
    /// The way to the consumer of that reference, whose answers may take `answer_timeout`.
    ///
    /// # Errors
    /// What the ORB says of policies that do not go together.
    pub(crate) fn new(
        consumer: &ObjectRef,
        answer_timeout: Duration,
    ) -> Result<Self, SystemException> {
        let bounded = consumer.with_round_trip_timeout(Some(answer_timeout));
        Ok(Self {
            events: bounded.set_policy_overrides(&[Policy::PrivateConnection])?,
            questions: bounded,
            needs_values: AtomicBool::new(false),
        })
    }

    /// Sends the octets; `None` if they do not fit the consumer.
    fn push_octets(&self, message: Message<'_>) -> Option<Result<bool, SystemException>> {
        let fits = Cell::new(true);
        let sent = self.events.invoke_oneway_at_once("push", |w| {
            fits.set(message.goes_into(w));
            match fits.get() {
                true => message.write(w),
                // Nothing is sent of a request that cannot be written.
                false => Err(EncodeError::WrongType),
            }
        });
        fits.get().then_some(sent)
    }

    #[cold]
    fn push_values(&self, message: Message<'_>) -> Result<bool, SystemException> {
        let events = message.values()?;
        self.events
            .invoke_oneway_at_once("push", |w| rtorb::codegen::Encode::encode(&events, w))
    }
}

impl Outlet for Remote {
    fn push(&self, message: Message<'_>) -> Result<Progress, NotSent> {
        let octets = match self.needs_values.load(Ordering::Relaxed) {
            false => self.push_octets(message),
            true => None,
        };
        let sent = octets.unwrap_or_else(|| {
            self.needs_values.store(true, Ordering::Relaxed);
            self.push_values(message)
        });
        let is_whole = sent.map_err(|exception| not_sent(&exception))?;
        Ok(Progress::of(is_whole))
    }

    fn flush(&self) -> Result<Progress, SystemException> {
        self.events.flush().map(Progress::of)
    }

    fn open(&self, priority: Priority) -> Result<(), SystemException> {
        self.events.validate_connection_at(priority)
    }

    fn ask(&self) -> Result<(), SystemException> {
        match self.questions.non_existent()? {
            false => Ok(()),
            true => Err(ExceptionKind::ObjectNotExist.into()),
        }
    }

    fn say_goodbye(&self) {
        // Whoever does not hear it finds out by itself.
        let _ = PushConsumer::unchecked_narrow(self.questions.clone()).disconnect_push_consumer();
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
        // The rest is said of the message, before anything of it goes.
        (_, _, CompletionStatus::No) => NotSent::Unsendable,
        _ => NotSent::BrokenMeanwhile,
    }
}
