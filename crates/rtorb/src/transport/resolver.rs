//! Host names to addresses, with a bound on the time.
//!
//! The system's resolver (getaddrinfo) takes as long as it likes. So one thread of the ORB asks it, one name after the other,
//! and a call waits for that thread until its own deadline at most. The thread starts with the first name that is no numeric
//! address. When the ORB ends while the system still looks for a name, the thread ends when the system has replied.

use core::net::{IpAddr, SocketAddr};
use rtorb_os::sched::SchedPolicy;
use rtorb_os::sync::{Condvar, Mutex};
use rtorb_os::thread::{JoinHandle, ThreadConfig, spawn};
use rustix::io::Errno;
use std::net::ToSocketAddrs;
use std::sync::Arc;

/// The names that an ORB looks for.
#[derive(Debug, Default)]
pub(crate) struct Resolver {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<Option<()>>>>,
}

/// Names in work at a time. One more is refused (NO_RESOURCES).
const NAMES_MAX: usize = 64;

/// The addresses of a name; none if it is unknown.
type Addresses = Arc<[IpAddr]>;

#[derive(Debug, Default)]
struct Shared {
    names: Mutex<Names>,
    /// There is a name to look for, or the ORB ends.
    work: Condvar,
    /// A name is looked up.
    found: Condvar,
}

#[derive(Debug, Default)]
struct Names {
    /// Oldest first.
    wanted: Vec<Wanted>,
    next_number: u64,
    /// True while the system looks for a name.
    is_busy: bool,
    has_ended: bool,
}

/// A name, and the calls that wait for its addresses.
#[derive(Debug)]
struct Wanted {
    number: u64,
    host: Box<str>,
    waiting: usize,
    addresses: Option<Addresses>,
}

impl Resolver {
    /// The addresses of a host with that port: `TIMEDOUT` if the system does not find them by `until_ns`, `HOSTUNREACH` if there
    /// are none, `NOBUFS` if too many other names are looked for.
    pub(crate) fn addresses(
        &self,
        host: &str,
        port: u16,
        until_ns: u64,
    ) -> Result<Vec<SocketAddr>, Errno> {
        if let Ok(address) = host.parse() {
            return Ok(vec![SocketAddr::new(address, port)]);
        }
        let addresses = self.look_up(host, until_ns)?;
        if addresses.is_empty() {
            return Err(Errno::HOSTUNREACH);
        }
        Ok(addresses
            .iter()
            .map(|address| SocketAddr::new(*address, port))
            .collect())
    }

    #[cold]
    fn look_up(&self, host: &str, until_ns: u64) -> Result<Addresses, Errno> {
        self.start()?;
        let mut names = self.shared.names.lock();
        let number = names.want(host)?;
        self.shared.work.notify_one(&self.shared.names);
        loop {
            if let Some(addresses) = names.addresses(number) {
                names.give_up(number);
                return Ok(addresses);
            }
            if !self.shared.found.wait_until(&mut names, until_ns) {
                let addresses = names.addresses(number);
                names.give_up(number);
                return addresses.ok_or(Errno::TIMEDOUT);
            }
        }
    }

    /// Starts the thread, unless it runs. It is never urgent, whoever starts it.
    fn start(&self) -> Result<(), Errno> {
        let mut thread = self.thread.lock();
        if thread.is_none() {
            let config = ThreadConfig {
                policy: Some(SchedPolicy::Other),
                ..ThreadConfig::default()
            };
            let shared = Arc::clone(&self.shared);
            let started = spawn("rtorb-resolver", &config, move || shared.run());
            *thread = Some(started.map_err(|refused| refused.errno)?);
        }
        Ok(())
    }
}

impl Drop for Resolver {
    fn drop(&mut self) {
        let mut names = self.shared.names.lock();
        names.has_ended = true;
        let is_busy = names.is_busy;
        self.shared.work.notify_one(&self.shared.names);
        drop(names);
        if let Some(thread) = self.thread.get_mut().take()
            && !is_busy
        {
            // It has nothing that could panic, and nothing to say.
            let _ = thread.join();
        }
    }
}

impl Names {
    /// Adds a call that waits for a name, and returns the number of the name.
    fn want(&mut self, host: &str) -> Result<u64, Errno> {
        let known = self
            .wanted
            .iter_mut()
            .find(|wanted| wanted.addresses.is_none() && *wanted.host == *host);
        if let Some(known) = known {
            known.waiting += 1;
            return Ok(known.number);
        }
        if self.wanted.len() >= NAMES_MAX {
            return Err(Errno::NOBUFS);
        }
        let number = self.next_number;
        self.next_number += 1;
        self.wanted.push(Wanted {
            number,
            host: host.into(),
            waiting: 1,
            addresses: None,
        });
        Ok(number)
    }

    fn addresses(&self, number: u64) -> Option<Addresses> {
        let wanted = self.wanted.iter().find(|wanted| wanted.number == number);
        wanted?.addresses.clone()
    }

    /// Removes a call that waits for a name, and the name with the last of them.
    fn give_up(&mut self, number: u64) {
        if let Some(wanted) = self.wanted.iter_mut().find(|it| it.number == number) {
            wanted.waiting -= 1;
        }
        self.wanted.retain(|wanted| wanted.waiting > 0);
    }
}

impl Shared {
    /// Looks for one name after the other until the ORB ends.
    fn run(&self) {
        let mut names = self.names.lock();
        while !names.has_ended {
            let next = names.wanted.iter().find(|it| it.addresses.is_none());
            let Some((number, host)) = next.map(|it| (it.number, it.host.clone())) else {
                self.work.wait(&mut names);
                continue;
            };
            names.is_busy = true;
            drop(names);
            let addresses = system_addresses(&host);
            names = self.names.lock();
            names.is_busy = false;
            if let Some(wanted) = names.wanted.iter_mut().find(|it| it.number == number) {
                wanted.addresses = Some(addresses);
                self.found.notify_all(&self.names);
            }
        }
    }
}

/// Asks the system, however long that takes.
fn system_addresses(host: &str) -> Addresses {
    #[cfg(test)]
    tests::never_find(host);
    let addresses = (host, 0).to_socket_addrs();
    addresses.map_or_else(
        |_| Addresses::default(),
        |addresses| addresses.map(|address| address.ip()).collect(),
    )
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use rtorb_os::clock::monotonic_ns;
    use std::thread;

    /// The system never finds names that end so.
    pub(crate) const SILENT: &str = "silent.test";

    /// Does not return for such a name.
    pub(super) fn never_find(host: &str) {
        while host.ends_with(SILENT) {
            thread::park();
        }
    }

    const MOMENT_NS: u64 = 20_000_000;

    #[test]
    fn a_numeric_address_needs_no_thread() {
        let resolver = Resolver::default();
        for host in ["127.0.0.1", "::1"] {
            let addresses = resolver.addresses(host, 7, 0).expect("it is one");
            assert_eq!(
                addresses,
                [SocketAddr::new(host.parse().expect("legal"), 7)]
            );
        }
        assert!(resolver.thread.lock().is_none());
    }

    #[test]
    fn a_name_has_its_addresses_or_none() {
        let resolver = Resolver::default();
        let until_ns = monotonic_ns() + 10_000_000_000;
        let addresses = resolver.addresses("localhost", 7, until_ns).expect("known");
        assert!(
            addresses
                .iter()
                .all(|it| it.ip().is_loopback() && it.port() == 7)
        );
        assert!(resolver.shared.names.lock().wanted.is_empty());
    }

    #[test]
    fn names_that_the_system_does_not_find_in_time_are_bounded_in_time_and_number() {
        let resolver = Arc::new(Resolver::default());
        let wait = |host: &str, ns| resolver.addresses(host, 7, monotonic_ns() + ns);
        assert_eq!(wait(SILENT, MOMENT_NS), Err(Errno::TIMEDOUT));
        assert!(resolver.shared.names.lock().wanted.is_empty());
        let start = |number| {
            let resolver = Arc::clone(&resolver);
            let work = move || {
                let host = format!("{number}.{SILENT}");
                resolver.addresses(&host, 7, monotonic_ns() + 500 * MOMENT_NS)
            };
            spawn("waits", &ThreadConfig::default(), work).expect("a thread")
        };
        let waiting: Vec<_> = (0..NAMES_MAX).map(start).collect();
        while resolver.shared.names.lock().wanted.len() < NAMES_MAX {
            thread::yield_now();
        }
        assert_eq!(wait("another", MOMENT_NS), Err(Errno::NOBUFS));
        // Whoever waits for a name that is looked for already takes no place of its own.
        let host = format!("3.{SILENT}");
        assert_eq!(wait(&host, MOMENT_NS), Err(Errno::TIMEDOUT));
        let mut names = resolver.shared.names.lock();
        for wanted in &mut names.wanted {
            wanted.addresses = Some(Addresses::default());
        }
        resolver.shared.found.notify_all(&resolver.shared.names);
        drop(names);
        for thread in waiting {
            let found = thread.join().expect("no panic");
            assert_eq!(found, Some(Err(Errno::HOSTUNREACH)));
        }
        assert!(resolver.shared.names.lock().wanted.is_empty());
        // Its thread is still busy, and this does not wait for it.
        drop(resolver);
    }
}
