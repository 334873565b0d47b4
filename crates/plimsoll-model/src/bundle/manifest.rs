//! `manifest.json`: SHA-256 of every file, so that a later change shows.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{
    BundleError, DISCLOSURE_FILE, INTERVALS_DIR, JOURNAL_FILE, MANIFEST_FILE, MONITORS_DIR,
    PARTIAL_ENDING, PROFILE_DIR, SIGNATURE_FILE, SUITE_FILE, write_durably,
};

/// Version of the manifest's format.
pub const MANIFEST_FORMAT: u32 = 1;

const READ_BUFFER_BYTES: usize = 64 * 1024;

/// Checksums by path within the bundle, in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Version of this format.
    pub format: u32,
    /// What the run wrote; never changes.
    pub raw: BTreeMap<String, String>,
    /// What was made from it; may be deleted and made again.
    pub derived: BTreeMap<String, String>,
}

/// A difference between a manifest and the files.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum ManifestProblem {
    /// The content differs.
    #[error("{0} was changed after the run")]
    Changed(String),
    /// A raw file is gone.
    #[error("{0} is missing")]
    Missing(String),
    /// A file nobody listed.
    #[error("{0} was added after the run")]
    Added(String),
    /// A derived file is gone. It may be: it can be made again.
    #[error("{0} is missing; it is derived and can be made again")]
    Derivable(String),
    /// The list is well-formed, but was not written by this program.
    #[error(
        "{MANIFEST_FILE} was changed after the run: it is written otherwise than runs write it"
    )]
    Rewritten,
}

impl ManifestProblem {
    /// The bundle is not what the run left; a derived file that is gone leaves it whole.
    pub const fn is_damage(&self) -> bool {
        !matches!(self, Self::Derivable(_))
    }
}

impl Manifest {
    /// Takes the checksum of every file of a bundle.
    pub fn from_bundle(bundle: &Path) -> Result<Self, BundleError> {
        let mut manifest =
            Self { format: MANIFEST_FORMAT, raw: BTreeMap::new(), derived: BTreeMap::new() };
        for name in files_below(bundle, "")?.into_iter().filter(|name| !is_leftover(name)) {
            let sum = checksum(&bundle.join(&name))?;
            manifest.list_of(&name).insert(name, sum);
        }
        Ok(manifest)
    }

    fn list_of(&mut self, name: &str) -> &mut BTreeMap<String, String> {
        if is_raw(name) { &mut self.raw } else { &mut self.derived }
    }

    fn text(&self) -> Vec<u8> {
        let mut text = serde_json::to_vec_pretty(self).expect("strings and maps are JSON");
        text.push(b'\n');
        text
    }

    /// Writes it into the bundle.
    pub fn write(&self, bundle: &Path) -> Result<(), BundleError> {
        write_durably(&bundle.join(MANIFEST_FILE), &self.text())
    }

    /// Takes the checksums of these derived files again and writes the manifest. Those of raw
    /// files stay as the run left them, so a change of theirs still shows. A bundle without a
    /// manifest stays without: only a run may vouch for its raw files. One that is signed stays as
    /// it was signed.
    pub fn refresh_derived(bundle: &Path, names: &[&str]) -> Result<(), BundleError> {
        if bundle.join(SIGNATURE_FILE).exists() {
            return Ok(());
        }
        let Some(mut manifest) = Self::read(bundle)? else { return Ok(()) };
        for name in names.iter().filter(|name| !is_raw(name)) {
            manifest.derived.insert((*name).to_owned(), checksum(&bundle.join(name))?);
        }
        manifest.write(bundle)
    }

    /// Reads a bundle's manifest; `None` when it has none yet.
    pub fn read(bundle: &Path) -> Result<Option<Self>, BundleError> {
        let path = bundle.join(MANIFEST_FILE);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(BundleError::storage(&path, "read it", e)),
        };
        let manifest: Self = serde_json::from_slice(&bytes).map_err(|e| {
            BundleError::Malformed { path: path.clone(), line: e.line(), message: e.to_string() }
        })?;
        if manifest.format != MANIFEST_FORMAT {
            let format = manifest.format;
            return Err(BundleError::Format { path, format, supported: MANIFEST_FORMAT });
        }
        Ok(Some(manifest))
    }

    /// Compares with the files as they are now, each once.
    pub fn problems(&self, bundle: &Path) -> Result<Vec<ManifestProblem>, BundleError> {
        let listed = || self.raw.iter().chain(&self.derived);
        let there = files_below(bundle, "")?;
        let mut problems = Vec::new();
        for (name, sum) in listed() {
            match (there.contains(name), is_raw(name)) {
                (false, true) => problems.push(ManifestProblem::Missing(name.clone())),
                (false, false) => problems.push(ManifestProblem::Derivable(name.clone())),
                (true, _) if checksum(&bundle.join(name))? != *sum => {
                    problems.push(ManifestProblem::Changed(name.clone()));
                }
                (true, _) => {}
            }
        }
        let is_listed = |name: &str| listed().any(|(entry, _)| entry == name);
        let added = there.into_iter().filter(|name| !is_listed(name));
        problems.extend(added.map(ManifestProblem::Added));
        let written = fs::read(bundle.join(MANIFEST_FILE));
        if written.is_ok_and(|bytes| bytes != self.text()) {
            problems.push(ManifestProblem::Rewritten);
        }
        problems.sort();
        Ok(problems)
    }
}

fn is_raw(name: &str) -> bool {
    matches!(name, SUITE_FILE | DISCLOSURE_FILE | JOURNAL_FILE)
        || [INTERVALS_DIR, MONITORS_DIR, PROFILE_DIR]
            .iter()
            .any(|dir| name.strip_prefix(dir).is_some_and(|rest| rest.starts_with('/')))
}

/// Half a file, of a crash.
fn is_leftover(name: &str) -> bool {
    name.ends_with(&format!(".{PARTIAL_ENDING}"))
}

/// Everything below `bundle/prefix` that is no directory, by path within the bundle; not the
/// manifest and its signature.
fn files_below(bundle: &Path, prefix: &str) -> Result<Vec<String>, BundleError> {
    let dir = bundle.join(prefix);
    let listing = |e| BundleError::storage(&dir, "list it", e);
    let mut names = Vec::new();
    for entry in fs::read_dir(&dir).map_err(listing)? {
        let entry = entry.map_err(listing)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
        if entry.file_type().map_err(listing)?.is_dir() {
            names.extend(files_below(bundle, &path)?);
        } else if path != MANIFEST_FILE && path != SIGNATURE_FILE {
            names.push(path);
        }
    }
    Ok(names)
}

/// Checksum of a file's bytes; `None` for anything but a regular file: a link leads elsewhere, a
/// pipe would block.
fn checksum(path: &Path) -> Result<String, BundleError> {
    let reading = |e| BundleError::storage(path, "read it", e);
    if !fs::symlink_metadata(path).map_err(reading)?.is_file() {
        return Ok("not a file".to_owned());
    }
    sha256_of(&mut File::open(path).map_err(reading)?).map_err(reading)
}

/// SHA-256 of what is left to read, in hexadecimal digits.
pub fn sha256_of(content: &mut impl Read) -> io::Result<String> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; READ_BUFFER_BYTES];
    loop {
        let n = content.read(&mut buffer)?;
        if n == 0 {
            break;
        }
        hasher.update(&buffer[..n]);
    }
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}
