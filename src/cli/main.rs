//! `graph-kernel`: brings conversations into a database, shows them on a page, and checks, inspects, compares and draws
//! slices without one.
//!
//! What a file or a table says is printed with its control characters escaped.
#![forbid(unsafe_code)]

mod arguments;
mod commands;
mod database;
mod import;
mod input;
mod mcp;
mod output;
mod query;
mod serve;
mod svg;

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use arguments::{Arguments, Command};
use clap::{CommandFactory, Parser};

/// How a command ended.
pub(crate) enum Outcome {
    /// Valid, or no difference.
    Success,
    /// Not valid, or a difference.
    Negative,
}

/// Why a command could not do its work: a message for people.
pub(crate) type Failure = String;

fn main() -> ExitCode {
    let ended = run(Arguments::parse().command);
    database::wait_for_cancels();
    match ended {
        Ok(Outcome::Success) => ExitCode::SUCCESS,
        Ok(Outcome::Negative) => ExitCode::from(1),
        Err(message) => {
            let red = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
            let message = output::message(&message);
            // A stream that cannot be written to is not a reason to panic.
            _ = writeln!(anstream::stderr(), "{red}error:{red:#} {message}");
            ExitCode::from(2)
        }
    }
}

fn run(command: Command) -> Result<Outcome, Failure> {
    let mut text = Vec::new();
    let is_kept = matches!(command, Command::Slice(_));
    let outcome = match command {
        Command::Verify { document, proof, key, contents } => {
            commands::verify(&mut text, &document, &proof, &key, contents.as_deref())?
        }
        Command::Inspect { document } => commands::inspect(&mut text, &document)?,
        Command::Diff { before, after } => commands::diff(&mut text, &before, &after)?,
        Command::Draw { slice, format } => commands::draw(&mut text, &slice, format)?,
        Command::Import(arguments) => import::import(&mut text, &arguments)?,
        Command::Slice(arguments) => query::slice(&mut text, &arguments)?,
        Command::Prompt(arguments) => query::prompt(&mut text, &arguments)?,
        Command::Sessions(arguments) => query::sessions(&mut text, &arguments)?,
        Command::Serve(arguments) => serve::serve(&arguments)?,
        Command::Mcp(arguments) => mcp::mcp(arguments)?,
        Command::Completions { shell } => {
            let name = "graph-kernel";
            clap_complete::generate(shell, &mut Arguments::command(), name, &mut text);
            Outcome::Success
        }
        Command::Man { command, all } => {
            commands::man(&mut text, command.as_deref(), all.as_deref())?
        }
    };
    let written = match is_kept {
        true => io::stdout().write_all(&text),
        false => anstream::stdout().write_all(&text),
    };
    match written.and_then(|()| io::stdout().flush()) {
        // The reader closed the pipe, as `head` does.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(outcome),
        Err(error) => Err(format!("standard output: {error}")),
        Ok(()) => Ok(outcome),
    }
}
