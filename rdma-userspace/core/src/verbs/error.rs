//! Errors of the verbs layer: the operation, its parameters, the limit of the device and the likely cause. The errno is the source.
use std::io;

/// What went wrong in a call to libibverbs or around it.
///
/// The message never repeats its source: print the chain once (`{error:#}` of `anyhow`, or walk `source()`).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VerbsError {
    /// `ibv_get_device_list` failed.
    #[error(
        "Cannot list RDMA devices (likely: there is none, so that the module ib_uverbs is not loaded, or /dev/infiniband is not there for this user). \
         `rdmascope doctor` tells which; `rdmascope soft-roce up INTERFACE` makes a software device"
    )]
    ListDevices(#[source] io::Error),
    /// No device of that name, or none at all.
    #[error("No RDMA device {wanted}; found: {found}. {hint}")]
    NoDevice {
        /// The name asked for, or a word for "any".
        wanted: String,
        /// What there is.
        found: String,
        /// What to do.
        hint: &'static str,
    },
    /// `ibv_open_device` failed.
    #[error("Cannot open RDMA device {device} (likely: {cause})")]
    OpenDevice {
        /// Device name.
        device: String,
        /// Likely cause.
        cause: &'static str,
        /// The errno.
        #[source]
        source: io::Error,
    },
    /// `ibv_query_device` or `ibv_query_port` failed.
    #[error("Cannot query {what} of {device}")]
    Query {
        /// What was asked.
        what: String,
        /// Device name.
        device: String,
        /// The errno.
        #[source]
        source: io::Error,
    },
    /// The port cannot carry traffic.
    #[error("Port {port} of {device} is {state}, not ACTIVE (likely: the link or the network interface under it is down)")]
    PortDown {
        /// Device name.
        device: String,
        /// Port number.
        port: u8,
        /// Its state.
        state: String,
    },
    /// The GID table could not be read.
    #[error("Cannot read the GID table of {device} port {port} at {path}")]
    ReadGids {
        /// Device name.
        device: String,
        /// Port number.
        port: u8,
        /// The file or folder.
        path: String,
        /// The errno.
        #[source]
        source: io::Error,
    },
    /// No GID, or no pair of GIDs, that both sides can use.
    #[error("No usable GID: {why}. {tables}. Give the interface an IP address, or choose one by index (--gid-index)")]
    NoUsableGid {
        /// The reason.
        why: String,
        /// The tables with scores.
        tables: String,
    },
    /// A parameter is over what the device allows.
    #[error("{what} is {requested}, but {limit_name} of {device} is {limit}")]
    OverLimit {
        /// The parameter.
        what: &'static str,
        /// Its value.
        requested: u64,
        /// Name of the limit as the device reports it.
        limit_name: &'static str,
        /// Device name.
        device: String,
        /// The limit.
        limit: u64,
    },
    /// Memory for buffers could not be had or locked.
    #[error("Cannot {what} {bytes} bytes of buffer (likely: {cause})")]
    Memory {
        /// `map`, `lock`, `fill`.
        what: &'static str,
        /// Size.
        bytes: u64,
        /// Likely cause.
        cause: &'static str,
        /// The errno.
        #[source]
        source: io::Error,
    },
    /// The limit of locked memory does not allow the buffers; found out before anything is registered.
    #[error(
        "Buffers need {needed_bytes} bytes of locked memory, but RLIMIT_MEMLOCK allows {limit_bytes} and {used_bytes} are in use; \
         raise it (`ulimit -l unlimited`, or LimitMEMLOCK= of the service), use a smaller size or depth, or give the process CAP_IPC_LOCK"
    )]
    Memlock {
        /// Bytes to be locked.
        needed_bytes: u64,
        /// The soft limit.
        limit_bytes: u64,
        /// Locked or pinned already by this process.
        used_bytes: u64,
    },
    /// The counters of locked memory could not be read.
    #[error("Cannot read the locked memory of this process from {path}")]
    ReadMemlock {
        /// The file.
        path: &'static str,
        /// The errno.
        #[source]
        source: io::Error,
    },
    /// `ibv_alloc_pd` failed.
    #[error("Cannot allocate a protection domain on {device} (max_pd {max_pd})")]
    AllocPd {
        /// Device name.
        device: String,
        /// The device's limit.
        max_pd: u32,
        /// The errno.
        #[source]
        source: io::Error,
    },
    /// `ibv_reg_mr` failed.
    #[error("Cannot register {bytes} bytes at {address:#x} with access {access} (max_mr_size {max_mr_bytes}; likely: {cause})")]
    RegisterMr {
        /// Length.
        bytes: u64,
        /// Virtual address.
        address: u64,
        /// Access flags in words.
        access: String,
        /// The device's limit.
        max_mr_bytes: u64,
        /// Likely cause.
        cause: &'static str,
        /// The errno.
        #[source]
        source: io::Error,
    },
    /// `ibv_create_comp_channel` failed.
    #[error("Cannot create a completion channel on {device} (likely: out of file descriptors)")]
    CreateChannel {
        /// Device name.
        device: String,
        /// The errno.
        #[source]
        source: io::Error,
    },
    /// `ibv_create_cq` failed.
    #[error(
        "Cannot create a completion queue of {depth} entries on vector {comp_vector} of {device} (max_cqe {max_cqe}, {comp_vectors} vectors; \
         likely: {cause})"
    )]
    CreateCq {
        /// Device name.
        device: String,
        /// Entries asked for.
        depth: u32,
        /// Completion vector asked for.
        comp_vector: u32,
        /// The device's limit.
        max_cqe: u32,
        /// Vectors that the device has.
        comp_vectors: u32,
        /// Likely cause.
        cause: &'static str,
        /// The errno.
        #[source]
        source: io::Error,
    },
    /// Polling, arming or reading an event of a completion queue failed.
    #[error("{operation} failed on a completion queue of {depth} entries")]
    CqCall {
        /// The verb.
        operation: &'static str,
        /// Depth of the queue.
        depth: u32,
        /// The errno.
        #[source]
        source: io::Error,
    },
    /// `ibv_create_qp` failed.
    #[error("Cannot create an RC queue pair with {asked} on {device} ({limits}; likely: {cause})")]
    CreateQp {
        /// Device name.
        device: String,
        /// The capabilities asked for.
        asked: String,
        /// The device's limits.
        limits: String,
        /// Likely cause.
        cause: &'static str,
        /// The errno.
        #[source]
        source: io::Error,
    },
    /// `ibv_modify_qp` failed.
    #[error("Cannot bring QP {qpn:#x} to {to} with {parameters} (likely: {cause})")]
    ModifyQp {
        /// Queue pair number.
        qpn: u32,
        /// The state that was asked for.
        to: &'static str,
        /// What was set.
        parameters: String,
        /// Likely cause.
        cause: &'static str,
        /// The errno.
        #[source]
        source: io::Error,
    },
    /// `ibv_query_qp` failed.
    #[error("Cannot read the state of QP {qpn:#x}")]
    QueryQp {
        /// Queue pair number.
        qpn: u32,
        /// The errno.
        #[source]
        source: io::Error,
    },
    /// The queue pair accepted the change but did not arrive in RTS.
    #[error("QP {qpn:#x} is {state} {waited_ms} ms after it was sent to RTS (likely: the device or the peer reset it meanwhile)")]
    NotReady {
        /// Queue pair number.
        qpn: u32,
        /// The state that was read back.
        state: String,
        /// How long it was waited for.
        waited_ms: u64,
    },
    /// `ibv_post_send` or `ibv_post_recv` failed.
    #[error("{operation} of wr_id {wr_id:#x} failed on QP {qpn:#x} (likely: {cause})")]
    Post {
        /// The verb.
        operation: &'static str,
        /// The work request.
        wr_id: u64,
        /// Queue pair number.
        qpn: u32,
        /// Likely cause.
        cause: &'static str,
        /// The errno.
        #[source]
        source: io::Error,
    },
    /// A range outside of a buffer or region; a defect of the caller that is refused before the device sees it.
    #[error("Bytes {offset} to {offset}+{len} lie outside of a region of {region_bytes} bytes")]
    Range {
        /// Offset in the region.
        offset: u64,
        /// Length.
        len: u64,
        /// Size of the region.
        region_bytes: u64,
    },
}

/// The likely cause of an errno from a call that creates an object.
pub(super) fn create_cause(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EINVAL) => "a parameter is over a limit of the device",
        Some(libc::ENOMEM) => "no memory, or RLIMIT_MEMLOCK is too small for the queues",
        Some(libc::EPERM | libc::EACCES) => "no permission on /dev/infiniband/uverbs*",
        Some(libc::ENOSPC) => "the device has no more objects of this kind",
        Some(libc::ENODEV | libc::EIO) => "the device is gone or in a fatal state",
        Some(libc::EOPNOTSUPP) => "this device cannot do it",
        _ => "see the kernel log",
    }
}

/// The likely cause of an errno from a post.
pub(super) fn post_cause(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::ENOMEM) => "the queue is full: completions are not being reaped, or its depth is too small",
        Some(libc::EINVAL) => {
            "the queue pair is not in a state that takes this work request, or the request has too many SGEs or inline bytes"
        }
        Some(libc::EFAULT) => "an invalid pointer",
        Some(libc::EOPNOTSUPP) => "the device does not have this operation",
        _ => "see the kernel log",
    }
}

/// The likely cause of an errno from a change of state.
pub(super) fn modify_cause(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EINVAL) => "a value out of the device's range, or a GID index that the port does not have",
        Some(libc::ETIMEDOUT | libc::EHOSTUNREACH | libc::ENETUNREACH) => {
            "the peer's GID cannot be resolved: no route, no neighbour, or the two GIDs are not in one network"
        }
        Some(libc::ENODEV | libc::EIO) => "the device is gone or in a fatal state",
        _ => "see the kernel log",
    }
}
