//! Where requests go: an address, and whether it may be loaded without asking.

use rackmath_spec::SpecError;
use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};

/// An http or https address, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub tls: bool,
    pub host: String,
    pub port: u16,
    /// What stands before `/v1`: begins with a slash or is empty, ends with none.
    pub base: String,
}

impl Target {
    pub fn read(url: &str) -> Result<Self, SpecError> {
        let wrong = || SpecError::value("url", url, "an address such as http://127.0.0.1:8000");
        let (tls, rest) = match url.split_once("://") {
            Some(("http", rest)) => (false, rest),
            Some(("https", rest)) => (true, rest),
            Some(_) => return Err(wrong()),
            None => (false, url),
        };
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(SpecError::said("an address with a name or password in it")
                .hint("expected the key in an environment variable: --key-env NAME"));
        }
        let (host, port) = match authority.strip_prefix('[') {
            Some(v6) => {
                let (host, after) = v6.split_once(']').ok_or_else(wrong)?;
                (host, after.strip_prefix(':'))
            }
            None => authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port))),
        };
        let port = match port {
            Some(port) => port.parse::<u16>().ok().filter(|p| *p > 0).ok_or_else(wrong)?,
            None if tls => 443,
            None => 80,
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || ".-_:".contains(c);
        if host.is_empty() || !host.chars().all(plain) || path.contains(['?', '#', ' ', '\r', '\n']) || !path.is_ascii()
        {
            return Err(wrong());
        }
        let base = path.trim_end_matches('/');
        let base = base.strip_suffix("/v1").unwrap_or(base).to_owned();
        Ok(Self { tls, host: host.to_ascii_lowercase(), port, base })
    }

    /// Host and port as a `Host` header has them.
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == if self.tls { 443 } else { 80 } { host } else { format!("{host}:{}", self.port) }
    }

    /// Its addresses. Blocks while the name is looked up.
    pub fn addresses(&self) -> Result<Vec<SocketAddr>, SpecError> {
        let found = (self.host.as_str(), self.port).to_socket_addrs();
        let found: Vec<SocketAddr> = found
            .map_err(|e| SpecError::said(format!("{}: {e}", self.host)).hint("expected a host that can be found"))?
            .collect();
        if found.is_empty() { Err(SpecError::said(format!("{} has no address", self.host))) } else { Ok(found) }
    }

    /// Whether the host may be loaded: this machine and private networks are, others need to be named.
    pub fn allowed(&self, addresses: &[SocketAddr], may_load: &[String]) -> Result<(), SpecError> {
        let public = addresses.iter().find(|a| !is_private(a.ip()));
        let named = may_load.iter().any(|host| host.trim().eq_ignore_ascii_case(&self.host));
        match public {
            Some(address) if !named => Err(SpecError::said(format!(
                "{} ({}) is neither this machine nor in a private network; a load test of somebody else's server is an attack",
                self.host,
                address.ip()
            ))
            .hint(format!("if it is yours to load, say so: --i-may-load {}", self.host))),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", if self.tls { "https" } else { "http" }, self.authority(), self.base)
    }
}

/// Loopback, link-local, RFC 1918, RFC 6598 (shared) and unique local addresses.
fn is_private(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => {
            let [a, b, ..] = ip.octets();
            ip.is_loopback() || ip.is_private() || ip.is_link_local() || (a == 100 && (64..128).contains(&b))
        }
        IpAddr::V6(ip) => {
            ip.is_loopback() || ip.segments()[0] & 0xfe00 == 0xfc00 || ip.segments()[0] & 0xffc0 == 0xfe80
        }
    }
}

/// A key that is sent and never shown.
#[derive(Clone)]
pub struct Key(String);

impl Key {
    /// Refuses what a header cannot hold.
    pub fn new(key: &str) -> Result<Self, SpecError> {
        let key = key.trim();
        if !key.is_empty() && key.bytes().all(|b| b.is_ascii_graphic()) {
            return Ok(Self(key.to_owned()));
        }
        Err(SpecError::said("the key in the environment is empty or has signs that no header can hold"))
    }

    pub(super) fn header(&self) -> String {
        format!("authorization: Bearer {}\r\n", self.0)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(not shown)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        let t = Target::read("http://127.0.0.1:8000/v1/").expect("good");
        assert_eq!(
            (t.tls, t.port, t.base.as_str(), t.to_string().as_str()),
            (false, 8000, "", "http://127.0.0.1:8000")
        );
        let t = Target::read("https://api.example.com/proxy/v1").expect("good");
        assert_eq!((t.port, t.base.as_str(), t.authority().as_str()), (443, "/proxy", "api.example.com"));
        assert_eq!(Target::read("[::1]:9").expect("good").authority(), "[::1]:9");
        for bad in [
            "ftp://x",
            "http://",
            "http://a b",
            "http://x:0",
            "http://x:70000",
            "http://x/\r\nq",
            "http://u:p@x",
            "http://x?y",
            "http://[::1",
        ] {
            assert!(Target::read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn only_near_hosts_are_loaded_without_asking() {
        let at = |ip: &str| vec![SocketAddr::new(ip.parse().expect("ip"), 80)];
        let t = Target::read("http://host.example").expect("good");
        for near in [
            "127.0.0.1",
            "10.1.2.3",
            "192.168.0.9",
            "172.31.1.1",
            "100.64.0.1",
            "::1",
            "fd00::1",
            "fe80::1",
            "::ffff:10.0.0.1",
        ] {
            assert!(t.allowed(&at(near), &[]).is_ok(), "{near}");
        }
        for far in ["8.8.8.8", "172.32.0.1", "100.128.0.1", "2600::1", "::ffff:8.8.8.8"] {
            assert!(t.allowed(&at(far), &[]).is_err(), "{far}");
            assert!(t.allowed(&at(far), &["other.example".into()]).is_err());
            assert!(t.allowed(&at(far), &["Host.example".into()]).is_ok());
        }
    }

    #[test]
    fn a_key_is_not_shown() {
        assert_eq!(format!("{:?}", Key::new("sk-secret").expect("good")), "(not shown)");
        assert!(Key::new("a\r\nb").is_err() && Key::new(" ").is_err());
    }
}
