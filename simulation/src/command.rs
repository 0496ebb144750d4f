//! The arguments.

use crate::plants::{self, Plant};
use crate::systems::{SYSTEMS, System};

#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) seeds: u64,
    pub(crate) from: u64,
    pub(crate) systems: Vec<&'static System>,
    pub(crate) plant: Option<&'static Plant>,
    /// Prints what the threads of each seed do.
    pub(crate) traces: bool,
}

impl Options {
    pub(crate) fn parse(arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self {
            seeds: 10_000,
            from: 0,
            systems: SYSTEMS.iter().collect(),
            plant: None,
            traces: false,
        };
        let mut arguments = arguments;
        while let Some(option) = arguments.next() {
            if option == "--trace" {
                options.traces = true;
                continue;
            }
            let value = arguments.next().ok_or(format!("{option} needs a value"))?;
            let number = || {
                value
                    .parse()
                    .map_err(|_| format!("{option}: {value} is no number"))
            };
            match option.as_str() {
                "--seeds" => options.seeds = number()?,
                "--from" => options.from = number()?,
                "--plant" => {
                    let planted = plants::plant(&value);
                    options.plant = Some(planted.ok_or(format!("there is no plant {value}"))?);
                }
                "--system" => {
                    options.systems.retain(|system| system.name == value);
                    if options.systems.is_empty() {
                        let names: Vec<_> = SYSTEMS.iter().map(|system| system.name).collect();
                        return Err(format!(
                            "there is no system {value}, only {}",
                            names.join(", ")
                        ));
                    }
                }
                _ => return Err(format!("there is no option {option}")),
            }
        }
        Ok(options)
    }
}
