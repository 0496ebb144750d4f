//! From measurement to proof: a system as its engineers describe it, on platforms as they were measured, to bounds on every
//! response and end-to-end chain (P3 sections 3 and 6).
//!
//! | step | in |
//! |---|---|
//! | `system.toml` to a [`System`], with the line of what is wrong | `file` |
//! | which profile each node has | `profiles` |
//! | `profile.json` to a [`Platform`]: what each service costs | `platform` |
//! | both to tasks on processors, each cost with its [`Layer`] | `compose` |
//! | priorities, bounds, slack, shares, words: a [`Checked`] | `check` |
//! | the answer in words and by layer | `verdict` |
//! | what ORBs load: lanes, bands, priorities; as their files | [`Loading`], `orb_file` |

mod check;
mod checked;
mod compose;
mod composed;
mod file;
mod orb_file;
mod platform;
mod profiles;
mod system;
mod verdict;

pub use check::{CheckOptions, ModelError, check, check_composed};
pub use checked::{
    Assumption, BehaviourBound, ChainBound, Checked, ComponentLoading, LaneLoading, Layer, Loading,
    ProcessorUse, Sensitivity, Share, Standing,
};
pub use compose::{ComposeError, PATH_MAX, SEGMENTS_MAX, compose};
pub use composed::{Activation, Composed, Interrupt, Part, Processor, Segment};
pub use file::Interfaces;
pub use platform::{Cost, EventCost, Platform, Statistic};
pub use profiles::{GivenProfile, profiles_of};
pub use system::{
    Behaviour, Bucket, Call, CallWay, Chain, Channel, Component, Execution, Link, Locking, Node,
    Resource, Scheduling, Section, System, Timing, Trigger,
};
pub use verdict::{rounded_down, rounded_up};
