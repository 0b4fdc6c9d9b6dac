//! The RDMA device and its port on one side.
use crate::shape::CompletionShape;
use serde::{Deserialize, Serialize};

/// How the board ids begin of the cards that rdmascope's own emulator makes (`xtask/mlx5-card`); no vendor's board is called so.
pub const EMULATED_BOARD: &str = "RDMASCOPE_EMU";

/// Is a board id that of rdmascope's own emulated card?
pub fn is_emulated_board(board: &str) -> bool {
    board.starts_with(EMULATED_BOARD)
}

/// The RDMA device and the port that was used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Device {
    /// Device name, such as `rxe0`.
    pub name: String,
    /// Kernel driver, such as `rdma_rxe` or `mlx5_core`.
    pub driver: String,
    /// How the driver comes from its completion interrupt to the handler, as the planner of the probes knows it; `None`: not known, or a
    /// capture of schema version 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_shape: Option<CompletionShape>,
    /// Firmware version as the device tells it.
    pub firmware: String,
    /// Board id as the device tells it (`board_id` in sysfs), such as `MT_0000000008`; `None`: it tells none, or a capture from before
    /// it was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub board: Option<String>,
    /// Port number, from 1.
    pub port: u8,
    /// Network device of the chosen GID.
    pub netdev: Option<String>,
    /// Index of the GID that was agreed.
    pub gid_index: u32,
    /// The GID.
    pub gid: String,
    /// Its type, such as `RoCE v2`.
    pub gid_type: String,
    /// Why this GID was chosen.
    pub gid_reason: String,
    /// Active path MTU in bytes.
    pub mtu_bytes: u32,
    /// Link rate in Gb/s where known.
    pub rate_gbps: Option<f64>,
}

impl Device {
    /// Is it soft-RoCE, whose own functions can be probed? They show the wr_id of a completion to the kernel.
    pub fn is_soft_roce(&self) -> bool {
        matches!(self.driver.as_str(), "rdma_rxe" | "rxe")
    }

    /// Is it rdmascope's own emulated card? Its driver is real, its times are not those of any hardware.
    pub fn is_emulated(&self) -> bool {
        self.board.as_deref().is_some_and(is_emulated_board)
    }

    /// The completion shape: as recorded, else by the table for older captures; `None`: not known.
    pub fn shape(&self) -> Option<CompletionShape> {
        self.completion_shape.or_else(|| CompletionShape::of_older_capture(&self.driver))
    }
}
