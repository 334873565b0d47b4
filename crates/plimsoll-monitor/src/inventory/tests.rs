use std::fs;
use std::os::unix::fs::symlink;

use plimsoll_model::disclosure::{Disk, Setting};
use tempfile::TempDir;

use super::*;

/// A machine laid out in a directory of its own.
struct Machine(TempDir);

impl Machine {
    fn new(files: &[(&str, &str)]) -> Self {
        let machine = Self(TempDir::new().unwrap());
        for (file, text) in files {
            machine.write(file, text);
        }
        machine
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.0.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn link(&self, link: &str, target: &str) {
        let path = self.0.path().join(link);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
    }

    fn host(&self) -> Host {
        inventory_at(&Root::in_directory(self.0.path()), &[])
    }
}

const SCHEDULER: &str = "sys/block/nvme0n1/queue/scheduler";

fn value<'a>(settings: &'a [Setting], name: &str) -> Option<&'a str> {
    settings.iter().find(|setting| setting.name == name).map(|setting| setting.value.as_str())
}

const CLOUD: &[(&str, &str)] = &[
    ("etc/os-release", "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n"),
    ("proc/sys/kernel/ostype", "Linux\n"),
    ("proc/sys/kernel/osrelease", "6.1.0-18-cloud-amd64\n"),
    ("proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.76-1\n"),
    ("proc/cpuinfo", include_str!("../../tests/fixtures/cloud/cpuinfo")),
    ("sys/class/dmi/id/sys_vendor", "Amazon EC2\n"),
    ("sys/class/dmi/id/product_name", "c6a.large\n"),
    ("proc/self/status", "Name:\tplimsoll\nCpus_allowed_list:\t0\n"),
    ("sys/devices/system/cpu/online", "0-1\n"),
    ("sys/devices/system/clocksource/clocksource0/current_clocksource", "kvm-clock\n"),
    ("sys/devices/system/cpu/cpu0/cache/index0/level", "1\n"),
    ("sys/devices/system/cpu/cpu0/cache/index0/type", "Data\n"),
    ("sys/devices/system/cpu/cpu0/cache/index0/size", "32K\n"),
    ("sys/devices/system/cpu/cpu0/cache/index0/shared_cpu_list", "0-1\n"),
    ("sys/devices/system/cpu/vulnerabilities/meltdown", "Not affected\n"),
    ("proc/meminfo", "MemTotal: 4000 kB\nSwapTotal: 0 kB\n"),
    ("sys/block/nvme0n1/size", "2048\n"),
    ("sys/block/nvme0n1/queue/rotational", "0\n"),
    ("sys/block/nvme0n1/queue/scheduler", "[none] mq-deadline\n"),
    ("sys/block/nvme0n1/device/firmware_rev", "1.0     \n"),
    ("sys/block/loop0/size", "0\n"),
    ("sys/class/net/ens5/mtu", "9001\n"),
    ("sys/class/net/ens5/speed", "-1\n"),
    ("sys/class/net/bonding_masters", "\n"),
    ("proc/sys/net/ipv4/tcp_congestion_control", "cubic\n"),
    ("proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n"),
    ("proc/sys/net/core/somaxconn", "4096\n"),
    ("proc/sys/net/core/netdev_rss_key", "de:ad:be:ef\n"),
    ("proc/sys/vm/dirty_ratio", "20\n"),
    ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
    ("proc/cmdline", "root=/dev/vda token=secret mitigations=off nohz_full=1 quiet -- key=s\n"),
    ("proc/sys/kernel/hostname", "web1\n"),
    ("sys/class/dmi/id/board_name", "Not Specified\n"),
    ("sys/class/net/ens5/queues/rx-0/rps_cpus", "0\n"),
    ("sys/class/net/ens5/queues/rx-1/rps_cpus", "0\n"),
    ("sys/class/net/ens5/device/msi_irqs/9", "msix\n"),
    ("sys/class/net/ens5/device/msi_irqs/10", "msix\n"),
    ("sys/class/net/ens5/device/msi_irqs/11", "msix\n"),
    ("proc/irq/9/smp_affinity_list", "0-1\n"),
    ("proc/irq/10/smp_affinity_list", "1\n"),
    ("proc/irq/11/smp_affinity_list", "1\n"),
    ("proc/self/limits", "Max open files            1024       524288       files\n"),
];

#[test]
fn a_cloud_machine_is_read_in_full() {
    let machine = Machine::new(CLOUD);
    machine.link("sys/class/net/ens5/device/driver", "../../../bus/pci/drivers/ena");
    let host = machine.host();
    assert_eq!(host.os.as_deref(), Some("Debian GNU/Linux 12 (bookworm)"));
    let kernel = "Linux 6.1.0-18-cloud-amd64 #1 SMP PREEMPT_DYNAMIC Debian 6.1.76-1";
    assert_eq!(host.kernel.as_deref(), Some(kernel));
    assert_eq!(host.virtualisation.as_deref(), Some("virtual machine (Amazon EC2 c6a.large)"));
    assert_eq!((host.cpus_available, host.cpus_online), (Some(1), Some(2)));
    assert_eq!((host.memory_bytes, host.swap_bytes), (Some(4_096_000), Some(0)));
    assert_eq!(value(&host.cpu_details, "clock source"), Some("kvm-clock"));
    assert_eq!(value(&host.cpu_details, "deepest C-state"), Some("not visible"));
    let cache = value(&host.cpu_details, "L1 data cache");
    assert_eq!(cache, Some("32K, shared by processors 0-1"));
    assert_eq!(value(&host.cpu_details, "mitigation meltdown"), Some("Not affected"));
    let scheduler = Some("none".to_owned());
    let disk = Disk {
        name: "nvme0n1".into(),
        size_bytes: 1 << 20,
        kind: "solid state".into(),
        scheduler,
        details: vec![Setting::new("firmware", "1.0")],
    };
    assert_eq!(host.disks, [disk]);
    assert_eq!(host.networks.len(), 1);
    assert_eq!(host.networks[0].driver.as_deref(), Some("ena"));
    assert_eq!((host.networks[0].speed_mbit_per_s, host.networks[0].mtu_bytes), (None, Some(9001)));
    assert_eq!(value(&host.tuning, "net.ipv4.tcp_rmem"), Some("4096 131072 6291456"));
    assert_eq!(value(&host.tuning, "net.core.somaxconn"), Some("4096"));
    assert_eq!(value(&host.tuning, "net.core.netdev_rss_key"), None);
    assert_eq!(value(&host.tuning, "vm.dirty_ratio"), Some("20"));
    let huge = "sys/kernel/mm/transparent_hugepage/enabled";
    assert_eq!(value(&host.tuning, huge), Some("madvise"));
    let line = "root=(left out) token=(left out) mitigations=off nohz_full=1 quiet -- (left out)";
    assert_eq!(host.kernel_command_line.as_deref(), Some(line));
    assert_eq!(value(&host.firmware, "system"), Some("Amazon EC2 c6a.large"));
    assert_eq!(value(&host.firmware, "board"), None, "a filler says nothing");
    assert_eq!(value(&host.clocks, "clock source"), Some("kvm-clock"));
    assert_eq!(host.name.as_deref(), Some("web1"));
    assert_eq!(value(&host.networks[0].details, "receive queues"), Some("2"));
    assert_eq!(value(&host.networks[0].details, "interrupts on cores"), Some("0-1, 1"));
    let changed: Vec<_> = host.kernel_settings.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(changed, ["net.ipv4.tcp_rmem", "net.ipv4.tcp_congestion_control", huge, SCHEDULER]);
    assert_eq!(value(&host.limits, "RLIMIT_NOFILE"), Some("1024 (hard 524288)"));
}

#[test]
fn bare_metal_shows_governor_turbo_and_rotating_disks() {
    let machine = Machine::new(&[
        ("proc/cpuinfo", include_str!("../../tests/fixtures/metal/cpuinfo")),
        ("sys/class/dmi/id/product_name", "PowerEdge R640\n"),
        ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n"),
        ("sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "3700000\n"),
        ("sys/devices/system/cpu/intel_pstate/no_turbo", "0\n"),
        ("sys/devices/system/cpu/cpu0/cpuidle/state2/name", "C1E\n"),
        ("sys/devices/system/cpu/cpu0/cpuidle/state2/disable", "0\n"),
        ("sys/devices/system/cpu/cpu0/cpuidle/state2/latency", "10\n"),
        ("sys/devices/system/cpu/cpu0/cpuidle/state10/name", "C6\n"),
        ("sys/devices/system/cpu/cpu0/cpuidle/state10/disable", "1\n"),
        ("sys/devices/system/cpu/cpu1/cpuidle/state10/name", "C6\n"),
        ("sys/devices/system/cpu/cpu1/cpuidle/state10/disable", "0\n"),
        ("sys/devices/system/cpu/cpu1/cpuidle/state10/latency", "133\n"),
        ("sys/block/sda/size", "1953525168\n"),
        ("sys/block/sda/queue/rotational", "1\n"),
        ("sys/block/sda/device/model", "ST1000NX0313    \n"),
        ("sys/block/sda/queue/scheduler", "none [mq-deadline] kyber\n"),
        ("sys/class/net/eno1/speed", "25000\n"),
    ]);
    let host = machine.host();
    assert_eq!(host.virtualisation.as_deref(), Some("bare metal (PowerEdge R640)"));
    assert_eq!(value(&host.cpu_details, "governor"), Some("performance"));
    assert_eq!(value(&host.cpu_details, "highest frequency"), Some("3700 MHz"));
    assert_eq!(value(&host.cpu_details, "turbo"), Some("on"));
    let states = "C1E (10 µs to wake), C6 (133 µs to wake)";
    assert_eq!(value(&host.cpu_details, "deepest C-state"), Some(states));
    assert_eq!(host.disks[0].kind, "rotational, ST1000NX0313");
    assert_eq!(host.disks[0].scheduler.as_deref(), Some("mq-deadline"));
    assert_eq!(host.networks[0].speed_mbit_per_s, Some(25_000));
}

#[test]
fn a_container_with_cgroup_v1_shows_its_quota_and_processors() {
    let machine = Machine::new(&[
        (".dockerenv", ""),
        ("proc/cpuinfo", include_str!("../../tests/fixtures/cloud/cpuinfo")),
        (
            "proc/self/cgroup",
            "4:memory:/docker/ab\n3:cpuset:/docker/ab\n2:cpu,cpuacct:/docker/ab\n",
        ),
        (
            "proc/self/mountinfo",
            "31 1 0:29 /docker/ab /cg/cpu ro - cgroup cgroup rw,cpu,cpuacct\n\
             32 1 0:30 /docker/ab /cg/cpuset ro - cgroup cgroup rw,cpuset\n\
             33 1 0:31 /docker/ab /cg/memory ro - cgroup cgroup rw,memory\n",
        ),
        ("cg/cpu/cpu.cfs_quota_us", "150000\n"),
        ("cg/cpu/cpu.cfs_period_us", "100000\n"),
        ("cg/cpuset/cpuset.cpus", "0-1\n"),
        ("cg/memory/memory.limit_in_bytes", "9223372036854771712\n"),
    ]);
    let host = machine.host();
    assert_eq!(host.virtualisation.as_deref(), Some("virtual machine; container (docker)"));
    assert_eq!(value(&host.limits, "cgroup CPU quota"), Some("1.50 cores"));
    assert_eq!(value(&host.limits, "cgroup processors"), Some("0-1"));
    assert_eq!(value(&host.limits, "cgroup memory"), None, "the number means no limit");
}

#[test]
fn the_tightest_quota_of_a_cgroup_v2_branch_counts() {
    let machine = Machine::new(&[
        ("proc/self/cgroup", "0::/system.slice/bench.service\n"),
        ("proc/self/mountinfo", "31 1 0:29 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
        ("sys/fs/cgroup/system.slice/cpu.max", "100000 100000\n"),
        ("sys/fs/cgroup/system.slice/bench.service/cpu.max", "max 100000\n"),
        ("sys/fs/cgroup/system.slice/bench.service/memory.max", "1073741824\n"),
        ("sys/fs/cgroup/cpuset.cpus.effective", "0-3\n"),
    ]);
    let limits = machine.host().limits;
    assert_eq!(value(&limits, "cgroup CPU quota"), Some("1.00 cores"));
    assert_eq!(value(&limits, "cgroup memory"), Some("1073741824 bytes"));
    assert_eq!(value(&limits, "cgroup processors"), Some("0-3"));
}

#[test]
fn a_machine_without_any_file_is_all_absence() {
    assert_eq!(Machine::new(&[]).host(), Host::default());
}

#[test]
fn this_machine_gives_sensible_values() {
    let not_yet_there = std::env::temp_dir().join("plimsoll-not-yet/there");
    let host = inventory(&[("bundle", &not_yet_there)]);
    let (available, online) = (host.cpus_available.unwrap(), host.cpus_online.unwrap());
    assert!((1..=online).contains(&available), "{available} of {online}");
    assert!(host.memory_bytes.unwrap() > 64 << 20);
    assert!(host.kernel.as_deref().unwrap().starts_with("Linux "));
    assert_eq!(host.file_systems.len(), 1);
    let file_system = &host.file_systems[0];
    assert_eq!(file_system.role, "bundle");
    assert!(file_system.size_bytes >= file_system.free_bytes && !file_system.kind.is_empty());
    assert!(host.networks.iter().any(|network| network.name == "lo"));
    assert!(value(&host.limits, "RLIMIT_NOFILE").is_some());
}
