//! A collector of spans: it takes what is posted, and keeps the bytes.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Listens as long as the test program lives.
pub(crate) struct Collector {
    address: SocketAddr,
    bodies: Arc<Mutex<Vec<u8>>>,
}

impl Collector {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let bodies = Arc::<Mutex<Vec<u8>>>::default();
        let kept = Arc::clone(&bodies);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that goes away in the middle is no trouble of ours.
                let _ = serve(stream, &kept);
            }
        });
        Self { address, bodies }
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Whether a text was in what came so far.
    pub(crate) fn has(&self, text: &str) -> bool {
        let bodies = self.bodies.lock().unwrap_or_else(PoisonError::into_inner);
        bodies
            .windows(text.len())
            .any(|part| part == text.as_bytes())
    }
}

fn serve(stream: TcpStream, kept: &Mutex<Vec<u8>>) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    let mut stream = BufReader::new(stream);
    loop {
        let mut length = 0;
        let mut line = String::new();
        while stream.read_line(&mut line)? > 0 && line.trim() != "" {
            let header = line.to_ascii_lowercase();
            if let Some(value) = header.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
            line.clear();
        }
        if line.is_empty() {
            return Ok(());
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body)?;
        kept.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(body);
        stream
            .get_mut()
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")?;
    }
}
