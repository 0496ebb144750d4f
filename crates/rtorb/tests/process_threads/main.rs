//! Tests that look for threads of the whole process by name. No other test that makes such threads may run beside them.

mod connections;
mod shutdown;
