//! The faults: what each breaks, and the judgements that must see it.

/// A fault, as a patch in `lab/faults/`.
pub struct Fault {
    /// Of its patch file.
    pub name: &'static str,
    /// In the table.
    pub what: &'static str,
    /// Kinds of judgements that must not hold: the last words of their names.
    pub expected: &'static [&'static str],
}

/// Eight kinds of faults, some in more than one place.
pub const FAULTS: [Fault; 12] = [
    Fault {
        name: "due-skipped",
        what: "due ops skipped: an op that is late, or finds nobody free, is left out",
        expected: &["recorded", "stall"],
    },
    Fault {
        name: "stamp-late-due",
        what: "stamp late: due is taken from sent",
        expected: &["sent", "stall"],
    },
    Fault {
        name: "stamp-late-sent",
        what: "stamp late: sent is taken 0.12 ms after the op has left",
        expected: &["sent"],
    },
    Fault {
        name: "stamp-late-done",
        what: "stamp late: done is taken 0.3 ms after the reply was read",
        expected: &["arrived"],
    },
    Fault {
        name: "tail-dropped",
        what: "tail dropped: responses above 8 ms are not recorded",
        expected: &["recorded"],
    },
    Fault {
        name: "wrong-merge-lost",
        what: "wrong merge: what finished in the drain is lost",
        expected: &["recorded"],
    },
    Fault {
        name: "wrong-merge-place",
        what: "wrong merge: responses are merged into those without the generator's part",
        expected: &["sum"],
    },
    Fault {
        name: "window-off",
        what: "window off by a slice (0.1 s): other ops are due in it",
        expected: &["due", "recorded"],
    },
    Fault {
        name: "window-off-done",
        what: "window off by a slice (0.1 s): other ops are done in it",
        expected: &["ended"],
    },
    Fault {
        name: "think-shortened",
        what: "think time shortened by a tenth",
        expected: &["think"],
    },
    Fault {
        name: "counted-twice",
        what: "reply counted twice: one in 300",
        expected: &["recorded"],
    },
    Fault {
        name: "receive-lag-zeroed",
        what: "receive lag zeroed: done passes for arrived",
        expected: &["arrived"],
    },
];

impl Fault {
    /// Its patch, from the root of the workspace.
    pub fn patch(&self) -> String {
        format!("lab/faults/{}.patch", self.name)
    }

    /// Kinds of judgements that had to see it, and of which none did.
    pub fn unseen(&self, broken: &[String]) -> Vec<&'static str> {
        let seen: Vec<_> = self.seen(broken).collect();
        self.expected.iter().filter(|kind| !seen.contains(kind)).copied().collect()
    }

    /// Kinds of judgements that had to see it and did.
    pub fn seen<'a>(&self, broken: &'a [String]) -> impl Iterator<Item = &'static str> + 'a {
        let is_of = |kind: &str, name: &String| {
            name.strip_suffix(kind).is_some_and(|place| place.is_empty() || place.ends_with(' '))
        };
        let kinds = self.expected.iter().copied();
        // A host that was never quiet leaves judgements open; that there were too few is no sight.
        let named = broken.iter().filter(|name| !name.starts_with("enough "));
        kinds.filter(move |kind| named.clone().any(|name| is_of(kind, name)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

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
    fn a_kind_of_judgement_is_told_by_the_last_words_of_its_name() {
        let fault = Fault { name: "", what: "", expected: &["due", "stall"] };
        let names = |all: &[&str]| all.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(fault.unseen(&names(&["M/M/4 at 0.3 due", "stall"])), [""; 0]);
        let others = ["stall run", "M/D/1 at 0.9 overdue", "enough judgements due"];
        assert_eq!(fault.unseen(&names(&others)), ["due", "stall"]);
    }
}
