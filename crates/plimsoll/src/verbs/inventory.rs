//! `plimsoll inventory`: what the disclosure contains about this host.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use plimsoll_model::disclosure::{Disk, Host, KernelSetting, Network, Setting};
use plimsoll_model::inventory::Inventory;
use plimsoll_model::units::Bytes;
use plimsoll_monitor::Root;
use plimsoll_run::host_inventory;

use crate::exit::{Exit, Failure};
use crate::terminal;

#[derive(Debug, Args)]
pub(crate) struct InventoryArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

pub(crate) fn perform(args: &InventoryArgs) -> Result<Exit, Failure> {
    let mounted: Vec<(String, PathBuf)> = plimsoll_monitor::mounted(&Root::default())
        .into_iter()
        .map(|mount_point| (format!("mounted on {}", mount_point.display()), mount_point))
        .collect();
    let paths: Vec<_> =
        mounted.iter().map(|(role, mount_point)| (role.as_str(), mount_point.as_path())).collect();
    let inventory = host_inventory::of_this_host(&paths);
    if args.json {
        let text = serde_json::to_string_pretty(&inventory).expect("an inventory is plain JSON");
        terminal::print(&text);
    } else {
        terminal::print(&text_of(&inventory));
    }
    Ok(Exit::Valid)
}

fn text_of(inventory: &Inventory) -> String {
    let host = &inventory.host;
    let mut out = String::new();
    push_host(&mut out, host);
    push_settings(&mut out, "firmware", &host.firmware);
    push_settings(&mut out, "processor", &host.cpu_details);
    push_settings(&mut out, "clocks", &host.clocks);
    push_settings(&mut out, "limits", &host.limits);
    push_kernel(&mut out, host);
    if !inventory.servers.is_empty() {
        out.push_str("\nservers that listen:\n");
    }
    for server in &inventory.servers {
        let version = server.version.as_deref().unwrap_or("version not known");
        let _ = writeln!(out, "  {} ({version}) on {}", server.name, server.listens.join(", "));
        if let Some(line) = &server.command_line {
            let _ = writeln!(out, "    {line}");
        }
        if let Some(file) = &server.configuration_file {
            let _ = writeln!(out, "    configuration file {file}");
        }
    }
    if !inventory.not_readable.is_empty() {
        out.push_str("\nnot readable:\n");
    }
    for what in &inventory.not_readable {
        let _ = writeln!(out, "  {what}");
    }
    out
}

fn push_host(out: &mut String, host: &Host) {
    let mut row = |name: &str, value: Option<String>| {
        let _ = writeln!(out, "{name:<18} {}", value.as_deref().unwrap_or("not known"));
    };
    let addresses = (!host.addresses.is_empty()).then(|| host.addresses.join(", "));
    row("host", host.name.clone());
    row("addresses", addresses);
    row("system", host.os.clone());
    row("kernel", host.kernel.clone());
    row("command line", host.kernel_command_line.clone());
    row("virtualisation", host.virtualisation.clone());
    row("processor", host.cpu_model.clone());
    row("cores available", host.cpus_available.map(|n| n.to_string()));
    row("cores online", host.cpus_online.map(|n| n.to_string()));
    row("memory", host.memory_bytes.map(|n| Bytes(n).to_string()));
    row("swap", host.swap_bytes.map(|n| Bytes(n).to_string()));
    for disk in &host.disks {
        row(&format!("disk {}", disk.name), Some(disk_text(disk)));
    }
    for fs in &host.file_systems {
        let (size, free) = (Bytes(fs.size_bytes), Bytes(fs.free_bytes));
        let text = format!("{}, {free} free of {size}, {}", fs.kind, fs.options);
        row("file system", Some(format!("{}: {text}", fs.role)));
    }
    for network in &host.networks {
        row(&format!("network {}", network.name), Some(network_text(network)));
    }
}

fn disk_text(disk: &Disk) -> String {
    let scheduler = disk.scheduler.as_deref().unwrap_or("no scheduler");
    let first = format!("{}, {}, {scheduler}", Bytes(disk.size_bytes), disk.kind);
    with_details(first, &disk.details)
}

fn network_text(network: &Network) -> String {
    let speed = network.speed_mbit_per_s.map_or("no link speed".into(), |s| format!("{s} Mbit/s"));
    let driver = network.driver.as_deref().unwrap_or("driver not known");
    with_details(format!("{driver}, {speed}"), &network.details)
}

fn with_details(first: String, details: &[Setting]) -> String {
    let details = details.iter().map(|detail| format!("{} {}", detail.name, detail.value));
    std::iter::once(first).chain(details).collect::<Vec<_>>().join(", ")
}

/// Settings that differ, with their defaults and meanings, then those without a fixed default.
fn push_kernel(out: &mut String, host: &Host) {
    let evaluated = host.kernel_settings_judged.unwrap_or(0);
    let (changed, open): (Vec<_>, Vec<_>) =
        host.kernel_settings.iter().partition(|setting| setting.default.is_some());
    let _ = writeln!(
        out,
        "\nkernel settings: {} of {evaluated} differ from the kernel's defaults",
        changed.len()
    );
    for setting in changed {
        let KernelSetting { name, value, default, meaning, unit, .. } = setting;
        let default = default.as_deref().unwrap_or_default();
        let _ = writeln!(out, "  {name} = {value}, by default {default}{}", spaced(unit));
        let _ = writeln!(out, "    {meaning}");
    }
    if !open.is_empty() {
        out.push_str("\nkernel settings whose default depends on the machine:\n");
    }
    for setting in open {
        let KernelSetting { name, value, depends_on, unit, .. } = setting;
        let on = depends_on.as_deref().unwrap_or_default();
        let _ = writeln!(out, "  {name} = {value}{} (depends on {on})", spaced(unit));
    }
}

fn spaced(unit: &str) -> String {
    if unit.is_empty() { String::new() } else { format!(" {unit}") }
}

fn push_settings(out: &mut String, title: &str, settings: &[Setting]) {
    if settings.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{title}:");
    for setting in settings {
        let _ = writeln!(out, "  {} = {}", setting.name, setting.value);
    }
}
