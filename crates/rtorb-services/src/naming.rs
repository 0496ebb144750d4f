//! The naming service (CosNaming): names to references, in contexts, kept in a store that survives every end.

pub mod client;
