//! Uploads that go step by step.
//!
//! What each step returns is compared with what the uploader knows of its upload, a [`Draft`]. After a
//! silence a collector may have removed the upload, so that there can be several drafts until a step decides
//! between them.

use super::{Answer, Client, Deed, Done, Life, Upload, planted};
use crate::{
    blob,
    shared::{turned, unexpected},
};
use futures::{FutureExt, future::BoxFuture};
use shaketable::{
    isolation,
    sessions::{known, patiently},
    specimen::Recorded,
    workload::Outcome,
};
use shaketable_layers::blob::{Blobs, Error, Expect, UploadId};
use shaketable_tx::{self as tx, Env, Isolation::Serializable, RetryError, Tx, once::converging};
use std::{collections::BTreeMap, time::Duration};

/// What is stored of an upload, as its uploader knows it.
#[derive(Clone, Debug, Default, PartialEq)]
struct Draft {
    begun: bool,
    parts: BTreeMap<u64, Vec<u8>>,
}

/// Whether an upload has shown signs of life often enough. This uses timers, because clocks differ.
pub(super) struct Pulse {
    pub(super) env: Env,
    pub(super) patience: Duration,
    /// Ends when the last sign of life is not valid any more.
    pub(super) last: Option<BoxFuture<'static, ()>>,
}

impl Pulse {
    fn timer(&self) -> BoxFuture<'static, ()> {
        self.env.sleep(self.patience)
    }

    /// Whether the last sign is so recent that no collector may have removed the upload.
    pub(super) fn is_live(&mut self) -> bool {
        let is_over = |timer: &mut BoxFuture<'static, ()>| timer.now_or_never().is_some();
        if self.last.as_mut().is_some_and(is_over) {
            self.last = None;
        }
        self.last.is_some() && !self.patience.is_zero()
    }
}

impl Upload {
    /// Performs the steps of an upload, and then those that complete it.
    pub(super) async fn live(
        &self,
        client: &mut Client,
        life: &Life,
        upload: UploadId,
        pulse: &mut Pulse,
    ) -> Result<(), Outcome<Answer>> {
        let db = &client.session.database().clone();
        let mut drafts = vec![Draft::default()];
        for deeds in &life.steps {
            self.step_by_step(client, life, upload, deeds, &mut drafts, pulse).await?;
            self.pause(db).await;
        }
        let parts = self.parts(&life.data.bytes()).into_iter();
        let wanted: BTreeMap<u64, Vec<u8>> = parts.map(|(number, part)| (number, part.to_vec())).collect();
        // A collector may come in between: what is stored is certain only after a look.
        loop {
            let reads = [Deed::Parts, Deed::List(3)];
            self.step_by_step(client, life, upload, &reads, &mut drafts, pulse).await?;
            let Draft { begun, parts } = &drafts[0];
            let missing = |(number, part): &(&u64, &Vec<u8>)| parts.get(*number) != Some(*part);
            let rest = match begun {
                false => vec![vec![Deed::Begin]],
                true if parts.keys().any(|number| !wanted.contains_key(number)) => {
                    vec![vec![Deed::Abandon, Deed::Begin]]
                }
                true => {
                    let missing = wanted.iter().filter(missing).rev();
                    missing.map(|(number, _)| vec![Deed::Put(*number)]).collect()
                }
            };
            if rest.is_empty() {
                return Ok(());
            }
            for deeds in rest {
                self.step_by_step(client, life, upload, &deeds, &mut drafts, pulse).await?;
                self.pause(db).await;
            }
        }
    }

    /// Performs the steps of one transaction, and compares what they return with what the drafts predict.
    async fn step_by_step(
        &self,
        client: &mut Client,
        life: &Life,
        upload: UploadId,
        deeds: &[Deed],
        drafts: &mut Vec<Draft>,
        pulse: &mut Pulse,
    ) -> Result<(), Outcome<Answer>> {
        let db = &client.session.database().clone();
        let timer = pulse.timer();
        let perform = |tx: Tx| async move {
            let mut all = Vec::new();
            for deed in deeds {
                all.push(self.do_it(&tx, life, upload, deed).await?);
            }
            Ok::<_, Error>(Recorded(all))
        };
        // If they are repeated, these return the same as before; a part that is followed by the beginning of
        // its upload would not.
        let is_put = |deed: &Deed| matches!(deed, Deed::Put(_) | Deed::PutOther(..));
        let is_repeatable = match deeds {
            [Deed::Begin, rest @ ..] => rest.iter().all(|deed| *deed == Deed::Begin || is_put(deed)),
            all => all.iter().all(is_put),
        };
        let answers = match is_repeatable {
            true => converging(db, perform).await.map(Some).map_err(|e| e.error),
            false => {
                let session = &mut client.session;
                let done = patiently(db, self.timeout, async {
                    let outcome = session.apply(perform).await;
                    known(session, outcome).await
                });
                match done.await {
                    Ok(done) => done,
                    Err(e) => return Err(Outcome::Violated(format!("a timeout was refused: {e}"))),
                }
            }
        };
        let Recorded(answers) = match answers {
            Ok(Some(answers)) => answers,
            Ok(None) => return Err(Outcome::Failed(tx::Error::COMMIT_UNKNOWN_RESULT)),
            Err(e) => return Err(unexpected(&e, Outcome::Failed)),
        };
        let is_live = pulse.is_live();
        if !is_live && drafts.iter().any(|draft| draft.begun) && !drafts.contains(&Draft::default()) {
            drafts.push(Draft::default());
        }
        let before = drafts.clone();
        drafts.retain_mut(|draft| {
            let expected: Vec<Done> =
                deeds.iter().map(|deed| self.expect(life, upload, draft, deed)).collect();
            expected == answers
        });
        drafts.dedup();
        if drafts.is_empty() {
            return Err(Outcome::Violated(format!(
                "{deeds:?} returned {answers:?}, but the upload {} {before:?}",
                if is_live { "showed a sign of life, and was" } else { "was" }
            )));
        }
        let signs = deeds.iter().zip(&answers).any(|(deed, answer)| {
            let is_sign = matches!(deed, Deed::Begin | Deed::Put(_) | Deed::PutOther(..));
            *deed == Deed::BeginOther || is_sign && *answer == Done::Done
        });
        if signs {
            pulse.last = Some(timer);
        }
        Ok(())
    }

    /// Performs a step.
    async fn do_it(&self, tx: &Tx, life: &Life, upload: UploadId, deed: &Deed) -> Result<Done, Error> {
        // Only an end that must be refused is tried, because any other one would be visible.
        if *deed == Deed::Finish && self.is_ready(tx, upload).await? {
            return Ok(Done::Done);
        }
        let done = match self.planted {
            Some(planted) => planted::step(planted, self, tx, life, upload, deed).await,
            None => self.right(tx, life, upload, deed).await,
        };
        match done {
            Err(e) if e.fdb().is_none() => Ok(Done::Refused(e.to_string())),
            done => done,
        }
    }

    /// Performs a step correctly.
    pub(super) async fn right(
        &self,
        tx: &Tx,
        life: &Life,
        upload: UploadId,
        deed: &Deed,
    ) -> Result<Done, Error> {
        let (blobs, name) = (&self.blobs(), self.name(life.name));
        match deed {
            Deed::Begin => blobs.begin_upload(&turned(tx), name, upload).await.map(|()| Done::Done),
            Deed::BeginOther => {
                blobs.begin_upload(&turned(tx), name, upload).await?;
                let part = self.chunk * self.part;
                for (chunk, part) in [(part + 1, part + 1), (self.chunk, 7 * part)] {
                    let other = Blobs::with_sizes(blob::space(), chunk, part)?;
                    if let Ok(()) = other.begin_upload(&turned(tx), name, upload).await {
                        return Ok(Done::Done);
                    }
                }
                blobs.begin_upload(&turned(tx), self.other(life.name), upload).await.map(|()| Done::Done)
            }
            Deed::Put(_) | Deed::PutOther(..) => {
                let (number, part) = self.bytes(life, deed);
                blobs.put_part(&turned(tx), upload, number, &part).await.map(|()| Done::Done)
            }
            Deed::Parts => {
                let read = |tx, isolation| async move { blobs.parts(&turned(&tx), upload, isolation).await };
                isolation::at_both_levels(tx, deed, read).await.map(Done::Parts)
            }
            Deed::List(most) => {
                let read = |tx, isolation| async move {
                    let (mut after, mut found) = (None, false);
                    loop {
                        let page = blobs.uploads(&turned(&tx), after, *most, isolation).await?;
                        found |= page.contains(&upload);
                        match page.last() {
                            Some(last) => after = Some(*last),
                            None => return Ok(Done::Was(found)),
                        }
                    }
                };
                isolation::at_both_levels(tx, deed, read).await
            }
            Deed::Finish => {
                blobs.finish_upload(&turned(tx), upload, Expect::Anything).await.map(|_| Done::Was(true))
            }
            Deed::Abandon => blobs.abandon_upload(&turned(tx), upload).await.map(Done::Was),
        }
    }

    /// What a step should return; applies it to the draft.
    fn expect(&self, life: &Life, upload: UploadId, draft: &mut Draft, deed: &Deed) -> Done {
        let refused = |error: Error| Done::Refused(error.to_string());
        let limit = (self.chunk * self.part) as u64;
        match deed {
            Deed::Begin => {
                draft.begun = true;
                Done::Done
            }
            Deed::BeginOther => {
                draft.begun = true;
                refused(Error::OtherUpload(upload))
            }
            Deed::Put(_) | Deed::PutOther(..) => {
                let (number, part) = self.bytes(life, deed);
                match part.len() {
                    _ if !draft.begun => refused(Error::NoUpload(upload)),
                    bytes if bytes == 0 || bytes as u64 > limit => {
                        refused(Error::PartLength { number, bytes, limit })
                    }
                    _ if number >= 100_000 => refused(Error::PartNumber { number }),
                    _ => {
                        draft.parts.insert(number, part);
                        Done::Done
                    }
                }
            }
            Deed::Parts => {
                let length = |(number, part): (&u64, &Vec<u8>)| (*number, part.len() as u64);
                Done::Parts(draft.parts.iter().map(length).collect())
            }
            Deed::List(most) => Done::Was(draft.begun && *most > 0),
            Deed::Finish if !draft.begun => refused(Error::NoUpload(upload)),
            Deed::Finish => {
                let parts = draft.parts.iter().map(|(number, part)| (*number, part.len() as u64));
                self.missing(&parts.collect()).map_or(Done::Done, refused)
            }
            Deed::Abandon => {
                let was = draft.begun;
                *draft = Draft::default();
                Done::Was(was)
            }
        }
    }

    /// Why an upload of these parts must not end.
    fn missing(&self, parts: &BTreeMap<u64, u64>) -> Option<Error> {
        let (full, last) = ((self.chunk * self.part) as u64, *parts.last_key_value()?.0);
        (0..=last).find_map(|number| match parts.get(&number) {
            None => Some(Error::MissingPart(number)),
            Some(length) if number < last && *length < full => Some(Error::ShortPart(number)),
            Some(_) => None,
        })
    }

    /// Whether an upload is in progress, and nothing is missing.
    async fn is_ready(&self, tx: &Tx, upload: UploadId) -> Result<bool, Error> {
        let parts = self.blobs().parts(tx, upload, Serializable).await?.into_iter().collect();
        Ok(self.is_listed(tx, upload).await? && self.missing(&parts).is_none())
    }

    /// Whether an upload is listed after the id that precedes it.
    pub(super) async fn is_listed(&self, tx: &Tx, upload: UploadId) -> Result<bool, Error> {
        let before = UploadId(u128::from_be_bytes(upload.0).wrapping_sub(1).to_be_bytes());
        Ok(self.blobs().uploads(tx, Some(before), 1, Serializable).await? == [upload])
    }

    /// The number and the bytes of a part.
    fn bytes(&self, life: &Life, deed: &Deed) -> (u64, Vec<u8>) {
        let parts = self.parts(&life.data.bytes());
        match deed {
            Deed::PutOther(number, data) => (*number, data.bytes()),
            Deed::Put(number) => {
                let number = number % (parts.len() as u64).max(1);
                (number, parts.get(number as usize).map(|(_, part)| part.to_vec()).unwrap_or_default())
            }
            _ => (0, Vec::new()),
        }
    }

    /// The name of another blob.
    fn other(&self, name: usize) -> &'static [u8] {
        match self.name(name) {
            b"other" => b"another",
            _ => b"other",
        }
    }
}
