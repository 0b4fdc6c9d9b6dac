//! The capture of one run while it is being made: its manifest, and the log that grows round by round.
use super::SessionError;
use crate::probes::RoundRecords;
use capture::manifest::{LossRow, Manifest, Outcome, PlanRow, Round};
use capture::{LogWriter, Sample};
use std::path::{Path, PathBuf};

/// An open capture.
pub struct Recording {
    log: Option<LogWriter>,
    /// What is known so far; written with every round.
    pub manifest: Manifest,
}

impl Recording {
    /// Makes the folder and writes the first manifest into it.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub fn begin(folder: &Path, manifest: Manifest) -> Result<Recording, SessionError> {
        let log = LogWriter::create(folder, &manifest)?;
        Ok(Recording { log: Some(log), manifest })
    }

    /// Its folder; empty once it is closed.
    pub fn dir(&self) -> PathBuf {
        self.log.as_ref().map(|log| log.dir().to_path_buf()).unwrap_or_default()
    }

    /// Index of the next round.
    pub fn next_round(&self) -> u32 {
        self.manifest.rounds.len() as u32
    }

    /// Writes what one round gave. Warm-up rounds leave their counters only.
    ///
    /// # Errors
    /// When the capture cannot be written.
    pub fn round(&mut self, round: Round, samples: &[Sample], records: RoundRecords) -> Result<(), SessionError> {
        for (hook, hits) in &records.hits {
            if let Some(row) = self.manifest.plan.iter_mut().find(|row| row.hook == *hook) {
                row.hits = Some(row.hits.unwrap_or(0) + hits);
            }
        }
        add_losses(&mut self.manifest.losses, &records.losses);
        if round.traced && !round.warmup {
            self.manifest.missed_probes = match (self.manifest.missed_probes, records.missed) {
                (Some(before), Some(now)) => Some(before + now),
                (None, Some(now)) if !self.was_traced() => Some(now),
                // Once unknown, the sum stays unknown.
                _ => None,
            };
        }
        let warmup = round.warmup;
        self.manifest.rounds.push(Round { hits: records.hits, ..round });
        if let Some(log) = &mut self.log {
            // The manifest first: a reader leaves out samples of a round that it does not know.
            log.manifest(&self.manifest)?;
            if !warmup {
                log.samples(samples)?;
                log.events(&records.bytes)?;
            }
        }
        Ok(())
    }

    /// Samples recorded so far in traced or in untraced rounds.
    pub fn samples(&self, traced: bool) -> u64 {
        self.manifest.rounds.iter().filter(|round| !round.warmup && round.traced == traced).map(|round| round.samples).sum()
    }

    /// Was there a measured traced round before?
    fn was_traced(&self) -> bool {
        self.manifest.rounds.iter().any(|round| round.traced && !round.warmup)
    }

    /// Takes over what became of the hooks since the run was opened; their hits stay this run's own.
    pub fn refresh_plan(&mut self, plan: &[PlanRow]) {
        for now in plan {
            if let Some(row) = self.manifest.plan.iter_mut().find(|row| row.hook == now.hook) {
                *row = PlanRow { hits: row.hits, ..now.clone() };
            }
        }
    }

    /// Closes the capture; the second call does nothing.
    ///
    /// # Errors
    /// When the last manifest cannot be written.
    pub fn end(&mut self, outcome: Outcome) -> Result<(), SessionError> {
        if let Some(log) = self.log.take() {
            self.manifest.outcome = outcome;
            log.finish(&self.manifest)?;
        }
        Ok(())
    }
}

fn add_losses(sum: &mut Vec<LossRow>, more: &[LossRow]) {
    for row in more {
        match sum.iter_mut().find(|it| it.kind == row.kind) {
            Some(it) => {
                it.attempted += row.attempted;
                it.delivered += row.delivered;
                it.lost += row.lost;
            }
            None => sum.push(row.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_add_up_by_kind() {
        let row = |kind: &str, lost| LossRow { kind: kind.to_owned(), attempted: 10, delivered: 10 - lost, lost };
        let mut sum = vec![row("a", 1)];
        add_losses(&mut sum, &[row("a", 2), row("b", 0)]);
        assert_eq!(sum, [LossRow { kind: "a".to_owned(), attempted: 20, delivered: 17, lost: 3 }, row("b", 0)]);
    }
}
