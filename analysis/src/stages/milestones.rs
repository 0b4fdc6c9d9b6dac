//! The milestones of a sample, in path order: the events that its chain is made of.

macro_rules! points {
    ($($(#[doc = $doc:literal])* $name:ident = $text:literal,)*) => {
        /// A milestone of a sample, in path order.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Point { $($(#[doc = $doc])* $name,)* }

        impl Point {
            /// All milestones in path order.
            pub const ALL: &'static [Point] = &[$(Point::$name,)*];
            /// Short name: the event of the stage model and what it is.
            pub const fn name(self) -> &'static str { match self { $(Point::$name => $text,)* } }
            /// What it is, in words.
            pub const fn meaning(self) -> &'static str { match self { $(Point::$name => concat!($($doc),*),)* } }
        }
    };
}

points! {
    /// Just before `ibv_post_send`.
    PostBegin = "U1 begin",
    /// `ibv_post_send` returned (a milestone only where nothing else is known of the post).
    PostEnd = "U1 end",
    /// rxe's post function is entered.
    PostEnter = "R1",
    /// The requester's work item is queued.
    ReqQueued = "Rq requester",
    /// The requester's work item starts.
    ReqWork = "work start requester",
    /// The requester starts for this queue pair.
    ReqStart = "R5 requester",
    /// The request's last packet goes to the network layer.
    Xmit = "R2",
    /// The request's last packet goes again, after a loss.
    Rexmit = "R2 again",
    /// The packet leaves through the network device.
    NetTx = "R3 tx",
    /// The interrupt of the network device that received the packet starts.
    Irq = "K1",
    /// The thread that handles that interrupt is about to be woken.
    IrqWaking = "irq thread waking",
    /// The CPU switches to that thread.
    IrqThread = "irq thread in",
    /// The thread to which the receive softirq was put off (or that polls the device) is about to be woken.
    NetSoftirqWaking = "NET_RX thread waking",
    /// The CPU switches to that thread.
    NetSoftirqThread = "NET_RX thread in",
    /// The receive softirq starts.
    NetSoftirq = "K4 NET_RX",
    /// The packet enters from the network device.
    NetRx = "R3 rx",
    /// rxe has the packet that ends the sample.
    Rcv = "R4",
    /// The task that handles it is queued.
    RespQueued = "Rq",
    /// The thread to which that task's tasklet was put off is about to be woken.
    RespSoftirqWaking = "task thread waking",
    /// The CPU switches to that thread.
    RespSoftirqThread = "task thread in",
    /// The work item or tasklet of that task starts.
    RespWork = "work start",
    /// The task starts for this queue pair.
    RespStart = "R5",
    /// The device's completion timestamp.
    HwCqe = "H1",
    /// rxe writes the CQE; it becomes visible shortly after.
    CqePosted = "R6",
    /// The post returned although the CQE was there already.
    PostReturn = "U1 end, after the CQE",
    /// The completion interrupt of the RDMA device starts.
    CompIrq = "K1 completion",
    /// The thread that handles that interrupt is about to be woken.
    CompIrqWaking = "completion irq thread waking",
    /// The CPU switches to that thread (or the driver's handler begins in it, where its scheduling is not recorded).
    CompIrqThread = "completion irq thread in",
    /// The driver puts the CQ on its bottom half, or queues its work item.
    DriverEnqueue = "K3",
    /// The thread to which the bottom half was put off is about to be woken.
    SoftirqWaking = "softirq thread waking",
    /// The CPU switches to that thread.
    SoftirqThread = "softirq thread in",
    /// The bottom half that leads to the handler starts.
    BottomHalf = "K4",
    /// The completion handler is entered.
    Handler = "K5",
    /// The waiting thread is about to be woken.
    Waking = "K6",
    /// The thread's CPU leaves its idle state, before the thread became runnable.
    IdleExitEarly = "K0 before K7",
    /// The thread is runnable.
    Wakeup = "K7",
    /// The thread's CPU leaves its idle state, after the thread became runnable.
    IdleExitLate = "K0 after K7",
    /// The CPU switches to the thread.
    SwitchIn = "K8",
    /// The kernel's read of the event returns.
    ReadReturn = "K9",
    /// The blocking read returned in user space.
    WaitEnd = "U3 end",
    /// The poll returned the end CQE (or the awaited byte was seen).
    Done = "U4",
}
