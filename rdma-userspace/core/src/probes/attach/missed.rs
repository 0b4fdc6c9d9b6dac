//! Runs of probes that the kernel skipped: a kprobe inside another one's handler, or a program while another one was active on the
//! CPU. Kernels since about 6.7 count both; the BTF says whether this one does.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use aya::Ebpf;

use super::typed::Typed;
use crate::probes::plan::{MissedFields, PlannedHook};

const BPF_OBJ_GET_INFO_BY_FD: libc::c_long = 15;
const BPF_LINK_GET_FD_BY_ID: libc::c_long = 30;
const BPF_LINK_GET_NEXT_ID: libc::c_long = 31;
/// Room for `struct bpf_prog_info` and `struct bpf_link_info`.
const INFO_BYTES: usize = 512;

/// The head of `union bpf_attr` in the three commands used here.
#[repr(C)]
#[derive(Default)]
struct Attr {
    id_or_fd: u32,
    next_or_len: u32,
    flags_or_info: u64,
}

/// What was skipped, over attaches and detaches.
#[derive(Debug, Default)]
pub(super) struct Missed {
    fields: Option<MissedFields>,
    /// Of kprobes that are gone; their counts go with them.
    gone: u64,
    is_unknown: bool,
}

impl Missed {
    pub(super) fn new(fields: Option<MissedFields>) -> Self {
        Missed { fields, gone: 0, is_unknown: fields.is_none() }
    }

    /// To be called before links are dropped.
    pub(super) fn before_detach(&mut self, ebpf: &Ebpf, hooks: &[PlannedHook]) {
        match self.fields.and_then(|fields| of_links(ebpf, hooks, fields)) {
            Some(missed) => self.gone += missed,
            None => self.is_unknown = true,
        }
    }

    /// Skipped runs since loading; `None` where the kernel does not tell.
    pub(super) fn total(&self, ebpf: &Ebpf, typed: &Typed, hooks: &[PlannedHook]) -> Option<u64> {
        let fields = self.fields.filter(|_| !self.is_unknown)?;
        Some(self.gone + of_links(ebpf, hooks, fields)? + of_programs(ebpf, typed, hooks, fields)?)
    }
}

/// Hits that kprobes of our links missed.
fn of_links(ebpf: &Ebpf, hooks: &[PlannedHook], fields: MissedFields) -> Option<u64> {
    let own: Vec<u32> = hooks.iter().filter_map(|hook| Some(ebpf.program(hook.program.symbol())?.info().ok()?.id())).collect();
    let mut attr = Attr::default();
    let mut sum = 0;
    loop {
        attr.flags_or_info = 0;
        match bpf(BPF_LINK_GET_NEXT_ID, &mut attr) {
            Ok(_) => attr.id_or_fd = attr.next_or_len,
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return Some(sum),
            Err(_) => return None,
        }
        let mut by_id = Attr { id_or_fd: attr.id_or_fd, ..Attr::default() };
        let fd = match bpf(BPF_LINK_GET_FD_BY_ID, &mut by_id) {
            Ok(fd) => fd,
            // It went away in between: not one of ours, which live as long as we do.
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => continue,
            Err(_) => return None,
        };
        // SAFETY: the kernel has just made this descriptor for us; nothing else owns it.
        let link = unsafe { OwnedFd::from_raw_fd(fd) };
        let info = info(&link)?;
        let is_kprobe = u32_at(&info, fields.link_type)? == fields.perf_event;
        if is_kprobe && own.contains(&u32_at(&info, fields.link_program)?) {
            sum += u64_at(&info, fields.link_missed)?;
        }
    }
}

/// Runs that the kernel skipped because another program was active on the CPU.
fn of_programs(ebpf: &Ebpf, typed: &Typed, hooks: &[PlannedHook], fields: MissedFields) -> Option<u64> {
    let present = hooks.iter().filter(|hook| hook.symbol.is_some());
    let info_of = |hook: &PlannedHook| match typed.fd(hook.program) {
        Some(fd) => info(&fd),
        None => info(ebpf.program(hook.program.symbol())?.fd().ok()?),
    };
    present.map(|hook| u64_at(&info_of(hook)?, fields.program_missed)).sum()
}

fn info(fd: &impl AsFd) -> Option<[u8; INFO_BYTES]> {
    let mut info = [0_u8; INFO_BYTES];
    let fd = u32::try_from(fd.as_fd().as_raw_fd()).ok()?;
    let mut attr = Attr { id_or_fd: fd, next_or_len: INFO_BYTES as u32, flags_or_info: info.as_mut_ptr() as u64 };
    bpf(BPF_OBJ_GET_INFO_BY_FD, &mut attr).ok()?;
    Some(info)
}

fn bpf(command: libc::c_long, attr: &mut Attr) -> io::Result<i32> {
    // SAFETY: `attr` is the command's part of `union bpf_attr` and lives for the whole call; for the info command it points to
    // `INFO_BYTES` writable bytes that outlive the call.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(attr), size_of::<Attr>()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i32) }
}

fn u32_at(bytes: &[u8], at: u32) -> Option<u32> {
    bytes.get(at as usize..)?.first_chunk().map(|word| u32::from_ne_bytes(*word))
}

fn u64_at(bytes: &[u8], at: u32) -> Option<u64> {
    bytes.get(at as usize..)?.first_chunk().map(|word| u64::from_ne_bytes(*word))
}
