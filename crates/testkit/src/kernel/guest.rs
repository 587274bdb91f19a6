//! What runs inside: a shell script that gives the command a writable root, modules and our variables, and says how
//! the command ended; the machine is then taken away.
//!
//! Easy to get wrong: every mount happens over the overlay, never over the machine's own tree, which is read-only there
//! and real.

use std::fmt::Write as _;
use std::path::Path;

use super::MARK;

/// Variables that go along: what cargo, the harness and the testkit read.
const ALONG: &[&str] = &["HOME", "LANG", "LD_LIBRARY_PATH", "PATH", "TZ"];
const ALONG_BY_PREFIX: &[&str] = &["CARGO", "MOOR", "RUST", "XDG_"];

/// Where the guest keeps the log of skips; the runner brings its lines out.
const SKIPS: &str = "/run/moor-skips";

/// One machine's inside.
pub(crate) struct Guest<'a> {
    /// Which machine it is: a test may ask `$MOOR_KERNEL`.
    pub(crate) kernel: &'static str,
    /// A directory of this run, which the guest sees at the same path.
    pub(crate) work: &'a Path,
    /// The directory of its modules, with their index.
    pub(crate) modules: &'a Path,
    /// The program `kmod`.
    pub(crate) kmod: &'a Path,
    /// Loaded before the command runs.
    pub(crate) load: &'a [&'a str],
}

impl Guest<'_> {
    /// The first script: makes the root of which everything may be written, and goes on there with the second one.
    ///
    /// Its mounts lie below `work`, since that is a directory that certainly exists.
    pub(crate) fn first(&self, second: &Path) -> String {
        let room = quoted(&self.work.join("room").to_string_lossy());
        let second = quoted(&second.to_string_lossy());
        let (modules, kmod) = (shown(self.modules), shown(self.kmod));
        format!(
            "#!/bin/sh
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin; export PATH
mount -t tmpfs room {room} || echo {MARK} broken no tmpfs
cd {room} && mkdir -p kmod/lib/modules upper work root
ln -s {modules} \"kmod/lib/modules/$(uname -r)\"
ln -s {kmod} kmod/modprobe
kmod/modprobe -d kmod overlay
mount -t overlay root -o lowerdir=/,upperdir=upper,workdir=work root || echo {MARK} broken no overlay
mount -t tmpfs run root/run
cp -a kmod root/run/kmod
cd root && mount --no-mtab --move . /
exec chroot . /bin/sh {second}
"
        )
    }

    /// The second script, which runs the command; it never ends, since the first process of a kernel must not.
    pub(crate) fn second(&self, command: &str) -> String {
        let mut script = String::from(
            "mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs shm /dev/shm
stty -onlcr -echo 2>/dev/null
ip link set lo up
# Tunnels that appear by themselves in every namespace are in the way of every list of links.
[ ! -e /proc/sys/net/core/fb_tunnels_only_for_init_net ] || echo 2 >/proc/sys/net/core/fb_tunnels_only_for_init_net
",
        );
        for module in self.load {
            let _ = writeln!(
                script,
                "/run/kmod/modprobe -d /run/kmod {module} || echo {MARK} broken no module {module}"
            );
        }
        for (name, value) in along(std::env::vars()) {
            let _ = writeln!(script, "export {name}={}", quoted(&value));
        }
        let _ = writeln!(script, "export MOOR_SKIP_LOG={SKIPS}");
        let _ = writeln!(script, "export MOOR_KERNEL={}", self.kernel);
        if let Ok(dir) = std::env::current_dir() {
            let _ = writeln!(script, "cd {}", shown(&dir));
        }
        let _ = write!(
            script,
            "echo {MARK} begin
(
{command}
)
code=$?
echo
[ ! -e {SKIPS} ] || while read -r line; do echo \"{MARK} skip $line\"; done <{SKIPS}
echo {MARK} exit $code
while :; do sleep 60; done
"
        );
        script
    }
}

fn along(all: impl Iterator<Item = (String, String)>) -> Vec<(String, String)> {
    let goes = |name: &str| {
        let mut prefixes = ALONG_BY_PREFIX.iter();
        // Cargo names some after programs, which may have a dash in them: a shell knows no such variable.
        let is_shell = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
        ALONG.contains(&name)
            || prefixes.any(|prefix| name.starts_with(prefix)) && name.bytes().all(is_shell)
    };
    let mut kept: Vec<_> = all.filter(|(name, _)| goes(name)).collect();
    kept.sort();
    kept
}

/// For a shell.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

pub(super) fn shown(path: &Path) -> String {
    quoted(&path.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_cargo_and_ours_go_along_and_others_do_not() {
        let dashed = "CARGO_BIN_EXE_moor-cni";
        let all = [
            "PATH",
            "MOORING_ORACLES",
            "SECRET",
            "CARGO_PKG_NAME",
            dashed,
        ];
        let all = all.map(|name| (name.to_owned(), "it's".to_owned()));
        let names: Vec<String> = along(all.into_iter()).into_iter().map(|(n, _)| n).collect();
        assert_eq!(names, ["CARGO_PKG_NAME", "MOORING_ORACLES", "PATH"]);
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
