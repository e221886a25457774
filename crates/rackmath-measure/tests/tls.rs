//! The load generator over TLS, against the same server behind an end of TLS on the loopback.
#![cfg(feature = "tls")]

mod mock;

use mock::{Manner, Mock};
use rackmath_measure::gauge::{
    Arrivals, Ceiling, Client, Ended, Lengths, Limits, Plan, Server, Sharing, Stop, Target, Targets,
};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/tls");
const QUICK: Limits = Limits { connect_s: 5.0, head_s: 5.0, stall_s: 5.0, total_s: 20.0 };

/// Takes TLS off and hands on to a server without; ends with its runtime.
struct Front {
    url: String,
    handshakes: Arc<AtomicUsize>,
    _runtime: tokio::runtime::Runtime,
}

impl Front {
    /// With the certificate of that name; connections beyond `good` are answered with bytes that are no TLS.
    fn start(behind: &str, certificate: &str, good: usize) -> Self {
        let chain = CertificateDer::pem_file_iter(format!("{DATA}/{certificate}.pem")).expect("a file");
        let chain = chain.collect::<Result<Vec<_>, _>>().expect("certificates");
        let key = PrivateKeyDer::from_pem_file(format!("{DATA}/server.key")).expect("a key");
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.expect("versions").with_no_client_auth().with_single_cert(chain, key).expect("a pair");
        let tls = TlsAcceptor::from(Arc::new(config));
        let to: SocketAddr = behind.trim_start_matches("http://").parse().expect("an address");
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
        let url = format!("https://{}", listener.local_addr().expect("an address"));
        let handshakes = Arc::new(AtomicUsize::new(0));
        let (count, opened) = (Arc::clone(&handshakes), AtomicUsize::new(0));
        runtime.spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                if opened.fetch_add(1, Ordering::SeqCst) >= good {
                    let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
                    continue;
                }
                let (tls, count) = (tls.clone(), Arc::clone(&count));
                tokio::spawn(async move {
                    let Ok(mut inner) = tls.accept(stream).await else { return };
                    count.fetch_add(1, Ordering::SeqCst);
                    let Ok(mut outer) = TcpStream::connect(to).await else { return };
                    let _ = tokio::io::copy_bidirectional(&mut inner, &mut outer).await;
                });
            }
        });
        Self { url, handshakes, _runtime: runtime }
    }
}

fn found(url: &str, ca: &str) -> Result<Server, String> {
    let target = Target::read(url).expect("an address");
    let addresses = target.addresses().expect("found");
    let ca = format!("{DATA}/{ca}.pem");
    let client = Client::new(target, addresses, None, QUICK, Some(&ca)).expect("a client");
    Server::find(client, None, None, 1).map_err(|error| error.to_string())
}

fn plan(arrivals: Arrivals, requests: usize) -> Plan {
    Plan {
        arrivals,
        lengths: Lengths { input: 50, output: 6, spread: 0.0 },
        sharing: Sharing::default(),
        requests,
        until_s: None,
        ceiling: Ceiling::default(),
        targets: Targets::default(),
        seed: 3,
        keep: rackmath_measure::gauge::KEPT_BYTES,
    }
}

#[test]
fn counts_over_tls_equal_the_servers_own() {
    let mock = Mock::start(Manner::default());
    let front = Front::start(&mock.url, "good", usize::MAX);
    let server = found(&front.url, "ca").expect("a certificate of the authority that is trusted");
    let plan = plan(Arrivals::Open { rate: 100.0, cv: 1.0 }, 40);
    let m = server.measure(&plan, plan.schedule().expect("good"), &Stop::default()).expect("a run");
    let (counts, own) = (&m.summary.counts, m.counters.expect("metrics"));
    assert_eq!((counts.answered, counts.faults.len(), m.summary.ended), (40, 0, Ended::Complete));
    assert_eq!((own.requests, own.output_tokens), (Some(40.0), Some(counts.output_tokens as f64)));
    assert_eq!((counts.input_tokens, counts.output_tokens), (40 * 50, 40 * 6));
    assert!(front.handshakes.load(Ordering::SeqCst) > 0);
}

#[test]
fn a_certificate_that_is_not_to_be_trusted_is_a_tls_failure_with_its_reason() {
    let mock = Mock::start(Manner::default());
    // Which certificate the server has, whom the client trusts, what is said.
    let cases = [("expired", "ca", "Expired"), ("other", "ca", "not valid for"), ("good", "other", "UnknownIssuer")];
    for (certificate, trusted, reason) in cases {
        let front = Front::start(&mock.url, certificate, usize::MAX);
        let Err(said) = found(&front.url, trusted) else { panic!("{certificate} was trusted") };
        assert!(said.contains("TLS failure") && said.contains(reason), "{said}");
    }
    assert_eq!(mock.counters.requests.load(Ordering::SeqCst), 0, "nothing was asked over such a wire");
}

#[test]
fn tls_to_a_server_that_speaks_none_is_a_tls_failure() {
    let mock = Mock::start(Manner::default());
    let Err(said) = found(&mock.url.replace("http://", "https://"), "ca") else { panic!("it was found") };
    assert!(said.contains("TLS failure"), "{said}");
}

#[test]
fn handshakes_that_fail_during_a_run_are_counted_by_their_kind() {
    // A connection for each request; those beyond the twentieth meet no TLS.
    let mock = Mock::start(Manner { requests_per_connection: 1, ..Manner::default() });
    let front = Front::start(&mock.url, "good", 20);
    let server = found(&front.url, "ca").expect("the first handshakes hold");
    let plan = plan(Arrivals::Closed { concurrency: 2 }, 40);
    let m = server.measure(&plan, plan.schedule().expect("good"), &Stop::default()).expect("a run");
    let counts = &m.summary.counts;
    let failed = counts.faults.get("TLS failure").copied().unwrap_or(0);
    assert!(counts.answered > 0 && failed > 0, "{counts:?}");
    assert_eq!(counts.answered + failed, 40, "{counts:?}");
    assert_eq!(mock.counters.finished.load(Ordering::SeqCst), counts.answered);
    assert!(counts.examples.iter().any(|e| e.starts_with("TLS failure: ")), "{:?}", counts.examples);
}
