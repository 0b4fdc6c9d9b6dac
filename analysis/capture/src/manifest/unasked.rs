//! Hooks of the plan that nothing on the machine asks for: their absence is no gap.
use super::PlanRow;
use std::fmt;

/// What is not there that a hook belongs to. A manifest holds it as the reason of the hook's row, in these words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unasked {
    /// None of these modules of its driver is loaded: their names, with "or" between them.
    Modules(String),
    /// No loaded driver notifies through a tasklet.
    Tasklet,
    /// No loaded driver completes through a work item.
    Work,
}

const MODULES: (&str, &str) = ("module ", " is not loaded");
const TASKLET: &str = "no loaded driver notifies through a tasklet";
const WORK: &str = "no loaded driver completes through a work item";

impl Unasked {
    /// Of a driver with these modules.
    pub fn modules(names: &[&str]) -> Self {
        Unasked::Modules(names.join(" or "))
    }

    /// Of a row's reason; `None`: it is another reason.
    fn of_reason(reason: &str) -> Option<Self> {
        match reason {
            TASKLET => Some(Unasked::Tasklet),
            WORK => Some(Unasked::Work),
            _ => reason.strip_prefix(MODULES.0)?.strip_suffix(MODULES.1).map(|names| Unasked::Modules(names.to_owned())),
        }
    }
}

impl fmt::Display for Unasked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unasked::Modules(names) => write!(f, "{}{names}{}", MODULES.0, MODULES.1),
            Unasked::Tasklet => f.write_str(TASKLET),
            Unasked::Work => f.write_str(WORK),
        }
    }
}

impl PlanRow {
    /// What the hook belongs to and is not there; `None`: it is there, or absent for another reason.
    pub fn unasked(&self) -> Option<Unasked> {
        if self.symbol.is_some() { None } else { Unasked::of_reason(&self.reason) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back_and_nothing_else_is() {
        for it in [Unasked::modules(&["irdma"]), Unasked::modules(&["irdma", "i40iw"]), Unasked::Tasklet, Unasked::Work] {
            let absent = PlanRow { reason: it.to_string(), ..PlanRow::default() };
            assert_eq!(absent.unasked(), Some(it));
            assert_eq!(PlanRow { symbol: Some("there".into()), ..absent }.unasked(), None);
        }
        let other = PlanRow { reason: "attach failed: the module was not loaded in time".into(), ..PlanRow::default() };
        assert_eq!(other.unasked(), None);
    }
}
