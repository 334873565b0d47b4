//! `--agents FILE.toml`: more of each agent than fits a word. The file may be that of a testbed.

use std::io;
use std::net::IpAddr;
use std::path::Path;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{RequestedAgents, Settings, SpecError, TargetChoice, add};

/// A file larger than this is another one.
const FILE_BYTES_MAX: usize = 1024 * 1024;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AgentsFile {
    #[serde(default)]
    agent: Vec<AgentTable>,
    // The rest of a testbed has a reader of its own.
    #[serde(default, rename = "system")]
    _systems: IgnoredAny,
    #[serde(default, rename = "sponsor")]
    _sponsor: IgnoredAny,
    #[serde(default, rename = "tester")]
    _tester: IgnoredAny,
    #[serde(default, rename = "place")]
    _location: IgnoredAny,
    #[serde(default, rename = "price")]
    _price: IgnoredAny,
    #[serde(default, rename = "price_file")]
    _price_file: IgnoredAny,
    #[serde(default, rename = "notes")]
    _notes: IgnoredAny,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AgentTable {
    at: String,
    program: Option<String>,
    #[serde(default)]
    options: Vec<String>,
    #[serde(default)]
    cores: Vec<u32>,
    workers: Option<u32>,
    #[serde(default)]
    sources: Vec<IpAddr>,
    #[serde(default)]
    targets: Vec<toml::Value>,
    /// For the drawing of a testbed.
    #[serde(default, rename = "segment")]
    _segment: Option<String>,
}

/// Adds the agents of a file.
pub(super) fn read(
    path: &Path,
    read_file: &dyn Fn(&Path) -> io::Result<String>,
    requested: &mut RequestedAgents,
) -> Result<(), SpecError> {
    let text = read_file(path)
        .map_err(|source| SpecError::Unreadable { path: path.to_owned(), source })?;
    let wrong = |what: String| SpecError::File { path: path.to_owned(), what };
    if text.len() > FILE_BYTES_MAX {
        return Err(wrong(format!("it is larger than {FILE_BYTES_MAX} bytes")));
    }
    let file: AgentsFile =
        toml::from_str(&text).map_err(|e| wrong(e.to_string().trim_end().to_owned()))?;
    if file.agent.is_empty() {
        return Err(wrong("it has no agent; write [[agent]] and at = \"ssh://host\"".to_owned()));
    }
    for (number, table) in (1..).zip(file.agent) {
        let at = table.at.clone();
        let settings = settings(table).map_err(|what| wrong(format!("agent {number}: {what}")))?;
        add(&at, &settings, requested).map_err(|source| SpecError::InFile {
            path: path.to_owned(),
            number,
            source: Box::new(source),
        })?;
    }
    Ok(())
}

fn settings(table: AgentTable) -> Result<Settings, String> {
    if let Some(program) = &table.program
        && (program.is_empty() || program.starts_with('-') || program.contains(char::is_control))
    {
        return Err(format!("program = {program:?} is no path"));
    }
    if table.workers == Some(0) {
        return Err("workers = 0: an agent has at least one".to_owned());
    }
    Ok(Settings {
        program: table.program,
        options: table.options,
        cores: table.cores,
        workers: table.workers,
        sources: table.sources,
        targets: table.targets.iter().map(target).collect::<Result<_, _>>()?,
    })
}

fn target(value: &toml::Value) -> Result<TargetChoice, String> {
    let number = value.as_integer().and_then(|number| u32::try_from(number).ok());
    match (number, value.as_str()) {
        (Some(number @ 1..), _) => Ok(TargetChoice::Number(number)),
        (_, Some(url)) => Ok(TargetChoice::Url(url.to_owned())),
        _ => Err(format!("targets: {value} is neither a target's number, from 1, nor its URL")),
    }
}
