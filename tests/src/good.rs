//! A client that does nothing wrong and must be served whatever others do.

use crate::ours::Ours;
use crate::raw::{Connection, REPLY, Request};

/// A connection, and an object to call over it.
#[derive(Debug)]
pub struct Good {
    connection: Connection,
    /// The key of the object, a Cubit.
    pub key: Vec<u8>,
}

impl Good {
    /// Connects to a server.
    #[must_use]
    pub fn to(ours: &Ours) -> Self {
        Self {
            connection: Connection::to(ours.address()),
            key: ours.key(ours.cubit.as_object()),
        }
    }

    /// Calls.
    ///
    /// # Panics
    ///
    /// It is not served.
    pub fn call(&mut self) {
        self.try_call()
            .expect("a client that did nothing wrong is served");
    }

    /// Calls; none if it is not served.
    pub fn try_call(&mut self) -> Option<()> {
        let request = Request::two_way(&self.key, "cube_long").of_long(3);
        let answer = self.connection.ask(&request)?;
        (answer.kind == REPLY && answer.status == 0 && answer.long() == 27).then_some(())
    }
}
