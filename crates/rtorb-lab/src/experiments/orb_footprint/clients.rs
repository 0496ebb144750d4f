//! Connections that nobody uses: each is that of a client thread that has made one call and waits.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};

use rtorb::{Orb, Strategies};
use rtorb_os::thread::spawn;

use crate::contestants::cubit::idl::Cubit;
use crate::processes::child::{Role, arguments, ready};
use crate::processes::questions;

/// An ORB and nothing else until standard input ends, and clients that wait.
pub(crate) const ROLES: &[Role] = &[
    Role::here("idle-orb", |words| {
        let [preset] = arguments(words)?;
        let orb = orb(preset)?;
        ready("");
        let ended = io::copy(&mut io::stdin(), &mut io::sink());
        drop(orb);
        ended.map(drop).map_err(|error| error.to_string())
    }),
    Role::here("idle-clients", |words| {
        let [preset, reference] = arguments(words)?;
        IdleClients::new(preset, reference)?.serve()
    }),
];

/// An ORB of that preset.
///
/// # Errors
/// What the ORB said.
pub(crate) fn orb(preset: &str) -> Result<Orb, String> {
    let strategies = Strategies::preset(preset).map_err(|error| error.to_string())?;
    let orb = Orb::builder().strategies(strategies).build();
    orb.map_err(|error| error.to_string())
}

/// The clients of one object.
#[derive(Debug)]
pub(crate) struct IdleClients {
    cubit: Cubit,
    /// Dropping one ends its thread.
    waiting: Vec<Sender<()>>,
}

impl IdleClients {
    /// Without a connection.
    ///
    /// # Errors
    /// What the ORB said.
    pub(crate) fn new(preset: &str, reference: &str) -> Result<Self, String> {
        let object = orb(preset)?
            .string_to_object(reference)
            .and_then(|object| Cubit::narrow(&object));
        Ok(Self {
            cubit: object.map_err(|exception| exception.to_string())?,
            waiting: Vec::new(),
        })
    }

    /// Answers questions until standard input ends.
    ///
    /// # Errors
    /// What the input or output said.
    pub(crate) fn serve(mut self) -> Result<(), String> {
        questions::serve(|count: usize| self.connect(count.min(CONNECTIONS_MAX)))
    }

    /// Makes connections until there are so many.
    fn connect(&mut self, count: usize) -> Result<(), String> {
        let (tell, told) = channel();
        let missing = count.saturating_sub(self.waiting.len());
        for _ in 0..missing {
            let (waiting, wait): (_, Receiver<()>) = channel();
            let (cubit, tell) = (self.cubit.clone(), tell.clone());
            let client = move || {
                // An error means that the laboratory is gone.
                let _ = tell.send(cubit.cube_void().map_err(|exception| exception.to_string()));
                drop(tell);
                let _ = wait.recv();
            };
            spawn("idle-client", &Default::default(), client)
                .map_err(|refused| refused.to_string())?;
            self.waiting.push(waiting);
        }
        drop(tell);
        told.iter().take(missing).collect()
    }
}

/// As many as a server serves when nothing else is said.
const CONNECTIONS_MAX: usize = 1_024;
