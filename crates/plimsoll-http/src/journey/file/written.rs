//! The keys of a journey's file.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::PARALLEL_MAX;
use crate::journey::data::RowOrder;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenFile {
    /// Rows of values.
    #[serde(default)]
    pub(super) data: Vec<WrittenData>,
    /// Probabilities of the pages with which a session of the only journey begins; the first page if
    /// absent.
    pub(super) start: Option<BTreeMap<String, f64>>,
    /// The pages of the only journey.
    #[serde(default)]
    pub(super) page: Vec<WrittenPage>,
    /// Several journeys.
    #[serde(default)]
    pub(super) journey: Vec<WrittenJourney>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenData {
    /// What its variables are called: `user` in `{{user.name}}`.
    pub(super) name: String,
    /// CSV with a header line, or JSON lines; relative to the journey's file.
    pub(super) file: String,
    /// Which row a session or a request has.
    #[serde(default)]
    pub(super) order: RowOrder,
    /// The column with the weights of the rows, with order = "each_request"; without it all are
    /// equally likely.
    pub(super) weight: Option<String>,
    /// The column with the file of each user's certificate: PEM, with its key; relative to the
    /// journey's file.
    pub(super) certificate: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenJourney {
    /// What it is called.
    pub(super) name: String,
    /// Its share among the others.
    #[serde(default = "one")]
    #[schemars(range(min = 0.000_001, max = 1_000_000.0))]
    pub(super) weight: f64,
    /// Probabilities of the pages with which its sessions begin; the first page if absent.
    pub(super) start: Option<BTreeMap<String, f64>>,
    /// Its pages.
    pub(super) page: Vec<WrittenPage>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenPage {
    /// What it is called.
    pub(super) name: String,
    /// Path and query, from the root of the server.
    pub(super) path: String,
    /// Method; GET, or POST with a body, if absent.
    pub(super) method: Option<String>,
    /// Header fields.
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
    /// Body of the request.
    pub(super) body: Option<String>,
    /// Variables that are taken from the reply.
    #[serde(default)]
    pub(super) take: BTreeMap<String, WrittenTake>,
    /// What a good reply is.
    #[serde(default)]
    pub(super) expect: WrittenExpect,
    /// How `plimsoll serve web --journey` answers.
    #[serde(default)]
    pub(super) serve: WrittenServe,
    /// Further requests of the page, sent after the first.
    #[serde(default)]
    pub(super) request: Vec<WrittenRequest>,
    /// How many of them are in flight at a time, at most.
    #[serde(default = "one_request")]
    #[schemars(range(min = 1, max = PARALLEL_MAX))]
    pub(super) parallel: u32,
    /// A page that takes no longer is a good one.
    pub(super) good: Option<String>,
    /// A page that takes no longer is a tolerable one.
    pub(super) tolerable: Option<String>,
    /// A user gives up when the page is not complete after this long.
    pub(super) abandon_after: Option<String>,
    /// How often the page is requested before the next one.
    pub(super) repeat: Option<String>,
    /// The pause before the next page.
    pub(super) think: Option<String>,
    /// Probabilities of the pages that follow; if absent, the page that follows in the file.
    pub(super) next: Option<BTreeMap<String, f64>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenRequest {
    /// Path and query, from the root of the server.
    pub(super) path: String,
    /// Method; GET, or POST with a body, if absent.
    pub(super) method: Option<String>,
    /// Header fields.
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
    /// Body of the request.
    pub(super) body: Option<String>,
    /// Variables that are taken from the reply.
    #[serde(default)]
    pub(super) take: BTreeMap<String, WrittenTake>,
    /// What a good reply is.
    #[serde(default)]
    pub(super) expect: WrittenExpect,
    /// How `plimsoll serve web --journey` answers.
    #[serde(default)]
    pub(super) serve: WrittenServe,
    /// How often it is sent before the next request of the page.
    pub(super) repeat: Option<String>,
}

#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct WrittenServe {
    /// Size of the reply's body; larger where what is taken or expected needs more. A number, a
    /// law, or a column of the data in the path.
    pub(super) bytes: Option<String>,
    /// Status of the reply; the first of expect.status, or 200, if absent.
    pub(super) status: Option<u16>,
    /// How long the server waits before it answers.
    pub(super) time: Option<String>,
}

#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenTake {
    /// A JSON pointer.
    pub(super) json: Option<String>,
    /// Name of a header field.
    pub(super) header: Option<String>,
    /// Name of a cookie.
    pub(super) cookie: Option<String>,
    /// A regular expression; its first group, if it has one.
    pub(super) regex: Option<String>,
    /// Name of a form field.
    pub(super) field: Option<String>,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct WrittenExpect {
    /// Good statuses; if absent, 200 to 299. A redirect that is none of them is followed.
    pub(super) status: Vec<u16>,
    /// Text that the body has.
    pub(super) content: Option<String>,
}

const fn one() -> f64 {
    1.0
}

const fn one_request() -> u32 {
    1
}
