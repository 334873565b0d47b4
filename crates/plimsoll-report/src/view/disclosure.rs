//! What is needed to repeat the run, in the order of the source reports.

use plimsoll_model::certificate::CertificateNote;
use plimsoll_model::disclosure::{AgentHost, Host, KernelSetting, Setting, TargetDisclosure};
use plimsoll_model::disks::DiskSet;
use plimsoll_model::inventory::{DeclaredFacts, Inventory, ServerSoftware, SystemInventory};
use plimsoll_model::monitored::{MonitoredHost, RoleBasis, SourceRole};
use plimsoll_model::result::RunResult;
use plimsoll_model::units::{Bytes, Nanos, grouped};
use serde::Serialize;

use super::limits::THIS_HOST;

/// Named values under a heading, with a text where a file belongs to them.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Section {
    pub(crate) title: String,
    pub(crate) settings: Vec<DisclosedSetting>,
    /// Name and content of a file.
    pub(crate) file: Option<(String, String)>,
}

#[derive(Debug, Serialize)]
pub(crate) struct DisclosedSetting {
    pub(crate) name: String,
    pub(crate) value: String,
    /// The default and why it was changed.
    pub(crate) note: String,
}

pub(super) fn sections(run: &RunResult) -> Vec<Section> {
    let Some(disclosure) = &run.disclosure else { return Vec::new() };
    let generator = &disclosure.generator;
    let of_clock = |setting: &&Setting| setting.name.starts_with(CLOCK_OF);
    let (clocks, setup): (Vec<_>, Vec<_>) = disclosure.setup.iter().partition(of_clock);
    let clocks: Vec<Setting> = generator.clocks.iter().chain(clocks).cloned().collect();
    let setup: Vec<Setting> = setup.into_iter().cloned().collect();
    let mut sections = vec![section("Topology", &disclosure.topology)];
    let here = if disclosure.agent_hosts.is_empty() { "generator" } else { "coordinator" };
    sections.extend(disclosure.targets.iter().map(|it| target(it, here)));
    sections.extend(disclosure.agent_hosts.iter().flat_map(agent_host));
    sections.extend(disclosure.systems.iter().flat_map(system));
    let [host, storage, processor] = host(generator, here);
    sections.extend([host, section("Setup of the generator", &setup)]);
    sections.push(section("Clocks", &clocks));
    sections.push(section("Monitors", &monitors(run)));
    sections.extend(disclosure.certificate.as_ref().map(certificate));
    let roles = disclosure.disk_sets.iter().map(disk_set).collect::<Vec<_>>();
    sections.extend([section("Disks by role", &roles), storage, processor]);
    sections.push(section("Firmware", &generator.firmware));
    sections.extend(kernel(generator, ""));
    if generator.kernel_settings_judged.is_none() {
        sections.push(section("Kernel tuning", &generator.tuning));
    }
    sections.push(section("Limits of the process", &generator.limits));
    let tool = &disclosure.tool;
    let version = Setting::new(&tool.name, format!("{}, {} build", tool.version, tool.build));
    sections.push(section("Version", &[version]));
    sections.push(section("Statements of the user", &disclosure.statements));
    sections.extend(disclosure.stated.iter().flat_map(declared_sections));
    sections.retain(|s| !s.settings.is_empty() || s.file.is_some());
    sections
}

/// Prefix of the setup's entry for the clock of another host that a monitor read.
const CLOCK_OF: &str = "clock of ";
const NOT_DECLARED: &str = "not stated";

/// Who watched, and the most that it cost at any load point.
fn monitors(run: &RunResult) -> Vec<Setting> {
    let points = run.points.iter().filter_map(|point| point.generator.monitor_cpu_ratio);
    let Some(cost) = points.reduce(f64::max) else { return Vec::new() };
    let text = format!("{:.2} % of one core at most, over all load points", cost * 100.0);
    let what = "processors, memory, disks, networks, processes; once a second";
    let mut settings = vec![Setting::new(THIS_HOST, what)];
    let others = run.monitored_hosts.iter().filter_map(|host| Some((host.source.as_ref()?, host)));
    settings.extend(others.map(|(source, host)| Setting::new(source, role_text(host))));
    settings.push(Setting::new("cost of all monitors", text));
    settings
}

fn disk_set(set: &DiskSet) -> Setting {
    let host = set.source.as_deref().unwrap_or(THIS_HOST);
    let value = format!("{} (from {})", set.disks.join(", "), set.basis);
    Setting::new(format!("{}, {host}", set.role.as_str()), value)
}

/// `the server's host, found by its address`.
fn role_text(host: &MonitoredHost) -> String {
    let role = match host.role {
        SourceRole::Server => "the server's host",
        SourceRole::Database => "the database's host",
        SourceRole::Network => "a network device",
        SourceRole::Client => "a client, which makes load",
        SourceRole::Other => "a host whose part is not known: it is never named as a limit",
    };
    let basis = match host.basis {
        RoleBasis::Given => ", as the user says",
        RoleBasis::Address => ", found by its address",
        RoleBasis::Process => ", found by the server's processes",
        RoleBasis::Agent => ", found by an agent",
        RoleBasis::NoProcessors => ", which reports no processors",
        RoleBasis::Assumed => ", assumed: no other monitored host can be it",
        RoleBasis::Nothing => "",
    };
    format!("{role}{basis}")
}

/// Settings that differ from the kernel's defaults, then those whose default is unknown.
fn kernel(host: &Host, whose: &str) -> Vec<Section> {
    let Some(compared) = host.kernel_settings_judged else { return Vec::new() };
    let (changed, open): (Vec<_>, Vec<_>) =
        host.kernel_settings.iter().partition(|setting| setting.default.is_some());
    let mut settings: Vec<DisclosedSetting> = changed.iter().map(|s| kernel_entry(s)).collect();
    let same = u64::from(compared).saturating_sub(changed.len() as u64);
    settings.push(DisclosedSetting {
        name: "as the kernel has them".into(),
        value: format!("{same} of {compared} settings that were compared"),
        note: String::new(),
    });
    let open: Vec<DisclosedSetting> = open.iter().map(|s| kernel_entry(s)).collect();
    let titled =
        |title: &str, settings| Section { title: format!("{title}{whose}"), settings, file: None };
    vec![
        titled("Kernel settings that differ from their defaults", settings),
        titled("Kernel settings whose defaults depend on the machine", open),
    ]
}

fn kernel_entry(setting: &KernelSetting) -> DisclosedSetting {
    let KernelSetting { name, value, default, depends_on, meaning, unit } = setting;
    let value = if unit.is_empty() { value.clone() } else { format!("{value} {unit}") };
    let default = match (default, depends_on) {
        (Some(default), _) => format!("default {default}"),
        (None, Some(on)) => format!("default depends on {on}"),
        (None, None) => "default not known".to_owned(),
    };
    DisclosedSetting { name: name.clone(), value, note: format!("{default}; {meaning}") }
}

/// A host on which agents made load.
fn agent_host(of: &AgentHost) -> Vec<Section> {
    let name = of.host.name.as_deref().unwrap_or("not named");
    let whose = format!(" (agents' host {name})");
    let mut facts = vec![Setting::new("agents", of.agents.join(", "))];
    facts.extend(host_facts(&of.host));
    facts.extend(of.certificate.iter().flat_map(certified));
    let mut sections = vec![
        section(&format!("Agents' host {name}"), &facts),
        section(&format!("Disks, file systems, network{whose}"), &storage(&of.host)),
        section(&format!("Clocks{whose}"), &of.host.clocks),
    ];
    sections.extend(kernel(&of.host, &whose));
    sections
}

/// The host of an inventory that was given to the run.
fn system(given: &SystemInventory) -> Vec<Section> {
    let Inventory { tool, made, host: it, servers, not_readable, .. } = &given.inventory;
    let name = it.name.clone().unwrap_or_else(|| given.file.clone());
    let whose = format!(" ({name})");
    let of = match given.of_targets.is_empty() {
        true => "no target lies on one of its addresses".to_owned(),
        false => given.of_targets.join(", "),
    };
    let age = Nanos(given.age_s.saturating_mul(1_000_000_000));
    let mut facts = vec![
        Setting::new("inventory", format!("{} by {} {}", given.file, tool.name, tool.version)),
        Setting::new("made", format!("{made}, {age} before the run")),
        Setting::new("host of", of),
    ];
    facts.extend(host_facts(it));
    for server in servers {
        let version = server.version.as_deref().unwrap_or("version not known");
        let mut text = format!("{version}, on {}", server.listens.join(", "));
        for more in server.command_line.iter().cloned().chain(configuration_file(server)) {
            text.push_str(&format!("; {more}"));
        }
        facts.push(Setting::new(format!("server {}", server.name), text));
    }
    facts.extend(not_readable.iter().map(|what| Setting::new("not readable", what)));
    let mut sections = vec![
        section(&format!("System {name}"), &facts),
        section(&format!("Disks, file systems, network{whose}"), &storage(it)),
        section(&format!("Processor in detail{whose}"), &it.cpu_details),
        section(&format!("Firmware{whose}"), &it.firmware),
        section(&format!("Clocks{whose}"), &it.clocks),
    ];
    sections.extend(kernel(it, &whose));
    sections.extend(servers.iter().filter_map(|server| {
        let file = ("Configuration".to_owned(), server.configuration.clone()?);
        let title = format!("Server {}{whose}", server.name);
        Some(Section { file: Some(file), ..section(&title, &[]) })
    }));
    sections
}

fn configuration_file(server: &ServerSoftware) -> Option<String> {
    Some(format!("configuration file {}", server.configuration_file.as_ref()?))
}

/// Facts that only the user can state, given or not.
fn declared_sections(declared: &DeclaredFacts) -> Vec<Section> {
    let row = |(name, value): (&'static str, Option<&str>)| {
        Setting::new(name, value.unwrap_or(NOT_DECLARED))
    };
    let noted = |notes: &[String]| -> Vec<Setting> {
        notes.iter().map(|note| Setting::new("note", note)).collect()
    };
    let mut test: Vec<Setting> = declared.of_test().into_iter().map(row).collect();
    if declared.system.is_empty() {
        test.push(Setting::new("availability of hardware and software", NOT_DECLARED));
    }
    test.extend(noted(&declared.notes));
    let mut sections = vec![section("Stated of the test", &test)];
    sections.extend(declared.system.iter().map(|system| {
        let mut rows: Vec<Setting> = system.all().into_iter().map(row).collect();
        rows.extend(noted(&system.notes));
        section(&format!("Stated of {}", system.name), &rows)
    }));
    sections
}

/// One line: whether, and how well, the program was calibrated against servers of known behaviour.
fn certificate(note: &CertificateNote) -> Section {
    section("Calibration", &certified(note))
}

fn certified(note: &CertificateNote) -> Vec<Setting> {
    let CertificateNote { made, version, build, driver, workers, pacing, .. } = note;
    let judgements = if note.all_held { "all judgements hold" } else { "not all judgements hold" };
    let punctual = match note.punctual_ops_per_s {
        Some(rate) => format!("sends on time up to {} ops/s", grouped(rate)),
        None => "sends on time at no rate that was tried".to_owned(),
    };
    let workers = if *workers == 1 { "1 worker".to_owned() } else { format!("{workers} workers") };
    let text = format!(
        "{made}, version {version} ({build}): {judgements}; furthest from the server's own times {} \
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
    settings
}

/// `here` is what runs on the host of this program.
fn target(target: &TargetDisclosure, here: &str) -> Section {
    let mut settings = vec![Setting::new("address", &target.address)];
    settings.extend(target.software.as_ref().map(|s| Setting::new("software", s)));
    let location = match target.same_host {
        true => format!("same host as the {here}"),
        false => "another host".to_owned(),
    };
    settings.push(Setting::new("place", location));
    if !target.cores.is_empty() {
        let cores: Vec<_> = target.cores.iter().map(u32::to_string).collect();
        settings.push(Setting::new("held to cores", cores.join(", ")));
    }
    settings.extend(target.facts.iter().cloned());
    let file = target.configuration_file.as_ref();
    settings.extend(file.map(|file| Setting::new("configuration file", file.to_string())));
    let file = target.configuration.as_ref().map(|c| ("Configuration".to_owned(), c.clone()));
    Section { file, ..section(&format!("Target {}", target.target), &settings) }
}

fn host(host: &Host, here: &str) -> [Section; 3] {
    [
        section(&format!("Host of the {here}"), &host_facts(host)),
        section("Disks, file systems, network", &storage(host)),
        section("Processor in detail", &host.cpu_details),
    ]
}

fn host_facts(host: &Host) -> Vec<Setting> {
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
    let mut settings: Vec<Setting> = facts
        .into_iter()
        .map(|(name, value)| Setting::new(name, value.unwrap_or_else(|| "not readable".to_owned())))
        .collect();
    let line = host.kernel_command_line.as_ref();
    settings.extend(line.map(|line| Setting::new("kernel command line", line)));
    if !host.addresses.is_empty() {
        settings.push(Setting::new("addresses", host.addresses.join(", ")));
    }
    settings
}

fn storage(host: &Host) -> Vec<Setting> {
    let detailed = |first: String, details: &[Setting]| {
        let details = details.iter().map(|detail| format!("{} {}", detail.name, detail.value));
        std::iter::once(first).chain(details).collect::<Vec<_>>().join(", ")
    };
    let mut storage = Vec::new();
    for disk in &host.disks {
        let scheduler = disk.scheduler.as_deref().unwrap_or("unknown");
        let text = format!("{}, {}, scheduler {scheduler}", Bytes(disk.size_bytes), disk.kind);
        storage.push(Setting::new(format!("disk {}", disk.name), detailed(text, &disk.details)));
    }
    for fs in &host.file_systems {
        let (size, free) = (Bytes(fs.size_bytes), Bytes(fs.free_bytes));
        let text = format!("{}, {size}, {free} free, mounted {}", fs.kind, fs.options);
        let name = match fs.role.starts_with("mounted") {
            true => format!("file system {}", fs.role),
            false => format!("file system of the {}", fs.role),
        };
        storage.push(Setting::new(name, text));
    }
    for network in &host.networks {
        let mut facts = Vec::new();
        facts.extend(network.driver.clone());
        facts.extend(network.speed_mbit_per_s.map(|s| format!("{s} Mbit/s")));
        facts.extend(network.mtu_bytes.map(|m| format!("MTU {m} bytes")));
        let text = detailed(facts.join(", "), &network.details);
        storage.push(Setting::new(format!("network {}", network.name), text));
    }
    storage
}

fn section(title: &str, settings: &[Setting]) -> Section {
    let settings = settings.iter().map(entry).collect();
    Section { title: title.to_owned(), settings, file: None }
}

fn entry(setting: &Setting) -> DisclosedSetting {
    let default = setting.default.as_ref().map(|d| format!("default {d}"));
    let notes: Vec<String> = default.into_iter().chain(setting.why.clone()).collect();
    DisclosedSetting {
        name: setting.name.clone(),
        value: setting.value.clone(),
        note: notes.join("; "),
    }
}
