//! A link that breaks: TCP from one port to another.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rtorb_os::sync::Mutex;
use rtorb_tests::loopback::own_listener;

/// Carries connections to `target` while it is whole.
pub(crate) struct Relay {
    shared: Arc<RelayState>,
    address: std::net::SocketAddr,
}

struct RelayState {
    target: String,
    is_cut: AtomicBool,
    has_ended: AtomicBool,
    streams: Mutex<Vec<TcpStream>>,
}

impl Relay {
    /// A relay to an endpoint of Zenoh.
    pub(crate) fn to(endpoint: &str) -> Self {
        let listener = own_listener();
        let address = listener.local_addr().expect("it has an address");
        let shared = Arc::new(RelayState {
            target: endpoint.trim_start_matches("tcp/").to_owned(),
            is_cut: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
            streams: Mutex::default(),
        });
        let state = Arc::clone(&shared);
        std::thread::spawn(move || accept(&listener, &state));
        Self { shared, address }
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("tcp/{}", self.address)
    }

    /// Ends all connections, and each new one at once.
    pub(crate) fn cut(&self) {
        self.shared.is_cut.store(true, Ordering::SeqCst);
        for stream in self.shared.streams.lock().drain(..) {
            // Ended already, now and then.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    pub(crate) fn mend(&self) {
        self.shared.is_cut.store(false, Ordering::SeqCst);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.shared.has_ended.store(true, Ordering::SeqCst);
        self.cut();
        // It wakes the accepting thread.
        let _ = TcpStream::connect(self.address);
    }
}

fn accept(listener: &TcpListener, state: &Arc<RelayState>) {
    while let Ok((near, _)) = listener.accept() {
        if state.has_ended.load(Ordering::SeqCst) {
            return;
        }
        if state.is_cut.load(Ordering::SeqCst) {
            continue;
        }
        let Ok(far) = TcpStream::connect(&state.target) else {
            continue;
        };
        let copy = |stream: &TcpStream| stream.try_clone().expect("a descriptor");
        let mut streams = state.streams.lock();
        streams.extend([copy(&near), copy(&far)]);
        if state.is_cut.load(Ordering::SeqCst) {
            streams
                .drain(..)
                .for_each(|stream| drop(stream.shutdown(Shutdown::Both)));
        }
        drop(streams);
        let (near_too, far_too) = (copy(&near), copy(&far));
        std::thread::spawn(move || carry(near, far));
        std::thread::spawn(move || carry(far_too, near_too));
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream) {
    let mut bytes = [0; 65_536];
    while let Ok(count) = from.read(&mut bytes) {
        if count == 0 || to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
