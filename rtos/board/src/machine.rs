//! What a guest serves to the host: the Cubit, and an object that is the machine itself.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use rtorb_embedded::{CallPriority, Link, Object, Server, SystemException, Tie};
use rtorb_embedded_cubit::calls::CALLS;
use rtorb_embedded_cubit::cubit::Cubit;
use rtorb_embedded_cubit::guest::{Guest, GuestServant};
use rtorb_embedded_cubit::servant::{Cuber, KEY};

use crate::MESSAGE_BYTES_MAX;
use crate::heap::HEAP;

/// What only the kernel of a guest knows.
pub trait Kernel: Send + Sync + 'static {
    /// The priority of the task that calls this.
    fn priority(&self) -> u32;

    /// The object with that key at the other end of the second serial line. The host asks for it once.
    fn cubit_of_host(&self, key: &[u8]) -> Cubit;
}

/// Serves on a link for ever. It takes its memory at its beginning.
pub fn serve<K: Kernel>(kernel: K, link: &mut dyn Link, priority: &mut dyn CallPriority) -> ! {
    let cubit = Tie::<Cubit, _>::new(Cuber::new());
    let machine = Tie::<Guest, _>::new(Machine(kernel));
    let objects = [
        Object {
            key: KEY,
            servant: &cubit,
        },
        Object {
            key: b"guest",
            servant: &machine,
        },
    ];
    let mut server = Box::new(Server::new(&objects, MESSAGE_BYTES_MAX));
    loop {
        // What ends a connection is said to the peer; the next one is served.
        let _ = server.serve_next(link, priority);
    }
}

/// The servant of the machine itself.
struct Machine<K>(K);

impl<K: Kernel> GuestServant for Machine<K> {
    fn heap_calls(&self) -> Result<u32, SystemException> {
        Ok(HEAP.calls())
    }

    fn heap_octets(&self) -> Result<u32, SystemException> {
        Ok(HEAP.used() as u32)
    }

    fn priority(&self) -> Result<u32, SystemException> {
        Ok(self.0.priority())
    }

    fn call_back(&self, key: &[u8]) -> Result<Vec<String>, SystemException> {
        let cubit = self.0.cubit_of_host(key);
        let answers = CALLS
            .iter()
            .map(|call| (call.operation, call.check(&cubit)));
        let wrong = answers.filter(|(_, answer)| *answer != Ok(true));
        let said = wrong.map(|(operation, answer)| format!("{operation}: {answer:?}"));
        Ok(said.collect())
    }

    fn switch_off(&self) -> Result<(), SystemException> {
        crate::switch_off();
        Ok(())
    }
}
