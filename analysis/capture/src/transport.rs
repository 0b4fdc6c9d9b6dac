//! The transports of queue pairs, and which operations each one carries.
use crate::named::named;
use crate::operation::Operation;

named! {
    /// A transport.
    pub enum Transport: "transport" {
        /// Reliable connection.
        Rc = "RC",
    }
}

impl Transport {
    /// The table of transports × operations: what a queue pair of this transport can carry.
    pub const fn operations(self) -> &'static [Operation] {
        match self {
            Self::Rc => Operation::MEASURED,
        }
    }

    /// Whether it carries an operation.
    pub fn carries(self, op: Operation) -> bool {
        self.operations().contains(&op)
    }
}

// Not derived: the macro of the words has no place for the attribute.
#[allow(clippy::derivable_impls)]
impl Default for Transport {
    fn default() -> Self {
        Self::Rc
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::named::Named;

    #[test]
    fn every_measured_operation_has_a_transport_and_foreign_ones_have_none() {
        for &op in Operation::ALL {
            let carried = Transport::ALL.iter().any(|transport| transport.carries(op));
            assert_eq!(carried, Operation::MEASURED.contains(&op), "{op}");
        }
    }
}
