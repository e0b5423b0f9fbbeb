//! Connecting to a database as libpq does: the same variables, password file and meaning of `sslmode`.

use std::env;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use percent_encoding::percent_decode_str;
use postgres::config::{Host, SslMode};
use postgres::{Client, Config, NoTls};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use serde_json::Value;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::Failure;
use crate::arguments::DatabaseArguments;

/// A connection, and where the extension is.
pub(crate) struct Database {
    pub(crate) client: Client,
    /// The schema of the extension's functions, quoted.
    pub(crate) schema: String,
}

impl Database {
    /// The name of the chosen graph, and what `graph_kernel.describe_graph` says of it.
    pub(crate) fn graph(&mut self) -> Result<(String, Value), Failure> {
        self.client
            .query_one(
                "SELECT name, graph_kernel.describe_graph(name) FROM graph_kernel.chosen_graph() AS name",
                &[],
            )
            .map(|row| (row.get(0), row.get(1)))
            .map_err(|error| in_words(&error))
    }
}

/// Connects to the database that the arguments name; what they do not say is taken from the environment.
pub(crate) fn connect(arguments: &DatabaseArguments) -> Result<Database, Failure> {
    let (text, tls) = Tls::of(arguments.database.as_deref())?;
    let mut config = config(text.as_deref())?;
    config.ssl_mode(tls.ssl_mode());
    let mut client = tls.open(&config)?;
    let found = client
        .query_opt(
            "SELECT pg_catalog.quote_ident(n.nspname) FROM pg_catalog.pg_extension AS e \
             JOIN pg_catalog.pg_namespace AS n ON n.oid = e.extnamespace WHERE e.extname = 'graph_kernel'",
            &[],
        )
        .map_err(|error| in_words(&error))?;
    let Some(row) = found else {
        return Err(
            "the extension is not in this database: CREATE EXTENSION graph_kernel".to_owned()
        );
    };
    client
        .batch_execute(
            "SET search_path = pg_catalog, pg_temp; SET TimeZone = 'UTC'; SET DateStyle = 'ISO'; \
             SET client_connection_check_interval = '1s'",
        )
        .and_then(|()| match &arguments.graph {
            Some(graph) => client
                .execute("SELECT set_config('graph_kernel.graph', $1, false)", &[graph])
                .map(drop),
            None => Ok(()),
        })
        .map_err(|error| in_words(&error))?;
    Ok(Database { client, schema: row.get(0) })
}

/// The error of a server with its detail and hint; another error with its cause.
pub(crate) fn in_words(error: &postgres::Error) -> Failure {
    let Some(error) = error.as_db_error() else {
        let mut text = error.to_string();
        let mut cause = std::error::Error::source(error);
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        return text;
    };
    let mut text = error.message().to_owned();
    for (name, more) in [("detail", error.detail()), ("hint", error.hint())] {
        if let Some(more) = more {
            text = format!("{text}; {name}: {more}");
        }
    }
    text
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// Whether this is a URL or `key=value` pairs, not the name of a database.
fn is_connection_string(text: &str) -> bool {
    text.contains("://") || text.contains('=')
}

fn config(database: Option<&str>) -> Result<Config, Failure> {
    let wrong = |error: postgres::Error| format!("--database: {}", in_words(&error));
    let mut config = match database {
        None => Config::new(),
        Some(text) if is_connection_string(text) => text.parse().map_err(wrong)?,
        Some(name) => Config::new().dbname(name).clone(),
    };
    if config.get_password().is_some() {
        return Err("a password on the command line can be seen by others: use a password file (PGPASSFILE, \
                    ~/.pgpass) or PGPASSWORD"
            .to_owned());
    }
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        let socket = Path::new("/var/run/postgresql");
        match variable("PGHOST") {
            Some(host) => config.host(&host),
            None if socket.is_dir() => config.host_path(socket),
            None => config.host("localhost"),
        };
    }
    if config.get_ports().is_empty()
        && let Some(port) = variable("PGPORT")
    {
        config.port(port.parse().map_err(|_| format!("PGPORT is no port: {port}"))?);
    }
    if config.get_user().is_none()
        && let Some(user) = variable("PGUSER")
    {
        config.user(&user);
    }
    if config.get_dbname().is_none()
        && let Some(name) = variable("PGDATABASE")
    {
        config.dbname(&name);
    }
    if config.get_options().is_none()
        && let Some(options) = variable("PGOPTIONS")
    {
        config.options(&options);
    }
    if config.get_application_name().is_none() {
        config.application_name(variable("PGAPPNAME").as_deref().unwrap_or("graph-kernel"));
    }
    if let Some(password) = variable("PGPASSWORD").or_else(|| password_from_file(&config)) {
        config.password(password);
    }
    Ok(config)
}

/// The password that the password file has for this connection.
fn password_from_file(config: &Config) -> Option<String> {
    let path = variable("PGPASSFILE")
        .map(PathBuf::from)
        .or_else(|| Some(env::home_dir()?.join(".pgpass")))?;
    let text = fs::read_to_string(&path).ok()?;
    if !is_private(&path) {
        let why = "not used: others can read it (chmod 600)";
        _ = writeln!(anstream::stderr(), "{}: {why}", path.display());
        return None;
    }
    let host = match config.get_hosts().first()? {
        Host::Tcp(name) => name.clone(),
        Host::Unix(_) => "localhost".to_owned(),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432).to_string();
    let user = config.get_user().map(str::to_owned).or_else(|| variable("USER"))?;
    let name = config.get_dbname().unwrap_or(&user);
    password_for(&text, [&host, &port, name, &user])
}

#[cfg(unix)]
fn is_private(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|file| file.permissions().mode() & 0o077 == 0)
}

#[cfg(not(unix))]
fn is_private(_: &Path) -> bool {
    true
}

/// The password of the first line that matches host, port, database and user; `*` matches all, `\` escapes.
fn password_for(text: &str, wanted: [&str; 4]) -> Option<String> {
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let mut fields = vec![String::new()];
        let mut characters = line.chars();
        while let Some(c) = characters.next() {
            match c {
                ':' if fields.len() < 5 => fields.push(String::new()),
                '\\' => fields.last_mut()?.extend(characters.next()),
                c => fields.last_mut()?.push(c),
            }
        }
        let matches = |(field, wanted): (&String, &str)| field == "*" || field == wanted;
        let found = fields.len() == 5 && fields.iter().zip(wanted).all(matches);
        found.then(|| fields.pop()).flatten()
    })
}

/// How the connection is encrypted, in the words of libpq: `sslmode` and `sslrootcert`.
#[derive(Debug, PartialEq)]
struct Tls {
    mode: String,
    /// A file of certificates, or `system`.
    roots: Option<String>,
}

impl Tls {
    /// Takes the two parameters out of a URL or `key=value` pairs, else from the environment. Returns the rest.
    fn of(database: Option<&str>) -> Result<(Option<String>, Self), Failure> {
        let (mut mode, mut roots) = (variable("PGSSLMODE"), variable("PGSSLROOTCERT"));
        let mut is_other = |parameter: &&str| {
            let target = match parameter.split_once('=') {
                Some(("sslmode", value)) => Some((&mut mode, value)),
                Some(("sslrootcert", value)) => Some((&mut roots, value)),
                _ => None,
            };
            let is_other = target.is_none();
            if let Some((target, value)) = target {
                *target = Some(percent_decode_str(value).decode_utf8_lossy().into_owned());
            }
            is_other
        };
        let mut rest = database.map(str::to_owned);
        if let Some(text) = &mut rest {
            if let Some((address, parameters)) = text.split_once('?')
                && text.contains("://")
            {
                let others: Vec<&str> = parameters.split('&').filter(&mut is_other).collect();
                let mark = if others.is_empty() { "" } else { "?" };
                *text = format!("{address}{mark}{}", others.join("&"));
            } else if is_connection_string(text) && !text.contains("://") {
                for word in text.clone().split_whitespace().filter(|word| !is_other(word)) {
                    *text = text.replacen(word, "", 1);
                }
                // libpq takes other spellings, of which the driver would know too little.
                if let Some(name) =
                    ["sslmode", "sslrootcert"].into_iter().find(|name| text.contains(name))
                {
                    return Err(format!("--database: write {name}=value, without spaces"));
                }
            }
        }
        let mode = mode.unwrap_or_else(|| "prefer".to_owned());
        if !["disable", "allow", "prefer", "require", "verify-ca", "verify-full"]
            .contains(&mode.as_str())
        {
            return Err(format!(
                "sslmode: {mode} is none of disable, allow, prefer, require, verify-ca and verify-full"
            ));
        }
        Ok((rest, Tls { mode, roots }))
    }

    fn ssl_mode(&self) -> SslMode {
        match self.mode.as_str() {
            "disable" | "allow" => SslMode::Disable,
            "prefer" => SslMode::Prefer,
            _ => SslMode::Require,
        }
    }

    /// Opens the connection. As with libpq, `prefer` and `require` accept any certificate, unless `require` comes with a
    /// file of root certificates; `verify-ca` checks as much as `verify-full`.
    fn open(&self, config: &Config) -> Result<Client, Failure> {
        if self.ssl_mode() == SslMode::Disable {
            return config.connect(NoTls).map_err(|error| in_words(&error));
        }
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("the provider supports the default versions");
        let verifies =
            self.mode.starts_with("verify") || (self.mode == "require" && self.roots.is_some());
        let tls = if verifies {
            builder.with_root_certificates(self.trusted_roots()?)
        } else {
            let any = AnyCertificate(ring::default_provider());
            builder.dangerous().with_custom_certificate_verifier(Arc::new(any))
        };
        let connector = MakeRustlsConnect::new(tls.with_no_client_auth());
        config.connect(connector).map_err(|error| in_words(&error))
    }

    /// The root certificates of the file, or those of the system.
    fn trusted_roots(&self) -> Result<RootCertStore, Failure> {
        let mut roots = RootCertStore::empty();
        let certificates = match self.roots.as_deref().filter(|file| *file != "system") {
            Some(file) => CertificateDer::pem_file_iter(file)
                .and_then(Iterator::collect)
                .map_err(|error| format!("sslrootcert: {file}: {error}"))?,
            None => rustls_native_certs::load_native_certs().certs,
        };
        roots.add_parsable_certificates(certificates);
        if roots.is_empty() {
            return Err("sslrootcert: there is no root certificate".to_owned());
        }
        Ok(roots)
    }
}

/// Accepts every certificate of a server, as `sslmode=require` of libpq does.
#[derive(Debug)]
struct AnyCertificate(CryptoProvider);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer,
        _: &[CertificateDer],
        _: &ServerName,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_matches_has_the_password() {
        let file = "# comment\nother:5432:*:*:no\ndb:*:notes:an\\:n:p\\:w:\\\\d\n*:*:*:*:any\n";
        let password = |wanted| password_for(file, wanted);
        assert_eq!(password(["db", "5432", "notes", "an:n"]).as_deref(), Some("p:w:\\d"));
        assert_eq!(password(["db", "5432", "notes", "bo"]).as_deref(), Some("any"));
        assert_eq!(password_for("db:1:2\n", ["db", "1", "2", "3"]), None);
    }

    #[test]
    fn encryption_is_asked_for_as_with_libpq() {
        let of = |database| Tls::of(Some(database));
        let tls = |mode: &str, roots: Option<&str>| Tls {
            mode: mode.to_owned(),
            roots: roots.map(str::to_owned),
        };
        for (text, rest, expected) in [
            (
                "postgresql://ann@db/notes?sslmode=verify-full&connect_timeout=3&sslrootcert=%2Fca.pem",
                "postgresql://ann@db/notes?connect_timeout=3",
                tls("verify-full", Some("/ca.pem")),
            ),
            ("postgres://db?sslmode=disable", "postgres://db", tls("disable", None)),
            ("host=db sslmode=require user=ann", "host=db  user=ann", tls("require", None)),
            ("options='-c  x' host=db", "options='-c  x' host=db", tls("prefer", None)),
            ("notes?", "notes?", tls("prefer", None)),
        ] {
            assert_eq!(of(text), Ok((Some(rest.to_owned()), expected)));
        }
        assert!(of("host=db sslmode=full").unwrap_err().contains("verify-full"));
        assert!(of("host=db sslmode = require").unwrap_err().contains("without spaces"));
    }

    #[test]
    fn a_password_in_the_arguments_is_refused() {
        for database in
            ["postgresql://ann:secret@localhost/notes", "host=localhost password=secret"]
        {
            let error = config(Some(database)).unwrap_err();
            assert!(error.contains("PGPASSFILE") && !error.contains("secret"), "{error}");
        }
    }
}
