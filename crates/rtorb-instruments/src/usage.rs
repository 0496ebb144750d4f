//! What the kernel has counted of a thread or of a process: getrusage(2).

/// Everything that was counted since the thread or the process began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Context switches. An interrupt is not one.
    pub switches: Switches,
    /// Accesses to memory that was not populated.
    pub page_faults: PageFaults,
}

/// Context switches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    /// The thread blocked.
    pub voluntary: u64,
    /// Another thread preempted it.
    pub involuntary: u64,
}

/// Page faults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageFaults {
    /// Served without reading a disk: some microseconds each.
    pub minor: u64,
    /// Read from a disk: milliseconds each.
    pub major: u64,
}

impl PageFaults {
    /// The faults since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            minor: self.minor - earlier.minor,
            major: self.major - earlier.major,
        }
    }
}

/// The counters of the calling thread (RUSAGE_THREAD): one system call.
#[must_use]
pub fn of_thread() -> Usage {
    usage_of(libc::RUSAGE_THREAD)
}

/// The counters of all threads of the process (RUSAGE_SELF), also of those that have ended.
#[must_use]
pub fn of_process() -> Usage {
    usage_of(libc::RUSAGE_SELF)
}

/// Returns the usage of the process or thread that `who` names (getrusage(2)).
fn usage_of(who: libc::c_int) -> Usage {
    let mut usage = core::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is writable and has the size of the structure that the call fills.
    let returned = unsafe { libc::getrusage(who, usage.as_mut_ptr()) };
    assert_eq!(
        returned, 0,
        "getrusage fails only for a bad address or an unknown `who`"
    );
    // SAFETY: all bytes were zeroed, and every field is an integer.
    let usage = unsafe { usage.assume_init() };
    Usage {
        switches: Switches {
            voluntary: usage.ru_nvcsw as u64,
            involuntary: usage.ru_nivcsw as u64,
        },
        page_faults: PageFaults {
            minor: usage.ru_minflt as u64,
            major: usage.ru_majflt as u64,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_access_to_a_page_faults() {
        let before = of_thread().page_faults;
        let mut pages: Vec<u8> = vec![0; 4 << 20];
        pages[1 << 20] = 1;
        let first = of_thread().page_faults.since(before);
        assert!(first.minor > 0);
        let mut touch_again = || {
            let before = of_thread().page_faults;
            pages[1 << 20] = 2;
            core::hint::black_box(&mut pages);
            of_thread().page_faults.since(before)
        };
        // The kernel may reclaim a page of the memory or of the code between the two, but not every time.
        let without = (0..10).filter(|_| touch_again() == PageFaults::default());
        assert!(without.count() > 0);
        assert!(of_process().page_faults.minor >= first.minor);
    }
}
