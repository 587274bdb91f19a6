//! Sends frames without a packet socket: a four-instruction BPF program hands each one to the link.
//!
//! Called by `announce`. Closing an AF_PACKET socket waits for an RCU grace period (`packet_release` calls
//! `synchronize_net`): 12 to 24 ms measured, several times the rest of an ADD, and no way round it short of leaving a process
//! behind. `BPF_PROG_TEST_RUN` runs a classifier on bytes of ours, the classifier's `bpf_clone_redirect` puts them out, and
//! its file closes at once: 0.1 ms. Kernel 4.12 and newer; where BPF is not to be had the caller uses the socket.
//!
//! Easy to get wrong: the link is looked up in the namespace of the *calling thread*, so this runs inside [`Netns::run`].
//!
//! [`Netns::run`]: crate::Netns::run

use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

use nix::libc;

const PROG_LOAD: libc::c_int = 5;
const PROG_TEST_RUN: libc::c_int = 10;
const CLASSIFIER: u32 = 3;
const CLONE_REDIRECT: i32 = 13;

/// One BPF instruction, as the kernel lays it out.
#[repr(C)]
struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    immediate: i32,
}

/// The head of `union bpf_attr` for loading; the kernel takes a shorter one than its own.
#[repr(C)]
struct Load {
    kind: u32,
    count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
}

/// The same for a test run.
#[repr(C)]
struct TestRun {
    program: u32,
    returned: u32,
    size_in: u32,
    size_out: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
}

/// A loaded program that puts frames out of one link.
pub(super) struct Injector(OwnedFd);

impl Injector {
    /// For the link of that index in the thread's namespace.
    pub(super) fn to(index: u32) -> io::Result<Self> {
        let index = i32::try_from(index).map_err(io::Error::other)?;
        let program = [
            // r2 = index; r3 = 0, which is "out"; r1 is the frame already.
            instruction(0xb7, 2, index),
            instruction(0xb7, 3, 0),
            instruction(0x85, 0, CLONE_REDIRECT),
            instruction(0x95, 0, 0),
        ];
        let license = c"Apache-2.0";
        let load = Load {
            kind: CLASSIFIER,
            count: 4,
            instructions: program.as_ptr().addr() as u64,
            license: license.as_ptr().addr() as u64,
            log_level: 0,
            log_size: 0,
            log: 0,
            kernel_version: 0,
            flags: 0,
        };
        let fd = bpf(PROG_LOAD, &raw const load)?;
        let fd = i32::try_from(fd).map_err(io::Error::other)?;
        // SAFETY: the kernel has just made this descriptor for us, and nobody else knows its number.
        #[expect(unsafe_code, reason = "a new descriptor gets its owner")]
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self(fd))
    }

    /// Puts one frame out. The kernel's answer is the driver's: a full queue or a link without carrier is an error.
    pub(super) fn send(&self, frame: &[u8]) -> io::Result<()> {
        let mut run = TestRun {
            program: u32::try_from(self.0.as_raw_fd()).map_err(io::Error::other)?,
            returned: 0,
            size_in: u32::try_from(frame.len()).map_err(io::Error::other)?,
            size_out: 0,
            data_in: frame.as_ptr().addr() as u64,
            data_out: 0,
            repeat: 1,
            duration: 0,
        };
        bpf(PROG_TEST_RUN, &raw mut run)?;
        match run.returned.cast_signed() {
            0 => Ok(()),
            failed if failed < 0 => Err(io::Error::from_raw_os_error(-failed)),
            // NET_XMIT_DROP and its like.
            _ => Err(io::Error::other("the link's queue did not take it")),
        }
    }
}

fn instruction(code: u8, register: u8, immediate: i32) -> Instruction {
    Instruction {
        code,
        registers: register,
        offset: 0,
        immediate,
    }
}

/// `bpf(2)`, which libc does not wrap.
fn bpf<T>(command: libc::c_int, attributes: *const T) -> io::Result<libc::c_long> {
    // SAFETY: the kernel reads `size_of::<T>()` bytes at `attributes` and, for a test run, writes its answer into the same
    // struct, which its caller made mutable. The addresses inside it (program, licence, frame) are borrowed by that caller for
    // the whole call, with the lengths that stand beside them.
    #[expect(unsafe_code, reason = "a system call without a wrapper")]
    let answer = unsafe { libc::syscall(libc::SYS_bpf, command, attributes, size_of::<T>()) };
    if answer < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(answer)
    }
}
