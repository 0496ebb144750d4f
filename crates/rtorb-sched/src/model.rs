//! Schedulability analysis of a whole system: from its description and the measured profiles of its platforms to bounds on every
//! response and end-to-end chain (P3 sections 3 and 6).
//!
//! | step | in |
//! |---|---|
//! | reads `system.toml` as a [`System`]; errors name the line | `file` |
//! | finds the profile of each node | `profiles` |
//! | reads `profile.json` as a [`Platform`]: the cost of each service | `platform` |
//! | composes both to segments on processors, each cost with its [`Layer`] | `compose` |
//! | computes priorities, bounds, slack, shares and explanations: a [`CheckReport`] | `check` |
//! | formats the report as text and by layer | `verdict` |
//! | analyses the change from a running system to another one: a [`SystemTransition`] | `transition` |
//! | writes the ORBs' configuration: lanes, bands, priorities | [`Loading`], `orb_file` |

mod check;
mod compose;
mod composition;
mod file;
mod orb_file;
mod platform;
mod profiles;
mod report;
mod system;
mod transition;
mod verdict;

pub use crate::holistic::SchedulingPolicy;
pub use check::{CheckOptions, ModelError, TooFewPriorities, check, check_composed};
pub use compose::{ComposeError, PATH_MAX, SEGMENTS_MAX, compose};
pub use composition::{Activation, Composition, Interrupt, Part, Processor, Segment};
pub use file::Interfaces;
pub use platform::{Cost, EventCost, Platform, Statistic};
pub use profiles::{ProfileOption, profiles_of};
pub use report::{
    Assumption, BehaviourBound, CauseEffectBound, ChainBound, CheckReport, CommunicationLabel,
    ComponentLoading, LaneLoading, LaneOrder, LatencyBound, LatencyShare, Layer, Loading,
    ProcessorUse, Sensitivity, Share, Standing,
};
pub use system::{
    ArrivalBurst, Behaviour, Bucket, Budget, Call, CallWay, CauseEffectChain, Chain, Channel,
    Communication, CompiledRequirements, Component, Enforcement, Execution, Link, Locking,
    MissRatio, Node, Placement, Resource, Section, System, Timing, Trigger,
};
pub use transition::{SystemMode, SystemTransition, TransitionError};
pub use verdict::{rounded, rounded_down, rounded_up};
