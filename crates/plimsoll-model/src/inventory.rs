//! What `plimsoll inventory --json` prints, and what people state beside it: the files of
//! `run --system`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::host::{Host, Tool};

/// Version of both formats.
pub const INVENTORY_FORMAT: u32 = 1;
/// What the field `kind` of an inventory says.
pub const INVENTORY_KIND: &str = "plimsoll inventory";

/// A host as it says itself what it is.
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
    /// What the program says of its version; absent where it was not asked.
    pub version: Option<String>,
    /// Command line, without what may be secret; absent where it is not readable.
    pub command_line: Option<String>,
    /// Its configuration file; absent where it is not known or not readable.
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

/// What no program can read: the content of `system.toml`. Dates are `YYYY-MM` or `YYYY-MM-DD`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Stated {
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
    /// The hosts and devices, each as far as it is stated.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub system: Vec<StatedSystem>,
    /// Anything else.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// One host or device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StatedSystem {
    /// What it is called.
    pub name: String,
    /// What it does in the test: `server`, `generator`, `switch`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Maker and model, processors, memory.
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
    /// Cards, switches, how they are joined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// What was tuned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tuning: Option<String>,
    /// Anything else.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Stated {
    /// What can be stated of the test as a whole, with what was.
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

impl StatedSystem {
    /// What can be stated of a system, with what was.
    pub fn all(&self) -> [(&'static str, Option<&str>); 9] {
        [
            ("role", self.role.as_deref()),
            ("hardware", self.hardware.as_deref()),
            ("hardware available", self.hardware_available.as_deref()),
            ("firmware", self.firmware.as_deref()),
            ("software", self.software.as_deref()),
            ("software available", self.software_available.as_deref()),
            ("storage", self.storage.as_deref()),
            ("network", self.network.as_deref()),
            ("tuning", self.tuning.as_deref()),
        ]
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
