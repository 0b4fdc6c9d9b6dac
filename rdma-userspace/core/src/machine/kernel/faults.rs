//! Faults of drivers that make an operation dangerous, told by the functions that a driver has.
use super::symbols::Symbols;
use crate::machine::root::Root;
use std::io::BufReader;

/// Driver of soft-RoCE.
const RXE: &str = "rdma_rxe";
/// A function of every `rdma_rxe` whose packets are handled by tasklets.
const TASKLET_RXE: &str = "rxe_requester";
/// The function through which later versions send every packet; 5.10's has none.
const RXE_TRANSMIT: &str = "rxe_xmit_packet";

/// Why atomics must not be tried with that driver on the kernel below `root`; `None` where nothing speaks against them, or nothing is told.
///
/// `rdma_rxe` of 5.10: perftest's `ib_atomic_lat` over loopback, with no probe in the kernel, ended four of four guests in its first round
/// (`rxe_completer+0x3e7`, NULL pointer), while 317 repeated READs and, on 6.1, 1,667 repeated atomics did no harm
/// (docs/found-the-hard-way.md).
pub fn atomics(root: impl Into<Root>, driver: &str) -> Option<&'static str> {
    if driver != RXE {
        return None;
    }
    let file = std::fs::File::open(root.into().path("proc/kallsyms")).ok()?;
    let symbols = Symbols::read(BufReader::new(file), |name| name == TASKLET_RXE || name == RXE_TRANSMIT).ok()?;
    (symbols.has(TASKLET_RXE) && !symbols.has(RXE_TRANSMIT)).then_some(
        "on soft-RoCE they can crash this kernel, and over a network device they get no answer (seen on 5.10; this rdma_rxe has no \
         rxe_xmit_packet either). Use send, write or read here, or a newer kernel",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::fixture::Tree;

    fn of(driver: &str, kallsyms: &str) -> Option<&'static str> {
        atomics(Tree::new().file("proc/kallsyms", kallsyms).root(), driver)
    }

    #[test]
    fn atomics_are_refused_where_the_driver_keeps_their_answers() {
        let old = "0000000000000000 t rxe_requester\t[rdma_rxe]\n0000000000000000 t rxe_send\t[rdma_rxe]\n";
        let new = "0000000000000000 t rxe_requester\t[rdma_rxe]\n0000000000000000 t rxe_xmit_packet\t[rdma_rxe]\n";
        assert!(of("rdma_rxe", old).is_some_and(|why| why.contains("crash") && why.contains("rxe_xmit_packet")));
        assert_eq!(of("rdma_rxe", new), None);
        // Another driver; rxe without the functions by which it is told.
        assert_eq!(of("mlx5_core", old), None);
        assert_eq!(of("rdma_rxe", "0000000000000000 T _stext\n"), None);
        assert_eq!(atomics("/nowhere", "rdma_rxe"), None);
    }
}
