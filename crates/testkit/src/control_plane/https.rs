//! One question to the API server over TLS, without a client library: is it ready, and is it ours.
//!
//! The connection goes straight to 127.0.0.1: variables that name a proxy are never read. Easy to get wrong: a chain that
//! verifies is not enough, the certificate must be the very one that this server was given.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, Stream};

use super::Failure;

const BOUND: Duration = Duration::from_secs(10);

/// What one server must present.
pub(super) struct Trust {
    config: Arc<ClientConfig>,
    leaf: CertificateDer<'static>,
}

impl Trust {
    pub(super) fn new(
        authority: &CertificateDer<'static>,
        leaf: &CertificateDer<'static>,
    ) -> Result<Self, Failure> {
        let failure = |e: rustls::Error| Failure::new(format!("cannot trust the authority: {e}"));
        let mut roots = RootCertStore::empty();
        roots.add(authority.clone()).map_err(failure)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(failure)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self {
            config: Arc::new(config),
            leaf: leaf.clone(),
        })
    }

    /// The status and the body of `GET path`. A server that is not ours gets neither the token nor the question.
    pub(super) fn get(&self, port: u16, path: &str, token: &str) -> io::Result<(u16, String)> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut socket = TcpStream::connect_timeout(&address, BOUND)?;
        socket.set_read_timeout(Some(BOUND))?;
        socket.set_write_timeout(Some(BOUND))?;
        let name = ServerName::IpAddress(Ipv4Addr::LOCALHOST.into());
        let mut tls =
            ClientConnection::new(Arc::clone(&self.config), name).map_err(io::Error::other)?;
        while tls.is_handshaking() {
            tls.complete_io(&mut socket)?;
        }
        let presented = tls.peer_certificates().and_then(<[_]>::first);
        if presented != Some(&self.leaf) {
            return Err(io::Error::other(
                "another server answers: its certificate is not the one that ours was given",
            ));
        }
        let mut stream = Stream::new(&mut tls, &mut socket);
        // 1.0: the answer ends with the connection and has no chunks.
        let request = format!(
            "GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\nAccept: application/json\r\n\r\n"
        );
        stream.write_all(request.as_bytes())?;
        let mut answer = Vec::new();
        match stream.read_to_end(&mut answer) {
            // Closed without a farewell, which a server that is being stopped does.
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof && !answer.is_empty() => (),
            outcome => _ = outcome?,
        }
        let answer = String::from_utf8_lossy(&answer);
        let status = answer.split_whitespace().nth(1);
        let status = status.and_then(|s| s.parse().ok());
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        status
            .map(|status| (status, body.to_owned()))
            .ok_or_else(|| io::Error::other(format!("not HTTP: {answer:?}")))
    }
}
