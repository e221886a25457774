//! TLS by rustls with ring; trust comes from the system's bundle of certificates or from a file that is named.

use rackmath_spec::SpecError;
use std::path::Path;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Where systems keep the certificates they trust: Debian, Red Hat, SUSE, Alpine and macOS, FreeBSD.
const BUNDLES: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/usr/local/share/certs/ca-root-nss.crt",
];

pub(super) struct Connector {
    tls: TlsConnector,
    name: ServerName<'static>,
}

impl Connector {
    pub async fn wrap(&self, stream: TcpStream) -> std::io::Result<TlsStream<TcpStream>> {
        self.tls.connect(self.name.clone(), stream).await
    }
}

pub(super) fn connector(host: &str, ca: Option<&str>) -> Result<Connector, SpecError> {
    let wrong = |e: &dyn std::fmt::Display| SpecError::said(format!("TLS: {e}"));
    let mut roots = RootCertStore::empty();
    let named = ca.map(str::to_owned).or_else(|| std::env::var("SSL_CERT_FILE").ok().filter(|f| !f.is_empty()));
    let file = named.or_else(|| BUNDLES.iter().find(|f| Path::new(f).is_file()).map(|f| (*f).to_owned()));
    let file = file.ok_or_else(|| {
        SpecError::said("no certificates to trust were found on this system")
            .hint("expected a PEM file: --ca FILE, or SSL_CERT_FILE")
    })?;
    let certificates = CertificateDer::pem_file_iter(&file).map_err(|e| wrong(&format!("{file}: {e}")))?;
    roots.add_parsable_certificates(certificates.filter_map(Result::ok));
    if roots.is_empty() {
        return Err(SpecError::file(&file, "no certificate in it").hint("expected a PEM file"));
    }
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().map_err(|e| wrong(&e))?;
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let name = ServerName::try_from(host.to_owned()).map_err(|e| wrong(&e))?;
    Ok(Connector { tls: TlsConnector::from(Arc::new(config)), name })
}
