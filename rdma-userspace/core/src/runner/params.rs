//! What a run does: operation, modes, size, queues, timers. The client sets it; the server checks it before it allocates anything.
use super::error::RunnerError;
use super::ops;
use capture::{Mode, Operation, Side, Transport};
use serde::{Deserialize, Serialize};

/// Longest message, bytes.
pub const MAX_SIZE_BYTES: u32 = 8 << 20;
/// Deepest queue.
const MAX_QUEUE_DEPTH: u32 = 4096;
/// Most memory for the send or the receive area of one endpoint, bytes.
const MAX_AREA_BYTES: u64 = 256 << 20;
/// Entries of a CQ beyond the WRs that can be outstanding.
const CQ_MARGIN: u32 = 16;
/// Most samples that one round can record (their memory is taken before the round).
pub const MAX_SAMPLES_PER_ROUND: u64 = 4_000_000;

/// Parameters of a run. Both ends use the same ones, except for what is marked as this side's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Params {
    /// The operation.
    pub op: Operation,
    /// Transport of the queue pairs.
    #[serde(default)]
    pub transport: Transport,
    /// Completion mode of the client.
    pub mode: Mode,
    /// Completion mode of the server (ping-pongs only).
    pub server_mode: Mode,
    /// Message size in bytes; 8 for atomics.
    pub size_bytes: u32,
    /// Outstanding operations; 1 is what there is.
    pub depth: u32,
    /// Send queue: WRs.
    pub send_depth: u32,
    /// Receive queue: WRs, kept full.
    pub recv_depth: u32,
    /// Entries of each CQ; `None`: send + receive + a margin.
    pub cq_depth: Option<u32>,
    /// Bytes that may be sent inline; 0: none. Used when the message is not longer.
    pub inline_bytes: u32,
    /// This side's own: port of the device, from 1.
    pub port: u8,
    /// This side's own: index of the GID that was agreed.
    pub gid_index: u32,
    /// This side's own: completion vector.
    pub comp_vector: u32,
    /// Path MTU in bytes; `None`: the smaller of both active MTUs.
    pub mtu_bytes: Option<u32>,
    /// Acknowledge timeout code: 4.096 µs · 2^timeout.
    pub timeout: u8,
    /// Retries after a timeout, 0 to 7. On rxe 7 means for ever, so that a dead peer would never be noticed: the default is 6.
    pub retry: u8,
    /// Retries without a receive at the peer; 7 is for ever.
    pub rnr_retry: u8,
    /// RNR timer code.
    pub rnr_timer: u8,
    /// Number of the worker; part of every wr_id.
    pub worker: u16,
}

impl Params {
    /// Defaults for an operation in a mode, the same mode on both ends.
    pub fn new(op: Operation, mode: Mode, size_bytes: u32) -> Self {
        Self {
            op,
            transport: Transport::default(),
            mode,
            server_mode: mode,
            size_bytes: ops::description(op).ok().and_then(|it| it.size).map_or(size_bytes, |only| only.bytes),
            depth: 1,
            send_depth: 16,
            recv_depth: 16,
            cq_depth: None,
            inline_bytes: 0,
            port: 1,
            gid_index: 0,
            comp_vector: 0,
            mtu_bytes: None,
            timeout: 16,
            retry: 6,
            rnr_retry: 7,
            rnr_timer: 12,
            worker: 0,
        }
    }

    /// Mode of one side.
    pub fn mode_of(&self, side: Side) -> Mode {
        match side {
            Side::Client => self.mode,
            Side::Server => self.server_mode,
        }
    }

    /// Entries that each CQ gets.
    pub fn cq_entries(&self) -> u32 {
        self.cq_depth.unwrap_or(self.send_depth + self.recv_depth + CQ_MARGIN)
    }

    /// Slots of the send and of the receive area; none for what is no operation of ours.
    pub(crate) fn slots(&self) -> (u32, u32) {
        ops::description(self.op).map_or((0, 0), |it| (it.send_slots.count(self.send_depth), it.recv_slots.count(self.recv_depth)))
    }

    /// Bytes from one slot to the next: whole cache lines.
    pub(crate) fn stride_bytes(&self) -> usize {
        (self.size_bytes as usize).next_multiple_of(64)
    }

    /// Memory that one end locks for it, in bytes: the send area and the receive area.
    pub fn memory_bytes(&self) -> u64 {
        let (send_slots, recv_slots) = self.slots();
        self.stride_bytes() as u64 * (u64::from(send_slots) + u64::from(recv_slots))
    }

    /// Refuses what cannot be, by name, before anything is created. Limits of the device are checked where objects are made.
    pub fn check(&self) -> Result<(), RunnerError> {
        let refuse = |what: &'static str, why: String| Err(RunnerError::Refused { what: what.into(), why });
        let description = ops::description(self.op)?;
        check_transport(self.transport, self.op)?;
        let sleeping = [self.mode, self.server_mode].into_iter().find(|mode| mode.may_sleep());
        if let Some(mode) = sleeping.filter(|_| !self.op.has_cqe()) {
            let what = format!("{} in mode {mode}", self.op).into();
            let why = "no CQE marks the pong, which is seen by watching memory: there is no completion event to wait for; use poll, or the operation send";
            return Err(RunnerError::Refused { what, why: why.into() });
        }
        if let Some(only) = description.size.filter(|only| only.bytes != self.size_bytes) {
            let what = format!("The size of {}", only.of).into();
            return Err(RunnerError::Refused { what, why: format!("it is {} bytes, not {}", only.bytes, self.size_bytes) });
        }
        if self.size_bytes == 0 || self.size_bytes > MAX_SIZE_BYTES {
            return refuse("The size", format!("{} bytes; it must be 1 to {MAX_SIZE_BYTES}", self.size_bytes));
        }
        if self.depth != 1 {
            return refuse("The depth", format!("{} operations at once; this version measures one at a time", self.depth));
        }
        for (what, depth) in [("The send queue depth", self.send_depth), ("The receive queue depth", self.recv_depth)] {
            if !(2..=MAX_QUEUE_DEPTH).contains(&depth) {
                return refuse(what, format!("{depth}; it must be 2 to {MAX_QUEUE_DEPTH}"));
            }
        }
        let least = self.send_depth.max(self.recv_depth);
        if self.cq_entries() < least || self.cq_entries() > 4 * MAX_QUEUE_DEPTH {
            let why = format!(
                "{} entries; each CQ must hold every outstanding WR of its queue, so at least {least}, and at most {}",
                self.cq_entries(),
                4 * MAX_QUEUE_DEPTH
            );
            return refuse("The CQ depth", why);
        }
        let (send_slots, recv_slots) = self.slots();
        let area = self.stride_bytes() as u64 * u64::from(send_slots.max(recv_slots));
        if area > MAX_AREA_BYTES {
            return refuse("The size with this queue depth", format!("{area} bytes of buffer per direction; at most {MAX_AREA_BYTES}"));
        }
        for (what, value, max) in [
            ("The timeout", self.timeout, 31),
            ("The RNR timer", self.rnr_timer, 31),
            ("The retry count", self.retry, 7),
            ("The RNR retry count", self.rnr_retry, 7),
        ] {
            if value > max {
                return refuse(what, format!("{value}; at most {max}"));
            }
        }
        if self.mtu_bytes.is_some_and(|mtu| crate::verbs::mtu_code_from_bytes(mtu).is_none()) {
            return refuse("The MTU", format!("{} bytes; it is one of 256, 512, 1024, 2048, 4096", self.mtu_bytes.unwrap_or(0)));
        }
        if self.gid_index > 255 {
            return refuse("The GID index", format!("{}; at most 255", self.gid_index));
        }
        Ok(())
    }
}

/// Refuses an operation that the transport does not carry.
fn check_transport(transport: Transport, op: Operation) -> Result<(), RunnerError> {
    if transport.carries(op) {
        return Ok(());
    }
    let carried: Vec<_> = transport.operations().iter().map(|op| op.name()).collect();
    let why = format!("queue pairs of this transport carry {}", carried.join(", "));
    Err(RunnerError::Refused { what: format!("{op} over {transport}").into(), why })
}

#[cfg(test)]
mod tests {
    use super::*;
    use capture::named::Named;

    #[test]
    fn every_supported_combination_passes() {
        for &op in Operation::MEASURED {
            for &mode in Mode::ALL {
                let refused = Params::new(op, mode, 64).check().is_err();
                assert_eq!(refused, !op.has_cqe() && mode.may_sleep(), "{op} {mode}");
            }
        }
    }

    #[test]
    fn limits_are_refused_by_name() {
        let base = Params::new(Operation::Send, Mode::Poll, 64);
        let refused = |change: &dyn Fn(&mut Params)| {
            let mut params = base.clone();
            change(&mut params);
            params.check().unwrap_err().to_string()
        };
        assert!(refused(&|p| p.size_bytes = 0).contains("The size"));
        assert!(refused(&|p| p.size_bytes = MAX_SIZE_BYTES + 1).contains("8388608"));
        assert!(refused(&|p| p.depth = 2).contains("The depth"));
        assert!(refused(&|p| p.send_depth = 1).contains("send queue"));
        assert!(refused(&|p| p.recv_depth = u32::MAX).contains("receive queue"));
        assert!(refused(&|p| p.cq_depth = Some(15)).contains("at least 16"));
        assert!(refused(&|p| (p.size_bytes, p.recv_depth) = (MAX_SIZE_BYTES, 4096)).contains("bytes of buffer"));
        assert!(refused(&|p| p.retry = 8).contains("retry"));
        assert!(refused(&|p| p.mtu_bytes = Some(1500)).contains("MTU"));
        assert!(refused(&|p| p.gid_index = 256).contains("GID"));
        let mut atomic = Params::new(Operation::FetchAdd, Mode::Poll, 64);
        assert_eq!(atomic.size_bytes, 8);
        atomic.size_bytes = 16;
        assert!(atomic.check().unwrap_err().to_string().contains("atomic"));
        let pp = Params::new(Operation::WritePp, Mode::Event, 64).check().unwrap_err().to_string();
        assert!(pp.contains("write-pp in mode event") && pp.contains("no CQE"), "{pp}");
    }

    #[test]
    fn parameters_travel_as_json() {
        let params = Params::new(Operation::CmpSwap, Mode::Event, 8);
        let text = serde_json::to_string(&params).unwrap();
        assert!(text.contains("\"cmp-swap\"") && text.contains("\"event\"") && text.contains("\"RC\""), "{text}");
        assert_eq!(serde_json::from_str::<Params>(&text).unwrap(), params);
        // A peer that does not name the transport means RC.
        let without = text.replace("\"transport\":\"RC\",", "");
        assert_ne!(without, text);
        assert_eq!(serde_json::from_str::<Params>(&without).unwrap(), params);
    }

    #[test]
    fn what_a_transport_does_not_carry_is_refused_by_name() {
        let refused = check_transport(Transport::Rc, Operation::Foreign).unwrap_err().to_string();
        assert!(refused.contains("trace over RC") && refused.contains("write-pp"), "{refused}");
        for &op in Operation::MEASURED {
            assert_eq!(check_transport(Transport::Rc, op).is_ok(), Transport::Rc.carries(op), "{op}");
        }
        let foreign = Params::new(Operation::Foreign, Mode::Poll, 64).check().unwrap_err().to_string();
        assert!(foreign.contains("The operation trace"), "{foreign}");
    }
}
