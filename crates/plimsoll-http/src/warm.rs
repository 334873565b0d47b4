//! `conditioning = "warm"`: the whole file set is read once through the server, by the measured
//! session, before the first load point; what the server and its host cache of it is then theirs
//! to choose.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_engine::interface::{LinkKind, Session};
use plimsoll_engine::workload::Workload;
use plimsoll_model::assignment::Load;
use plimsoll_model::outcome::{OpKind, OpStatus};
use plimsoll_model::units::{Bytes, Nanos};
use plimsoll_protocol::ResolvedTarget;
use plimsoll_protocol::blocking::{Blocking, BlockingError, Ended};
use plimsoll_protocol::net::{
    Channel, Dial, GoOn, OnProgress, PointPreparation, SetupError, SetupProgress, SourcePort,
};

use super::fileset::{FileId, directory_bytes, files_of_directory};
use super::h2_session::H2Session;
use super::reader::Plain;
use super::session::HttpSession;
use super::site::{HttpOp, Request, WorkerSite};
use super::tls::Tls;
use super::transport::TlsLoad;
use super::wire::request::Method;
use super::workload::HttpLoad;

/// A server may close a kept connection after each reply; the file is then requested once more.
const TRIES_MAX: u32 = 2;

/// A load whose file set is read before the first point.
pub(crate) struct Warming {
    /// For the engine.
    pub load: Arc<HttpLoad>,
    /// The servers, in the order of the load's sites.
    pub targets: Vec<ResolvedTarget>,
    /// Directories of the file set.
    pub directories: u32,
    /// Of the requests, as the sites have them.
    pub method: Method,
    /// Longest wait for a reply.
    pub timeout: Duration,
    /// It has been read.
    pub is_warm: bool,
}

impl PointPreparation for Warming {
    fn probe(&mut self, dial: &dyn Dial) -> Result<(), SetupError> {
        self.targets.iter().try_for_each(|target| channel(target, dial).map(drop))
    }

    fn ready(
        &mut self,
        _: &Load,
        dial: &dyn Dial,
        progress: &mut OnProgress<'_>,
    ) -> Result<Arc<dyn Workload>, SetupError> {
        if !self.is_warm {
            for at in 0..self.targets.len() {
                self.read_all(at, dial, progress)?;
            }
            self.is_warm = true;
        }
        Ok(Arc::clone(&self.load) as Arc<dyn Workload>)
    }

    fn attach(
        &mut self,
        _: &Load,
        _: Option<u32>,
        _: &dyn Dial,
    ) -> Result<Arc<dyn Workload>, SetupError> {
        Ok(Arc::clone(&self.load) as Arc<dyn Workload>)
    }
}

impl Warming {
    fn read_all(
        &self,
        at: usize,
        dial: &dyn Dial,
        progress: &mut OnProgress<'_>,
    ) -> Result<(), SetupError> {
        let site = || WorkerSite::new(Arc::clone(&self.load.sites[at]));
        let (reader, no_timeout) = (|| Plain::Unread, Nanos::ZERO);
        match self.load.h2 {
            None => {
                let session = || HttpSession::new(site(), reader(), no_timeout);
                self.read_through(session, at, dial, progress)
            }
            Some(settings) => {
                let session = || H2Session::new(site(), settings, reader(), no_timeout);
                self.read_through(session, at, dial, progress)
            }
        }
    }

    fn read_through<S: Session<Op = HttpOp>>(
        &self,
        session: impl Fn() -> S,
        at: usize,
        dial: &dyn Dial,
        progress: &mut OnProgress<'_>,
    ) -> Result<(), SetupError> {
        let tls = self.load.tls.iter().flat_map(TlsLoad::sites).nth(at);
        match tls {
            None => self.read_by(session, &self.targets[at], dial, progress),
            Some(tls) => {
                let secure = || Tls::new(session(), tls.clone());
                self.read_by(secure, &self.targets[at], dial, progress)
            }
        }
    }

    fn read_by<S: Session<Op = HttpOp>>(
        &self,
        session: impl Fn() -> S,
        target: &ResolvedTarget,
        dial: &dyn Dial,
        progress: &mut OnProgress<'_>,
    ) -> Result<(), SetupError> {
        let mut kept = None;
        let total = u64::from(self.directories);
        for directory in 0..self.directories {
            let done = u64::from(directory);
            let bytes = Bytes(done * directory_bytes());
            if progress(SetupProgress { doing: "reading files", done, total, bytes }) == GoOn::No {
                return Err(SetupError::Stopped);
            }
            for file in files_of_directory(directory) {
                self.read_one(file, &session, &mut kept, target, dial)?;
            }
        }
        Ok(())
    }

    fn read_one<S: Session<Op = HttpOp>>(
        &self,
        file: FileId,
        session: &impl Fn() -> S,
        kept: &mut Option<Blocking<S>>,
        target: &ResolvedTarget,
        dial: &dyn Dial,
    ) -> Result<(), SetupError> {
        let request = Request::File(file);
        let (kind, method) = (OpKind(file.class), self.method);
        let op = HttpOp { kind, request, method, verify: false, key: 0 };
        let mut message = String::new();
        for _ in 0..TRIES_MAX {
            let mut client = match kept.take() {
                Some(client) => client,
                None => Blocking::new(session(), channel(target, dial)?, dial.stop())
                    .silent_for(self.timeout),
            };
            match client.run(op) {
                Ok(Ended { outcome, detail, .. }) => match outcome.status {
                    OpStatus::Failed(_) => message = detail,
                    OpStatus::Ok | OpStatus::ExpectedFailure | OpStatus::Unexpected { .. } => {
                        *kept = Some(client);
                        return Ok(());
                    }
                },
                Err(BlockingError::Stopped) => return Err(SetupError::Stopped),
                Err(broken) => message = broken.to_string(),
            }
        }
        Err(SetupError::Unusable(format!(
            "{}: the file set was being read, as conditioning = \"warm\" wants, and then: {message}; \
             see whether the server holds the whole set (plimsoll prepare), or set \
             conditioning=as_found",
            target.url
        )))
    }
}

/// A connection to a target.
pub(crate) fn channel(
    target: &ResolvedTarget,
    dial: &dyn Dial,
) -> Result<Box<dyn Channel>, SetupError> {
    let dialled = match &target.unix {
        Some(path) => dial.dial_unix(path),
        None => dial.dial(target.address, LinkKind::Stream, SourcePort::Any),
    };
    dialled.map_err(|e| SetupError::Unusable(format!("{}: {e}", target.url)))
}
