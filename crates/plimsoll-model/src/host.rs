//! What a host is, as far as a program can read it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The program that ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// Always `plimsoll`.
    pub name: String,
    /// Version.
    pub version: String,
    /// `release` or `debug`.
    pub build: String,
}

/// One host. Absent means this program could not read it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// What the host calls itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Maker, model, board and firmware, as the firmware's tables (DMI) say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub firmware: Vec<Setting>,
    /// Name of the operating system with its version.
    pub os: Option<String>,
    /// Kernel release and build.
    pub kernel: Option<String>,
    /// Bare metal, or the kind of virtual machine or container.
    pub virtualisation: Option<String>,
    /// Processor model.
    pub cpu_model: Option<String>,
    /// Sockets, cores and threads this process may use.
    pub cpus_available: Option<u32>,
    /// Logical processors online.
    pub cpus_online: Option<u32>,
    /// Clock and cache facts, and mitigations, as the kernel gives them.
    pub cpu_details: Vec<Setting>,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Swap in bytes.
    pub swap_bytes: Option<u64>,
    /// Disks: name, size, kind, scheduler.
    pub disks: Vec<Disk>,
    /// File systems that matter (bundle, file set).
    pub file_systems: Vec<FileSystem>,
    /// Network interfaces.
    pub networks: Vec<Network>,
    /// Kernel settings that bear on results: name, value. Every one that was read.
    pub tuning: Vec<Setting>,
    /// Of those, the ones that differ from the kernel's default, or whose default cannot be told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernel_settings: Vec<KernelSetting>,
    /// How many settings were held against a default that is known; absent in older bundles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_settings_judged: Option<u32>,
    /// The kernel's command line, without values that may be secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_command_line: Option<String>,
    /// Addresses of the host but loopback.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<String>,
    /// What time is read from, and what keeps it right.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clocks: Vec<Setting>,
    /// Limits of this process: name, value.
    pub limits: Vec<Setting>,
}

/// A kernel setting beside its default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KernelSetting {
    /// Name, as sysctl spells it; of files below `/sys` their path.
    pub name: String,
    /// Value.
    pub value: String,
    /// The kernel's own default on this machine; absent where it cannot be told.
    pub default: Option<String>,
    /// What the default depends on, where it cannot be told.
    pub depends_on: Option<String>,
    /// What it does.
    pub meaning: String,
    /// Unit of value and default; empty where they have none.
    pub unit: String,
}

/// A named value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// Name, as its owner spells it.
    pub name: String,
    /// Value, with its unit where the name has none.
    pub value: String,
    /// What it is by default, where it was changed and that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// Why it was changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl Setting {
    /// A name and its value.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: value.into(), default: None, why: None }
    }
}

/// One disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Disk {
    /// Kernel name.
    pub name: String,
    /// Size in bytes.
    pub size_bytes: u64,
    /// `rotational`, `solid state`, or what the kernel says.
    pub kind: String,
    /// I/O scheduler.
    pub scheduler: Option<String>,
    /// Firmware, cache and queue.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<Setting>,
}

/// One file system and what the run used it for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileSystem {
    /// What it was used for: `bundle`, `file set`.
    pub role: String,
    /// Type (`ext4`, `tmpfs`).
    pub kind: String,
    /// Mount options.
    pub options: String,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Free bytes when the run began.
    pub free_bytes: u64,
}

/// One network interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Kernel name.
    pub name: String,
    /// Link speed; absent for loopback and virtual links.
    pub speed_mbit_per_s: Option<u64>,
    /// Largest packet.
    pub mtu_bytes: Option<u64>,
    /// Driver or kind.
    pub driver: Option<String>,
    /// State of the link, duplex, queues, offloads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<Setting>,
}
