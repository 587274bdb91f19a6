//! One request of a Git client: read it, ask who it is, hand it to `git http-backend` as CGI, answer, close.
//!
//! Easy to get wrong: the whole request is read before anything is answered. A client that is still sending when the
//! connection closes sees a reset, and never the 401 that tells it to send a credential.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::{Shared, USER, lock};

const BOUND: Duration = Duration::from_secs(30);
/// More than any test sends.
const LARGEST: u64 = 1 << 30;

struct Request {
    method: String,
    path: String,
    query: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

enum Access {
    Nobody,
    Reads,
    Writes,
}

pub(super) fn serve(mut connection: TcpStream, shared: &Shared) -> io::Result<()> {
    connection.set_read_timeout(Some(BOUND))?;
    connection.set_write_timeout(Some(BOUND))?;
    let Some(request) = read(&connection)? else {
        return Ok(());
    };
    let answer = answer(&request, shared)?;
    let status = answer.split(|b| *b == b' ').nth(1).unwrap_or_default();
    let line = format!(
        "{} {}{}{} {}",
        request.method,
        request.path,
        if request.query.is_empty() { "" } else { "?" },
        request.query,
        String::from_utf8_lossy(status)
    );
    lock(&shared.requests).push(line);
    connection.write_all(&answer)
}

fn answer(request: &Request, shared: &Shared) -> io::Result<Vec<u8>> {
    let pushes = request.path.ends_with("/git-receive-pack")
        || request
            .query
            .split('&')
            .any(|q| q == "service=git-receive-pack");
    match access(request, shared) {
        Access::Nobody => {
            let ask = "WWW-Authenticate: Basic realm=\"git\"\r\n";
            Ok(said("401 Unauthorized", ask, b"a credential is needed\n"))
        }
        Access::Reads if pushes => Ok(said(
            "403 Forbidden",
            "",
            b"this credential may only read\n",
        )),
        Access::Reads | Access::Writes => backend(request, shared),
    }
}

fn access(request: &Request, shared: &Shared) -> Access {
    let given = request.header("authorization").unwrap_or_default();
    let is = |token: &str| {
        let basic = base64(format!("{USER}:{token}").as_bytes());
        given == format!("Basic {basic}") || given == format!("Bearer {token}")
    };
    if is(&shared.token) {
        Access::Writes
    } else if is(&shared.read_only_token) {
        Access::Reads
    } else {
        Access::Nobody
    }
}

fn backend(request: &Request, shared: &Shared) -> io::Result<Vec<u8>> {
    let header = |name| request.header(name).unwrap_or_default();
    let mut child = Command::new("timeout")
        .args([
            "-k",
            "5",
            "120",
            "git",
            "-c",
            "http.receivepack=true",
            "http-backend",
        ])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", &shared.root)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_PROJECT_ROOT", &shared.root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REQUEST_METHOD", &request.method)
        .env("PATH_INFO", &request.path)
        .env("QUERY_STRING", &request.query)
        .env("CONTENT_TYPE", header("content-type"))
        // Of what we hand over: chunks are joined by now, compression is the backend's to undo.
        .env("CONTENT_LENGTH", request.body.len().to_string())
        .env("HTTP_CONTENT_ENCODING", header("content-encoding"))
        .env("HTTP_GIT_PROTOCOL", header("git-protocol"))
        .env("REMOTE_USER", USER)
        .env("REMOTE_ADDR", "127.0.0.1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut stdin = child.stdin.take().expect("stdin was piped");
    let output = std::thread::scope(|scope| {
        // From a thread: the backend answers while it still reads.
        scope.spawn(move || _ = stdin.write_all(&request.body));
        child.wait_with_output()
    })?;
    let end = output.stdout.windows(4).position(|w| w == b"\r\n\r\n");
    let Some(end) = end else {
        return Ok(said(
            "500 Internal Server Error",
            "",
            b"git http-backend said nothing\n",
        ));
    };
    let head = String::from_utf8_lossy(&output.stdout[..end]);
    let (mut status, mut headers) = ("200 OK", String::new());
    for line in head.split("\r\n") {
        if let Some(value) = line.strip_prefix("Status: ") {
            status = value;
        } else {
            headers.push_str(line);
            headers.push_str("\r\n");
        }
    }
    Ok(said(status, &headers, &output.stdout[end + 4..]))
}

fn said(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

impl Request {
    fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// None where the client said nothing at all.
fn read(connection: &TcpStream) -> io::Result<Option<Request>> {
    let mut reader = BufReader::new(connection);
    let first = line(&mut reader)?;
    let mut words = first.split(' ');
    let (Some(method), Some(target)) = (words.next(), words.next()) else {
        return Ok(None);
    };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut request = Request {
        method: method.to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        headers: Vec::new(),
        body: Vec::new(),
    };
    loop {
        let line = line(&mut reader)?;
        let Some((key, value)) = line.split_once(':') else {
            break;
        };
        let key = key.to_ascii_lowercase();
        request.headers.push((key, value.trim().to_owned()));
    }
    if request.header("expect").is_some() {
        let mut writer = connection;
        writer.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    let length = request
        .header("content-length")
        .and_then(|l| l.parse().ok());
    request.body = if request.header("transfer-encoding") == Some("chunked") {
        chunks(&mut reader)?
    } else {
        exactly(&mut reader, length.unwrap_or(0))?
    };
    Ok(Some(request))
}

fn chunks(reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let size = line(reader)?;
        // What follows a semicolon is an extension.
        let size = size.split(';').next().unwrap_or_default().trim();
        let size = u64::from_str_radix(size, 16).map_err(io::Error::other)?;
        body.extend(exactly(reader, size)?);
        // The end of a chunk, or of the trailers.
        let mut rest = line(reader)?;
        if size == 0 {
            while !rest.is_empty() {
                rest = line(reader)?;
            }
            return Ok(body);
        }
    }
}

fn exactly(reader: &mut impl BufRead, size: u64) -> io::Result<Vec<u8>> {
    if size > LARGEST {
        return Err(io::Error::other("larger than any test sends"));
    }
    let mut bytes = Vec::new();
    reader.take(size).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).ok() != Some(size) {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(bytes)
}

/// Without its end.
fn line(reader: &mut impl BufRead) -> io::Result<String> {
    let mut line = Vec::new();
    reader.take(64 * 1024).read_until(b'\n', &mut line)?;
    Ok(String::from_utf8_lossy(&line).trim_end().to_owned())
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |three: &[u8]| {
        let byte = |n: usize| u32::from(three.get(n).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        let letter = move |n: usize| {
            let index = (bits >> (18 - 6 * n)) & 63;
            char::from(LETTERS[index as usize])
        };
        let length = three.len() + 1;
        (0..4).map(move |n| if n < length { letter(n) } else { '=' })
    };
    bytes.chunks(3).flat_map(group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_what_the_standard_says() {
        let cases = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
        ];
        for (plain, coded) in cases {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
    }

    #[test]
    fn chunks_are_joined_with_extensions_and_trailers_left_out() {
        let mut text: &[u8] = b"3;x=1\r\nabc\r\n2\r\nde\r\n0\r\nTrailer: t\r\n\r\nnext";
        assert_eq!(chunks(&mut text).unwrap(), b"abcde");
        assert_eq!(text, b"next");
        let mut short: &[u8] = b"9\r\nabc";
        assert!(chunks(&mut short).is_err());
    }
}
