//! The imposed limits, and what must be named.

/// One run with imposed limits.
pub struct Case {
    pub name: &'static str,
    pub server: Server,
    /// Groups the server is put into: controller, file and value. `DISK` is the number of the disk
    /// that has the server's file.
    pub groups: &'static [(&'static str, &'static str, &'static str)],
    /// What `plimsoll run` is given after the target, with two load points at least.
    pub run: &'static [&'static str],
    /// CPU time the generator is allowed, in microseconds of 100,000.
    pub generator_quota: Option<&'static str>,
    pub kind: &'static str,
    /// What the location must contain.
    pub location: &'static str,
    /// The other of two at once.
    pub also: Option<&'static str>,
}

/// Who serves.
pub enum Server {
    /// Our scripted web server, on these cores, with these arguments.
    Staged(&'static str, &'static str),
    /// The same behind a link of this rate.
    Shaped(&'static str, &'static str, &'static str),
    /// `plimsoll serve` with these arguments; the suite.
    Plimsoll(&'static str, &'static [&'static str]),
    /// A server that the run starts itself.
    Managed(&'static str, &'static str),
    /// nginx, started by hand on one core.
    Nginx,
}

impl Server {
    /// It can be put into another network namespace.
    pub fn may_be_elsewhere(&self) -> bool {
        !matches!(self, Self::Managed(..) | Self::Nginx)
    }
}

/// Short answers, so that a few seconds hold many.
const CHAT: &[&str] = &[
    "llm-chat",
    "--points",
    "1,48",
    "--set",
    "workload.input_tokens=64",
    "--set",
    "workload.output_tokens=32",
];
/// Parsing and lookup cost the server more than the generator.
const LONG_PROMPTS: &[&str] = &[
    "llm-chat",
    "--points",
    "1,48",
    "--set",
    "workload.input_tokens=6000",
    "--set",
    "workload.output_tokens=2",
];
const CLOSED: &[&str] = &["--points", "1,16"];
const NO_GROUPS: &[(&str, &str, &str)] = &[];
const QUARTER: &[(&str, &str, &str)] = &[("cpu", "cpu.cfs_quota_us", "25000")];

/// The usual case, which others differ from: two closed loads, limited by the server's core.
const ON_CORE_1: Case = Case {
    name: "",
    server: Server::Nginx,
    groups: NO_GROUPS,
    run: CLOSED,
    generator_quota: None,
    kind: "core",
    location: "core 1",
    also: None,
};

/// A server of language models with these arguments.
const fn llm(
    name: &'static str,
    arguments: &'static [&'static str],
    (kind, location): (&'static str, &'static str),
) -> Case {
    Case {
        name,
        server: Server::Plimsoll("llm", arguments),
        run: CHAT,
        kind,
        location,
        ..ON_CORE_1
    }
}

const fn web(
    name: &'static str,
    cores: &'static str,
    arguments: &'static str,
    groups: &'static [(&'static str, &'static str, &'static str)],
    (kind, location, also): (&'static str, &'static str, Option<&'static str>),
) -> Case {
    Case {
        name,
        server: Server::Staged(cores, arguments),
        groups,
        kind,
        location,
        also,
        ..ON_CORE_1
    }
}

pub const CASES: &[Case] = &[
    web("web: one core of two", "1", "threads=8 cpu=300", NO_GROUPS, ("core", "core 1", None)),
    web("web: one thread", "0,1", "threads=1 cpu=300", NO_GROUPS, ("core", "thread", None)),
    web("web: CPU quota", "1", "threads=8 cpu=300", QUARTER, ("quota", "0.25", None)),
    web(
        "web: threads of a pool",
        "1",
        "threads=4 sleep=5000",
        NO_GROUPS,
        ("pool", "threads", None),
    ),
    web("web: a lock", "1", "threads=16 lock=1500", NO_GROUPS, ("lock", "", None)),
    web(
        "web: disk held to reads a second",
        "1",
        "threads=16 read",
        &[("blkio", "blkio.throttle.read_iops_device", "DISK 500")],
        ("disk", "DISK", None),
    ),
    web(
        "web: disk held to bytes a second",
        "1",
        "threads=16 read",
        &[("blkio", "blkio.throttle.read_bps_device", "DISK 2000000")],
        ("disk", "DISK", None),
    ),
    web("web: none", "1", "threads=64 sleep=3000", NO_GROUPS, ("none", "", None)),
    web(
        "web: core and disk at once",
        "1",
        "threads=16 cpu=950 read",
        &[("blkio", "blkio.throttle.read_iops_device", "DISK 930")],
        ("core", "core 1", Some("disk")),
    ),
    web(
        "web: quota and disk at once",
        "1",
        "threads=16 cpu=450 read",
        &[
            ("cpu", "cpu.cfs_quota_us", "50000"),
            ("blkio", "blkio.throttle.read_iops_device", "DISK 930"),
        ],
        ("quota", "0.5", Some("disk")),
    ),
    Case {
        name: "web: shaped link",
        server: Server::Shaped("20mbit", "1", "threads=16 reply=20000"),
        kind: "network",
        location: "pls",
        ..ON_CORE_1
    },
    Case {
        name: "web: core and shaped link at once",
        server: Server::Shaped("60mbit", "1", "threads=16 balance=2600 reply=20000"),
        also: Some("network"),
        ..ON_CORE_1
    },
    Case {
        name: "web: too few clients",
        server: Server::Staged("1", "threads=32 sleep=2000"),
        run: &["--set", "load.mode=\"open\"", "--set", "load.clients=2", "--points", "100,3000"],
        kind: "clients",
        location: "",
        ..ON_CORE_1
    },
    Case {
        name: "web: throttled generator",
        server: Server::Plimsoll("web", &["--cores", "1"]),
        run: &["--points", "1,32"],
        generator_quota: Some("15000"),
        kind: "generator",
        location: "",
        ..ON_CORE_1
    },
    web(
        "web: core and disk by turns",
        "1",
        "threads=16 turns=300",
        NO_GROUPS,
        ("core", "core 1", Some("disk")),
    ),
    Case { name: "web: nginx on one core by taskset", server: Server::Nginx, ..ON_CORE_1 },
    Case {
        name: "transactions: one core",
        server: Server::Plimsoll("app", &["--cores", "1"]),
        run: &["transactions-processor", "--points", "1,16"],
        ..ON_CORE_1
    },
    Case {
        name: "transactions: CPU quota",
        server: Server::Plimsoll("app", &["--cores", "1"]),
        groups: QUARTER,
        run: &["transactions-processor", "--points", "1,16"],
        kind: "quota",
        location: "0.25",
        ..ON_CORE_1
    },
    Case {
        name: "transactions: disk held to writes a second",
        server: Server::Plimsoll("app", &["--durability", "fdatasync", "--cores", "1"]),
        groups: &[("blkio", "blkio.throttle.write_iops_device", "DISK 200")],
        run: &["transactions-disk", "--points", "1,16"],
        kind: "disk",
        location: "DISK",
        ..ON_CORE_1
    },
    Case {
        name: "transactions: memory below the working set",
        server: Server::Plimsoll("app", &["--memory", "48MiB", "--cores", "1"]),
        run: &[
            "transactions-disk",
            "--points",
            "1,16",
            "--set",
            "profiles.quick.workload_scale=0.5",
        ],
        kind: "memory",
        location: "",
        ..ON_CORE_1
    },
    Case {
        name: "NFS: CPU quota",
        server: Server::Plimsoll("nfs", &["--cores", "1"]),
        groups: &[("cpu", "cpu.cfs_quota_us", "10000")],
        run: &["nfs-v3", "--points", "500,30000"],
        kind: "quota",
        location: "0.10",
        ..ON_CORE_1
    },
    Case {
        name: "NFS: response cap",
        server: Server::Plimsoll(
            "nfs",
            &["--cores", "1", "--calibrated", "service=const:45ms,servers=1024"],
        ),
        run: &["nfs-v3", "--points", "50,500", "--set", "rules.response_cap_ms=2"],
        kind: "cap",
        location: "",
        ..ON_CORE_1
    },
    Case {
        name: "NFS: Ganesha's core",
        server: Server::Managed("nfs-v3", "managed:ganesha"),
        run: &["--points", "500,22000"],
        ..ON_CORE_1
    },
    Case {
        name: "SMB: Samba's core",
        server: Server::Managed("disk-mix", "managed:samba"),
        run: &["--points", "1,24"],
        ..ON_CORE_1
    },
    Case {
        name: "SMB: CPU quota",
        server: Server::Plimsoll("smb", &["--cores", "1"]),
        groups: QUARTER,
        run: &["disk-mix", "--points", "1,16"],
        kind: "quota",
        location: "0.25",
        ..ON_CORE_1
    },
    llm(
        "language model: places of its batch",
        &["--slots", "8", "--step", "5ms", "--step-per-slot", "0s", "--prefill", "1M"],
        ("batch", ""),
    ),
    llm(
        "language model: KV cache",
        &["--kv-tokens", "2000", "--step", "5ms", "--step-per-slot", "0s", "--prefill", "1M"],
        ("kv_cache", ""),
    ),
    Case {
        run: LONG_PROMPTS,
        ..llm(
            "language model: one core",
            &[
                "--cores",
                "1",
                "--step",
                "100us",
                "--step-per-slot",
                "0s",
                "--prefill",
                "100M",
                "--chunk",
                "1000000",
                "--prefix-cache",
                "on",
                "--kv-tokens",
                "10000k",
            ],
            ("core", "core 1"),
        )
    },
    Case {
        groups: QUARTER,
        ..llm(
            "language model: CPU quota",
            &["--step", "1ms", "--step-per-slot", "0s", "--prefill", "100M"],
            ("quota", "0.25"),
        )
    },
    Case {
        generator_quota: Some("3000"),
        ..llm(
            "language model: throttled generator",
            &["--step", "2ms", "--step-per-slot", "0s", "--prefill", "100M"],
            ("generator", ""),
        )
    },
    llm(
        "language model: none",
        &["--step", "5ms", "--step-per-slot", "0s", "--prefill", "100M"],
        ("none", ""),
    ),
];
