//! The ladder of a suite: from its file, or from the command line instead.

use super::document::SuiteError;
use super::file::{LadderKind, LadderTable};
use super::workload::TableReader;
use super::{Arrivals, CLIENTS_MAX, LADDER_POINTS_MAX, Ladder, LoadSpec, RATE_OPS_PER_S_MAX};
use crate::units::{Nanos, SpanText};

/// Longest think time that the command line may request: a day.
const THINK_SECONDS_MAX: f64 = 86_400.0;
const STEPS_DEFAULT: u32 = 10;
const HEADROOM_DEFAULT: f64 = 1.0;

/// The ladder that the command line requests. It replaces the file's ladder as a whole.
#[derive(Clone, Debug, PartialEq)]
pub enum LadderChange {
    /// `--points`: these loads; seconds where the file has a ladder of think times.
    Points(Vec<f64>),
    /// `--peak`: evenly spaced loads; the default number of them without `steps`.
    Peak {
        /// The highest load.
        peak: Peak,
        /// How many loads.
        steps: Option<u32>,
    },
    /// `--steps` alone: the file's ladder with another number of loads.
    Steps(u32),
    /// `--like`: the loads of an earlier run. A ladder of think times stays, its suite has them.
    Again(Vec<f64>),
}

/// The highest load of a ladder.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Peak {
    /// The peak of the server, which is searched first.
    Auto,
    /// This load.
    At(f64),
}

impl LadderChange {
    /// The ladder in place of `file`.
    pub(super) fn apply_to(&self, file: Ladder, load: &LoadSpec) -> Result<Ladder, SuiteError> {
        let refuse = |message: &str| Err(SuiteError::new(message));
        let is_closed = matches!(load, LoadSpec::Closed { .. });
        Ok(match (self, file) {
            (Self::Points(seconds), Ladder::Think { clients, .. }) => Ladder::Think {
                clients,
                thinks: seconds.iter().map(think).collect::<Result<_, _>>()?,
            },
            (Self::Again(_), think @ Ladder::Think { .. }) => think,
            (Self::Points(points) | Self::Again(points), _) => {
                check_points(points, load, SuiteError::new)?;
                Ladder::Points { points: points.clone() }
            }
            (_, Ladder::Think { .. }) => {
                return refuse(
                    "this suite's ladder is a list of think times; write --points, in seconds",
                );
            }
            (Self::Peak { peak: Peak::At(peak), steps }, _) => {
                check_load(*peak, load, SuiteError::new)?;
                Ladder::Peak { peak: *peak, steps: steps.unwrap_or(STEPS_DEFAULT) }
            }
            (Self::Peak { peak: Peak::Auto, .. }, _) if load.is_sessions() => {
                return refuse(
                    "no peak is searched in sessions/s; write --points, or use plimsoll capacity",
                );
            }
            (Self::Peak { .. }, _) if is_closed => {
                return refuse(
                    "this suite has a closed load, whose ladder is a list of clients; write --points",
                );
            }
            (Self::Peak { steps, .. }, file) => Ladder::Auto {
                steps: steps.unwrap_or(STEPS_DEFAULT),
                headroom: match file {
                    Ladder::Auto { headroom, .. } => headroom,
                    _ => HEADROOM_DEFAULT,
                },
            },
            (Self::Steps(steps), Ladder::Peak { peak, .. }) => Ladder::Peak { peak, steps: *steps },
            (Self::Steps(steps), Ladder::Auto { headroom, .. }) => {
                Ladder::Auto { steps: *steps, headroom }
            }
            (Self::Steps(_), Ladder::Points { .. }) => {
                return refuse("this suite's ladder is a list of loads; write --points or --peak");
            }
        })
    }

    /// The flag that requests it.
    pub(super) const fn flag(&self) -> &'static str {
        match self {
            Self::Points(_) => "--points",
            Self::Peak { .. } => "--peak",
            Self::Steps(_) => "--steps",
            Self::Again(_) => "--like",
        }
    }
}

fn think(seconds: &f64) -> Result<Nanos, SuiteError> {
    if (0.0..=THINK_SECONDS_MAX).contains(seconds) {
        return Ok(Nanos::from_secs_f64(*seconds));
    }
    Err(SuiteError::new(format!("{seconds} is not a think time")).with_help(format!(
        "a load point of this suite is a number of seconds from 0 to {THINK_SECONDS_MAX}"
    )))
}

impl LadderTable {
    /// The ladder of the file.
    pub(super) fn finish(
        self,
        table: &TableReader<'_>,
        load: &LoadSpec,
    ) -> Result<Ladder, SuiteError> {
        let kind = self.kind.unwrap_or(match load {
            LoadSpec::Open { .. } => LadderKind::Auto,
            LoadSpec::Closed { .. } => LadderKind::Points,
        });
        let steps = self.steps.unwrap_or(STEPS_DEFAULT);
        let wrong = |key: &'static str| move |message: String| table.error_at(key, message);
        match kind {
            LadderKind::Points => {
                let points = self.points.ok_or_else(|| table.missing("points"))?;
                check_points(&points, load, wrong("points"))?;
                Ok(Ladder::Points { points })
            }
            LadderKind::Peak => {
                let peak = self.peak.ok_or_else(|| table.missing("peak"))?;
                check_load(peak, load, wrong("peak"))?;
                Ok(Ladder::Peak { peak, steps })
            }
            LadderKind::Auto => {
                Ok(Ladder::Auto { steps, headroom: self.headroom.unwrap_or(HEADROOM_DEFAULT) })
            }
            LadderKind::Think => {
                if let LoadSpec::Open { .. } = load {
                    return Err(table
                        .error_at("kind", "a ladder of think times needs a closed load")
                        .with_help(
                            "clients of an open load do not think; write load.mode = \"closed\"",
                        ));
                }
                let clients = self.clients.ok_or_else(|| table.missing("clients"))?;
                let thinks = self.thinks.ok_or_else(|| table.missing("thinks"))?;
                check_length(thinks.len(), wrong("thinks"))?;
                let thinks = thinks.into_iter().map(|SpanText(think)| think).collect();
                Ok(Ladder::Think { clients, thinks })
            }
        }
    }
}

fn check_points(
    points: &[f64],
    load: &LoadSpec,
    wrong: impl Fn(String) -> SuiteError,
) -> Result<(), SuiteError> {
    check_length(points.len(), &wrong)?;
    points.iter().try_for_each(|point| check_load(*point, load, &wrong))
}

fn check_length(points: usize, wrong: impl Fn(String) -> SuiteError) -> Result<(), SuiteError> {
    if points > 0 && points <= LADDER_POINTS_MAX {
        return Ok(());
    }
    Err(wrong(format!("a ladder has {points} load points"))
        .with_help(format!("write from 1 to {LADDER_POINTS_MAX}")))
}

fn check_load(
    value: f64,
    load: &LoadSpec,
    wrong: impl Fn(String) -> SuiteError,
) -> Result<(), SuiteError> {
    let (good, unit) = match load {
        LoadSpec::Open { arrivals: Arrivals::Sessions, .. } => {
            (value > 0.0 && value <= RATE_OPS_PER_S_MAX, "sessions/s above 0")
        }
        LoadSpec::Open { .. } => (value > 0.0 && value <= RATE_OPS_PER_S_MAX, "ops/s above 0"),
        LoadSpec::Closed { .. } => (
            value.fract() == 0.0 && value >= 1.0 && value <= f64::from(CLIENTS_MAX),
            "clients, a whole number from 1 up",
        ),
    };
    if good {
        return Ok(());
    }
    Err(wrong(format!("load point {value} is not a load"))
        .with_help(format!("a load point of this suite is a number of {unit}")))
}
