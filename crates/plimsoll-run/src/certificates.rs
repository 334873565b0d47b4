//! Where calibration certificates are kept: `$XDG_STATE_HOME/plimsoll/certificates`, one file each,
//! named by host and instant. There is no link to the latest; it is searched.

use std::path::{Path, PathBuf};

use plimsoll_model::assignment::Priority;
use plimsoll_model::bundle::write_durably;
use plimsoll_model::certificate::{
    CERTIFICATE_FORMAT, Certificate, CertificateNote, NOT_VISIBLE, ProcessorSettings,
    RunEnvironment,
};
use plimsoll_model::disclosure::Host;
use serde::Serialize;

use crate::clock::utc_stamp;

/// Keeps a certificate; returns its path, or why it could not be kept.
pub fn keep(certificate: &Certificate) -> Result<PathBuf, String> {
    let dir = directory().ok_or("neither XDG_STATE_HOME nor HOME is set")?;
    keep_in(&dir, certificate)
}

/// The latest certificate of a host for what a run speaks, or else the latest of all, for the
/// disclosure of the run, whose conditions it may not cover. One that cannot be read counts as
/// none: it must not prevent a measurement.
pub(crate) fn latest(host: &str, now: &RunEnvironment) -> Option<CertificateNote> {
    let certificate = latest_in(&directory()?, host, now.protocol.as_deref())?;
    let made = made_text(certificate.made_unix_ns);
    Some(certificate.note(made, now))
}

/// The frequency governor of a host, if it reports one.
pub fn governor(host: &Host) -> Option<String> {
    let entry = host.cpu_details.iter().find(|setting| setting.name == "governor");
    entry.map(|setting| setting.value.clone())
}

/// Other settings of a host's processors that times depend on. Vulnerabilities that it does not
/// have are left out.
pub fn processor(host: &Host) -> ProcessorSettings {
    const UNAFFECTED: &str = "Not affected";
    let always = ["deepest C-state", "turbo"].map(|name| (name.to_owned(), NOT_VISIBLE.to_owned()));
    let shown = host.cpu_details.iter().filter(|setting| {
        always.iter().any(|(name, _)| *name == setting.name)
            || setting.name.starts_with("mitigation ") && setting.value != UNAFFECTED
    });
    let shown = shown.map(|setting| (setting.name.clone(), setting.value.clone()));
    let line = host.kernel_command_line.as_deref().unwrap_or_default();
    let requested = line.split(' ').filter_map(|word| word.split_once('='));
    let requested = requested.filter(|(name, _)| *name == "mitigations");
    let requested = requested.map(|(name, value)| (name.to_owned(), value.to_owned()));
    always.iter().cloned().chain(shown).chain(requested).collect()
}

/// The name of a scheduling priority of the workers.
pub const fn priority_word(priority: Priority) -> &'static str {
    match priority {
        Priority::Auto => "auto",
        Priority::Normal => "normal",
    }
}

/// One certificate or a list of them.
pub fn json(certificates: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(certificates)
        .expect("a certificate holds only what JSON can say: finite numbers, string keys");
    text.push('\n');
    text
}

/// The name of this host.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// RFC 3339, to the second.
pub fn made_text(made_unix_ns: u64) -> String {
    match jiff::Timestamp::from_second((made_unix_ns / 1_000_000_000) as i64) {
        Ok(at) => at.to_string(),
        Err(_) => made_unix_ns.to_string(),
    }
}

/// By the XDG Base Directory Specification: a relative path counts as none.
fn directory() -> Option<PathBuf> {
    let absolute = |name: &str| {
        let path = PathBuf::from(std::env::var_os(name)?);
        path.is_absolute().then_some(path)
    };
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")));
    Some(state?.join("plimsoll").join("certificates"))
}

fn keep_in(dir: &Path, certificate: &Certificate) -> Result<PathBuf, String> {
    std::fs::create_dir_all(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let stamp = utc_stamp(certificate.made_unix_ns);
    let path = dir.join(format!("{}-{stamp}.json", file_name(&certificate.host.name)));
    write_durably(&path, json(certificate).as_bytes()).map_err(|e| e.to_string())?;
    Ok(path)
}

fn latest_in(dir: &Path, host: &str, protocol: Option<&str>) -> Option<Certificate> {
    let prefix = format!("{}-", file_name(host));
    let mut names: Vec<String> = std::fs::read_dir(dir)
        .ok()?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.starts_with(&prefix) && name.ends_with(".json"))
        .collect();
    // Stamps sort by time.
    names.sort_unstable();
    let read = |name: &String| -> Option<Certificate> {
        let text = std::fs::read(dir.join(name)).ok()?;
        serde_json::from_slice(&text).ok()
    };
    let ours = |certificate: &Certificate| {
        certificate.host.name == host && certificate.format == CERTIFICATE_FORMAT
    };
    let mut all = names.iter().rev().filter_map(read).filter(ours);
    let latest = all.next()?;
    let covers = |certificate: &Certificate| {
        let protocols = &certificate.instrument.protocols;
        protocol.is_none_or(|protocol| protocols.iter().any(|covered| covered == protocol))
    };
    if covers(&latest) { Some(latest) } else { all.find(covers).or(Some(latest)) }
}

/// The host name without characters that have a meaning in a path.
fn file_name(host: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-._".contains(c) { c } else { '_' };
    host.chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use plimsoll_model::certificate::{
        CertifiedHost, ClosedCase, Floor, Instrument, PunctualRate, StallCase,
    };

    use super::*;
    use plimsoll_model::disclosure::Setting;

    fn certificate(host: &str, made_s: u64) -> Certificate {
        Certificate {
            format: CERTIFICATE_FORMAT,
            made_unix_ns: made_s * 1_000_000_000,
            host: CertifiedHost { name: host.into(), ..CertifiedHost::default() },
            instrument: Instrument::default(),
            seed: 1,
            quick: true,
            time_share: 1.0,
            floor: Floor::default(),
            queues: Vec::new(),
            closed: ClosedCase::default(),
            stall: StallCase::default(),
            punctual: PunctualRate::default(),
            warnings: Vec::new(),
            all_held: true,
        }
    }

    #[test]
    fn the_latest_of_this_host_is_found_among_others_and_broken_ones() {
        let temp_dir = tempfile::tempdir().unwrap();
        let dir = temp_dir.path().join("state/plimsoll");
        assert_eq!(latest_in(&dir, "db", None), None);
        for (host, made_s) in [("db", 100), ("db", 300), ("db", 200), ("db-2", 900), ("x", 999)] {
            keep_in(&dir, &certificate(host, made_s)).unwrap();
        }
        std::fs::write(dir.join("db-20991231-000000.json"), "{").unwrap();
        assert_eq!(latest_in(&dir, "db", None), Some(certificate("db", 300)));
        assert_eq!(latest_in(&dir, "db-2", None), Some(certificate("db-2", 900)));
    }

    #[test]
    fn a_protocol_has_its_own_latest_certificate_even_before_those_of_others() {
        let temp_dir = tempfile::tempdir().unwrap();
        let of = |made_s, protocol: &str| {
            let mut certificate = certificate("db", made_s);
            certificate.instrument.protocols = vec!["app".into(), protocol.into()];
            keep_in(temp_dir.path(), &certificate).unwrap();
        };
        of(100, "http over HTTP/2");
        of(200, "http over HTTP/2");
        of(300, "http");
        let made = |protocol| {
            let latest = latest_in(temp_dir.path(), "db", Some(protocol)).unwrap();
            latest.made_unix_ns / 1_000_000_000
        };
        assert_eq!((made("http over HTTP/2"), made("http"), made("app")), (200, 300, 300));
        assert_eq!(made("nfs"), 300, "no certificate covers it; the disclosure says so");
    }

    #[test]
    fn settings_of_the_processors_are_taken_from_the_inventory_or_not_visible() {
        let text = |host: &Host| {
            let settings = processor(host).into_iter();
            settings.map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>()
        };
        let hidden = ["deepest C-state: not visible", "turbo: not visible"];
        assert_eq!(text(&Host::default()), hidden);
        let cpu_details = [
            ("governor", "performance"),
            ("deepest C-state", "C6 (133 µs to wake)"),
            ("turbo", "on"),
            ("mitigation mds", "Not affected"),
            ("mitigation spectre_v2", "Vulnerable"),
        ];
        let host = Host {
            cpu_details: cpu_details.map(|(name, value)| Setting::new(name, value)).into(),
            kernel_command_line: Some("quiet mitigations=off root=(left out)".into()),
            ..Host::default()
        };
        let expected = [
            "deepest C-state: C6 (133 µs to wake)",
            "mitigation spectre_v2: Vulnerable",
            "mitigations: off",
            "turbo: on",
        ];
        assert_eq!(text(&host), expected);
    }

    #[test]
    fn a_host_name_cannot_lead_out_of_the_directory() {
        let temp_dir = tempfile::tempdir().unwrap();
        let path = keep_in(temp_dir.path(), &certificate("../a b", 1)).unwrap();
        assert_eq!(path.parent(), Some(temp_dir.path()));
        assert_eq!(latest_in(temp_dir.path(), "../a b", None), Some(certificate("../a b", 1)));
    }

    #[test]
    fn a_directory_that_cannot_be_written_is_named() {
        let temp_dir = tempfile::tempdir().unwrap();
        let file = temp_dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        let why = keep_in(&file.join("below"), &certificate("db", 1)).unwrap_err();
        assert!(why.contains("file/below"), "{why}");
    }
}
