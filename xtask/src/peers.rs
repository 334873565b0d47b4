//! The real servers and clients that tests talk to.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use xtask::command;
use xtask::verb::Result;

/// A program some tests need.
struct Peer {
    /// Its command, or the path of a library's header.
    program: &'static str,
    /// Debian packages that contain it and what it loads.
    packages: &'static [&'static str],
    /// What is not tested without it.
    tests: &'static str,
}

const PEERS: [Peer; 35] = [
    Peer {
        program: "nginx",
        packages: &["nginx-light"],
        tests: "every test against a real nginx, `managed:nginx` among them",
    },
    Peer { program: "man", packages: &["man-db"], tests: "manual pages" },
    Peer { program: "bash", packages: &["bash"], tests: "completions" },
    Peer { program: "zsh", packages: &["zsh"], tests: "completions" },
    Peer { program: "fish", packages: &["fish"], tests: "completions" },
    Peer {
        program: "caddy",
        packages: &["caddy"],
        tests: "requests of web-url counted by a second web server's log",
    },
    Peer {
        program: "nghttpd",
        packages: &["nghttp2-server"],
        tests: "HTTP/2 spoken to a server of nghttp2's makers",
    },
    Peer { program: "h2o", packages: &["h2o"], tests: "HTTP/2 spoken to h2o" },
    Peer { program: "curl", packages: &["curl"], tests: "the reference web server judged by curl" },
    Peer { program: "kill", packages: &["procps"], tests: "servers that stall and die" },
    Peer {
        program: "ganesha.nfsd",
        packages: &["nfs-ganesha", "nfs-ganesha-vfs"],
        tests: "every test against a real NFS server, `managed:ganesha` among them",
    },
    Peer {
        program: "rpcbind",
        packages: &["rpcbind"],
        tests: "the same: NFS-Ganesha does not start without a portmapper",
    },
    Peer {
        program: "nfs-ls",
        packages: &["libnfs-utils"],
        tests: "the reference NFS server and the proxies judged by libnfs",
    },
    Peer {
        program: "/usr/include/nfsc/libnfs-raw-nfs.h",
        packages: &["libnfs-dev"],
        tests: "the reference NFS server judged by a client of NFSv2; `bench nfs`",
    },
    Peer {
        program: "minisign",
        packages: &["minisign"],
        tests: "signatures of bundles checked by minisign, and its own checked by us",
    },
    Peer { program: "cc", packages: &["gcc", "libc6-dev"], tests: "the same" },
    Peer {
        program: "smbd",
        packages: &["samba"],
        tests: "every test against a real SMB server, `managed:samba` among them",
    },
    Peer {
        program: "smbclient",
        packages: &["smbclient"],
        tests: "SMB servers judged by smbclient",
    },
    Peer {
        program: "smbtorture",
        packages: &["samba-testsuite"],
        tests: "the reference SMB server judged by smbtorture; `bench smb`",
    },
    Peer {
        program: "/usr/lib/python3/dist-packages/impacket/smbserver.py",
        packages: &["python3-impacket"],
        tests: "an SMB server whose replies differ from MS-SMB2",
    },
    Peer { program: "dbench", packages: &["dbench"], tests: "replays of dbench's own load file" },
    Peer {
        program: "tshark",
        packages: &["tshark"],
        tests: "op counts compared with those of a capture",
    },
    Peer {
        program: "chromium",
        packages: &["chromium"],
        tests: "a report's page as a browser lays it out",
    },
    Peer {
        program: "strace",
        packages: &["strace"],
        tests: "durable writes of the transaction server judged by their system calls",
    },
    Peer {
        program: "python3",
        packages: &["python3"],
        tests: "transactions on a server that shares no line with ours; histograms of agents merged \
                by another program",
    },
    Peer {
        program: "protoc",
        packages: &["protobuf-compiler"],
        tests: "what is exported to collectors, read by a decoder from another house",
    },
    Peer {
        program: "unshare",
        packages: &["util-linux"],
        tests: "file systems, networks and clocks that a test has for itself; `managed:ganesha`",
    },
    Peer {
        program: "ip",
        packages: &["iproute2"],
        tests: "op counts compared with those of a capture; agents in network namespaces; `bench \
                web` with `reno`",
    },
    Peer {
        program: "ssh",
        packages: &["openssh-client"],
        tests: "a host watched, and agents started, through a real ssh: keys taken and refused",
    },
    Peer { program: "sshd", packages: &["openssh-server"], tests: "the same" },
    Peer { program: "srun", packages: &["slurm-wlm"], tests: "agents started by a real Slurm" },
    Peer { program: "munged", packages: &["munge"], tests: "the same" },
    Peer {
        program: "go",
        packages: &["golang-go", "ca-certificates"],
        tests: "the manifest of agents' pods decoded by Kubernetes' own types",
    },
    Peer {
        program: "prometheus-node-exporter",
        packages: &["prometheus-node-exporter"],
        tests: "a host watched through a real exporter",
    },
    Peer {
        program: "snmpd",
        packages: &["snmpd"],
        tests: "a host watched through a real SNMP agent",
    },
];

/// A program without a Debian package, built with Go.
struct GoPeer {
    /// As the tests find it. Its packages are needed to build it.
    peer: Peer,
    /// Its module, with a version that Debian 12's Go (1.19) builds.
    module: &'static str,
}

const GO_PEERS: [GoPeer; 1] = [GoPeer {
    peer: Peer {
        program: "osnfs",
        packages: &["golang-go", "ca-certificates"],
        tests: "an NFS server that deviates from its specification, measured to the end",
    },
    module: "github.com/willscott/go-nfs/example/osnfs@v0.0.4",
}];

/// A Python with a package from PyPI, in a separate environment.
struct PythonPeer {
    /// As the tests find it: the environment's Python.
    peer: Peer,
    /// The package, without its dependencies.
    package: &'static str,
}

const PYTHON_PEERS: [PythonPeer; 1] = [PythonPeer {
    peer: Peer {
        program: "python-xllamacpp",
        packages: &["python3", "python3-venv"],
        tests: "language models on llama.cpp's own server, `managed:llama`",
    },
    package: "xllamacpp==2026.10.11549",
}];

/// Folder of their environments.
const ENVIRONMENTS: &str = "/usr/local/lib/plimsoll-peers";

/// Folder of programs that are built here.
const BUILT: &str = "/usr/local/bin";

/// Certificates that Go needs to fetch a module.
const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// Whether this is a continuous-integration run: there a missing peer is a failure, not a skip.
pub fn must_be_complete() -> bool {
    is_complete(std::env::var_os("CI").as_deref())
}

/// Whether `CI` is set, and neither empty nor `false` nor `0`. The test kit's `skips.rs` reads it
/// alike.
fn is_complete(ci: Option<&OsStr>) -> bool {
    ci.is_some_and(|value| !value.is_empty() && value != "false" && value != "0")
}

/// Installs missing peers if that needs no permission, else prints which tests will be skipped.
/// Fails on any missing peer when [`must_be_complete`].
pub fn prepare() -> Result<()> {
    let mut absent = missing();
    if !absent.is_empty() && can_install() {
        install(&absent)?;
        absent = missing();
    }
    if absent.is_empty() {
        let all: Vec<&str> = peers().map(|peer| peer.program).collect();
        println!("peers: {}", all.join(", "));
        return Ok(());
    }
    for peer in &absent {
        println!("SKIPPED, {} is not installed: {}", peer.program, peer.tests);
    }
    let packages = packages_of(&absent);
    let mut remedies = builds_of(&absent);
    if !packages.is_empty() {
        remedies.insert(0, format!("sudo apt-get install {}", packages.join(" ")));
    }
    let remedy = format!("to run them: {}", remedies.join("; "));
    if must_be_complete() {
        return Err(format!("CI is set and peers are missing; {remedy}"));
    }
    println!("{remedy}");
    Ok(())
}

fn peers() -> impl Iterator<Item = &'static Peer> {
    let built = GO_PEERS.iter().map(|built| &built.peer);
    PEERS.iter().chain(built).chain(PYTHON_PEERS.iter().map(|python| &python.peer))
}

fn missing() -> Vec<&'static Peer> {
    peers().filter(|peer| command::find(peer.program).is_none()).collect()
}

/// Existing Go and certificates are not replaced by Debian's.
fn packages_of(absent: &[&Peer]) -> Vec<&'static str> {
    let is_there = |package: &str| match package {
        "golang-go" => command::find("go").is_some(),
        "ca-certificates" => Path::new(CERTIFICATES).exists(),
        "python3" => command::find("python3").is_some(),
        _ => false,
    };
    let packages = absent.iter().flat_map(|peer| peer.packages).copied();
    packages.filter(|package| !is_there(package)).collect()
}

/// Commands for peers without a Debian package.
fn builds_of(absent: &[&Peer]) -> Vec<String> {
    let is_required =
        |built: &&GoPeer| absent.iter().any(|peer| peer.program == built.peer.program);
    // sudo may have another PATH than the user.
    let go = command::find("go").unwrap_or_else(|| "go".into());
    let typed = |built: &GoPeer| {
        format!("sudo env GOBIN={BUILT} {} install {}", go.display(), built.module)
    };
    let built = GO_PEERS.iter().filter(is_required).map(typed);
    let is_absent =
        |python: &&PythonPeer| absent.iter().any(|it| it.program == python.peer.program);
    let python = PYTHON_PEERS.iter().filter(is_absent).map(|python| {
        format!(
            "a venv with 'pip install --no-deps {}', and PLIMSOLL_LLAMA_PYTHON=VENV/bin/python",
            python.package
        )
    });
    built.chain(python).collect()
}

fn can_install() -> bool {
    let debian = Path::new("/etc/debian_version").exists() && command::find("apt-get").is_some();
    debian && is_root()
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

fn install(absent: &[&Peer]) -> Result<()> {
    install_packages(&packages_of(absent));
    for built in GO_PEERS.iter().filter(|built| command::find(built.peer.program).is_none()) {
        let Some(go) = command::find("go") else { continue };
        let mut build = Command::new(go);
        build.args(["install", built.module]).env("GOBIN", BUILT).env("GOFLAGS", "");
        if let Err(message) = command::run(&mut build) {
            println!("{message}");
        }
    }
    for python in &PYTHON_PEERS {
        if command::find(python.peer.program).is_none()
            && let Err(message) = install_python(python)
        {
            println!("{message}");
        }
    }
    Ok(())
}

/// Creates the environment, and a wrapper program for its Python: a link would not find the
/// environment.
fn install_python(python: &PythonPeer) -> Result<()> {
    let program = python.peer.program;
    let environment = format!("{ENVIRONMENTS}/{program}");
    command::run(Command::new("python3").args(["-m", "venv", &environment]))?;
    let mut pip = Command::new(format!("{environment}/bin/pip"));
    command::run(pip.args(["install", "--quiet", "--no-deps", python.package]))?;
    let text = format!("#!/bin/sh\nexec {environment}/bin/python \"$@\"\n");
    let path = format!("{BUILT}/{program}");
    std::fs::write(&path, text).map_err(|e| format!("{path}: {e}"))?;
    command::run(Command::new("chmod").args(["+x", &path]))
}

fn install_packages(packages: &[&str]) {
    if packages.is_empty() {
        return;
    }
    println!("installing {} (root on Debian)", packages.join(", "));
    // A stale list names versions that the mirror no longer has. The second command shows whether
    // the mirror is unreachable.
    if let Err(message) = command::run(Command::new("apt-get").args(["-qq", "update"])) {
        println!("{message}; trying with the lists at hand");
    }
    let mut apt = Command::new("apt-get");
    apt.args(["-qq", "-y", "--no-install-recommends", "install"]).args(packages);
    // Tests start their own servers on free ports; the package's own service must not start.
    apt.env("DEBIAN_FRONTEND", "noninteractive").env("RUNLEVEL", "1");
    if let Err(message) = command::run(&mut apt) {
        println!("{message}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_value_of_ci_but_empty_false_and_0_means_complete() {
        let values = ["true", "1", "yes", "false", "0", ""];
        let complete = values.map(|value| is_complete(Some(OsStr::new(value))));
        assert_eq!(complete, [true, true, true, false, false, false]);
        assert!(!is_complete(None));
    }
}
