//! Throw-away clusters: killed and removed when they go out of scope.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use postgres::{Client, Config, NoTls};

use crate::common::process::{Programs, run, server_program};
use crate::common::{Server, variable};

const DEFAULT_PORT: u16 = 5432;

const PATIENCE: Duration = Duration::from_secs(60);

/// A cluster of its own, in a folder that only the server's account can enter.
pub struct Cluster {
    pub server: Server,
    pub folder: PathBuf,
    pub programs: Programs,
    postmaster: Option<Child>,
}

impl Cluster {
    /// A new cluster that runs with these lines of configuration.
    pub fn start(configuration: &str) -> Self {
        Self::start_on(DEFAULT_PORT, configuration)
    }

    /// [`Cluster::start`] on a port of its own, for servers that listen on the network.
    pub fn start_on(port: u16, configuration: &str) -> Self {
        let mut cluster = Cluster::beside_nothing();
        cluster.server.port = port;
        copy(template(), &cluster.data());
        cluster.append_configuration(&format!("port = {port}"));
        cluster.append_configuration(configuration);
        cluster.launch();
        cluster
    }

    /// A new cluster that these programs make and run.
    #[allow(dead_code)]
    pub fn start_with(programs: &Programs) -> Self {
        let mut cluster = Cluster::created_with(programs);
        cluster.launch();
        cluster
    }

    /// [`Cluster::start_with`], not yet running.
    #[allow(dead_code)]
    pub fn created_with(programs: &Programs) -> Self {
        let mut cluster = Cluster::beside_nothing();
        cluster.programs = programs.clone();
        create(programs, &cluster.data());
        cluster
    }

    /// A copy of this stopped cluster's files that runs elsewhere.
    pub fn copy_of(stopped: &Cluster) -> Self {
        assert!(stopped.postmaster.is_none(), "only a stopped cluster may be copied");
        let mut cluster = Cluster::beside_nothing();
        copy(&stopped.data(), &cluster.data());
        cluster.launch();
        cluster
    }

    /// A streaming standby of this running cluster.
    pub fn standby_of(primary: &Cluster) -> Self {
        let mut cluster = Cluster::beside_nothing();
        run(server_program("pg_basebackup")
            .arg("--pgdata")
            .arg(cluster.data())
            .args(["--host", &primary.server.socket])
            .args(["--username", &primary.server.user])
            .args(["--write-recovery-conf", "--checkpoint=fast", "--no-sync"]));
        cluster.launch();
        cluster
    }

    fn beside_nothing() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = base().join(format!("gkk.{}.{count}", std::process::id()));
        fs::DirBuilder::new().mode(0o700).create(&folder).unwrap();
        let socket = folder.to_str().unwrap().to_owned();
        let server = Server { socket, port: DEFAULT_PORT, user: "postgres".to_owned() };
        let programs = Programs::current();
        let cluster = Cluster { server, folder, programs, postmaster: None };
        give_to_server(&cluster.folder);
        cluster
    }

    /// Its files.
    pub fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn log_file(&self) -> PathBuf {
        self.folder.join("log")
    }

    /// All that the server has logged.
    pub fn log(&self) -> Vec<u8> {
        fs::read(self.log_file()).unwrap()
    }

    /// Starts the stopped cluster.
    pub fn launch(&mut self) {
        assert!(self.try_launch(), "no start:\n{}", String::from_utf8_lossy(&self.log()));
    }

    /// Starts the cluster whose postmaster was killed; its backends may take a moment to notice.
    pub fn recover(&mut self) {
        let start = Instant::now();
        while !self.try_launch() {
            let log = self.log();
            assert!(start.elapsed() < PATIENCE, "no start:\n{}", String::from_utf8_lossy(&log));
            thread::sleep(Duration::from_millis(50));
        }
    }

    fn try_launch(&mut self) -> bool {
        let log = OpenOptions::new().create(true).append(true).open(self.log_file()).unwrap();
        // A child of this process, so that no killed postmaster remains as a zombie.
        let mut postmaster = self
            .programs
            .server_program("postgres")
            .arg("-D")
            .arg(self.data())
            .args(["-k", &self.server.socket])
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let start = Instant::now();
        loop {
            if postmaster.try_wait().unwrap().is_some() {
                return false;
            }
            if self.try_connect("postgres", "postgres").is_some() {
                self.postmaster = Some(postmaster);
                return true;
            }
            assert!(start.elapsed() < PATIENCE, "{} does not answer", self.folder.display());
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Stops it in good order.
    pub fn stop(&mut self) {
        self.end("INT");
    }

    /// Kills the postmaster as a lack of memory would.
    pub fn kill(&mut self) {
        self.end("KILL");
    }

    fn end(&mut self, signal: &str) {
        let mut postmaster = self.postmaster.take().expect("it runs");
        send_signal(signal, postmaster.id());
        postmaster.wait().unwrap();
    }

    /// A connection of the superuser.
    pub fn client(&self) -> Client {
        self.client_of("postgres", "postgres")
    }

    /// A connection to a database as a role, as soon as the server takes one.
    pub fn client_of(&self, role: &str, database: &str) -> Client {
        let start = Instant::now();
        loop {
            if let Some(client) = self.try_connect(role, database) {
                return client;
            }
            assert!(start.elapsed() < PATIENCE, "{role} gets no connection to {database}");
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn try_connect(&self, role: &str, database: &str) -> Option<Client> {
        self.config(role, database).connect(NoTls).ok()
    }

    /// How a role reaches a database.
    pub fn config(&self, role: &str, database: &str) -> Config {
        let mut config = Config::new();
        config.host_path(&self.server.socket).port(self.server.port).user(role).dbname(database);
        config
    }

    fn append_configuration(&self, lines: &str) {
        let mut file =
            OpenOptions::new().append(true).open(self.data().join("postgresql.conf")).unwrap();
        writeln!(file, "{lines}").unwrap();
    }

    /// Changes a setting of the running server. Sessions that begin from now on have it.
    pub fn set(&self, setting: &str, value: &str) {
        self.append_configuration(&format!("{setting} = '{value}'"));
        let mut client = self.client();
        client.batch_execute("SELECT pg_reload_conf()").unwrap();
        self.wait_for(&mut client, setting, value);
    }

    /// Waits until a session has taken a setting.
    pub fn wait_for(&self, client: &mut Client, setting: &str, value: &str) {
        let start = Instant::now();
        let mut set = || -> bool {
            let statement = "SELECT current_setting($1, true) IS NOT DISTINCT FROM $2";
            client.query_one(statement, &[&setting, &value]).unwrap().get(0)
        };
        while !set() {
            assert!(start.elapsed() < PATIENCE, "{setting} does not change");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// One of the server's client programs, aimed at this cluster.
    pub fn program(&self, name: &str, role: &str) -> Command {
        let mut command = self.programs.server_program(name);
        command.args(["--host", &self.server.socket, "--username", role]);
        command
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if self.postmaster.is_some() {
            self.end("QUIT");
        }
        let removed = fs::remove_dir_all(&self.folder);
        // A second panic would hide the failure of the test.
        if !thread::panicking() {
            removed.unwrap();
        }
    }
}

/// Waits until a standby has replayed all that its primary has written.
pub fn catch_up(primary: &mut Client, standby: &mut Client) {
    let target = "SELECT pg_current_wal_insert_lsn()::text";
    let target: String = primary.query_one(target, &[]).unwrap().get(0);
    wait_until(standby, &format!("SELECT pg_last_wal_replay_lsn() >= '{target}'"));
}

/// Waits until a statement gives true.
pub fn wait_until(client: &mut Client, statement: &str) {
    let start = Instant::now();
    while !client.query_one(statement, &[]).unwrap().get::<_, bool>(0) {
        assert!(start.elapsed() < PATIENCE, "not yet: {statement}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Sends a signal by name.
pub fn send_signal(signal: &str, process: u32) {
    run(Command::new("kill").args(["-s", signal, &process.to_string()]));
}

/// Makes a file the server account's own.
pub fn give_to_server(path: &Path) {
    let (user, group) = server_account();
    chown(path, Some(user), Some(group)).unwrap();
}

/// User and group of the account that servers run as.
pub fn server_account() -> (u32, u32) {
    let data = fs::metadata(variable("GRAPH_KERNEL_DATADIR")).unwrap();
    (data.uid(), data.gid())
}

fn copy(from: &Path, to: &Path) {
    run(Command::new("cp").arg("-a").arg(from).arg(to));
}

/// Where clusters are stored: a short path, as a socket's has at most 107 bytes; in memory where there is
/// room for some, as their many small files are slow to copy on some disks.
fn base() -> &'static Path {
    static BASE: OnceLock<&Path> = OnceLock::new();
    BASE.get_or_init(|| {
        let free = Command::new("df").args(["-B", "1M", "--output=avail", "/dev/shm"]).output();
        let free = String::from_utf8(free.unwrap().stdout).unwrap();
        let megabytes = free.lines().last().and_then(|line| line.trim().parse::<u32>().ok());
        Path::new(if megabytes > Some(2000) { "/dev/shm" } else { "/tmp" })
    })
}

/// The files of an empty cluster.
fn template() -> &'static Path {
    static TEMPLATE: OnceLock<PathBuf> = OnceLock::new();
    TEMPLATE.get_or_init(|| {
        // One for each test program, as they run beside each other. The harness removes it with its server.
        let name = format!("template.{}", std::process::id());
        let data = Path::new(&variable("GRAPH_KERNEL_SCRATCH")).join(name);
        if data.exists() {
            fs::remove_dir_all(&data).unwrap();
        }
        create(&Programs::current(), &data);
        data
    })
}

/// Makes the files of an empty cluster. Every version makes page checksums when asked to, as pg_upgrade wants the same
/// in both clusters.
fn create(programs: &Programs, data: &Path) {
    run(programs
        .server_program("initdb")
        .arg("--pgdata")
        .arg(data)
        .args(["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8"])
        .args(["--no-sync", "--wal-segsize=1", "--data-checksums"]));
    let mut file = OpenOptions::new().append(true).open(data.join("postgresql.conf")).unwrap();
    file.write_all(CONFIGURATION.as_bytes()).unwrap();
}

// What is written survives a killed process without fsync.
const CONFIGURATION: &str = "
listen_addresses = ''
port = 5432
timezone = 'UTC'
shared_buffers = 16MB
max_connections = 20
fsync = off
wal_level = logical
min_wal_size = 2MB
wal_retrieve_retry_interval = 100ms
hot_standby = on
";
