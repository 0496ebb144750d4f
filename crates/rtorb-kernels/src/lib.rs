//! The kernel laboratory: the operating system varies, hardware and ORB stay the same, and every run repeats to the nanosecond.
//!
//! A [`catalogue`] names kernels, and [`board`] those that are no Linux. A [`campaign`] boots each of them in a [`machine`] that QEMU emulates in virtual time, with this
//! very program as the first process of the [`guest`], which runs the ordinary [`rtorb_lab::experiments`] and answers their results.
//! Time in there is a count of instructions: no caches, no buses, one CPU. It compares the lengths of kernel paths, and never
//! replaces a measurement on the target. What a sample was spent in, a repetition of its run with an instruction trace says:
//! [`explain`].
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod baseline;
pub mod board;
mod built;
pub mod campaign;
pub mod catalogue;
pub mod comparison;
pub mod explain;
pub mod guest;
pub mod initramfs;
pub mod job;
pub mod machine;
pub mod program;
mod sha256;
