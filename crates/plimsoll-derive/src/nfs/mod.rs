//! A load from the counters of an NFS server or client, read before and after some time.

mod counters;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use plimsoll_model::units::{grouped, percent, three_digits};
use serde::Serialize;

use counters::{Counters, read_counters};

use crate::error::DeriveError;
use crate::suite_text::{Profile, profiles, write_file};

/// Ops that the suites of NFS have: the procedures of RFC 1813 less those that no mix contains. RFC
/// 1094 has some of them.
const OPS: [&str; 13] = [
    "getattr",
    "setattr",
    "lookup",
    "access",
    "readlink",
    "read",
    "write",
    "create",
    "remove",
    "readdir",
    "readdirplus",
    "fsstat",
    "commit",
];
/// Their versions.
const VERSIONS: [u8; 2] = [2, 3];
/// Bytes of an RPC of the suites.
const BLOCK_BYTES: f64 = 8_192.0;
/// Of writes of whole blocks the percents of 1, 2, 4, 8 and 16, as the published mix has them: no
/// counter shows which RPCs belong together.
const WHOLE_BLOCKS: [u8; 5] = [70, 16, 8, 4, 2];
/// Longest time between two readings.
const SECONDS_MAX: f64 = 366.0 * 86_400.0;

/// Which counters, and where the load goes.
#[derive(Clone, Debug)]
pub struct NfsOptions {
    /// Read first.
    pub before: PathBuf,
    /// Read later.
    pub after: PathBuf,
    /// Time between; if absent, that of the counters, or between the files' own times.
    pub seconds: Option<f64>,
    /// Folder of the load, which exists.
    pub out: PathBuf,
}

/// What the counters show.
#[derive(Clone, Debug, Serialize)]
pub struct NfsFacts {
    /// What the texts are: `nfsd`, `nfsstat` or `mountstats`.
    pub source: String,
    /// 2 or 3.
    pub version: u8,
    /// Between the readings.
    pub seconds: f64,
    /// Where that is from.
    pub seconds_from: String,
    /// RPCs of the mix.
    pub ops: u64,
    /// RPCs by op.
    pub mix: BTreeMap<String, u64>,
    /// RPCs that no suite has.
    pub left_out: BTreeMap<String, u64>,
    /// Mean bytes of a READ, where they were counted.
    pub read_bytes_mean: Option<f64>,
    /// Mean bytes of a WRITE, likewise.
    pub write_bytes_mean: Option<f64>,
}

/// A load that was derived from counters.
#[derive(Clone, Debug)]
pub struct NfsDerived {
    /// What they show.
    pub facts: NfsFacts,
    /// The page about the load, Markdown.
    pub page: String,
}

/// Derives a suite from counters.
///
/// # Errors
/// Texts that are no counters, that went backwards, or count no RPC of version 2 or 3; files that
/// cannot be read or written.
pub fn derive_from_nfs(options: &NfsOptions) -> Result<NfsDerived, DeriveError> {
    let (before, after) = (read_file(&options.before)?, read_file(&options.after)?);
    if before.source != after.source {
        return Err(refused(
            options,
            format!(
                "one is of {}, the other of {}: read the same counters twice",
                before.source, after.source
            ),
        ));
    }
    let (seconds, seconds_from) = seconds(options, &before, &after)?;
    let facts = facts(options, &before, &after, (seconds, seconds_from))?;
    let page = page(options, &facts);
    let write = |name: &str, text: &str| write_file(&options.out.join(name), text);
    write("derived.json", &(serde_json::to_string_pretty(&facts).unwrap_or_default() + "\n"))?;
    write("derived.md", &page)?;
    write("model.toml", &suite(&facts))?;
    Ok(NfsDerived { facts, page })
}

fn read_file(file: &Path) -> Result<Counters, DeriveError> {
    let text = std::fs::read_to_string(file)
        .map_err(|source| DeriveError::Unreadable { file: file.to_owned(), source })?;
    read_counters(&text)
        .map_err(|reason| DeriveError::Counters { files: file.display().to_string(), reason })
}

fn refused(options: &NfsOptions, reason: String) -> DeriveError {
    let files = format!("{} and {}", options.before.display(), options.after.display());
    DeriveError::Counters { files, reason }
}

/// Time between the readings, and where it is from.
fn seconds(
    options: &NfsOptions,
    before: &Counters,
    after: &Counters,
) -> Result<(f64, String), DeriveError> {
    let file_time = |file: &Path| std::fs::metadata(file).and_then(|it| it.modified()).ok();
    let (seconds, from) = match (options.seconds, before.age_s.zip(after.age_s)) {
        (Some(seconds), _) => (seconds, "--over"),
        (None, Some((first, last))) => (last - first, "the age of the mount"),
        (None, None) => {
            let times = file_time(&options.before).zip(file_time(&options.after));
            let between = times.and_then(|(first, last)| last.duration_since(first).ok());
            (between.map_or(0.0, |it| it.as_secs_f64()), "the times of the files")
        }
    };
    match seconds > 0.0 && seconds <= SECONDS_MAX {
        true => Ok((seconds, from.to_owned())),
        false => Err(refused(
            options,
            format!(
                "{from} say that {seconds:.1} s lie between the readings; write the time with --over, such \
             as --over 10m"
            ),
        )),
    }
}

fn facts(
    options: &NfsOptions,
    before: &Counters,
    after: &Counters,
    (seconds, seconds_from): (f64, String),
) -> Result<NfsFacts, DeriveError> {
    let mut counted: BTreeMap<u8, BTreeMap<&str, u64>> = BTreeMap::new();
    for ((version, op), last) in &after.ops {
        let first = before.ops.get(&(*version, op.clone())).copied().unwrap_or(0);
        let count = last.checked_sub(first).ok_or_else(|| {
            refused(options, format!(
                "{op} of version {version} went from {first} to {last}: the server or the mount began \
                 anew between the readings, or the files are in the wrong order"
            ))
        })?;
        counted.entry(*version).or_default().insert(op, count);
    }
    let total = |version: u8| counted.get(&version).map_or(0, |ops| ops.values().sum::<u64>());
    let version = VERSIONS.into_iter().max_by_key(|version| total(*version)).unwrap_or(VERSIONS[1]);
    let all = counted.get(&version).cloned().unwrap_or_default();
    let (mix, left_out): (BTreeMap<_, _>, BTreeMap<_, _>) = all
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(op, count)| (op.to_owned(), count))
        .partition(|(op, _)| OPS.contains(&op.as_str()));
    let ops: u64 = mix.values().sum();
    if ops == 0 {
        let reason = match total(4) {
            0 => "no RPC was counted between the readings".to_owned(),
            count => format!(
                "all {} ops are of version 4, and the suites have versions 2 and 3",
                grouped(count as f64)
            ),
        };
        return Err(refused(options, reason));
    }
    let mean = |bytes: Option<u64>, op: &str| {
        let count = mix.get(op).copied().filter(|count| *count > 0)?;
        Some(bytes? as f64 / count as f64)
    };
    let bytes = |of: fn(&Counters) -> Option<u64>| of(after)?.checked_sub(of(before)?);
    Ok(NfsFacts {
        source: after.source.to_owned(),
        version,
        seconds,
        seconds_from,
        ops,
        read_bytes_mean: mean(bytes(|counters| counters.bytes_read), "read"),
        write_bytes_mean: mean(bytes(|counters| counters.bytes_written), "write"),
        mix,
        left_out,
    })
}

/// Percent of writes of less than a block, then of 1, 2, 4, 8, 16 blocks, whose RPCs have this mean.
fn write_blocks(mean_bytes: f64) -> [u8; 6] {
    // A part of a block is half of it on average.
    let parts = (2.0 * (1.0 - mean_bytes / BLOCK_BYTES)).clamp(0.0, 1.0);
    match (parts * 100.0).round() as u8 {
        0 => {
            let [one, two, four, eight, sixteen] = WHOLE_BLOCKS;
            [0, one, two, four, eight, sixteen]
        }
        parts => [parts, 100 - parts, 0, 0, 0, 0],
    }
}

fn suite(facts: &NfsFacts) -> String {
    let rate = facts.ops as f64 / facts.seconds;
    let mix: String = facts.mix.iter().map(|(op, count)| format!("{op} = {count}\n")).collect();
    let (blocks, origin) = match facts.write_bytes_mean {
        Some(mean) => (
            format!("write_blocks = {:?}\n", write_blocks(mean)),
            format!(
                "[origins.fitted]\n\"workload.write_blocks\" = \"to {mean:.0} bytes an RPC\"\n\n"
            ),
        ),
        None => (String::new(), String::new()),
    };
    format!(
        "# Derived from counters by plimsoll derive --nfs; derived.md is about it.\nformat = 1\nname = \
         \"model\"\ntitle = \"NFS operations as counters have them\"\nabout = \"\"\"\nThe mix of \
         operations and the rate that the counters of an NFS server or client show.\"\"\"\nsource = \
         \"no published method\"\nprotocol = \"nfs\"\nop_timeout = \"10s\"\n\n[load]\nmode = \
         \"open\"\narrivals = \"per_client\"\nclients = 16\n\n[ladder]\nkind = \"points\"\npoints = \
         [{rate:.6}]\n\n{}[workload]\nversion = {}\n{blocks}\n[workload.mix]\n{mix}\n[origins.log]\n\
         \"workload.mix\" = \"RPCs counted\"\n\"ladder.points\" = \"RPCs per second\"\n\n{origin}\
         [origins.guessed]\n\"load.clients\" = \"counters do not show how many clients there are\"\n\
         \"load.gaps\" = \"independent clients\"\n\"workload.read_blocks\" = \"counters do not show \
         which READs belong together\"\n\"workload.mib_per_op_per_s\" = \"counters do not show how many \
         files are used\"\n",
        profiles(&PROFILES),
        facts.version,
    )
}

/// Timings, and the part of the file set that is used.
const PROFILES: [Profile<'_>; 4] = [
    Profile { name: "full", warm_up: "300s", measure: "300s", workload_scale: 1.0 },
    Profile { name: "standard", warm_up: "10s", measure: "60s", workload_scale: 1.0 },
    Profile { name: "quick", warm_up: "1s", measure: "10s", workload_scale: 0.001 },
    Profile { name: "demo", warm_up: "200ms", measure: "1s", workload_scale: 0.0002 },
];

fn page(options: &NfsOptions, facts: &NfsFacts) -> String {
    let ops = facts.ops as f64;
    let out = options.out.display();
    let mut page = format!(
        "# A load from NFS counters\n\n{} RPCs of version {} in {} s ({}), {} a second.\n\n```sh\n\
         plimsoll run {out}/model.toml nfs://HOST/EXPORT\n```\n\n## From the counters\n\n| op | RPCs | \
         share |\n| --- | --: | --: |\n",
        grouped(ops),
        facts.version,
        three_digits(facts.seconds),
        facts.seconds_from,
        three_digits(ops / facts.seconds),
    );
    for (op, count) in &facts.mix {
        let count = *count as f64;
        page.push_str(&format!("| {op} | {} | {} |\n", grouped(count), percent(count / ops)));
    }
    page.push_str("\n## Fitted and guessed\n\n");
    match facts.write_bytes_mean {
        Some(mean) if mean <= BLOCK_BYTES => page.push_str(&format!(
            "- A WRITE has {} bytes on average; the share of the model's WRITEs that are of less than a block of 8 \
             KiB gives the same mean.\n",
            grouped(mean)
        )),
        Some(mean) => page.push_str(&format!(
            "- A WRITE has {} bytes on average; the model's have 8 KiB: the same number of RPCs, fewer \
             bytes.\n",
            grouped(mean)
        )),
        None => page.push_str("- These counters have no bytes: sizes of WRITEs are those of suite nfs-v3.\n"),
    }
    if let Some(mean) = facts.read_bytes_mean {
        page.push_str(&format!(
            "- A READ has {} bytes on average; the model's have 8 KiB, or less at the end of a file.\n",
            grouped(mean)
        ));
    }
    page.push_str(
        "- Not in counters, so parameters of the suite: clients (`load.clients`), how many files there \
         are (`workload.mib_per_op_per_s`), which of them are used, how RPCs follow each other.\n",
    );
    if !facts.left_out.is_empty() {
        let left_out: u64 = facts.left_out.values().sum();
        let names: Vec<String> = facts
            .left_out
            .iter()
            .map(|(op, count)| format!("{op} {}", grouped(*count as f64)))
            .collect();
        page.push_str(&format!(
            "\n## Dropped\n\n- {} of the RPCs are of ops that the suites do not have: {}.\n",
            percent(left_out as f64 / (ops + left_out as f64)),
            names.join(", ")
        ));
    }
    page
}

#[cfg(test)]
mod tests;
