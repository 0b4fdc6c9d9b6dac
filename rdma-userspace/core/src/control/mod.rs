//! The control plane: how client and server agree over TCP. It carries no data while a round is measured.
//!
//! [`protocol`] holds what both ends agree on, [`frame`] and [`connection`] move messages, [`message`] says what they are. [`token`] and
//! [`admission`] decide who is served, [`limits`] what a client may ask for. [`server`] serves one client after another;
//! [`server_recorder`] keeps what the server's side of a run recorded, [`endpoint_facts`] says what its manifest holds
//! of the endpoint, and [`transfer`] packs its rounds into messages.

pub mod admission;
pub mod connection;
pub mod endpoint_facts;
mod error;
pub mod frame;
pub mod limits;
pub mod message;
pub mod protocol;
pub mod server;
pub mod server_recorder;
pub mod token;
pub mod transfer;

pub use error::ControlError;
pub use protocol::DEFAULT_PORT;
