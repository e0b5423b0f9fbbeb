//! How a connection is encrypted, in the words of libpq.

use std::sync::Arc;

use postgres::Config;
use postgres::config::SslMode;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::client::{Address, Canceller, Client, NoConnection};
use super::parameters::Settings;
use crate::Failure;

/// How connections are encrypted.
pub(super) struct Tls {
    mode: SslMode,
    connector: MakeRustlsConnect,
}

impl Tls {
    /// As with libpq, `prefer` and `require` accept any certificate, unless there is a file of root certificates with
    /// `require`. Unlike libpq, `verify-ca` checks as much as `verify-full`.
    pub(super) fn of(settings: &Settings) -> Result<Self, Failure> {
        let roots = settings.get("sslrootcert");
        let (mode, verifies) = mode_of(settings)?;
        let is_direct = settings.get("sslnegotiation") == Some("direct");
        if is_direct && mode != SslMode::Require {
            return Err(
                "sslnegotiation=direct needs sslmode require, verify-ca or verify-full".to_owned()
            );
        }
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("the provider supports the default versions");
        let builder = if verifies {
            builder.with_root_certificates(trusted_roots(roots)?)
        } else {
            let any = AnyCertificate(ring::default_provider());
            builder.dangerous().with_custom_certificate_verifier(Arc::new(any))
        };
        let mut client = builder.with_no_client_auth();
        if is_direct {
            client.alpn_protocols = vec![b"postgresql".to_vec()];
        }
        Ok(Tls { mode, connector: MakeRustlsConnect::new(client) })
    }

    /// Opens a connection to the host of this name, at this address; one by a socket is not encrypted.
    pub(super) fn open(
        &self,
        config: &Config,
        name: &str,
        address: Address,
    ) -> Result<(Client, Canceller), NoConnection> {
        let mode = match address {
            Address::Socket(_) => SslMode::Disable,
            Address::Tcp(_) => self.mode,
        };
        let mut config = config.clone();
        config.ssl_mode(mode);
        let tls = Some(&self.connector).filter(|_| mode != SslMode::Disable);
        Client::connect(&config, address, name, tls.cloned())
    }
}

/// Whether connections are encrypted, and whether the certificate is verified. The certificates of the system are many,
/// so that with them nothing less than `verify-full` is taken.
fn mode_of(settings: &Settings) -> Result<(SslMode, bool), Failure> {
    let roots = settings.get("sslrootcert");
    let default = if roots == Some("system") { "verify-full" } else { "prefer" };
    let mode = settings.get("sslmode").unwrap_or(default);
    if roots == Some("system") && mode != "verify-full" {
        return Err(format!(
            "weak sslmode \"{mode}\" may not be used with sslrootcert=system (use \"verify-full\")"
        ));
    }
    Ok(match mode {
        "disable" | "allow" => (SslMode::Disable, false),
        "require" => (SslMode::Require, roots.is_some()),
        "verify-ca" | "verify-full" => (SslMode::Require, true),
        _ => (SslMode::Prefer, false),
    })
}

/// The root certificates of the file, or those of the system.
fn trusted_roots(file: Option<&str>) -> Result<RootCertStore, Failure> {
    let mut roots = RootCertStore::empty();
    let certificates = match file.filter(|file| *file != "system") {
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
    fn modes_and_root_certificates_mean_what_they_mean_to_libpq() {
        let (disable, prefer, require) = (SslMode::Disable, SslMode::Prefer, SslMode::Require);
        let full = Some((require, true));
        // Without root certificates, with those of a file, and with those of the system.
        for (mode, expected) in [
            ("", [Some((prefer, false)), Some((prefer, false)), full]),
            ("disable", [Some((disable, false)), Some((disable, false)), None]),
            ("allow", [Some((disable, false)), Some((disable, false)), None]),
            ("prefer", [Some((prefer, false)), Some((prefer, false)), None]),
            ("require", [Some((require, false)), full, None]),
            ("verify-ca", [full, full, None]),
            ("verify-full", [full, full, full]),
        ] {
            for (roots, expected) in ["", "/root.crt", "system"].into_iter().zip(expected) {
                let mut settings = Settings::default();
                settings.set("sslmode", mode);
                settings.set("sslrootcert", roots);
                assert_eq!(mode_of(&settings).ok(), expected, "{mode} {roots}");
            }
        }
    }
}
