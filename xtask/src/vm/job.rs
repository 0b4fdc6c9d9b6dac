//! One job: images are written, one or two guests boot, run their commands and hand over their files. One job at a time.

use super::accel::Accel;
use super::card::{self, Card};
use super::emulator::Emulator;
use super::image::{self, Contents};
use super::kernel::Kernel;
use super::qemu::{self, Hardware, Running, WireEnd};
use super::stale_code;
use super::try_kvm;
use super::watch::{self, Deadlines, End, Seen, Together, Watched, console_of};
use crate::{exit, paths, process};
use anyhow::{Context, Result, bail};
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// One guest of a job.
#[derive(Debug, Clone, Default)]
pub struct Guest {
    /// Programs of the host (path or name) that land in /bin.
    pub programs: Vec<String>,
    /// Other files: host path, guest path.
    pub files: Vec<(PathBuf, String)>,
    /// Whether the drivers of cards are there for `modprobe`; none is loaded at the start.
    pub with_drivers: bool,
    /// Shell text to run.
    pub command: String,
    /// Runs until the other guest is done.
    pub is_server: bool,
}

/// What to run.
#[derive(Debug, Clone)]
pub struct Job {
    /// The kernel of every guest.
    pub kernel: Kernel,
    /// One guest, or two joined by a wire.
    pub guests: Vec<Guest>,
    /// Virtual CPUs of each.
    pub cpus: u32,
    /// Memory of each in MiB.
    pub memory_mib: u32,
    /// Repeatable virtual time instead of speed; one CPU.
    pub icount: bool,
    /// What soft-RoCE sits on in a single guest: `lo`, `dummy0` or `none`. Two guests use their wire.
    pub netdev: String,
    /// An emulated card instead of soft-RoCE.
    pub card: Option<Card>,
    /// More kernel arguments.
    pub append: String,
    /// Size of the disk that the files leave by, in MiB.
    pub disk_mib: u64,
    /// How long things may take.
    pub deadlines: Deadlines,
}

impl Job {
    /// A job with the usual machine.
    pub fn new(kernel: Kernel, guests: Vec<Guest>) -> Self {
        Self {
            kernel,
            guests,
            cpus: 2,
            memory_mib: 1536,
            icount: false,
            netdev: "lo".to_owned(),
            card: None,
            append: String::new(),
            disk_mib: 2048,
            deadlines: Deadlines::default(),
        }
    }
}

/// How a job ended.
#[derive(Debug)]
pub struct Outcome {
    /// Exit code of the commands: of the last guest, or of the first one that failed.
    pub exit: u8,
    /// Whether guests ran on the host's CPU or on an emulated one.
    pub accel: &'static str,
}

const LETTERS: [char; 2] = ['a', 'b'];
const LOCK_DEADLINE: Duration = Duration::from_secs(1800);
/// So often a job is run again whose guest died of the emulator's stale code (see [`stale_code`]).
const STALE_CODE_MAX: usize = 2;

/// Runs the job; each guest's files are unpacked to `out` (one guest) or `out/LETTER` (two). A guest that gives no verdict
/// is an error with exit code 69 that names its console log. Guests that died of a known fault of the emulator are booted again, and it is said.
pub fn boot(job: &Job, out: &Path, show: &mut dyn FnMut(char, Seen<'_>)) -> Result<Outcome> {
    if job.guests.is_empty() || job.guests.len() > LETTERS.len() {
        return Err(exit::coded(2, format!("a job has one or two guests, not {}", job.guests.len())));
    }
    if job.icount && job.card.is_some() {
        return Err(exit::coded(2, "the card runs in the host's time, so that virtual time (icount) is of no use with it"));
    }
    let _lock = lock()?;
    let mut died = 0;
    loop {
        match attempt(job, out, show)? {
            Attempt::Ended(outcome) => return Ok(outcome),
            Attempt::StaleCode { error, .. } if died == STALE_CODE_MAX => return Err(error),
            Attempt::StaleCode { victims, .. } => {
                died += 1;
                let kept = keep_consoles(&victims)?;
                println!("xtask: the emulator ran code that the guest had overwritten, and a kernel died of it: once more ({kept})");
            }
        }
    }
}

/// What one boot came to, where it is no plain error.
enum Attempt {
    /// Every guest gave its verdict.
    Ended(Outcome),
    /// Emulated guests died of the emulator's stale code; `error` is what there is to say where they are not booted again.
    StaleCode { victims: Vec<char>, error: anyhow::Error },
}

/// The folder of the guests that run.
fn run_folder() -> PathBuf {
    paths::target().join("vm/run")
}

/// Keeps the consoles of guests whose job is run once more; gives their names for the user.
fn keep_consoles(letters: &[char]) -> Result<String> {
    let mut kept = Vec::new();
    for letter in letters {
        let to = paths::target().join("vm").join(format!("stale-code-{}", console_of(*letter)));
        fs::copy(run_folder().join(console_of(*letter)), &to).with_context(|| format!("writing {}", to.display()))?;
        kept.push(paths::shown(&to));
    }
    Ok(kept.join(", "))
}

/// One boot of the job's guests.
fn attempt(job: &Job, out: &Path, show: &mut dyn FnMut(char, Seen<'_>)) -> Result<Attempt> {
    let emulator = if job.card.is_some() { card::find_emulator()? } else { Emulator::find()? };
    let accel = if job.icount { Accel::TcgIcount } else { try_kvm::choose(&job.kernel, &emulator)? };
    let folder = run_folder();
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("clearing {}", folder.display()))?;
    }
    fs::create_dir_all(&folder)?;
    let count = job.guests.len();
    for (letter, guest) in LETTERS.into_iter().zip(&job.guests) {
        let contents = Contents {
            programs: guest.programs.clone(),
            files: guest.files.clone(),
            with_drivers: guest.with_drivers,
            with_card: job.card.is_some(),
            command: guest.command.clone(),
            settings: settings(job, letter, guest, accel),
        };
        image::write(&job.kernel, &contents, &folder.join(format!("{letter}.cpio")))?;
        File::create(folder.join(format!("{letter}.disk")))?.set_len(job.disk_mib << 20)?;
    }
    // Dropped after the guests: the card ends when they have closed their sockets.
    let mut card = job.card.as_ref().map(|card| card::Running::start(card, &folder, &LETTERS[..count])).transpose()?;
    let (to, lines) = mpsc::channel();
    let mut watched = Vec::new();
    for (index, letter) in LETTERS.into_iter().take(count).enumerate() {
        let end = if index == 0 { WireEnd::First } else { WireEnd::Second };
        let hardware = Hardware {
            emulator: &emulator,
            letter,
            accel,
            cpus: if job.icount { 1 } else { job.cpus },
            memory_mib: job.memory_mib,
            wire: (count > 1).then_some(end),
            card: job.card.is_some().then(|| card::socket_of(letter)),
            append: &job.append,
        };
        let mut command = hardware.command(&job.kernel, &folder);
        if index > 0 {
            await_file(&folder.join(qemu::WIRE_SOCKET), Duration::from_secs(15))?;
        }
        let started = command.spawn().map_err(|error| exit::infrastructure(format!("starting `{}`: {error}", process::line(&command))))?;
        watched.push(Watched::new(letter, Running::from(started), &folder, &to).map_err(|error| {
            let said: Vec<String> = lines.try_iter().map(|(_, line)| line).collect();
            exit::infrastructure(format!("{error:#}: {}", said.join("; ")))
        })?);
    }
    let together = match (count, job.guests[0].is_server) {
        (1, _) => Together::Apart,
        (_, false) => Together::Start,
        (_, true) => Together::Server,
    };
    let mut ended_card = || card.as_mut().and_then(|card| card.ended());
    let ends = watch::watch(watched, &lines, together, &job.deadlines, &mut ended_card, show)?;
    let mut outcome = Outcome { exit: 0, accel: accel.name() };
    let mut broken = Vec::new();
    for (letter, end) in LETTERS.into_iter().zip(ends) {
        match end {
            End::Verdict(verdict) => {
                if verdict.files {
                    let to = if count == 1 { out.to_path_buf() } else { out.join(letter.to_string()) };
                    unpack(&folder.join(format!("{letter}.disk")), &to)?;
                } else {
                    broken.push(format!("guest {letter}: its files did not fit on the disk of {} MiB", job.disk_mib));
                }
                if verdict.stage != "command" {
                    broken.push(format!("guest {letter}: the {} part of its start failed", verdict.stage));
                } else if outcome.exit == 0 {
                    outcome.exit = verdict.exit;
                }
            }
            End::Broken(why) => broken.push(format!("guest {letter}: {why}")),
        }
    }
    if !broken.is_empty() {
        let logs: Vec<String> = LETTERS.iter().take(count).map(|letter| paths::shown(&folder.join(console_of(*letter)))).collect();
        let error = exit::infrastructure(format!("{} (consoles: {})", broken.join("; "), logs.join(", ")));
        // On the host's own CPU nothing is translated: there it would be the kernel's own fault.
        let victims = if accel == Accel::Kvm { Vec::new() } else { stale_code::victims(&folder, &LETTERS[..count]) };
        return if victims.is_empty() { Err(error) } else { Ok(Attempt::StaleCode { victims, error }) };
    }
    for (letter, kind) in LETTERS.into_iter().take(count).flat_map(|letter| [(letter, "cpio"), (letter, "disk")]) {
        fs::remove_file(folder.join(format!("{letter}.{kind}")))?;
    }
    Ok(Attempt::Ended(outcome))
}

/// What the guest's first process is told.
fn settings(job: &Job, letter: char, guest: &Guest, accel: Accel) -> Vec<(String, String)> {
    let is_pair = job.guests.len() > 1;
    let (own, other) = if letter == 'a' { ("10.77.0.1", "10.77.0.2") } else { ("10.77.0.2", "10.77.0.1") };
    let other_mac = if is_pair { qemu::mac_of(if letter == 'a' { 'b' } else { 'a' }) } else { String::new() };
    let netdev = if job.card.is_some() { "none" } else { &job.netdev };
    let role = if guest.is_server { "server" } else { "client" };
    [
        ("GUEST", letter.to_string()),
        ("SELF", own.to_owned()),
        ("PEER", if is_pair { other.to_owned() } else { own.to_owned() }),
        ("PEER_MAC", other_mac),
        ("CARD", job.card.as_ref().map_or("", |card| card.link.name()).to_owned()),
        ("CARD_ADDRESS", if letter == 'a' { "10.78.0.1" } else { "10.78.0.2" }.to_owned()),
        ("NET", if is_pair { "eth0".to_owned() } else { netdev.to_owned() }),
        ("WAIT_FOR_GO", u8::from(is_pair).to_string()),
        ("ROLE", role.to_owned()),
        ("ACCEL", accel.name().to_owned()),
        ("KERNEL", job.kernel.name.clone()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}

/// The lock that keeps virtual machines from running beside each other.
fn lock() -> Result<File> {
    let path = paths::target().join("vm/lock");
    fs::create_dir_all(paths::target().join("vm"))?;
    let file = File::create(&path).with_context(|| format!("opening {}", path.display()))?;
    let start = Instant::now();
    let mut has_told = false;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if start.elapsed() < LOCK_DEADLINE => {
                if !has_told {
                    eprintln!("xtask: waiting for another virtual machine to end");
                    has_told = true;
                }
                std::thread::sleep(Duration::from_millis(200));
            }
            Err(TryLockError::WouldBlock) => {
                let waited = LOCK_DEADLINE.as_secs();
                return Err(exit::infrastructure(format!("another virtual machine still runs after {waited} s")));
            }
            Err(TryLockError::Error(error)) => {
                return Err(error).context("locking out other virtual machines");
            }
        }
    }
}

fn await_file(path: &Path, deadline: Duration) -> Result<()> {
    let start = Instant::now();
    while !path.exists() {
        if start.elapsed() > deadline {
            return Err(exit::infrastructure("the first guest's end of the wire did not appear"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Unpacks the tar at the start of a disk.
fn unpack(disk: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("creating {}", to.display()))?;
    let mut archive = tar::Archive::new(File::open(disk)?);
    archive.set_preserve_permissions(false);
    let mut count = 0_usize;
    for entry in archive.entries().context("reading the guest's disk")? {
        let mut entry = entry.context("reading the guest's disk")?;
        let name = entry.path()?.into_owned();
        if !entry.unpack_in(to).with_context(|| format!("unpacking {}", name.display()))? {
            bail!("the guest's archive names a path outside of its folder: {}", name.display());
        }
        count += 1;
    }
    // The kernel's log is always there.
    if count < 2 {
        bail!("the guest's disk holds no files");
    }
    Ok(())
}
