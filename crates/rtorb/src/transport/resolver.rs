//! Resolves host names, within a bounded time.
//!
//! Nothing bounds the time of the system's resolver (getaddrinfo). So one thread of the ORB calls it for one name after the other,
//! and a call waits for that thread until its own deadline at most. The thread starts with the first name that is not a numeric
//! address. If the ORB ends during a lookup, the thread ends after the lookup.
//!
//! If no call waits for a name any more when its lookup ends, the thread keeps the addresses for some seconds. Otherwise calls whose
//! timeout is shorter than a lookup would never succeed.

use core::net::SocketAddr;
use rtorb_os::clock::monotonic_ns;
use rtorb_os::sched::{SchedPolicy, current_affinity};
use rtorb_os::sync::{Condvar, Mutex};
use rtorb_os::thread::{JoinHandle, ThreadConfig, spawn};
use rustix::io::Errno;
use std::net::ToSocketAddrs;
use std::sync::Arc;

/// The resolver of an ORB.
#[derive(Debug, Default)]
pub(crate) struct Resolver {
    shared: Arc<ResolverState>,
    /// The CPUs of the thread; if empty, it inherits those of the thread that starts it.
    cpus: Vec<usize>,
    thread: Mutex<Option<JoinHandle<Option<()>>>>,
}

/// The most names that are looked up at a time. One more is refused (NO_RESOURCES).
const NAMES_MAX: usize = 64;

/// The most names whose unclaimed addresses are kept. One more replaces the oldest.
const UNCLAIMED_MAX: usize = 4;

/// How long unclaimed addresses are kept, in nanoseconds.
const UNCLAIMED_NS: u64 = 5_000_000_000;

/// The addresses of a name, with port 0 and the scope of local ones; empty for an unknown name.
type SocketAddresses = Arc<[SocketAddr]>;

/// The state that callers share with the thread.
#[derive(Debug, Default)]
struct ResolverState {
    names: Mutex<HostNames>,
    /// Signalled when there is a name to look up, and when the ORB ends.
    work: Condvar,
    /// Signalled when a lookup has ended.
    found: Condvar,
}

/// The names that calls wait for, and unclaimed addresses.
#[derive(Debug, Default)]
struct HostNames {
    /// Oldest first.
    lookups: Vec<Lookup>,
    /// Oldest first.
    unclaimed: Vec<UnclaimedAddresses>,
    next_number: u64,
    /// True while the thread is in the system's resolver.
    is_busy: bool,
    has_ended: bool,
}

/// A name that calls wait for.
#[derive(Debug)]
struct Lookup {
    number: u64,
    host: Box<str>,
    /// The number of calls that wait.
    waiting: usize,
    addresses: Option<SocketAddresses>,
}

/// The addresses of a name that were found after all its calls had given up.
#[derive(Debug)]
struct UnclaimedAddresses {
    host: Box<str>,
    addresses: SocketAddresses,
    until_ns: u64,
}

impl Resolver {
    /// Makes the resolver of an ORB that the calling thread builds. Its thread has the same CPUs.
    pub(crate) fn of_this_thread() -> Self {
        Self {
            shared: Arc::default(),
            cpus: current_affinity(),
            thread: Mutex::default(),
        }
    }

    /// Returns the addresses of a host, with that port.
    ///
    /// # Errors
    /// `TIMEDOUT` if the lookup has not ended by `until_ns`, `HOSTUNREACH` for an unknown name, `NOBUFS` if too many other names are
    /// looked up, `NOMEM` if the host refuses the thread.
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
        let mut addresses = addresses.to_vec();
        for address in &mut addresses {
            address.set_port(port);
        }
        Ok(addresses)
    }

    #[cold]
    fn look_up(&self, host: &str, until_ns: u64) -> Result<SocketAddresses, Errno> {
        self.start()?;
        let mut names = self.shared.names.lock();
        if let Some(addresses) = names.unclaimed(host, monotonic_ns()) {
            return Ok(addresses);
        }
        let number = names.add(host)?;
        self.shared.work.notify_one(&self.shared.names);
        loop {
            if let Some(addresses) = names.addresses(number) {
                names.remove(number);
                return Ok(addresses);
            }
            if !self.shared.found.wait_until(&mut names, until_ns) {
                let addresses = names.addresses(number);
                names.remove(number);
                return addresses.ok_or(Errno::TIMEDOUT);
            }
        }
    }

    /// Starts the thread, unless it runs. It never has a real-time priority.
    ///
    /// Nothing bounds the time until it runs: if more urgent threads use all its CPUs, calls with a name wait for them.
    fn start(&self) -> Result<(), Errno> {
        let mut thread = self.thread.lock();
        if thread.is_none() {
            let config = ThreadConfig {
                policy: Some(SchedPolicy::Other),
                affinity: self.cpus.clone(),
                ..ThreadConfig::default()
            };
            let shared = Arc::clone(&self.shared);
            let started = spawn("rtorb-resolver", &config, move || shared.run());
            *thread = Some(started.map_err(|refused| match refused.errno {
                // The host has no room for a thread. From a socket, the same number means that a timeout has passed.
                Errno::AGAIN => Errno::NOMEM,
                errno => errno,
            })?);
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
            // The thread does not panic, and returns nothing.
            let _ = thread.join();
        }
    }
}

impl HostNames {
    /// Adds a call that waits for a name, and returns the number of the lookup.
    fn add(&mut self, host: &str) -> Result<u64, Errno> {
        let known = self
            .lookups
            .iter_mut()
            .find(|lookup| lookup.addresses.is_none() && *lookup.host == *host);
        if let Some(known) = known {
            known.waiting += 1;
            return Ok(known.number);
        }
        if self.lookups.len() >= NAMES_MAX {
            return Err(Errno::NOBUFS);
        }
        let number = self.next_number;
        self.next_number += 1;
        self.lookups.push(Lookup {
            number,
            host: host.into(),
            waiting: 1,
            addresses: None,
        });
        Ok(number)
    }

    fn addresses(&self, number: u64) -> Option<SocketAddresses> {
        let lookup = self.lookups.iter().find(|lookup| lookup.number == number);
        lookup?.addresses.clone()
    }

    /// Removes a call from a lookup, and the lookup with its last call.
    fn remove(&mut self, number: u64) {
        if let Some(lookup) = self.lookups.iter_mut().find(|it| it.number == number) {
            lookup.waiting -= 1;
        }
        self.lookups.retain(|lookup| lookup.waiting > 0);
    }

    /// Delivers the addresses to all calls that wait for the name. Returns false if none waits.
    fn deliver(&mut self, host: &str, addresses: &SocketAddresses) -> bool {
        let mut lookups = self.lookups.iter_mut();
        let lookup = lookups.find(|it| it.addresses.is_none() && *it.host == *host);
        lookup
            .map(|it| it.addresses = Some(Arc::clone(addresses)))
            .is_some()
    }

    /// Keeps unclaimed addresses for later calls. A later call looks an unknown name up again: the lookup may have failed for a moment only.
    fn keep(&mut self, host: Box<str>, addresses: SocketAddresses, now_ns: u64) {
        if addresses.is_empty() {
            return;
        }
        if self.unclaimed.len() == UNCLAIMED_MAX {
            self.unclaimed.remove(0);
        }
        self.unclaimed.push(UnclaimedAddresses {
            host,
            addresses,
            until_ns: now_ns + UNCLAIMED_NS,
        });
    }

    /// Returns the unclaimed addresses of a name, and removes those that are too old.
    fn unclaimed(&mut self, host: &str, now_ns: u64) -> Option<SocketAddresses> {
        self.unclaimed.retain(|kept| kept.until_ns > now_ns);
        let kept = self.unclaimed.iter().rfind(|kept| *kept.host == *host);
        kept.map(|kept| Arc::clone(&kept.addresses))
    }
}

impl ResolverState {
    /// Looks up one name after the other until the ORB ends.
    fn run(&self) {
        let mut names = self.names.lock();
        while !names.has_ended {
            let next = names.lookups.iter().find(|it| it.addresses.is_none());
            let Some(host) = next.map(|it| it.host.clone()) else {
                self.work.wait(&mut names);
                continue;
            };
            names.is_busy = true;
            drop(names);
            let addresses = system_addresses(&host);
            names = self.names.lock();
            names.is_busy = false;
            if names.deliver(&host, &addresses) {
                self.found.notify_all(&self.names);
            } else {
                names.keep(host, addresses, monotonic_ns());
            }
        }
    }
}

/// Calls the system's resolver. Nothing bounds its time.
fn system_addresses(host: &str) -> SocketAddresses {
    #[cfg(test)]
    let host = tests::delay(host);
    let addresses = (host, 0).to_socket_addrs();
    addresses.map_or_else(|_| SocketAddresses::default(), Iterator::collect)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use core::net::SocketAddrV6;
    use core::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    /// The end of names whose lookup never ends.
    pub(crate) const SILENT: &str = "silent.test";

    /// Looks up as many names as may wait. None of the lookups ends.
    pub(crate) fn fill(resolver: &Resolver) {
        let mut names = resolver.shared.names.lock();
        for number in 0..NAMES_MAX {
            let added = names.add(&format!("{number}.{SILENT}"));
            added.expect("there is room");
        }
    }

    /// Names whose lookups take long.
    const SLOW: [&str; 2] = ["slow.test", "slower.test"];

    /// Whether the lookup of each slow name may end.
    static MAY_END: [AtomicBool; 2] = [const { AtomicBool::new(false) }; 2];

    /// Does not return for a silent name. For a slow name, returns the name of this host once the lookup may end.
    pub(super) fn delay(host: &str) -> &str {
        while host.ends_with(SILENT) {
            thread::park();
        }
        let Some(place) = SLOW.iter().position(|slow| *slow == host) else {
            return host;
        };
        while !MAY_END[place].load(Ordering::SeqCst) {
            rtorb_os::clock::sleep_until(rtorb_os::clock::monotonic_ns() + 1_000_000);
        }
        "localhost"
    }

    const MOMENT_NS: u64 = 20_000_000;

    /// Longer than anything here takes, in nanoseconds.
    const LONG_NS: u64 = 60_000_000_000;

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
        let until_ns = monotonic_ns() + LONG_NS;
        let addresses = resolver.addresses("localhost", 7, until_ns).expect("known");
        assert!(
            addresses
                .iter()
                .all(|it| it.ip().is_loopback() && it.port() == 7)
        );
        assert!(resolver.shared.names.lock().lookups.is_empty());
    }

    #[test]
    fn the_scope_of_a_local_address_is_kept() {
        let resolver = Resolver::of_this_thread();
        let until_ns = monotonic_ns() + LONG_NS;
        let addresses = resolver
            .addresses("fe80::1%1", 7, until_ns)
            .expect("numeric");
        let ip = "fe80::1".parse().expect("legal");
        assert_eq!(addresses, [SocketAddr::V6(SocketAddrV6::new(ip, 7, 0, 1))]);
    }

    #[test]
    fn a_name_whose_lookup_takes_longer_than_each_call_is_found_by_a_later_call() {
        let resolver = Resolver::default();
        let ask = || resolver.addresses(SLOW[0], 7, monotonic_ns() + MOMENT_NS);
        for _ in 0..2 {
            assert_eq!(ask(), Err(Errno::TIMEDOUT));
        }
        MAY_END[0].store(true, Ordering::SeqCst);
        let given_up_ns = monotonic_ns() + LONG_NS;
        while ask() == Err(Errno::TIMEDOUT) {
            assert!(monotonic_ns() < given_up_ns);
        }

        // Nobody waits when the addresses of this lookup come.
        let resolver = Resolver::default();
        let ask = |ns| resolver.addresses(SLOW[1], 7, monotonic_ns() + ns);
        assert_eq!(ask(MOMENT_NS), Err(Errno::TIMEDOUT));
        MAY_END[1].store(true, Ordering::SeqCst);
        while resolver.shared.names.lock().unclaimed.is_empty() {
            thread::yield_now();
        }
        assert!(ask(0).is_ok() && ask(0).is_ok());
    }

    #[test]
    fn addresses_that_nobody_waited_for_are_few_and_are_forgotten() {
        let mut names = HostNames::default();
        let addresses = || Arc::from([SocketAddr::from(([127, 0, 0, 1], 0))]);
        for number in 0..=UNCLAIMED_MAX {
            names.keep(number.to_string().into(), addresses(), 7);
        }
        names.keep("unknown".into(), SocketAddresses::default(), 7);
        assert_eq!(names.unclaimed.len(), UNCLAIMED_MAX);
        assert!(names.unclaimed("0", 8).is_none() && names.unclaimed("1", 8).is_some());
        assert!(
            names.unclaimed("unknown", 8).is_none(),
            "it has no addresses"
        );
        assert!(names.unclaimed("1", 7 + UNCLAIMED_NS).is_none());
        assert!(names.unclaimed.is_empty());
    }

    #[test]
    fn names_that_the_system_does_not_find_in_time_are_bounded_in_time_and_number() {
        let resolver = Arc::new(Resolver::default());
        let wait = |host: &str, ns| resolver.addresses(host, 7, monotonic_ns() + ns);
        assert_eq!(wait(SILENT, MOMENT_NS), Err(Errno::TIMEDOUT));
        assert!(resolver.shared.names.lock().lookups.is_empty());
        let start = |number| {
            let resolver = Arc::clone(&resolver);
            let work = move || {
                let host = format!("{number}.{SILENT}");
                resolver.addresses(&host, 7, monotonic_ns() + LONG_NS)
            };
            spawn("waits", &ThreadConfig::default(), work).expect("a thread")
        };
        let waiting: Vec<_> = (0..NAMES_MAX).map(start).collect();
        while resolver.shared.names.lock().lookups.len() < NAMES_MAX {
            thread::yield_now();
        }
        assert_eq!(wait("another", MOMENT_NS), Err(Errno::NOBUFS));
        // Whoever waits for a name that is looked for already takes no place of its own.
        let host = format!("3.{SILENT}");
        assert_eq!(wait(&host, MOMENT_NS), Err(Errno::TIMEDOUT));
        let mut names = resolver.shared.names.lock();
        for lookup in &mut names.lookups {
            lookup.addresses = Some(SocketAddresses::default());
        }
        resolver.shared.found.notify_all(&resolver.shared.names);
        drop(names);
        for thread in waiting {
            let found = thread.join().expect("no panic");
            assert_eq!(found, Some(Err(Errno::HOSTUNREACH)));
        }
        assert!(resolver.shared.names.lock().lookups.is_empty());
        // Its thread is still busy, and this does not wait for it.
        drop(resolver);
    }
}
