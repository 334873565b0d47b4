//! The batch: requests that wait, requests at work, the end of the step, and the prefixes of
//! prompts that were computed before. The law is in the parent.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::{BatchSpec, Token, TokenRequest};

/// Tokens of a block.
pub const BLOCK_TOKENS: u32 = 16;

/// Current and total counts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    /// Requests at work.
    pub running: u64,
    /// Requests that wait for a slot or for room.
    pub waiting: u64,
    /// Tokens that those at work have room for.
    pub reserved_tokens: u64,
    /// Requests that lost their tokens to others, each time.
    pub preemptions: u64,
    /// Tokens of prompts that are through.
    pub prompt_tokens: u64,
    /// Tokens given.
    pub generation_tokens: u64,
    /// Prompt tokens looked up in the prefix cache.
    pub prefix_queries: u64,
    /// Those that were there.
    pub prefix_hits: u64,
}

/// The batch and its queue.
pub(super) struct Batch {
    spec: BatchSpec,
    waiting: VecDeque<Job>,
    /// In order of admission.
    running: Vec<Job>,
    /// End of the step.
    until_ns: Option<u64>,
    cache: Option<PrefixCache>,
    counts: Counts,
}

struct Job {
    id: u64,
    request: TokenRequest,
    /// Tokens given.
    given: u32,
    /// Tokens still to be computed before it can have one.
    prompt_left: u32,
    /// Of its prompt in the cache, when it was first admitted.
    cached_tokens: Option<u32>,
    /// It has a token at the end of the step.
    gets: bool,
    is_gone: bool,
}

impl Job {
    /// The prompt, what was given, and the token that is next.
    fn reserved_tokens(&self) -> u64 {
        u64::from(self.request.prompt_tokens) + u64::from(self.given) + 1
    }

    fn prompt_blocks(&self) -> &[u64] {
        let whole = (self.request.prompt_tokens / BLOCK_TOKENS) as usize;
        &self.request.blocks[..whole.min(self.request.blocks.len())]
    }
}

impl Batch {
    pub(super) fn new(spec: BatchSpec) -> Self {
        Self {
            spec,
            waiting: VecDeque::new(),
            running: Vec::new(),
            until_ns: None,
            cache: spec.has_prefix_cache.then(|| PrefixCache::new(spec.kv_tokens)),
            counts: Counts::default(),
        }
    }

    pub(super) fn arrive(&mut self, now_ns: u64, id: u64, request: TokenRequest) {
        let prompt_left = request.prompt_tokens;
        let (cached_tokens, gets, is_gone) = (None, false, false);
        self.waiting.push_back(Job {
            id,
            request,
            given: 0,
            prompt_left,
            cached_tokens,
            gets,
            is_gone,
        });
        if self.until_ns.is_none() {
            self.start_step(now_ns);
        }
    }

    /// One at work leaves at the end of the step.
    pub(super) fn cancel(&mut self, id: u64) {
        self.waiting.retain(|job| job.id != id);
        if let Some(job) = self.running.iter_mut().find(|job| job.id == id) {
            job.is_gone = true;
        }
    }

    pub(super) fn next_event_ns(&self) -> Option<u64> {
        self.until_ns
    }

    pub(super) fn advance(&mut self, now_ns: u64, give: &mut impl FnMut(Token)) {
        while let Some(until_ns) = self.until_ns.filter(|until_ns| *until_ns <= now_ns) {
            self.end_step(until_ns, give);
            self.start_step(until_ns);
        }
    }

    pub(super) fn counts(&self) -> Counts {
        Counts {
            running: self.running.len() as u64,
            waiting: self.waiting.len() as u64,
            reserved_tokens: self.reserved_tokens(),
            ..self.counts
        }
    }

    fn reserved_tokens(&self) -> u64 {
        self.running.iter().map(Job::reserved_tokens).sum()
    }

    fn end_step(&mut self, at_ns: u64, give: &mut impl FnMut(Token)) {
        for job in self.running.iter_mut().filter(|job| job.gets && !job.is_gone) {
            job.given += 1;
            if job.given == 1 {
                self.counts.prompt_tokens += u64::from(job.request.prompt_tokens);
                if let Some(cache) = &mut self.cache {
                    cache.keep(job.prompt_blocks());
                }
            }
            self.counts.generation_tokens += 1;
            let cached_tokens = job.cached_tokens.unwrap_or(0);
            give(Token { id: job.id, at_ns, number: job.given, cached_tokens });
        }
        let cache = &mut self.cache;
        self.running.retain(|job| {
            let is_done = job.given == job.request.output_tokens;
            if let Some(cache) = cache.as_mut().filter(|_| is_done) {
                cache.keep(&job.request.blocks);
            }
            !is_done && !job.is_gone
        });
    }

    fn start_step(&mut self, at_ns: u64) {
        if !self.make_room() {
            self.admit();
        }
        if self.running.is_empty() {
            self.until_ns = None;
            return;
        }
        let (mut prompt_tokens, mut given) = (0, 0);
        for job in &mut self.running {
            let taken = job.prompt_left.min(self.spec.chunk_tokens - prompt_tokens);
            job.prompt_left -= taken;
            prompt_tokens += taken;
            job.gets = job.prompt_left == 0;
            given += u64::from(job.gets);
        }
        self.until_ns = Some(at_ns + self.step_ns(prompt_tokens, given));
    }

    fn step_ns(&self, prompt_tokens: u32, given: u64) -> u64 {
        let BatchSpec { step, step_per_slot, prefill_tokens_per_s, .. } = self.spec;
        let prefill_ns = f64::from(prompt_tokens) * 1e9 / prefill_tokens_per_s;
        step.0 + step_per_slot.0 * given + prefill_ns.round() as u64
    }

    /// Preempts the newest until the others have room for their next token. Was anybody?
    fn make_room(&mut self) -> bool {
        let before = self.counts.preemptions;
        let mut reserved = self.reserved_tokens();
        while reserved > self.spec.kv_tokens {
            let Some(mut job) = self.running.pop() else { break };
            reserved -= job.reserved_tokens();
            job.prompt_left = job.request.prompt_tokens + job.given;
            self.counts.preemptions += 1;
            self.waiting.push_front(job);
        }
        self.counts.preemptions > before
    }

    fn admit(&mut self) {
        let mut reserved = self.reserved_tokens();
        while self.running.len() < self.spec.slots as usize {
            let Some(job) = self.waiting.front() else { return };
            reserved += job.reserved_tokens();
            if reserved > self.spec.kv_tokens {
                return;
            }
            let Some(mut job) = self.waiting.pop_front() else { return };
            self.look_up(&mut job);
            self.running.push(job);
        }
    }

    /// Cached tokens need not be computed, except the last token of the prompt.
    fn look_up(&mut self, job: &mut Job) {
        let Some(cache) = &mut self.cache else { return };
        let prompt_tokens = job.request.prompt_tokens;
        let cached = cache.leading(job.prompt_blocks()) * BLOCK_TOKENS;
        let cached = cached.min((prompt_tokens - 1) / BLOCK_TOKENS * BLOCK_TOKENS);
        job.prompt_left -= cached;
        if job.cached_tokens.is_none() {
            job.cached_tokens = Some(cached);
            self.counts.prefix_queries += u64::from(prompt_tokens);
            self.counts.prefix_hits += u64::from(cached);
        }
    }
}

/// The prefix cache: blocks by the hash of everything up to their end; the least recently used is
/// evicted first.
pub(super) struct PrefixCache {
    blocks_max: usize,
    /// When each was last needed.
    used: HashMap<u64, u64>,
    by_use: BTreeMap<u64, u64>,
    uses: u64,
}

impl PrefixCache {
    /// With room for `tokens`.
    pub(super) fn new(tokens: u64) -> Self {
        let blocks_max = usize::try_from(tokens / u64::from(BLOCK_TOKENS)).unwrap_or(usize::MAX);
        Self { blocks_max, used: HashMap::new(), by_use: BTreeMap::new(), uses: 0 }
    }

    /// How many of the first blocks are there.
    pub(super) fn leading(&mut self, blocks: &[u64]) -> u32 {
        let cached = blocks.iter().take_while(|block| self.used.contains_key(block)).count();
        // The end of a prompt is evicted before its beginning, without which it is useless.
        blocks[..cached].iter().rev().for_each(|block| self.touch(*block));
        cached as u32
    }

    pub(super) fn keep(&mut self, blocks: &[u64]) {
        blocks.iter().rev().for_each(|block| self.touch(*block));
        while self.used.len() > self.blocks_max {
            let Some((_, oldest)) = self.by_use.pop_first() else { return };
            self.used.remove(&oldest);
        }
    }

    fn touch(&mut self, block: u64) {
        self.uses += 1;
        if let Some(before) = self.used.insert(block, self.uses) {
            self.by_use.remove(&before);
        }
        self.by_use.insert(self.uses, block);
    }
}
