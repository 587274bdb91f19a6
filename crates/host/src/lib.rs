//! Acts: Linux network namespaces, blocking netlink, sysfs, device records.

pub mod fault;
