//! Packets of the RoCE port at the network device (level `full`).

use aya_ebpf::macros::raw_tracepoint;
use aya_ebpf::programs::RawTracePointContext;
use ebpf_probes::config::NONE;
use ebpf_probes::{Kind, NetPacket, Program};

use super::globals::{IFINDEX, OFF_DEV_IFINDEX, OFF_SKB_DEV, known};
use super::hit::{Hit, now_ns};
use super::read;

const RECEIVED: u32 = 0;
const SENT: u32 = 1;

/// `netif_receive_skb(struct sk_buff *skb)`.
#[raw_tracepoint(tracepoint = "netif_receive_skb")]
pub fn net_rx(ctx: RawTracePointContext) -> i32 {
    let skb = ctx.arg::<u64>(0);
    let device = known(&OFF_SKB_DEV).and_then(|offset| read(skb, offset)).unwrap_or(0);
    packet(Program::NetRx, skb, device, RECEIVED)
}

/// `net_dev_start_xmit(const struct sk_buff *skb, const struct net_device *dev)`.
#[raw_tracepoint(tracepoint = "net_dev_start_xmit")]
pub fn net_tx(ctx: RawTracePointContext) -> i32 {
    packet(Program::NetTx, ctx.arg(0), ctx.arg(1), SENT)
}

#[inline(always)]
fn packet(program: Program, skb: u64, device: u64, direction: u32) -> i32 {
    let ts_ns = now_ns();
    let Some(hit) = Hit::of(program) else { return 0 };
    let ifindex = known(&OFF_DEV_IFINDEX).and_then(|offset| read(device, offset)).unwrap_or(NONE);
    let wanted = IFINDEX.load();
    if wanted == 0 || wanted == ifindex {
        hit.emit_at(ts_ns, Kind::NetPacket, NetPacket { skb, direction, ifindex });
    }
    0
}
