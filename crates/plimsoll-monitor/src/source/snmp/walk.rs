//! Columns of tables, requested from an agent one after the other.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use snmp2::{Error, Oid, SyncSession, Value};

use crate::clock;
use crate::source::{Lost, SAMPLE_WAIT};

/// Longest wait for one answer. UDP loses some; the next sample requests them again.
const ANSWER_WAIT: Duration = Duration::from_millis(1_500);
/// Rows that are requested at once: an answer stays below 1,472 bytes with names of 30.
const ROWS_AT_ONCE: u32 = 24;
/// A switch has some hundred ports.
const ROWS_MAX: usize = 4_096;

/// A column of a table by row.
pub(super) type Column<T> = BTreeMap<u64, T>;

/// A session with an agent.
pub(super) struct Walker {
    /// It fits a datagram of the largest size.
    session: Box<SyncSession>,
    until_ns: u64,
}

/// A value that means something here.
enum Cell {
    Number(u64),
    Text(String),
    Id(Vec<u64>),
}

impl Walker {
    pub(super) fn open(address: SocketAddr, community: &str) -> Result<Self, Lost> {
        // Not the same numbers as a session before: an answer to that one is none to this.
        let first = (clock::monotonic_ns() / 1_000) as i32 & 0x3fff_ffff;
        let session = SyncSession::new_v2c(address, community.as_bytes(), Some(ANSWER_WAIT), first)
            .map_err(|e| Lost(format!("cannot open a socket: {e}")))?;
        let mut walker = Self { session: Box::new(session), until_ns: 0 };
        walker.begin();
        Ok(walker)
    }

    /// From now on, all of a sample's requests share its wait.
    pub(super) fn begin(&mut self) {
        self.until_ns = clock::monotonic_ns().saturating_add(SAMPLE_WAIT.as_nanos() as u64);
    }

    pub(super) fn numbers(&mut self, column: &[u64]) -> Result<Column<u64>, Lost> {
        self.column(column, |cell| match cell {
            Cell::Number(number) => Some(number),
            _ => None,
        })
    }

    pub(super) fn texts(&mut self, column: &[u64]) -> Result<Column<String>, Lost> {
        self.column(column, |cell| match cell {
            Cell::Text(text) => Some(text),
            _ => None,
        })
    }

    pub(super) fn ids(&mut self, column: &[u64]) -> Result<Column<Vec<u64>>, Lost> {
        self.column(column, |cell| match cell {
            Cell::Id(id) => Some(id),
            _ => None,
        })
    }

    fn column<T>(
        &mut self,
        column: &[u64],
        convert: impl Fn(Cell) -> Option<T>,
    ) -> Result<Column<T>, Lost> {
        let mut cells = Column::new();
        let mut last = column.to_vec();
        loop {
            if clock::monotonic_ns() >= self.until_ns {
                return Err(Lost(format!("no whole answer within {} s", SAMPLE_WAIT.as_secs())));
            }
            let oid = Oid::from(&last).map_err(|_| Lost("its table has odd rows".to_owned()))?;
            let answer = self.session.getbulk(&[&oid], 0, ROWS_AT_ONCE).map_err(lost)?;
            let before = last.clone();
            let mut ended = false;
            for (oid, value) in answer.varbinds {
                let id: Vec<u64> = oid.iter().map(Iterator::collect).unwrap_or_default();
                // Rows come in order; an agent that goes back would go on for ever.
                if !id.starts_with(column) || id <= last || matches!(value, Value::EndOfMibView) {
                    ended = true;
                    break;
                }
                let row = match &id[column.len()..] {
                    // In a group of single values, each has its own number.
                    [scalar, 0] => *scalar,
                    rest => rest.last().copied().unwrap_or_default(),
                };
                if let Some(cell) = cell(value).and_then(&convert) {
                    cells.insert(row, cell);
                }
                last = id;
            }
            if ended || last == before || cells.len() >= ROWS_MAX {
                return Ok(cells);
            }
        }
    }
}

fn cell(value: Value<'_>) -> Option<Cell> {
    Some(match value {
        Value::Integer(number) => Cell::Number(u64::try_from(number).ok()?),
        Value::Counter32(number) | Value::Unsigned32(number) | Value::Timeticks(number) => {
            Cell::Number(u64::from(number))
        }
        Value::Counter64(number) => Cell::Number(number),
        Value::OctetString(bytes) => {
            let text = String::from_utf8_lossy(bytes);
            Cell::Text(text.chars().filter(|c| !c.is_control()).take(200).collect())
        }
        Value::ObjectIdentifier(oid) => Cell::Id(oid.iter()?.collect()),
        _ => return None,
    })
}

fn lost(error: Error) -> Lost {
    Lost(match error {
        Error::Receive => format!("no answer within {:.1} s", ANSWER_WAIT.as_secs_f64()),
        Error::Send => "cannot send to it".to_owned(),
        other => format!("its answer cannot be read: {other}"),
    })
}
