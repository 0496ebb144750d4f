//! The programs of this package work, and the pages show them as they are.

mod closed_outputs;
mod events;
mod lanes;
mod life;
mod neighbours;
mod overload;
mod readme;
mod reservation;
