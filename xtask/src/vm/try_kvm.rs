//! Hardware virtualisation or emulation: `/dev/kvm` may open, and a guest may even start under it, and then hang before its
//! first line. So a kernel is booted under kvm with a deadline once, and the answer is remembered for this boot of the host.

use super::accel::Accel;
use super::emulator::Emulator;
use super::kernel::Kernel;
use super::qemu;
use crate::paths;
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// A kernel without a root file system says so within this time where kvm works.
const DEADLINE: Duration = Duration::from_secs(20);
/// The first line comes at once; a guest that is silent this long hangs.
const FIRST_LINE: Duration = Duration::from_secs(8);

#[derive(Debug, Serialize, Deserialize)]
struct Answer {
    boot_id: String,
    qemu: String,
    accel: Accel,
    why: String,
}

/// What this machine can do; tried once per boot of the host.
pub fn choose(kernel: &Kernel, emulator: &Emulator) -> Result<Accel> {
    let file = paths::target().join(format!("vm/accel-{}.json", emulator.version));
    let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned();
    if let Some(known) = fs::read(&file).ok().and_then(|text| serde_json::from_slice::<Answer>(&text).ok())
        && known.boot_id == boot_id
        && known.qemu == emulator.version
    {
        return Ok(known.accel);
    }
    let (accel, why) = match try_kvm(kernel, emulator) {
        Ok(()) => (Accel::Kvm, "a kernel booted under it".to_owned()),
        Err(why) => (Accel::Tcg, why),
    };
    let version = &emulator.version;
    match accel {
        Accel::Tcg => {
            eprintln!("xtask: no kvm here ({why}); QEMU {version} emulates the guests (tcg): slower, and durations are the emulator's")
        }
        _ => eprintln!("xtask: guests run under {}, QEMU {version} ({why})", accel.name()),
    }
    fs::write(&file, serde_json::to_vec_pretty(&Answer { boot_id, qemu: emulator.version.clone(), accel, why })?)?;
    Ok(accel)
}

fn try_kvm(kernel: &Kernel, emulator: &Emulator) -> Result<(), String> {
    let opened = fs::OpenOptions::new().read(true).write(true).open("/dev/kvm");
    opened.map_err(|error| format!("no /dev/kvm: {error}"))?;
    let mut command = qemu::bare(emulator);
    command.args(Accel::Kvm.args()).args(["-m", "512", "-serial", "stdio", "-kernel"]).arg(&kernel.image);
    command.args(["-append", "console=ttyS0 panic=-1 tsc=reliable"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().map_err(|error| format!("starting QEMU: {error}"))?;
    let mut child = qemu::Running::from(child);
    let stdout = child.take_stdout().ok_or("QEMU has no output")?;
    let (to, from) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
            if to.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                break;
            }
        }
    });
    let start = Instant::now();
    let mut is_silent = true;
    loop {
        let limit = if is_silent { FIRST_LINE } else { DEADLINE };
        let Some(left) = limit.checked_sub(start.elapsed()) else {
            let how = if is_silent { "no line" } else { "no end of the boot" };
            return Err(format!("kvm opens, but a guest shows {how} within {} s", limit.as_secs()));
        };
        match from.recv_timeout(left) {
            Ok(line) => {
                // The firmware writes lines too; the kernel's have a time in brackets.
                is_silent &= !line.trim_start().starts_with('[');
                if line.contains("Unable to mount root") || line.contains("Kernel panic") {
                    return Ok(());
                }
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                let mut said = String::new();
                if let Some(mut stderr) = child.take_stderr() {
                    // Whatever can be read of its message is said; none is also an answer.
                    let _ = stderr.read_to_string(&mut said);
                }
                let said = said.lines().next().unwrap_or("no message");
                return Err(format!("QEMU ended under kvm: {said}"));
            }
        }
    }
}
