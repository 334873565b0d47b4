//! What is needed to repeat the run, in the order of the source reports.

use plimsoll_model::certificate::CertificateNote;
use plimsoll_model::disclosure::{Disclosure, Host, Setting, TargetDisclosure};
use plimsoll_model::units::{Bytes, Nanos, grouped};
use serde::Serialize;

/// Named values under a heading, with a text where a file belongs to them.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Section {
    pub(crate) title: String,
    pub(crate) settings: Vec<Entry>,
    /// Name and content of a file.
    pub(crate) file: Option<(String, String)>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) value: String,
    /// The default and why it was changed.
    pub(crate) note: String,
}

pub(super) fn sections(disclosure: &Disclosure) -> Vec<Section> {
    let mut sections: Vec<Section> = disclosure.targets.iter().map(target).collect();
    let [host, storage, processor] = host(&disclosure.generator);
    sections.extend([host, section("Setup of the generator", &disclosure.setup)]);
    sections.extend(disclosure.certificate.as_ref().map(certificate));
    sections.extend([storage, processor]);
    sections.push(section("Kernel tuning", &disclosure.generator.tuning));
    sections.push(section("Limits of the process", &disclosure.generator.limits));
    let tool = &disclosure.tool;
    let version = Setting::new(&tool.name, format!("{}, {} build", tool.version, tool.build));
    sections.push(section("Version", &[version]));
    sections.push(section("Statements of the user", &disclosure.statements));
    sections.retain(|s| !s.settings.is_empty() || s.file.is_some());
    sections
}

/// One line: whether, and how far, the instrument was held against servers of known behaviour.
fn certificate(note: &CertificateNote) -> Section {
    let CertificateNote { made, version, build, driver, workers, pacing, .. } = note;
    let held = if note.all_held { "all judgements hold" } else { "not all judgements hold" };
    let punctual = match note.punctual_ops_per_s {
        Some(rate) => format!("sends on time up to {} ops/s", grouped(rate)),
        None => "sends on time at no rate that was tried".to_owned(),
    };
    let workers = if *workers == 1 { "1 worker".to_owned() } else { format!("{workers} workers") };
    let text = format!(
        "{made}, version {version} ({build}): {held}; furthest from the server's own times {} \
         ({:.0} % of what is allowed), {}; {punctual}; {driver}, {workers}, pacing {pacing}",
        Nanos(note.worst_tight_ns),
        note.worst_tight_ratio * 100.0,
        note.worst_tight_at
    );
    let mut settings = vec![Setting::new("latest certificate of the host", text)];
    if !note.not_covered.is_empty() {
        let what = note.not_covered.join("; ");
        settings.push(Setting::new("not covered by it in this run", what));
    }
    section("Calibration", &settings)
}

fn target(target: &TargetDisclosure) -> Section {
    let mut settings = vec![Setting::new("address", &target.address)];
    settings.extend(target.software.as_ref().map(|s| Setting::new("software", s)));
    let place = if target.same_host { "same host as the generator" } else { "another host" };
    settings.push(Setting::new("place", place));
    if !target.cores.is_empty() {
        let cores: Vec<_> = target.cores.iter().map(u32::to_string).collect();
        settings.push(Setting::new("held to cores", cores.join(", ")));
    }
    settings.extend(target.facts.iter().cloned());
    let file = target.configuration.as_ref().map(|c| ("Configuration".to_owned(), c.clone()));
    Section { file, ..section(&format!("Target {}", target.target), &settings) }
}

fn host(host: &Host) -> [Section; 3] {
    let cpus = |n: u32| n.to_string();
    let bytes = |b: u64| Bytes(b).to_string();
    let facts = [
        ("operating system", host.os.clone()),
        ("kernel", host.kernel.clone()),
        ("virtualisation", host.virtualisation.clone()),
        ("processor", host.cpu_model.clone()),
        ("processors online", host.cpus_online.map(cpus)),
        ("processors available", host.cpus_available.map(cpus)),
        ("memory", host.memory_bytes.map(bytes)),
        ("swap", host.swap_bytes.map(bytes)),
    ];
    let settings: Vec<Setting> = facts
        .into_iter()
        .map(|(name, value)| Setting::new(name, value.unwrap_or_else(|| "not readable".to_owned())))
        .collect();
    let mut storage = Vec::new();
    for disk in &host.disks {
        let scheduler = disk.scheduler.as_deref().unwrap_or("unknown");
        let text = format!("{}, {}, scheduler {scheduler}", Bytes(disk.size_bytes), disk.kind);
        storage.push(Setting::new(format!("disk {}", disk.name), text));
    }
    for fs in &host.file_systems {
        let (size, free) = (Bytes(fs.size_bytes), Bytes(fs.free_bytes));
        let text = format!("{}, {size}, {free} free, mounted {}", fs.kind, fs.options);
        storage.push(Setting::new(format!("file system of the {}", fs.role), text));
    }
    for network in &host.networks {
        let mut facts = Vec::new();
        facts.extend(network.driver.clone());
        facts.extend(network.speed_mbit_per_s.map(|s| format!("{s} Mbit/s")));
        facts.extend(network.mtu_bytes.map(|m| format!("MTU {m} bytes")));
        storage.push(Setting::new(format!("network {}", network.name), facts.join(", ")));
    }
    [
        section("Host of the generator", &settings),
        section("Disks, file systems, network", &storage),
        section("Processor in detail", &host.cpu_details),
    ]
}

fn section(title: &str, settings: &[Setting]) -> Section {
    let settings = settings.iter().map(entry).collect();
    Section { title: title.to_owned(), settings, file: None }
}

fn entry(setting: &Setting) -> Entry {
    let default = setting.default.as_ref().map(|d| format!("default {d}"));
    let notes: Vec<String> = default.into_iter().chain(setting.why.clone()).collect();
    Entry { name: setting.name.clone(), value: setting.value.clone(), note: notes.join("; ") }
}
