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
    rtorb_tests::alone::run(
        "calls_of_fixed_size_make_no_heap_call",
        calls_of_fixed_size_make_no_heap_call,
    );
}

/// Client and server in one task: what the client sends is served when it waits for the reply.
struct Loop {
    server: Server<'static>,
    pipe: Pipe,
}

/// The octets under way in both directions.
#[derive(Default)]
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

fn calls_of_fixed_size_make_no_heap_call() {
    let cubit: &'static _ = Box::leak(Box::new(Tie::<Cubit, _>::new(Cuber::new())));
    let objects: &'static [Object<'static>] = Box::leak(Box::new([Object {
        key: KEY,
        servant: cubit,
    }]));
    let link = Loop {
        server: Server::new(objects, MESSAGE_BYTES_MAX),
        pipe: Pipe::default(),
    };
    let client = Client::new(Box::new(link), MESSAGE_BYTES_MAX);
    CLIENT.0.lock().expect("it is new").replace(Some(client));
    let object = ObjectRef::new(&CLIENT, "IDL:Cubit:1.0", KEY).with_priority(7);
    let cubit = Cubit::narrow(&object).expect("its type is stated");
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
    // The link's own buffers grow in the first one.
    round();
    let ((), calls) = heap_calls(|| (0..1000).for_each(|_| round()));
    assert_eq!(calls, 0, "heap calls in 7,000 calls");
}
