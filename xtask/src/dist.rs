//! `cargo xtask dist`: the packages, from a reproducible build.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use xtask::command::{cargo, installed, output, run};
use xtask::verb::Result;
use xtask::workspace;

/// Maximum size of a stripped binary.
const BINARY_BYTES_MAX: u64 = 16 * 1_000_000;
/// Shells whose completions are packed.
const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];

/// Builds, packs, and prints the files; `--twice` builds again elsewhere and compares.
pub fn dist(rest: &[&str]) -> Result<()> {
    let twice = match rest {
        [] => false,
        ["--twice"] => true,
        _ => return Err("usage: cargo xtask dist [--twice]".to_owned()),
    };
    let root = workspace::root();
    let dist = root.join("target/dist");
    let epoch = output(Command::new("git").current_dir(root).args(["log", "-1", "--format=%ct"]))?;
    let built = build(root, &root.join("target"), epoch.trim())?;
    let staging = dist.join("stage");
    fill(&staging, &built, root, epoch.trim())?;
    let mut made = vec![staging.join("plimsoll"), tar(&dist, epoch.trim())?];
    made.extend(packages(root, &dist, epoch.trim())?);
    if twice {
        compare(root, &built, epoch.trim())?;
    }
    print_checksums(&made)
}

/// The binary. It contains neither the sources' folder nor the user's.
fn build(root: &Path, target: &Path, epoch: &str) -> Result<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let folders = [(Some(root.to_owned()), "plimsoll"), (home, "cargo")];
    let remapped = folders.iter().filter_map(|(folder, name)| {
        Some(format!("--remap-path-prefix={}={name}", folder.as_ref()?.display()))
    });
    let flags: Vec<String> = remapped.collect();
    let mut cargo = cargo();
    cargo.current_dir(root).args(["build", "--profile", "dist", "--package", "plimsoll"]);
    cargo.args(["--locked", "--target-dir"]).arg(target);
    cargo.env("SOURCE_DATE_EPOCH", epoch).env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
    run(&mut cargo)?;
    Ok(target.join("dist/plimsoll"))
}

/// Collects all packed files in one folder.
fn fill(staging: &Path, binary: &Path, root: &Path, epoch: &str) -> Result<()> {
    let failed = |e: std::io::Error| format!("{}: cannot be filled: {e}", staging.display());
    // The staging folder lies in the profile's folder, like the binary.
    if staging.exists() {
        fs::remove_dir_all(staging).map_err(failed)?;
    }
    fs::create_dir_all(staging).map_err(failed)?;
    let program = staging.join("plimsoll");
    fs::copy(binary, &program).map_err(failed)?;
    // Cargo does not strip a package that has its own settings.
    run(Command::new("strip").arg(&program))?;
    let generate = |what: &[&str], to: &str| {
        run(Command::new(&program).arg("generate").args(what).arg("--output").arg(staging.join(to)))
    };
    generate(&["man"], "man")?;
    for shell in SHELLS {
        generate(&["completions", shell], "completions")?;
    }
    generate(&["schema"], "schema")?;
    for name in ["LICENSE-MIT", "LICENSE-APACHE", "README.md", "CHANGELOG.md"] {
        fs::copy(root.join(name), staging.join(name)).map_err(failed)?;
    }
    for (from, to) in [
        ("plimsoll-serve@.service", "plimsoll-serve@.service"),
        ("grafana/plimsoll.json", "grafana-dashboard.json"),
    ] {
        fs::copy(root.join("packaging").join(from), staging.join(to)).map_err(failed)?;
    }
    let pages = fs::read_dir(staging.join("man")).map_err(failed)?;
    for page in pages {
        run(Command::new("gzip").args(["-9n"]).arg(page.map_err(failed)?.path()))?;
    }
    let date = format!("@{epoch}");
    run(Command::new("find").arg(staging).args(["-exec", "touch", "-h", "-d", &date, "{}", "+"]))
}

fn tar(dist: &Path, epoch: &str) -> Result<PathBuf> {
    let name =
        format!("plimsoll-{}-{}-linux.tar", env!("CARGO_PKG_VERSION"), std::env::consts::ARCH);
    let file = dist.join(&name);
    let inside = format!("s,^stage,{},", name.trim_end_matches(".tar"));
    let mut tar = Command::new("tar");
    tar.current_dir(dist).args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner"]);
    tar.arg(format!("--mtime=@{epoch}")).args(["--transform", &inside, "-cf", &name, "stage"]);
    run(&mut tar)?;
    run(Command::new("gzip").args(["-9nf"]).arg(&file))?;
    Ok(file.with_extension("tar.gz"))
}

/// A deb and an rpm.
fn packages(root: &Path, dist: &Path, epoch: &str) -> Result<Vec<PathBuf>> {
    let tool = |name: &str| {
        let mut command = Command::new(installed(name, &[])?);
        command.current_dir(root).env("SOURCE_DATE_EPOCH", epoch);
        Ok::<_, String>(command)
    };
    let (deb, rpm) = (dist.join("plimsoll.deb"), dist.join("plimsoll.rpm"));
    run(tool("cargo-deb")?
        .args(["deb", "--package", "plimsoll", "--no-build", "--no-strip", "--output"])
        .arg(&deb))?;
    run(tool("cargo-generate-rpm")?
        .args(["generate-rpm", "--package", "crates/plimsoll", "--source-date", epoch])
        .args(["--payload-compress", "gzip", "--output"])
        .arg(&rpm))?;
    Ok(vec![deb, rpm])
}

/// Builds a copy of the sources in another folder, and compares.
fn compare(root: &Path, first: &Path, epoch: &str) -> Result<()> {
    let copy = root.join("target/dist-again");
    if copy.exists() {
        fs::remove_dir_all(&copy).map_err(|e| format!("{}: {e}", copy.display()))?;
    }
    run(Command::new("git").args(["clone", "--quiet"]).arg(root).arg(&copy))?;
    let second = build(&copy, &copy.join("target"), epoch)?;
    let same = sha256(first)? == sha256(&second)?;
    fs::remove_dir_all(&copy).map_err(|e| format!("{}: {e}", copy.display()))?;
    match same {
        true => {
            println!("two builds in two folders are alike");
            Ok(())
        }
        false => Err("two builds in two folders differ; look with diffoscope".to_owned()),
    }
}

fn sha256(file: &Path) -> Result<String> {
    let line = output(Command::new("sha256sum").arg(file))?;
    line.split_whitespace().next().map(str::to_owned).ok_or_else(|| "no checksum".to_owned())
}

/// Prints sizes and checksums, and writes the checksums to a file beside the packages.
fn print_checksums(made: &[PathBuf]) -> Result<()> {
    let mut sums = String::new();
    for file in made {
        let bytes = fs::metadata(file).map_err(|e| format!("{}: {e}", file.display()))?.len();
        println!("{:>12} {}", bytes, file.display());
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        sums.push_str(&format!("{}  {name}\n", sha256(file)?));
    }
    print!("{sums}");
    if let Some(dir) = made.last().and_then(|file| file.parent()) {
        fs::write(dir.join("SHA256SUMS"), &sums).map_err(|e| format!("SHA256SUMS: {e}"))?;
    }
    let binary = made.first().and_then(|file| fs::metadata(file).ok()).map_or(0, |m| m.len());
    if binary > BINARY_BYTES_MAX {
        return Err(format!("the binary has {binary} bytes, more than {BINARY_BYTES_MAX}"));
    }
    Ok(())
}
