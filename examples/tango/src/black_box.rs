//! The last operations that clients requested from a device.

use std::collections::VecDeque;

use jiff::Zoned;
use rtorb_os::sync::Mutex;

use crate::failure::failed;
use crate::tango::{ClntIdent, DevFailed, DevSource};

/// The operations, the newest last. It forgets the oldest.
#[derive(Debug, Default)]
pub(crate) struct BlackBox {
    operations: Mutex<VecDeque<String>>,
}

impl BlackBox {
    /// Notes an operation.
    pub(crate) fn note(&self, operation: &str) {
        let now = Zoned::now();
        let mut text = format!(
            "{}:{:02} : {operation}",
            now.strftime("%d/%m/%Y %H:%M:%S"),
            now.millisecond() / 10,
        );
        // A client chooses the names in it, and how many they are.
        if let Some((end, _)) = text.char_indices().nth(TEXT_CHARS_MAX) {
            text.truncate(end);
        }
        let mut operations = self.operations.lock();
        if operations.len() == OPERATIONS_MAX {
            operations.pop_front();
        }
        operations.push_back(text);
    }

    /// The last `count` operations, the newest first.
    ///
    /// # Errors
    /// When it is asked for none, or has none.
    pub(crate) fn last(&self, count: i32) -> Result<Vec<String>, DevFailed> {
        let count = usize::try_from(count).unwrap_or(0);
        if count == 0 {
            let desc = "Argument to read black box out of range";
            return Err(failed("API_BlackBoxArgument", desc, LAST));
        }
        let operations = self.operations.lock();
        if operations.is_empty() {
            let desc = "Nothing stored yet in black-box";
            return Err(failed("API_BlackBoxEmpty", desc, LAST));
        }
        Ok(operations.iter().rev().take(count).cloned().collect())
    }
}

/// An operation on names, from a source, by a client that says who it is.
pub(crate) fn described(
    operation: &str,
    names: &str,
    source: Option<DevSource>,
    client: Option<&ClntIdent>,
) -> String {
    let source = match source {
        Some(DevSource::Dev) => " from device",
        Some(DevSource::Cache) => " from cache",
        Some(DevSource::CacheDev) => " from cache_device",
        None => "",
    };
    let client = match client {
        Some(ClntIdent::CppClnt(pid)) => format!(" by a CPP/Python client with PID {pid}"),
        Some(ClntIdent::JavaClnt(java)) => format!(" by a Java client with {}", java.main_class),
        None => String::new(),
    };
    format!("Operation {operation} ({names}){source} requested{client}")
}

/// As many as Tango's own servers keep.
const OPERATIONS_MAX: usize = 50;
const TEXT_CHARS_MAX: usize = 250;
const LAST: &str = "rtorb_tango::BlackBox::last";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_keeps_the_last_operations_and_not_all_of_their_text() {
        let black_box = BlackBox::default();
        let reason = |answer: Result<Vec<String>, DevFailed>| {
            answer.expect_err("it is refused").errors[0].reason.clone()
        };
        assert_eq!(reason(black_box.last(1)), "API_BlackBoxEmpty");
        for number in 0..OPERATIONS_MAX + 3 {
            black_box.note(&format!("Operation {number} requested"));
        }
        let last = black_box.last(2).expect("there are some");
        assert_eq!(last.len(), 2);
        assert!(last[0].ends_with(" : Operation 52 requested"), "{last:?}");
        assert!(last[1].ends_with(" : Operation 51 requested"), "{last:?}");
        let all = black_box.last(i32::MAX).expect("there are some");
        assert_eq!(all.len(), OPERATIONS_MAX);
        black_box.note(&"\u{fc}".repeat(TEXT_CHARS_MAX * 2));
        let long = &black_box.last(1).expect("there is one")[0];
        assert_eq!(long.chars().count(), TEXT_CHARS_MAX);
        assert_eq!(reason(black_box.last(0)), "API_BlackBoxArgument");
        assert_eq!(reason(black_box.last(-1)), "API_BlackBoxArgument");
    }
}
