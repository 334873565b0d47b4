//! The files of `--system`: inventories of other hosts (JSON), and facts that can only be declared
//! (TOML). Distinguished by content, not by name: an inventory is a JSON object.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::civil::Date;
use plimsoll_model::disclosure::{Host, TargetDisclosure};
use plimsoll_model::inventory::{
    DeclaredFacts, DeclaredSystem, INVENTORY_FORMAT, INVENTORY_KIND, Inventory, SystemInventory,
};
use plimsoll_monitor::{Community, MonitorUrl};
use serde_json::Value;

use crate::clock::unix_ns;
use crate::failure::Failure;
use crate::text_file;

/// Larger files are neither kind.
const FILE_BYTES_MAX: u64 = 4 << 20;
/// Longest text about a system.
const STATEMENT_BYTES_MAX: usize = 2_000;
const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Contents of the files of `--system`.
#[derive(Clone, Debug, Default)]
pub struct Systems {
    /// Inventories, in the order they were given.
    pub(crate) inventories: Vec<SystemInventory>,
    /// Declared facts, from the only file that may hold them.
    pub(crate) declared: DeclaredFacts,
}

/// Reads every file, so that a wrong one is reported before anything is started.
/// Those of a testbed come from there.
pub fn read(
    files: &[PathBuf],
    testbed: Option<(&Path, &DeclaredFacts)>,
) -> Result<Systems, Failure> {
    let declared = testbed.map(|(_, facts)| facts.clone()).unwrap_or_default();
    let mut systems = Systems { declared, ..Systems::default() };
    let mut declared_in = testbed.map(|(path, _)| path);
    for path in files {
        let file = FileArgument { flag: "--system", path };
        let text = text_of(file)?;
        if text.trim_start().starts_with('{') {
            let read = inventory(file, &text)?;
            let same =
                |earlier: &SystemInventory| earlier.inventory.host.name == read.inventory.host.name;
            if let Some(earlier) = systems.inventories.iter().find(|earlier| same(earlier)) {
                let what = "is of the same host as";
                return Err(wrong(file, format!("{what} {}; leave one out", earlier.file)));
            }
            systems.inventories.push(read);
        } else {
            if let Some(first) = declared_in.replace(path) {
                let first = first.display();
                let what = format!("{first} has statements already; write them into one file");
                return Err(wrong(file, what));
            }
            systems.declared = read_declared(file, &text)?;
        }
    }
    Ok(systems)
}

/// The declared facts of the file of this flag.
pub(crate) fn declared(flag: &'static str, path: &Path) -> Result<DeclaredFacts, Failure> {
    let file = FileArgument { flag, path };
    read_declared(file, &text_of(file)?)
}

/// A file with the flag that names it.
#[derive(Clone, Copy)]
struct FileArgument<'a> {
    flag: &'static str,
    path: &'a Path,
}

fn wrong(FileArgument { flag, path }: FileArgument<'_>, what: impl std::fmt::Display) -> Failure {
    Failure::wrong(format!("{flag} {}: {what}", path.display()))
}

const EITHER: &str = "give the file that `plimsoll inventory --json` prints on the server, or a \
    system.toml (docs/disclosure.md)";

fn text_of(file: FileArgument<'_>) -> Result<String, Failure> {
    let cannot = |e: std::io::Error| wrong(file, format!("cannot read it: {e}; {EITHER}"));
    let metadata = std::fs::metadata(file.path).map_err(cannot)?;
    if !metadata.is_file() || metadata.len() > FILE_BYTES_MAX {
        return Err(wrong(file, format!("is no file of that kind; {EITHER}")));
    }
    text_file::read(file.path).map_err(cannot)
}

fn inventory(file: FileArgument<'_>, text: &str) -> Result<SystemInventory, Failure> {
    let value: Value = serde_json::from_str(text)
        .map_err(|e| wrong(file, format!("is not JSON ({e}); {EITHER}")))?;
    let kind = value.get("kind").and_then(Value::as_str);
    if kind != Some(INVENTORY_KIND) {
        return Err(wrong(file, format!("is JSON, but no inventory of a host; {EITHER}")));
    }
    let format = value.get("format").and_then(Value::as_u64);
    if format != Some(u64::from(INVENTORY_FORMAT)) {
        let actual = format.map_or("none".to_owned(), |format| format.to_string());
        return Err(wrong(
            file,
            format!(
                "is an inventory of format {actual}, this program reads {INVENTORY_FORMAT}; make it \
                 again with the version of plimsoll that runs here"
            ),
        ));
    }
    let inventory: Inventory = serde_json::from_value(value).map_err(|e| {
        wrong(file, format!("cannot be read as an inventory ({e}); make it again on the server"))
    })?;
    let made: Timestamp = inventory.made.parse().map_err(|_| {
        wrong(file, "says no instant at which it was made; make it again on the server")
    })?;
    let now = (unix_ns() / NANOS_PER_SECOND) as i64;
    let age_s = u64::try_from(now.saturating_sub(made.as_second())).unwrap_or(0);
    let file = file.path.display().to_string();
    Ok(SystemInventory { file, age_s, of_targets: Vec::new(), inventory })
}

fn read_declared(file: FileArgument<'_>, text: &str) -> Result<DeclaredFacts, Failure> {
    let declared: DeclaredFacts = toml::from_str(text).map_err(|e| {
        let message = e.to_string();
        wrong(file, format!("{}\n{EITHER}", message.trim_end()))
    })?;
    for system in &declared.system {
        if system.name.trim().is_empty() {
            return Err(wrong(file, "a [[system]] has no name; write name = \"server\""));
        }
        monitor_url(system).map_err(|e| wrong(file, format!("[[system]] {}: {e}", system.name)))?;
        for date in [&system.hardware_available, &system.software_available] {
            if let Some(date) = date.as_deref().filter(|date| !is_date(date)) {
                let what =
                    format!("{date:?} is no date of availability; write 2026-11 or 2026-11-30");
                return Err(wrong(file, what));
            }
        }
    }
    if let Some(price) = declared.price.as_deref().filter(|price| !is_price(price)) {
        let what = format!("{price:?} is no price; write its currency first: \"EUR 12345.00\"");
        return Err(wrong(file, what));
    }
    if let Some(prices) = &declared.price_file {
        let path = file.path.parent().unwrap_or(Path::new("")).join(prices);
        if !path.is_file() {
            let what = format!("price_file {} is not there", path.display());
            return Err(wrong(file, format!("{what}; name it from where this file lies")));
        }
    }
    let shown = serde_json::to_string(&declared).unwrap_or_default();
    if shown.len() > STATEMENT_BYTES_MAX * (10 + declared.system.len() * 10) {
        return Err(wrong(file, "is longer than anybody will read; shorten its notes"));
    }
    Ok(declared)
}

/// How a declared system is monitored. Bundles keep the facts, so no secret may be in them.
pub(crate) fn monitor_url(system: &DeclaredSystem) -> Result<Option<MonitorUrl>, String> {
    let Some(text) = &system.monitor else { return Ok(None) };
    match MonitorUrl::parse(text).map_err(|e| e.to_string())? {
        MonitorUrl::Local => Err("this host is always monitored; leave its monitor out".to_owned()),
        MonitorUrl::Snmp { community: Community::Given(_), host, .. } => {
            Err(format!("a community is a secret; write monitor = \"snmp://env:VARIABLE@{host}\""))
        }
        url => Ok(Some(url)),
    }
}

/// `2026-11` or `2026-11-30`.
fn is_date(text: &str) -> bool {
    let whole = if text.len() == "2026-11".len() { format!("{text}-01") } else { text.to_owned() };
    whole.len() == "2026-11-30".len() && whole.parse::<Date>().is_ok()
}

/// An ISO 4217 code, a blank, a number.
fn is_price(text: &str) -> bool {
    let Some((currency, amount)) = text.split_once(' ') else { return false };
    let code = currency.len() == 3 && currency.bytes().all(|b| b.is_ascii_uppercase());
    let plain = amount.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    code && plain && amount.parse::<f64>().is_ok()
}

impl Systems {
    /// The inventories, each with the targets on its host: at one of its addresses, or on loopback
    /// for the generator's own host.
    pub(crate) fn with_targets(
        &self,
        generator: &Host,
        targets: &[TargetDisclosure],
    ) -> Vec<SystemInventory> {
        let of = |given: &SystemInventory| {
            let host = &given.inventory.host;
            let own = host.name.is_some() && host.name == generator.name;
            let lies_there = |target: &&TargetDisclosure| {
                let has_address = |ip: IpAddr| host.addresses.contains(&ip.to_string());
                (own && target.same_host) || address_of(target).is_some_and(has_address)
            };
            let of_targets = targets.iter().filter(lies_there).map(|t| t.target.clone()).collect();
            SystemInventory { of_targets, ..given.clone() }
        };
        self.inventories.iter().map(of).collect()
    }
}

fn address_of(target: &TargetDisclosure) -> Option<IpAddr> {
    let address: std::net::SocketAddr = target.address.parse().ok()?;
    Some(address.ip().to_canonical())
}

/// What the disclosure says about unverified inventories.
pub(crate) fn not_verified(inventories: &[SystemInventory]) -> Vec<String> {
    let of = |given: &SystemInventory| {
        let age = age_text(given.age_s);
        let file = &given.file;
        match given.of_targets.is_empty() {
            false => format!("{file} was made {age} before the run: what has changed since"),
            true => format!(
                "{file}: whether it is of a host of this run; no target lies on one of \
                             its addresses"
            ),
        }
    };
    inventories.iter().map(of).collect()
}

/// `3 days`, `2 hours`, `40 s`.
pub(crate) fn age_text(age_s: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(86_400, "days"), (3_600, "hours"), (60, "minutes")];
    let unit = UNITS.iter().find(|(length, _)| age_s >= 2 * length);
    unit.map_or(format!("{age_s} s"), |(length, name)| format!("{} {name}", age_s / length))
}

#[cfg(test)]
mod tests;
