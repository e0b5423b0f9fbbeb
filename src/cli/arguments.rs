//! The command line; also the source of help, manual pages and completions.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

/// Brings conversations into a database with graph_kernel, and checks, compares and draws slices without one.
///
/// A slice is the JSON document that the SQL function graph_slice returns, a record of a prompt what
/// graph_messages_record returns; a proof is what graph_proof returns. Slices and records may be in the bytes of
/// graph_document_bytes. `-` in place of a file is the standard input.
#[derive(Parser)]
#[command(
    name = "graph-kernel",
    version,
    after_help = "Exit status: 0 valid, or no difference; 1 not valid, a difference, a broken record, or nothing \
        found; 2 wrong use, or a file or database that cannot be read."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Check that a proof is that of a slice or of a record of a prompt, under a public key.
    ///
    /// Take the key from where its holder publishes it, not from whoever gave you the document. The database that
    /// signed is not needed.
    #[command(
        after_help = "Examples:\n  graph-kernel verify slice.json --proof proof.json --key key.pem\n  graph-kernel \
            verify record.json --proof proof.json --key key.pem --contents messages.json"
    )]
    Verify {
        /// The slice, or the record of a prompt.
        document: PathBuf,
        /// Its proof.
        #[arg(long)]
        proof: PathBuf,
        /// The public key, in PEM.
        #[arg(long)]
        key: PathBuf,
        /// Texts that were kept of the messages of a record, to see whether they are what was shown: a JSON array in
        /// the order of the messages, of strings, null for a message without a text, or objects with the keys content,
        /// payload or both.
        #[arg(long, value_name = "FILE")]
        contents: Option<PathBuf>,
    },
    /// Show the fields of a slice or of a record of a prompt, and compute its fingerprints again.
    ///
    /// Of a message: its part, role, tokens, turn, and the SHA-256 of its text.
    ///
    /// This shows whether the document is consistent. Whether a kernel made it, only a proof or its database can tell.
    #[command(after_help = "Example:\n  graph-kernel inspect slice.json")]
    Inspect {
        /// The slice, or the record of a prompt.
        document: PathBuf,
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
    /// Import conversations from files of other applications into the tables of a graph.
    ///
    /// What is there already stays as it is: importing a later export adds what is new. Each conversation is stored as
    /// a whole or not at all.
    #[command(after_help = "Examples:\n  graph-kernel import chatgpt export.zip --database \
            postgresql://ann@localhost/memory\n  graph-kernel import claude-code ~/.claude/projects --dry-run")]
    Import(ImportArguments),
    /// Print the slice at a turn, as JSON.
    #[command(
        after_help = "Example:\n  graph-kernel slice 0e2a3d58-92d1-5e0b-b3b7-5c3c3a7ce1a9 --policy lineage > slice.json"
    )]
    Slice(QueryArguments),
    /// Print what to send to a model at a turn: the turns of a slice in the order of the conversation, each text
    /// indented under its role.
    #[command(
        after_help = "Example:\n  graph-kernel prompt 0e2a3d58-92d1-5e0b-b3b7-5c3c3a7ce1a9 --policy '{\"preset\": \
            \"chat\", \"max_tokens\": 2000}'"
    )]
    Prompt(QueryArguments),
    /// List the sessions of a graph, or the ends of the branches of one.
    ///
    /// Of each session: when its latest turn was created, how many turns it has, the latest turn, its name. Of one
    /// session: each turn that no other of it follows, when it was created, and the beginning of its text. The latest
    /// comes first.
    Sessions(SessionsArguments),
    /// Serve a page that shows what a model would be shown at a turn, and why; an HTTP API; and tools for a model.
    ///
    /// Prints the address of the page, which has a token in it: whoever has it reads what the database role can read.
    /// Everything but the registering of policies, and what --allow-writes offers, runs in read-only transactions.
    #[command(
        after_help = "Examples:\n  graph-kernel serve --database postgresql://ann@localhost/memory\n  \
            DATABASE_URL=postgresql://ann@localhost/memory PORT=8002 graph-kernel serve"
    )]
    Serve(ServeArguments),
    /// Answer a model's tools: the Model Context Protocol on the standard input and output.
    ///
    /// A program that talks with a model starts it. The tools find and show what is stored, with the rights of the
    /// connection's role, in read-only transactions.
    #[command(
        after_help = "Example:\n  graph-kernel mcp --database postgresql://reader@localhost/memory"
    )]
    Mcp(McpArguments),
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
        after_help = "Examples:\n  graph-kernel man verify | man -l -\n  graph-kernel man --all \
            /usr/local/share/man/man1"
    )]
    Man {
        /// The command.
        command: Option<String>,
        /// Write every page into this folder.
        #[arg(long, value_name = "FOLDER", conflicts_with = "command")]
        all: Option<PathBuf>,
    },
}

/// Where the graph is.
#[derive(Clone, clap::Args)]
pub(crate) struct DatabaseArguments {
    /// The database: a URL, key=value pairs or a name. What it does not say is taken from PGHOST, PGPORT, PGUSER,
    /// PGDATABASE, PGSSLMODE, PGSSLROOTCERT and so on, as psql does, the password from PGPASSWORD or the password file.
    /// A setting that the program cannot follow, such as PGREQUIREAUTH, is refused.
    #[arg(long, short)]
    pub(crate) database: Option<String>,
    /// The name under which the tables are bound.
    #[arg(long)]
    pub(crate) graph: Option<String>,
}

#[derive(clap::Args)]
pub(crate) struct SessionsArguments {
    /// List the ends of the branches of this session.
    pub(crate) session: Option<String>,
    #[command(flatten)]
    pub(crate) connection: DatabaseArguments,
}

#[derive(clap::Args)]
pub(crate) struct ServeArguments {
    /// The database is taken from DATABASE_URL where this is not given.
    #[command(flatten)]
    pub(crate) connection: DatabaseArguments,
    /// The address to listen at. One that other machines can reach needs --token-file.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub(crate) listen: IpAddr,
    /// The port to listen at; 0 is any free one. Without it PORT, else 8001.
    #[arg(long)]
    pub(crate) port: Option<u16>,
    /// Another name under which the page is reached, as through a proxy: a host, with its port where it has one.
    #[arg(long = "host", value_name = "HOST")]
    pub(crate) hosts: Vec<String>,
    /// Take the token from this file, which others cannot read: 32 to 256 letters and digits. Without it a new one is
    /// made at each start.
    #[arg(long, value_name = "FILE", conflicts_with = "no_token")]
    pub(crate) token_file: Option<PathBuf>,
    /// Ask for no token: every user of this machine reads what the database role can read.
    #[arg(long)]
    pub(crate) no_token: bool,
    /// How many connections to the database there are at most.
    #[arg(long, value_name = "COUNT", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) connections: u16,
    /// How long a statement may take, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u16).range(1..=3600))]
    pub(crate) timeout: u16,
    /// How many requests a second are answered, and twice as many at once after a pause; 0 is any number. More are
    /// told when to come again.
    #[arg(long, value_name = "COUNT", default_value_t = 250)]
    pub(crate) rate: u16,
    /// Offer models at /mcp the tool remember, which stores turns in tables of graph_kernel.create_tables.
    #[arg(long)]
    pub(crate) allow_writes: bool,
}

#[derive(clap::Args)]
pub(crate) struct McpArguments {
    #[command(flatten)]
    pub(crate) connection: DatabaseArguments,
    /// Offer the tool remember, which stores turns in tables of graph_kernel.create_tables.
    #[arg(long)]
    pub(crate) allow_writes: bool,
}

#[derive(clap::Args)]
pub(crate) struct QueryArguments {
    /// The id of the turn.
    pub(crate) anchor: String,
    /// The policy: the name of a preset or of a registered policy, or a JSON object.
    #[arg(long)]
    pub(crate) policy: Option<String>,
    #[command(flatten)]
    pub(crate) connection: DatabaseArguments,
}

#[derive(clap::Args)]
pub(crate) struct ImportArguments {
    /// The format of the files.
    pub(crate) format: ImportFormat,
    /// The files, or pipes; `-` is the standard input. Of claude-code and codex also folders, with the transcripts in
    /// them and below; links in them are followed.
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) connection: DatabaseArguments,
    /// Whose export this is, to keep those of several people apart. Part of each turn's id.
    #[arg(long, default_value = "")]
    pub(crate) account: String,
    /// Import the conversation with this id alone: that of its application, or the session as `graph-kernel sessions`
    /// lists it.
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Import conversations whose latest message is of this date or later.
    #[arg(long, value_name = "DATE")]
    pub(crate) since: Option<String>,
    /// Store a conversation without its broken records, instead of leaving it out.
    #[arg(long)]
    pub(crate) skip_broken: bool,
    /// Read and count everything, store nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Guess phase and salience. Without it they stay NULL.
    #[arg(long, value_enum)]
    pub(crate) label: Option<Labeling>,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub(crate) enum ImportFormat {
    /// ChatGPT: conversations.json of a data export, or its zip archive.
    Chatgpt,
    /// Claude: conversations.json of a data export, or its zip archive.
    Claude,
    /// Claude Code: transcripts of sessions, in JSONL.
    ClaudeCode,
    /// Codex CLI: rollouts of sessions, in JSONL.
    Codex,
    /// LibreChat: conversations exported as JSON.
    Librechat,
    /// Open WebUI: exported chats.
    Openwebui,
    /// Rows of memory_turns and memory_turn_edges as JSON, with their ids.
    Jsonl,
}

impl ImportFormat {
    /// The name on the command line, which is part of each turn's id.
    pub(crate) fn name(self) -> &'static str {
        match self {
            ImportFormat::Chatgpt => "chatgpt",
            ImportFormat::Claude => "claude",
            ImportFormat::ClaudeCode => "claude-code",
            ImportFormat::Codex => "codex",
            ImportFormat::Librechat => "librechat",
            ImportFormat::Openwebui => "openwebui",
            ImportFormat::Jsonl => "jsonl",
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Labeling {
    /// By phrases in the text: a heuristic, for English.
    Keywords,
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
