//! QEMU's command line and its process: a guest never outlives the xtask that started it.

use super::accel::Accel;
use super::emulator::Emulator;
use super::kernel::Kernel;
use crate::process;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

/// QEMU without any device, which the kernel ends when xtask ends.
pub fn bare(emulator: &Emulator) -> Command {
    let mut command = process::command("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).args(emulator.words()).args(["-nodefaults", "-no-user-config"]);
    command.envs(emulator.modules());
    command.args(["-display", "none", "-no-reboot", "-machine", "q35"]);
    command
}

/// The virtual hardware of one guest. Paths are relative to the folder that QEMU runs in, because a unix socket's path must
/// be short.
#[derive(Debug)]
pub struct Hardware<'a> {
    /// The program.
    pub emulator: &'a Emulator,
    /// Letter of the guest; names its files.
    pub letter: char,
    /// How the CPU is made.
    pub accel: Accel,
    /// Virtual CPUs.
    pub cpus: u32,
    /// Memory in MiB.
    pub memory_mib: u32,
    /// The wire to the other guest, where there is one: which end this is.
    pub wire: Option<WireEnd>,
    /// Socket of the emulated card, where there is one.
    pub card: Option<String>,
    /// More kernel arguments.
    pub append: &'a str,
}

/// The end of the wire between two guests that a guest holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireEnd {
    /// Listens; started first.
    First,
    /// Connects.
    Second,
}

/// Name of the socket that joins two guests.
pub const WIRE_SOCKET: &str = "wire.sock";

impl Hardware<'_> {
    /// The command that runs the guest in `folder`, where its image and its disk are.
    pub fn command(&self, kernel: &Kernel, folder: &Path) -> Command {
        let letter = self.letter;
        let mut command = bare(self.emulator);
        command.args(self.accel.args());
        command.args(["-smp", &self.cpus.to_string(), "-m", &self.memory_mib.to_string(), "-kernel"]).arg(&kernel.image);
        // tsc=reliable: else the guest marks the clock unstable and every clock read leaves the guest.
        // A program may turn the card's knobs although a driver has its BAR.
        let card = if self.card.is_some() { "iomem=relaxed " } else { "" };
        let append = format!("console=ttyS0,115200 tsc=reliable panic=-1 {card}{}", self.append);
        command.args(["-initrd", &format!("{letter}.cpio"), "-append", append.trim_end()]);
        command.args(["-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console"]);
        command.args(["-chardev", &format!("file,id=progress,path={letter}.progress"), "-serial", "chardev:progress"]);
        command.args(["-drive", &format!("file={letter}.disk,format=raw,if=none,id=out,cache=unsafe")]);
        command.args(["-device", "virtio-blk-pci,drive=out"]);
        if let Some(end) = self.wire {
            let server = if end == WireEnd::First { "on" } else { "off" };
            let wire = format!("stream,id=wire,server={server},addr.type=unix,addr.path={WIRE_SOCKET}");
            command.args(["-netdev", &wire, "-device"]);
            command.arg(format!("virtio-net-pci,netdev=wire,romfile=,host_mtu=4200,mac={}", mac_of(letter)));
        }
        if let Some(socket) = &self.card {
            command.args(card_args(socket, self.memory_mib));
        }
        command.current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

/// The emulated card: its process reads and writes the guest's memory, so that this has to be shared with it.
fn card_args(socket: &str, memory_mib: u32) -> [String; 6] {
    let device = serde_json::json!({ "driver": "vfio-user-pci", "socket": { "type": "unix", "path": socket } });
    [
        "-object".to_owned(),
        format!("memory-backend-memfd,id=ram,size={memory_mib}M,share=on"),
        "-machine".to_owned(),
        "memory-backend=ram".to_owned(),
        "-device".to_owned(),
        device.to_string(),
    ]
}

/// The hardware address of a guest on the wire.
pub fn mac_of(letter: char) -> String {
    format!("52:54:00:77:00:{:02x}", u32::from(letter))
}

/// A started QEMU; killed when this value goes away.
#[derive(Debug)]
pub struct Running(Child);

impl From<Child> for Running {
    fn from(child: Child) -> Self {
        Self(child)
    }
}

impl Running {
    /// What the guest writes to its first serial line.
    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.0.stdout.take()
    }

    /// What QEMU itself complains about.
    pub fn take_stderr(&mut self) -> Option<std::process::ChildStderr> {
        self.0.stderr.take()
    }

    /// What the guest reads from its first serial line.
    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.0.stdin.take()
    }

    /// Its exit status once it has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.0.try_wait().ok().flatten()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.ended().is_none() {
            // It may end between the two calls; either way it is gone afterwards.
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cards_guest_shares_its_memory() {
        let args = card_args("card-a.sock", 1536);
        assert_eq!(args[1], "memory-backend-memfd,id=ram,size=1536M,share=on");
        assert_eq!(args[3], "memory-backend=ram");
        let device: serde_json::Value = serde_json::from_str(&args[5]).unwrap();
        assert_eq!(device["driver"], "vfio-user-pci");
        assert_eq!(device["socket"], serde_json::json!({ "type": "unix", "path": "card-a.sock" }));
    }
}
