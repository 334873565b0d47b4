//! The reference server of application transactions: one thread that watches all connections, and
//! a bounded pool of service threads behind it, which do the work.
//!
//! `docs/app-protocol.md` specifies its replies, `docs/app-server.md` how to run it. It is a server
//! to measure against: anyone who reaches it may use it.

pub mod calibrated;
mod channel;
mod client;
mod memory;
mod metrics;
mod pool;
mod root;
mod scrape;
mod segments;
mod service;
mod troubles;
mod watcher;
mod work;

use std::net::{SocketAddr, TcpListener};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::wire::{VERSION, Welcome, work_block};
use rustix::process::{Resource, getrlimit};

pub use memory::MEMORY_BYTES_MIN;
pub use root::{MARKER, SegmentsRoot};
pub use segments::Durability;
pub use troubles::{AppServerError, Troubles};

use memory::MemoryLimit;
use metrics::Metrics;
use plimsoll_servers::clock::Deadline;
use plimsoll_servers::delay::Work;
use plimsoll_servers::timed::Clients;
use plimsoll_servers::{ServerError, Stop, cores, listen};
use pool::Pool;
use root::Root;
use segments::{PageCache, Segments};
use service::Shared;
use watcher::Watcher;
use work::Means;

/// Service threads in addition to one per processor: as the method has them at 60 clients.
pub const THREADS_BASE: u32 = 47;
/// The most service threads that may be requested: they are threads of the system.
pub const THREADS_MAX: u32 = 4_096;
/// Default of the largest segment.
pub const SEGMENT_BYTES_MAX: u64 = 64 << 20;
/// Default of the connections served at a time.
pub const CONNECTIONS_MAX: u32 = 8_192;
/// How long a begun request, or a reply, may take by default.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// How long requests in progress may take by default once the server is ending.
pub const END_TIMEOUT: Duration = Duration::from_millis(1_500);

/// Descriptors that are neither connections nor segments, and those of clients turned away.
const DESCRIPTORS_RESERVED: u64 = 64 + 256;
/// Stack of a thread: calls are shallow, but unoptimised builds put 64 KiB on it more than once.
/// Untouched pages take no memory.
const STACK_BYTES: usize = 1 << 20;
/// How long threads may take to end before they are left to the end of the process.
const HOME_WAIT: Duration = Duration::from_millis(300);

/// What to serve and where.
#[derive(Clone, Debug)]
pub struct AppConfig {
    /// Address to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Where the data segments are.
    pub root: SegmentsRoot,
    /// Service threads; `None`: [`THREADS_BASE`] and one per processor it may use.
    pub threads: Option<NonZeroU32>,
    /// Whether a write is on stable storage before its reply leaves.
    pub durability: Durability,
    /// Largest segment a client may have, in bytes.
    pub segment_bytes_max: u64,
    /// Connections served at a time; fewer where the process may not have as many descriptors.
    pub connections_max: u32,
    /// How long a request that has begun, or a reply, may take.
    pub request_timeout: Duration,
    /// How long requests in progress may take once the server is ending.
    pub end_timeout: Duration,
    /// Memory this process may use, page cache included; needs root.
    pub memory_bytes: Option<u64>,
    /// Where to serve the metrics over HTTP.
    pub metrics: Option<SocketAddr>,
    /// Cores to keep to; empty: any.
    pub cores: Vec<u32>,
    /// Work for each request, in addition to what it requests.
    pub work: Work,
    /// Receives reports of failing storage.
    pub troubles: Troubles,
}

impl AppConfig {
    /// The defaults of the command line.
    pub fn new(listen: SocketAddr) -> Self {
        Self {
            listen,
            root: SegmentsRoot::Temporary,
            threads: None,
            durability: Durability::None,
            segment_bytes_max: SEGMENT_BYTES_MAX,
            connections_max: CONNECTIONS_MAX,
            request_timeout: REQUEST_TIMEOUT,
            end_timeout: END_TIMEOUT,
            memory_bytes: None,
            metrics: None,
            cores: Vec::new(),
            work: Work::default(),
            troubles: Troubles::unheard(),
        }
    }
}

fn whole_ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A server that listens and does not serve yet.
pub struct AppServer {
    listener: TcpListener,
    address: SocketAddr,
    metrics: Option<(TcpListener, SocketAddr)>,
    shared: Arc<Shared>,
    threads: usize,
    end_timeout: Duration,
    cores: Vec<u32>,
    /// Left when the server is dropped.
    _memory: Option<MemoryLimit>,
}

impl AppServer {
    /// Listens. Connections queue up in the kernel until [`AppServer::serve_until`]. With a limit
    /// of memory this process is in a control group of its own from here on.
    pub fn bind(config: &AppConfig) -> Result<Self, ServerError> {
        let (listener, address) = listen(config.listen)
            .map_err(|source| ServerError::Listen { address: config.listen, source })?;
        let metrics = config.metrics.map(|requested| {
            listen(requested).map_err(|source| {
                ServerError::own(AppServerError::Metrics { address: requested, source })
            })
        });
        let metrics = metrics.transpose()?;
        let root = Root::open(&config.root)?;
        if config.memory_bytes.is_some() && root.is_in_memory() {
            return Err(AppServerError::SegmentsInMemory { path: root.path.clone() }.into());
        }
        let memory = config.memory_bytes.map(MemoryLimit::enter).transpose()?;
        let page_cache = if memory.is_some() { PageCache::Empty } else { PageCache::AsItIs };
        let (bytes_max, troubles) = (config.segment_bytes_max, config.troubles.clone());
        let segments = Segments::new(root, bytes_max, config.durability, page_cache, troubles);
        let threads = threads(config)?;
        // Made now, so that no request waits for it.
        let _ = work_block();
        let connections_max = connections_max(config);
        let shared = Shared {
            pool: Pool::new(threads as usize, connections_max),
            means: Means {
                metrics: Metrics::default(),
                durability: config.durability,
                besides: config.work,
                hurry: AtomicBool::new(false),
            },
            segments,
            welcome: Welcome {
                version: VERSION,
                refusal: None,
                service_threads: threads,
                durable: config.durability == Durability::Fdatasync,
                calibrated: false,
                segment_bytes: 0,
                memory_bytes: config.memory_bytes.unwrap_or(0),
            },
            connections_max,
            transfer_ns_max: whole_ns(config.request_timeout),
            is_ending: AtomicBool::new(false),
        };
        Ok(Self {
            listener,
            address,
            metrics,
            shared: Arc::new(shared),
            threads: threads as usize,
            end_timeout: config.end_timeout,
            cores: config.cores.clone(),
            _memory: memory,
        })
    }

    /// Where it listens, with the port the system chose.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `app://ADDRESS:PORT/`.
    pub fn url(&self) -> String {
        format!("app://{}/", self.address)
    }

    /// `http://ADDRESS:PORT/metrics`, if the metrics are served.
    pub fn metrics_url(&self) -> Option<String> {
        self.metrics.as_ref().map(|(_, address)| format!("http://{address}/metrics"))
    }

    /// Serves until `stop` is requested. Then requests in progress are finished and answered, for
    /// at most 1.5 s; others are refused. Blocks the calling thread.
    pub fn serve_until(self, stop: &Stop) -> Result<(), ServerError> {
        let Self { listener, metrics, shared, threads, end_timeout, cores, _memory, .. } = self;
        cores::pin_current_thread(&cores)
            .map_err(|source| ServerError::Pin { cores: cores::list(&cores), source })?;
        // No cores are its own: on those it would wait without sleeping.
        let clients = Clients::new(listener, &[])?;
        let mut started = Vec::with_capacity(threads);
        let served = start(threads, &shared, stop, &mut started).and_then(|()| {
            let scraped = metrics.map(|(listener, _)| {
                let (shared, stop) = (Arc::clone(&shared), stop.clone());
                spawn("app-metrics", move || scrape::serve_until(listener, shared, &stop))
            });
            let scraped = scraped.transpose()?;
            let mut watcher = Watcher::new(Arc::clone(&shared));
            let ended = clients.serve(&mut watcher, stop);
            let ended = ended.map(|clients| watcher.end(clients, end_timeout));
            stop.request();
            ended.and(scraped.map_or(Ok(()), |thread| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            }))
        });
        shared.means.hurry.store(true, Ordering::Relaxed);
        shared.pool.end();
        let deadline = Deadline::after(HOME_WAIT);
        while !started.iter().all(std::thread::JoinHandle::is_finished) {
            if !deadline.wait_a_step() {
                break;
            }
        }
        for thread in started.into_iter().filter(std::thread::JoinHandle::is_finished) {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
        served
    }
}

fn threads(config: &AppConfig) -> Result<u32, ServerError> {
    if let Some(threads) = config.threads {
        return Ok(threads.get());
    }
    let processors = if config.cores.is_empty() {
        let failed = |source| ServerError::System { doing: "count the processors", source };
        cores::available().map_err(failed)?.len()
    } else {
        config.cores.len()
    };
    Ok(THREADS_BASE + processors as u32)
}

/// Each connection may take a second descriptor, of its segment.
fn connections_max(config: &AppConfig) -> usize {
    let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let possible = descriptors.saturating_sub(DESCRIPTORS_RESERVED) / 2;
    u64::from(config.connections_max).min(possible.max(1)) as usize
}

fn start(
    threads: usize,
    shared: &Arc<Shared>,
    stop: &Stop,
    started: &mut Vec<std::thread::JoinHandle<()>>,
) -> Result<(), ServerError> {
    for thread in 0..threads {
        let (shared, watch) = (Arc::clone(shared), EndWithPanic(stop.clone()));
        started.push(spawn(&format!("app-{thread}"), move || {
            let _watch = watch;
            shared.serve(thread);
        })?);
    }
    Ok(())
}

/// A server that went on without one of its threads would be another one than was measured.
struct EndWithPanic(Stop);

impl Drop for EndWithPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.request();
        }
    }
}

fn spawn<T: Send + 'static>(
    name: &str,
    life: impl FnOnce() -> T + Send + 'static,
) -> Result<std::thread::JoinHandle<T>, ServerError> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .stack_size(STACK_BYTES)
        .spawn(life)
        .map_err(|source| ServerError::System { doing: "start a service thread", source })
}

impl std::fmt::Debug for AppServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AppServer").field("url", &self.url()).finish_non_exhaustive()
    }
}
