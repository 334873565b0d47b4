//! Servers whose peak is predicted, and servers in which a lock or a pool was planted.

/// A server, and how it is loaded.
pub struct Case {
    pub name: &'static str,
    pub server: Server,
    /// Further arguments of `plimsoll run`.
    pub run: &'static [&'static str],
    /// CPU quota in microseconds of 100,000; without one the server has a core.
    pub quota_us: Option<u32>,
    pub load: Load,
}

/// The loads of a ladder.
pub enum Load {
    /// Shares of the peak, and this rate, above any peak.
    Open { beyond_ops_per_s: u32 },
    /// Clients that wait for each reply, from one up to this number.
    Closed { clients_max: u32 },
}

/// Who serves.
pub enum Server {
    /// `plimsoll serve` with these arguments.
    Plimsoll(&'static str, &'static [&'static str]),
    /// The scripted server of `attribution` with these arguments.
    Staged(&'static str),
    Nginx,
    Ganesha,
    Samba,
}

const WEB_OPEN: &[&str] = &["web-url", "--set", "load.mode=\"open\""];
/// Three tenths of the core.
const QUOTA: Option<u32> = Some(30_000);

/// Servers that their processors limit.
pub const SOUND: [Case; 4] = [
    Case {
        name: "nginx",
        server: Server::Nginx,
        run: WEB_OPEN,
        quota_us: QUOTA,
        load: Load::Open { beyond_ops_per_s: 100_000 },
    },
    Case {
        name: "NFS-Ganesha",
        server: Server::Ganesha,
        run: &["nfs-v3", "--set", "profiles.quick.workload_scale=0.0002"],
        quota_us: QUOTA,
        load: Load::Open { beyond_ops_per_s: 20_000 },
    },
    Case {
        name: "Samba, `disk-mix`",
        server: Server::Samba,
        run: &["disk-mix", "--set", "load.think.mean=\"0s\""],
        quota_us: QUOTA,
        load: Load::Closed { clients_max: 8 },
    },
    Case {
        name: "`serve web --work 200us`",
        server: Server::Plimsoll("web", &["--cores", "1", "--work", "200us"]),
        run: WEB_OPEN,
        quota_us: QUOTA,
        load: Load::Open { beyond_ops_per_s: 6_000 },
    },
];

const fn planted(name: &'static str, arguments: &'static str) -> Case {
    let server = Server::Staged(arguments);
    let load = Load::Open { beyond_ops_per_s: 8_000 };
    Case { name, server, run: WEB_OPEN, quota_us: None, load }
}

/// Servers that something else limits first.
pub const PLANTED: [Case; 6] = [
    planted("lock of 1.5 ms", "threads=16 lock=1500"),
    planted("lock of 2 ms, 100 µs of work", "threads=16 cpu=100 lock=2000"),
    planted("lock of 500 µs, 300 µs of work", "threads=32 cpu=300 lock=500"),
    planted("pool of 4, 5 ms", "threads=4 sleep=5000"),
    planted("pool of 8, 8 ms, 200 µs of work", "threads=8 cpu=200 sleep=8000"),
    planted("pool of 2, 2.5 ms, 100 µs of work", "threads=2 cpu=100 sleep=2500"),
];
