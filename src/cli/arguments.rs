//! What the program is asked; also the source of its help, man page and completions.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

/// Checks, inspects, compares and draws slices of graph_kernel, without a database.
///
/// A slice is the JSON document that the SQL function graph_slice returns; a proof is what graph_proof returns. `-` in
/// place of a file is the standard input.
#[derive(Parser)]
#[command(
    name = "graph-kernel",
    version,
    after_help = "Exit status: 0 valid, or no difference; 1 not valid, or a difference; 2 wrong use, or a file that cannot \
                  be read."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Check that a proof is that of a slice, under a public key.
    ///
    /// Take the key from where its holder publishes it, not from whoever gave you the slice. The database that signed is
    /// not needed.
    #[command(
        after_help = "Example:\n  graph-kernel verify slice.json --proof proof.json --key key.pem"
    )]
    Verify {
        /// The slice.
        slice: PathBuf,
        /// Its proof.
        #[arg(long)]
        proof: PathBuf,
        /// The public key, in PEM.
        #[arg(long)]
        key: PathBuf,
    },
    /// Show what a slice says of itself, and compute its fingerprints again.
    ///
    /// This shows whether a slice agrees with itself. Whether it is the kernel's, only a proof or the database can tell.
    #[command(after_help = "Example:\n  graph-kernel inspect slice.json")]
    Inspect {
        /// The slice.
        slice: PathBuf,
    },
    /// List what differs between two slices.
    #[command(after_help = "Example:\n  graph-kernel diff before.json after.json")]
    Diff {
        /// The first slice.
        before: PathBuf,
        /// The second slice.
        after: PathBuf,
    },
    /// Draw a slice: as a picture, or as text for Graphviz or Mermaid.
    #[command(after_help = "Example:\n  graph-kernel draw slice.json --format svg > slice.svg")]
    Draw {
        /// The slice.
        slice: PathBuf,
        /// The format of the drawing.
        #[arg(long, value_enum, default_value_t = DrawingFormat::Mermaid)]
        format: DrawingFormat,
    },
    /// Print completions for a shell.
    #[command(
        after_help = "Example:\n  graph-kernel completions bash > /etc/bash_completion.d/graph-kernel"
    )]
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Print the manual page of the program or of a command, or write all of them into a folder.
    #[command(
        after_help = "Examples:\n  graph-kernel man verify | man -l -\n  graph-kernel man --all /usr/local/share/man/man1"
    )]
    Man {
        /// The command.
        command: Option<String>,
        /// Write every page into this folder.
        #[arg(long, value_name = "FOLDER", conflicts_with = "command")]
        all: Option<PathBuf>,
    },
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum DrawingFormat {
    /// Graphviz's language.
    Dot,
    /// Mermaid's language.
    Mermaid,
    /// A picture. A slice whose edges cross too often is refused: Graphviz can draw it.
    Svg,
}
