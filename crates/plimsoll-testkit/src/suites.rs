//! The smallest suite of a protocol, for tests of its `[workload]` table.

use plimsoll_model::suite::{Override, Suite, SuiteError, TableReader, Workload};

/// A suite of `protocol` with `tables` behind its own keys, changed as `--set` would. It reads back
/// as it is written.
///
/// # Errors
/// Those of the suite.
pub fn small_suite<W: Into<Workload>>(
    (protocol, tables): (&str, &str),
    set: &[&str],
    read: impl Fn(&TableReader<'_>) -> Result<W, SuiteError>,
) -> Result<Suite, SuiteError> {
    let text = format!(
        r#"
format = 1
name = "t"
title = "t"
about = "t"
source = "t"
protocol = "{protocol}"
[load]
mode = "closed"
[ladder]
kind = "points"
points = [1, 4]
[profiles.full]
{tables}"#
    );
    let changes: Vec<Override> = set.iter().map(|one| Override::parse(one).unwrap()).collect();
    let suite = Suite::parse("t.toml", &text, &changes, &|_, table| read(table))?;
    let again = Suite::parse("t.toml", &suite.to_toml(), &[], &|_, table| read(table));
    assert_eq!(again.unwrap(), suite, "it reads back as it is written");
    Ok(suite)
}
