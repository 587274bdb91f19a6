//! A TLS listener whose certificate can be exchanged while it listens.
//!
//! Easy to get wrong: a handshake is done in a task of its own and bounded, or one silent client would stop everybody.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::ServerConfig;
use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::certificate::Certificate;

const HANDSHAKE: Duration = Duration::from_secs(5);
/// Connections that are ready and not served yet.
const QUEUE: usize = 64;

/// The certificate that is served at the moment.
#[derive(Debug, Default)]
pub(super) struct Served(RwLock<Option<Arc<CertifiedKey>>>);

/// Why a certificate cannot be served.
#[derive(Debug, thiserror::Error)]
pub(super) enum BadCertificate {
    /// It is not PEM, or not of a kind that we know.
    #[error("the certificate or its key cannot be read")]
    Pem(#[source] rustls::pki_types::pem::Error),
    /// The key does not fit.
    #[error("the key cannot sign")]
    Key(#[source] rustls::Error),
}

impl Served {
    /// Serves another one from the next connection on.
    pub(super) fn set(&self, pem: &Certificate) -> Result<(), BadCertificate> {
        let chain: Result<Vec<_>, _> =
            CertificateDer::pem_slice_iter(pem.certificate.as_bytes()).collect();
        let chain = chain.map_err(BadCertificate::Pem)?;
        let key = PrivateKeyDer::from_pem_slice(pem.key.as_bytes()).map_err(BadCertificate::Pem)?;
        let key = any_supported_type(&key).map_err(BadCertificate::Key)?;
        let certified = CertifiedKey::new(chain, key);
        certified.keys_match().map_err(BadCertificate::Key)?;
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(certified));
        Ok(())
    }
}

impl ResolvesServerCert for Served {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// Connections whose handshake is done.
pub(super) struct TlsListener {
    address: SocketAddr,
    ready: mpsc::Receiver<(TlsStream<TcpStream>, SocketAddr)>,
}

impl TlsListener {
    /// Listens with whatever certificate `served` has at each handshake.
    pub(super) async fn bind(address: SocketAddr, served: Arc<Served>) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_no_client_auth()
            .with_cert_resolver(served);
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let (sender, ready) = mpsc::channel(QUEUE);
        tokio::spawn(accept(listener, acceptor, sender));
        Ok(Self { address, ready })
    }
}

/// Ends by itself when the receiver is dropped.
async fn accept(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    sender: mpsc::Sender<(TlsStream<TcpStream>, SocketAddr)>,
) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = sender.closed() => return,
        };
        let Ok((stream, from)) = accepted else {
            // Out of file descriptors, mostly: a short rest lets some be closed.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let (acceptor, sender) = (acceptor.clone(), sender.clone());
        tokio::spawn(async move {
            match tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await {
                Ok(Ok(stream)) => drop(sender.send((stream, from)).await),
                Ok(Err(error)) => tracing::debug!(%from, %error, "no TLS"),
                Err(_) => tracing::debug!(%from, "no TLS in time"),
            }
        });
    }
}

impl axum::serve::Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.ready.recv().await {
            Some(ready) => ready,
            // The accepting task lives as long as we do.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}
