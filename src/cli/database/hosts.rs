//! Trying the hosts of a connection one after the other, each with its own password.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io;
use std::net::ToSocketAddrs;
use std::path::Path;

use postgres::Config;
use postgres::error::SqlState;

use super::client::{Address, Canceller, Client, NoConnection};
use super::parameters::Settings;
use super::password_file::PasswordFile;
use super::server_error;
use super::tls::Tls;
use crate::Failure;

/// Where servers of distributions have their sockets.
const SOCKETS: &str = "/var/run/postgresql";

/// What the driver takes under the same name.
const OF_THE_DRIVER: [&str; 12] = [
    "user",
    "dbname",
    "options",
    "application_name",
    "connect_timeout",
    "tcp_user_timeout",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "sslnegotiation",
    "channel_binding",
    "target_session_attrs",
];

/// One of the hosts.
#[derive(Debug, PartialEq)]
pub(super) struct Host {
    /// Its name, or the folder of its socket. Of a host without a name it is the address.
    name: String,
    /// Where it is, whatever the name says.
    address: Option<String>,
    port: u16,
}

impl Host {
    fn is_socket(&self) -> bool {
        self.address.is_none() && self.name.starts_with('/')
    }

    /// Where it is: a name may have several addresses.
    fn addresses(&self) -> io::Result<Vec<Address>> {
        if self.is_socket() {
            let file = format!(".s.PGSQL.{}", self.port);
            return Ok(vec![Address::Socket(Path::new(&self.name).join(file))]);
        }
        let host = self.address.as_deref().unwrap_or(&self.name);
        Ok((host, self.port).to_socket_addrs()?.map(Address::Tcp).collect())
    }

    fn address_text(&self) -> String {
        match (&self.address, self.is_socket()) {
            (_, true) => format!("{}/.s.PGSQL.{}", self.name, self.port),
            (Some(address), _) if *address != self.name => {
                format!("{} ({address}), port {}", self.name, self.port)
            }
            _ => format!("{}, port {}", self.name, self.port),
        }
    }
}

/// Connects to the first host that can be reached. Where a server has refused, no other is asked, as with libpq.
pub(super) fn connect(settings: &Settings) -> Result<(Client, Canceller), Failure> {
    let tls = Tls::of(settings)?;
    let mut settings = settings.clone();
    if settings.get("user").is_none() {
        let name = whoami::username().map_err(|error| format!("no --database user: {error}"))?;
        settings.set("user", &name);
    }
    if settings.get("application_name").is_none() {
        settings.set("application_name", "graph-kernel");
    }
    let passwords = match settings.get("password") {
        Some(_) => None,
        None => PasswordFile::read(settings.get("passfile")),
    };
    let user = settings.get("user").unwrap_or_default();
    let database = settings.get("dbname").unwrap_or(user);
    let mut failures: Vec<String> = Vec::new();
    for host in hosts(&settings)? {
        let password = match (settings.get("password"), &passwords) {
            (Some(password), _) => Some(password.as_bytes().to_vec()),
            (None, Some(file)) => {
                file.password([password_host(&host.name), &host.port.to_string(), database, user])
            }
            (None, None) => None,
        };
        let config = config(&settings, &host, password)?;
        let mut addresses = match host.addresses() {
            Ok(addresses) => addresses,
            Err(error) => {
                failures.push(format!("no connection to {}: {error}", host.address_text()));
                continue;
            }
        };
        if is_random(&settings) {
            shuffle(&mut addresses, |address| format!("{address:?}"));
        }
        let mut last = None;
        for address in addresses {
            match tls.open(&config, &host.name, address) {
                Ok(opened) => return Ok(opened),
                Err(error) => last = Some(error),
            }
        }
        let (text, is_unreachable) = match &last {
            None => ("no address".to_owned(), true),
            Some(NoConnection::Unreachable(error)) => (error.to_string(), true),
            Some(NoConnection::Refused(error)) => (server_error(error), is_unreachable(error)),
        };
        failures.push(format!("no connection to {}: {text}", host.address_text()));
        if !is_unreachable {
            break;
        }
    }
    Err(failures.join("; "))
}

/// Whether the server is not there yet, or not any more; not where it refuses.
fn is_unreachable(error: &postgres::Error) -> bool {
    match error.code() {
        Some(code) => *code == SqlState::CANNOT_CONNECT_NOW,
        None => std::error::Error::source(error).is_some_and(|cause| cause.is::<io::Error>()),
    }
}

/// Under which name the password file has a host: that of the folder where sockets usually are is `localhost`.
fn password_host(name: &str) -> &str {
    if name.starts_with('/') && Path::new(name) == Path::new(SOCKETS) { "localhost" } else { name }
}

/// The hosts, in the order in which they are tried.
pub(super) fn hosts(settings: &Settings) -> Result<Vec<Host>, Failure> {
    let list = |name| -> Vec<&str> {
        settings.get(name).map_or_else(Vec::new, |text| text.split(',').collect())
    };
    let (names, addresses, ports) = (list("host"), list("hostaddr"), list("port"));
    let count = names.len().max(addresses.len()).max(1);
    for (what, given) in [("hosts", names.len()), ("addresses in hostaddr", addresses.len())] {
        if given != 0 && given != count {
            return Err(format!("there are {count} addresses or hosts, and {given} {what}"));
        }
    }
    if ports.len() > 1 && ports.len() != count {
        return Err(format!("there are {} ports for {count} hosts", ports.len()));
    }
    let mut hosts = Vec::with_capacity(count);
    for n in 0..count {
        let at = |list: &[&str]| list.get(n).copied().unwrap_or_default().to_owned();
        let address = Some(at(&addresses)).filter(|address| !address.is_empty());
        let default = if Path::new(SOCKETS).is_dir() { SOCKETS } else { "localhost" };
        let name = match (at(&names), &address) {
            (name, _) if !name.is_empty() => name,
            (_, Some(address)) => address.clone(),
            (_, None) => default.to_owned(),
        };
        let port = match ports.get(n).or(ports.first().filter(|_| ports.len() == 1)) {
            Some(port) if !port.is_empty() => {
                let number = port.parse().ok().filter(|port| *port != 0);
                // It may be a password: in a URL that ends before @, it stands where a port does.
                number.ok_or("a port is a number from 1 to 65535")?
            }
            _ => 5432,
        };
        hosts.push(Host { name, address, port });
    }
    if is_random(settings) {
        shuffle(&mut hosts, Host::address_text);
    }
    Ok(hosts)
}

fn is_random(settings: &Settings) -> bool {
    settings.get("load_balance_hosts") == Some("random")
}

fn shuffle<T>(list: &mut [T], text: impl Fn(&T) -> String) {
    let random = RandomState::new();
    list.sort_by_cached_key(|one| random.hash_one(text(one)));
}

/// What the driver is given for one host.
fn config(settings: &Settings, host: &Host, password: Option<Vec<u8>>) -> Result<Config, Failure> {
    let mut pairs = Settings::default();
    for name in OF_THE_DRIVER {
        pairs.set(name, settings.get(name).unwrap_or_default());
    }
    pairs.set("keepalives_retries", settings.get("keepalives_count").unwrap_or_default());
    let address = host.address.as_deref().unwrap_or_default();
    // A folder is not a name that a certificate could have.
    let is_folder = host.name.starts_with('/') && !host.is_socket();
    pairs.set("host", if is_folder { address } else { &host.name });
    pairs.set("hostaddr", address);
    pairs.set("port", &host.port.to_string());
    let mut config: Config = pairs.pairs().parse().map_err(|error| server_error(&error))?;
    if let Some(password) = password {
        config.password(password);
    }
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts_of(pairs: &[(&str, &str)]) -> Result<Vec<(String, Option<String>, u16)>, Failure> {
        let mut settings = Settings::default();
        pairs.iter().for_each(|(name, value)| settings.set(name, value));
        let hosts = hosts(&settings)?;
        for host in &hosts {
            config(&settings, host, None)?;
        }
        Ok(hosts.into_iter().map(|host| (host.name, host.address, host.port)).collect())
    }

    #[test]
    fn hosts_addresses_and_ports_belong_together() {
        let host = |name: &str, address: Option<&str>, port| {
            (name.to_owned(), address.map(str::to_owned), port)
        };
        assert_eq!(
            hosts_of(&[("host", "a,/run/pg,"), ("hostaddr", ",,127.0.0.1"), ("port", "1,,3")]),
            Ok(vec![
                host("a", None, 1),
                host("/run/pg", None, 5432),
                host("127.0.0.1", Some("127.0.0.1"), 3)
            ])
        );
        assert_eq!(
            hosts_of(&[("host", "a,b"), ("port", "7")]),
            Ok(vec![host("a", None, 7), host("b", None, 7)])
        );
        assert_eq!(hosts_of(&[]).map(|hosts| hosts.len()), Ok(1));
        for wrong in [
            &[("host", "a,b"), ("port", "1,2,3")][..],
            &[("host", "a,b"), ("hostaddr", "127.0.0.1")],
            &[("hostaddr", "elsewhere")],
            &[("port", "0")],
            &[("port", "65536")],
            &[("connect_timeout", "soon")],
        ] {
            assert!(hosts_of(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn hosts_in_random_order_are_all_tried() {
        let tried = || {
            let list = "a,b,c,d,e,f,g,h";
            hosts_of(&[("host", list), ("load_balance_hosts", "random")]).unwrap()
        };
        let first = tried();
        assert_eq!(first.len(), 8);
        assert!((0..50).any(|_| tried() != first));
    }

    #[test]
    fn sockets_where_they_usually_are_count_as_localhost() {
        assert_eq!(password_host("/var/run/postgresql"), "localhost");
        assert_eq!(password_host("/run/other"), "/run/other");
        assert_eq!(password_host("db"), "db");
    }
}
