//! The receive buffers that no connection of a server uses.

use core::sync::atomic::{AtomicUsize, Ordering};
use rtorb_os::memory::trim_heap;
use rtorb_os::sched::current_policy;
use rtorb_os::sync::Mutex;
use rtorb_wire::connection::Receiver;

/// A bounded pool of receive buffers. A connection gets one with its first request, or with the first one that does not fit into its own small
/// buffer, and gives it back when it has been silent.
#[derive(Debug)]
pub(crate) struct Buffers {
    spare: Mutex<Vec<Vec<u8>>>,
    spare_max: usize,
    /// Connections whose memory was freed since free memory was last returned to the system.
    freed: AtomicUsize,
}

/// Free memory is returned to the system after this many connections were freed, because that takes milliseconds.
const FREED_MIN: usize = 256;

impl Buffers {
    /// Creates an empty pool of at most `spare_max` buffers.
    pub(crate) fn new(spare_max: usize) -> Self {
        Self {
            spare: Mutex::default(),
            spare_max,
            freed: AtomicUsize::new(0),
        }
    }

    /// Takes a buffer from the pool, or makes one.
    #[cold]
    pub(crate) fn take(&self) -> Vec<u8> {
        let spare = self.spare.lock().pop();
        spare.unwrap_or_else(Receiver::new_buffer)
    }

    /// Keeps a buffer for the next connection that needs one, or frees it.
    #[cold]
    pub(crate) fn give_back(&self, buffer: Vec<u8>) {
        let mut spare = self.spare.lock();
        if spare.len() < self.spare_max {
            spare.push(buffer);
        } else {
            drop(spare);
            self.note_freed();
        }
    }

    /// Counts a connection whose memory is freed.
    pub(crate) fn note_freed(&self) {
        self.freed.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns free memory to the system if there is much of it. A thread with a real-time priority does not: it takes milliseconds, in
    /// which the thread would not serve.
    #[cold]
    pub(crate) fn trim(&self) {
        if self.freed.load(Ordering::Relaxed) >= FREED_MIN && !current_policy().is_real_time() {
            self.freed.store(0, Ordering::Relaxed);
            trim_heap();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::Endpoint;
    use crate::{DispatchStrategy, Limits, Orb};
    use core::time::Duration;
    use rtorb_os::sched::SchedPolicy;
    use rtorb_os::thread::{ThreadConfig, spawn};
    use rtorb_tests::relay::has_priorities;
    use rtorb_tests::running::until;
    use rtorb_tests::scratch::Scratch;
    use std::net::TcpStream;
    use std::sync::Arc;

    #[test]
    fn a_buffer_that_was_given_back_is_the_next_one_and_the_pool_is_bounded() {
        let buffers = Buffers::new(1);
        let (first, second) = (buffers.take(), buffers.take());
        let place = first.as_ptr();
        buffers.give_back(first);
        buffers.give_back(second);
        assert_eq!(buffers.spare.lock().len(), 1);
        assert_eq!(buffers.freed.load(Ordering::Relaxed), 1);
        let again = buffers.take();
        assert_eq!(again.as_ptr(), place, "without a heap call");
    }

    #[test]
    fn much_free_memory_is_returned_by_a_thread_without_real_time_priority() {
        let is_returned = |config: ThreadConfig| {
            let buffers = Arc::new(Buffers::new(1));
            buffers.freed.store(FREED_MIN, Ordering::Relaxed);
            let of_thread = Arc::clone(&buffers);
            let thread = spawn("trim", &config, move || of_thread.trim()).expect("it is allowed");
            thread.join().expect("no panic");
            buffers.freed.load(Ordering::Relaxed) == 0
        };
        assert!(is_returned(ThreadConfig::default()));
        if has_priorities() {
            assert!(!is_returned(ThreadConfig {
                policy: Some(SchedPolicy::Fifo(1)),
                ..ThreadConfig::default()
            }));
        }
    }

    #[test]
    fn much_free_memory_is_returned_with_every_dispatch_strategy() {
        for (name, dispatch) in DispatchStrategy::ALL {
            let limits = Limits::with(|limits| {
                limits.idle_buffer_time = Duration::from_millis(20);
            });
            let server = Orb::builder().dispatch(dispatch).limits(limits).build();
            let server = server.expect("an ORB");
            server.root_poa().expect("it listens");
            let serving = server.clone();
            let thread = std::thread::spawn(move || serving.run());
            // Lanes look for the first time when a client has come.
            let endpoints = server.endpoints();
            let Some(Endpoint::Tcp { host, port }) = endpoints.first() else {
                panic!("the default endpoint is TCP");
            };
            let _client = TcpStream::connect((host.as_str(), *port)).expect("it listens");
            let freed = &server.core.adapters.server.buffers.freed;
            freed.store(FREED_MIN, Ordering::Relaxed);
            until(&format!("{name}: the memory is returned"), || {
                (freed.load(Ordering::Relaxed) == 0).then_some(())
            });
            server.shutdown();
            let served = thread.join().expect("no panic");
            assert!(served.is_ok(), "{name}: {served:?}");
        }
    }

    #[test]
    fn a_silent_connection_of_each_transport_gives_its_buffer_back() {
        let scratch = Scratch::new();
        let path = |name: &str| scratch.join(name).display().to_string();
        for (name, dispatch) in DispatchStrategy::ALL {
            let (unix, memory) = (path(&format!("{name}-u")), path(&format!("{name}-m")));
            let limits = Limits::with(|limits| {
                limits.idle_buffer_time = Duration::from_millis(20);
            });
            let builder = Orb::builder().dispatch(dispatch).limits(limits);
            let builder = builder
                .listen("iiop://127.0.0.1:0")
                .listen(&format!("uiop://{unix}"))
                .listen(&format!("shmiop://{memory}"));
            let server = builder.build().expect("an ORB");
            server.root_poa().expect("it listens");
            let serving = server.clone();
            let thread = std::thread::spawn(move || serving.run());
            let buffers = &server.core.adapters.server.buffers;
            let spare = || buffers.spare.lock().len();
            let endpoints = server.endpoints();
            let address = endpoints.iter().find_map(|endpoint| match endpoint {
                Endpoint::Tcp { host, port } => Some(format!("iiop:1.2@{host}:{port}/")),
                _ => None,
            });
            let addresses = [
                address.expect("it listens"),
                format!("uiop:1.2@{unix}|"),
                format!("shmiop:1.2@{memory}|"),
            ];
            // Their connections stay: one that ends gives its buffer back too.
            let clients = addresses.each_ref().map(|_| Orb::builder().build());
            for (address, client) in addresses.iter().zip(&clients) {
                let client = client.as_ref().expect("an ORB");
                // A request that does not fit into a small buffer.
                let url = format!("corbaloc:{address}{}", "nobody".repeat(300));
                let object = client.string_to_object(&url).expect("a reference");
                for round in 0..3 {
                    assert_eq!(object.non_existent(), Ok(true), "{name}, {url}, {round}");
                    let given_back = || (spare() > 0).then_some(());
                    until("the buffer is given back", given_back);
                }
            }
            server.shutdown();
            let served = thread.join().expect("no panic");
            assert!(served.is_ok(), "{name}: {served:?}");
        }
    }

    #[test]
    fn small_messages_at_a_socket_take_no_buffer_from_the_pool() {
        let server = Orb::builder().listen("iiop://127.0.0.1:0").build();
        let server = server.expect("an ORB");
        server.root_poa().expect("it listens");
        let serving = server.clone();
        let thread = std::thread::spawn(move || serving.run());
        let buffers = &server.core.adapters.server.buffers;
        buffers.give_back(Receiver::new_buffer());
        let endpoints = server.endpoints();
        let Some(Endpoint::Tcp { host, port }) = endpoints.first() else {
            panic!("the endpoint is TCP");
        };
        let client = Orb::builder().build().expect("an ORB");
        for (key, spare) in [("nobody", 1), (&*"nobody".repeat(300), 0)] {
            let url = format!("corbaloc:iiop:1.2@{host}:{port}/{key}");
            let object = client.string_to_object(&url).expect("a reference");
            for _ in 0..3 {
                assert_eq!(object.non_existent(), Ok(true));
                assert_eq!(buffers.spare.lock().len(), spare, "{key}");
            }
        }
        server.shutdown();
        thread.join().expect("no panic").expect("it served");
    }
}
