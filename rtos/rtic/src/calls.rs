//! Calls of a Cubit that another task serves, over two streams in memory, and of the host's.

use alloc::boxed::Box;
use core::cell::RefCell;
use critical_section::Mutex;
use rtorb_board::MESSAGE_BYTES_MAX;
use rtorb_board::uart::{Polled, UARTS};
use rtorb_embedded::{
    Client, FixedPriority, Link, LinkError, Object, ObjectRef, Server, SharedClient, Tie,
};
use rtorb_embedded_cubit::cubit::Cubit;
use rtorb_embedded_cubit::servant::{Cuber, KEY};

/// Octets on their way: more than any message of the calls that are timed.
const STREAM_BYTES: usize = 4 << 10;

/// A stream from one task to another.
struct Stream(Mutex<RefCell<Octets>>);

/// The octets on their way: those between two places.
struct Octets {
    all: [u8; STREAM_BYTES],
    from: usize,
    to: usize,
}

static REQUESTS: Stream = Stream::new();
static REPLIES: Stream = Stream::new();

/// The client's end.
struct ClientEnd {
    /// Lets the serving task run.
    run_server: fn(),
}

/// The server's end.
struct ServerEnd;

/// A client that one task has for itself.
struct Own {
    client: RefCell<Client>,
    /// After each call: a request without a reply must be served, too.
    afterwards: fn(),
}

// SAFETY: one task alone makes it and calls by it.
unsafe impl Sync for Own {}

/// The Cubit of the serving task. `run_server` lets that task run until it has served all requests.
pub fn cubit_of_task(run_server: fn()) -> Cubit {
    cubit_over(Box::new(ClientEnd { run_server }), run_server, KEY)
}

/// The object with that key at the other end of the second serial line.
pub fn cubit_of_host(key: &[u8]) -> Cubit {
    UARTS[1].begin(false);
    cubit_over(Box::new(Polled(&UARTS[1])), || {}, key)
}

fn cubit_over(link: Box<dyn Link + Send>, afterwards: fn(), key: &[u8]) -> Cubit {
    let client = RefCell::new(Client::new(link, MESSAGE_BYTES_MAX));
    let own: &'static Own = Box::leak(Box::new(Own { client, afterwards }));
    Cubit::unchecked_narrow(ObjectRef::new(own, "IDL:Cubit:1.0", key))
}

/// The server of the Cubit. It takes its memory now.
pub fn server() -> Server<'static> {
    let cubit: &'static Tie<Cubit, Cuber> = Box::leak(Box::new(Tie::new(Cuber::new())));
    let objects = Box::leak(Box::new([Object {
        key: KEY,
        servant: cubit,
    }]));
    Server::new(objects, MESSAGE_BYTES_MAX)
}

/// Serves all requests that have come.
pub fn serve(server: &mut Server<'static>) {
    while !REQUESTS.is_empty() {
        // A connection never ends here.
        let _ = server.serve_next(&mut ServerEnd, &mut FixedPriority);
    }
}

impl Stream {
    const fn new() -> Self {
        Self(Mutex::new(RefCell::new(Octets {
            all: [0; STREAM_BYTES],
            from: 0,
            to: 0,
        })))
    }

    fn is_empty(&self) -> bool {
        self.with(|octets| octets.from == octets.to)
    }

    fn put(&self, octets: &[u8]) -> Result<(), LinkError> {
        self.with(|on_way| on_way.put(octets))
    }

    fn take(&self, into: &mut [u8]) -> Result<usize, LinkError> {
        match self.with(|octets| octets.take(into)) {
            0 => Err(LinkError::TimedOut),
            count => Ok(count),
        }
    }

    fn with<T>(&self, act: impl FnOnce(&mut Octets) -> T) -> T {
        critical_section::with(|section| act(&mut self.0.borrow_ref_mut(section)))
    }
}

impl Octets {
    fn put(&mut self, octets: &[u8]) -> Result<(), LinkError> {
        let room = self.all.get_mut(self.to..self.to + octets.len());
        room.ok_or(LinkError::Broken)?.copy_from_slice(octets);
        self.to += octets.len();
        Ok(())
    }

    fn take(&mut self, into: &mut [u8]) -> usize {
        let count = into.len().min(self.to - self.from);
        into[..count].copy_from_slice(&self.all[self.from..self.from + count]);
        self.from += count;
        if self.from == self.to {
            (self.from, self.to) = (0, 0);
        }
        count
    }
}

impl Link for ClientEnd {
    fn send(&mut self, octets: &[u8]) -> Result<(), LinkError> {
        REQUESTS.put(octets)
    }

    /// The request is whole: its task serves it at once, because it is the more urgent one.
    fn receive(&mut self, into: &mut [u8]) -> Result<usize, LinkError> {
        if REPLIES.is_empty() {
            (self.run_server)();
        }
        REPLIES.take(into)
    }
}

impl Link for ServerEnd {
    fn send(&mut self, octets: &[u8]) -> Result<(), LinkError> {
        REPLIES.put(octets)
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<usize, LinkError> {
        REQUESTS.take(into)
    }
}

impl SharedClient for Own {
    fn exclusively(&self, call: &mut dyn FnMut(&mut Client)) {
        call(&mut self.client.borrow_mut());
        if !REQUESTS.is_empty() {
            (self.afterwards)();
        }
    }
}
