//! Recordings: their files, how their calls join, and the causes of late calls.

mod causes;
mod files;
mod joining;
mod synthetic;
