//! Heap calls of both ends of a link, counted: once they are made, calls of fixed size need none.

use core::cell::RefCell;
use rtorb_embedded::{
    Client, FixedPriority, Link, LinkError, Object, ObjectRef, Server, SharedClient, Tie,
};
use rtorb_embedded_cubit::cubit::{Cubit, Many, Oneof};
use rtorb_embedded_cubit::servant::{Cuber, KEY};
use rtorb_instruments::heap::{CountingAllocator, heap_calls};
use std::sync::Mutex;

#[global_allocator]
static HEAP: CountingAllocator = CountingAllocator;

const MESSAGE_BYTES_MAX: usize = 4 << 10;

fn main() {
    rtorb_tests::alone::run_each(&[
        (
            "calls_of_fixed_size_make_no_heap_call",
            calls_of_fixed_size_make_no_heap_call,
        ),
        (
            "the_first_message_takes_as_much_memory_as_the_next",
            the_first_message_takes_as_much_memory_as_the_next,
        ),
    ]);
}

/// Client and server in one task: what the client sends is served when it waits for the reply.
struct Loop {
    server: Server<'static>,
    pipe: Pipe,
}

/// The octets under way in both directions.
struct Pipe {
    to_server: Vec<u8>,
    to_client: Vec<u8>,
}

impl Link for Loop {
    fn send(&mut self, octets: &[u8]) -> Result<(), LinkError> {
        self.pipe.to_server.extend_from_slice(octets);
        Ok(())
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<usize, LinkError> {
        // The oneways before the call have no replies.
        while self.pipe.to_client.is_empty() {
            self.server
                .serve_next(&mut self.pipe, &mut FixedPriority)
                .map_err(|_| LinkError::Broken)?;
        }
        Ok(take(&mut self.pipe.to_client, into))
    }
}

/// The server's end.
impl Link for Pipe {
    fn send(&mut self, octets: &[u8]) -> Result<(), LinkError> {
        self.to_client.extend_from_slice(octets);
        Ok(())
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<usize, LinkError> {
        Ok(take(&mut self.to_server, into))
    }
}

fn take(from: &mut Vec<u8>, into: &mut [u8]) -> usize {
    let count = from.len().min(into.len());
    into[..count].copy_from_slice(&from[..count]);
    from.drain(..count);
    count
}

/// The one client of this program.
struct OneTask(Mutex<RefCell<Option<Client>>>);

static CLIENT: OneTask = OneTask(Mutex::new(RefCell::new(None)));

impl SharedClient for OneTask {
    fn exclusively(&self, call: &mut dyn FnMut(&mut Client)) {
        let client = self.0.lock().expect("no call panicked");
        call(client.borrow_mut().as_mut().expect("it was made"));
    }
}

/// A Cubit at the other end of a new link with messages of that size.
fn cubit(message_bytes_max: usize) -> Cubit {
    let cubit: &'static _ = Box::leak(Box::new(Tie::<Cubit, _>::new(Cuber::new())));
    let objects: &'static [Object<'static>] = Box::leak(Box::new([Object {
        key: KEY,
        servant: cubit,
    }]));
    let link = Loop {
        server: Server::new(objects, message_bytes_max),
        pipe: Pipe {
            to_server: Vec::with_capacity(MESSAGE_BYTES_MAX),
            to_client: Vec::with_capacity(MESSAGE_BYTES_MAX),
        },
    };
    let client = Client::new(Box::new(link), message_bytes_max);
    let slot = CLIENT.0.lock().expect("no call panicked");
    slot.replace(Some(client));
    let object = ObjectRef::new(&CLIENT, "IDL:Cubit:1.0", KEY).with_priority(7);
    Cubit::narrow(&object).expect("its type is stated")
}

fn the_first_message_takes_as_much_memory_as_the_next() {
    for message_bytes_max in [1000, 1024, MESSAGE_BYTES_MAX] {
        let cubit = cubit(message_bytes_max);
        let bytes = [2; 600];
        let call = || {
            let cubed = cubit.cube_octet_sequence(&bytes).expect("it is served");
            assert_eq!(cubed, [8; 600]);
        };
        let ((), first) = heap_calls(call);
        let ((), second) = heap_calls(call);
        assert_eq!(first, second, "of {message_bytes_max} bytes");
    }
}

fn calls_of_fixed_size_make_no_heap_call() {
    let cubit = cubit(MESSAGE_BYTES_MAX);
    let many = Many { o: 4, l: 5, s: 6 };
    let round = || {
        cubit.cube_void().expect("it is served");
        cubit.cube_oneway().expect("it is sent");
        assert_eq!(cubit.cube_octet(3), Ok(27));
        assert_eq!(cubit.cube_short(-3), Ok(-27));
        assert_eq!(cubit.cube_long(100), Ok(1_000_000));
        let cubed = Many {
            o: 64,
            l: 125,
            s: 216,
        };
        assert_eq!(cubit.cube_struct(&many), Ok(cubed));
        assert_eq!(cubit.cube_union(&Oneof::L(-2)), Ok(Oneof::L(-8)));
    };
    let ((), calls) = heap_calls(|| (0..1000).for_each(|_| round()));
    assert_eq!(calls, 0, "heap calls in 7,000 calls");
}
