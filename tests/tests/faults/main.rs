//! Faults of the real system: killed, stopped and ended processes, and networks that lose, reorder and break. Each test is a row of
//! `docs/reference/faults.md`: what the client saw, what the server executed, and what was lost.

mod calls;
mod network;
mod processes;
