//! Values of a suite that flags set, and what flags have in common.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plimsoll_model::suite::Override;
use toml::Value;

use crate::cli::UrlArgs;
use crate::exit::Failure;

/// Holds the password of `--basic-auth`, where the flag does not.
const PASSWORD_VARIABLE: &str = "PLIMSOLL_PASSWORD";

/// Values that flags set.
pub(super) struct Set {
    values: Vec<Override>,
    /// Table with the keys of the transport.
    transport: &'static str,
}

impl Set {
    /// None yet; `transport` is the table with the keys of the transport.
    pub(super) fn new(transport: &'static str) -> Self {
        Self { values: Vec::new(), transport }
    }

    /// All of them.
    pub(super) fn into_values(self) -> Vec<Override> {
        self.values
    }

    pub(super) fn to(&mut self, path: &str, value: impl Into<Value>) {
        self.values.push(Override { path: path.to_owned(), value: value.into() });
    }

    /// The values so far.
    pub(super) fn values(&self) -> &[Override] {
        &self.values
    }

    /// The same for the value of a flag, where the flag is given.
    pub(super) fn given(&mut self, path: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.to(path, value);
        }
    }

    /// The same for a key of the transport.
    pub(super) fn of_transport(&mut self, key: &str, value: Option<impl Into<Value>>) {
        self.given(&format!("{}.{key}", self.transport), value);
    }
}

/// Header fields that the flags ask for.
pub(super) fn headers(url: &UrlArgs) -> Result<Vec<String>, Failure> {
    let mut headers = url.header.clone();
    if let Some(file) = &url.header_file {
        headers.extend(lines(file, "header fields")?.into_iter().filter(|line| !line.is_empty()));
    }
    if let Some(user) = &url.basic_auth {
        headers.push(format!("Authorization: Basic {}", STANDARD.encode(credentials(user)?)));
    }
    if !url.cookie.is_empty() {
        headers.push(format!("Cookie: {}", url.cookie.join("; ")));
    }
    Ok(headers)
}

fn credentials(user: &str) -> Result<String, Failure> {
    if user.contains(':') {
        return Ok(user.to_owned());
    }
    let password = std::env::var(PASSWORD_VARIABLE).map_err(|_| {
        Failure::wrong(format!(
            "--basic-auth {user}: no password; set the environment variable {PASSWORD_VARIABLE}, \
             or write --basic-auth {user}:PASSWORD"
        ))
    })?;
    Ok(format!("{user}:{password}"))
}

/// So that a resumed run finds it.
pub(super) fn absolute(file: &Path) -> String {
    std::path::absolute(file).unwrap_or_else(|_| file.to_owned()).display().to_string()
}

/// Lines of a file, or of standard input.
pub(super) fn lines(file: &Path, what: &str) -> Result<Vec<String>, Failure> {
    let text = match file.as_os_str() == "-" {
        true => std::io::read_to_string(std::io::stdin()),
        false => std::fs::read_to_string(file),
    };
    let text =
        text.map_err(|e| Failure::wrong(format!("{}: cannot read {what}: {e}", file.display())))?;
    Ok(text.lines().map(str::to_owned).collect())
}
