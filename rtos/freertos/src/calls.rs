//! Calls of the host's Cubit over the second serial line, and of a Cubit of another task over streams in memory.

use alloc::boxed::Box;
use core::ffi::c_void;
use freertos_in_rust::kernel::stream_buffer::{
    StreamBufferHandle_t, xStreamBufferCreate, xStreamBufferReceive, xStreamBufferSend,
};
use freertos_in_rust::sync::{Mutex, TaskContext, TaskHandle};
use freertos_in_rust::types::portMAX_DELAY;
use rtorb_board::MESSAGE_BYTES_MAX;
use rtorb_embedded::{
    Client, FixedPriority, Link, LinkError, Object, ObjectRef, Server, SharedClient, Tie,
};
use rtorb_embedded_cubit::cubit::Cubit;
use rtorb_embedded_cubit::servant::{Cuber, KEY};

use crate::STACK_WORDS;
use crate::serial::Serial;

/// The client behind a mutex of the kernel, which inherits priority.
struct Locked(Mutex<Client>);

// SAFETY: the mutex lets one task at a time at the client, and the client's link may move between tasks.
unsafe impl Sync for Locked {}

impl SharedClient for Locked {
    fn exclusively(&self, call: &mut dyn FnMut(&mut Client)) {
        // SAFETY: only tasks call objects.
        let context = unsafe { TaskContext::assume() };
        let mut client = self.0.lock(&context).expect("waiting has no bound");
        call(&mut client);
    }
}

/// One end of a pair of streams in memory, which the kernel's stream buffers are.
struct Streams {
    out: StreamBufferHandle_t,
    into: StreamBufferHandle_t,
}

// SAFETY: the buffers live for ever. Each has one writer and one reader.
unsafe impl Send for Streams {}

/// How long a call may take, in milliseconds.
const PATIENCE: u32 = 10_000;

/// Octets on their way: more than any message of the calls that are timed.
const STREAM_BYTES: usize = 4 << 10;

/// The object at the other end of the second line with that key.
///
/// # Safety
/// It is called once.
pub unsafe fn cubit_of_host(context: &TaskContext, key: &[u8]) -> Cubit {
    // SAFETY: the caller says that this is the first use of the line.
    let line = unsafe { Serial::begin(1, PATIENCE) };
    cubit_over(context, Box::new(line), key)
}

/// The Cubit of a task of its own, which has that priority.
pub fn cubit_of_task(context: &TaskContext, priority: u32) -> Cubit {
    let (requests, replies) = (stream(), stream());
    let server = Box::leak(Box::new(Streams {
        out: replies,
        into: requests,
    }));
    let end = core::ptr::from_mut(server).cast();
    // SAFETY: the streams live for ever, and only that task has this end of them.
    let task = unsafe {
        TaskHandle::spawn_with_param(context, b"cubit", STACK_WORDS, priority, serve, end)
    };
    assert!(task.is_ok(), "there is no memory for the task");
    let client = Streams {
        out: requests,
        into: replies,
    };
    cubit_over(context, Box::new(client), KEY)
}

fn cubit_over(context: &TaskContext, link: Box<dyn Link + Send>, key: &[u8]) -> Cubit {
    let client = Client::new(link, MESSAGE_BYTES_MAX);
    let client = Mutex::new(context, client).expect("there is memory for a mutex");
    let client: &'static Locked = Box::leak(Box::new(Locked(client)));
    Cubit::unchecked_narrow(ObjectRef::new(client, "IDL:Cubit:1.0", key))
}

fn stream() -> StreamBufferHandle_t {
    // SAFETY: this is a task, and the numbers are in the kernel's bounds.
    let stream = unsafe { xStreamBufferCreate(STREAM_BYTES, 1) };
    assert!(!stream.is_null(), "there is no memory for a stream");
    stream
}

extern "C" fn serve(end: *mut c_void) {
    // SAFETY: it is this task's end, which nobody else has.
    let link = unsafe { &mut *end.cast::<Streams>() };
    let cubit = Tie::<Cubit, _>::new(Cuber::new());
    let objects = [Object {
        key: KEY,
        servant: &cubit,
    }];
    let mut server = Server::new(&objects, MESSAGE_BYTES_MAX);
    loop {
        // After a timeout of the link the connection goes on; after any other error the next one begins.
        let _ = server.serve_next(link, &mut FixedPriority);
    }
}

impl Link for Streams {
    fn send(&mut self, octets: &[u8]) -> Result<(), LinkError> {
        let (start, mut left) = (octets.as_ptr(), octets.len());
        while left > 0 {
            let sent = octets.len() - left;
            // SAFETY: this is the only writer, and what is left of `octets` is readable.
            let taken =
                unsafe { xStreamBufferSend(self.out, start.add(sent).cast(), left, portMAX_DELAY) };
            left -= taken;
        }
        Ok(())
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<usize, LinkError> {
        let (start, room) = (into.as_mut_ptr().cast(), into.len());
        // SAFETY: this is the only reader, and `into` is writable for its length.
        match unsafe { xStreamBufferReceive(self.into, start, room, portMAX_DELAY) } {
            0 => Err(LinkError::TimedOut),
            count => Ok(count),
        }
    }
}
