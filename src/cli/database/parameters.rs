//! The parameters of a connection: of the argument, else of the environment, as libpq reads them. What the program
//! cannot do is refused by its name: a setting that protects must not be ignored.

use std::env;
use std::net::Ipv6Addr;

use percent_encoding::percent_decode_str;

use crate::Failure;

/// The values of `sslmode`.
const SSL_MODES: [&str; 6] = ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"];

/// What the program makes of a parameter.
#[derive(Clone, Copy)]
enum Use {
    /// It takes any value.
    Any,
    /// It takes these values.
    Of(&'static [&'static str]),
    /// It does what these values say in any case; another is refused.
    Always(&'static [&'static str]),
    /// Nothing depends on it: texts are UTF-8, times in UTC, and there is no GSSAPI, no file of services.
    Nothing,
}

/// The parameters of libpq up to version 18, with their variables.
const PARAMETERS: [(&str, Option<&str>, Use); 49] = [
    ("host", Some("PGHOST"), Use::Any),
    ("hostaddr", Some("PGHOSTADDR"), Use::Any),
    ("port", Some("PGPORT"), Use::Any),
    ("dbname", Some("PGDATABASE"), Use::Any),
    ("user", Some("PGUSER"), Use::Any),
    ("password", Some("PGPASSWORD"), Use::Any),
    ("passfile", Some("PGPASSFILE"), Use::Any),
    ("options", Some("PGOPTIONS"), Use::Any),
    ("application_name", Some("PGAPPNAME"), Use::Any),
    ("connect_timeout", Some("PGCONNECT_TIMEOUT"), Use::Any),
    ("keepalives", None, Use::Any),
    ("keepalives_idle", None, Use::Any),
    ("keepalives_interval", None, Use::Any),
    ("keepalives_count", None, Use::Any),
    ("tcp_user_timeout", None, Use::Any),
    ("sslmode", Some("PGSSLMODE"), Use::Of(&SSL_MODES)),
    ("sslrootcert", Some("PGSSLROOTCERT"), Use::Any),
    ("sslnegotiation", Some("PGSSLNEGOTIATION"), Use::Of(&["postgres", "direct"])),
    ("channel_binding", Some("PGCHANNELBINDING"), Use::Of(&["disable", "prefer", "require"])),
    (
        "target_session_attrs",
        Some("PGTARGETSESSIONATTRS"),
        Use::Of(&["any", "read-write", "read-only"]),
    ),
    ("load_balance_hosts", Some("PGLOADBALANCEHOSTS"), Use::Of(&["disable", "random"])),
    ("requiressl", Some("PGREQUIRESSL"), Use::Always(&["0"])),
    ("sslcompression", Some("PGSSLCOMPRESSION"), Use::Nothing),
    ("sslsni", Some("PGSSLSNI"), Use::Always(&["1"])),
    ("sslcert", Some("PGSSLCERT"), Use::Always(&[])),
    ("sslkey", Some("PGSSLKEY"), Use::Always(&[])),
    ("sslpassword", None, Use::Always(&[])),
    ("sslcertmode", Some("PGSSLCERTMODE"), Use::Always(&["disable", "allow"])),
    ("sslcrl", Some("PGSSLCRL"), Use::Always(&[])),
    ("sslcrldir", Some("PGSSLCRLDIR"), Use::Always(&[])),
    (
        "ssl_min_protocol_version",
        Some("PGSSLMINPROTOCOLVERSION"),
        Use::Always(&["TLSv1", "TLSv1.1", "TLSv1.2"]),
    ),
    ("ssl_max_protocol_version", Some("PGSSLMAXPROTOCOLVERSION"), Use::Always(&["TLSv1.3"])),
    ("min_protocol_version", Some("PGMINPROTOCOLVERSION"), Use::Always(&["3.0"])),
    ("max_protocol_version", Some("PGMAXPROTOCOLVERSION"), Use::Always(&["3.0", "3.2", "latest"])),
    ("require_auth", Some("PGREQUIREAUTH"), Use::Always(&[])),
    ("requirepeer", Some("PGREQUIREPEER"), Use::Always(&[])),
    ("gssencmode", Some("PGGSSENCMODE"), Use::Always(&["disable", "prefer"])),
    ("gssdelegation", Some("PGGSSDELEGATION"), Use::Always(&["0"])),
    ("krbsrvname", Some("PGKRBSRVNAME"), Use::Nothing),
    ("gsslib", Some("PGGSSLIB"), Use::Nothing),
    ("service", Some("PGSERVICE"), Use::Always(&[])),
    ("servicefile", Some("PGSERVICEFILE"), Use::Nothing),
    ("replication", None, Use::Always(&["false", "off", "no", "0"])),
    ("client_encoding", Some("PGCLIENTENCODING"), Use::Nothing),
    ("datestyle", Some("PGDATESTYLE"), Use::Nothing),
    ("timezone", Some("PGTZ"), Use::Nothing),
    ("geqo", Some("PGGEQO"), Use::Nothing),
    ("sysconfdir", Some("PGSYSCONFDIR"), Use::Nothing),
    ("localedir", Some("PGLOCALEDIR"), Use::Nothing),
];

/// Names and values, each name once and none empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Settings(Vec<(String, String)>);

impl Settings {
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Sets a value, in place of an earlier one. An empty one is none.
    pub(super) fn set(&mut self, name: &str, value: &str) {
        self.0.retain(|(known, _)| known != name);
        if !value.is_empty() {
            self.0.push((name.to_owned(), value.to_owned()));
        }
    }

    /// As `key=value` pairs.
    pub(super) fn pairs(&self) -> String {
        let quoted = |value: &str| value.replace('\\', "\\\\").replace('\'', "\\'");
        let pairs = self.0.iter().map(|(name, value)| format!("{name}='{}'", quoted(value)));
        pairs.collect::<Vec<_>>().join(" ")
    }
}

/// The settings that a URL, `key=value` pairs or the name of a database give, with those of the environment.
pub(super) fn of(database: Option<&str>) -> Result<Settings, Failure> {
    with_variables(database, &of_environment)
}

/// The same of the variable of this name, which other users of the machine cannot see: there may be a password in it.
pub(super) fn of_variable(name: &str) -> Result<Settings, Failure> {
    merged(name, &of_environment(name)?, &of_environment)
}

fn of_environment(name: &str) -> Result<String, Failure> {
    match env::var(name) {
        Ok(value) => Ok(value),
        Err(env::VarError::NotPresent) => Ok(String::new()),
        Err(env::VarError::NotUnicode(_)) => Err(format!("{name} is not UTF-8")),
    }
}

/// The argument for the database.
const ARGUMENT: &str = "--database";

fn with_variables(
    database: Option<&str>,
    variable: &dyn Fn(&str) -> Result<String, Failure>,
) -> Result<Settings, Failure> {
    merged(ARGUMENT, database.unwrap_or_default(), variable)
}

/// The settings of a text from this source, with those of the variables.
fn merged(
    source: &str,
    database: &str,
    variable: &dyn Fn(&str) -> Result<String, Failure>,
) -> Result<Settings, Failure> {
    let wrong = |why: String| format!("{source}: {why}");
    let mut settings = Settings::default();
    let pairs = parsed(database).map_err(wrong)?;
    if source == ARGUMENT && pairs.iter().any(|(name, _)| name == "password") {
        return Err("a password on the command line can be seen by others: use a password file (PGPASSFILE, \
                    ~/.pgpass) or PGPASSWORD"
            .to_owned());
    }
    for (name, value) in pairs {
        let Some((_, _, usage)) = PARAMETERS.iter().find(|(known, ..)| *known == name) else {
            // What is not a word may be part of a password.
            let is_word = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
            let name = if is_word { &name } else { "of that name" };
            return Err(wrong(format!("graph-kernel knows no parameter {name}")));
        };
        check(&format!("{source}: {name}"), &value, *usage)?;
        settings.set(&name, &value);
    }
    for (name, variable_name, usage) in PARAMETERS {
        let Some(variable_name) = variable_name else { continue };
        if settings.get(name).is_none() && name != "requiressl" {
            let value = variable(variable_name)?;
            check(variable_name, &value, usage)?;
            // As in --database: a name with these is part of a URL, or of pairs, far more often than it is a name.
            if name == "dbname" && value.contains([':', '/', '@', '=']) {
                return Err(format!(
                    "{variable_name} takes the name of a database, and neither a URL nor key=value pairs; a name \
                     with :, /, @ or = is given as --database dbname=..."
                ));
            }
            settings.set(name, &value);
        }
    }
    for (name, value) in &settings.0 {
        check_text(name, value)?;
    }
    if settings.get("sslmode").is_none() && variable("PGREQUIRESSL")?.starts_with('1') {
        settings.set("sslmode", "require");
    }
    Ok(settings)
}

/// Refuses a value that the program would have to ignore. It is not repeated: it may be a URL with a password.
fn check(source: &str, value: &str, usage: Use) -> Result<(), Failure> {
    let is_one = |values: &[&str]| values.contains(&value);
    match usage {
        _ if value.is_empty() => Ok(()),
        Use::Any | Use::Nothing => Ok(()),
        Use::Of(values) | Use::Always(values) if is_one(values) => Ok(()),
        Use::Of(values) => Err(format!("{source}: the value is none of {}", values.join(", "))),
        Use::Always([]) => Err(format!("{source} is set, and graph-kernel cannot do what it asks")),
        Use::Always(values) => Err(format!(
            "{source}: graph-kernel cannot do what it asks, only {}",
            values.join(", ")
        )),
    }
}

/// Refuses a value that is a URL or `key=value` pairs, or a part of them. It is not repeated: it may have a password in
/// it, which errors of the server and of the connection would show.
fn check_text(name: &str, value: &str) -> Result<(), Failure> {
    let is_url = value.contains("://");
    // The password stands between the two.
    let is_cut = value.split_once(':').is_some_and(|(_, rest)| rest.contains('@'));
    let mut before_values = value.rsplit('=').skip(1).map(|text| text.trim_end().to_lowercase());
    let is_pairs = before_values.any(|text| text.ends_with("password"));
    let is_wrong = match name {
        "host" => is_url || is_pairs || !value.split(',').all(is_host),
        "hostaddr" | "port" | "user" | "dbname" => is_url || is_cut || is_pairs,
        // The value of an option may be a URL.
        "options" => !value.trim_start().starts_with('-') && (is_url || is_cut || is_pairs),
        "sslrootcert" | "passfile" => is_url,
        _ => false,
    };
    match is_wrong {
        true if name == "host" => Err(
            "host: neither names, addresses nor folders of sockets; a URL is given as --database, a port as port"
                .to_owned(),
        ),
        true => Err(format!(
            "{name}: its value cannot be a URL or key=value pairs; --database takes these"
        )),
        false => Ok(()),
    }
}

/// Whether this can be a name, an address, a folder or, after `@`, an abstract socket.
fn is_host(text: &str) -> bool {
    if text.starts_with('/') {
        return !(text.starts_with("//") && text.contains('@'));
    }
    let address = text.split_once('%').map_or(text, |(address, _zone)| address);
    let is_address = address.parse::<Ipv6Addr>().is_ok();
    let name = text.strip_prefix('@').unwrap_or(text);
    !name.contains('@') && (is_address || !name.contains(':'))
}

/// The pairs in a URL, in `key=value` pairs or in the name of a database. A URL that is mistyped, or of something else,
/// is not taken for a name. It is not repeated in an error, as there may be a password in it.
fn parsed(text: &str) -> Result<Vec<(String, String)>, String> {
    let url = ["postgresql://", "postgres://"].iter().find_map(|prefix| text.strip_prefix(prefix));
    let before_value = text.split_once('=').map_or(text, |(name, _)| name);
    match url {
        Some(rest) => in_url(rest),
        None if before_value.contains([':', '/', '@']) => Err(
            "neither a URL postgresql://..., nor key=value pairs, nor the name of a database; a name with :, / or @ \
             is given as dbname=..."
                .to_owned(),
        ),
        None if text.contains('=') => in_pairs(text),
        None => Ok(vec![("dbname".to_owned(), text.to_owned())]),
    }
}

/// `user:password@host:port,host:port/database?name=value&…`, of which each part may be missing.
fn in_url(rest: &str) -> Result<Vec<(String, String)>, String> {
    let mut pairs = Vec::new();
    let mut add = |name: &str, value: &str| -> Result<(), String> {
        let decoded = |text: &str| {
            let text = percent_decode_str(text).decode_utf8();
            text.map(|text| text.into_owned()).map_err(|_| "not UTF-8".to_owned())
        };
        pairs.push((decoded(name)?, decoded(value)?));
        Ok(())
    };
    let (address, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, database) = address.split_once('/').unwrap_or((address, ""));
    let (who, hosts) = authority.split_once('@').unwrap_or(("", authority));
    // Then the authority ended within a password.
    let is_cut = database.contains('@')
        || (query.contains('@') && !address.contains('/') && authority.contains(':'));
    if who.is_empty() && is_cut {
        return Err("in a URL, @ is written %40 but before the hosts, and in a user or password / is written %2F and \
                    ? is written %3F"
            .to_owned());
    }
    let (user, password) = who.split_once(':').unwrap_or((who, ""));
    add("user", user)?;
    add("password", password)?;
    let (mut names, mut ports) = (Vec::new(), Vec::new());
    for host in hosts.split(',') {
        let (name, port) = match host.strip_prefix('[').and_then(|host| host.split_once(']')) {
            Some((name, "")) => (name, ""),
            Some((name, port)) => {
                (name, port.strip_prefix(':').ok_or("after ] comes : and a port")?)
            }
            None => host.split_once(':').unwrap_or((host, "")),
        };
        names.push(name);
        ports.push(port);
    }
    for (name, values) in [("host", names), ("port", ports)] {
        if values.iter().any(|value| !value.is_empty()) {
            add(name, &values.join(","))?;
        }
    }
    add("dbname", database)?;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=').ok_or("after ? come pairs name=value")? {
            // As JDBC writes it.
            ("ssl", "true") => add("sslmode", "require")?,
            (name, value) => add(name, value)?,
        }
    }
    pairs.retain(|(_, value)| !value.is_empty());
    Ok(pairs)
}

/// `name=value name = 'value with spaces'`, with `\` before a quote or another `\`.
fn in_pairs(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut pairs = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (name, after) = rest.split_once('=').ok_or("after a name comes =")?;
        let name = name.trim_end();
        if name.is_empty() || name.contains(char::is_whitespace) {
            return Err("before = comes the name of a parameter".to_owned());
        }
        let mut characters = after.trim_start().chars();
        let is_quoted = characters.as_str().starts_with('\'');
        if is_quoted {
            characters.next();
        }
        let mut value = String::new();
        loop {
            match characters.next() {
                None if is_quoted => return Err("a value in quotes does not end".to_owned()),
                None => break,
                Some('\'') if is_quoted => break,
                Some(c) if c.is_whitespace() && !is_quoted => break,
                Some('\\') => value.extend(characters.next()),
                Some(c) => value.push(c),
            }
        }
        pairs.push((name.to_owned(), value));
        rest = characters.as_str().trim_start();
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn urls_pairs_and_names_are_read_as_libpq_reads_them() {
        for (text, expected) in [
            ("notes", &[("dbname", "notes")][..]),
            ("postgresql://", &[]),
            ("postgres:///notes", &[("dbname", "notes")]),
            (
                "postgresql://ann@db/notes?sslmode=verify-full&sslrootcert=%2Fca.pem",
                &[
                    ("user", "ann"),
                    ("host", "db"),
                    ("dbname", "notes"),
                    ("sslmode", "verify-full"),
                    ("sslrootcert", "/ca.pem"),
                ],
            ),
            (
                "postgresql://a%40b@one:1,[::1]:2,three/?host=x&ssl=true",
                &[
                    ("user", "a@b"),
                    ("host", "one,::1,three"),
                    ("port", "1,2,"),
                    ("host", "x"),
                    ("sslmode", "require"),
                ],
            ),
            ("postgresql://%2Frun%2Fpg/n", &[("host", "/run/pg"), ("dbname", "n")]),
            (
                r" host = db  options='-c x=\'a\\b\'' user=a\ b sslmode=''",
                &[("host", "db"), ("options", r"-c x='a\b'"), ("user", "a b"), ("sslmode", "")],
            ),
        ] {
            assert_eq!(parsed(text), Ok(pairs(expected)), "{text}");
        }
        for wrong in ["host", "a b=c", "=c", "user='x"] {
            assert!(in_pairs(wrong).is_err(), "{wrong}");
        }
        assert!(
            in_url("[::1]5432/x").is_err() && in_url("/x?a").is_err() && in_url("%ff").is_err()
        );
    }

    #[test]
    fn values_come_back_from_pairs() {
        let mut settings = Settings::default();
        for (name, value) in
            [("user", "a'b\\c d"), ("options", "-c a=b"), ("dbname", "x"), ("dbname", "")]
        {
            settings.set(name, value);
        }
        assert_eq!(in_pairs(&settings.pairs()), Ok(settings.0));
    }

    #[test]
    fn what_the_argument_does_not_say_comes_from_the_environment() {
        let variable = |name: &str| {
            Ok(match name {
                "PGHOST" => "one,two",
                "PGDATABASE" => "other",
                "PGREQUIRESSL" => "1",
                _ => "",
            }
            .to_owned())
        };
        let settings = with_variables(Some("notes"), &variable).unwrap();
        let of = |name| settings.get(name);
        assert_eq!(
            (of("host"), of("dbname"), of("sslmode"), of("user")),
            (Some("one,two"), Some("notes"), Some("require"), None)
        );
        let settings = with_variables(Some("sslmode=disable host=three"), &variable).unwrap();
        assert_eq!(
            (settings.get("sslmode"), settings.get("host")),
            (Some("disable"), Some("three"))
        );
    }

    #[test]
    fn what_the_program_cannot_do_is_refused_by_name() {
        let none = |_: &str| Ok(String::new());
        for (name, variable_name, usage) in PARAMETERS {
            let (good, wrong) = match usage {
                Use::Any | Use::Nothing => (&["x"][..], None),
                Use::Of(values) | Use::Always(values) => (values, Some("odd")),
            };
            let given = |value: &str| {
                let variable = |name: &str| match Some(name) == variable_name {
                    true => Ok(value.to_owned()),
                    false => Ok(String::new()),
                };
                with_variables(None, &variable)
            };
            for value in good.iter().filter(|_| name != "password") {
                with_variables(Some(&format!("{name}={value}")), &none).unwrap();
                given(value).unwrap();
            }
            let Some(wrong) = wrong else { continue };
            let error = with_variables(Some(&format!("{name}={wrong}")), &none).unwrap_err();
            assert!(error.starts_with(&format!("--database: {name}")), "{error}");
            // The driver knows no more of it; its variable means what libpq says.
            if let Some(variable_name) = variable_name.filter(|name| *name != "PGREQUIRESSL") {
                let error = given(wrong).unwrap_err();
                assert!(error.starts_with(variable_name), "{error}");
            }
        }
        assert!(with_variables(Some("sslmodes=x"), &none).unwrap_err().contains("sslmodes"));
    }

    #[test]
    fn what_looks_like_a_mistyped_url_is_refused_and_not_repeated() {
        let none = |_: &str| Ok(String::new());
        for text in [
            "Postgresql://u:s3cret@h/notes",
            "POSTGRES://u:s3cret@h/notes?sslmode=require",
            "mysql://u:s3cret@h/notes",
            "jdbc:postgresql://h/notes?user=u&password=s3cret",
            "postgresql:/u:s3cret@h/notes",
            "postgresql:u:s3cret@h/notes",
            "postgresql//u:s3cret@h/notes",
            " postgresql://u:s3cret@h/notes",
            "u:s3cret@h/notes",
            "u:s3cret=@h/notes",
            "postgresql://u:x/s3cret@h/notes",
            "postgresql://u:s3cret/x@h/notes",
            "postgresql://u:1/s3cret@h/notes",
            "postgresql://u:1?s3cret=@h/notes",
            "postgresql://u:s3cret?x=y@h/notes",
            "postgresql://u:x#s3cret@h/notes",
            "postgresql://u:x@s3cret@h/notes",
            "postgresql://u:s3cret/notes",
            "dbname=postgresql://u:s3cret@h/notes",
            "host=h password=a s3cret=b",
            "host=h s3cret@x=b",
            "host=h s3cret@x='b",
        ] {
            let error = with_variables(Some(text), &none)
                .and_then(|settings| super::super::hosts::hosts(&settings).map(|_| ()))
                .expect_err(text);
            assert!(!error.contains("s3cret"), "{text}: {error}");
        }
        for good in [
            "notes.2025-03",
            "dbname='a@:/='",
            "postgresql:///notes?user=a@b",
            "postgresql://h?application_name=a:b@c",
        ] {
            with_variables(Some(good), &none).unwrap();
        }
    }

    /// The settings of one value, from each place where it can stand.
    fn from_each_place(name: &str, value: &str) -> [Result<Settings, Failure>; 3] {
        let (_, variable_name, _) = PARAMETERS.iter().find(|(known, ..)| *known == name).unwrap();
        let none = |_: &str| Ok(String::new());
        let variable = |asked: &str| {
            Ok(if Some(asked) == *variable_name { value.to_owned() } else { String::new() })
        };
        let bytes = value.bytes().map(|byte| format!("%{byte:02x}")).collect::<String>();
        [
            with_variables(None, &variable),
            with_variables(Some(&format!("{name}='{value}'")), &none),
            with_variables(Some(&format!("postgresql://?{name}={bytes}")), &none),
        ]
    }

    #[test]
    fn a_url_or_pairs_in_place_of_a_value_are_refused_and_not_repeated() {
        let urls = [
            "postgresql://u:s3cret@h/notes",
            "Postgres://u:s3cret@h",
            "jdbc:postgresql://h/notes?user=u&password=s3cret",
        ];
        let without_scheme = [
            "u:s3cret@h/notes",
            "//u:s3cret@h/notes",
            "postgresql:/u:s3cret@h/notes",
            "u:s3cret,x@h",
            "u:s3cret/x@h",
            "host=h password=s3cret",
            "h?user=u&Password = s3cret",
        ];
        let names = ["host", "hostaddr", "port", "user", "dbname", "options"];
        let names = names
            .iter()
            .flat_map(|name| urls.iter().chain(&without_scheme).map(move |value| (*name, *value)));
        let others = PARAMETERS.iter().filter(|(name, _, usage)| match usage {
            Use::Any => ["sslrootcert", "passfile"].contains(name),
            Use::Of(_) | Use::Always(_) => true,
            Use::Nothing => false,
        });
        let others = others
            .flat_map(|(name, ..)| urls.iter().map(move |value| (*name, *value)))
            .filter(|(name, _)| *name != "requiressl");
        let hosts = ["h,user:s3cret@h2", "u:s3cret", "u:s3cret,@h", "u:s3cret,/x@h", "u@s3cret@h"];
        for (name, value) in names.chain(others).chain(hosts.map(|value| ("host", value))) {
            let has_variable =
                PARAMETERS.iter().any(|(known, variable, _)| *known == name && variable.is_some());
            for settings in
                from_each_place(name, value).into_iter().skip(usize::from(!has_variable))
            {
                let error = settings.expect_err(&format!("{name} {value}"));
                assert!(!error.contains("s3cret"), "{name} {value}: {error}");
            }
        }
        // As in --database, a name alone.
        for value in ["h/s3cret", "u@s3cret", "postgresql:s3cret", "user=s3cret"] {
            let [error, given, _] = from_each_place("dbname", value);
            assert!(!error.unwrap_err().contains("s3cret"), "{value}");
            given.unwrap();
        }
    }

    #[test]
    fn names_addresses_and_folders_are_values() {
        for (name, value) in [
            ("host", "db.example,::1,fe80::1%eth0,127.0.0.1,,/run/a@b:c,@abstract"),
            ("hostaddr", "::1,127.0.0.1,"),
            ("port", "1,,3"),
            ("user", "ann/admin@EXAMPLE.ORG"),
            ("user", "a:b"),
            ("dbname", "notes 2025-03"),
            ("options", " -c app.url=http://u:p@h"),
            ("password", "a://b:c@d"),
            ("application_name", "http://a:b@c"),
            ("sslrootcert", r"C:\Users\ann@example\root.crt"),
        ] {
            let [variable, pairs, url] = from_each_place(name, value);
            variable.expect(name);
            if name != "password" {
                pairs.expect(name);
                url.expect(name);
            }
        }
    }

    #[test]
    fn a_password_in_the_arguments_is_refused() {
        for database in
            ["postgresql://ann:secret@localhost/notes", "host=localhost password=secret"]
        {
            let error = with_variables(Some(database), &|_| Ok(String::new())).unwrap_err();
            assert!(error.contains("PGPASSFILE") && !error.contains("secret"), "{error}");
        }
    }
}
