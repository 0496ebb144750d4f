//! Whole ORBs in a simulated process, from one seed: their threads take turns, on virtual time, over a simulated network.
//!
//! The ORB is built as always. Below it, `calls` replaces the functions of the C library, and `world` is the operating system that they
//! meet: threads under the rule of SCHED_FIFO with inheritance, futexes, sockets, epoll and clocks. `systems` are what runs in it.
#![deny(unsafe_code)]

mod calls;
mod command;
mod plants;
mod process;
mod random;
mod runner;
mod systems;
mod world;

fn main() -> std::process::ExitCode {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some("--plants") => {
            plants::list();
            return std::process::ExitCode::SUCCESS;
        }
        Some("--find-plants") => {
            process::keep_addresses();
            return status(runner::find_plants());
        }
        _ => {}
    }
    let options = match command::Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(wrong) => {
            eprintln!("{wrong}");
            return std::process::ExitCode::FAILURE;
        }
    };
    process::keep_addresses();
    status(runner::run(&options))
}

fn status(has_succeeded: bool) -> std::process::ExitCode {
    if has_succeeded {
        std::process::ExitCode::SUCCESS
    } else {
        std::process::ExitCode::FAILURE
    }
}
