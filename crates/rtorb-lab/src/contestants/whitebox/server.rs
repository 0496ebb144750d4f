//! The counted server: one object for low-priority clients and one for the high-priority one.

use std::io;

use rtorb::rt::{Policy, Priority, PriorityModel, ThreadpoolLane};
use rtorb::{Orb, PoaPolicies, Strategies};

use super::Priorities;
use super::counts::answer;
use crate::contestants::cubit::Cuber;
use crate::contestants::cubit::idl::Cubit;

/// A server that listens, and does not serve yet.
#[derive(Debug)]
pub struct Server {
    orb: Orb,
    references: [String; 2],
}

impl Server {
    /// Makes an ORB of that preset. Where there is real-time scheduling, its objects declare their priorities, and there is a
    /// lane for each of the two (for presets that have lanes).
    ///
    /// # Errors
    /// What the ORB said.
    pub fn open(preset: &str, priorities: Priorities) -> Result<Self, String> {
        let strategies = Strategies::preset(preset).map_err(|error| error.to_string())?;
        let mut builder = Orb::builder()
            .strategies(strategies)
            .listen("iiop://127.0.0.1:0")
            .map_err(|error| error.to_string())?;
        let numbers = [priorities.low, priorities.high];
        let declared = numbers
            .map(|number| Priority::new(number.into()).map_err(|exception| exception.to_string()));
        let [low, high] = declared;
        let declared = [low?, high?];
        if priorities.are_real_time() {
            builder = builder.lanes(declared.map(|lane_priority| ThreadpoolLane {
                lane_priority,
                static_threads: 1,
                dynamic_threads: 0,
            }));
        }
        let orb = builder.build().map_err(|error| error.to_string())?;
        let [low, high] = declared;
        let references = [
            activate(&orb, "low", priorities, low)?,
            activate(&orb, "high", priorities, high)?,
        ];
        Ok(Self { orb, references })
    }

    /// The references of the object for low-priority clients and of that for the high-priority one.
    #[must_use]
    pub fn references(&self) -> &[String; 2] {
        &self.references
    }

    /// Serves, and answers questions on standard input, until that ends; then the process ends.
    ///
    /// # Errors
    /// What the host refused.
    pub fn run(&self, ready: impl FnOnce(&str)) -> Result<(), String> {
        rtorb_os::thread::spawn("questions", &Default::default(), || {
            let unknown =
                |question: &str, _: &mut String| Err(format!("not understood: {question}"));
            // An error means that the laboratory is gone, and then it is time to end too.
            let _ = answer(io::stdin().lock(), io::stdout(), unknown);
            std::process::exit(0);
        })
        .map_err(|refused| refused.to_string())?;
        ready(&self.references.join(" "));
        self.orb.run().map_err(|error| error.to_string())
    }
}

/// Activates a Cubit in an adapter whose objects have this priority.
fn activate(
    orb: &Orb,
    adapter: &str,
    priorities: Priorities,
    server_priority: Priority,
) -> Result<String, String> {
    let mut policies = PoaPolicies::default();
    if priorities.are_real_time() {
        policies = policies.with(Policy::PriorityModel {
            model: PriorityModel::ServerDeclared,
            server_priority,
        });
    }
    let root = orb.root_poa().map_err(|exception| exception.to_string())?;
    let poa = root
        .create_poa(adapter, policies)
        .map_err(|error| error.to_string())?;
    let cubit: Cubit = poa
        .activate(Cuber::new(orb.clone()))
        .map_err(|error| error.to_string())?;
    Ok(orb.object_to_string(cubit.as_object()))
}
