//! One thread for all connections: it waits until some have requests and serves them one after the other.

use super::DispatchError;
use crate::orb::OrbCore;
use crate::server::{Served, ServedConnection, Server};
use crate::transport::Stream;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Serves on the calling thread, with the scheduling of the server's threads, until the ORB is stopped.
pub(super) fn run(orb: &Arc<OrbCore>, server: &Server) -> Result<(), DispatchError> {
    orb.server_threads
        .apply_here()
        .map_err(DispatchError::Refused)?;
    Reactor::new(orb, server)?.run()?;
    Ok(())
}

struct Reactor<'s> {
    orb: &'s Arc<OrbCore>,
    server: &'s Server,
    epoll: OwnedFd,
    connections: HashMap<u64, (ServedConnection, Arc<Stream>)>,
    next: u64,
}

/// Events 0 to this are the stop signal and the listeners; connections count on from there.
const FIRST_CONNECTION: u64 = 1 << 16;

/// Connections served for one system call that asks which are ready.
const EVENTS_MAX: usize = 64;

impl<'s> Reactor<'s> {
    fn new(orb: &'s Arc<OrbCore>, server: &'s Server) -> Result<Self, Errno> {
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
            orb,
            server,
            epoll,
            connections: HashMap::new(),
            next: FIRST_CONNECTION,
        })
    }

    fn run(mut self) -> Result<(), Errno> {
        let mut events: Vec<Event> = Vec::with_capacity(EVENTS_MAX);
        while !self.orb.is_stopping() {
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
            for event in &events {
                match { event.data }.u64() {
                    0 => {}
                    number if number < FIRST_CONNECTION => self.accept(number as usize - 1),
                    number => self.serve(number),
                }
            }
        }
        for (connection, _) in self.connections.values_mut() {
            connection.say_closing();
        }
        Ok(())
    }

    fn accept(&mut self, listener: usize) {
        let Some(listener) = self.server.listeners.get(listener) else {
            return;
        };
        while let Some((mut connection, stream)) = self.server.accept(self.orb, listener) {
            let data = EventData::new_u64(self.next);
            if epoll::add(&self.epoll, &*stream, data, EventFlags::IN).is_err() {
                // The host watches over no more files: this client is told to go, the others are served on.
                connection.say_closing();
                continue;
            }
            self.connections.insert(self.next, (connection, stream));
            self.next += 1;
        }
    }

    fn serve(&mut self, number: u64) {
        let Some((connection, stream)) = self.connections.get_mut(&number) else {
            return;
        };
        if connection.serve_ready() == Served::Over {
            // It is closed when the last of it is dropped, which is here.
            let _ = epoll::delete(&self.epoll, &**stream);
            self.connections.remove(&number);
        }
    }
}
