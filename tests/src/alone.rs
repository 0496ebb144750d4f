//! Tests that count what the whole process has or does: descriptors, threads, heap calls. Each runs alone, without the standard
//! harness.
//!
//! The harness's main thread reports a test that runs for more than 60 seconds. That makes heap calls, which would be counted
//! on a loaded machine.

/// Runs `test`, unless the command line has filters and none is a part of `name`. A panic fails the program.
pub fn run(name: &str, test: fn()) {
    if is_chosen(name) {
        test();
        println!("test {name} ... ok");
    }
}

/// As [`run`] for several tests: one after the other, each on a thread of its own, which takes its connections with it.
pub fn run_each(tests: &[(&str, fn())]) {
    for &(name, test) in tests.iter().filter(|(name, _)| is_chosen(name)) {
        std::thread::scope(|scope| {
            scope.spawn(test);
        });
        println!("test {name} ... ok");
    }
}

fn is_chosen(name: &str) -> bool {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut filters = arguments
        .iter()
        .filter(|word| !word.starts_with('-'))
        .peekable();
    let is_meant = filters.peek().is_none() || filters.any(|filter| name.contains(filter.as_str()));
    is_meant && !arguments.iter().any(|word| word == "--list")
}
