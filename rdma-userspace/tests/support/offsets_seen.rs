//! Offsets that were seen on known kernels (amd64, Debian), written down from their BTF and, for 5.10, from observation and the
//! code of its modules. A kernel is found by the beginning of its release, which only tests may do.
//! Within 6.12 `mlx5_core_cq.irqn` moved: 76 in 6.12.95, 68 in a later stable release. That is why offsets are read, not remembered.

/// Release begins with, and "rt" in it or not; then offsets by the name of the object's global.
type Kernel = (&'static str, bool, &'static [(&'static str, u32)]);

/// The table.
pub const SEEN: &[Kernel] = &[
    (
        "5.10.",
        false,
        &[
            ("OFF_TASK_PID", 2232),
            ("OFF_TASK_TGID", 2236),
            ("OFF_FILE_PRIVATE", 200),
            ("OFF_CQ_UOBJECT", 8),
            ("OFF_CQ_TASK", 192),
            ("OFF_CQ_RES_ID", 216),
            ("OFF_UOBJECT_HANDLE", 0),
            ("OFF_EV_QUEUE", 96),
            ("OFF_IB_QP_NUM", 176),
            ("OFF_RXE_QP_IBQP", 64),
            ("OFF_MLX5_CQN", 0),
            ("OFF_MLX5_IRQN", 76),
            ("OFF_MLX4_CQN", 52),
            ("OFF_MLX4_IRQ", 28),
            ("OFF_WORK_FUNC", 24),
        ],
    ),
    (
        "6.1.",
        false,
        &[("OFF_TASK_PID", 2416), ("OFF_TASK_TGID", 2420), ("OFF_FILE_PRIVATE", 200), ("OFF_IB_QP_NUM", 176), ("OFF_MLX5_IRQN", 76)],
    ),
    (
        "6.12.",
        false,
        &[("OFF_TASK_PID", 2432), ("OFF_TASK_TGID", 2436), ("OFF_FILE_PRIVATE", 32), ("OFF_IB_QP_NUM", 216), ("OFF_MLX5_IRQN", 76)],
    ),
    (
        "6.12.",
        true,
        &[("OFF_TASK_PID", 2472), ("OFF_TASK_TGID", 2476), ("OFF_FILE_PRIVATE", 64), ("OFF_IB_QP_NUM", 248), ("OFF_MLX5_IRQN", 76)],
    ),
    (
        "7.3.",
        false,
        &[("OFF_TASK_PID", 2872), ("OFF_TASK_TGID", 2876), ("OFF_FILE_PRIVATE", 24), ("OFF_IB_QP_NUM", 232), ("OFF_MLX5_IRQN", 68)],
    ),
];

/// The same on every kernel with these modules.
pub const EVERYWHERE: &[(&str, u32)] = &[
    ("OFF_CQ_UOBJECT", 8),
    ("OFF_CQ_TASK", 192),
    ("OFF_CQ_RES_ID", 216),
    ("OFF_UOBJECT_HANDLE", 0),
    ("OFF_EV_QUEUE", 96),
    ("OFF_WORK_FUNC", 24),
    ("OFF_PKT_WQE", 16),
    ("OFF_PKT_PSN", 36),
    ("OFF_PKT_OPCODE", 45),
    ("OFF_WQE_WR_ID", 0),
    ("OFF_RXE_CQ_IBCQ", 0),
    ("OFF_MLX5_CQN", 0),
    ("OFF_MLX4_CQN", 52),
    ("OFF_MLX4_IRQ", 28),
];

/// What is known of the kernel with this release.
pub fn of(release: &str) -> Vec<(&'static str, u32)> {
    let is_rt = release.contains("-rt");
    let own = SEEN.iter().filter(|(start, rt, _)| release.starts_with(start) && *rt == is_rt).flat_map(|(.., offsets)| offsets.iter());
    own.chain(EVERYWHERE).copied().collect()
}
