//! One thread that waits for all connections of a server. The strategy decides what it does with those that have bytes.

use crate::server::{
    Event, EventLoop, EventRoom, Readiness, Served, ServedConnection, Server, ServerCore, Token,
    Trigger, refuse,
};
use core::mem::MaybeUninit;
use rustix::io::Errno;
use std::collections::HashMap;
use std::sync::Arc;

/// All connections of a server, and their event loop.
#[derive(Debug)]
pub(super) struct Reactor {
    events: Arc<EventLoop>,
    connections: HashMap<Token, ServedConnection>,
    accepted: u32,
}

/// Connections served for one system call that asks which are ready.
const EVENTS_MAX: usize = 64;

impl Reactor {
    /// Makes the event loop of a server's listeners.
    pub(super) fn new(orb: &ServerCore, server: &Server) -> Result<Self, Errno> {
        Ok(Self {
            events: server.event_loop(orb.limits.send_timeout, Trigger::Level)?,
            connections: HashMap::new(),
            accepted: 0,
        })
    }

    /// Passes each connection that has bytes to `serve`, until the ORB is stopped. Drops connections that have ended.
    pub(super) fn run(
        &mut self,
        orb: &Arc<ServerCore>,
        server: &Server,
        mut serve: impl FnMut(&mut ServedConnection) -> Served,
    ) -> Result<(), Errno> {
        let events = Arc::clone(&self.events);
        let mut room: EventRoom<EVENTS_MAX> = [MaybeUninit::uninit(); EVENTS_MAX];
        while !orb.is_stopping() {
            for event in events.wait(&mut room, None)? {
                let event = events.event(event, &server.listeners);
                let Some(token) = self.connection_of(event, orb, server) else {
                    continue;
                };
                let Some(connection) = self.connections.get_mut(&token) else {
                    continue;
                };
                if serve(connection) == Served::Over && !orb.is_stopping() {
                    self.remove(token, server);
                }
            }
        }
        Ok(())
    }

    /// Waits until one connection has bytes; `None` after another event, which is handled here.
    pub(super) fn next(
        &mut self,
        orb: &Arc<ServerCore>,
        server: &Server,
    ) -> Result<Option<Token>, Errno> {
        let mut room: EventRoom<1> = [MaybeUninit::uninit()];
        let events = self.events.wait(&mut room, None)?;
        let event = events
            .first()
            .and_then(|event| self.events.event(event, &server.listeners));
        Ok(self.connection_of(event, orb, server))
    }

    /// The open connection with that token.
    pub(super) fn connection(&mut self, token: Token) -> Option<&mut ServedConnection> {
        self.connections.get_mut(&token)
    }

    /// Removes a connection. It is closed when the last thread that replies on it is done.
    pub(super) fn remove(&mut self, token: Token, server: &Server) {
        if let Some(connection) = self.connections.remove(&token) {
            connection.session.detach();
            drop(connection);
            self.events.resume(&server.listeners);
        }
    }

    /// The connection of an event. An event of a listener is handled here.
    fn connection_of(
        &mut self,
        event: Option<Event>,
        orb: &Arc<ServerCore>,
        server: &Server,
    ) -> Option<Token> {
        match event? {
            Event::Connection(token, readiness) => {
                if readiness == Readiness::Requested
                    && let Some(connection) = self.connections.get(&token)
                {
                    // Otherwise the loop reports the request again and again.
                    connection.session.await_bytes();
                }
                Some(token)
            }
            Event::Listener(number) => {
                self.accept(orb, server, number);
                None
            }
            Event::Stop | Event::Help => None,
        }
    }

    fn accept(&mut self, orb: &Arc<ServerCore>, server: &Server, number: usize) {
        server.accept_waiting(orb, &self.events, number, |connection| {
            self.accepted = self.accepted.wrapping_add(1);
            let token = Token::new(0, self.accepted);
            let attached = connection.session.attach(&self.events, token);
            if attached.is_ok() {
                self.connections.insert(token, connection);
            } else {
                // The host can watch no more descriptors: this client is refused, the others are not affected.
                refuse(&connection.session.stream);
            }
        });
    }
}
