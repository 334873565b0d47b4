//! The graph of a journey's pages: which can be reached, and which variables every way to a page has
//! taken.

use std::collections::BTreeSet;

/// A page as its graph knows it.
#[derive(Clone, Debug, Default)]
pub(super) struct PageNode {
    /// Pages that may follow, by index.
    pub(super) next: Vec<usize>,
    /// Its requests.
    pub(super) requests: Vec<RequestNode>,
    /// The further ones do not wait for each other.
    pub(super) is_parallel: bool,
}

/// A request: what it uses and then takes, by the indexes of the variables.
#[derive(Clone, Debug, Default)]
pub(super) struct RequestNode {
    pub(super) uses: BTreeSet<u16>,
    pub(super) takes: BTreeSet<u16>,
}

/// What is wrong with the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GraphFault {
    /// No way leads to this page.
    Unreachable { page: usize },
    /// This request of this page uses a variable that is not taken on every way to it.
    NotTaken { page: usize, request: usize, variable: u16 },
}

/// Looks for a fault of a journey that begins with any of `starts`.
pub(super) fn find_fault(pages: &[PageNode], starts: &[usize]) -> Option<GraphFault> {
    // Before the page, on every way to it; `None` while no way is known.
    let mut taken: Vec<Option<BTreeSet<u16>>> = vec![None; pages.len()];
    let mut changed = starts.to_vec();
    starts.iter().for_each(|start| taken[*start] = Some(BTreeSet::new()));
    while let Some(page) = changed.pop() {
        let Some(mut after) = taken.get(page).cloned().flatten() else { continue };
        after.extend(pages[page].requests.iter().flat_map(|request| &request.takes));
        for next in &pages[page].next {
            let before = &mut taken[*next];
            let both = match before.as_ref() {
                None => after.clone(),
                Some(before) => before.intersection(&after).copied().collect(),
            };
            if before.as_ref() != Some(&both) {
                *before = Some(both);
                changed.push(*next);
            }
        }
    }
    for (page, (node, taken)) in pages.iter().zip(taken).enumerate() {
        let Some(mut taken) = taken else { return Some(GraphFault::Unreachable { page }) };
        for (request, its) in node.requests.iter().enumerate() {
            if let Some(variable) = its.uses.difference(&taken).next().copied() {
                return Some(GraphFault::NotTaken { page, request, variable });
            }
            if request == 0 || !node.is_parallel {
                taken.extend(&its.takes);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(next: &[usize], uses: &[u16], takes: &[u16]) -> PageNode {
        let uses = uses.iter().copied().collect();
        let takes = takes.iter().copied().collect();
        let requests = vec![RequestNode { uses, takes }];
        PageNode { next: next.to_vec(), requests, is_parallel: false }
    }

    #[test]
    fn a_variable_must_be_taken_on_every_way() {
        let straight = [page(&[1], &[], &[7]), page(&[1], &[7], &[])];
        assert_eq!(find_fault(&straight, &[0]), None);
        // Page 2 is reached with and without page 1.
        let skipped = [page(&[1, 2], &[], &[]), page(&[2], &[], &[7]), page(&[], &[7], &[])];
        assert_eq!(
            find_fault(&skipped, &[0]),
            Some(GraphFault::NotTaken { page: 2, request: 0, variable: 7 })
        );
        let own = [page(&[], &[7], &[7])];
        assert_eq!(
            find_fault(&own, &[0]),
            Some(GraphFault::NotTaken { page: 0, request: 0, variable: 7 })
        );
    }

    #[test]
    fn requests_in_flight_together_take_nothing_for_each_other() {
        let request = |uses: &[u16], takes: &[u16]| RequestNode {
            uses: uses.iter().copied().collect(),
            takes: takes.iter().copied().collect(),
        };
        let requests = vec![request(&[], &[7]), request(&[7], &[8]), request(&[8], &[])];
        let one = PageNode { requests, ..PageNode::default() };
        assert_eq!(find_fault(std::slice::from_ref(&one), &[0]), None);
        let parallel = PageNode { is_parallel: true, ..one };
        assert_eq!(
            find_fault(&[parallel], &[0]),
            Some(GraphFault::NotTaken { page: 0, request: 2, variable: 8 })
        );
    }

    #[test]
    fn a_page_without_a_way_to_it_is_a_fault() {
        let pages = [page(&[], &[], &[]), page(&[0], &[], &[])];
        assert_eq!(find_fault(&pages, &[0]), Some(GraphFault::Unreachable { page: 1 }));
        assert_eq!(find_fault(&pages, &[1]), None);
        let skipped = [page(&[1], &[], &[7]), page(&[], &[7], &[])];
        assert_eq!(find_fault(&skipped, &[0]), None);
        let fault = GraphFault::NotTaken { page: 1, request: 0, variable: 7 };
        assert_eq!(find_fault(&skipped, &[0, 1]), Some(fault));
    }
}
