//! From TOML to the typed table.

use plimsoll_model::suite::{SuiteError, TableReader};

use super::sizes::SizeTable;
use super::{Caching, Dialect, DiskMix, DiskMixModel, Pattern, Signing, SmbWorkload};

/// Larger than any weight needs to be, small enough that sums stay exact.
const WEIGHT_MAX: f64 = 1e6;
/// A script numbers its ops in flight with eight bits.
const OUTSTANDING_MAX: u64 = 256;
/// Five handles are needed at a time: two documents, a made file, and two that come and go.
const HANDLES_OPEN_MIN: u64 = 5;
/// A client has 56 seed files, and opens none twice.
const HANDLES_OPEN_MAX: u64 = 48;
/// Fewer ops cannot hold the shares of the mix; more is a card each in memory.
const OPS_PER_SESSION: std::ops::RangeInclusive<u32> = 50..=20_000;

/// Reads the table, every default explicit.
pub fn read(table: &TableReader<'_>) -> Result<toml::Table, SuiteError> {
    let workload = read_typed(table)?;
    Ok(toml::Table::try_from(workload).expect("numbers, words and lists are always TOML"))
}

/// Reads the table.
pub fn read_typed(table: &TableReader<'_>) -> Result<SmbWorkload, SuiteError> {
    let pattern = [
        ("disk-mix", Pattern::DiskMix),
        ("nic", Pattern::Nic),
        ("logons", Pattern::Logons),
        ("echo", Pattern::Echo),
    ];
    let signing = [
        ("when-asked", Signing::WhenAsked),
        ("required", Signing::Required),
        ("off", Signing::Off),
    ];
    let caching = [("none", Caching::None), ("oplock", Caching::Oplock), ("lease", Caching::Lease)];
    let method = SmbWorkload::default();
    let workload = SmbWorkload {
        pattern: table.choice("pattern", &pattern)?.unwrap_or_default(),
        dialect_max: dialect(table)?,
        guest: table.flag("guest")?.unwrap_or(method.guest),
        signing: table.choice("signing", &signing)?.unwrap_or_default(),
        encryption: table.flag("encryption")?.unwrap_or(method.encryption),
        caching: table.choice("caching", &caching)?.unwrap_or_default(),
        workspace_mib: table
            .number_in("workspace_mib", 0.1..=4_096.0)?
            .unwrap_or(method.workspace_mib),
        shared_percent: percent(table, "shared_percent", method.shared_percent)?,
        save_workspace: table.flag("save_workspace")?.unwrap_or(method.save_workspace),
        outstanding_max: count(
            table,
            "outstanding_max",
            1..=OUTSTANDING_MAX,
            method.outstanding_max,
        )?,
        unexpected_max: count(
            table,
            "unexpected_max",
            0..=u64::from(u32::MAX),
            method.unexpected_max,
        )?,
        verify_one_in: count(table, "verify_one_in", 1..=1_000_000, method.verify_one_in)?,
        file_set_seed: table
            .count("file_set_seed", 0..=i64::MAX as u64)?
            .unwrap_or(method.file_set_seed),
        model: read_model(&table.table("model")?)?,
    };
    check(table, &workload)?;
    Ok(workload)
}

/// Without quotes, as on a command line, some dialects read as numbers.
fn dialect(table: &TableReader<'_>) -> Result<Dialect, SuiteError> {
    const KEY: &str = "dialect_max";
    let number = table.number(KEY).ok().flatten().map(|number| format!("{number:?}"));
    let named = Dialect::ALL.iter().find(|(name, _)| Some(*name) == number.as_deref());
    if let Some((_, dialect)) = named {
        return Ok(*dialect);
    }
    let chosen = table.choice(KEY, &Dialect::ALL).map_err(|error| match error.help {
        Some(_) => error,
        None => {
            let names: Vec<&str> = Dialect::ALL.iter().map(|(name, _)| *name).collect();
            error.with_help(format!("write one of: {}", names.join(", ")))
        }
    })?;
    Ok(chosen.unwrap_or_default())
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
    Ok(())
}

fn read_model(table: &TableReader<'_>) -> Result<DiskMixModel, SuiteError> {
    let method = DiskMixModel::default();
    let handles_open_max = count(
        table,
        "handles_open_max",
        HANDLES_OPEN_MIN..=HANDLES_OPEN_MAX,
        method.handles_open_max,
    )?;
    // With all of them open, one must be there to close.
    let kept_max = u64::from(handles_open_max - 1);
    let kept = table.count("handles_kept", 0..=kept_max)?;
    let model = DiskMixModel {
        ops_per_pass: count(table, "ops_per_pass", 50..=1_000_000, method.ops_per_pass)?,
        sessions: count(table, "sessions", 1..=1_000, method.sessions)?,
        stagger: table.flag("stagger")?.unwrap_or(method.stagger),
        handles_open_max,
        handles_kept: kept.unwrap_or(kept_max.min(u64::from(method.handles_kept))) as u32,
        reads_between: count(table, "reads_between", 0..=1_000, method.reads_between)?,
        sequential_read_percent: percent(
            table,
            "sequential_read_percent",
            method.sequential_read_percent,
        )?,
        sequential_write_percent: percent(
            table,
            "sequential_write_percent",
            method.sequential_write_percent,
        )?,
        open_existing_percent: percent(
            table,
            "open_existing_percent",
            method.open_existing_percent,
        )?,
        missing_create_percent: percent(
            table,
            "missing_create_percent",
            method.missing_create_percent,
        )?,
        missing_query_percent: percent(
            table,
            "missing_query_percent",
            method.missing_query_percent,
        )?,
        missing_find_percent: percent(table, "missing_find_percent", method.missing_find_percent)?,
        mix: read_mix(&table.table("mix")?)?,
        read_sizes: SizeTable::read(&table.table("read_sizes")?, method.read_sizes)?,
        write_sizes: SizeTable::read(&table.table("write_sizes")?, method.write_sizes)?,
    };
    table.finish()?;
    check_model(table, &model)?;
    Ok(model)
}

fn check_model(table: &TableReader<'_>, model: &DiskMixModel) -> Result<(), SuiteError> {
    if model.missing_create_percent >= model.open_existing_percent {
        let message = format!(
            "{} % of creates expect name-not-found, but only {} % ask for what exists",
            model.missing_create_percent, model.open_existing_percent
        );
        return Err(table
            .error_at("missing_create_percent", message)
            .with_help("write a missing_create_percent below open_existing_percent"));
    }
    let ops = model.ops_per_pass / model.sessions;
    if !OPS_PER_SESSION.contains(&ops) {
        let help = format!(
            "write ops_per_pass and sessions so that their quotient is from {} to {}",
            OPS_PER_SESSION.start(),
            OPS_PER_SESSION.end()
        );
        return Err(table
            .error_at("sessions", format!("an application session has {ops} ops"))
            .with_help(help));
    }
    let share = |kind| model.shares()[kind as usize];
    if f64::from(model.reads_between) > f64::from(ops) * share(super::SmbKind::Read) {
        return Err(table
            .error_at("reads_between", "the reads between sessions are more than all reads")
            .with_help("write a smaller reads_between"));
    }
    Ok(())
}

fn read_mix(table: &TableReader<'_>) -> Result<DiskMix, SuiteError> {
    let method = DiskMix::default();
    let weight = |key: &'static str, default: f64| {
        Ok::<_, SuiteError>(table.number_in(key, 0.0..=WEIGHT_MAX)?.unwrap_or(default))
    };
    let mix = DiskMix {
        read: weight("read", method.read)?,
        create: weight("create", method.create)?,
        query_path: weight("query_path", method.query_path)?,
        write: weight("write", method.write)?,
        find: weight("find", method.find)?,
        query_fs: weight("query_fs", method.query_fs)?,
        query_file: weight("query_file", method.query_file)?,
        set_file: weight("set_file", method.set_file)?,
        flush: weight("flush", method.flush)?,
        rename: weight("rename", method.rename)?,
        lock: weight("lock", method.lock)?,
    };
    table.finish()?;
    if mix.create > 0.0 {
        return Ok(mix);
    }
    Err(table
        .error_at("create", "without creates nothing can be read or written")
        .with_help("write for example create = 17.3"))
}

fn percent(table: &TableReader<'_>, key: &'static str, default: f64) -> Result<f64, SuiteError> {
    Ok(table.number_in(key, 0.0..=100.0)?.unwrap_or(default))
}

fn count(
    table: &TableReader<'_>,
    key: &'static str,
    bounds: std::ops::RangeInclusive<u64>,
    default: u32,
) -> Result<u32, SuiteError> {
    Ok(table.count(key, bounds)?.map_or(default, |n| n as u32))
}
