//! The archive that a kernel unpacks as its first root: `cpio` in the form `newc`, which is a header in hexadecimal, a
//! name and the bytes, each padded to four.

/// What kind of file an entry is, with its permissions.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Directory,
    Program,
    File,
}

/// The archive, while it is written.
#[derive(Default)]
pub(super) struct Cpio {
    bytes: Vec<u8>,
    entries: usize,
}

impl Cpio {
    /// Adds one; a directory comes before what it holds.
    pub(super) fn add(&mut self, name: &str, kind: Kind, content: &[u8]) {
        let mode = match kind {
            Kind::Directory => 0o040_755,
            Kind::Program => 0o100_755,
            Kind::File => 0o100_644,
        };
        self.entry(name, mode, content);
    }

    /// The whole of it.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }

    fn entry(&mut self, name: &str, mode: usize, content: &[u8]) {
        self.entries += 1;
        // inode, mode, uid, gid, links, mtime, size, major, minor, device major, device minor, name's size, check.
        let fields = [
            self.entries,
            mode,
            0,
            0,
            1,
            0,
            content.len(),
            0,
            0,
            0,
            0,
            name.len() + 1,
            0,
        ];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes
                .extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_a_header_a_name_and_the_bytes_each_padded_to_four() {
        let mut cpio = Cpio::default();
        cpio.add("init", Kind::Program, b"#!sh\n");
        let bytes = cpio.finish();
        let text = String::from_utf8_lossy(&bytes);
        assert!(text.starts_with("07070100000001000081ed"), "{text}");
        // Header 110, name 5, padded to 116; five bytes, padded to 124.
        assert_eq!(&bytes[110..115], b"init\0");
        assert_eq!(&bytes[116..121], b"#!sh\n");
        assert_eq!(&text[124..130], "070701");
        assert!(text.contains("TRAILER!!!\0"));
    }
}
