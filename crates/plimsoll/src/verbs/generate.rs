//! `plimsoll generate`: manual pages and completions, made from the flags.

use std::path::{Path, PathBuf};

use clap::{Args, Command, CommandFactory as _, Subcommand};
use clap_mangen::Man;

use super::Cli;
use crate::exit::{Exit, Failure};
use crate::terminal;
use crate::verbs::suites;

#[derive(Debug, Args)]
pub(crate) struct GenerateArgs {
    #[command(subcommand)]
    pub what: Generated,
    /// Write files into this directory; of manual pages one for each verb
    #[arg(long, value_name = "DIR", global = true)]
    pub output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Subcommand)]
pub(crate) enum Generated {
    /// The manual page, for man
    Man,
    /// Completions, to be sourced by the shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// JSON Schema of suite files, as `plimsoll suites schema` prints it
    Schema,
}

/// Prints it, or writes its files.
pub(crate) fn perform(args: &GenerateArgs) -> Result<Exit, Failure> {
    let files = match args.what {
        Generated::Man => pages()?,
        Generated::Completions { shell } => vec![completion(shell)],
        Generated::Schema => vec![("suite.schema.json".to_owned(), suites::schema().into_bytes())],
    };
    match &args.output {
        Some(dir) => write(dir, &files)?,
        // The first page is that of the program.
        None => terminal::print(&String::from_utf8_lossy(&files[0].1)),
    }
    Ok(Exit::Valid)
}

/// A file's name and its bytes.
type File = (String, Vec<u8>);

/// One page for the program and one for each verb, `plimsoll-run.1`, `plimsoll-serve-web.1`.
fn pages() -> Result<Vec<File>, Failure> {
    let mut program = Cli::command();
    program.build();
    let mut pages = Vec::new();
    add_pages(&program, "plimsoll", &mut pages)?;
    Ok(pages)
}

fn add_pages(command: &Command, name: &str, pages: &mut Vec<File>) -> Result<(), Failure> {
    pages.push(page(command, name.to_owned())?);
    for verb in command.get_subcommands().filter(|verb| verb.get_name() != "help") {
        add_pages(verb, &format!("{name}-{}", verb.get_name()), pages)?;
    }
    Ok(())
}

fn page(command: &Command, name: String) -> Result<File, Failure> {
    let file = format!("{name}.1");
    let mut bytes = Vec::new();
    Man::new(command.clone().display_name(name))
        .manual("Plimsoll")
        .render(&mut bytes)
        .map_err(|e| Failure::unusable(format!("{file}: cannot be made: {e}")))?;
    Ok((file, bytes))
}

fn completion(shell: clap_complete::Shell) -> File {
    let mut program = Cli::command();
    let mut bytes = Vec::new();
    clap_complete::generate(shell, &mut program, "plimsoll", &mut bytes);
    let file = clap_complete::Generator::file_name(&shell, "plimsoll");
    (file, bytes)
}

fn write(dir: &Path, files: &[File]) -> Result<(), Failure> {
    let failed = |path: &Path, e| {
        Failure::unusable(format!(
            "{}: cannot write it: {e}; name another --output",
            path.display()
        ))
    };
    std::fs::create_dir_all(dir).map_err(|e| failed(dir, e))?;
    for (name, bytes) in files {
        let path = dir.join(name);
        std::fs::write(&path, bytes).map_err(|e| failed(&path, e))?;
    }
    Ok(())
}
