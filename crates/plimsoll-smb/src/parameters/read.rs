//! What no single value of the table can say.

use plimsoll_model::suite::{SuiteError, TableReader};

use super::{Caching, Dialect, DiskMixModel, Pattern, Signing, SmbWorkload};

/// Fewer ops cannot hold the shares of the mix; more is a card each in memory.
const OPS_PER_SESSION: std::ops::RangeInclusive<u32> = 50..=20_000;

/// Reads the table, every default explicit.
pub fn read(table: &TableReader<'_>) -> Result<toml::Table, SuiteError> {
    let mut workload: SmbWorkload = table.read()?;
    fit_handles(table, &mut workload.model)?;
    check(table, &workload)?;
    let mut explicit = TableReader::explicit(&workload);
    explicit.retain(|key, _| concerns(key, workload.pattern));
    Ok(explicit)
}

/// Keys of other patterns may stand in a file, and say nothing of a run.
fn concerns(key: &str, pattern: Pattern) -> bool {
    match key {
        "model" | "shared_percent" | "workspace_mib" => pattern == Pattern::DiskMix,
        "nic_file_bytes" | "nic_request_bytes" => pattern == Pattern::Nic,
        "save_workspace" | "caching" => matches!(pattern, Pattern::DiskMix | Pattern::Nic),
        "outstanding_max" => matches!(pattern, Pattern::Nic | Pattern::Echo),
        _ => true,
    }
}

/// With all handles open, one must be there to close.
fn fit_handles(table: &TableReader<'_>, model: &mut DiskMixModel) -> Result<(), SuiteError> {
    const KEY: &str = "model.handles_kept";
    let kept_max = model.handles_open_max - 1;
    if model.handles_kept > kept_max && table.has(KEY) {
        return Err(table
            .error_at(KEY, format!("`workload.{KEY}` is {}", model.handles_kept))
            .with_help(format!("it must be from 0 to {kept_max}")));
    }
    model.handles_kept = model.handles_kept.min(kept_max);
    Ok(())
}

fn check(table: &TableReader<'_>, workload: &SmbWorkload) -> Result<(), SuiteError> {
    if workload.encryption && workload.dialect_max < Dialect::V3_0 {
        return Err(table
            .error_at("encryption", "encryption begins with dialect 3.0")
            .with_help("write dialect_max = \"3.0\" or newer, or encryption = false"));
    }
    if workload.caching == Caching::Lease && workload.dialect_max < Dialect::V2_1 {
        return Err(table
            .error_at("caching", "leases begin with dialect 2.1")
            .with_help("write dialect_max = \"2.1\" or newer, or caching = \"oplock\""));
    }
    if workload.guest && (workload.encryption || workload.signing == Signing::Required) {
        return Err(table
            .error_at("guest", "a guest's messages can be neither signed nor encrypted")
            .with_help("write guest = false, or leave signing and encryption to the server"));
    }
    let several = matches!(workload.pattern, Pattern::Nic | Pattern::Echo);
    if workload.outstanding_max > 1 && !several {
        return Err(table
            .error_at("outstanding_max", "a desktop and a logon have one op in flight")
            .with_help("write outstanding_max = 1, or pattern = \"nic\" or \"echo\""));
    }
    check_model(table, &workload.model)
}

fn check_model(table: &TableReader<'_>, model: &DiskMixModel) -> Result<(), SuiteError> {
    if model.missing_create_percent >= model.open_existing_percent {
        let message = format!(
            "{} % of creates expect name-not-found, but only {} % ask for what exists",
            model.missing_create_percent, model.open_existing_percent
        );
        return Err(table
            .error_at("model.missing_create_percent", message)
            .with_help("write a missing_create_percent below open_existing_percent"));
    }
    if model.mix.create <= 0.0 {
        return Err(table
            .error_at("model.mix.create", "without creates nothing can be read or written")
            .with_help("write for example create = 17.3"));
    }
    let ops = model.ops_per_pass / model.sessions;
    if !OPS_PER_SESSION.contains(&ops) {
        let help = format!(
            "write ops_per_pass and sessions so that their quotient is from {} to {}",
            OPS_PER_SESSION.start(),
            OPS_PER_SESSION.end()
        );
        return Err(table
            .error_at("model.sessions", format!("an application session has {ops} ops"))
            .with_help(help));
    }
    let share = |kind| model.shares()[kind as usize];
    if f64::from(model.reads_between) > f64::from(ops) * share(super::SmbKind::Read) {
        return Err(table
            .error_at("model.reads_between", "the reads between sessions are more than all reads")
            .with_help("write a smaller reads_between"));
    }
    model.read_sizes.check(table, "model.read_sizes")?;
    model.write_sizes.check(table, "model.write_sizes")
}
