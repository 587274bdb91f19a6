//! Reading netlink attributes without trust: a length that lies ends the reading, and an attribute of an unknown kind or
//! size is passed over.
//!
//! Used by the readers of each object. The encoders use `netlink-packet-route`; the readers do not, because it refuses a
//! whole message for one attribute that a newer kernel spells otherwise, and folds "the driver does not say" into "no".

use std::net::IpAddr;

use mooring_api::Mac;
use mooring_api::net::Attribute;

/// Flags in an attribute's kind: nested, network byte order.
const KIND: u16 = 0x3fff;

/// The attributes in `bytes`: the kind without its flags, and the value.
pub(super) fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    raw(bytes).map(|(kind, value)| (kind & KIND, value))
}

/// One attribute as it came, to be kept and given back.
pub(super) fn kept(bytes: &[u8], wanted: impl Fn(u16) -> bool) -> Vec<Attribute> {
    raw(bytes)
        .filter(|(kind, _)| wanted(kind & KIND))
        .map(|(kind, value)| Attribute {
            kind,
            value: value.to_vec(),
        })
        .collect()
}

fn raw(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16(bytes)?);
        let kind = u16(bytes.get(2..)?)?;
        let value = bytes.get(4..length)?;
        bytes = bytes.get(aligned(length)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// Rounded up to netlink's four bytes.
pub(super) fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

pub(super) fn u8(bytes: &[u8]) -> Option<u8> {
    bytes.first().copied()
}

pub(super) fn u16(bytes: &[u8]) -> Option<u16> {
    bytes.first_chunk().copied().map(u16::from_ne_bytes)
}

pub(super) fn u32(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().copied().map(u32::from_ne_bytes)
}

pub(super) fn i32(bytes: &[u8]) -> Option<i32> {
    bytes.first_chunk().copied().map(i32::from_ne_bytes)
}

/// The `nth` 32-bit word of a structure.
pub(super) fn word(bytes: &[u8], nth: usize) -> Option<u32> {
    u32(bytes.get(nth * 4..)?)
}

pub(super) fn string(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// Six bytes; InfiniBand's twenty are no [`Mac`].
pub(super) fn mac(bytes: &[u8]) -> Option<Mac> {
    <[u8; 6]>::try_from(bytes).ok().map(Mac::from)
}

pub(super) fn ip(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from),
        16 => <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_that_lies_ends_the_reading() {
        let good = [8, 0, 4, 0x80, 1, 2, 3, 4];
        assert_eq!(
            attributes(&good).collect::<Vec<_>>(),
            [(4, &[1, 2, 3, 4][..])]
        );
        for bad in [
            &[3, 0, 4, 0][..],
            &[9, 0, 4, 0, 1, 2, 3, 4],
            &[8, 0, 4],
            &[0, 0, 0, 0],
            &[],
        ] {
            assert_eq!(attributes(bad).count(), 0, "{bad:?}");
        }
    }

    #[test]
    fn an_odd_length_is_padded() {
        let bytes = [5, 0, 1, 0, 7, 0, 0, 0, 6, 0, 2, 0, 8, 9];
        let read: Vec<_> = attributes(&bytes).collect();
        assert_eq!(read, [(1, &[7][..]), (2, &[8, 9][..])]);
    }
}
