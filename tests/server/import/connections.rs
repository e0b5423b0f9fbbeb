//! How the program connects: what it sends to which host, compared with what libpq sends, and which settings it
//! refuses.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;

use super::{Answer, Folder, free_port, graph_kernel};
use crate::cluster::Cluster;
use crate::common::database::Database;
use crate::common::process::program;
use crate::common::{tell, variable};

/// What a client has sent to a server.
#[derive(Clone, Debug, PartialEq)]
enum Heard {
    /// The answer to the request for a password; none where the client went away.
    Password(Option<String>),
    /// The beginning of a TLS handshake, without a request before it.
    Tls(Vec<u8>),
}

/// A server that asks each client for its password, in clear, and then says that it is starting up, so that the client
/// tries the next host.
struct Asking(Arc<Mutex<Vec<Heard>>>);

impl Asking {
    fn on_port() -> (Self, u16) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        (Self::serve(move || listener.accept().unwrap().0), port)
    }

    fn on_socket(folder: &Folder, port: u16) -> Self {
        let listener = UnixListener::bind(folder.0.join(format!(".s.PGSQL.{port}"))).unwrap();
        Self::serve(move || listener.accept().unwrap().0)
    }

    fn serve<S: Read + Write>(accept: impl Fn() -> S + Send + 'static) -> Self {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let notes = Arc::clone(&heard);
        thread::spawn(move || {
            loop {
                let mut client = accept();
                let mut notes = notes.lock().unwrap();
                notes.extend(Self::ask(&mut client));
            }
        });
        Asking(heard)
    }

    /// None where the client has not even begun.
    fn ask(client: &mut (impl Read + Write)) -> Option<Heard> {
        let mut head = [0; 4];
        loop {
            client.read_exact(&mut head).ok()?;
            if head[0] == 0x16 {
                let mut hello = vec![0; 4096];
                let length = client.read(&mut hello).ok()?;
                return Some(Heard::Tls(hello[..length].to_vec()));
            }
            let mut body = vec![0; u32::from_be_bytes(head) as usize - 4];
            client.read_exact(&mut body).ok()?;
            // Requests for TLS and GSSAPI; neither is there.
            if ![&[4, 210, 22, 47][..], &[4, 210, 22, 48]].contains(&&body[..]) {
                break;
            }
            client.write_all(b"N").ok()?;
        }
        client.write_all(b"R\0\0\0\x08\0\0\0\x03").ok()?;
        let mut kind = [0];
        if client.read_exact(&mut kind).is_err() || kind != *b"p" {
            return Some(Heard::Password(None));
        }
        client.read_exact(&mut head).ok()?;
        let mut body = vec![0; u32::from_be_bytes(head) as usize - 4];
        client.read_exact(&mut body).ok()?;
        let error = b"SFATAL\0VFATAL\0C57P03\0Mthe database system is starting up\0\0";
        client.write_all(b"E").ok()?;
        client.write_all(&(error.len() as u32 + 4).to_be_bytes()).ok()?;
        client.write_all(error).ok()?;
        body.pop();
        Some(Heard::Password(Some(String::from_utf8(body).unwrap())))
    }

    /// What was heard since this was asked for.
    fn heard(&self) -> Vec<Heard> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

/// A command that connects as the environment and its arguments say, not as the test's own variables do.
fn connecting(mut command: Command, variables: &[(&str, &str)]) -> Answer {
    for name in ["PGHOST", "PGPORT", "PGUSER", "PGDATABASE"] {
        command.env_remove(name);
    }
    Answer::of(command.env("NO_COLOR", "1").envs(variables.iter().copied()).output().unwrap())
}

fn sessions(database: &str, variables: &[(&str, &str)]) -> Answer {
    let mut command = Command::new(variable("GRAPH_KERNEL_PROGRAM"));
    command.args(["sessions", "--database", database]);
    connecting(command, variables)
}

#[test]
fn each_host_gets_its_own_password_as_with_libpq() {
    let folder = Folder::new("passwords");
    let ((first, a), (second, b)) = (Asking::on_port(), Asking::on_port());
    let by_socket = Asking::on_socket(&folder, a);
    let (a, b) = (a.to_string(), b.to_string());
    let sockets = folder.0.to_str().unwrap();
    let both = "host=127.0.0.1,127.0.0.1 port=A,B user=ann dbname=notes";
    let named =
        "host=one.test,two.test hostaddr=127.0.0.1,127.0.0.1 port=A,B user=ann dbname=notes";
    let lists = [("PGHOST", "127.0.0.1,127.0.0.1"), ("PGPORT", "A,B")];
    let password = |text: &str| vec![Heard::Password(Some(text.to_owned()))];
    let (none, nothing) = (|| vec![Heard::Password(None)], Vec::new);
    // The password file, how to connect, and what the first server, the second and that of the socket hear.
    type Case<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], [Vec<Heard>; 3]);
    let cases: [Case; 18] = [
        ("127.0.0.1:A:*:*:one", both, &[], [password("one"), none(), nothing()]),
        ("*:A:*:*:one\n*:B:*:*:two", both, &[], [password("one"), password("two"), nothing()]),
        ("*:B:*:*:two", both, &[], [none(), nothing(), nothing()]),
        ("one.test:*:*:*:one", named, &[], [password("one"), none(), nothing()]),
        (
            "one.test:*:*:*:one\n127.0.0.1:*:*:*:no\ntwo.test:*:*:*:two",
            named,
            &[],
            [password("one"), password("two"), nothing()],
        ),
        (
            "127.0.0.1:A:notes:ann:one",
            "hostaddr=127.0.0.1 port=A user=ann dbname=notes",
            &[],
            [password("one"), nothing(), nothing()],
        ),
        (
            "*:A:other:ann:x\n*:A:notes:bo:x\n*:A:notes:ann:one",
            both,
            &[],
            [password("one"), none(), nothing()],
        ),
        // Without a name of a database, that of the user.
        (
            "*:A:ann:*:one",
            "host=127.0.0.1 port=A user=ann",
            &[],
            [password("one"), nothing(), nothing()],
        ),
        ("*:*:*:*:p\\:w\\\\d:more", both, &[], [password("p:w\\d"), password("p:w\\d"), nothing()]),
        ("\\*:*:*:*:no\n*:B:*:*:", both, &[], [none(), nothing(), nothing()]),
        (
            "*:A:*:*:one\n*:B:*:*:two",
            "postgresql://ann@127.0.0.1:A,127.0.0.1:B/notes",
            &[],
            [password("one"), password("two"), nothing()],
        ),
        (
            "*:A:*:*:one\n*:B:*:*:two",
            "user=ann dbname=notes",
            &lists,
            [password("one"), password("two"), nothing()],
        ),
        // A port that a URL does not say comes from the environment.
        (
            "127.0.0.1:A:*:*:one",
            "postgresql://ann@127.0.0.1/notes",
            &[("PGPORT", "A")],
            [password("one"), nothing(), nothing()],
        ),
        (
            "one.test:A:*:*:one",
            "host=one.test user=ann",
            &[("PGHOSTADDR", "127.0.0.1"), ("PGPORT", "A")],
            [password("one"), nothing(), nothing()],
        ),
        (
            "*:*:*:*:no",
            both,
            &[("PGPASSWORD", "both")],
            [password("both"), password("both"), nothing()],
        ),
        // An address goes before a socket, whose folder is still the name.
        (
            "127.0.0.1:*:*:*:no\nFOLDER:A:*:*:one",
            "host=FOLDER hostaddr=127.0.0.1 port=A user=ann",
            &[],
            [password("one"), nothing(), nothing()],
        ),
        // The folder of a socket has the name of the folder; `localhost` is another one.
        (
            "localhost:*:*:*:no\nFOLDER:A:*:*:socket",
            "host=FOLDER,127.0.0.1 port=A,B user=ann",
            &[],
            [nothing(), none(), password("socket")],
        ),
        (
            "localhost:*:*:*:no",
            "host=FOLDER port=A user=ann",
            &[("PGSSLMODE", "require")],
            [nothing(), nothing(), none()],
        ),
    ];
    let filled = |text: &str| text.replace("FOLDER", sockets).replace('A', &a).replace('B', &b);
    for (lines, database, variables, expected) in cases {
        let file = folder.write(
            "pgpass",
            lines
                .replace("FOLDER", sockets)
                .replace(":A:", &format!(":{a}:"))
                .replace(":B:", &format!(":{b}:")),
        );
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        let mut variables: Vec<(&str, String)> =
            variables.iter().map(|(name, value)| (*name, filled(value))).collect();
        variables.push(("PGPASSFILE", file));
        let variables: Vec<_> =
            variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let database = filled(database);
        let mut psql = program("psql");
        psql.args(["--no-psqlrc", "--no-password", "--dbname", &database, "--command", ""]);
        let mut program = Command::new(variable("GRAPH_KERNEL_PROGRAM"));
        program.args(["sessions", "--database", &database]);
        for (client, command) in [("psql", psql), ("graph-kernel", program)] {
            let answer = connecting(command, &variables);
            assert_eq!(answer.status, 2, "{client}: {}", answer.err);
            if client == "psql" && answer.err.contains("SSL support is not compiled in") {
                tell(
                    "SKIPPED: each_host_gets_its_own_password_as_with_libpq (sslmode): the libpq of psql is built \
                    without TLS",
                );
                continue;
            }
            let heard = [first.heard(), second.heard(), by_socket.heard()];
            assert_eq!(heard, expected, "{client} {database}: {lines}\n{}", answer.err);
        }
    }
}

#[test]
fn a_password_file_that_is_not_safe_is_not_used() {
    let folder = Folder::new("unsafe");
    let (server, port) = Asking::on_port();
    let database = format!("host=127.0.0.1 port={port} user=ann");
    let file = folder.write("pgpass", "*:*:*:*:secret");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let pipe = folder.0.join("pipe");
    super::run(Command::new("mkfifo").arg(&pipe));
    for (file, why) in [(file.as_str(), "chmod 600"), (pipe.to_str().unwrap(), "regular file")] {
        let answer = sessions(&database, &[("PGPASSFILE", file)]);
        assert!(answer.err.contains(why) && !answer.err.contains("secret"), "{}", answer.err);
        assert_eq!(server.heard(), [Heard::Password(None)]);
    }
}

#[test]
fn settings_that_the_program_cannot_follow_are_refused_before_it_connects() {
    let (server, port) = Asking::on_port();
    let database = format!("host=127.0.0.1 port={port} user=ann");
    for (name, value, keyword) in [
        ("PGREQUIREAUTH", "scram-sha-256", "require_auth"),
        ("PGREQUIREAUTH", "!password", "require_auth"),
        ("PGREQUIREPEER", "postgres", "requirepeer"),
        ("PGSERVICE", "mine", "service"),
        ("PGSSLCERT", "/client.crt", "sslcert"),
        ("PGSSLKEY", "/client.key", "sslkey"),
        ("PGSSLCERTMODE", "require", "sslcertmode"),
        ("PGSSLCRL", "/root.crl", "sslcrl"),
        ("PGSSLCRLDIR", "/crls", "sslcrldir"),
        ("PGSSLSNI", "0", "sslsni"),
        ("PGSSLMINPROTOCOLVERSION", "TLSv1.3", "ssl_min_protocol_version"),
        ("PGSSLMAXPROTOCOLVERSION", "TLSv1.2", "ssl_max_protocol_version"),
        ("PGMINPROTOCOLVERSION", "3.2", "min_protocol_version"),
        ("PGGSSENCMODE", "require", "gssencmode"),
        ("PGGSSDELEGATION", "1", "gssdelegation"),
        ("PGTARGETSESSIONATTRS", "standby", "target_session_attrs"),
        ("PGCHANNELBINDING", "always", "channel_binding"),
        ("PGSSLNEGOTIATION", "fast", "sslnegotiation"),
        ("PGSSLMODE", "strict", "sslmode"),
        ("PGLOADBALANCEHOSTS", "all", "load_balance_hosts"),
        // Without encryption being required, a server could do without.
        ("PGSSLNEGOTIATION", "direct", "sslnegotiation"),
    ] {
        let by_variable = sessions(&database, &[(name, value), ("PGPASSWORD", "x")]);
        let by_keyword =
            sessions(&format!("{database} {keyword} = '{value}'"), &[("PGPASSWORD", "x")]);
        let url = format!(
            "postgresql://ann@127.0.0.1:{port}/notes?{keyword}={}",
            value.replace('/', "%2F")
        );
        let by_url = sessions(&url, &[("PGPASSWORD", "x")]);
        for (answer, source) in [(by_variable, name), (by_keyword, keyword), (by_url, keyword)] {
            let is_named = answer.err.contains(source) || answer.err.contains(keyword);
            assert!(answer.status == 2 && is_named, "{source}={value}: {}", answer.err);
        }
        assert_eq!(server.heard(), [], "{name}={value}");
    }
    // What needs no more than the program does is not an obstacle.
    for (name, value) in [
        ("PGSSLCERTMODE", "allow"),
        ("PGSSLSNI", "1"),
        ("PGGSSENCMODE", "prefer"),
        ("PGCLIENTENCODING", "LATIN1"),
        ("PGTZ", "Asia/Tokyo"),
        ("PGREQUIREAUTH", ""),
    ] {
        sessions(&database, &[(name, value), ("PGPASSWORD", "x")]);
        assert_eq!(server.heard(), [Heard::Password(Some("x".to_owned()))], "{name}={value}");
    }
}

/// What libpq does for each `sslmode` and `sslrootcert` at a server that has no TLS.
#[test]
fn a_password_goes_over_no_encryption_only_where_the_settings_let_it() {
    let (server, port) = Asking::on_port();
    let folder = Folder::new("clear");
    let file = folder.write("root.crt", "");
    let modes = ["", "disable", "allow", "prefer", "require", "verify-ca", "verify-full"];
    for (mode, root) in
        modes.iter().flat_map(|mode| ["", "system", &file].map(|root| (*mode, root)))
    {
        let is_sent = root != "system" && ["", "disable", "allow", "prefer"].contains(&mode);
        let database = format!("host=127.0.0.1 port={port} user=ann");
        let parameters = format!("{database} sslmode='{mode}' sslrootcert='{root}'");
        let variables = [("PGPASSWORD", "x"), ("PGSSLMODE", mode), ("PGSSLROOTCERT", root)];
        for (database, variables) in [(&parameters, &variables[..1]), (&database, &variables)] {
            let answer = sessions(database, variables);
            assert_eq!(answer.status, 2, "{parameters}: {}", answer.err);
            let is_weak = root == "system" && !["", "verify-full"].contains(&mode);
            let refusal =
                format!("weak sslmode \"{mode}\" may not be used with sslrootcert=system");
            assert_eq!(answer.err.contains(&refusal), is_weak, "{parameters}: {}", answer.err);
            let heard = server.heard();
            let is_heard = heard == [Heard::Password(Some("x".to_owned()))];
            assert!(is_heard == is_sent && heard.len() <= 1, "{parameters}: {heard:?}");
        }
    }
    // The older variable is a mode, too.
    let variables = [("PGREQUIRESSL", "1"), ("PGSSLROOTCERT", "system"), ("PGPASSWORD", "x")];
    let answer = sessions(&format!("host=127.0.0.1 port={port} user=ann"), &variables);
    assert!(answer.err.contains("weak sslmode \"require\""), "{}", answer.err);
    assert_eq!(server.heard(), []);
}

#[test]
fn what_a_server_must_be_is_asked_of_it() {
    let database = Database::with_tables("import_attributes");
    let ask = |variables: &[(&str, &str)], arguments: &[&str]| {
        let mut command = graph_kernel(&database);
        Answer::of(command.args(arguments).envs(variables.iter().copied()).output().unwrap())
    };
    let attributes = |wanted| ask(&[("PGTARGETSESSIONATTRS", wanted)], &["sessions"]);
    assert_eq!(attributes("read-write").status, 0);
    assert!(attributes("read-only").err.contains("not read-only"));
    database
        .connect()
        .batch_execute(&format!(
            "ALTER DATABASE {} SET default_transaction_read_only = on",
            database.name
        ))
        .unwrap();
    assert_eq!(attributes("read-only").status, 0);
    assert!(attributes("read-write").err.contains("session is read-only"));
    assert_eq!(attributes("any").status, 0);
    // The server asks for no password, so nothing binds the channel.
    let bound = ask(&[("PGCHANNELBINDING", "require")], &["sessions"]);
    assert!(bound.status == 2 && bound.err.contains("channel binding"), "{}", bound.err);
    assert_eq!(ask(&[("PGCHANNELBINDING", "prefer")], &["sessions"]).status, 0);

    let (server, port) = Asking::on_port();
    let direct = format!("host=localhost hostaddr=127.0.0.1 port={port} user=ann sslmode=require");
    assert_eq!(sessions(&direct, &[("PGSSLNEGOTIATION", "direct")]).status, 2);
    let heard = server.heard();
    let [Heard::Tls(hello)] = &heard[..] else { panic!("{heard:?}") };
    assert!(hello.windows(10).any(|bytes| bytes == b"postgresql"), "the protocol is named");
}

#[test]
fn an_error_says_which_server_could_not_be_reached() {
    let (closed, folder) = (free_port(), Folder::new("unreachable"));
    let sockets = folder.0.to_str().unwrap();
    let answer = sessions(&format!("host=127.0.0.1,{sockets} port={closed},7 user=ann"), &[]);
    assert_eq!(answer.status, 2);
    for expected in [
        format!("127.0.0.1, port {closed}: "),
        "Connection refused".to_owned(),
        format!("{sockets}/.s.PGSQL.7: "),
    ] {
        assert!(answer.err.contains(&expected), "{expected}: {}", answer.err);
    }
    let named = format!("host=db.test hostaddr=127.0.0.1 port={closed} user=ann");
    let expected = format!("db.test (127.0.0.1), port {closed}: ");
    assert!(sessions(&named, &[]).err.contains(&expected));
    // A server that is there has the last word.
    let mut cluster = Cluster::start_on(free_port(), "listen_addresses = '127.0.0.1'");
    let port = cluster.server.port;
    let answer = sessions(
        &format!("host=127.0.0.1,127.0.0.1 port={closed},{port} user=ann dbname=none"),
        &[],
    );
    assert!(answer.err.contains(&format!("port {port}: role \"ann\"")), "{}", answer.err);
    let answer = sessions(&format!("host=127.0.0.1,127.0.0.1 port={port},{closed} user=ann"), &[]);
    assert!(!answer.err.contains(&format!("port {closed}")), "{}", answer.err);
    cluster.stop();
}
