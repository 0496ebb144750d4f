//! What a recording consists of. All times are in ns of CLOCK_MONOTONIC of the call's own host.

#[doc(inline)]
pub use rtorb::recorder::{CallOutcome, CallSide};
use rtorb_host::kernel_trace::RecordedTrace;

/// The calls of some processes, on one host or on several.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// What each host recorded.
    pub hosts: Vec<HostRecord>,
}

/// What was recorded on one host.
#[derive(Clone, Debug, PartialEq)]
pub struct HostRecord {
    /// Its name.
    pub name: String,
    /// The id of its kernel's run (`/proc/sys/kernel/random/boot_id`), by which hosts of one name are told apart; `None` in files that do not say it.
    pub boot_id: Option<String>,
    /// How much later its clock is than that of the first host of the recording, in ns; 0 if nothing says so. [`Recording::align`] finds it.
    pub ahead_ns: i64,
    /// The processes whose calls were recorded.
    pub processes: Vec<ProcessRecord>,
    /// The kernel's record of the same time, or why there is none.
    pub kernel: Result<RecordedTrace, String>,
}

/// What the recorder of a process held at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessRecord {
    /// Its id.
    pub pid: u32,
    /// Its name, of which the kernel keeps 15 bytes.
    pub name: String,
    /// Its threads.
    pub threads: Vec<ThreadRecord>,
    /// Threads for which the recorder had no room: their calls are not recorded.
    pub unrecorded_threads: u64,
}

/// What the recorder held of one thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadRecord {
    /// Its id.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// The lane that it serves, such as `pool 1, priority 60`.
    pub lane: Option<String>,
    /// The calls that ended, in any order.
    pub calls: Vec<CallRecord>,
    /// Calls that were overwritten or not recorded.
    pub lost: u64,
}

/// A call, as one of its ends saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallRecord {
    /// Which end.
    pub side: CallSide,
    /// The name of the operation in the request.
    pub operation: String,
    /// How it ended.
    pub outcome: CallOutcome,
    /// The CPU of the thread when the call ended.
    pub cpu: u16,
    /// The CORBA priority; -1 if there is none.
    pub priority: i16,
    /// The id of the request.
    pub request_id: u32,
    /// A number that both ends have for their connection; 0 if it is unknown.
    pub connection: u64,
    /// Client: when the call began. Server: when the request was read.
    pub first_ns: u64,
    /// Client: when the request was sent. Server: when the servant's turn began. 0 if it did not come so far.
    pub second_ns: u64,
    /// Client: when the reply was there, or the call failed. Server: when the reply was sent.
    pub last_ns: u64,
}

impl HostRecord {
    /// Returns true if this is the host with that name and boot id. Hosts that were made from one image share their name; one that does not say
    /// its boot id is known by its name alone.
    pub fn is(&self, name: &str, boot_id: Option<&str>) -> bool {
        let own = self.boot_id.as_deref();
        self.name == name && own.zip(boot_id).is_none_or(|(own, other)| own == other)
    }
}

impl CallRecord {
    /// Returns true if its times are in their order.
    pub fn is_ordered(&self) -> bool {
        let second_ns = self.second_ns;
        self.first_ns <= self.last_ns
            && (second_ns == 0 || (self.first_ns..=self.last_ns).contains(&second_ns))
    }

    /// Returns true if this is the client's end of a oneway: it did not wait for the servant, whose end this is.
    pub fn is_oneway(&self, served: &Self) -> bool {
        self.outcome == CallOutcome::Done && served.second_or_last_ns() >= self.last_ns
    }

    /// Returns the second time, or the last if the call did not come so far.
    pub fn second_or_last_ns(&self) -> u64 {
        if self.second_ns == 0 {
            self.last_ns
        } else {
            self.second_ns
        }
    }
}

/// Returns what the kernel keeps of the name of a process or thread: its first 15 bytes (TASK_COMM_LEN of include/linux/sched.h), in
/// whole characters.
pub fn short_name(name: &str) -> &str {
    &name[..name.floor_char_boundary(15)]
}
