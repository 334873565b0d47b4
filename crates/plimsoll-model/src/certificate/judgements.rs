//! What a certificate says holds, breaks, or is left open.

use super::{Certificate, Judged, QueueCase, Reading};

/// What [`Reading::compared`] gives.
const SIDES: [&str; 2] = ["tight", "on schedule"];

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
        all
    }

    /// How many judgements were left open.
    pub fn not_judged(&self) -> usize {
        let readings = self.queues.iter().flat_map(|case| &case.readings);
        let readings = readings.flat_map(Reading::compared);
        let all = readings.chain([self.closed.tight, self.closed.theory]);
        all.filter(|tight| *tight == Judged::NotJudged).count()
    }
}

impl QueueCase {
    fn judgements(&self, all: &mut Vec<(String, bool)>) {
        let at = self.place();
        all.push((format!("{at} run"), self.run.held));
        all.push((format!("{at} rate"), self.rate_held));
        all.push((format!("{at} served"), self.served_held));
        let open = |judged: [Judged; 2]| judged.map(|judged| judged.held().is_none());
        let all_open = self.readings.iter().map(|reading| open(reading.compared()));
        let nothing_judged =
            all_open.fold([true; 2], |all, one| [all[0] && one[0], all[1] && one[1]]);
        for (side, nothing) in SIDES.iter().zip(nothing_judged) {
            all.extend(nothing.then(|| (format!("{at} {side}"), false)));
        }
        for reading in &self.readings {
            let name = reading.statistic.name();
            for (side, judged) in SIDES.iter().zip(reading.compared()) {
                let held = judged.held();
                all.extend(held.map(|held| (format!("{at} {name} {side}"), held)));
            }
            all.push((format!("{at} {name} theory"), reading.theory_held));
        }
    }
}

impl Reading {
    /// The judgements that may be left open.
    const fn compared(&self) -> [Judged; 2] {
        [self.tight, self.on_schedule]
    }
}
