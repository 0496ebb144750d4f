//! The run that checks the model: a system that was analysed, built out of synthetic work and real calls, and observed.

pub mod judgement;
