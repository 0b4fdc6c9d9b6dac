//! The command queue: slots in the guest's memory, mailboxes for what does not fit into a slot, and the table of commands.

mod ethernet;
mod hca;
mod objects;
mod port;
mod queue_pair;
mod table;

use super::Function;
use crate::bits::{be32, be64, put};
use crate::oracle::Entry;
pub use table::find;

/// Slots of the queue, log 2.
pub const LOG_SLOTS: u32 = 5;
/// Bytes between slots, log 2.
pub const LOG_STRIDE: u32 = 6;
/// Bytes of a mailbox that hold data; the address of the next one is after them.
const MAILBOX_DATA: usize = 512;
const MAILBOX_NEXT: u64 = 0x230;
/// The longest input that is read: more than any command of the driver has.
const LONGEST: usize = 1 << 20;

/// Why a command failed (`MLX5_CMD_STAT_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// There is no such command.
    BadOperation = 0x02,
    /// A parameter is not one of this card.
    BadParameter = 0x03,
    /// The object is not there.
    BadResource = 0x05,
    /// There is no room for more.
    NoResources = 0x0f,
}

/// What a command did, for the log.
pub type Answer = Result<String, Status>;

/// A command of the table.
#[derive(Debug, Clone, Copy)]
pub struct Command {
    /// Its opcode.
    pub opcode: u16,
    /// Its name, as the driver's header has it.
    pub name: &'static str,
    /// Does it. The input begins with the opcode, the output with the status; both have at least 16 bytes.
    pub run: fn(&mut Function, &[u8], &mut [u8]) -> Answer,
}

/// Executes the command in a slot and writes its answer.
pub fn execute(function: &mut Function, slot: u32) {
    let at = function.command_queue + (u64::from(slot) << LOG_STRIDE);
    let Ok(entry) = function.engine.memory.bytes(at, 64) else {
        return function.trouble(format!("command slot {slot} is outside of the guest's memory"));
    };
    let input_length = (be32(&entry, 4) as usize).min(LONGEST);
    let output_length = (be32(&entry, 56) as usize).min(LONGEST);
    let mut input = entry[16..32].to_vec();
    let mut next = be64(&entry, 8);
    while input.len() < input_length && next != 0 {
        let Ok(mailbox) = function.engine.memory.bytes(next, MAILBOX_DATA) else { break };
        input.extend_from_slice(&mailbox);
        next = mailbox_after(function, next);
    }
    input.resize(input_length.max(16), 0);
    let mut output = vec![0; output_length.max(16)];
    let told = function.command_events();
    run(function, &input, &mut output);
    write_answer(function, at, be64(&entry, 48), &output);
    function.command_ended(slot, told);
}

/// Executes a command: status, and what it answers, in `output`.
pub fn run(function: &mut Function, input: &[u8], output: &mut [u8]) {
    let opcode = (be32(input, 0) >> 16) as u16;
    let found = find(opcode);
    let answer = found.map_or(Err(Status::BadOperation), |command| (command.run)(function, input, output));
    let status = answer.as_ref().err().map_or(0, |status| *status as u8);
    output[0] = status;
    let name = found.map_or("unknown", |command| command.name);
    if status != 0 {
        let words: Vec<String> = (4..input.len().min(32)).step_by(4).map(|at| format!("{:08x}", be32(input, at))).collect();
        function.trouble(format!("command {opcode:#05x} ({name}) {}: status {status:#x}", words.join(" ")));
    }
    function.note(&Entry::Command { opcode, name, status, note: answer.unwrap_or_default() });
}

fn mailbox_after(function: &Function, mailbox: u64) -> u64 {
    function.engine.memory.bytes(mailbox + MAILBOX_NEXT, 8).map_or(0, |bytes| be64(&bytes, 0))
}

fn write_answer(function: &mut Function, slot: u64, first_mailbox: u64, output: &[u8]) {
    let memory = &function.engine.memory;
    let mut is_written = memory.write(slot + 32, &output[..16]).is_ok();
    let mut next = first_mailbox;
    for part in output[16..].chunks(MAILBOX_DATA) {
        if next == 0 {
            break;
        }
        is_written &= memory.write(next, part).is_ok();
        next = mailbox_after(function, next);
    }
    // The last byte says whose the slot is: the driver's again.
    is_written &= function.engine.memory.publish(slot + 63, &[0]).is_ok();
    if !is_written {
        function.trouble("the answer of a command is outside of the guest's memory");
    }
}

/// Nothing to do, nothing to answer.
fn accept(_: &mut Function, _: &[u8], _: &mut [u8]) -> Answer {
    Ok(String::new())
}

/// An object that the card only gives a number.
fn number(function: &mut Function, _: &[u8], output: &mut [u8]) -> Answer {
    let number = function.next_number();
    put(output, 8, &number.to_be_bytes());
    Ok(format!("{number:#x}"))
}

/// The object that a command is about.
fn object(input: &[u8]) -> u32 {
    crate::bits::low24(be32(input, 8))
}

/// Copies a context into an answer whose context begins at byte `at`.
fn put_context(output: &mut [u8], at: usize, context: &[u8]) {
    let length = context.len().min(output.len().saturating_sub(at));
    put(output, at, &context[..length]);
}
