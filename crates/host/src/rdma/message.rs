//! The bytes of NETLINK_RDMA messages, as in the kernel's `rdma/rdma_netlink.h`: pure, so that they are proven without hardware.
//!
//! Used by [`super::Rdma`] alone. Easy to get wrong: there is no family header between the netlink header and the attributes.

use super::RdmaError;

/// The client that manages devices (RDMA_NL_NLDEV), shifted as in a message type.
const NLDEV: u16 = 5 << 10;

/// What can be asked (RDMA_NLDEV_CMD_*).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    /// All devices of this namespace.
    Devices = 1,
    /// Change a device.
    Set = 2,
    /// The ports of a device.
    Ports = 5,
    /// How devices and namespaces relate on this node.
    System = 6,
}

/// Numbers of attributes (RDMA_NLDEV_ATTR_*).
pub(super) mod attr {
    pub(crate) const DEV_INDEX: u16 = 1;
    pub(crate) const DEV_NAME: u16 = 2;
    pub(crate) const NDEV_INDEX: u16 = 50;
    pub(crate) const NETNS_MODE: u16 = 66;
    pub(crate) const NETNS_FD: u16 = 68;
}

const REQUEST: u16 = 0x1;
const ACK: u16 = 0x4;
const DUMP: u16 = 0x300;
const ERROR: u16 = 2;
const DONE: u16 = 3;
const HEADER: usize = 16;

/// A request with numbers as attributes; all that we send are 32 bits.
pub(super) fn request(ask: Ask, seq: u32, attributes: &[(u16, u32)]) -> Vec<u8> {
    let flags = match ask {
        Ask::Devices | Ask::Ports => REQUEST | DUMP,
        Ask::System => REQUEST,
        Ask::Set => REQUEST | ACK,
    };
    let len = u32::try_from(HEADER + attributes.len() * 8).expect("a request has few attributes");
    let mut bytes = Vec::new();
    bytes.extend(len.to_ne_bytes());
    bytes.extend((NLDEV | ask as u16).to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend(seq.to_ne_bytes());
    bytes.extend(0_u32.to_ne_bytes());
    for (kind, value) in attributes {
        bytes.extend(8_u16.to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value.to_ne_bytes());
    }
    bytes
}

/// Attributes by their number.
pub(super) type Attributes = Vec<(u16, Vec<u8>)>;

/// One message of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Attributes of one object.
    Object(Attributes),
    /// The last of a dump, or the acknowledgement.
    End,
    /// The kernel refuses; the number is an errno.
    Refused(i32),
}

/// The messages in what one receive gave.
pub(super) fn answers(mut bytes: &[u8]) -> Result<Vec<Answer>, RdmaError> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let len = u32_at(bytes, 0)? as usize;
        let kind = u16_at(bytes, 4)?;
        if len < HEADER || len > bytes.len() {
            return Err(RdmaError::Malformed);
        }
        let body = &bytes[HEADER..len];
        found.push(match kind {
            DONE => Answer::End,
            ERROR => match i32::from_ne_bytes(u32_at(body, 0)?.to_ne_bytes()) {
                0 => Answer::End,
                errno => Answer::Refused(-errno),
            },
            _ => Answer::Object(attributes(body)?),
        });
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(found)
}

fn attributes(mut bytes: &[u8]) -> Result<Attributes, RdmaError> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let len = usize::from(u16_at(bytes, 0)?);
        // The upper two bits say nested and byte order.
        let kind = u16_at(bytes, 2)? & 0x3fff;
        if len < 4 || len > bytes.len() {
            return Err(RdmaError::Malformed);
        }
        found.push((kind, bytes[4..len].to_vec()));
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(found)
}

/// A number among the attributes; one byte or four, as the kernel pleases.
pub(super) fn number(attributes: &[(u16, Vec<u8>)], wanted: u16) -> Option<u32> {
    let (_, value) = attributes.iter().find(|(kind, _)| *kind == wanted)?;
    match value.as_slice() {
        [one] => Some(u32::from(*one)),
        [a, b, c, d] => Some(u32::from_ne_bytes([*a, *b, *c, *d])),
        _ => None,
    }
}

/// A text among the attributes.
pub(super) fn text(attributes: &[(u16, Vec<u8>)], wanted: u16) -> Option<String> {
    let (_, value) = attributes.iter().find(|(kind, _)| *kind == wanted)?;
    let end = value.iter().position(|b| *b == 0).unwrap_or(value.len());
    String::from_utf8(value[..end].to_vec()).ok()
}

fn u32_at(bytes: &[u8], at: usize) -> Result<u32, RdmaError> {
    let four = bytes.get(at..at + 4).and_then(|b| b.try_into().ok());
    four.map(u32::from_ne_bytes).ok_or(RdmaError::Malformed)
}

fn u16_at(bytes: &[u8], at: usize) -> Result<u16, RdmaError> {
    let two = bytes.get(at..at + 2).and_then(|b| b.try_into().ok());
    two.map(u16::from_ne_bytes).ok_or(RdmaError::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_endian = "little")]
    #[test]
    fn a_move_names_the_device_and_the_namespace() {
        let wanted: [u8; 32] = [
            32, 0, 0, 0, 0x02, 0x14, 0x05, 0x00, 7, 0, 0, 0, 0, 0, 0, 0, // header
            8, 0, 1, 0, 3, 0, 0, 0, // device index 3
            8, 0, 68, 0, 9, 0, 0, 0, // namespace fd 9
        ];
        let made = request(Ask::Set, 7, &[(attr::DEV_INDEX, 3), (attr::NETNS_FD, 9)]);
        assert_eq!(made, wanted);
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn lists_are_dumps_and_the_mode_is_one_question() {
        assert_eq!(
            request(Ask::Devices, 1, &[])[4..8],
            [0x01, 0x14, 0x01, 0x03]
        );
        assert_eq!(request(Ask::Ports, 1, &[])[4..8], [0x05, 0x14, 0x01, 0x03]);
        assert_eq!(request(Ask::System, 1, &[])[4..8], [0x06, 0x14, 0x01, 0x00]);
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn an_answer_is_read_with_its_padding_and_its_end() {
        let bytes: Vec<u8> = [
            &[38_u8, 0, 0, 0, 0x01, 0x14, 2, 0, 1, 0, 0, 0, 0, 0, 0, 0][..],
            &[8, 0, 1, 0, 4, 0, 0, 0],
            &[
                14, 0, 2, 0, b'r', b'o', b'c', b'e', b'p', b'1', b's', b'0', b'f', 0, 0, 0,
            ],
            &[20, 0, 0, 0, 3, 0, 2, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        ]
        .concat();
        let found = answers(&bytes).expect("well formed");
        let [Answer::Object(attributes), Answer::End] = found.as_slice() else {
            panic!("{found:?}")
        };
        assert_eq!(number(attributes, attr::DEV_INDEX), Some(4));
        assert_eq!(
            text(attributes, attr::DEV_NAME).as_deref(),
            Some("rocep1s0f")
        );
        assert_eq!(number(attributes, attr::NDEV_INDEX), None);
    }

    #[test]
    fn a_refusal_carries_its_errno_and_an_acknowledgement_is_an_end() {
        let error = |errno: i32| {
            let mut bytes = 20_u32.to_ne_bytes().to_vec();
            bytes.extend(ERROR.to_ne_bytes());
            bytes.extend([0; 10]);
            bytes.extend(errno.to_ne_bytes());
            answers(&bytes).expect("well formed")
        };
        assert_eq!(error(-95), [Answer::Refused(95)]);
        assert_eq!(error(0), [Answer::End]);
    }

    #[test]
    fn torn_bytes_are_refused_and_never_read_past_their_end() {
        for len in [0_u32, 3, 15, 17, 4000] {
            let mut bytes = len.to_ne_bytes().to_vec();
            bytes.extend([0; 12]);
            assert!(answers(&bytes).is_err(), "{len}");
        }
        assert!(answers(&[1]).is_err());
        let mut attribute = 20_u32.to_ne_bytes().to_vec();
        attribute.extend([0; 12]);
        attribute.extend([200, 0, 1, 0]);
        assert!(answers(&attribute).is_err());
    }

    #[test]
    fn the_mode_is_one_byte() {
        assert_eq!(
            number(&[(attr::NETNS_MODE, vec![1])], attr::NETNS_MODE),
            Some(1)
        );
        assert_eq!(
            number(&[(attr::NETNS_MODE, vec![1, 2])], attr::NETNS_MODE),
            None
        );
    }
}
