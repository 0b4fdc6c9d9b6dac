//! What every completion status means and what usually causes it.

/// One completion status (`enum ibv_wc_status`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusInfo {
    /// Its value.
    pub code: u32,
    /// Its name without the prefix `IBV_WC_`.
    pub name: &'static str,
    /// What it says.
    pub meaning: &'static str,
    /// What usually leads to it.
    pub causes: &'static str,
}

const fn row(code: u32, name: &'static str, meaning: &'static str, causes: &'static str) -> StatusInfo {
    StatusInfo { code, name, meaning, causes }
}

/// Values and names: `infiniband/verbs.h` of rdma-core; meanings: the InfiniBand specification's completion return statuses.
static TABLE: [StatusInfo; 24] = [
    row(0, "SUCCESS", "the operation completed", "nothing is wrong"),
    row(1, "LOC_LEN_ERR", "a local length does not fit", "a message longer than the posted receive, or longer than the port's maximum"),
    row(
        2,
        "LOC_QP_OP_ERR",
        "the local queue pair could not execute the request",
        "a malformed WR, or an operation that this QP type lacks",
    ),
    row(3, "LOC_EEC_OP_ERR", "local end-to-end context error", "reliable datagram only; not to be seen with RC"),
    row(
        4,
        "LOC_PROT_ERR",
        "a local SGE is not covered by its memory region",
        "a wrong lkey, a range outside of the region, a region already deregistered",
    ),
    row(
        5,
        "WR_FLUSH_ERR",
        "the request was flushed, not executed",
        "the queue pair is in ERR: an earlier completion on either queue tells why, or the connection was torn down",
    ),
    row(6, "MW_BIND_ERR", "a memory window could not be bound", "missing bind permission on the region"),
    row(7, "BAD_RESP_ERR", "the responder sent an unexpected packet", "a peer with other settings or a defect in its stack"),
    row(
        8,
        "LOC_ACCESS_ERR",
        "the local region does not allow the access",
        "an incoming write with immediate to memory that is not remotely writable",
    ),
    row(
        9,
        "REM_INV_REQ_ERR",
        "the peer found the request invalid",
        "the peer's receive buffer is too small, an atomic address is not a multiple of 8, or the operation is not enabled on its QP",
    ),
    row(
        10,
        "REM_ACCESS_ERR",
        "the peer refused access to its memory",
        "a wrong rkey or address, a range outside of its region, or a region without that remote right",
    ),
    row(11, "REM_OP_ERR", "the peer could not complete the operation", "its queue pair went into ERR, or its receive was malformed"),
    row(
        12,
        "RETRY_EXC_ERR",
        "the peer did not acknowledge within all retries",
        "the peer is gone or its queue pair is not in RTR/RTS, a wrong QPN or GID, an MTU that the path does not carry, packets lost, a timeout too short for a loaded or emulated machine",
    ),
    row(
        13,
        "RNR_RETRY_EXC_ERR",
        "the peer had no receive posted for too long",
        "the peer's thread is stopped or slow, too few receives, an RNR timer or retry count too small",
    ),
    row(14, "LOC_RDD_VIOL_ERR", "local reliable datagram domain violation", "reliable datagram only; not to be seen with RC"),
    row(15, "REM_INV_RD_REQ_ERR", "the peer found a reliable datagram request invalid", "reliable datagram only; not to be seen with RC"),
    row(16, "REM_ABORT_ERR", "the peer aborted the operation", "its queue pair was destroyed or moved to ERR"),
    row(17, "INV_EECN_ERR", "invalid end-to-end context number", "reliable datagram only; not to be seen with RC"),
    row(18, "INV_EEC_STATE_ERR", "invalid end-to-end context state", "reliable datagram only; not to be seen with RC"),
    row(19, "FATAL_ERR", "the device is in a fatal state", "firmware or hardware failure, or a driver reset: see the kernel log"),
    row(20, "RESP_TIMEOUT_ERR", "the responder timed out", "the peer stopped in the middle of an operation"),
    row(21, "GENERAL_ERR", "an error that fits no other status", "see vendor_err and the kernel log"),
    row(22, "TM_ERR", "a tag matching operation failed", "tag matching only"),
    row(23, "TM_RNDV_INCOMPLETE", "a tag matching rendezvous is incomplete", "tag matching only"),
];

/// All statuses, by value.
pub fn status_table() -> &'static [StatusInfo] {
    &TABLE
}

/// The row of a status; a value that this table does not have gets a row that says so.
pub fn status_info(code: u32) -> StatusInfo {
    TABLE.get(code as usize).copied().unwrap_or(StatusInfo {
        code,
        name: "UNKNOWN",
        meaning: "a status that this version of rdmascope does not know",
        causes: "a newer libibverbs or driver; see vendor_err",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_of_the_header_has_its_row() {
        // ibv_wc_status of rdma-core runs from 0 to TM_RNDV_INCOMPLETE without a gap.
        for (index, row) in status_table().iter().enumerate() {
            assert_eq!(row.code as usize, index);
            assert!(!row.name.is_empty() && !row.meaning.is_empty() && !row.causes.is_empty());
        }
        let names: std::collections::HashSet<_> = status_table().iter().map(|row| row.name).collect();
        assert_eq!(names.len(), rdma_status_last() as usize + 1);
        assert_eq!(status_info(12).name, "RETRY_EXC_ERR");
        assert_eq!((status_info(99).code, status_info(99).name), (99, "UNKNOWN"));
    }

    fn rdma_status_last() -> u32 {
        crate::verbs::ffi::LAST_WC_STATUS
    }
}
