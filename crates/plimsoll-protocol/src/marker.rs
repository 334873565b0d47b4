//! The file that marks a directory as ours and describes it: JSON with its format, the program that
//! wrote it, and the protocol's fields.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Version of the file.
const FORMAT: u32 = 1;
const TOOL: &str = concat!("plimsoll ", env!("CARGO_PKG_VERSION"));

/// The content of a protocol's marker.
pub trait Marker: Serialize + DeserializeOwned {
    /// The file, in messages: `the file set's marker`.
    const TITLE: &'static str;
    /// The next move where it is of no use.
    const REMEDY: &'static str;

    /// `400 files, at most 300 can be`: more of something than there can be.
    fn excess(&self) -> Option<String>;

    /// Reads the file.
    fn parse(text: &[u8]) -> Result<Self, MarkerError> {
        let (title, remedy) = (Self::TITLE, Self::REMEDY);
        let invalid = |why: String| MarkerError::Invalid { title, why, remedy };
        let mut fields: Map<String, Value> =
            serde_json::from_slice(text).map_err(|e| invalid(e.to_string()))?;
        let format = fields.remove("format").and_then(|format| format.as_u64());
        let tool = fields.remove("tool").is_some_and(|tool| tool.is_string());
        match format.filter(|_| tool) {
            None => return Err(invalid("it does not say its format and its tool".to_owned())),
            Some(format) if format != u64::from(FORMAT) => {
                return Err(MarkerError::Format { title, format });
            }
            Some(_) => {}
        }
        let marker: Self =
            serde_json::from_value(fields.into()).map_err(|e| invalid(e.to_string()))?;
        match marker.excess() {
            Some(excess) => Err(MarkerError::Excess { title, excess, remedy }),
            None => Ok(marker),
        }
    }

    /// The text of the file.
    fn to_json(&self) -> String {
        let file = File { format: FORMAT, tool: TOOL, marker: self };
        serde_json::to_string_pretty(&file).expect("numbers and strings are always JSON") + "\n"
    }
}

#[derive(Serialize)]
struct File<'a, M> {
    format: u32,
    tool: &'static str,
    #[serde(flatten)]
    marker: &'a M,
}

/// A marker that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MarkerError {
    /// Not the JSON of a marker.
    #[error("{title} is not valid: {why}; {remedy}")]
    Invalid {
        /// The file.
        title: &'static str,
        /// What is wrong.
        why: String,
        /// The next move.
        remedy: &'static str,
    },
    /// Of another version.
    #[error(
        "{title} has format {format}, this program reads {FORMAT}; use the version of plimsoll \
         that wrote it"
    )]
    Format {
        /// The file.
        title: &'static str,
        /// Its format.
        format: u64,
    },
    /// It names more than there can be.
    #[error("{title} names {excess}; {remedy}")]
    Excess {
        /// The file.
        title: &'static str,
        /// How much, and how much there can be.
        excess: String,
        /// The next move.
        remedy: &'static str,
    },
}
