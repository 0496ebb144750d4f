//! Subscriptions against the table of cases in `cases.txt`, against a second evaluator, and against lists that make no
//! sense.

mod cases;
mod lists;
mod reference;
mod wrong_lists;
