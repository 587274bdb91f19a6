//! The webhook's certificate: made here, trusted by itself, renewed when two thirds of its life are over.
//!
//! There is no authority whose key could leak: the API server is told to trust the one certificate, and for a while its
//! predecessor too, so that replicas may change over one after the other.
//!
//! Easy to get wrong: a new certificate must be trusted before it is served ([`super::trust`] does it in that order).

use mooring_api::Time;
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, KeyPair, date_time_ymd,
};

/// How long a certificate lives.
const LIFE_DAYS: i64 = 90;
const DAY: u64 = 86_400;

/// A certificate with its key, as PEM.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Certificate {
    pub(super) certificate: String,
    pub(super) key: String,
}

/// The key stays out of logs.
impl std::fmt::Debug for Certificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Certificate").finish_non_exhaustive()
    }
}

/// Makes one for these names, good from yesterday (clocks differ) for [`LIFE_DAYS`].
pub(super) fn issue(names: &[String], now: Time) -> Result<Certificate, rcgen::Error> {
    let mut params = CertificateParams::new(names)?;
    let [from, to] = [-1, LIFE_DAYS].map(|days| day(now, days));
    params.not_before = date_time_ymd(from.0, from.1, from.2);
    params.not_after = date_time_ymd(to.0, to.1, to.2);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.distinguished_name = DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::CommonName, "Mooring webhook");
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    Ok(Certificate {
        certificate: certificate.pem(),
        key: key.serialize_pem(),
    })
}

/// When one that was made at `made` should be renewed.
pub(super) fn renew_at(made: Time) -> Time {
    let life = u64::try_from(LIFE_DAYS).unwrap_or(0) * DAY;
    Time(made.0 + life * 2 / 3)
}

/// The day that lies so many days after `now`, as year, month and day.
fn day(now: Time, days: i64) -> (i32, u8, u8) {
    let now = i64::try_from(now.0).unwrap_or(i64::MAX / 2);
    let day_seconds = i64::try_from(DAY).unwrap_or(0);
    let at = jiff::Timestamp::from_second(now + days * day_seconds).unwrap_or_default();
    let date = at.to_zoned(jiff::tz::TimeZone::UTC).date();
    let [month, day] = [date.month(), date.day()].map(|n| u8::try_from(n).unwrap_or(1));
    (i32::from(date.year()), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_renewed_before_it_ends() {
        let now = Time(1_800_000_000);
        let renew = renew_at(now);
        assert!(renew > now);
        assert!(renew.0 < now.0 + u64::try_from(LIFE_DAYS).unwrap() * DAY);
    }

    #[test]
    fn the_key_is_not_printed() {
        let made = issue(&["webhook.example".to_owned()], Time(1_800_000_000)).unwrap();
        assert!(made.key.contains("PRIVATE KEY"));
        assert!(!format!("{made:?}").contains("PRIVATE"));
    }
}
