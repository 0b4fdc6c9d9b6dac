//! The few commands of `bpf(2)` that aya does not have.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use aya_obj::generated::bpf_insn;

const MAP_CREATE: libc::c_long = 0;
const MAP_UPDATE_ELEM: libc::c_long = 2;
const PROG_LOAD: libc::c_long = 5;
const PROG_TEST_RUN: libc::c_long = 10;
const OBJ_GET_INFO_BY_FD: libc::c_long = 15;
const RAW_TRACEPOINT_OPEN: libc::c_long = 17;
const BTF_GET_FD_BY_ID: libc::c_long = 19;
const MAP_FREEZE: libc::c_long = 22;
const BTF_GET_NEXT_ID: libc::c_long = 23;

const MAP_TYPE_ARRAY: u32 = 2;
/// Programs may only read the map: what lets the verifier take its content as constants.
const RDONLY_PROG: u32 = 1 << 7;
const PROG_TYPE_TRACING: u32 = 26;
/// Bytes of `union bpf_attr` that are passed; the kernel takes a longer one whose rest is zero.
const ATTR_WORDS: usize = 16;

/// Words of `union bpf_attr`, little endian halves.
#[derive(Default)]
struct Attr([u64; ATTR_WORDS]);

impl Attr {
    /// Sets the 32 bits at a byte offset.
    fn u32(mut self, at: usize, value: u32) -> Self {
        let shift = (at % 8) * 8;
        self.0[at / 8] |= u64::from(value) << shift;
        self
    }

    /// Sets the 64 bits at a byte offset.
    fn u64(mut self, at: usize, value: u64) -> Self {
        self.0[at / 8] = value;
        self
    }

    fn get_u32(&self, at: usize) -> u32 {
        (self.0[at / 8] >> ((at % 8) * 8)) as u32
    }

    fn call(&mut self, command: libc::c_long) -> io::Result<i32> {
        // SAFETY: the attribute lives for the whole call; every pointer in it was made by the caller from a slice that does too.
        let result = unsafe { libc::syscall(libc::SYS_bpf, command, self.0.as_mut_ptr(), ATTR_WORDS * 8) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i32) }
    }

    fn fd(mut self, command: libc::c_long) -> io::Result<OwnedFd> {
        let fd = self.call(command)?;
        // SAFETY: the kernel has just made this descriptor for us; nothing else owns it.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }
}

fn fd(of: BorrowedFd<'_>) -> u32 {
    of.as_raw_fd() as u32
}

/// A frozen map of one element that programs can only read: constants for the verifier.
pub(super) fn constants(content: &[u8]) -> io::Result<OwnedFd> {
    let map =
        Attr::default().u32(0, MAP_TYPE_ARRAY).u32(4, 4).u32(8, content.len() as u32).u32(12, 1).u32(16, RDONLY_PROG).fd(MAP_CREATE)?;
    let key = 0_u32;
    Attr::default()
        .u32(0, fd(map.as_fd()))
        .u64(8, std::ptr::from_ref(&key) as u64)
        .u64(16, content.as_ptr() as u64)
        .call(MAP_UPDATE_ELEM)?;
    Attr::default().u32(0, fd(map.as_fd())).call(MAP_FREEZE)?;
    Ok(map)
}

/// A program of type tracing, before it is loaded.
pub(super) struct Tracing<'a> {
    /// Its name, of which the kernel keeps 15 bytes.
    pub name: &'a str,
    /// Instructions.
    pub instructions: &'a [bpf_insn],
    /// Its licence, with the zero at the end.
    pub license: &'a std::ffi::CStr,
    /// `BPF_TRACE_RAW_TP` or `BPF_TRACE_FENTRY`.
    pub attach_type: u32,
    /// Id of the function, or of the tracepoint's typedef.
    pub btf_id: u32,
    /// BTF of the module; `None`: the kernel's own.
    pub module: Option<BorrowedFd<'a>>,
}

/// The tracepoint's programs get its arguments.
pub(super) const TRACE_RAW_TP: u32 = 23;
/// Programs at the entry of a function.
pub(super) const TRACE_FENTRY: u32 = 24;

impl Tracing<'_> {
    /// Loads it. The error carries the last line of the verifier's log.
    pub(super) fn load(&self) -> Result<OwnedFd, String> {
        let mut name = [0_u8; 16];
        let kept = self.name.len().min(name.len() - 1);
        name[..kept].copy_from_slice(&self.name.as_bytes()[..kept]);
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| name[at + byte]));
        let attr = || {
            Attr::default()
                .u64(48, word(0))
                .u64(56, word(8))
                .u32(0, PROG_TYPE_TRACING)
                .u32(4, self.instructions.len() as u32)
                .u64(8, self.instructions.as_ptr() as u64)
                .u64(16, self.license.as_ptr() as u64)
                .u32(68, self.attach_type)
                .u32(108, self.btf_id)
                .u32(112, self.module.map_or(0, fd))
        };
        attr().fd(PROG_LOAD).map_err(|error| {
            let mut log = vec![0_u8; 1 << 18];
            let with_log = attr().u32(24, 1).u32(28, log.len() as u32).u64(32, log.as_mut_ptr() as u64);
            let _ = with_log.fd(PROG_LOAD);
            let text = String::from_utf8_lossy(&log).trim_end_matches('\0').to_owned();
            let last = text.lines().rev().find(|line| !line.is_empty() && !line.starts_with("processed ")).unwrap_or_default();
            format!("{error}: {last}")
        })
    }
}

/// Attaches a program of type tracing to what it was loaded for; it goes with the descriptor.
pub(super) fn attach_tracing(program: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    Attr::default().u32(8, fd(program)).fd(RAW_TRACEPOINT_OPEN)
}

/// Runs a raw tracepoint's program once, with one argument (`BPF_PROG_TEST_RUN`).
pub(super) fn run_once(program: BorrowedFd<'_>, argument: u64) -> io::Result<()> {
    let context = [argument];
    let mut attr = Attr::default().u32(0, fd(program)).u32(40, size_of_val(&context) as u32).u64(48, context.as_ptr() as u64);
    attr.call(PROG_TEST_RUN).map(|_| ())
}

/// The BTF object of a loaded module.
pub(super) fn module_btf(module: &str) -> io::Result<OwnedFd> {
    let mut id = 0;
    loop {
        let mut next = Attr::default().u32(0, id);
        next.call(BTF_GET_NEXT_ID)?;
        id = next.get_u32(4);
        let btf = match Attr::default().u32(0, id).fd(BTF_GET_FD_BY_ID) {
            Ok(btf) => btf,
            // It went away in between.
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => continue,
            Err(error) => return Err(error),
        };
        // `struct bpf_btf_info`: btf, btf_size, id, name, name_len, kernel_btf.
        let mut name = [0_u8; 64];
        let mut info = [0_u64; 4];
        info[2] = name.as_mut_ptr() as u64;
        info[3] = name.len() as u64;
        let asked = Attr::default()
            .u32(0, fd(btf.as_fd()))
            .u32(4, size_of_val(&info) as u32)
            .u64(8, info.as_mut_ptr() as u64)
            .call(OBJ_GET_INFO_BY_FD);
        if asked.is_ok() && name.split(|byte| *byte == 0).next() == Some(module.as_bytes()) {
            return Ok(btf);
        }
    }
}
