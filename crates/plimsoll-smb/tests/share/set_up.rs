//! What is done on a share around load points, against the real Samba and the reference server.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll_engine::worker::WorkerContext;
use plimsoll_engine::workload::Workload;
use plimsoll_model::assignment::Load;
use plimsoll_model::outcome::OpNames;
use plimsoll_model::suite::{Arrivals, InterArrival};
use plimsoll_model::target::TargetUrl;
use plimsoll_model::units::OpsPerSec;
use plimsoll_protocol::ResolvedTarget;
use plimsoll_protocol::content::ContentTable;
use plimsoll_protocol::net::{Caller, GoOn, PointPreparation as _, SetupError, SetupProgress};
use plimsoll_servers::{Login, ServerProcess};
use plimsoll_smb::logon::Signing;
use plimsoll_smb::parameters::{Pattern, SmbWorkload};
use plimsoll_smb::prepare::{PreparationRequest, SmbPreparation, clean_target};
use plimsoll_smb::server::samba::SambaRequest;
use plimsoll_smb::server::{Encryption, FilesAccess, SmbConfig, SmbFiles, SmbServer};
use plimsoll_smb::target::SmbTarget;
use plimsoll_smb::workspace::{self, Home, Workspace};
use plimsoll_testkit::program::ServerThread;
use plimsoll_testkit::smb_peers::{samba, samba_as, share_of};
use plimsoll_testkit::sockets::Sockets;

/// What the engine would run; nothing here does.
struct Nothing;

impl Workload for Nothing {
    fn op_names(&self) -> OpNames {
        OpNames(Vec::new())
    }

    fn run_worker(&self, _: WorkerContext<'_>) {}
}

/// A fortieth of the method's workspaces.
const SCALE: f64 = 0.025;

fn resolved(url: &str) -> ResolvedTarget {
    let url = TargetUrl::parse(url).unwrap();
    let address = (url.host.parse::<std::net::IpAddr>().unwrap(), url.port.unwrap()).into();
    ResolvedTarget::new(url, address)
}

/// A run on one share.
struct Run {
    preparation: SmbPreparation,
    workload: SmbWorkload,
    reports: Vec<SetupProgress>,
}

impl Run {
    fn new(url: &str) -> Self {
        Self::with(&[url], SmbWorkload::default())
    }

    fn with(urls: &[&str], workload: SmbWorkload) -> Self {
        let target = |url: &&str| SmbTarget::new(&resolved(url), &Caller::default()).unwrap();
        let preparation = SmbPreparation::new(PreparationRequest {
            targets: urls.iter().map(target).collect(),
            workload: workload.clone(),
            scale: SCALE,
            replay: None,
            make: Box::new(|_| Ok(Arc::new(Nothing))),
        });
        Self { preparation, workload, reports: Vec::new() }
    }

    fn ready(&mut self, clients: u32) -> Result<(), SetupError> {
        self.ready_until(clients, |_| GoOn::Yes)
    }

    fn ready_until(
        &mut self,
        clients: u32,
        go_on: impl Fn(&SetupProgress) -> GoOn,
    ) -> Result<(), SetupError> {
        let Self { preparation, reports, .. } = self;
        reports.clear();
        let mut progress = |at| {
            reports.push(at);
            go_on(&at)
        };
        preparation.ready(&load(clients), &Sockets, &mut progress).map(drop)
    }

    fn bytes_written(&self) -> u64 {
        self.reports.last().map_or(0, |at| at.bytes.0)
    }

    fn workspace(&self) -> Workspace {
        Workspace::new(self.workload.workspace_mib, SCALE)
    }

    /// Checks that the share holds exactly what the numbering defines.
    fn check(&self, share: &Path, clients: impl Iterator<Item = u32>) {
        let table = ContentTable::new(self.workload.file_set_seed);
        for client in clients {
            let home = Home::Client(client);
            for file in self.workspace().files() {
                let path = on_disk(share, workspace::path_of(home, file).as_str());
                let stored = fs::read(&path).unwrap();
                assert_eq!(stored.len(), self.workspace().bytes_of(file) as usize, "{path:?}");
                let key = workspace::content(table.seed(), home, file).key;
                for (at, chunk) in stored.chunks(65_536).enumerate() {
                    let expected = table.bytes(key, at as u64 * 65_536, chunk.len());
                    assert!(chunk == expected, "{path:?} in chunk {at}");
                }
            }
            let work = on_disk(share, workspace::work_directory(client).as_str());
            assert_eq!(fs::read_dir(work).unwrap().count(), 0);
        }
    }
}

fn load(clients: u32) -> Load {
    Load::Open {
        rate_ops_per_s: OpsPerSec::new(1.0).unwrap(),
        arrivals: Arrivals::Shared,
        gaps: InterArrival::Uniform,
        clients,
        backlog_ops_max: 1,
    }
}

fn on_disk(share: &Path, path: &str) -> PathBuf {
    share.join(path.replace('\\', "/"))
}

fn clean(url: &str) -> Result<String, SetupError> {
    clean_target(&resolved(url), &Sockets, &mut |_| GoOn::Yes)
}

fn message(result: Result<(), SetupError>) -> String {
    result.unwrap_err().to_string()
}

/// Written, found again, grown, repaired, removed.
fn whole_life(url: &str, share: &Path) {
    let mut run = Run::new(url);
    run.preparation.probe(&Sockets).unwrap();
    let one = run.workspace().bytes();
    run.ready(2).unwrap();
    assert_eq!(run.bytes_written(), 2 * one);
    run.check(share, 0..2);
    run.ready(2).unwrap();
    assert_eq!(run.bytes_written(), 0);
    run.ready(3).unwrap();
    assert_eq!(run.bytes_written(), one);
    let mut again = Run::new(url);
    let seed = on_disk(share, workspace::seed_directory(Home::Client(1)).as_str());
    let longer = seed.join("file03.dat");
    let mut text = fs::read(&longer).unwrap();
    text.extend([7; 5_000]);
    fs::write(&longer, text).unwrap();
    fs::OpenOptions::new().write(true).open(seed.join("file50.dat")).unwrap().set_len(9).unwrap();
    let other = seed.join("file07.dat");
    let size = fs::metadata(&other).unwrap().len() as usize;
    fs::write(&other, vec![0; size]).unwrap();
    fs::remove_file(seed.join("file20.dat")).unwrap();
    let work = on_disk(share, workspace::work_directory(2).as_str());
    fs::create_dir(work.join("deep")).unwrap();
    fs::write(work.join("deep/left.dat"), "left").unwrap();
    for path in [work.join("deep"), work.join("deep/left.dat")] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    }
    again.ready(3).unwrap();
    again.check(share, 0..3);
    assert!(again.bytes_written() < one, "{} bytes", again.bytes_written());
    assert_eq!(clean(url).unwrap(), "removed 168 files below plimsoll-files");
    assert_eq!(fs::read_dir(share).unwrap().count(), 0);
    assert_eq!(clean(url).unwrap(), "no plimsoll-files there, nothing to remove");
}

#[test]
fn samba_serves_a_whole_life() {
    let Some(server) = samba() else { return };
    whole_life(&server.url_with_password(), &share_of(&server));
}

#[test]
fn signed_and_encrypted_connections_prepare_too() {
    let Some(server) = samba() else { return };
    let url = server.url_with_password();
    for (signing, encryption) in [(Signing::Required, false), (Signing::WhenAsked, true)] {
        let workload = SmbWorkload { signing, encryption, ..SmbWorkload::default() };
        let mut run = Run::with(&[&url], workload);
        run.ready(1).unwrap();
        run.check(&share_of(&server), 0..1);
        clean(&url).unwrap();
    }
}

#[test]
fn a_directory_after_the_share_is_where_everything_goes() {
    let Some(server) = samba() else { return };
    let share = share_of(&server);
    let url = format!("{}/deep/er", server.url_with_password());
    let missing = message(Run::new(&url).ready(1));
    assert!(missing.contains("make the directory it lies in"), "{missing}");
    fs::create_dir_all(share.join("deep/er")).unwrap();
    for path in ["deep", "deep/er"] {
        fs::set_permissions(share.join(path), fs::Permissions::from_mode(0o777)).unwrap();
    }
    let mut run = Run::new(&url);
    run.ready(1).unwrap();
    run.check(&share.join("deep/er"), 0..1);
    clean(&url).unwrap();
    assert_eq!(fs::read_dir(share.join("deep/er")).unwrap().count(), 0);
}

#[test]
fn clients_are_dealt_out_to_the_shares_in_turn() {
    let (Some(first), Some(second)) = (samba(), samba()) else { return };
    let urls = [first.url_with_password(), second.url_with_password()];
    let mut run = Run::with(&[&urls[0], &urls[1]], SmbWorkload::default());
    run.ready(3).unwrap();
    run.check(&share_of(&first), [0, 2].into_iter());
    run.check(&share_of(&second), [1].into_iter());
    let client = |server: &ServerProcess, number| {
        let home = workspace::home_path(Home::Client(number));
        on_disk(&share_of(server), home.as_str())
    };
    assert!(!client(&first, 1).exists() && !client(&second, 2).exists());
}

#[test]
fn workspaces_that_are_not_to_be_saved_go_after_the_last_point() {
    let Some(server) = samba() else { return };
    let url = server.url_with_password();
    let workload =
        SmbWorkload { save_workspace: false, shared_percent: 5.0, ..SmbWorkload::default() };
    let mut run = Run::with(&[&url], workload);
    run.ready(1).unwrap();
    assert!(on_disk(&share_of(&server), "plimsoll-files/shared/file55.dat").exists());
    let mut after = |last| run.preparation.after(&load(1), last, &Sockets, &mut |_| GoOn::Yes);
    after(false).unwrap();
    assert!(share_of(&server).join("plimsoll-files").exists());
    after(true).unwrap();
    assert_eq!(fs::read_dir(share_of(&server)).unwrap().count(), 0);
}

#[test]
fn the_file_of_the_nic_suite_is_all_it_needs_and_logons_need_nothing() {
    let Some(server) = samba() else { return };
    let url = server.url_with_password();
    for (pattern, entries) in [(Pattern::Logons, 0), (Pattern::Echo, 0), (Pattern::Nic, 2)] {
        let workload = SmbWorkload { pattern, ..SmbWorkload::default() };
        let mut run = Run::with(&[&url], workload);
        run.preparation.probe(&Sockets).unwrap();
        run.ready(974).unwrap();
        let root = share_of(&server).join("plimsoll-files");
        assert_eq!(fs::read_dir(&root).map_or(0, Iterator::count), entries, "{pattern:?}");
    }
    let nic = fs::read(share_of(&server).join("plimsoll-files/nic.dat")).unwrap();
    let table = ContentTable::new(1);
    assert!(nic[..4_096] == *table.bytes(workspace::nic_content(1).key, 0, 4_096));
    assert_eq!(nic.len(), 1 << 20);
}

#[test]
fn a_foreign_directory_and_another_seed_are_refused_and_left_alone() {
    let Some(server) = samba() else { return };
    let (url, share) = (server.url_with_password(), share_of(&server));
    let root = share.join("plimsoll-files");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("letter.txt"), "Dear").unwrap();
    let refused = Run::new(&url).ready(1).unwrap_err();
    assert!(matches!(refused, SetupError::Wrong(_)), "{refused}");
    assert!(refused.to_string().contains("carries no .plimsoll, so it is not ours"), "{refused}");
    assert!(clean(&url).is_err());
    assert_eq!(fs::read_dir(&root).unwrap().count(), 1);
    fs::remove_dir_all(&root).unwrap();
    Run::new(&url).ready(1).unwrap();
    let workload = SmbWorkload { file_set_seed: 6, ..SmbWorkload::default() };
    let other = message(Run::with(&[&url], workload).ready(1));
    assert!(other.contains("--set workload.file_set_seed=1"), "{other}");
}

#[test]
fn a_share_that_is_too_small_is_refused_before_the_first_byte() {
    let login = Some(Login::with_new_password("plimsoll").unwrap());
    let request = SambaRequest { login, share_bytes: Some(64 << 20), ..SambaRequest::default() };
    let Some(server) = samba_as(&request) else { return };
    let url = server.url_with_password();
    let error = message(Run::new(&url).ready(100));
    assert!(error.contains("more, ") && error.contains("are free there"), "{error}");
    assert_eq!(clean(&url).unwrap(), "no plimsoll-files there, nothing to remove");
    let mut run = Run::new(&url);
    let most = run.preparation.clients_max(&Sockets).unwrap().unwrap();
    assert!((2..100).contains(&most), "{most}");
    run.ready(most).unwrap();
    // What is prepared is no longer free, and counts as before.
    let still = Run::new(&url).preparation.clients_max(&Sockets).unwrap().unwrap();
    assert!(still.abs_diff(most) <= 1, "{still} {most}");
    let error = message(Run::new(&url).ready(most + 2));
    assert!(error.contains("are free there"), "{error}");
}

#[test]
fn a_share_that_may_only_be_read_says_so() {
    let login = Some(Login::with_new_password("plimsoll").unwrap());
    let request = SambaRequest { login, read_only: true, ..SambaRequest::default() };
    let Some(server) = samba_as(&request) else { return };
    let error = message(Run::new(&server.url_with_password()).ready(1));
    assert!(error.contains("/share: cannot make plimsoll-files: "), "{error}");
    assert!(error.contains("NT_STATUS_ACCESS_DENIED; let this user write there"), "{error}");
}

#[test]
fn who_may_not_log_on_hears_it_from_the_probe() {
    let Some(server) = samba() else { return };
    let url = format!("smb://nobody:wrong@{}/share", server.address);
    let mut run = Run::new(&url);
    let login = server.login.clone().unwrap();
    let wrong = format!("smb://{}:wrong@{}/share", login.user, server.address);
    let error = message(Run::new(&wrong).preparation.probe(&Sockets));
    assert!(error.contains("NT_STATUS_LOGON_FAILURE"), "{error}");
    assert!(!error.contains("wrong@"), "{error}");
    // Whether a stranger is a guest is the server's choice; either an error is reported or it
    // works.
    let _ = run.preparation.probe(&Sockets);
}

#[test]
fn a_user_whom_the_server_takes_for_a_guest_hears_it_from_the_probe() {
    let Some(server) = samba_as(&SambaRequest::default()) else { return };
    let url = format!("smb://ann:word@{}/share", server.address);
    let refused = Run::new(&url).preparation.probe(&Sockets).unwrap_err();
    assert!(matches!(refused, SetupError::Unusable(_)), "{refused}");
    assert!(refused.to_string().contains("took \"ann\" for a guest"), "{refused}");
    let guest = format!("smb://{}/share", server.address);
    Run::new(&guest).preparation.probe(&Sockets).unwrap();
}

#[test]
fn a_stopped_preparation_goes_on_where_it_was() {
    let Some(server) = samba() else { return };
    let url = server.url_with_password();
    let mut run = Run::new(&url);
    let stopped = run.ready_until(300, |at| match at.bytes.0 > 0 {
        true => GoOn::No,
        false => GoOn::Yes,
    });
    assert!(matches!(stopped, Err(SetupError::Stopped)), "{stopped:?}");
    let was = run.bytes_written();
    assert!(was > 0);
    run.ready(20).unwrap();
    run.check(&share_of(&server), 0..20);
}

#[test]
fn the_reference_server_serves_a_whole_life() {
    let dir = tempfile::tempdir().unwrap();
    let files = SmbFiles::Directory { root: dir.path().to_owned(), access: FilesAccess::ReadWrite };
    let server = SmbServer::bind(&SmbConfig {
        listen: "127.0.0.1:0".parse().unwrap(),
        files,
        login: None,
        encryption: Encryption::AsClient,
        cores: Vec::new(),
        work: plimsoll_servers::delay::Work::default(),
    })
    .unwrap();
    let url = server.url();
    let _serving = ServerThread::new(move |stop| server.serve_until(stop));
    whole_life(&url, dir.path());
}
