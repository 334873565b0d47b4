//! Statuses of a good reply.

use serde::{Deserialize, Serialize};

/// Statuses of a good reply. A suite has them as codes (`"200"`) and classes (`"2xx"`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct Statuses(pub(super) Vec<(u16, u16)>);

impl TryFrom<Vec<String>> for Statuses {
    type Error = String;

    fn try_from(texts: Vec<String>) -> Result<Self, String> {
        if texts.is_empty() {
            return Err("no status is a good one; write for example [\"200\"] or [\"2xx\"]".into());
        }
        let read = |text: &String| {
            read_status(text).ok_or_else(|| {
                format!(
                    "{text:?} is not an HTTP status; write a code like \"200\" or a class like \
                     \"2xx\""
                )
            })
        };
        texts.iter().map(read).collect::<Result<_, _>>().map(Self)
    }
}

impl From<Statuses> for Vec<String> {
    fn from(statuses: Statuses) -> Self {
        let text = |(first, last): (u16, u16)| match first == last {
            true => first.to_string(),
            false => format!("{}xx", first / 100),
        };
        statuses.0.into_iter().map(text).collect()
    }
}

impl Statuses {
    pub(super) const OK: (u16, u16) = (200, 200);
    pub(super) const SUCCESS: (u16, u16) = (200, 299);

    /// Every status: a journey says itself what is good.
    pub(crate) fn any() -> Self {
        Self(vec![(100, 999)])
    }

    /// The status is among them.
    pub fn holds(&self, status: u16) -> bool {
        self.0.iter().any(|(first, last)| (*first..=*last).contains(&status))
    }
}

fn read_status(text: &str) -> Option<(u16, u16)> {
    if let Some(class) = text.strip_suffix("xx") {
        let class: u16 = class.parse().ok().filter(|c| (1..=9).contains(c))?;
        return Some((class * 100, class * 100 + 99));
    }
    let code = text.parse().ok().filter(|c| (100..=999).contains(c))?;
    Some((code, code))
}
