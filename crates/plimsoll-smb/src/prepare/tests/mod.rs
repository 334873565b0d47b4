//! The life of workspaces on a share in memory: written, reused, grown, repaired, removed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use plimsoll_model::units::Bytes;

use super::super::workspace::{self, Home, Layout, SeedFile, Workspace};
use super::layout::Depth;
use super::set::{self, Order, Written, clean};
use super::share::{Share, Site};
use memory::Memory;
use plimsoll_protocol::content::ContentTable;
use plimsoll_protocol::net::{GoOn, OnProgress, SetupError, SetupProgress};

pub(super) mod hostile;
mod memory;

const ROOMY: u64 = 1 << 30;
pub(super) const SEED: u64 = 5;

/// A fortieth of the method's.
fn small() -> Workspace {
    Workspace::new(20.0, 0.025)
}

struct Run<'a> {
    memory: &'a Memory,
    table: ContentTable,
    workspace: Workspace,
    knows: u32,
    stop: Arc<AtomicBool>,
    reports: Vec<SetupProgress>,
}

impl<'a> Run<'a> {
    fn new(memory: &'a Memory) -> Self {
        let (table, workspace) = (ContentTable::new(SEED), small());
        let stop = Arc::default();
        Self { memory, table, workspace, knows: 0, stop, reports: Vec::new() }
    }

    fn prepare(&mut self, clients: u32) -> Result<Written, SetupError> {
        self.prepare_until(clients, |_| GoOn::Yes)
    }

    fn prepare_until(
        &mut self,
        clients: u32,
        go_on: impl Fn(&SetupProgress) -> GoOn,
    ) -> Result<Written, SetupError> {
        let (table, workspace) = (&self.table, self.workspace);
        let depth = |client| match client < self.knows {
            true => Depth::Sizes,
            false => Depth::Content(table),
        };
        let of_client =
            |client| (Layout::of_client(table.seed(), client, workspace), depth(client));
        let layouts: Vec<_> = (0..clients).map(of_client).collect();
        let order =
            Order { layouts: &layouts, table, workspace, clients, growth: Bytes(0), channels: 3 };
        let open = |stop: &Arc<AtomicBool>| self.memory.open(stop);
        let site = Site { name: "smb://server/share", stop: &self.stop, open: &open };
        self.reports.clear();
        prepare(&site, &order, &mut |progress| {
            self.reports.push(progress);
            go_on(&progress)
        })
    }

    fn clean(&self) -> Result<Option<u64>, SetupError> {
        let open = |stop: &Arc<AtomicBool>| self.memory.open(stop);
        let site = Site { name: "smb://server/share", stop: &self.stop, open: &open };
        clean(&site, &mut |_| GoOn::Yes)
    }

    /// Checks that the share holds exactly what the numbering defines.
    fn check(&self, clients: u32) {
        for client in 0..clients {
            let home = Home::Client(client);
            for file in self.workspace.files() {
                let path = workspace::path_of(home, file);
                let stored = self.memory.content(path.as_str()).unwrap();
                assert_eq!(stored.len(), self.workspace.bytes_of(file) as usize, "{path}");
                let key = workspace::content(self.table.seed(), home, file).key;
                for (at, chunk) in stored.chunks(65_536).enumerate() {
                    let expected = self.table.bytes(key, at as u64 * 65_536, chunk.len());
                    assert!(chunk == expected, "{path} at chunk {at}");
                }
            }
            let work = workspace::work_directory(client);
            assert_eq!(self.memory.clone().list(work.as_str()).unwrap(), Some(Vec::new()));
        }
    }
}

fn seed_path(client: u32, file: u32) -> String {
    workspace::path_of(Home::Client(client), SeedFile(file)).to_string()
}

fn prepare(
    site: &Site<'_>,
    order: &Order<'_>,
    progress: &mut OnProgress<'_>,
) -> Result<Written, SetupError> {
    let opened = set::open(site, order, progress)?;
    set::write(site, order, &opened, progress)
}

#[test]
fn workspaces_are_written_reused_grown_and_removed() {
    let memory = Memory::new(ROOMY);
    memory.insert("other", None);
    let mut run = Run::new(&memory);
    let one = small().bytes();
    assert_eq!(run.prepare(3).unwrap(), Written { files: 3 * 56, bytes: 3 * one });
    assert_eq!(run.reports.last().unwrap().bytes, Bytes(3 * one));
    run.check(3);
    assert_eq!(run.prepare(3).unwrap(), Written::default());
    run.knows = 3;
    assert_eq!(run.prepare(5).unwrap(), Written { files: 2 * 56, bytes: 2 * one });
    run.check(5);
    assert_eq!(run.prepare(1).unwrap(), Written::default());
    assert_eq!(run.clean().unwrap(), Some(5 * 56));
    assert_eq!(memory.paths(), ["other"]);
    assert_eq!(run.clean().unwrap(), None);
}

#[test]
fn what_a_load_point_or_another_run_changed_is_as_it_was_before_the_next_one() {
    let memory = Memory::new(ROOMY);
    let mut run = Run::new(&memory);
    run.prepare(2).unwrap();
    let mut longer = memory.content(&seed_path(0, 3)).unwrap();
    longer.push(b'x');
    let mut shorter = memory.content(&seed_path(1, 0)).unwrap();
    shorter.pop();
    for knows in [0, 2] {
        run.knows = knows;
        memory.insert(&seed_path(0, 3), Some(&longer));
        memory.insert(&seed_path(1, 0), Some(&shorter));
        let work = workspace::work_directory(1);
        memory.insert(&format!("{work}\\made000001-0.dat"), Some(b"left"));
        memory.insert(&format!("{work}\\deep"), None);
        memory.insert(&format!("{work}\\deep\\er.dat"), Some(b"left"));
        let bytes = shorter.len() as u64 + 1;
        assert_eq!(run.prepare(2).unwrap(), Written { files: 2, bytes });
        run.check(2);
    }
}

#[test]
fn content_that_another_program_changed_is_written_again_when_the_run_does_not_know_it() {
    let memory = Memory::new(ROOMY);
    let mut run = Run::new(&memory);
    run.prepare(1).unwrap();
    let mut changed = memory.content(&seed_path(0, 50)).unwrap();
    *changed.last_mut().unwrap() ^= 1;
    memory.insert(&seed_path(0, 50), Some(&changed));
    assert_eq!(run.prepare(1).unwrap().files, 1);
    run.check(1);
}

#[test]
fn files_that_a_server_says_are_endless_are_brought_into_order_like_others() {
    let memory = Memory::new(ROOMY);
    let mut run = Run::new(&memory);
    run.prepare(1).unwrap();
    let mut changed = memory.content(&seed_path(0, 50)).unwrap();
    *changed.last_mut().unwrap() ^= 1;
    memory.insert(&seed_path(0, 50), Some(&changed));
    memory.report_bytes(u64::MAX);
    assert_eq!(run.prepare(1).unwrap().files, 56);
    run.check(1);
}

#[test]
fn a_workspace_of_another_size_is_cut_or_written_anew() {
    let memory = Memory::new(ROOMY);
    let mut run = Run::new(&memory);
    run.prepare(2).unwrap();
    run.workspace = Workspace::new(20.0, 0.05);
    run.prepare(2).unwrap();
    run.check(2);
    run.workspace = small();
    assert_eq!(run.prepare(2).unwrap().bytes, 0);
    run.check(2);
}

#[test]
fn nothing_is_written_where_it_must_not_be() {
    let memory = Memory::new(ROOMY);
    memory.insert("plimsoll-files", None);
    memory.insert("plimsoll-files\\letter.txt", Some(b"Dear"));
    let before = memory.paths();
    let mut run = Run::new(&memory);
    let refused = |error: SetupError, part: &str| {
        let message = error.to_string();
        assert!(matches!(error, SetupError::Wrong(_)) && message.contains(part), "{message}");
    };
    refused(run.prepare(1).unwrap_err(), "carries no .plimsoll, so it is not ours");
    refused(run.clean().unwrap_err(), "nothing is written or removed");
    assert_eq!(memory.paths(), before);

    let memory = Memory::new(ROOMY);
    Run::new(&memory).prepare(1).unwrap();
    let mut other = Run::new(&memory);
    other.table = ContentTable::new(6);
    refused(other.prepare(1).unwrap_err(), "--set workload.file_set_seed=5");
}

#[test]
fn a_directory_whose_making_was_cut_short_is_ours() {
    let memory = Memory::new(ROOMY);
    memory.insert("plimsoll-files", None);
    memory.insert("plimsoll-files\\.plimsoll.new", Some(b"{"));
    Run::new(&memory).prepare(1).unwrap();
    Run::new(&memory).check(1);
}

#[test]
fn too_small_a_share_is_refused_before_the_first_byte_with_numbers() {
    let memory = Memory::new(ROOMY);
    memory.report_free(40 << 20);
    let mut run = Run::new(&memory);
    let error = run.prepare(100).unwrap_err().to_string();
    assert!(error.contains("need ") && error.contains("40.0 MiB are free there"), "{error}");
    assert_eq!(memory.paths(), [""; 0]);
    run.prepare(4).unwrap();
}

#[test]
fn a_disk_that_fills_is_named_and_what_is_there_is_used_again() {
    let mut memory = Memory::new(ROOMY);
    memory.fail_after = Some(Arc::new(AtomicU64::new(1 << 20)));
    let mut run = Run::new(&memory);
    let error = run.prepare(4).unwrap_err().to_string();
    assert!(error.contains("smb://server/share: cannot write plimsoll-files\\client"), "{error}");
    assert!(error.contains("NT_STATUS_DISK_FULL") && error.contains("free some space"), "{error}");
    memory.fail_after.take().unwrap().store(0, Ordering::Relaxed);
    let mut run = Run::new(&memory);
    assert!(run.prepare(4).unwrap().bytes < 4 * small().bytes());
    run.check(4);
}

#[test]
fn a_read_only_share_is_named() {
    let mut memory = Memory::new(ROOMY);
    memory.is_read_only = true;
    let error = Run::new(&memory).prepare(1).unwrap_err().to_string();
    let expected = "smb://server/share: cannot make plimsoll-files: the server answered \
                    Create with NT_STATUS_ACCESS_DENIED; let this user write there";
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn a_stopped_preparation_goes_on_where_it_was() {
    let memory = Memory::new(ROOMY);
    let mut run = Run::new(&memory);
    let stopped = run.prepare_until(200, |at| match at.bytes.0 > 0 {
        true => GoOn::No,
        false => GoOn::Yes,
    });
    assert!(matches!(stopped, Err(SetupError::Stopped)), "{stopped:?}");
    assert!(run.prepare(200).unwrap().bytes < 200 * small().bytes());
    run.check(200);
}

#[test]
fn a_stop_is_heard_on_the_connection_that_only_looks_too() {
    let memory = Memory::new(ROOMY);
    let mut run = Run::new(&memory);
    run.prepare(1).unwrap();
    run.stop.store(true, Ordering::Relaxed);
    assert!(matches!(run.prepare(1), Err(SetupError::Stopped)));
    assert!(matches!(run.clean(), Err(SetupError::Stopped)));
    run.check(1);
}

#[test]
fn the_nic_file_and_an_empty_replay_directory_are_places_too() {
    let memory = Memory::new(ROOMY);
    let (table, workspace) = (ContentTable::new(SEED), small());
    memory.insert("plimsoll-files", None);
    let open = |stop: &Arc<AtomicBool>| memory.open(stop);
    let site = Site { name: "smb://server/share", stop: &Arc::default(), open: &open };
    for written in [1, 0] {
        let layouts = [
            (Layout::nic(SEED, 1_048_576), Depth::Content(&table)),
            (Layout::replay(), Depth::Sizes),
            (Layout::shared(SEED, workspace), Depth::Content(&table)),
        ];
        let order = Order {
            layouts: &layouts,
            table: &table,
            workspace,
            clients: 0,
            growth: Bytes(0),
            channels: 2,
        };
        let done = prepare(&site, &order, &mut |_| GoOn::Yes).unwrap();
        assert_eq!(done.files, written * 57);
        memory.insert("plimsoll-files\\replay\\left.dat", Some(b"x"));
    }
    assert_eq!(memory.content("plimsoll-files\\nic.dat").unwrap().len(), 1 << 20);
}

#[test]
fn an_agent_finds_what_is_complete_and_changes_nothing() {
    let mut memory = Memory::new(ROOMY);
    let find = |memory: &Memory, seed, workspace, clients| {
        let (stop, table) = (Arc::default(), ContentTable::new(seed));
        let open = |stop: &Arc<AtomicBool>| memory.open(stop);
        let site = Site { name: "smb://server/share", stop: &stop, open: &open };
        set::find(&site, &table, (workspace, clients)).map_err(|error| error.to_string())
    };
    let lacks = |result: Result<(), String>| {
        let refused = result.unwrap_err();
        assert!(refused.contains("what the controller has brought"), "{refused}");
    };
    memory.is_read_only = true;
    lacks(find(&memory, SEED, small(), 0));
    memory.is_read_only = false;
    Run::new(&memory).prepare(3).unwrap();
    let (paths, marker) = (memory.paths(), memory.content("plimsoll-files\\.plimsoll"));
    memory.is_read_only = true;
    for clients in [0, 1, 3] {
        find(&memory, SEED, small(), clients).unwrap();
    }
    lacks(find(&memory, SEED, small(), 4));
    lacks(find(&memory, SEED, Workspace::new(20.0, 1.0), 3));
    assert!(find(&memory, SEED + 1, small(), 3).unwrap_err().contains("of seed 5, not 6"));
    assert_eq!(memory.paths(), paths);
    assert_eq!(memory.content("plimsoll-files\\.plimsoll"), marker);
}
