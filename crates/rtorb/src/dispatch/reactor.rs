//! One thread that waits for all connections of a server; what it does with those that have octets is a strategy's.

use crate::server::ServerCore;
use crate::server::{Served, ServedConnection, Server};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// All connections of a server, and what tells which of them have octets.
#[derive(Debug)]
pub(super) struct Reactor {
    epoll: OwnedFd,
    connections: HashMap<u64, ServedConnection>,
    next: u64,
}

/// Which connection of a reactor.
pub(super) type ConnectionNumber = u64;

/// Event 0 is the stop signal, those up to this are the listeners; connections count on from there.
const FIRST_CONNECTION: u64 = 1 << 16;

/// Connections served for one system call that asks which are ready.
const EVENTS_MAX: usize = 64;

impl Reactor {
    /// Begins to watch a server's listeners.
    pub(super) fn new(server: &Server) -> Result<Self, Errno> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(
            &epoll,
            server.stop_signal(),
            EventData::new_u64(0),
            EventFlags::IN,
        )?;
        for (number, listener) in (1..).zip(&server.listeners) {
            epoll::add(
                &epoll,
                &listener.socket,
                EventData::new_u64(number),
                EventFlags::IN,
            )?;
        }
        Ok(Self {
            epoll,
            connections: HashMap::new(),
            next: FIRST_CONNECTION,
        })
    }

    /// Gives each connection that has octets to `serve` until the ORB is stopped; one that is over is dropped.
    pub(super) fn run(
        &mut self,
        orb: &Arc<ServerCore>,
        server: &Server,
        mut serve: impl FnMut(&mut ServedConnection) -> Served,
    ) -> Result<(), Errno> {
        let mut events: Vec<Event> = Vec::with_capacity(EVENTS_MAX);
        while !orb.is_stopping() {
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
            for event in &events {
                let Some(number) = self.connection_of(event, orb, server) else {
                    continue;
                };
                let Some(connection) = self.connections.get_mut(&number) else {
                    continue;
                };
                if serve(connection) == Served::Over && !orb.is_stopping() {
                    self.remove(number);
                }
            }
        }
        Ok(())
    }

    /// Waits until one connection has octets; `None` when it was something else, which is dealt with.
    pub(super) fn next(
        &mut self,
        orb: &Arc<ServerCore>,
        server: &Server,
    ) -> Result<Option<ConnectionNumber>, Errno> {
        let mut room = [core::mem::MaybeUninit::uninit()];
        let event = match epoll::wait(&self.epoll, &mut room, None) {
            Ok((events, _)) => events.first().copied(),
            Err(Errno::INTR) => None,
            Err(errno) => return Err(errno),
        };
        Ok(event.and_then(|event| self.connection_of(&event, orb, server)))
    }

    /// The connection of that number, while it is open.
    pub(super) fn connection(&mut self, number: ConnectionNumber) -> Option<&mut ServedConnection> {
        self.connections.get_mut(&number)
    }

    /// Lets a connection go: it is closed when all have gone who answer on it.
    pub(super) fn remove(&mut self, number: ConnectionNumber) {
        if let Some(connection) = self.connections.remove(&number) {
            // It fails only for what is not watched, which is what is wanted.
            let _ = epoll::delete(&self.epoll, &connection.session.stream);
        }
    }

    /// Tells all clients that none of their requests will be served any more.
    pub(super) fn say_closing(&self) {
        for connection in self.connections.values() {
            connection.session.say_closing();
        }
    }

    /// The connection that an event is of; one of a listener is dealt with.
    fn connection_of(
        &mut self,
        event: &Event,
        orb: &Arc<ServerCore>,
        server: &Server,
    ) -> Option<ConnectionNumber> {
        match { event.data }.u64() {
            0 => None,
            number if number < FIRST_CONNECTION => {
                self.accept(orb, server, number as usize - 1);
                None
            }
            number => Some(number),
        }
    }

    fn accept(&mut self, orb: &Arc<ServerCore>, server: &Server, listener: usize) {
        let Some(listener) = server.listeners.get(listener) else {
            return;
        };
        while let Some(connection) = server.accept(orb, listener) {
            let data = EventData::new_u64(self.next);
            let stream = &connection.session.stream;
            if epoll::add(&self.epoll, stream, data, EventFlags::IN).is_err() {
                // The host watches over no more files: this client is told to go, the others are served on.
                connection.session.say_closing();
                continue;
            }
            self.connections.insert(self.next, connection);
            self.next += 1;
        }
    }
}
