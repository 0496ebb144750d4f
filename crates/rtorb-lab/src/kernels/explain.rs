//! Explains a sample: its run is repeated with an instruction trace, and the functions that it was spent in are named.

pub mod explanation;

pub use explanation::{ContextSwitch, Count, Explanation, FunctionCost, Sample, TaskCost};
