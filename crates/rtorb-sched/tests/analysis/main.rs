//! Systems of tasks from their files to bounds, compared with published sets, simulations and other implementations.

mod cause_effect;
mod composition;
mod compositions;
mod distributed;
mod levels;
mod model;
mod platform;
mod profiles;
mod prosa;
mod sensitivity;
mod simulated;
mod simulator;
mod system_any_file;
mod system_files;
mod system_schema;
mod textbooks;
