//! Subscriptions against the table of cases in `cases.txt`, against a second evaluator, and against lists that make no
//! sense.

#[path = "subscriptions/cases.rs"]
mod cases;
#[path = "subscriptions/lists.rs"]
mod lists;
#[path = "subscriptions/reference.rs"]
mod reference;
#[path = "subscriptions/wrong_lists.rs"]
mod wrong_lists;
