//! What a host is, as far as a program can read it; the output of `plimsoll inventory --json`; and
//! the files of `run --system`, in which people state the rest.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::disks::DiskRole;

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
    /// Vendor, model, board and firmware, from the firmware's tables (DMI).
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
    /// Of those, the ones that differ from the kernel's default, or whose default is unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernel_settings: Vec<KernelSetting>,
    /// How many settings were compared with a known default; absent in older bundles.
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

/// A kernel setting and its default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KernelSetting {
    /// Name, as sysctl spells it; of files below `/sys` their path.
    pub name: String,
    /// Value.
    pub value: String,
    /// The kernel's own default on this machine; absent where unknown.
    pub default: Option<String>,
    /// What the default depends on, where it is unknown.
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
    /// Its default, where it was changed and the default is known.
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
    /// `rotational`, `solid state`, or the kernel's term.
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
    /// State of the link, duplex, queues, rings, interrupts, offloads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<Setting>,
}

/// Version of both formats.
pub const INVENTORY_FORMAT: u32 = 1;
/// Value of the field `kind` of an inventory.
pub const INVENTORY_KIND: &str = "plimsoll inventory";

/// A host as it describes itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Inventory {
    /// Always [`INVENTORY_KIND`].
    pub kind: String,
    /// Version of this format.
    pub format: u32,
    /// The program that made it.
    pub tool: Tool,
    /// When, RFC 3339, by the host's own clock.
    pub made: String,
    /// The host.
    pub host: Host,
    /// Servers that listen on it.
    pub servers: Vec<ServerSoftware>,
    /// What could not be read, and why.
    pub not_readable: Vec<String>,
}

/// A server program that listens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerSoftware {
    /// Name of the process.
    pub name: String,
    /// Path of the program.
    pub program: Option<String>,
    /// The program's own version text; absent where it was not run for it.
    pub version: Option<String>,
    /// Command line, without what may be secret; absent where it is not readable.
    pub command_line: Option<String>,
    /// Its configuration file; absent where unknown or not readable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration_file: Option<ConfigurationFile>,
    /// Its configuration, in inventories of version 0.1.0 of this program; absent in newer ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration: Option<String>,
    /// TCP addresses it listens on.
    pub listens: Vec<String>,
}

/// The file that a server which somebody else started has its configuration from. Files that it
/// includes are not part of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfigurationFile {
    /// Where it is, on the host of the server.
    pub path: String,
    /// SHA-256 of its content when it was looked at, which may be later than when the server read
    /// it; hexadecimal digits.
    pub sha256: String,
}

impl std::fmt::Display for ConfigurationFile {
    /// `/etc/nginx/nginx.conf, SHA-256 e3b0c442…` with all its digits.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, SHA-256 {}", self.path, self.sha256)
    }
}

/// An inventory that was given to a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SystemInventory {
    /// The file, as it was named.
    pub file: String,
    /// Its age when the run began, by the clocks of both hosts; 0 where it is younger than that.
    pub age_s: u64,
    /// Targets that lie on one of its addresses.
    pub of_targets: Vec<String>,
    /// The inventory.
    pub inventory: Inventory,
}

/// Facts that no program can read: the content of `system.toml`. Dates are `YYYY-MM` or
/// `YYYY-MM-DD`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DeclaredFacts {
    /// Who paid for the test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sponsor: Option<String>,
    /// Who made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tester: Option<String>,
    /// Where it was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// Price of the whole tested system with its currency: `EUR 12345.00`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<String>,
    /// File with the items of that price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price_file: Option<String>,
    /// The hosts and devices, each as far as the user states it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub system: Vec<DeclaredSystem>,
    /// The agents of a testbed, which make the load.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agent: Vec<DeclaredAgent>,
    /// Anything else.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// An agent of a testbed. Its other settings are read where agents are started (`--agents`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeclaredAgent {
    /// As `--agents` has it.
    pub at: String,
    /// Segment of the network that it is connected to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment: Option<String>,
}

/// One host or device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DeclaredSystem {
    /// What it is called.
    pub name: String,
    /// What it does in the test: `server`, `generator`, `switch`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Vendor and model, processors, memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hardware: Option<String>,
    /// From when on the hardware can be bought.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hardware_available: Option<String>,
    /// Firmware and its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub firmware: Option<String>,
    /// Operating system and server software with their versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub software: Option<String>,
    /// From when on the software can be had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub software_available: Option<String>,
    /// Disks, controllers, how they are joined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<String>,
    /// Disks by what they are for: their names, or directories that lie on them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub disks: BTreeMap<DiskRole, Vec<String>>,
    /// RAID level of the disks under test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raid_level: Option<String>,
    /// Stripe of the array.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stripe: Option<String>,
    /// Controller of the disks, with its cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<String>,
    /// Whether writes are acknowledged from a cache, and what protects it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_cache: Option<String>,
    /// Cards, switches, how they are joined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// Kind and length of the cables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cables: Option<String>,
    /// What was tuned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tuning: Option<String>,
    /// How it is monitored: a value of `--monitor`, without its role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub monitor: Option<String>,
    /// Segments of the network that it is connected to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub segments: Vec<String>,
    /// Anything else.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl DeclaredFacts {
    /// Every fact that can be stated of the test as a whole, with its value if it was.
    pub fn of_test(&self) -> [(&'static str, Option<&str>); 5] {
        [
            ("sponsor", self.sponsor.as_deref()),
            ("tester", self.tester.as_deref()),
            ("place", self.place.as_deref()),
            ("price", self.price.as_deref()),
            ("price file", self.price_file.as_deref()),
        ]
    }
}

impl DeclaredSystem {
    /// Every fact that can be stated of a system, with its value if it was. Facts about an array
    /// of disks are missing only where there are disks: on hosts of servers and databases.
    pub fn all(&self) -> Vec<(&'static str, Option<&str>)> {
        let of_disks = [
            ("RAID level", self.raid_level.as_deref()),
            ("stripe", self.stripe.as_deref()),
            ("controller", self.controller.as_deref()),
            ("write cache", self.write_cache.as_deref()),
            ("cables", self.cables.as_deref()),
        ];
        let has_disks = matches!(self.role.as_deref(), Some("server" | "database"));
        let of_disks = of_disks.into_iter().filter(|(_, fact)| has_disks || fact.is_some());
        let general = [
            ("role", self.role.as_deref()),
            ("hardware", self.hardware.as_deref()),
            ("hardware available", self.hardware_available.as_deref()),
            ("firmware", self.firmware.as_deref()),
            ("software", self.software.as_deref()),
            ("software available", self.software_available.as_deref()),
            ("storage", self.storage.as_deref()),
            ("network", self.network.as_deref()),
            ("tuning", self.tuning.as_deref()),
        ];
        general.into_iter().chain(of_disks).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inventory_of_version_0_1_0_is_read_and_a_new_one_has_no_configuration() {
        let old = r#"{"name":"nginx","program":null,"version":null,"command_line":null,
            "configuration":"listen 80;","listens":[]}"#;
        let read: ServerSoftware = serde_json::from_str(old).unwrap();
        assert_eq!(read.configuration.as_deref(), Some("listen 80;"));
        assert_eq!(read.configuration_file, None);
        let new = serde_json::to_string(&ServerSoftware::default()).unwrap();
        assert!(!new.contains("configuration"), "{new}");
    }
}
