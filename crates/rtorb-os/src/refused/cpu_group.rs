//! The control group that shares out the CPU time of this process, and with it the real-time time.
//!
//! A kernel with CONFIG_RT_GROUP_SCHED refuses SCHED_FIFO and SCHED_RR in a group without real-time time. In the first hierarchy
//! (cgroup v1) a group has what `cpu.rt_runtime_us` says, and a new one has none. In the second only the root group has any
//! (Documentation/scheduler/sched-rt-group.rst and admin-guide/cgroup-v2.rst, "CPU").

use super::read;
use super::user_namespace::is_in_inner_user_namespace;
use std::path::Path;

/// The control group of this process in the mounted hierarchy that has the `cpu` controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuGroup {
    /// The form of the hierarchy: 1 or 2.
    pub version: u8,
    /// The group, named from the root of the hierarchy; `/` is the root group.
    pub name: String,
    /// The folder where the hierarchy is mounted.
    pub mount: String,
    /// The folder of the group.
    pub folder: String,
    /// True if the mounted part begins at the root group, as far as this process sees. In a container it may begin below it.
    pub has_root: bool,
}

impl CpuGroup {
    /// Finds the group of this process. `root` is `/`, or the folder that stands in its place in a test.
    #[must_use]
    pub fn find(root: &Path) -> Option<Self> {
        let groups = read(root, "/proc/self/cgroup")?;
        let mounts = read(root, "/proc/self/mountinfo").unwrap_or_default();
        match named_by_first(&groups) {
            // If its hierarchy is not mounted here, its folder is not known: the other hierarchy does not have the controller.
            Some(name) => Self::first(name, &mounts),
            None => Self::second(root, &groups, &mounts),
        }
    }

    /// Microseconds of each period that real-time threads of the group may use; `None` if the kernel gives groups none of their own.
    #[must_use]
    pub fn rt_runtime_us(&self, root: &Path) -> Option<i64> {
        let file = format!("{}/cpu.rt_runtime_us", self.folder);
        read(root, &file)?.trim().parse().ok()
    }

    /// The file that moves a process to the root group, which has real-time time; `None` if it cannot be reached from here.
    #[must_use]
    pub fn root_procs(&self, root: &Path) -> Option<String> {
        // A group that is called `/` and has no time is the root of a container only.
        let is_below = self.name == "/" && self.rt_runtime_us(root) == Some(0);
        (self.has_root && !is_below).then(|| format!("{}/cgroup.procs", self.mount))
    }

    /// Why SCHED_FIFO is refused in a group without real-time time.
    #[must_use]
    pub fn cause(name: &str) -> String {
        format!("the control group {name} has no real-time time")
    }

    /// What to do about [`cause`](Self::cause). `root_procs` is the file that [`root_procs`](Self::root_procs) returns.
    #[must_use]
    pub fn remedy(root_procs: Option<&str>) -> String {
        root_procs.map_or_else(
            || "give the container real-time time from outside (`docker run --cpu-rt-runtime=950000`, and the same option of its \
                daemon), or run the program outside of it"
                .to_owned(),
            |file| format!("`echo $$ > {file}`, as root in the shell that starts the program, moves it to the root group, which has some"),
        )
    }

    fn first(name: &str, mounts: &str) -> Option<Self> {
        let (mounted, mount) = mounts
            .lines()
            .find_map(|line| mount_of(line, Some("cpu")))?;
        Some(Self::mounted(1, name, mounted, mount))
    }

    /// A task belongs, for the CPU, to the nearest group that has the controller.
    fn second(root: &Path, groups: &str, mounts: &str) -> Option<Self> {
        let name = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
        let found = mounts.lines().find_map(|line| mount_of(line, None));
        // Where it is not mounted, its root is not seen either.
        let (mounted, mount) = found.unwrap_or(("", "/sys/fs/cgroup"));
        let mut group = Self::mounted(2, name, mounted, mount);
        while group.folder.len() > mount.len() {
            let controllers = read(root, &format!("{}/cgroup.controllers", group.folder));
            let has_cpu =
                controllers.is_none_or(|names| names.split_whitespace().any(|name| name == "cpu"));
            if has_cpu {
                return Some(group);
            }
            let outer = |path: &str| {
                path.rsplit_once('/')
                    .map_or(String::new(), |(outer, _)| outer.to_owned())
            };
            group.folder = outer(&group.folder);
            group.name = outer(&group.name);
        }
        if group.name.is_empty() {
            "/".clone_into(&mut group.name);
        }
        Some(group)
    }

    /// In a container the mounted part of the hierarchy begins at `mounted`, below its root.
    fn mounted(version: u8, name: &str, mounted: &str, mount: &str) -> Self {
        let inside = name
            .strip_prefix(mounted.trim_end_matches('/'))
            .unwrap_or("");
        Self {
            version,
            name: name.to_owned(),
            mount: mount.to_owned(),
            folder: format!("{mount}{}", inside.trim_end_matches('/')),
            has_root: mounted == "/",
        }
    }
}

/// The group with the `cpu` controller in the first hierarchy (cgroups(7), /proc/PID/cgroup).
fn named_by_first(groups: &str) -> Option<&str> {
    groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let mut controllers = parts.next()?.split(',');
        controllers.any(|name| name == "cpu").then_some(())?;
        parts.next()
    })
}

/// Why the host refuses SCHED_FIFO and SCHED_RR, and what to do, if the reason is the control group of this process. `has_right` is
/// true if the process may ask for real-time policies.
pub(super) fn refusal(root: &Path, has_right: bool) -> Option<String> {
    let group = CpuGroup::find(root)?;
    let is_cause = match group.rt_runtime_us(root) {
        Some(runtime) => runtime == 0,
        // The second hierarchy does not say. With the right nothing else refuses.
        None => group.version == 2 && group.name != "/" && has_right,
    };
    is_cause.then(|| {
        let procs = group.root_procs(root);
        let remedy = CpuGroup::remedy(procs.as_deref());
        format!("{}: {remedy}", CpuGroup::cause(&group.name))
    })
}

/// True if nothing but a control group keeps this process from a real-time policy of that priority: it has CAP_SYS_NICE in the host's user
/// namespace, where the kernel asks for it (sched(7)), or its RLIMIT_RTPRIO allows the priority.
pub(super) fn may_have(root: &Path, priority: u8) -> bool {
    const CAP_SYS_NICE: u32 = 23;
    let status = read(root, "/proc/self/status").unwrap_or_default();
    let mask = after(&status, "CapEff:").and_then(|mask| u64::from_str_radix(mask, 16).ok());
    let has_capability = mask.is_some_and(|mask| mask & (1 << CAP_SYS_NICE) != 0);
    if has_capability && !is_in_inner_user_namespace(root) {
        return true;
    }
    let limits = read(root, "/proc/self/limits").unwrap_or_default();
    let limit = after(&limits, "Max realtime priority").unwrap_or("0");
    limit == "unlimited"
        || limit
            .parse()
            .is_ok_and(|limit: u64| limit >= priority.into())
}

/// Returns the first word behind `name` at the beginning of a line.
fn after<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(name));
    lines.next()?.split_whitespace().next()
}

/// Which part of a hierarchy is mounted, and where (proc_pid_mountinfo(5)): of the first one with this controller, or of the second.
fn mount_of<'m>(line: &'m str, controller: Option<&str>) -> Option<(&'m str, &'m str)> {
    let (mount, file_system) = line.split_once(" - ")?;
    let mut words = file_system.split(' ');
    let kind = words.next()?;
    let is_wanted = match controller {
        Some(controller) => {
            kind == "cgroup" && words.nth(1)?.split(',').any(|option| option == controller)
        }
        None => kind == "cgroup2",
    };
    let mut fields = mount.split(' ').skip(3);
    is_wanted.then_some((fields.next()?, fields.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::PathBuf;

    /// A folder with the files of a machine, removed at the end.
    struct Machine(PathBuf);

    impl Machine {
        fn new(name: &str, files: &[(&str, &str)]) -> Self {
            let folder =
                std::env::temp_dir().join(format!("rtorb-os-{name}-{}", std::process::id()));
            for (path, text) in files {
                let path = folder.join(path);
                fs::create_dir_all(path.parent().expect("it is in the folder")).expect("a folder");
                fs::write(path, text).expect("a file");
            }
            Self(folder)
        }
    }

    impl Drop for Machine {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    const FIRST: &str =
        "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n";
    const SECOND: &str = "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
    const HYBRID: &str = "30 23 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

    #[test]
    fn a_refusal_names_the_file_of_the_mounted_hierarchy() {
        let runtime = "sys/fs/cgroup/cpu,cpuacct/measure/cpu.rt_runtime_us";
        for mounts in [FIRST.to_owned(), format!("{HYBRID}{FIRST}")] {
            let machine = Machine::new(
                "first",
                &[
                    ("proc/self/cgroup", "4:cpu,cpuacct:/measure\n0::/\n"),
                    ("proc/self/mountinfo", &mounts),
                    (runtime, "0\n"),
                ],
            );
            for has_right in [false, true] {
                let said = refusal(&machine.0, has_right).expect("the group is the cause");
                assert!(said.contains("/measure has no real-time time"), "{said}");
                assert!(
                    said.contains("> /sys/fs/cgroup/cpu,cpuacct/cgroup.procs`"),
                    "{said}"
                );
            }
            fs::write(machine.0.join(runtime), "500000\n").expect("a file");
            assert_eq!(refusal(&machine.0, true), None);
        }
        let machine = Machine::new(
            "second",
            &[
                ("proc/self/cgroup", "0::/user.slice/a.scope\n"),
                ("proc/self/mountinfo", SECOND),
                (
                    "sys/fs/cgroup/user.slice/a.scope/cgroup.controllers",
                    "memory\n",
                ),
                (
                    "sys/fs/cgroup/user.slice/cgroup.controllers",
                    "cpu memory\n",
                ),
            ],
        );
        let said = refusal(&machine.0, true).expect("nothing else refuses");
        assert!(said.contains("/user.slice has no real-time time"), "{said}");
        assert!(said.contains("> /sys/fs/cgroup/cgroup.procs`"), "{said}");
        assert_eq!(refusal(&machine.0, false), None, "the right may be missing");
    }

    #[test]
    fn a_container_gets_its_time_from_outside() {
        for (group, mounted) in [("/docker/4f", "/docker/4f"), ("/", "/")] {
            let machine = Machine::new(
                "container",
                &[
                    ("proc/self/cgroup", &format!("4:cpu,cpuacct:{group}\n")),
                    (
                        "proc/self/mountinfo",
                        &FIRST.replace(" / ", &format!(" {mounted} ")),
                    ),
                    ("sys/fs/cgroup/cpu,cpuacct/cpu.rt_runtime_us", "0\n"),
                ],
            );
            let said = refusal(&machine.0, true).expect("the group is the cause");
            assert!(said.contains("docker run --cpu-rt-runtime"), "{said}");
            assert!(!said.contains("cgroup.procs"), "{said}");
        }
    }

    #[test]
    fn a_machine_without_control_groups_has_no_cause() {
        let machine = Machine::new(
            "none",
            &[("proc/self/status", "CapEff:\t0000000000800000\n")],
        );
        assert_eq!(refusal(&machine.0, true), None);
        assert!(may_have(&machine.0, 99));
        assert!(!may_have(Path::new("/nowhere"), 1));
    }

    #[test]
    fn a_right_is_the_hosts_capability_or_the_limit() {
        let limits = "Max nice priority         0                    0\nMax realtime priority     50                   99\n";
        let machine = Machine::new(
            "right",
            &[
                ("proc/self/status", "CapEff:\t000001ffffffffff\n"),
                ("proc/self/uid_map", "         0       1000          1\n"),
                ("proc/self/limits", limits),
            ],
        );
        assert!(may_have(&machine.0, 50));
        assert!(
            !may_have(&machine.0, 51),
            "the capability is that of a user namespace of its own"
        );
        fs::write(machine.0.join("proc/self/uid_map"), "0 0 4294967295\n").expect("a file");
        assert!(may_have(&machine.0, 51));
    }

    #[test]
    fn a_hierarchy_that_is_not_mounted_names_no_file() {
        let machine = Machine::new(
            "unmounted",
            &[
                ("proc/self/cgroup", "4:cpu,cpuacct:/measure\n0::/name\n"),
                ("proc/self/mountinfo", HYBRID),
            ],
        );
        assert_eq!(refusal(&machine.0, true), None);
        fs::write(machine.0.join("proc/self/cgroup"), "0::/name\n").expect("a file");
        fs::write(machine.0.join("proc/self/mountinfo"), "").expect("a file");
        let said = refusal(&machine.0, true).expect("the group is the cause");
        assert!(!said.contains("cgroup.procs"), "{said}");
    }
}
