//! Explains a sample: its run is repeated with an instruction trace, and the functions that it was spent in are named.
//!
//! The emulator tells an `observer` every block of instructions that it executes; the guest's run is the same with it, and that
//! is checked. From the blocks before the mark, `call_stacks` are found by doing calls and returns again; the `window` of the
//! sample is cut out of them, and its `costs` are counted. [`of_campaign`] says which samples of a campaign are asked for, and `of_bounds`
//! explains those that are bounds of the user's own programs, which a `marker` ends.

mod block_end;
mod call_stacks;
mod costs;
mod flame_graph;
mod marker;
mod observer;
mod of_bounds;
pub mod of_campaign;
mod replay;
mod summary;
mod symbols;
mod trace;
mod window;

pub use of_bounds::{BoundsRequest, ExplainedBound, explain_bounds};
pub use of_campaign::{ExplanationRequest, explain};
pub(crate) use symbols::functions;
