//! Guests that run a real-time kernel on an emulated Cortex-M3: each serves its clients on one serial line, and calls the host on
//! another.

use super::link::client;
use rtorb::Orb;
use rtorb_embedded::ObjectRef;
use rtorb_embedded_cubit::guest::Guest;
use rtorb_tests::ours::{Ours, check_cubit};
use rtorb_tests::running::{PATIENCE, Running, until};
use rtorb_tests::server_process::lasting_port;
use rtorb_tests::stubs::Cubit;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const EMULATOR: &str = "qemu-system-arm";
/// The guests, by their programs in `target/rtos`.
const FREERTOS: &str = "freertos";
const RTIC: &str = "rtic";

/// A guest that runs.
struct Machine {
    /// Dropped, it ends the emulator.
    _running: Running,
    address: SocketAddr,
}

impl Machine {
    /// Boots that guest; its second serial line is connected to `host`. `None`, with the reason, where it or its emulator is missing.
    ///
    /// An instruction takes a nanosecond. The time of an idle processor passes as the host's does: otherwise an idle guest needs a
    /// whole CPU of the host. The lines carry single bytes, each of which is sent at once (`nodelay`): otherwise each answer waits for
    /// a delayed acknowledgement, which takes 40 ms.
    fn boot(guest: &str, host: Option<SocketAddr>) -> Option<Self> {
        let program = program(guest)?;
        let address = SocketAddr::from(([127, 0, 0, 1], lasting_port()));
        let mut command = Command::new(EMULATOR);
        command
            .args(["-M", "mps2-an385", "-display", "none", "-monitor", "none"])
            .args(["-icount", "shift=0,sleep=on"])
            .args(["-semihosting-config", "enable=on,target=native"])
            .arg("-kernel")
            .arg(program)
            .args([
                "-serial",
                &format!("tcp:{address},server=on,wait=off,nodelay=on"),
            ])
            .stdin(Stdio::null());
        match host {
            Some(host) => command.args(["-serial", &format!("tcp:{host},server=off,nodelay=on")]),
            None => command.args(["-serial", "null"]),
        };
        let running = Running::start(&mut command);
        until("the emulator listens", || TcpStream::connect(address).ok());
        Some(Self {
            _running: running,
            address,
        })
    }

    /// Connects an embedded client to the first serial line.
    fn connect(&self) -> Connected {
        let stream = until("the line is free", || {
            let stream = TcpStream::connect(self.address).ok()?;
            stream.set_read_timeout(Some(PATIENCE)).ok()?;
            Some(stream)
        });
        let line = stream.try_clone().expect("a descriptor is free");
        let object = ObjectRef::new(client(line), "IDL:Guest:1.0", b"guest");
        Connected {
            guest: Guest::narrow(&object).expect("its type is stated"),
            object,
            stream,
        }
    }

    fn corbaloc(&self, key: &str) -> String {
        format!("corbaloc:iiop:{}/{key}", self.address)
    }
}

/// The guest's own object, while its line is this client's.
struct Connected {
    guest: Guest,
    object: ObjectRef,
    stream: TcpStream,
}

impl Drop for Connected {
    fn drop(&mut self) {
        // The guest may have ended it before.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// The guest's program, where it and its emulator are there; otherwise says what is missing.
fn program(guest: &str) -> Option<PathBuf> {
    // The folder of temporary files is in the target folder.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("rtos");
    let program = folder.join(guest);
    let emulator = Command::new(EMULATOR).arg("--version").output();
    let missing = match (program.is_file(), emulator) {
        (true, Ok(_)) => return Some(program),
        (false, _) => format!("there is no target/rtos/{guest}: cargo xtask rtos makes it"),
        (true, Err(error)) => format!("{EMULATOR}: {error}: apt install {EMULATOR}"),
    };
    rtorb_tests::skip(&missing);
    None
}

#[test]
fn omniorb_and_the_full_orb_call_every_operation_and_a_thousand_calls_make_no_heap_call() {
    serves_without_heap(FREERTOS, 1_000);
}

#[test]
fn a_guest_without_a_scheduler_of_its_own_does_the_same() {
    serves_without_heap(RTIC, 100);
}

fn serves_without_heap(guest: &str, calls: i32) {
    let Some(machine) = Machine::boot(guest, None) else {
        return;
    };
    if let Some(omniorb) = rtorb_tests::peers::omniorb::omniorb() {
        let lengths = ["--lengths", "0,1,4,1021", "--any"];
        let lines = omniorb.call("cubit_client", &machine.corbaloc("cubit"), &lengths);
        assert!(lines.len() > 30, "{lines:?}");
    }
    with_full_orb(&machine, |cubit| check_cubit(cubit, &[0, 1, 1021]));
    let heap_calls = || machine.connect().guest.heap_calls().expect("it answers");
    let before = heap_calls();
    with_full_orb(&machine, |cubit| {
        for number in 0..calls {
            assert_eq!(cubit.cube_long(number), Ok(number.wrapping_pow(3)));
        }
    });
    assert_eq!(heap_calls(), before, "heap calls of the guest");
}

/// Gives the guest's Cubit to a client with the full ORB, in a thread of its own: the line is free when that has ended.
fn with_full_orb(machine: &Machine, call: impl FnOnce(&Cubit) + Send) {
    let calling = || {
        let orb = Orb::builder().build().expect("the ORB can be built");
        let object = orb.string_to_object(&machine.corbaloc("cubit"));
        let object = object.expect("a reference");
        let cubit = Cubit::narrow(&object.with_timeout(PATIENCE));
        call(&cubit.expect("it is a Cubit"));
    };
    std::thread::scope(|scope| scope.spawn(calling).join()).expect("no check failed");
}

#[test]
fn a_call_runs_at_the_priority_of_its_client() {
    let Some(machine) = Machine::boot(FREERTOS, None) else {
        return;
    };
    let connected = machine.connect();
    let guest = &connected.guest;
    assert_eq!(guest.priority(), Ok(2), "the server's own");
    for (corba, kernel) in [(0, 1), (16_000, 2), (20_000, 3), (32_767, 4)] {
        let guest = Guest::unchecked_narrow(connected.object.clone().with_priority(corba));
        assert_eq!(guest.priority(), Ok(kernel), "CORBA priority {corba}");
    }
    assert_eq!(guest.priority(), Ok(2), "the server's own again");
}

#[test]
fn a_guest_calls_every_operation_of_an_object_of_the_full_orb() {
    for guest in [FREERTOS, RTIC] {
        let ours = Ours::serve();
        let Some(machine) = Machine::boot(guest, Some(ours.address())) else {
            return;
        };
        let connected = machine.connect();
        let key = ours.key(ours.cubit.as_object());
        let wrong = connected.guest.call_back(&key);
        assert_eq!(wrong, Ok(vec![]), "what was wrong in {guest}");
    }
}
