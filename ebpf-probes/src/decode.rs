//! Checked decoding of records on the host, and encoding for fixtures and tests.
use crate::*;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// One decoded record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The header as written.
    pub header: Header,
    /// The body of the header's kind.
    pub body: Body,
}

/// Why bytes are not a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// Fewer bytes than a header or than the size that the header names.
    Short {
        /// Bytes that were there.
        have_bytes: usize,
        /// Bytes that were needed.
        need_bytes: usize,
    },
    /// A kind that this version does not know: skip it, count it.
    UnknownKind {
        /// The kind's number.
        kind: u16,
    },
}

macro_rules! bodies {
    ($($kind:ident => $type:ident),* $(,)?) => {
        /// The body of a record by kind.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Body { $(
            #[doc = concat!("Body of `Kind::", stringify!($kind), "`.")]
            $kind($type),
        )* }

        impl Body {
            /// The kind that this body belongs to.
            pub const fn kind(&self) -> Kind { match self { $(Body::$kind(_) => Kind::$kind,)* } }
        }

        fn body(kind: Kind, bytes: &[u8]) -> Result<Body, DecodeError> {
            match kind { $(Kind::$kind => Ok(Body::$kind(read::<$type>(bytes)?)),)* }
        }

        /// Writes a record as a probe would, for fixtures and tests; `header.kind` and `header.size` are set from the body.
        /// Returns the bytes used (at most [`layout::RECORD_MAX_BYTES`]), or 0 when `out` is too short.
        pub fn encode(header: Header, body: &Body, out: &mut [u8]) -> usize {
            match body { $(Body::$kind(it) => write(header, Kind::$kind, it.as_bytes(), out),)* }
        }
    };
}

bodies! {
    CpuIdleExit => CpuIdle, IrqEntry => Irq, IrqExit => Irq, SoftirqEntry => Softirq, SoftirqExit => Softirq,
    TaskletEntry => Tasklet, WorkQueue => Work, WorkStart => Work, NapiPoll => Napi, CompHandler => CompHandler,
    SchedWaking => Wake, SchedWakeup => Wake, SchedMigrate => Wake, SchedSwitch => Switch, EventRead => EventRead,
    RxePost => RxePost, RxeXmit => RxeXmit, RxeRcv => RxeRcv, RxeTask => RxeTask, CqPost => CqPost,
    DriverEnqueue => DriverCq, DriverComp => DriverCq, NetPacket => NetPacket,
    DriverBottomHalf => DriverEntry, DriverIrq => DriverEntry,
    PageFault => PageFault, TimerEntry => Timer, TimerExit => Timer,
    CqCreate => CqCreate, CqDestroy => CqDestroy, CqArm => CqArm, CqError => CqError, SoftirqRaise => Softirq,
}

fn read<T: FromBytes + Immutable + KnownLayout>(bytes: &[u8]) -> Result<T, DecodeError> {
    T::read_from_prefix(bytes).map(|(it, _)| it).map_err(|_| DecodeError::Short { have_bytes: bytes.len(), need_bytes: size_of::<T>() })
}

fn write(mut header: Header, kind: Kind, body: &[u8], out: &mut [u8]) -> usize {
    let size = size_of::<Header>() + body.len();
    header.kind = kind as u16;
    header.size = size as u16;
    if out.len() < size {
        return 0;
    }
    out[..size_of::<Header>()].copy_from_slice(header.as_bytes());
    out[size_of::<Header>()..size].copy_from_slice(body);
    size
}

/// Decodes the record at the start of `bytes`. Bytes behind the record are ignored; `header.size` says where the next one begins.
///
/// # Errors
/// [`DecodeError::Short`] when bytes are missing, [`DecodeError::UnknownKind`] for a kind of a newer version.
pub fn decode(bytes: &[u8]) -> Result<Event, DecodeError> {
    let header: Header = read(bytes)?;
    let size = usize::from(header.size);
    if size < size_of::<Header>() || bytes.len() < size {
        return Err(DecodeError::Short { have_bytes: bytes.len(), need_bytes: size.max(size_of::<Header>()) });
    }
    let kind = Kind::from_u16(header.kind).ok_or(DecodeError::UnknownKind { kind: header.kind })?;
    Ok(Event { header, body: body(kind, &bytes[size_of::<Header>()..size])? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_survives_the_round_trip_and_a_short_one_is_an_error() {
        let header = Header { ts_ns: 7, cpu: 1, pid: 2, tgid: 3, ..Header::default() };
        let sent = Body::CqPost(CqPost { cq: 1, wr_id: 2, qpn: 3, status: 4, opcode: 5, byte_len: 6 });
        let mut bytes = [0; layout::RECORD_MAX_BYTES];
        let size = encode(header, &sent, &mut bytes);
        assert_eq!(size, 56);
        let got = decode(&bytes[..size]).expect("decodes");
        assert_eq!(got.body, sent);
        assert_eq!((got.header.ts_ns, got.header.kind), (7, Kind::CqPost as u16));
        for short in 0..size {
            assert!(matches!(decode(&bytes[..short]), Err(DecodeError::Short { .. })), "{short} bytes decoded");
        }
    }

    #[test]
    fn an_interrupt_handlers_record_of_an_older_capture_is_read() {
        let mut bytes = [0; layout::RECORD_MAX_BYTES];
        let entry = DriverEntry { object: 0xe0, irq: 41, ..DriverEntry::default() };
        let size = encode(Header::default(), &Body::DriverIrq(entry), &mut bytes);
        assert_eq!(size, 40);
        // There the last word was the number of the driver.
        bytes[36] = 11;
        let Ok(Event { body: Body::DriverIrq(got), .. }) = decode(&bytes[..size]) else { panic!("not an interrupt handler's record") };
        assert_eq!((got.object, got.irq), (entry.object, entry.irq));
    }

    #[test]
    fn an_unknown_kind_is_named() {
        let mut bytes = [0; layout::RECORD_MAX_BYTES];
        let size = encode(Header::default(), &Body::IrqEntry(Irq::default()), &mut bytes);
        bytes[0] = 0xff;
        assert_eq!(decode(&bytes[..size]), Err(DecodeError::UnknownKind { kind: 0xff }));
    }

    #[test]
    fn every_kind_has_its_number_and_fits_the_arrays() {
        for kind in Kind::ALL {
            assert_eq!(Kind::from_u16(*kind as u16), Some(*kind));
            assert!((*kind as u32) < config::KINDS_MAX);
        }
    }
}
