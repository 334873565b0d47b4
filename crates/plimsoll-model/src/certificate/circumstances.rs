//! What a certificate covers: the program as it was then, on the host as it was then.

use super::Certificate;

/// What figures of a host depend on, as it is for a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Circumstances {
    /// Version of the program.
    pub version: String,
    /// `release` or `debug`.
    pub build: String,
    /// Kernel release and build; absent when not readable.
    pub kernel: Option<String>,
    /// Frequency governor of the processors; absent where there is none.
    pub governor: Option<String>,
    /// How workers wait; absent where that is not settled.
    pub pacing: Option<String>,
    /// How workers stand to other programs; absent where that is not settled.
    pub priority: Option<String>,
    /// The protocol that is spoken; absent where that is not settled.
    pub protocol: Option<String>,
}

impl Certificate {
    /// What differs from what was certified, in words: "kernel 6.1, certified 6.18".
    pub fn not_covered(&self, now: &Circumstances) -> Vec<String> {
        let none = || "none".to_owned();
        let (host, instrument) = (&self.host, &self.instrument);
        let mut found = Vec::new();
        let mut compare = |what: &str, now: &str, then: &str| {
            if now != then {
                found.push(format!("{what} {now}, certified {then}"));
            }
        };
        compare("version", &now.version, &instrument.version);
        compare("build", &now.build, &instrument.build);
        let known = |text: &Option<String>| text.clone().unwrap_or_else(none);
        compare("kernel", &known(&now.kernel), &known(&host.kernel));
        compare("governor", &known(&now.governor), &known(&host.governor));
        let settled = [
            ("pacing", &now.pacing, &instrument.pacing),
            ("priority", &now.priority, &instrument.priority),
        ];
        for (what, now, then) in settled {
            if let Some(now) = now {
                compare(what, now, then);
            }
        }
        let spoken = |protocol: &&String| instrument.protocols.contains(*protocol);
        if let Some(protocol) = now.protocol.as_ref().filter(|protocol| !spoken(protocol)) {
            let then = instrument.protocols.join(", ");
            found.push(format!("protocol {protocol}, certified {then}"));
        }
        found
    }
}
