//! iceoryx2's request-response: requests and replies in shared memory, without an ORB.
//!
//! The argument alone is sent, as its users do: the client copies it into the loaned request, the server from there into the
//! loaned reply, and the client looks at the reply in place. A side waits for an event of iceoryx2's, or it polls.

use std::error::Error;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use iceoryx2::port::client::Client;
use iceoryx2::port::listener::Listener;
use iceoryx2::port::notifier::Notifier;
use iceoryx2::port::server::Server;
use iceoryx2::prelude::*;
use rtorb_os::clock::monotonic_ns;

use super::burst::{self, Burst, Samples};
use super::ping_pong::spinning::Spinning;
use crate::processes::child::{Role, arguments, ready};

/// Both ends. The folder has the files of iceoryx2, but for its memory.
pub(crate) const ROLES: &[Role] = &[
    Role::here("iceoryx2-server", |words| {
        let [folder, wait] = arguments(words)?;
        let served = serve(folder, wait);
        remove_rest(folder);
        served.map_err(|error| error.to_string())
    }),
    Role::here("iceoryx2-client", |words| {
        let [folder, wait] = arguments(words)?;
        let caller = Caller::connect(folder, wait);
        let mut caller = caller.map_err(|error| error.to_string())?;
        burst::answer(|burst| caller.burst(burst))
    }),
];

/// What a side does until the other one has sent; an end of both events, or none.
#[derive(Debug)]
struct Events {
    /// That the other side has sent.
    awaited: Listener<ipc::Service>,
    /// That this side has sent.
    sent: Notifier<ipc::Service>,
}

impl Events {
    /// Opens them; `None` for a side that polls.
    fn open(
        node: &Node<ipc::Service>,
        wait: &str,
        [awaited, sent]: [&str; 2],
    ) -> Result<Option<Self>, Box<dyn Error>> {
        if wait != EVENTS {
            return Ok(None);
        }
        let open = |name: &str| -> Result<_, Box<dyn Error>> {
            Ok(node
                .service_builder(&name.try_into()?)
                .event()
                .open_or_create()?)
        };
        Ok(Some(Self {
            awaited: open(awaited)?.listener_builder().create()?,
            sent: open(sent)?.notifier_builder().create()?,
        }))
    }

    fn notify(events: Option<&Self>) -> Result<(), Box<dyn Error>> {
        if let Some(events) = events {
            events.sent.notify()?;
        }
        Ok(())
    }

    /// Returns when it is worth looking again; false if the deadline has passed.
    fn wait(events: Option<&Self>, spinning: &mut Spinning) -> Result<bool, Box<dyn Error>> {
        match events {
            Some(events) => Ok(events.awaited.timed_wait(|_| {}, TIMEOUT)? > 0),
            None => Ok(spinning.pause()),
        }
    }
}

fn serve(folder: &str, wait: &str) -> Result<(), Box<dyn Error>> {
    let is_over = Arc::new(AtomicBool::new(false));
    let of_watch = Arc::clone(&is_over);
    let watch = move || {
        let mut ignored = [0; 64];
        while matches!(io::stdin().read(&mut ignored), Ok(count) if count > 0) {}
        of_watch.store(true, Ordering::Relaxed);
    };
    rtorb_os::thread::spawn("end-of-input", &Default::default(), watch)?;
    serve_until(&is_over, folder, wait)
}

fn serve_until(is_over: &AtomicBool, folder: &str, wait: &str) -> Result<(), Box<dyn Error>> {
    let node = node(folder)?;
    let service = node.service_builder(&CALLS.try_into()?);
    let service = service.request_response::<[u8], [u8]>().open_or_create()?;
    let server = service.server_builder().initial_max_slice_len(BYTES_MAX);
    let server: Server<ipc::Service, [u8], (), [u8], ()> = server.create()?;
    let events = Events::open(&node, wait, [REQUESTS, REPLIES])?;
    ready(folder);
    // At the end everything is dropped, so that nothing of it is left.
    while !is_over.load(Ordering::Relaxed) {
        let mut spinning = Spinning::until(Some(monotonic_ns() + TIMEOUT_NS));
        let request = loop {
            match server.receive()? {
                Some(request) => break Some(request),
                None if !Events::wait(events.as_ref(), &mut spinning)? => break None,
                None => {}
            }
        };
        if let Some(request) = request {
            let reply = request.loan_slice_uninit(request.payload().len())?;
            reply.write_from_slice(request.payload()).send()?;
            Events::notify(events.as_ref())?;
        }
    }
    Ok(())
}

/// The calling end.
struct Caller {
    // In this order: a node ends after its ports.
    client: Client<ipc::Service, [u8], (), [u8], ()>,
    events: Option<Events>,
    _node: Node<ipc::Service>,
    argument: Vec<u8>,
    sequence: u32,
}

impl Caller {
    fn connect(folder: &str, wait: &str) -> Result<Self, Box<dyn Error>> {
        let node = node(folder)?;
        let service = node.service_builder(&CALLS.try_into()?);
        let service = service.request_response::<[u8], [u8]>().open_or_create()?;
        let client = service.client_builder().initial_max_slice_len(BYTES_MAX);
        Ok(Self {
            client: client.create()?,
            events: Events::open(&node, wait, [REPLIES, REQUESTS])?,
            _node: node,
            argument: vec![0; BYTES_MAX],
            sequence: 0,
        })
    }

    fn burst(&mut self, burst: &Burst) -> Result<Samples, String> {
        let bytes = burst.operation.payload_bytes(burst.len);
        if !(SEQUENCE_BYTES..=BYTES_MAX).contains(&bytes) {
            return Err(format!("iceoryx2 is not measured with {bytes} octets"));
        }
        let mut samples = Samples::for_burst(burst);
        samples.time(burst, || self.call(bytes), |is_right| *is_right)?;
        Ok(samples)
    }

    /// Answers whether the reply is the one to this request.
    fn call(&mut self, bytes: usize) -> Result<bool, Box<dyn Error>> {
        self.sequence = self.sequence.wrapping_add(1);
        let sequence = self.sequence.to_ne_bytes();
        self.argument[..SEQUENCE_BYTES].copy_from_slice(&sequence);
        let request = self.client.loan_slice_uninit(bytes)?;
        let request = request.write_from_slice(&self.argument[..bytes]);
        let pending = request.send()?;
        Events::notify(self.events.as_ref())?;
        let mut spinning = Spinning::until(Some(monotonic_ns() + TIMEOUT_NS));
        loop {
            if let Some(reply) = pending.receive()? {
                let reply = reply.payload();
                return Ok(reply.len() == bytes && reply.starts_with(&sequence));
            }
            if !Events::wait(self.events.as_ref(), &mut spinning)? {
                return Err("no reply came".into());
            }
        }
    }
}

/// A node of its own world: nobody else on this host has this folder.
fn node(folder: &str) -> Result<Node<ipc::Service>, Box<dyn Error>> {
    let mut config = Config::default();
    config.global.set_root_path(&Path::new(folder.as_bytes())?);
    config.global.prefix = FileName::new(prefix(folder).as_bytes())?;
    let node = NodeBuilder::new().config(&config);
    let node = node.signal_handling_mode(SignalHandlingMode::Disabled);
    Ok(node.create()?)
}

/// How the names of its memory begin.
fn prefix(folder: &str) -> String {
    let name = folder.rsplit('/').next().unwrap_or_default();
    format!("rtorb-{name}-")
}

/// Removes the memory that iceoryx2 leaves for the next node of the same name: there is none. The client has ended before.
fn remove_rest(folder: &str) {
    let prefix = prefix(folder);
    let files = std::fs::read_dir("/dev/shm").into_iter().flatten();
    for file in files.filter_map(Result::ok) {
        if file.file_name().to_string_lossy().starts_with(&prefix) {
            // Nobody has it open, and if somebody has removed it, it is gone.
            let _ = std::fs::remove_file(file.path());
        }
    }
}

/// The word for a side that waits for events. Another one polls.
pub(super) const EVENTS: &str = "events";
pub(super) const POLLED: &str = "polled";
/// The names of the services.
const CALLS: &str = "calls";
const REQUESTS: &str = "requests";
const REPLIES: &str = "replies";
const SEQUENCE_BYTES: usize = 4;
/// A mebibyte of octets and their length.
const BYTES_MAX: usize = (1 << 20) + 4;
const TIMEOUT: Duration = Duration::from_nanos(TIMEOUT_NS);
const TIMEOUT_NS: u64 = 200_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contestants::burst::Verb;
    use crate::contestants::operations::Operation;

    #[test]
    fn octets_come_back_with_events_and_polled() {
        for wait in [EVENTS, POLLED] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(wait).display().to_string();
            let mut caller = Caller::connect(&path, wait).unwrap();
            let is_over = Arc::new(AtomicBool::new(false));
            let of_server = Arc::clone(&is_over);
            let served = path.clone();
            let serve = move || serve_until(&of_server, &served, wait).map_err(|e| e.to_string());
            let server = rtorb_os::thread::spawn("server", &Default::default(), serve).unwrap();
            for len in [0, 100, 1 << 20] {
                let burst = Burst {
                    verb: Verb::Call,
                    operation: Operation::OctetSequence,
                    len,
                    warm_up: 0,
                    count: 3,
                    budget_ns: 1_000_000_000,
                    request_bytes: 0,
                    reply_bytes: 0,
                    period_ns: 0,
                };
                let samples = within_a_while(|| caller.burst(&burst));
                assert_eq!((samples.times_ns.len(), samples.wrong), (3, 0));
            }
            drop(caller);
            is_over.store(true, Ordering::Relaxed);
            assert_eq!(server.join().unwrap(), Some(Ok(())));
            remove_rest(&path);
        }
    }

    /// Until the server is there, nobody replies.
    fn within_a_while(mut burst: impl FnMut() -> Result<Samples, String>) -> Samples {
        let mut tries = (0..50).map(|_| burst());
        let found = tries.find_map(Result::ok);
        found.expect("the server replies")
    }
}
