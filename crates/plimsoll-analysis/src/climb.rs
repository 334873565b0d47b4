//! The climb to the highest load that holds, over tries that scatter. Pure: the caller runs the
//! tries. What *holds* means, how often a load is tried again, how the load grows and when the
//! climb ends is a [`Policy`]: of the peak search, of the capacity search, of the calibration's
//! rate.
//!
//! The load grows while it holds, or shrinks while it does not. Then the interval between the
//! highest load that held and the lowest that did not is narrowed until it is small. A load with
//! contradictory tries is tried again first. The next load follows from the tries alone, so that a
//! resumed search continues where it was.

/// Loads from here on are whole numbers: nobody requests fractions of an op.
pub const WHOLE_FROM_OPS_PER_S: f64 = 100.0;

/// Who set a ceiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ceiling {
    /// The server did not keep up.
    Server,
    /// The measurement: the generator did not keep up, or cannot show that it did.
    Generator,
    /// The server answered wrongly, refused, or fell silent.
    Failure,
}

/// The combined outcome of the tries of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LevelState {
    /// The load holds.
    Sustained,
    /// It did not, and is tried again before that is believed.
    Doubtful(Ceiling),
    /// It does not hold.
    Missed(Ceiling),
}

impl LevelState {
    /// Who set the ceiling, where the load did not hold.
    pub(crate) const fn ceiling(self) -> Option<Ceiling> {
        match self {
            Self::Sustained => None,
            Self::Doubtful(ceiling) | Self::Missed(ceiling) => Some(ceiling),
        }
    }
}

/// All tries of a load with one purpose.
#[derive(Debug)]
pub struct Level<'a, T> {
    /// The load.
    pub load: f64,
    /// In order of time; at least one.
    pub tries: Vec<&'a T>,
}

/// The loads in the order of their first try.
pub fn levels<'a, T>(tries: impl IntoIterator<Item = (f64, &'a T)>) -> Vec<Level<'a, T>> {
    let mut levels: Vec<Level<'a, T>> = Vec::new();
    for (load, attempt) in tries {
        match levels.iter_mut().find(|level| level.load == load) {
            Some(level) => level.tries.push(attempt),
            None => levels.push(Level { load, tries: vec![attempt] }),
        }
    }
    levels
}

/// Parameters of a climb.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClimbConfig {
    /// The first load.
    pub first: f64,
    /// Growth while loads hold.
    pub growth_ratio: f64,
    /// Loads above this one are tried only when it held; 0 without one.
    pub top: f64,
    /// The climb ends when a load that held and one that did not are this close, as a share of the
    /// latter.
    pub resolution_ratio: f64,
    /// Different loads at most.
    pub loads_max: u32,
    /// Loads that are claimed afterwards, at most.
    pub claims_max: u32,
    /// Loads below this are not tried.
    pub min: f64,
    /// Loads above this are not tried.
    pub max: f64,
    /// Loads from here on are whole numbers.
    pub whole_from: f64,
}

impl ClimbConfig {
    /// With the first load and the top as shares of what all clients at once reached.
    pub(crate) fn scaled_to(self, closed: f64) -> Self {
        Self { first: closed * self.first, top: closed * self.top, ..self }
    }

    /// The nearest load that may be tried.
    pub(crate) fn bounded(&self, load: f64) -> f64 {
        let load = load.clamp(self.min, self.max.max(self.min));
        if load >= self.whole_from { load.floor() } else { load }
    }

    /// Nothing was missed yet: up to the top, then beyond.
    pub(crate) fn above(&self, sustained: f64) -> f64 {
        let grown = sustained * self.growth_ratio;
        if sustained < 0.99 * self.top { grown.min(self.top) } else { grown }
    }
}

/// Between which loads the answer lies.
#[derive(Debug)]
pub struct Bracket<'l, T> {
    /// The highest load that held below the lowest that did not.
    pub sustained: Option<f64>,
    /// The lowest load that did not hold, and what made it fail.
    pub missed: Option<(&'l Level<'l, T>, Ceiling)>,
}

/// What differs between searches.
pub trait Policy {
    /// The outcome of one try of a load.
    type Try;

    /// First load, growth and bounds.
    fn climb_config(&self) -> ClimbConfig;

    /// The combined outcome of the tries of a load.
    fn level_state(&self, level: &Level<'_, Self::Try>) -> LevelState;

    /// A load to try where nothing held yet.
    fn below(&self, missed: &Level<'_, Self::Try>, _ceiling: Ceiling) -> f64 {
        missed.load / 2.0
    }

    /// A load to try above one that held, where nothing was missed yet.
    fn above(&self, sustained: f64) -> f64 {
        self.climb_config().above(sustained)
    }

    /// A load to try between one that held and one that did not.
    fn between(&self, sustained: f64, missed: f64) -> f64 {
        f64::midpoint(sustained, missed)
    }

    /// The climb ends when held and missed are this close, as a share of the missed load.
    fn resolution_ratio(&self, _ceiling: Ceiling) -> f64 {
        self.climb_config().resolution_ratio
    }

    /// A load that did not hold and is no ceiling all the same.
    fn is_ignored(&self, _level: &Level<'_, Self::Try>, _all: &[Level<'_, Self::Try>]) -> bool {
        false
    }

    /// Steps that are reserved for the time after the climb.
    fn reserve(&self) -> u32 {
        0
    }

    /// Whether the climb ends after this number of loads.
    fn is_finished(&self, loads: u32, _so_far: &Bracket<'_, Self::Try>, steps_left: u32) -> bool {
        steps_left <= self.reserve() || loads >= self.climb_config().loads_max
    }
}

/// What a climb does next.
#[derive(Debug)]
pub enum Next<'l, T> {
    /// It tries this load.
    Try(f64),
    /// It ends here.
    Done(Bracket<'l, T>),
}

/// The next load to try, or the bracket when no load is left or there is no time for one.
pub fn next<'l, P: Policy>(
    policy: &P,
    levels: &'l [Level<'l, P::Try>],
    steps_left: u32,
) -> Next<'l, P::Try> {
    if let Some(last) = levels.last()
        && matches!(policy.level_state(last), LevelState::Doubtful(_))
        && steps_left > policy.reserve()
    {
        return Next::Try(last.load);
    }
    let bracket = bracket(policy, levels);
    let finished = policy.is_finished(levels.len() as u32, &bracket, steps_left);
    match proposed(policy, &bracket).filter(|_| !finished) {
        Some(load) => Next::Try(load),
        None => Next::Done(bracket),
    }
}

fn bracket<'l, P: Policy>(policy: &P, levels: &'l [Level<'l, P::Try>]) -> Bracket<'l, P::Try> {
    let standings = || levels.iter().map(|level| (level, policy.level_state(level)));
    let missed = standings()
        .filter(|(level, _)| !policy.is_ignored(level, levels))
        .filter_map(|(level, state)| Some((level, state.ceiling()?)))
        .min_by(|a, b| a.0.load.total_cmp(&b.0.load));
    let below = missed.map_or(f64::INFINITY, |(level, _)| level.load);
    let sustained = standings()
        .filter(|(level, state)| *state == LevelState::Sustained && level.load < below)
        .map(|(level, _)| level.load)
        .reduce(f64::max);
    Bracket { sustained, missed }
}

/// A load within the bracket that narrows it; `None` where there is none.
fn proposed<P: Policy>(policy: &P, bracket: &Bracket<'_, P::Try>) -> Option<f64> {
    let config = policy.climb_config();
    let load = match (bracket.sustained, bracket.missed) {
        (None, None) => config.first,
        (Some(sustained), None) => policy.above(sustained),
        (None, Some((missed, ceiling))) => policy.below(missed, ceiling),
        (Some(sustained), Some((missed, ceiling))) => {
            let near = policy.resolution_ratio(ceiling) * missed.load;
            (missed.load - sustained > near).then(|| policy.between(sustained, missed.load))?
        }
    };
    let load = config.bounded(load);
    let above = bracket.sustained.is_none_or(|sustained| load > sustained);
    let below = bracket.missed.is_none_or(|(missed, _)| load < missed.load);
    (above && below).then_some(load)
}

/// The lowest of these ceilings above a load.
pub(crate) fn lowest_above(
    load: f64,
    ceilings: impl Iterator<Item = (f64, Ceiling)>,
) -> Option<(f64, Ceiling)> {
    ceilings.filter(|(at, _)| *at > load).min_by(|a, b| a.0.total_cmp(&b.0))
}

/// A step of a search: a try, or its end.
#[derive(Clone, Debug, PartialEq)]
pub enum Step<A> {
    /// Run every client without think time; report what was achieved.
    Saturate,
    /// Try this load.
    Probe {
        /// Ops per second, or clients.
        load: f64,
    },
    /// Run the claimed load again.
    Verify {
        /// Ops per second, or clients.
        load: f64,
        /// Which run of this claim, from 1.
        number: u32,
    },
    /// The answer.
    Answer(A),
    /// There is none.
    Nothing,
}
