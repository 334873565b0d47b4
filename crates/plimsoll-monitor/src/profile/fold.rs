//! What `perf script` prints, as folded stacks and a list of functions. Pure, and bounded: the text
//! may come from another host.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

use plimsoll_model::server_profile::ProfiledFunction;

/// Functions that are named.
const FUNCTIONS_SHOWN_MAX: usize = 20;
/// Different functions that are counted.
const FUNCTIONS_MAX: usize = 100_000;
/// Bytes of all folded stacks.
const STACKS_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Frames of a stack; the kernel takes 127 as a rule.
const FRAMES_MAX: usize = 256;
/// Bytes of a name; those of templates are longer than a chart has room for.
const NAME_BYTES_MAX: usize = 256;

/// The samples of a profile.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Folded {
    /// A line for each stack: names from the outermost to the innermost, and its samples.
    pub stacks: String,
    /// What perf sampled by.
    pub event: String,
    /// Samples of work.
    pub samples: u64,
    /// Samples of idle processors.
    pub idle_samples: u64,
    /// Samples whose stacks there was no room for.
    pub left_out_samples: u64,
    /// Functions with the most samples of their own.
    pub functions: Vec<ProfiledFunction>,
}

/// Folds line by line.
#[derive(Debug, Default)]
pub(super) struct Folder {
    stacks: BTreeMap<String, u64>,
    stacks_bytes: usize,
    functions: HashMap<Frame, Counts>,
    folded: Folded,
    sample: Option<Sample>,
}

#[derive(Debug)]
struct Sample {
    program: String,
    is_idle_task: bool,
    /// The innermost first.
    frames: Vec<Frame>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Frame {
    name: String,
    module: String,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    own: u64,
    total: u64,
}

impl Folder {
    /// Takes the next line, without its newline.
    pub(super) fn line(&mut self, line: &str) {
        if line.trim().is_empty() {
            self.end_sample();
        } else if line.starts_with('\t') {
            if let Some(sample) = self.sample.as_mut().filter(|it| it.frames.len() < FRAMES_MAX) {
                let frame = Frame::parse(line);
                // Programs without frame pointers have a row of them; one says as much.
                let is_more_of_nothing = frame.as_ref().is_some_and(Frame::is_unknown)
                    && sample.frames.last().is_some_and(Frame::is_unknown);
                sample.frames.extend(frame.filter(|_| !is_more_of_nothing));
            }
        } else {
            self.end_sample();
            self.begin_sample(line);
        }
    }

    /// `nginx 812/812 cpu-clock:ppp:`; the name may have blanks.
    fn begin_sample(&mut self, line: &str) {
        let ids = |word: &str| {
            let (pid, tid) = word.split_once('/')?;
            tid.parse::<u32>().ok()?;
            pid.parse::<u32>().ok()
        };
        let tokens: Vec<&str> = line.split_whitespace().collect();
        let Some(at) = tokens.iter().rposition(|word| ids(word).is_some()) else { return };
        if let Some(event) = tokens.get(at + 1).filter(|_| self.folded.event.is_empty()) {
            self.folded.event = clean(event.split(':').next().unwrap_or_default());
        }
        let is_idle_task = ids(tokens[at]) == Some(0);
        let program = clean(&tokens[..at].join(" "));
        self.sample = Some(Sample { program, is_idle_task, frames: Vec::new() });
    }

    fn end_sample(&mut self) {
        let Some(sample) = self.sample.take() else { return };
        let innermost = sample.frames.first().map_or("", |frame| frame.name.as_str());
        let waits = ["idle", "halt", "mwait"].iter().any(|part| innermost.contains(part));
        if sample.is_idle_task && waits {
            self.folded.idle_samples += 1;
            return;
        }
        self.folded.samples += 1;
        self.count(&sample.frames);
        let frames = sample.frames.iter().rev().map(Frame::folded);
        let stack = std::iter::once(sample.program).chain(frames).collect::<Vec<_>>().join(";");
        if let Some(samples) = self.stacks.get_mut(&stack) {
            *samples += 1;
        } else if self.stacks_bytes + stack.len() <= STACKS_BYTES_MAX {
            self.stacks_bytes += stack.len();
            self.stacks.insert(stack, 1);
        } else {
            self.folded.left_out_samples += 1;
        }
    }

    /// A function that calls itself counts once for a sample.
    fn count(&mut self, frames: &[Frame]) {
        for (index, frame) in frames.iter().enumerate() {
            let has_room = self.functions.len() < FUNCTIONS_MAX;
            if !has_room && !self.functions.contains_key(frame) {
                continue;
            }
            let counts = self.functions.entry(frame.clone()).or_default();
            counts.own += u64::from(index == 0);
            counts.total += u64::from(!frames[..index].contains(frame));
        }
    }

    pub(super) fn finish(mut self) -> Folded {
        self.end_sample();
        let Self { stacks, functions, mut folded, .. } = self;
        for (stack, samples) in stacks {
            let _ = writeln!(folded.stacks, "{stack} {samples}");
        }
        let all = folded.samples.max(1) as f64;
        let function = |(frame, counts): (Frame, Counts)| ProfiledFunction {
            name: frame.name,
            module: frame.module,
            self_samples: counts.own,
            self_ratio: counts.own as f64 / all,
            total_ratio: counts.total as f64 / all,
        };
        let mut functions: Vec<_> =
            functions.into_iter().filter(|(_, counts)| counts.own > 0).map(function).collect();
        functions
            .sort_by(|a, b| b.self_samples.cmp(&a.self_samples).then_with(|| a.name.cmp(&b.name)));
        functions.truncate(FUNCTIONS_SHOWN_MAX);
        folded.functions = functions;
        folded
    }
}

/// Module of the kernel's functions.
const KERNEL: &str = "kernel";

impl Frame {
    /// `ffffffff821f4dab default_idle ([kernel.kallsyms])`.
    fn parse(line: &str) -> Option<Self> {
        let (_address, rest) = line.trim().split_once(' ')?;
        let (name, module) = rest.rsplit_once(" (").unwrap_or((rest, "[unknown]"));
        let module = module.trim_end_matches(')');
        let module = match module {
            "[kernel.kallsyms]" | "[guest.kernel.kallsyms]" | "[kernel]" => KERNEL,
            // A module of the kernel, `[vdso]`, `[unknown]`.
            other if other.starts_with('[') => other.trim_matches(['[', ']']),
            path => path.rsplit('/').next().unwrap_or(path),
        };
        let module = clean(module);
        let name = match clean(name.trim()) {
            unknown if unknown == "[unknown]" || unknown.is_empty() => format!("[{module}]"),
            name => name,
        };
        Some(Self { name, module })
    }

    /// Neither its name nor its module is known.
    fn is_unknown(&self) -> bool {
        self.name == "[unknown]"
    }

    /// The ending that tools which draw flame graphs know the kernel's functions by.
    fn folded(&self) -> String {
        match self.module.as_str() {
            KERNEL => format!("{}_[k]", self.name),
            _ => self.name.clone(),
        }
    }
}

/// A name for a folded stack: a semicolon would end it.
fn clean(name: &str) -> String {
    let mut bytes = 0;
    let clean = |c: char| match c {
        ';' => ':',
        c if c.is_control() => '?',
        c => c,
    };
    let fits = |c: &char| {
        bytes += c.len_utf8();
        bytes <= NAME_BYTES_MAX
    };
    name.chars().map(clean).take_while(fits).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// perf 6.1.
    const TEXT: &str = "swapper     0/0     cpu-clock:ppp: \n\
        \tffffffff821f4dab pv_native_safe_halt ([kernel.kallsyms])\n\
        \tffffffff821f68b5 default_idle ([kernel.kallsyms])\n\
        \n\
        swapper     0/0     cpu-clock:ppp: \n\
        \tffffffff821f4dab net_rx_action ([kernel.kallsyms])\n\
        \tffffffff821f68b5 handle_softirqs ([kernel.kallsyms])\n\
        \n\
        nginx: worker  812/813 cpu-clock:ppp: \n\
        \tffffffff81200000 tcp_sendmsg ([kernel.kallsyms])\n\
        \t    55d0c0ffee00 ngx;writev(int, char (*)[2]) (/usr/sbin/nginx)\n\
        \t    55d0c0ffee01 [unknown] (/usr/lib/libc.so.6)\n\
        \n\
        nginx: worker  812/813 cpu-clock:ppp: \n\
        \tffffffff81200000 tcp_sendmsg ([kernel.kallsyms])\n\
        \tffffffff81200009 tcp_sendmsg ([kernel.kallsyms])\n\
        \t    7f0000000000 [unknown] ([unknown])\n\
        \t    7f0000000001 [unknown] ([unknown])\n";

    fn folded(text: &str) -> Folded {
        let mut folder = Folder::default();
        text.lines().for_each(|line| folder.line(line));
        folder.finish()
    }

    #[test]
    fn stacks_are_folded_from_the_outermost_and_idle_ones_are_left_out() {
        let folded = folded(TEXT);
        assert_eq!(
            (folded.event.as_str(), folded.samples, folded.idle_samples),
            ("cpu-clock", 3, 1)
        );
        assert_eq!(
            folded.stacks,
            "nginx: worker;[libc.so.6];ngx:writev(int, char (*)[2]);tcp_sendmsg_[k] 1\n\
             nginx: worker;[unknown];tcp_sendmsg_[k];tcp_sendmsg_[k] 1\n\
             swapper;handle_softirqs_[k];net_rx_action_[k] 1\n"
        );
        let first = &folded.functions[0];
        let shares = (first.self_samples, first.self_ratio, first.total_ratio);
        assert_eq!((first.name.as_str(), first.module.as_str()), ("tcp_sendmsg", "kernel"));
        assert_eq!(shares, (2, 2.0 / 3.0, 2.0 / 3.0), "recursion counts once");
        assert_eq!(folded.functions.len(), 2, "only those with samples of their own");
    }

    #[test]
    fn stacks_without_end_take_no_more_than_their_share_of_memory() {
        let mut folder = Folder::default();
        let name = "x".repeat(NAME_BYTES_MAX * 2);
        for sample in 0..1_200u32 {
            folder.line(&format!("{sample}{name} 1/1 cycles:"));
            for frame in 0..FRAMES_MAX * 2 {
                folder.line(&format!("\tff {sample}-{frame}{name} (lib)"));
            }
            folder.line("");
        }
        let folded = folder.finish();
        assert!(folded.stacks.len() <= STACKS_BYTES_MAX + 20 * 1_200, "{}", folded.stacks.len());
        assert!(folded.left_out_samples > 0 && folded.samples == 1_200, "{}", folded.samples);
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd(lines in prop::collection::vec("(\t|)?[a-z0-9/ :;()\\[\\]]{0,24}|.{0,12}", 0..60)) {
            let folded = folded(&lines.join("\n"));
            prop_assert!(folded.functions.len() <= FUNCTIONS_SHOWN_MAX);
        }
    }
}
