//! Support API for generated code. Not public. The `codegen` modules of both ORBs re-export it.

mod macros;
pub use macros::{generated, one_of_values, operation_error, reference, upcasts};

pub use crate::exception::SystemException;
pub use crate::interface::{Interface, UntypedReference, UserException, narrow};
pub use crate::servant::{ServantTraits, ServedBy, unknown_operation};
pub use crate::timing::{Criticality, OperationTiming};
pub use rtorb_wire::codegen::*;
