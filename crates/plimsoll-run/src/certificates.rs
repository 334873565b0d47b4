//! Where calibration certificates are kept: `$XDG_STATE_HOME/plimsoll/certificates`, one file each,
//! named by host and instant. There is no link to the latest; it is searched.

use std::path::{Path, PathBuf};

use plimsoll_model::assignment::Priority;
use plimsoll_model::bundle::write_durably;
use plimsoll_model::certificate::{
    CERTIFICATE_FORMAT, Certificate, CertificateNote, RunEnvironment,
};
use plimsoll_model::disclosure::Host;
use serde::Serialize;

use crate::clock::utc_stamp;

/// Keeps a certificate; returns its path, or why it could not be kept.
pub fn keep(certificate: &Certificate) -> Result<PathBuf, String> {
    let dir = directory().ok_or("neither XDG_STATE_HOME nor HOME is set")?;
    keep_in(&dir, certificate)
}

/// The latest certificate of a host, for the disclosure of a run whose conditions it may not cover.
/// One that cannot be read counts as none: it must not prevent a measurement.
pub(crate) fn latest(host: &str, now: &RunEnvironment) -> Option<CertificateNote> {
    let certificate = latest_in(&directory()?, host)?;
    let made = made_text(certificate.made_unix_ns);
    Some(certificate.note(made, now))
}

/// The frequency governor of a host, if it reports one.
pub fn governor(host: &Host) -> Option<String> {
    let entry = host.cpu_details.iter().find(|setting| setting.name == "governor");
    entry.map(|setting| setting.value.clone())
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

fn latest_in(dir: &Path, host: &str) -> Option<Certificate> {
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
    names.iter().rev().filter_map(read).find(ours)
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
        assert_eq!(latest_in(&dir, "db"), None);
        for (host, made_s) in [("db", 100), ("db", 300), ("db", 200), ("db-2", 900), ("x", 999)] {
            keep_in(&dir, &certificate(host, made_s)).unwrap();
        }
        std::fs::write(dir.join("db-20991231-000000.json"), "{").unwrap();
        assert_eq!(latest_in(&dir, "db"), Some(certificate("db", 300)));
        assert_eq!(latest_in(&dir, "db-2"), Some(certificate("db-2", 900)));
    }

    #[test]
    fn a_host_name_cannot_lead_out_of_the_directory() {
        let temp_dir = tempfile::tempdir().unwrap();
        let path = keep_in(temp_dir.path(), &certificate("../a b", 1)).unwrap();
        assert_eq!(path.parent(), Some(temp_dir.path()));
        assert_eq!(latest_in(temp_dir.path(), "../a b"), Some(certificate("../a b", 1)));
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
