//! The reference server of application transactions: one thread that watches all connections, and
//! a bounded pool of service threads behind it, which do the work.
//!
//! `docs/app-protocol.md` says what it answers, `docs/app-server.md` how it is run. It is a server
//! to measure against: whoever reaches it may use it.

pub mod calibrated;
mod exchange;
mod memory;
mod metrics;
mod multiplexer;
mod outbox;
mod pool;
mod root;
mod scrape;
mod segments;
mod service;
mod table;
mod troubles;
mod work;

use std::net::{SocketAddr, TcpListener};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::wire::{VERSION, Welcome, work_block};
use rustix::event::{EventfdFlags, eventfd};
use rustix::process::{Resource, getrlimit};

pub use memory::MEMORY_BYTES_MIN;
pub use root::{MARKER, SegmentsRoot};
pub use segments::Durability;
pub use troubles::{AppServerError, Troubles};

use memory::MemoryLimit;
use metrics::Metrics;
use multiplexer::Multiplexer;
use plimsoll_servers::clock::Deadline;
use plimsoll_servers::delay::Work;
use plimsoll_servers::{ServerError, Stop, cores, listen};
use pool::Pool;
use root::Root;
use segments::{PageCache, Segments};
use service::{Returned, Shared};
use work::Means;

/// Service threads beside the one per processor: as the method has them at 60 clients.
pub const THREADS_BASE: u32 = 47;
/// Most service threads a server should be asked for: they are threads of the system.
pub const THREADS_MAX: u32 = 4_096;
/// Largest segment when nothing else is said.
pub const SEGMENT_BYTES_MAX: u64 = 64 << 20;
/// Connections served at a time when nothing else is said.
pub const CONNECTIONS_MAX: u32 = 8_192;
/// How long a begun request, or a reply, may be on its way when nothing else is said.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// How long requests under way may take once the server is ending, if nothing else is said.
pub const END_TIMEOUT: Duration = Duration::from_millis(1_500);

/// Descriptors that are neither connections nor segments, and those of clients turned away.
const DESCRIPTORS_BESIDE: u64 = 64 + 256;
/// Of a thread: its work goes deep nowhere, but 64 KiB lie on it more than once in unoptimised
/// builds. What is not touched takes no memory.
const STACK_BYTES: usize = 1 << 20;
/// How long threads may take to go home before they are left to the end of the process.
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
    /// How long a begun request, or a reply, may be on its way.
    pub request_timeout: Duration,
    /// How long requests under way may take once the server is ending.
    pub end_timeout: Duration,
    /// Memory this process may use, page cache included; needs root.
    pub memory_bytes: Option<u64>,
    /// Where to serve the metrics over HTTP.
    pub metrics: Option<SocketAddr>,
    /// Cores to keep to; empty: any.
    pub cores: Vec<u32>,
    /// Work for each request, besides what it asks for.
    pub work: Work,
    /// Who hears of failing storage.
    pub troubles: Troubles,
}

impl AppConfig {
    /// Everything as the command line has it when nothing is said.
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
        let metrics = config.metrics.map(|wanted| {
            listen(wanted).map_err(|source| {
                ServerError::own(AppServerError::Metrics { address: wanted, source })
            })
        });
        let metrics = metrics.transpose()?;
        let root = Root::open(&config.root)?;
        if config.memory_bytes.is_some() && root.is_in_memory() {
            return Err(AppServerError::SegmentsInMemory { path: root.path.clone() }.into());
        }
        let memory = config.memory_bytes.map(MemoryLimit::enter).transpose()?;
        let page_cache = if memory.is_some() { PageCache::Empty } else { PageCache::AsItIs };
        let segments = Segments::new(root, config.segment_bytes_max, config.durability, page_cache);
        let threads = threads(config)?;
        // Made now, so that no request waits for it.
        let _ = work_block();
        let connections_max = connections_max(config);
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let bell = bell.map_err(|source| ServerError::System {
            doing: "make an event descriptor",
            source: source.into(),
        })?;
        let shared = Shared {
            pool: Pool::new(threads as usize, connections_max),
            returned: Returned::new(bell),
            means: Means {
                metrics: Metrics::default(),
                troubles: config.troubles.clone(),
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
            end_ns_max: whole_ns(config.end_timeout),
            is_ending: AtomicBool::new(false),
        };
        Ok(Self {
            listener,
            address,
            metrics,
            shared: Arc::new(shared),
            threads: threads as usize,
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

    /// Service threads.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Serves until `stop` is requested. Then requests under way are finished and answered, for
    /// at most a second and a half; others are refused. Blocks the calling thread.
    pub fn serve_until(self, stop: &Stop) -> Result<(), ServerError> {
        let Self { listener, metrics, shared, threads, cores, _memory, .. } = self;
        cores::pin_current_thread(&cores)
            .map_err(|source| ServerError::Pin { cores: cores::list(&cores), source })?;
        let multiplexer = Multiplexer::new(listener, Arc::clone(&shared))?;
        let mut started = Vec::with_capacity(threads);
        let served = start(threads, &shared, stop, &mut started).and_then(|()| {
            let attending = {
                let (shared, stop) = (Arc::clone(&shared), stop.clone());
                let listener = metrics.map(|(listener, _)| listener);
                spawn("app-metrics", move || scrape::attend(listener, &shared, &stop))?
            };
            let served = multiplexer.run();
            stop.request();
            let attended = attending.join();
            served.and(attended.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
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
    let possible = descriptors.saturating_sub(DESCRIPTORS_BESIDE) / 2;
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
