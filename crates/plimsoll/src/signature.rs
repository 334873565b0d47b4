//! Signatures of bundles, as minisign makes them: `manifest.json.minisig` signs the checksums of
//! all files.

use std::fs;
use std::io::Cursor;
use std::path::Path;

use base64::Engine as _;
use minisign::{PublicKey, PublicKeyBox, SecretKey, SecretKeyBox, SignatureBox};
use plimsoll_model::bundle::{MANIFEST_FILE, SIGNATURE_FILE, write_durably};
use plimsoll_run::clock::unix_ns;

use crate::exit::Failure;

/// Holds the password of a secret key; without it the user is asked on the terminal.
const PASSWORD_VARIABLE: &str = "PLIMSOLL_MINISIGN_PASSWORD";
/// Keys and signatures have some hundred bytes.
const FILE_BYTES_MAX: u64 = 64 * 1024;
const COMMENT: &str = "signature of a Plimsoll bundle";

/// The public key of an accepted signature.
pub(crate) struct Trust(PublicKey);

impl Trust {
    /// A key file of minisign, or the key itself as minisign prints it.
    pub(crate) fn read(key: &str) -> Result<Self, Failure> {
        if let Ok(key) = PublicKey::from_base64(key) {
            return Ok(Self(key));
        }
        let cannot = |what: String| {
            Failure::wrong(format!(
                "--key {key}: {what}; name the public key that `minisign -G` wrote \
                 (minisign.pub), or its line that begins with RW"
            ))
        };
        let text = text_of(Path::new(key)).map_err(cannot)?;
        PublicKeyBox::from_string(&text)
            .and_then(PublicKeyBox::into_public_key)
            .map(Self)
            .map_err(|_| cannot("is no public key of minisign".to_owned()))
    }
}

/// Checks the signature of a bundle; returns a remark about it, or what is wrong.
pub(crate) fn check(dir: &Path, trust: Option<&Trust>) -> Result<Option<String>, String> {
    let path = dir.join(SIGNATURE_FILE);
    let there = fs::symlink_metadata(&path).is_ok();
    let Some(Trust(key)) = trust else {
        let note =
            format!("{SIGNATURE_FILE} is there and was not checked; name its key with --key");
        return Ok(there.then_some(note));
    };
    if !there {
        return Err(format!("the bundle is not signed: there is no {SIGNATURE_FILE}"));
    }
    let text = text_of(&path).map_err(|what| format!("{SIGNATURE_FILE}: {what}"))?;
    let signature = SignatureBox::from_string(&text)
        .map_err(|_| format!("{SIGNATURE_FILE} is no signature of minisign"))?;
    let signed = fs::read(dir.join(MANIFEST_FILE))
        .map_err(|e| format!("{MANIFEST_FILE} was signed and cannot be read: {e}"))?;
    const QUIET: bool = true;
    const NO_OUTPUT: bool = false;
    const NO_LEGACY: bool = false;
    minisign::verify(key, &signature, Cursor::new(signed), QUIET, NO_OUTPUT, NO_LEGACY).map_err(
        |e| format!("{SIGNATURE_FILE} is not this key's signature of {MANIFEST_FILE}: {e}"),
    )?;
    // What minisign ignores must not be there either: blanks, further lines.
    if text != signature.to_string() {
        return Err(format!("{SIGNATURE_FILE} was changed after it was made"));
    }
    let comment = signature.trusted_comment().unwrap_or_default();
    let comment: String = comment.chars().filter(|c| !c.is_control() || *c == '\t').collect();
    Ok(Some(format!("signed, and the signature is good: {comment}")))
}

/// Signs the manifest of a bundle; returns the signature's path as text.
pub(crate) fn sign(dir: &Path, key_file: &Path) -> Result<String, Failure> {
    let manifest = fs::read(dir.join(MANIFEST_FILE)).map_err(|e| {
        let path = dir.join(MANIFEST_FILE);
        Failure::unusable(format!("{}: cannot read what is to be signed: {e}", path.display()))
    })?;
    let key = secret_key(key_file)?;
    let public = PublicKey::from_secret_key(&key).map_err(|e| bad_key(key_file, &e.to_string()))?;
    let seconds = unix_ns() / 1_000_000_000;
    let trusted = format!("timestamp:{seconds}\tfile:{MANIFEST_FILE}\thashed");
    let signature =
        minisign::sign(Some(&public), &key, Cursor::new(manifest), Some(&trusted), Some(COMMENT))
            .map_err(|e| bad_key(key_file, &e.to_string()))?;
    let path = dir.join(SIGNATURE_FILE);
    write_durably(&path, signature.into_string().as_bytes())?;
    Ok(format!(
        "{} signs every file; anybody checks it with: plimsoll verify {} --key {}",
        path.display(),
        dir.display(),
        public.to_base64()
    ))
}

fn secret_key(file: &Path) -> Result<SecretKey, Failure> {
    let text = text_of(file).map_err(|what| bad_key(file, &what))?;
    let read = || SecretKeyBox::from_string(&text);
    if let Some(key) = without_password(&text) {
        return Ok(key);
    }
    let password = std::env::var(PASSWORD_VARIABLE).ok();
    let given = password.is_some();
    read().and_then(|key| key.into_secret_key(password)).map_err(|e| {
        let how = match given {
            true => format!("is the password in {PASSWORD_VARIABLE} its own?"),
            false => format!("set {PASSWORD_VARIABLE} to its password"),
        };
        bad_key(file, &format!("{e}; {how}"))
    })
}

/// A key that is not encrypted. The program minisign leaves its checksum empty (`-G -W`), while the
/// crate expects one.
fn without_password(text: &str) -> Option<SecretKey> {
    const CHECKSUM_BYTES: usize = 32;
    let key = SecretKeyBox::from_string(text).ok()?;
    if let Ok(key) = key.into_unencrypted_secret_key() {
        return Some(key);
    }
    let line = text.lines().nth(1)?;
    let bytes = base64::engine::general_purpose::STANDARD.decode(line.trim()).ok()?;
    let key = SecretKey::from_bytes(&bytes).ok().filter(|key| !key.is_encrypted())?;
    bytes.ends_with(&[0; CHECKSUM_BYTES]).then_some(key)
}

fn bad_key(file: &Path, what: &str) -> Failure {
    Failure::wrong(format!(
        "--sign {}: {what}; name the secret key that `minisign -G` wrote (minisign.key)",
        file.display()
    ))
}

fn text_of(file: &Path) -> Result<String, String> {
    let metadata = fs::metadata(file).map_err(|e| format!("cannot be read: {e}"))?;
    if !metadata.is_file() || metadata.len() > FILE_BYTES_MAX {
        return Err("is too large for a key or a signature, or is no file".to_owned());
    }
    fs::read_to_string(file).map_err(|e| format!("cannot be read: {e}"))
}
