//! `plimsoll inventory`: what the disclosure says of this host.

use std::fmt::Write as _;
use std::path::Path;

use plimsoll_model::disclosure::{Host, Setting};
use plimsoll_model::units::Bytes;

use crate::cli::InventoryArgs;
use crate::exit::{Exit, Failure};
use crate::terminal;

/// Prints it.
pub(crate) fn perform(args: &InventoryArgs) -> Result<Exit, Failure> {
    let host = plimsoll_monitor::inventory(&[("here", Path::new("."))]);
    if args.json {
        let text = serde_json::to_string_pretty(&host).expect("a host is plain JSON");
        terminal::print(&text);
    } else {
        terminal::print(&text_of(&host));
    }
    Ok(Exit::Valid)
}

fn text_of(host: &Host) -> String {
    let mut out = String::new();
    let mut row = |name: &str, value: Option<String>| {
        let _ = writeln!(out, "{name:<18} {}", value.as_deref().unwrap_or("not known"));
    };
    row("system", host.os.clone());
    row("kernel", host.kernel.clone());
    row("virtualisation", host.virtualisation.clone());
    row("processor", host.cpu_model.clone());
    row("cores available", host.cpus_available.map(|n| n.to_string()));
    row("cores online", host.cpus_online.map(|n| n.to_string()));
    row("memory", host.memory_bytes.map(|n| Bytes(n).to_string()));
    row("swap", host.swap_bytes.map(|n| Bytes(n).to_string()));
    for disk in &host.disks {
        let scheduler = disk.scheduler.as_deref().unwrap_or("no scheduler");
        let size = Bytes(disk.size_bytes);
        row(&format!("disk {}", disk.name), Some(format!("{size}, {}, {scheduler}", disk.kind)));
    }
    for fs in &host.file_systems {
        let free =
            format!("{}, {} free of {}", fs.kind, Bytes(fs.free_bytes), Bytes(fs.size_bytes));
        row(&format!("file system {}", fs.role), Some(free));
    }
    for network in &host.networks {
        let speed =
            network.speed_mbit_per_s.map_or("no link speed".into(), |s| format!("{s} Mbit/s"));
        row(&format!("network {}", network.name), Some(speed));
    }
    for (title, settings) in
        [("processor", &host.cpu_details), ("tuning", &host.tuning), ("limits", &host.limits)]
    {
        push_settings(&mut out, title, settings);
    }
    out
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
