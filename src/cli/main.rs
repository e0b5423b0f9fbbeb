//! `graph-kernel`: checks, inspects, compares and draws slices, without a database.
//!
//! Each command reads its files, asks the kernel, and prints the answer. What a file says is printed with its control
//! characters escaped.
#![forbid(unsafe_code)]

mod arguments;
mod commands;
mod input;
mod output;
mod picture;

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use arguments::{Arguments, Command};
use clap::{CommandFactory, Parser};

/// How a command ended.
pub(crate) enum Outcome {
    /// Valid, or no difference.
    Yes,
    /// Not valid, or a difference.
    No,
}

/// Why a command could not do its work: a message for people.
pub(crate) type Failure = String;

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(Outcome::Yes) => ExitCode::SUCCESS,
        Ok(Outcome::No) => ExitCode::from(1),
        Err(message) => {
            let red = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
            anstream::eprintln!("{red}error:{red:#} {}", output::escaped(&message));
            ExitCode::from(2)
        }
    }
}

fn run(command: Command) -> Result<Outcome, Failure> {
    let mut text = Vec::new();
    let outcome = match command {
        Command::Verify { slice, proof, key } => commands::verify(&mut text, &slice, &proof, &key)?,
        Command::Inspect { slice } => commands::inspect(&mut text, &slice)?,
        Command::Diff { before, after } => commands::diff(&mut text, &before, &after)?,
        Command::Draw { slice, format } => commands::draw(&mut text, &slice, format)?,
        Command::Completions { shell } => {
            let name = "graph-kernel";
            clap_complete::generate(shell, &mut Arguments::command(), name, &mut text);
            Outcome::Yes
        }
        Command::Man { command, all } => {
            commands::man(&mut text, command.as_deref(), all.as_deref())?
        }
    };
    match anstream::stdout().write_all(&text).and_then(|()| io::stdout().flush()) {
        // Whoever reads has read enough, as `head` has.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(outcome),
        Err(error) => Err(format!("standard output: {error}")),
        Ok(()) => Ok(outcome),
    }
}
