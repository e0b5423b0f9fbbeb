//! Connecting to a database as libpq does: the same variables, password file and meaning of `sslmode`.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use postgres::config::{Host, SslMode};
use postgres::{Client, Config, NoTls};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::Failure;

/// A connection, and where the extension is.
pub(crate) struct Database {
    pub(crate) client: Client,
    /// The schema of the extension's functions, quoted.
    pub(crate) schema: String,
}

/// Connects to `database`, a URL or `key=value` pairs or a name; what it does not say is taken from the environment.
/// `graph` is the name of a binding, as in the setting `graph_kernel.graph`.
pub(crate) fn connect(database: Option<&str>, graph: Option<&str>) -> Result<Database, Failure> {
    let config = config(database)?;
    let mut client = open(&config).map_err(|error| in_words(&error))?;
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
            "SET search_path = pg_catalog, pg_temp; SET TimeZone = 'UTC'; SET DateStyle = 'ISO'",
        )
        .and_then(|()| match graph {
            Some(graph) => client
                .execute("SELECT set_config('graph_kernel.graph', $1, false)", &[&graph])
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

fn config(database: Option<&str>) -> Result<Config, Failure> {
    let wrong = |error: postgres::Error| format!("--database: {}", in_words(&error));
    let mut config = match database {
        None => Config::new(),
        Some(text) if text.contains("://") || text.contains('=') => text.parse().map_err(wrong)?,
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
        anstream::eprintln!("{}: not used: others can read it (chmod 600)", path.display());
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

/// Opens the connection with the encryption that `sslmode` asks for. As with libpq, `prefer` and `require` do not check
/// whose certificate it is, unless there is a file of roots; `verify-ca` is taken as `verify-full`.
fn open(config: &Config) -> Result<Client, postgres::Error> {
    let mut config = config.clone();
    let mode = variable("PGSSLMODE");
    if config.get_ssl_mode() == SslMode::Prefer {
        match mode.as_deref() {
            Some("disable" | "allow") => config.ssl_mode(SslMode::Disable),
            Some("require" | "verify-ca" | "verify-full") => config.ssl_mode(SslMode::Require),
            _ => &mut config,
        };
    }
    if config.get_ssl_mode() == SslMode::Disable {
        return config.connect(NoTls);
    }
    let roots = variable("PGSSLROOTCERT");
    let verifies = matches!(mode.as_deref(), Some("verify-ca" | "verify-full"))
        || (roots.is_some() && config.get_ssl_mode() == SslMode::Require);
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider supports the default versions");
    let tls = if verifies {
        builder.with_root_certificates(trusted_roots(roots.as_deref()))
    } else {
        builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate(ring::default_provider())))
    };
    config.connect(MakeRustlsConnect::new(tls.with_no_client_auth()))
}

/// The certificates of a file, or those of the system. Without any, no server is trusted.
fn trusted_roots(file: Option<&str>) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    match file.filter(|file| *file != "system") {
        Some(file) => {
            let certificates = CertificateDer::pem_file_iter(file).into_iter().flatten();
            roots.add_parsable_certificates(certificates.filter_map(Result::ok));
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    roots
}

/// Encrypts without asking who answers, as `sslmode=require` of libpq does.
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
    fn a_password_in_the_arguments_is_refused() {
        for database in
            ["postgresql://ann:secret@localhost/notes", "host=localhost password=secret"]
        {
            let error = config(Some(database)).unwrap_err();
            assert!(error.contains("PGPASSFILE") && !error.contains("secret"), "{error}");
        }
    }
}
