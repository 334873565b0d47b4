//! The faults: what each breaks, and the judgements that must see it.

use plimsoll_model::certificate::{Judgement, JudgementCase, JudgementKind};

/// A fault, as a patch in `lab/faults/`.
pub struct Fault {
    /// Of its patch file.
    pub name: &'static str,
    /// In the table.
    pub what: &'static str,
    /// Where it shows.
    pub calibration: Calibration,
    /// Kinds of judgements that must not hold.
    pub expected: &'static [JudgementKind],
}

/// Protocols of a calibration.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Calibration {
    /// That of the calibrated server proper.
    Proper,
    /// HTTP/2.
    Http2,
}

impl Calibration {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Proper, Self::Http2];

    /// Its arguments.
    pub const fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Proper => &["--protocol", "app"],
            Self::Http2 => &["--protocol", "http", "--http", "2"],
        }
    }

    /// The program without a fault, in the table.
    pub const fn sound(self) -> &'static str {
        match self {
            Self::Proper => "none: the program as it is",
            Self::Http2 => "none, over HTTP/2",
        }
    }
}

/// Ten kinds of faults, some at more than one point of the code.
pub const FAULTS: [Fault; 14] = [
    Fault {
        name: "due-skipped",
        what: "due ops skipped: an op that is late, or finds nobody free, is left out",
        calibration: Calibration::Proper,
        expected: &[JudgementKind::Recorded, JudgementKind::Stall],
    },
    Fault {
        name: "stamp-late-due",
        what: "stamp late: due is taken from sent",
        calibration: Calibration::Proper,
        expected: &[JudgementKind::Sent, JudgementKind::Stall],
    },
    Fault {
        name: "stamp-late-sent",
        what: "stamp late: sent is taken 0.12 ms after the op has left",
        calibration: Calibration::Proper,
        expected: &[JudgementKind::Sent],
    },
    Fault {
        name: "stamp-late-done",
        what: "stamp late: done is taken 0.3 ms after the reply was read",
        calibration: Calibration::Proper,
        expected: &[JudgementKind::Arrived],
    },
    Fault {
        name: "tail-dropped",
        what: "tail dropped: responses above 8 ms are not recorded",
        calibration: Calibration::Proper,
        expected: &[JudgementKind::Recorded],
    },
    Fault {
        name: "wrong-merge-lost",
        what: "wrong merge: what finished in the drain is lost",
        calibration: Calibration::Proper,
        expected: &[JudgementKind::Recorded],
    },
    Fault {
        name: "wrong-merge-position",
        what: "wrong merge: responses are merged into those without the generator's part",
        calibration: Calibration::Proper,
        expected: &[JudgementKind::Sum],
    },
    Fault {
        name: "window-off",
        what: "window off by a slice (0.1 s): other ops are due in it",
        calibration: Calibration::Proper,
        expected: &[JudgementKind::Due, JudgementKind::Recorded],
    },
    Fault {
        name: "window-off-done",
        what: "window off by a slice (0.1 s): other ops are done in it",
        calibration: Calibration::Proper,
        expected: &[JudgementKind::Ended],
    },
    Fault {
        name: "think-shortened",
        what: "think time shortened by a tenth",
        calibration: Calibration::Proper,
        expected: &[JudgementKind::Think],
    },
    Fault {
        name: "counted-twice",
        what: "reply counted twice: one in 300",
        calibration: Calibration::Proper,
        expected: &[JudgementKind::Recorded],
    },
    Fault {
        name: "receive-lag-zeroed",
        what: "receive lag zeroed: done passes for arrived",
        calibration: Calibration::Proper,
        expected: &[JudgementKind::Arrived],
    },
    Fault {
        name: "http2-replies-late",
        what: "HTTP/2: a reply is taken in with the next, that of another stream",
        calibration: Calibration::Http2,
        // What is late is the reading, so it is in the times and not in the stamps of the kernel.
        expected: &[JudgementKind::Interval],
    },
    Fault {
        name: "http2-streams-late",
        what: "HTTP/2: sent is stamped when an op is queued, and its stream opened with the next",
        calibration: Calibration::Http2,
        expected: &[JudgementKind::Sent],
    },
];

/// A judgement that did not hold.
pub struct Broken {
    pub name: String,
    /// `None`: too few were made, which happens on a host that is never quiet.
    pub kind: Option<JudgementKind>,
}

impl Broken {
    pub fn from_judgement(judgement: &Judgement<'_>) -> Self {
        let made = judgement.case != JudgementCase::Enough;
        Self { name: judgement.to_string(), kind: made.then_some(judgement.kind) }
    }
}

impl Fault {
    /// Its patch, from the root of the workspace.
    pub fn patch(&self) -> String {
        format!("lab/faults/{}.patch", self.name)
    }

    /// Kinds of judgements that had to detect it, and of which none did.
    pub fn unseen(&self, broken: &[Broken]) -> Vec<&'static str> {
        let unseen =
            self.expected.iter().filter(|kind| !self.detected_by(broken).any(|it| it == **kind));
        unseen.map(|kind| kind.as_str()).collect()
    }

    /// Kinds of judgements that had to see it and did.
    pub fn detected_by<'a>(
        &self,
        broken: &'a [Broken],
    ) -> impl Iterator<Item = JudgementKind> + 'a {
        let kinds = self.expected.iter().copied();
        kinds.filter(move |kind| broken.iter().any(|it| it.kind == Some(*kind)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use plimsoll_model::certificate::JudgementOutcome;

    use super::super::scratch::check;
    use super::*;
    use xtask::workspace;

    #[test]
    fn every_patch_applies_to_the_sources() {
        for fault in &FAULTS {
            assert_eq!(check(workspace::root(), fault), Ok(()));
        }
    }

    #[test]
    fn a_patch_whose_code_has_moved_is_named() {
        let elsewhere = workspace::root().join("lab");
        let message = check(&elsewhere, &FAULTS[0]).unwrap_err();
        assert!(message.contains("due-skipped.patch") && message.contains("make the patch anew"));
    }

    #[test]
    fn every_patch_is_in_the_list() {
        let folder = fs::read_dir(workspace::root().join("lab/faults")).unwrap();
        let files: BTreeSet<String> =
            folder.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        let listed = FAULTS.iter().map(|fault| format!("{}.patch", fault.name)).collect();
        assert_eq!(files, listed);
    }

    #[test]
    fn that_too_few_judgements_were_made_is_no_sight_of_a_fault() {
        let expected = &[JudgementKind::Tight, JudgementKind::Stall];
        let calibration = Calibration::Proper;
        let fault = Fault { name: "", what: "", calibration, expected };
        let broken = |case, kind| {
            let outcome = JudgementOutcome::Broken;
            Broken::from_judgement(&Judgement { case, statistic: None, kind, outcome })
        };
        let stall = || broken(JudgementCase::Certificate, JudgementKind::Stall);
        let tight = |case| broken(case, JudgementKind::Tight);
        assert_eq!(fault.unseen(&[stall(), tight(JudgementCase::Enough)]), ["tight"]);
        assert_eq!(fault.unseen(&[tight(JudgementCase::ClosedLoop), stall()]), [""; 0]);
    }
}
