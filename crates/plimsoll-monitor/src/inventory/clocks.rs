//! What time is read from, and what keeps it right.

use plimsoll_model::disclosure::Setting;

use crate::root::Root;

const CLOCKSOURCE: &str = "sys/devices/system/clocksource/clocksource0";
/// Programs that keep a clock right, by the names of their processes.
const KEEPERS: [&str; 6] = ["chronyd", "ntpd", "systemd-timesyn", "openntpd", "ptp4l", "phc2sys"];

pub(super) fn clocks(root: &Root) -> Vec<Setting> {
    let mut found = Vec::new();
    let mut add = |name: &str, value: Option<String>| {
        found.extend(value.map(|value| Setting::new(name, value)));
    };
    add("clock source", root.line(format!("{CLOCKSOURCE}/current_clocksource")));
    add("clock sources there are", root.line(format!("{CLOCKSOURCE}/available_clocksource")));
    let devices = root.names("sys/class/ptp");
    let device = |name: &String| root.line(format!("sys/class/ptp/{name}/clock_name"));
    let devices: Vec<String> = devices.iter().filter_map(device).collect();
    add("hardware clocks", (!devices.is_empty()).then(|| devices.join(", ")));
    let kept = root.has("run/systemd/timesync/synchronized");
    add("set by systemd-timesyncd", kept.then(|| "yes, since it was started".to_owned()));
    let keepers = keepers(root);
    add("kept by", (!keepers.is_empty()).then(|| keepers.join(", ")));
    found
}

fn keepers(root: &Root) -> Vec<String> {
    let is_process = |name: &String| name.bytes().all(|b| b.is_ascii_digit());
    let processes = root.names("proc").into_iter().filter(is_process);
    let mut names: Vec<String> = processes
        .filter_map(|pid| root.line(format!("proc/{pid}/comm")))
        .filter(|name| KEEPERS.contains(&name.as_str()))
        .collect();
    names.sort();
    names.dedup();
    names
}
