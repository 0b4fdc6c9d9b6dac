//! Commands about the function as a whole.

use super::super::layout::{issi, special_contexts};
use super::{Answer, Function, Status, put_context};
use crate::bits::{be32, put};
use crate::engine::mkey::RESERVED_LKEY;

/// The board's name, 16 bytes: what a capture says it ran on.
pub const BOARD_ID: &[u8; 16] = b"RDMASCOPE_EMU\0\0\0";
/// Where it lies in the answer of QUERY_ADAPTER (`vsd_contd_psid`).
const BOARD_ID_AT: usize = 16 + 240;
/// The vendor's number with the IEEE, and where it lies there (`ieee_vendor_id`).
const IEEE_VENDOR: u32 = 0x02c9;
const IEEE_VENDOR_AT: usize = 16 + 24;

pub fn query_capabilities(function: &mut Function, input: &[u8], output: &mut [u8]) -> Answer {
    let number = be32(input, 4) as u16 >> 1;
    match function.capabilities.group(number.into()) {
        Some(group) => {
            put_context(output, 16, group);
            Ok(format!("group {number}"))
        }
        None => Ok(format!("group {number}: nothing")),
    }
}

pub fn set_capabilities(function: &mut Function, input: &[u8], _: &mut [u8]) -> Answer {
    let number = be32(input, 4) as u16 >> 1;
    function.capabilities.choose(number.into(), &input[16..]);
    Ok(format!("group {number}"))
}

pub fn query_adapter(_: &mut Function, _: &[u8], output: &mut [u8]) -> Answer {
    put(output, BOARD_ID_AT, BOARD_ID);
    put(output, IEEE_VENDOR_AT, &IEEE_VENDOR.to_be_bytes());
    Ok(String::new())
}

/// Version 1 of the interface (bit 1), which the driver needs.
pub fn query_issi(_: &mut Function, _: &[u8], output: &mut [u8]) -> Answer {
    issi::SUPPORTED_ISSI_DW0.set(output, 1 << 1);
    Ok(String::new())
}

pub fn query_special_contexts(_: &mut Function, _: &[u8], output: &mut [u8]) -> Answer {
    if output.len() < 32 {
        return Err(Status::BadParameter);
    }
    special_contexts::RESD_LKEY.set(output, RESERVED_LKEY.into());
    Ok(String::new())
}
