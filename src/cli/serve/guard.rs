//! Who is answered: requests to this service by its own name, from its own page or from a program, that know the token.
//!
//! A web page elsewhere can make a browser send requests to a loopback address, and by a name that leads there (DNS
//! rebinding) read the answers. So a request names this service in Host, comes from no other origin, and has a token in
//! a header that a browser does not add by itself.

use std::hint::black_box;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use axum::http::{HeaderMap, StatusCode, Uri};
use base64ct::{Base64, Encoding};
use kernel::hex::hex;

use super::errors::Refusal;
use crate::Failure;
use crate::database::{is_of_user, is_private};

/// How many bytes a token that is made here has.
const TOKEN_BYTES: usize = 16;

/// The token, and the names of the service.
pub(crate) struct Guard {
    /// None where no token is asked for.
    token: Option<String>,
    /// What Host may say, in lower case.
    hosts: Vec<String>,
}

impl Guard {
    /// The guard of a service at this address, which has more names where a proxy is in front of it.
    pub(crate) fn new(token: Option<String>, address: SocketAddr, names: &[String]) -> Self {
        let mut hosts: Vec<String> = names.iter().map(|name| name.to_lowercase()).collect();
        let mut own = vec![address.ip().to_string()];
        if address.ip().is_loopback() {
            own.push("localhost".to_owned());
        }
        for name in own {
            let name = if name.contains(':') { format!("[{name}]") } else { name };
            if address.port() == 80 {
                hosts.push(name.clone());
            }
            hosts.push(format!("{name}:{}", address.port()));
        }
        Guard { token, hosts }
    }

    /// Refuses a request that was meant for another host, or comes from the page of another one.
    pub(crate) fn check_origin(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
        let refused = |word, message: &str| Err(Refusal::new(StatusCode::FORBIDDEN, word, message));
        let given = only(headers, HOST.as_str());
        let host = given.filter(|host| uri.authority().is_none_or(|named| named == *host));
        if !host.is_some_and(|host| self.is_own(host)) {
            return refused(
                "OTHER_HOST",
                "the Host header is none of this service's names; --host adds one",
            );
        }
        let is_own_page = |origin: &str| {
            let host =
                ["http://", "https://"].iter().find_map(|scheme| origin.strip_prefix(scheme));
            host.is_some_and(|host| self.is_own(host))
        };
        if headers.contains_key(ORIGIN) && !only(headers, ORIGIN.as_str()).is_some_and(is_own_page)
        {
            return refused("OTHER_ORIGIN", "the request comes from the page of another origin");
        }
        Ok(())
    }

    /// Refuses a request without the token: `Authorization: Bearer TOKEN`, or the password of Basic, which clients
    /// that only take an address can have in it.
    pub(crate) fn check_token(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        // A browser says where a request comes from; a program says nothing.
        let site = only(headers, "sec-fetch-site");
        let is_own = site.is_some_and(|site| ["same-origin", "none"].contains(&site));
        if headers.contains_key("sec-fetch-site") && !is_own {
            let message = "the request comes from the page of another origin";
            return Err(Refusal::new(StatusCode::FORBIDDEN, "OTHER_ORIGIN", message));
        }
        let Some(token) = &self.token else { return Ok(()) };
        let given = only(headers, AUTHORIZATION.as_str()).and_then(token_in);
        match given.is_some_and(|given| is_equal(given.as_bytes(), token.as_bytes())) {
            true => Ok(()),
            false => Err(Refusal {
                hint: Some("use the address that graph-kernel serve prints".to_owned()),
                ..Refusal::new(
                    StatusCode::UNAUTHORIZED,
                    "TOKEN_REQUIRED",
                    "the token is missing or wrong",
                )
            }),
        }
    }

    fn is_own(&self, host: &str) -> bool {
        self.hosts.iter().any(|own| own.eq_ignore_ascii_case(host))
    }
}

/// The value of a header that stands once, and is text.
fn only<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    value.to_str().ok().filter(|_| values.next().is_none())
}

/// The token of an Authorization header.
fn token_in(header: &str) -> Option<String> {
    let (scheme, value) = header.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(value.trim().to_owned());
    }
    let value = scheme.eq_ignore_ascii_case("basic").then(|| value.trim())?;
    let text = String::from_utf8(Base64::decode_vec(value).ok()?).ok()?;
    Some(text.split_once(':')?.1.to_owned())
}

/// Whether two texts are equal, in a time that depends on their lengths alone.
fn is_equal(one: &[u8], other: &[u8]) -> bool {
    let differing = one.iter().zip(other).fold(0, |all, (a, b)| black_box(all | (a ^ b)));
    one.len() == other.len() && differing == 0
}

/// A new token, from the system's source of random numbers.
pub(crate) fn new_token() -> Result<String, Failure> {
    let mut bytes = [0; TOKEN_BYTES];
    let source = rustls::crypto::ring::default_provider().secure_random;
    source.fill(&mut bytes).map_err(|_| "the system gives no random numbers".to_owned())?;
    Ok(hex(&bytes))
}

/// The token in a file that others can neither read nor own.
pub(crate) fn token_of(path: &Path) -> Result<String, Failure> {
    let failed = |why: &str| format!("--token-file: {}: {why}", path.display());
    let file = std::fs::metadata(path).map_err(|error| failed(&error.to_string()))?;
    if !file.is_file() {
        return Err(failed("it is not a regular file"));
    }
    if !is_private(&file) {
        return Err(failed("others can read it (chmod 600)"));
    }
    if !is_of_user(&file) {
        return Err(failed("another user owns it, and knows the token (chown)"));
    }
    let text = std::fs::read_to_string(path).map_err(|error| failed(&error.to_string()))?;
    let token = text.trim_ascii();
    let is_token =
        (32..=256).contains(&token.len()) && token.bytes().all(|byte| byte.is_ascii_alphanumeric());
    match is_token {
        true => Ok(token.to_owned()),
        false => Err(failed("it does not consist of 32 to 256 letters and digits")),
    }
}

/// Refuses to let other machines in without a token that was chosen for it.
pub(crate) fn check_address(address: IpAddr, has_token_file: bool) -> Result<(), Failure> {
    match address.is_loopback() || has_token_file {
        true => Ok(()),
        false => Err(format!(
            "--listen {address}: other machines can reach it, which needs --token-file"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_is_that_of_bearer_or_the_password_of_basic() {
        let guard = Guard::new(Some("t0k".to_owned()), "127.0.0.1:80".parse().unwrap(), &[]);
        let checked = |header: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, header.parse().unwrap());
            guard.check_token(&headers).is_ok()
        };
        let basic = |text: &str| format!("Basic {}", Base64::encode_string(text.as_bytes()));
        for good in ["Bearer t0k", "bearer t0k", &basic("any:t0k"), &basic(":t0k")] {
            assert!(checked(good), "{good}");
        }
        for wrong in ["t0k", "Bearer", "Bearer t0kk", "Bearer t0", &basic("t0k"), "Basic t0k", ""] {
            assert!(!checked(wrong), "{wrong}");
        }
    }

    #[test]
    fn a_host_is_one_of_the_service_s_names() {
        let guard = Guard::new(None, "[::1]:8001".parse().unwrap(), &["Memory.example".to_owned()]);
        let checked = |uri: &str, host: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, host.parse().unwrap());
            guard.check_origin(&uri.parse().unwrap(), &headers).is_ok()
        };
        for good in ["[::1]:8001", "localhost:8001", "LOCALHOST:8001", "memory.example"] {
            assert!(checked("/", good), "{good}");
        }
        for wrong in ["[::1]", "localhost", "localhost:8001.", "x:8001", "memory.example:80", ""] {
            assert!(!checked("/", wrong), "{wrong}");
        }
        assert!(checked("http://localhost:8001/", "localhost:8001"));
        assert!(!checked("http://evil.example/", "localhost:8001"));
        assert!(guard.check_origin(&"/".parse().unwrap(), &HeaderMap::new()).is_err());
    }

    #[test]
    fn a_new_token_is_new() {
        let (one, other) = (new_token().unwrap(), new_token().unwrap());
        assert!(one.len() == 2 * TOKEN_BYTES && one != other);
    }
}
