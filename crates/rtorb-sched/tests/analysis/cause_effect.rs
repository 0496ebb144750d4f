//! Data age and reaction time of cause-effect chains: examples computed by hand, and simulated random chains.

mod by_hand;
mod random;
mod registers;
mod simulated;
