//! sar, iostat and vmstat: started together, each for one mean over the same seconds.

use std::process::{Child, Command, Stdio};

use xtask::command::shown;
use xtask::verb::Result;

const KIB: f64 = 1024.0;
const PERCENT: f64 = 0.01;
const MILLI: f64 = 1e-3;

/// Each column of a tool, ours, and the factor from its unit to ours.
type Columns = [(&'static str, &'static str, f64)];

const SAR_CPU: &Columns = &[
    ("%sys", "host.cpu_system", PERCENT),
    ("%iowait", "host.cpu_iowait", PERCENT),
    ("%soft", "host.cpu_softirq", PERCENT),
    ("%steal", "host.cpu_steal", PERCENT),
];
const SAR_DISK: &Columns = &[
    ("rkB/s", "disk.KEY.read", KIB),
    ("wkB/s", "disk.KEY.written", KIB),
    ("%util", "disk.KEY.busy", PERCENT),
];
const SAR_NETWORK: &Columns = &[
    ("rxpck/s", "network.KEY.received_packets", 1.0),
    ("txpck/s", "network.KEY.sent_packets", 1.0),
    ("rxkB/s", "network.KEY.received", KIB),
    ("txkB/s", "network.KEY.sent", KIB),
];
const IOSTAT: &Columns = &[
    ("r/s", "disk.KEY.reads", 1.0),
    ("w/s", "disk.KEY.writes", 1.0),
    ("rkB/s", "disk.KEY.read", KIB),
    ("wkB/s", "disk.KEY.written", KIB),
    ("w_await", "disk.KEY.per_write", MILLI),
    ("aqu-sz", "disk.KEY.queue_mean", 1.0),
    ("%util", "disk.KEY.busy", PERCENT),
];
const VMSTAT: &Columns = &[
    ("us", "host.cpu_user", PERCENT),
    ("wa", "host.cpu_iowait", PERCENT),
    ("st", "host.cpu_steal", PERCENT),
    ("cs", "host.context_switches", 1.0),
];

/// A tool's value of one of our figures, in our unit.
#[derive(Debug, PartialEq)]
pub struct Figure {
    pub name: String,
    pub tool: &'static str,
    pub value: f64,
    /// The last digit that it prints.
    pub step: f64,
}

/// Runs them for this many seconds.
pub fn watch(seconds: u64) -> Result<Vec<Figure>> {
    let seconds = seconds.to_string();
    let sar = start("sar", &["-u", "ALL", "-n", "DEV", "-d", "1", &seconds])?;
    let iostat = start("iostat", &["-x", "-d", "-y", &seconds, "1"])?;
    // Its first line is of the time since the start of the host.
    let vmstat = start("vmstat", &["-n", &seconds, "2"])?;
    let (sar, iostat, vmstat) = (text(sar)?, text(iostat)?, text(vmstat)?);
    let averages: Vec<&str> = sar.lines().filter_map(|l| l.strip_prefix("Average:")).collect();
    let mut figures = Vec::new();
    figures.extend(user_and_nice(&averages));
    figures.extend(rows("sar", &averages, "CPU", SAR_CPU));
    figures.extend(rows("sar", &averages, "IFACE", SAR_NETWORK));
    figures.extend(rows("sar", &averages, "DEV", SAR_DISK));
    let lines: Vec<&str> = iostat.lines().collect();
    figures.extend(rows("iostat", &lines, "Device", IOSTAT));
    let lines: Vec<&str> = vmstat.lines().collect();
    if let [_, head, _, last] = lines[..] {
        figures.extend(rows("vmstat", &[head, last], "r", VMSTAT));
    }
    Ok(figures)
}

fn start(program: &str, arguments: &[&str]) -> Result<(String, Child)> {
    let mut command = Command::new(program);
    command.args(arguments).env("LC_ALL", "C");
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let child = command.spawn().map_err(|e| {
        format!("cannot start {}: {e}; apt install sysstat procps", shown(&command))
    })?;
    Ok((shown(&command), child))
}

fn text((name, child): (String, Child)) -> Result<String> {
    let output = child.wait_with_output().map_err(|e| format!("{name}: {e}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("{name}: {}", output.status)),
    }
}

/// sar reports the two separately.
fn user_and_nice(lines: &[&str]) -> Option<Figure> {
    let both: &Columns = &[("%usr", "host.cpu_user", PERCENT), ("%nice", "host.cpu_user", PERCENT)];
    rows("sar", lines, "CPU", both).into_iter().reduce(|a, b| Figure {
        value: a.value + b.value,
        step: a.step + b.step,
        ..a
    })
}

/// The figures of the table whose head begins with this word, down to an empty line.
fn rows(tool: &'static str, lines: &[&str], head: &str, columns: &Columns) -> Vec<Figure> {
    let split_fields = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let mut tables = lines.iter().map(|line| split_fields(line));
    let Some(names) = tables.find(|fields| fields.first().is_some_and(|word| word == head)) else {
        return Vec::new();
    };
    // Heads begin differently from rows: with a word in capitals, or no rows follow.
    let rows = tables.take_while(|fields| fields.len() == names.len() && !is_head(fields));
    let mut figures = Vec::new();
    for row in rows {
        for (column, ours, unit) in columns {
            let Some(at) = names.iter().position(|name| name == column) else { continue };
            let Ok(value) = row[at].parse::<f64>() else { continue };
            let digits = row[at].split_once('.').map_or(0, |(_, digits)| digits.len());
            let step = 10_f64.powi(-(digits as i32)) * unit;
            let name = ours.replace("KEY", &row[0]);
            figures.push(Figure { name, tool, value: value * unit, step });
        }
    }
    figures
}

fn is_head(fields: &[String]) -> bool {
    fields.first().is_some_and(|word| ["CPU", "IFACE", "DEV", "Device", "r"].contains(&&**word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_read_by_the_names_of_its_head_and_in_our_unit() {
        let lines = ["  CPU  %usr", " all  1.0", " DEV tps rkB/s %util", " vda 9.00 2.00 1.20"];
        let figures = rows("sar", &lines, "DEV", SAR_DISK);
        let names: Vec<_> = figures.iter().map(|f| (f.name.as_str(), f.value)).collect();
        assert_eq!(names[0], ("disk.vda.read", 2_048.0));
        assert_eq!(names[1].0, "disk.vda.busy");
        assert!((names[1].1 - 0.012).abs() < 1e-9 && (figures[1].step - 1e-4).abs() < 1e-12);
        assert!(rows("sar", &lines, "IFACE", SAR_NETWORK).is_empty());
    }
}
