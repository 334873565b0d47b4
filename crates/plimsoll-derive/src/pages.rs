//! The pages of a model: the frequent ones of the log, and one for what is left.

use std::collections::HashMap;

use crate::paths::{HashKeyed, PathTable, is_resource};
use crate::request::{OUTCOMES, Outcome, PathId, Request};

/// Pages of users, and of bots; journeys have 200 in all.
const PAGES_MAX: [usize; 2] = [130, 50];
/// Kinds of resources.
const RESOURCES_MAX: usize = 150;

/// Whose requests: users are 0, bots 1.
pub(crate) type Visitor = usize;

/// What the requests of a model ask for: a page, or a resource of pages.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// Such as `/item/*`; `None` for what is left.
    pub text: Option<String>,
    /// What its replies mean.
    pub outcome: Outcome,
    /// Requests.
    pub requests: u64,
    /// Its paths, each with its requests.
    pub paths: Vec<(PathId, u32)>,
}

/// Pages of users and of bots, and resources of both.
#[derive(Default)]
pub(crate) struct Pages {
    pub pages: [Vec<Target>; 2],
    pub resources: Vec<Target>,
    by_path: Vec<PathNumbers>,
}

/// Of one path the number of its page for each visitor and outcome, and of its resource.
#[derive(Clone, Copy)]
struct PathNumbers {
    pages: [[u16; OUTCOMES]; 2],
    resources: [u16; OUTCOMES],
}

/// No request has this visitor and outcome.
const NO_NUMBER: u16 = u16::MAX;

/// A list of targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Page(Visitor),
    Resource,
}

const ALL_OUTCOMES: [Outcome; 3] = [Outcome::Good, Outcome::Redirect, Outcome::ClientError];

impl Pages {
    /// Chooses them: the most frequent ones.
    pub fn choose(paths: &PathTable) -> Self {
        let none =
            PathNumbers { pages: [[NO_NUMBER; OUTCOMES]; 2], resources: [NO_NUMBER; OUTCOMES] };
        let mut pages = Self { by_path: vec![none; paths.len()], ..Self::default() };
        for kind in [Kind::Page(0), Kind::Page(1), Kind::Resource] {
            pages.choose_kind(kind, paths);
        }
        pages
    }

    fn choose_kind(&mut self, kind: Kind, paths: &PathTable) {
        let mut targets: HashKeyed<[(u64, PathId); 3]> = HashKeyed::default();
        for (id, entry) in paths.iter().filter(|(id, _)| is_of_kind(kind, *id, paths)) {
            let sums = targets.entry(entry.page_key).or_insert([(0, id); 3]);
            for (sum, outcome) in sums.iter_mut().zip(ALL_OUTCOMES) {
                sum.0 += u64::from(count(kind, entry.counts, outcome));
            }
        }
        let with_outcome = |(key, sums): (&u64, &[(u64, PathId); 3])| {
            let (key, sums) = (*key, *sums);
            let all = sums.into_iter().zip(ALL_OUTCOMES);
            all.map(move |((requests, id), outcome)| (requests, id, key, outcome))
        };
        let mut all: Vec<_> = targets.iter().flat_map(with_outcome).filter(|it| it.0 > 0).collect();
        // Ids in the order of the log make equal counts come in one order.
        all.sort_unstable_by_key(|(requests, id, _, outcome)| {
            (std::cmp::Reverse(*requests), *id, *outcome)
        });
        let most = match kind {
            Kind::Page(visitor) => PAGES_MAX[visitor],
            Kind::Resource => RESOURCES_MAX,
        };
        let (mut list, mut numbers): (Vec<Target>, HashMap<_, u16>) = (Vec::new(), HashMap::new());
        for (rank, (requests, id, key, outcome)) in all.into_iter().enumerate() {
            if rank < most {
                numbers.insert((Some(key), outcome), list.len() as u16);
                let text = Some(paths.page_text(id));
                list.push(Target { text, outcome, requests, paths: Vec::new() });
                continue;
            }
            let number = *numbers.entry((None, outcome)).or_insert_with(|| {
                list.push(Target { text: None, outcome, requests: 0, paths: Vec::new() });
                list.len() as u16 - 1
            });
            list[usize::from(number)].requests += requests;
        }
        for (id, entry) in paths.iter().filter(|(id, _)| is_of_kind(kind, *id, paths)) {
            for outcome in ALL_OUTCOMES {
                let requests = count(kind, entry.counts, outcome);
                let number = numbers.get(&(Some(entry.page_key), outcome));
                let Some(number) = number.or_else(|| numbers.get(&(None, outcome))) else {
                    continue;
                };
                let all = &mut self.by_path[id.0 as usize];
                match kind {
                    Kind::Page(visitor) => all.pages[visitor][outcome as usize] = *number,
                    Kind::Resource => all.resources[outcome as usize] = *number,
                }
                if requests > 0 {
                    list[usize::from(*number)].paths.push((id, requests));
                }
            }
        }
        match kind {
            Kind::Page(visitor) => self.pages[visitor] = list,
            Kind::Resource => self.resources = list,
        }
    }

    /// Number of the page that a request is.
    pub fn page(&self, request: &Request) -> Option<u16> {
        let numbers = &self.by_path[request.path.0 as usize].pages[usize::from(request.is_bot)];
        Some(numbers[request.outcome() as usize]).filter(|number| *number != NO_NUMBER)
    }

    /// Number of the resource that a request is; `None` for a page.
    pub fn resource(&self, request: &Request) -> Option<u16> {
        let numbers = &self.by_path[request.path.0 as usize].resources;
        Some(numbers[request.outcome() as usize]).filter(|number| *number != NO_NUMBER)
    }
}

/// Every path may be a page: resources that no page precedes are.
fn is_of_kind(kind: Kind, id: PathId, paths: &PathTable) -> bool {
    kind != Kind::Resource || is_resource(paths.text(id))
}

fn count(kind: Kind, counts: [[u32; 3]; 2], outcome: Outcome) -> u32 {
    match kind {
        Kind::Page(visitor) => counts[visitor][outcome as usize],
        Kind::Resource => counts[0][outcome as usize] + counts[1][outcome as usize],
    }
}
