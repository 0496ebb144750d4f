//! A process with one supplier, which sends numbered events at a rate, in bursts, or as fast as it can.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use rtorb::thread::ThreadConfig;
use rtorb::{Orb, Strategies};
use rtorb_os::clock::{monotonic_ns, sleep_until};
use rtorb_os::thread::{JoinHandle, spawn};
use rtorb_services::stubs::rtec_event::rtec_event_channel_admin::ProxyPushConsumer;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::rtec::{self, Stamp};
use super::{Sending, Sent};
use crate::contestants::clients::bounded;
use crate::processes::questions::{self, json};

/// The supplier's process.
#[derive(Debug)]
pub struct Supplier {
    orb: Orb,
    proxy: ProxyPushConsumer,
    source: i32,
    priority: u8,
    running: Option<Running>,
}

/// What a supplier is asked.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Question {
    /// To begin to send; other questions are answered meanwhile.
    Start(Sending),
    /// What was [`Sent`], once all is.
    Finish,
    /// To send no more; and what was [`Sent`].
    Stop,
}

/// Events on their way.
#[derive(Debug)]
struct Running {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Option<Result<Sent, String>>>,
}

impl Supplier {
    /// Makes an ORB with the preset `tao` and connects to the channel.
    ///
    /// # Errors
    /// What the ORB or the channel said.
    pub fn open(channel: &str, source: i32, priority: u8) -> Result<Self, String> {
        let orb = client_orb()?;
        let channel = rtec::channel(&orb, channel, priority)?;
        let proxy = rtec::publish(&channel, source, priority)?;
        Ok(Self {
            orb,
            proxy,
            source,
            priority,
            running: None,
        })
    }

    /// Answers questions until standard input ends.
    ///
    /// # Errors
    /// What the input or output said.
    pub fn serve(mut self) -> Result<(), String> {
        questions::serve(|question| self.answer(question))
    }

    fn answer(&mut self, question: Question) -> Result<Value, String> {
        if let Question::Start(sending) = question {
            sending.check()?;
            self.start(sending)?;
            return json(&());
        }
        if let (Question::Stop, Some(running)) = (question, &self.running) {
            running.stop.store(true, Ordering::Relaxed);
        }
        json(&self.finish()?)
    }

    /// Starts a thread that is connected when this answers.
    fn start(&mut self, sending: Sending) -> Result<(), String> {
        if self.running.is_some() {
            return Err("it still sends".to_owned());
        }
        let stop = Arc::new(AtomicBool::new(false));
        let (tell_ready, ready) = channel();
        let sender = EventSender {
            orb: self.orb.clone(),
            proxy: self.proxy.clone(),
            source: self.source,
            priority: self.priority,
            stop: Arc::clone(&stop),
        };
        let send = move || sender.run(&sending, &tell_ready);
        let thread = spawn("supplier", &ThreadConfig::default(), send)
            .map_err(|refused| refused.to_string())?;
        self.running = Some(Running { stop, thread });
        ready
            .recv_timeout(CONNECT_TIMEOUT)
            .map_err(|_| "the sending thread was not ready in time".to_owned())?
    }

    fn finish(&mut self) -> Result<Sent, String> {
        let running = self.running.take().ok_or("nothing is sent")?;
        let ended = running.thread.join().ok().flatten();
        ended.ok_or("the sending thread panicked")?
    }
}

/// An ORB of a client of the channel.
pub(in crate::contestants) fn client_orb() -> Result<Orb, String> {
    bounded(Orb::builder().strategies(Strategies::TAO))
        .build()
        .map_err(|error| error.to_string())
}

/// What the sending thread has.
struct EventSender {
    orb: Orb,
    proxy: ProxyPushConsumer,
    source: i32,
    priority: u8,
    stop: Arc<AtomicBool>,
}

impl EventSender {
    fn run(self, sending: &Sending, ready: &Sender<Result<(), String>>) -> Result<Sent, String> {
        let warm = self.take_priority().and_then(|()| {
            let object = self.proxy.as_object();
            object
                .validate_connection()
                .map_err(|exception| exception.to_string())
        });
        let is_warm = warm.is_ok();
        // The laboratory may have given up.
        let _ = ready.send(warm);
        if is_warm {
            self.send(sending)
        } else {
            Err("it was not connected".to_owned())
        }
    }

    fn send(&self, sending: &Sending) -> Result<Sent, String> {
        let payload = vec![0; sending.payload_bytes.max(rtec::STAMP_BYTES)];
        let mut event = [rtec::event(self.source, rtec::FELL, payload)];
        let sent = send_all(sending, &self.stop, |stamp| {
            stamp.write(&mut event[0].data.payload);
            self.proxy
                .push(&event)
                .map_err(|exception| format!("event {}: {exception}", stamp.number))
        })?;
        sleep_until(monotonic_ns() + sending.pause_ns);
        Ok(sent)
    }

    /// The thread and its events have the priority from here on.
    fn take_priority(&self) -> Result<(), String> {
        rtec::take_priority(&self.orb, self.priority)
    }
}

/// Sends events, each at its release or as soon after it as the one before lets it. Its stamp has the release: an event that was held
/// up in its supplier is as late as one that was held up in the channel.
fn send_all(
    sending: &Sending,
    stop: &AtomicBool,
    mut push: impl FnMut(Stamp) -> Result<(), String>,
) -> Result<Sent, String> {
    let begin_ns = monotonic_ns() + BARRIER_NS;
    let mut sent = Sent::default();
    while sent.count < sending.count && !stop.load(Ordering::Relaxed) {
        let planned_ns = sending.release_ns(begin_ns, sent.count);
        let begins_burst = sent.count.is_multiple_of(sending.burst);
        if let Some(planned_ns) = planned_ns.filter(|_| begins_burst) {
            sleep_until(planned_ns);
        }
        push(Stamp {
            number: sending.first + sent.count,
            release_ns: planned_ns.unwrap_or_else(monotonic_ns),
        })?;
        sent.count += 1;
    }
    sent.elapsed_ns = monotonic_ns().saturating_sub(begin_ns);
    Ok(sent)
}

/// For the laboratory to have its answer before the first event.
const BARRIER_NS: u64 = 5_000_000;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD_NS: u64 = 5_000_000;

    fn stamps(sending: &Sending, mut push: impl FnMut(u64)) -> Vec<Stamp> {
        let mut stamps = Vec::new();
        let sent = send_all(sending, &AtomicBool::new(false), |stamp| {
            stamps.push(stamp);
            push(stamp.number);
            Ok(())
        });
        assert_eq!(sent.unwrap().count, sending.count);
        stamps
    }

    /// The channel takes the first event three periods late.
    #[test]
    fn a_stamp_has_the_planned_release_however_late_the_event_is_sent() {
        let sending = Sending::paced(5, PERIOD_NS);
        let stamps = stamps(&sending, |number| {
            if number == 0 {
                sleep_until(monotonic_ns() + 3 * PERIOD_NS);
            }
        });
        let mut pairs = stamps.windows(2);
        assert!(pairs.all(|pair| pair[1].release_ns - pair[0].release_ns == PERIOD_NS));
    }

    #[test]
    fn a_burst_is_released_at_once_and_what_has_no_rate_as_it_is_sent() {
        let bursts = Sending {
            burst: 2,
            pause_ns: 1_000,
            ..Sending::paced(4, PERIOD_NS)
        };
        let releases = |sending: &Sending| [0, 1, 2, 3].map(|event| sending.release_ns(7, event));
        let second = 7 + 1_000 + PERIOD_NS;
        assert_eq!(
            releases(&bursts),
            [Some(7), Some(7), Some(second), Some(second)]
        );
        let unpaced = Sending::paced(4, 0);
        assert_eq!(releases(&unpaced), [Some(7), None, None, None]);
        let stamps = stamps(&unpaced, |_| ());
        assert!(stamps.is_sorted_by_key(|stamp| stamp.release_ns));
    }
}
