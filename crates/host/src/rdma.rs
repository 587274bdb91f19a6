//! RDMA devices and namespaces: where a node keeps them apart, a NIC's RDMA device has to follow the NIC.
//!
//! ```text
//!  shared     every namespace sees every RDMA device: nothing to do
//!  exclusive  a device is in one namespace, as an interface is: it is moved after its NIC and comes back with it
//! ```
//!
//! Called by [`crate::record`] around a move. It speaks NETLINK_RDMA itself, so no `rdma` tool is needed on a node. A kernel
//! without RDMA is not an error: [`Rdma::open`] gives none. Easy to get wrong: a port names its interface only while both
//! are in the same namespace, so the device is looked up *before* the interface moves.

mod message;

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::path::Path;

use message::{Answer, Ask, Attributes, answers, attr, number, request, text};
use netlink_sys::Socket;
use serde::{Deserialize, Serialize};

use crate::{Netns, NetnsError};

/// NETLINK_RDMA.
const PROTOCOL: isize = 20;
/// Where sysfs shows what kinds of devices this kernel has; not always mounted.
const CLASSES: &str = "/sys/class";

/// What failed, and on what.
#[derive(Debug, thiserror::Error)]
pub enum RdmaError {
    /// The namespace cannot be entered.
    #[error("cannot open an RDMA socket in the network namespace")]
    Netns(#[source] NetnsError),
    /// The socket fails.
    #[error("cannot ask the kernel for {what}")]
    Io {
        /// What was asked.
        what: &'static str,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The answer is not a netlink message.
    #[error("the kernel's answer about RDMA devices is malformed")]
    Malformed,
}

/// How RDMA devices and namespaces relate on this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Each namespace sees all devices.
    Shared,
    /// A device is in one namespace.
    Exclusive,
}

/// An RDMA device. Its number is its identity for one boot, in every namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RdmaDevice {
    /// Its number.
    pub index: u32,
    /// Its name, such as `mlx5_0`.
    pub name: String,
}

/// A socket in one namespace.
#[derive(Debug)]
pub struct Rdma {
    socket: Socket,
    seq: u32,
}

impl Rdma {
    /// A socket in a namespace; none where the kernel has no RDMA.
    pub fn open(netns: &Netns) -> Result<Option<Self>, RdmaError> {
        // Without this look the kernel would start modprobe for the socket, and that takes longer than all the rest of an
        // ADD. The class is there as soon as the module is; a device without the module is not.
        if Path::new(CLASSES).is_dir() && !Path::new(CLASSES).join("infiniband").exists() {
            return Ok(None);
        }
        let made = netns.run(|| {
            let mut socket = Socket::new(PROTOCOL)?;
            socket.bind_auto()?;
            Ok::<_, io::Error>(socket)
        });
        match made.map_err(RdmaError::Netns)? {
            Ok(socket) => Ok(Some(Self { socket, seq: 0 })),
            // No module, or one that is not loaded: EPROTONOSUPPORT; no kernel support for it at all: EAFNOSUPPORT.
            Err(e) if matches!(e.raw_os_error(), Some(93 | 97)) => Ok(None),
            Err(source) => Err(RdmaError::Io {
                what: "an RDMA socket",
                source,
            }),
        }
    }

    /// How this node keeps devices apart.
    pub fn mode(&mut self) -> Result<Mode, RdmaError> {
        let said = self.ask("the mode of RDMA namespaces", Ask::System, &[])?;
        // An absent attribute is a kernel from before 5.3, which shares; so does one.
        let mode = said.iter().find_map(|a| number(a, attr::NETNS_MODE));
        Ok(if mode == Some(0) {
            Mode::Exclusive
        } else {
            Mode::Shared
        })
    }

    /// The devices of this namespace.
    pub fn devices(&mut self) -> Result<Vec<RdmaDevice>, RdmaError> {
        let said = self.ask("the RDMA devices", Ask::Devices, &[])?;
        let devices = said.iter().filter_map(|a| {
            Some(RdmaDevice {
                index: number(a, attr::DEV_INDEX)?,
                name: text(a, attr::DEV_NAME)?,
            })
        });
        Ok(devices.collect())
    }

    /// The device with a port on this interface.
    pub fn of_link(&mut self, link: u32) -> Result<Option<RdmaDevice>, RdmaError> {
        for device in self.devices()? {
            let ports = self.ask(
                "the ports of an RDMA device",
                Ask::Ports,
                &[(attr::DEV_INDEX, device.index)],
            )?;
            if ports
                .iter()
                .any(|a| number(a, attr::NDEV_INDEX) == Some(link))
            {
                return Ok(Some(device));
            }
        }
        Ok(None)
    }

    /// Moves a device of this namespace to another.
    pub fn move_to(&mut self, device: &RdmaDevice, netns: &Netns) -> Result<(), RdmaError> {
        let fd = u32::try_from(netns.as_fd().as_raw_fd()).map_err(|_| RdmaError::Malformed)?;
        self.ask(
            "a move of an RDMA device",
            Ask::Set,
            &[(attr::DEV_INDEX, device.index), (attr::NETNS_FD, fd)],
        )?;
        Ok(())
    }

    fn ask(
        &mut self,
        what: &'static str,
        ask: Ask,
        attributes: &[(u16, u32)],
    ) -> Result<Vec<Attributes>, RdmaError> {
        let io = |source| RdmaError::Io { what, source };
        self.seq += 1;
        let bytes = request(ask, self.seq, attributes);
        self.socket.send(&bytes, 0).map_err(io)?;
        let mut objects = Vec::new();
        loop {
            let (said, _) = self.socket.recv_from_full().map_err(io)?;
            for answer in answers(&said)? {
                match answer {
                    Answer::Object(attributes) => objects.push(attributes),
                    Answer::End => return Ok(objects),
                    Answer::Refused(errno) => {
                        return Err(io(io::Error::from_raw_os_error(errno)));
                    }
                }
            }
            // One question that is no dump has one answer and no end.
            if ask == Ask::System {
                return Ok(objects);
            }
        }
    }
}
