//! The only test of a program that counts heap calls of the whole process, without the standard harness.
//!
//! The harness's main thread reports a test that runs for more than 60 seconds. That makes heap calls, which would be counted
//! on a loaded machine.

/// Runs `test`, unless the command line has filters and none is a part of `name`. A panic fails the program.
pub fn run(name: &str, test: fn()) {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut filters = arguments
        .iter()
        .filter(|word| !word.starts_with('-'))
        .peekable();
    let is_chosen =
        filters.peek().is_none() || filters.any(|filter| name.contains(filter.as_str()));
    if !is_chosen || arguments.iter().any(|word| word == "--list") {
        return;
    }
    test();
    println!("test {name} ... ok");
}
