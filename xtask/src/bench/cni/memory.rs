//! Memory and programs of one ADD.
//!
//! A plugin's last act is to print its result. Here nobody has room for it: the pipe is full, so the plugin waits in its
//! write and the kernel can be asked how much memory it has had. Then the pipe is emptied, and it ends.

use std::fs;
use std::io::{Read as _, Write as _, pipe};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use super::Case;
use super::node::{Node, Who};
use crate::bench::high_water_mark;

const CASE: Case = Case {
    plugin: "macvlan",
    ipam: "host-local",
    v6: false,
};

/// What a pipe holds.
const FULL: usize = 64 << 10;

/// The most that the plugin's own process has had; a delegate's is not in it.
pub(super) fn peak_kib(node: &Node, who: Who) -> Result<u64> {
    let mut attachment = node.attachment(who, CASE, 0);
    let (mut command, input) = node.command(who, "ADD", &attachment)?;
    let (mut reader, mut writer) = pipe()?;
    writer.write_all(&vec![b' '; FULL])?;
    let mut child = command
        .stdin(input)
        .stdout(writer)
        .stderr(Stdio::null())
        .spawn()?;
    // The command keeps its end until it is gone.
    drop(command);
    let peak = until_it_prints(child.id());
    let mut said = Vec::new();
    reader.read_to_end(&mut said)?;
    ensure!(child.wait()?.success(), "the ADD failed");
    node.call(who, "DEL", &mut attachment)?;
    peak
}

fn until_it_prints(pid: u32) -> Result<u64> {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(10) {
        for task in fs::read_dir(format!("/proc/{pid}/task"))? {
            let place = fs::read_to_string(task?.path().join("wchan")).unwrap_or_default();
            if place.contains("pipe_write") {
                let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
                return high_water_mark(&status).context("the process shows no VmHWM");
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    bail!("the plugin never printed")
}

/// The plugin, and what it starts: plugins are found in a directory of scripts that count.
pub(super) fn programs_started(node: &Node, who: Who) -> Result<usize> {
    let dir = node.place("counting");
    let log = node.place("started");
    let _ = fs::remove_file(&log);
    fs::create_dir_all(&dir)?;
    for name in ["static", "host-local"] {
        let script = dir.join(name);
        let text = format!(
            "#!/bin/sh\necho {name} >> {}\nexec {} \"$@\"\n",
            log.display(),
            node.program(who, name).display()
        );
        fs::write(&script, text)?;
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
    }
    let mut attachment = node.attachment(who, CASE, 0);
    let (mut command, input) = node.command(who, "ADD", &attachment)?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let output = command
        .env("CNI_PATH", &dir)
        .env("PATH", path)
        .stdin(input)
        .output()?;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    node.call(who, "DEL", &mut attachment)?;
    let started = fs::read_to_string(&log).unwrap_or_default();
    Ok(1 + started.lines().count())
}
