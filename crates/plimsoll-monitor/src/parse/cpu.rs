//! `/proc/cpuinfo`, `/proc/stat`, `/proc/loadavg` and processor lists.

use super::nth_number;

/// The processor, from `/proc/cpuinfo` (proc(5)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuInfo {
    /// Model name, as the processor spells it.
    pub model: Option<String>,
    /// The `hypervisor` flag; absent on architectures whose kernel lists no such flags.
    pub hypervisor: Option<bool>,
    /// Logical processors listed.
    pub processors: u32,
    /// Distinct sockets, where the kernel numbers them.
    pub sockets: Option<u32>,
    /// Cores per socket.
    pub cores_per_socket: Option<u32>,
    /// Microcode revision.
    pub microcode: Option<String>,
}

/// Reads `/proc/cpuinfo`.
pub fn parse_cpuinfo(text: &str) -> CpuInfo {
    let mut info = CpuInfo::default();
    let mut sockets: Vec<&str> = Vec::new();
    for line in text.lines() {
        let Some((key, value)) = line.split_once(':') else { continue };
        let (key, value) = (key.trim(), value.trim());
        match key {
            "processor" => info.processors = info.processors.saturating_add(1),
            // "cpu" is POWER's word for the model; on MIPS it is "cpu model".
            "model name" | "cpu" | "cpu model" if !value.is_empty() => {
                info.model.get_or_insert_with(|| value.to_owned());
            }
            "flags" if info.hypervisor.is_none() => {
                info.hypervisor = Some(value.split_whitespace().any(|flag| flag == "hypervisor"));
            }
            "physical id" if !sockets.contains(&value) => sockets.push(value),
            "cpu cores" => info.cores_per_socket = value.parse().ok().or(info.cores_per_socket),
            "microcode" if !value.is_empty() => {
                info.microcode.get_or_insert_with(|| value.to_owned());
            }
            _ => {}
        }
    }
    info.sockets = u32::try_from(sockets.len()).ok().filter(|&n| n > 0);
    info
}

/// Time in clock ticks since boot, by use (proc_stat(5)). Guests are part of `user` and `nice`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// In user mode.
    pub user: u64,
    /// In user mode at low priority.
    pub nice: u64,
    /// In the kernel.
    pub system: u64,
    /// Idle.
    pub idle: u64,
    /// Idle while a disk was awaited.
    pub iowait: u64,
    /// In hardware interrupts.
    pub irq: u64,
    /// In soft interrupts, most of them the network's.
    pub softirq: u64,
    /// Wanted by this machine, given to another by the hypervisor.
    pub steal: u64,
    /// Which of them are measured.
    pub measured: MeasuredTimes,
}

/// Uses of a processor that its host distinguishes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MeasuredTimes {
    /// All of them.
    #[default]
    All,
    /// All but `iowait` and `steal` (Windows).
    WithoutWaits,
    /// `idle`; everything else is in `user` (hrProcessorLoad of SNMP).
    BusyAndIdle,
}

impl CpuTimes {
    /// From ticks in the order of `/proc/stat`, which is that of the fields.
    pub fn from_ticks([user, nice, system, idle, iowait, irq, softirq, steal]: [u64; 8]) -> Self {
        Self { user, nice, system, idle, iowait, irq, softirq, steal, measured: MeasuredTimes::All }
    }

    fn ticks(&self) -> [u64; 8] {
        let Self { user, nice, system, idle, iowait, irq, softirq, steal, measured: _ } = *self;
        [user, nice, system, idle, iowait, irq, softirq, steal]
    }

    /// The times of two processors together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let (own, theirs) = (self.ticks(), other.ticks());
        let ticks = std::array::from_fn(|index| own[index].saturating_add(theirs[index]));
        Self { measured: self.measured, ..Self::from_ticks(ticks) }
    }

    /// All ticks, counted once.
    pub fn total(&self) -> u64 {
        self.ticks().into_iter().fold(0, u64::saturating_add)
    }

    /// Ticks in which this machine's processor did work; stolen time is not work.
    pub fn busy(&self) -> u64 {
        [self.nice, self.system, self.irq, self.softirq]
            .iter()
            .fold(self.user, |sum, &ticks| sum.saturating_add(ticks))
    }
}

/// What the samplers need of `/proc/stat`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// Sum over processors.
    pub all: Option<CpuTimes>,
    /// By processor number; processors that are offline are missing.
    pub cpus: Vec<(u32, CpuTimes)>,
    /// Context switches since boot.
    pub context_switches: Option<u64>,
    /// When the host was booted by its wall clock, in seconds since the Unix epoch.
    pub boot_unix_s: Option<u64>,
    /// Interrupts since boot.
    pub interrupts: Option<u64>,
    /// Processes and threads made since boot.
    pub forks: Option<u64>,
    /// Runnable now.
    pub running: Option<u64>,
    /// Waiting for a disk now.
    pub blocked: Option<u64>,
}

impl Stat {
    /// The times of a host that reports them for each processor only.
    pub fn from_cpus(cpus: Vec<(u32, CpuTimes)>) -> Self {
        let all = cpus.iter().map(|(_, times)| *times).reduce(CpuTimes::plus);
        Self { all, cpus, ..Self::default() }
    }
}

/// Reads `/proc/stat`.
pub fn parse_stat(text: &str) -> Stat {
    let mut stat = Stat::default();
    for line in text.lines() {
        let Some((key, rest)) = line.split_once(' ') else { continue };
        let first = || rest.split_whitespace().next()?.parse::<u64>().ok();
        match key {
            "cpu" => stat.all = parse_cpu_times(rest),
            "ctxt" => stat.context_switches = first(),
            "btime" => stat.boot_unix_s = first(),
            "intr" => stat.interrupts = first(),
            "processes" => stat.forks = first(),
            "procs_running" => stat.running = first(),
            "procs_blocked" => stat.blocked = first(),
            _ => {
                let number = key.strip_prefix("cpu").and_then(|n| n.parse().ok());
                if let (Some(number), Some(times)) = (number, parse_cpu_times(rest)) {
                    stat.cpus.push((number, times));
                }
            }
        }
    }
    stat
}

/// The numbers after `cpu`; kernels before 2.6.11 give fewer, which count as zero ticks.
fn parse_cpu_times(rest: &str) -> Option<CpuTimes> {
    let tokens: Vec<&str> = rest.split_whitespace().collect();
    let ticks: [_; 8] = std::array::from_fn(|index| nth_number(&tokens, index));
    let has_first = ticks[..4].iter().all(Option::is_some);
    has_first.then(|| CpuTimes::from_ticks(ticks.map(Option::unwrap_or_default)))
}

/// One-minute load average from `/proc/loadavg`.
pub fn parse_load(text: &str) -> Option<f64> {
    text.split_whitespace().next()?.parse().ok().filter(|load: &f64| load.is_finite())
}

/// No machine has more; a number beyond it is no processor's.
const PROCESSORS_MAX: u32 = 1 << 16;

/// The processors that a list such as `0-3,8,10-11` names. `None` when it is not such a list.
pub fn parse_cpu_numbers(text: &str) -> Option<Vec<u32>> {
    let text = text.trim();
    if text.is_empty() {
        return None;
    }
    let mut numbers = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if first > last || last >= PROCESSORS_MAX {
            return None;
        }
        numbers.extend(first..=last);
    }
    Some(numbers)
}

/// How many processors such a list names.
pub fn parse_cpu_list(text: &str) -> Option<u32> {
    u32::try_from(parse_cpu_numbers(text)?.len()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpuinfo_of_a_cloud_machine_names_model_and_hypervisor() {
        let info = parse_cpuinfo(include_str!("../../tests/fixtures/cloud/cpuinfo"));
        assert_eq!(info.model.as_deref(), Some("AMD EPYC"));
        assert_eq!(info.hypervisor, Some(true));
        assert_eq!((info.processors, info.sockets, info.cores_per_socket), (2, Some(1), Some(2)));
    }

    #[test]
    fn the_cpuinfo_of_bare_metal_has_no_hypervisor() {
        let info = parse_cpuinfo(include_str!("../../tests/fixtures/metal/cpuinfo"));
        assert_eq!(info.hypervisor, Some(false));
        assert_eq!((info.processors, info.sockets), (2, Some(2)));
        assert_eq!(info.microcode.as_deref(), Some("0x5003604"));
    }

    #[test]
    fn the_cpuinfo_of_arm_leaves_unknown_what_it_does_not_say() {
        let text = "processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd\nCPU part\t: 0xd0c\n";
        let info = parse_cpuinfo(text);
        assert_eq!(info, CpuInfo { processors: 1, ..CpuInfo::default() });
    }

    #[test]
    fn stat_gives_the_sum_the_cores_and_the_counters() {
        let text = "cpu  10 1 12 18 8 0 3 7 0 0\ncpu0 4 1 5 9 1 0 1 3 0 0\ncpu3 6 0 7 9 7 0 2 4\n\
                    intr 568416 0 1\nctxt 723564\nbtime 1795290565\nprocesses 22454\n\
                    procs_running 4\nprocs_blocked 1\n";
        let stat = parse_stat(text);
        let all = stat.all.unwrap();
        assert_eq!((all.total(), all.busy(), all.steal), (59, 26, 7));
        assert_eq!(stat.cpus.iter().map(|c| c.0).collect::<Vec<_>>(), [0, 3]);
        assert_eq!((stat.context_switches, stat.interrupts), (Some(723_564), Some(568_416)));
        assert_eq!(stat.boot_unix_s, Some(1_795_290_565));
        assert_eq!((stat.forks, stat.running, stat.blocked), (Some(22_454), Some(4), Some(1)));
    }

    #[test]
    fn cpu_lists_are_counted_and_nonsense_is_not() {
        assert_eq!(parse_cpu_list("0-3,8,10-11\n"), Some(7));
        assert_eq!(parse_cpu_list("0"), Some(1));
        for odd in ["", "3-1", "a", "0-", "0-4294967295", "1,,2"] {
            assert_eq!(parse_cpu_list(odd), None, "{odd:?}");
        }
    }

    #[test]
    fn a_load_that_is_not_a_number_is_absent() {
        assert_eq!(parse_load("0.05 0.18 0.36 1/92 22451"), Some(0.05));
        assert_eq!(parse_load("nan 0"), None);
        assert_eq!(parse_load(""), None);
    }
}
