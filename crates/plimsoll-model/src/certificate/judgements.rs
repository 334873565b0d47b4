//! What a certificate says holds, breaks, or is left open.

use super::witness::{ARRIVED, SENT};
use super::{Certificate, Judged, QueueCase, Witness};

const TIGHT: &str = "tight";
const ON_SCHEDULE: &str = "on schedule";
/// Of the judgements of a kind, this share must have been made: a host that never was quiet has no
/// certificate.
const MADE_MIN_RATIO: f64 = 0.25;

impl Certificate {
    /// Every judgement that was made: what it is about, and whether it holds. Where nothing could
    /// be compared, that is a judgement that does not hold.
    pub fn judgements(&self) -> Vec<(String, bool)> {
        let mut all = Vec::new();
        if self.time_share < 1.0 {
            all.push(("length".to_owned(), false));
        }
        all.push(("there and back run".to_owned(), self.floor.run.held));
        self.queues.iter().for_each(|case| case.judgements(&mut all));
        for side in [TIGHT, ON_SCHEDULE, SENT, ARRIVED] {
            all.extend(self.too_few(side).then(|| (format!("enough judgements {side}"), false)));
        }
        let Self { closed, stall, .. } = self;
        all.push(("closed loop run".to_owned(), closed.run.held));
        all.push(("closed loop count".to_owned(), closed.held));
        let compared =
            [("closed loop mean tight", closed.tight), ("closed loop theory", closed.theory)];
        if compared.iter().all(|(_, judged)| *judged == Judged::NotJudged) {
            all.push(("closed loop response".to_owned(), false));
        }
        let judged = |(name, judged): (&str, Judged)| Some((name.to_owned(), judged.held()?));
        all.extend(compared.into_iter().filter_map(judged));
        all.push(("stall run".to_owned(), stall.run.held));
        all.push(("stall".to_owned(), stall.held));
        all.extend(
            closed.witness.as_ref().and_then(|_| judged(("closed loop think", closed.think))),
        );
        for (at, witness) in [("closed loop", &closed.witness), ("stall", &stall.witness)] {
            let all_of = witness.iter().flat_map(Witness::judged);
            all.extend(all_of.filter_map(|(what, of)| judged((&format!("{at} {what}"), of))));
        }
        all
    }

    /// Were most judgements of this kind left open, or none made?
    fn too_few(&self, side: &str) -> bool {
        let all = self.queues.iter().flat_map(QueueCase::judged);
        let of_side: Vec<_> = all.filter(|(what, _)| what.ends_with(side)).collect();
        let made = of_side.iter().filter(|(_, judged)| *judged != Judged::NotJudged).count();
        (made as f64) < of_side.len() as f64 * MADE_MIN_RATIO
    }

    /// How many judgements were left open.
    pub fn not_judged(&self) -> usize {
        let judged = self.queues.iter().flat_map(QueueCase::judged).map(|(_, judged)| judged);
        let witnesses = [&self.closed.witness, &self.stall.witness].into_iter().flatten();
        let all = judged
            .chain([self.closed.tight, self.closed.theory])
            .chain(witnesses.flat_map(Witness::judged).map(|(_, judged)| judged));
        all.filter(|judged| *judged == Judged::NotJudged).count()
    }
}

impl QueueCase {
    /// Everything that may be left open: what it is about, and what came of it.
    fn judged(&self) -> Vec<(String, Judged)> {
        let mut all = vec![("rate".to_owned(), self.rate), ("served".to_owned(), self.served)];
        all.extend(self.witness.iter().flat_map(Witness::judged));
        for reading in &self.readings {
            let name = reading.statistic.name();
            let mut add = |side: &str, judged| all.push((format!("{name} {side}"), judged));
            add(TIGHT, reading.tight);
            if let Some(schedule) = &reading.schedule {
                add(ON_SCHEDULE, schedule.on_schedule);
                add("theory", Judged::from_held(schedule.theory_held));
            }
            if let Some(stated) = &reading.stated {
                add("interval", stated.interval);
            }
        }
        all
    }

    fn judgements(&self, all: &mut Vec<(String, bool)>) {
        let at = self.place();
        all.push((format!("{at} run"), self.run.held));
        let counted = self.ops_scheduled.map(|scheduled| scheduled == self.ops_due);
        all.extend(counted.map(|counted| (format!("{at} due"), counted)));
        if self.readings.is_empty() {
            // Nothing to compare is no good evidence.
            all.push((format!("{at} {TIGHT}"), false));
        }
        let made =
            |(what, judged): (String, Judged)| Some((format!("{at} {what}"), judged.held()?));
        all.extend(self.judged().into_iter().filter_map(made));
    }
}

impl Judged {
    /// Of what can be told.
    pub const fn from_held(held: bool) -> Self {
        if held { Self::Held } else { Self::Broken }
    }
}
