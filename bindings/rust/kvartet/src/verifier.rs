//! The verifier.
use crate::native::{self, bits, bytes_of, call, record, Core, Text};
use crate::status::{Error, Result, Status};
use crate::sys;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a probe measured; see `classify_fidelity`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fidelity(pub i32);

impl Fidelity {
    pub const N: Fidelity = Fidelity(sys::KVTF_FIDELITY_N as i32);
    pub const A: Fidelity = Fidelity(sys::KVTF_FIDELITY_A as i32);
    pub const B: Fidelity = Fidelity(sys::KVTF_FIDELITY_B as i32);
    pub const C: Fidelity = Fidelity(sys::KVTF_FIDELITY_C as i32);
}

/// Kind of an action; one that this crate does not know keeps its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActionKind(pub i64);

impl ActionKind {
    pub const DRAFT: ActionKind = ActionKind(sys::KVTF_ACTION_DRAFT);
    pub const PREFETCH: ActionKind = ActionKind(sys::KVTF_ACTION_PREFETCH);
    pub const VERIFY: ActionKind = ActionKind(sys::KVTF_ACTION_VERIFY);
    pub const RECHECK: ActionKind = ActionKind(sys::KVTF_ACTION_RECHECK);
    pub const ROLLBACK: ActionKind = ActionKind(sys::KVTF_ACTION_ROLLBACK);
    pub const COMMIT: ActionKind = ActionKind(sys::KVTF_ACTION_COMMIT);
    pub const FALLBACK: ActionKind = ActionKind(sys::KVTF_ACTION_FALLBACK);
    pub const DONE: ActionKind = ActionKind(sys::KVTF_ACTION_DONE);
}

/// `Default` are the library's.
#[derive(Debug, Clone)]
pub struct VerifierOptions {
    pub draft_length: u32,
    pub draft_max: u32,
    pub width: u32,
    pub fidelity: Fidelity,
    pub margin: f32,
    pub first_token: i32,
    pub vocabulary: u32,
    pub prompt_tokens: u64,
    pub max_tokens: u64,
    pub eos: Vec<i32>,
    pub full_ready: bool,
    pub full_reload: bool,
}

impl Default for VerifierOptions {
    fn default() -> Self {
        let d = native::defaults(sys::KVTF_RECORD_VERIFIER);
        VerifierOptions {
            draft_length: native::word(&d, sys::KVTF_VERIFIER_DRAFT_LENGTH) as u32,
            draft_max: native::word(&d, sys::KVTF_VERIFIER_DRAFT_MAX) as u32,
            width: native::word(&d, sys::KVTF_VERIFIER_WIDTH) as u32,
            fidelity: Fidelity(native::word(&d, sys::KVTF_VERIFIER_FIDELITY) as i32),
            margin: native::real(&d, sys::KVTF_VERIFIER_MARGIN) as f32,
            first_token: 0,
            vocabulary: 0,
            prompt_tokens: 0,
            max_tokens: 0,
            eos: vec![],
            full_ready: native::word(&d, sys::KVTF_VERIFIER_FULL_READY) != 0,
            full_reload: native::word(&d, sys::KVTF_VERIFIER_FULL_RELOAD) != 0,
        }
    }
}

/// What to carry out now; verifier.h describes each kind.
#[derive(Debug, Clone)]
pub struct Action {
    pub kind: ActionKind,
    pub reason: i64,
    pub n: usize,
    pub width: usize,
    pub pending: i32,
    pub draft_length: u64,
    pub full_length: u64,
    pub tokens: Vec<i32>,
}

/// Counts so far.
#[derive(Debug, Clone, Copy)]
pub struct VerifierStats {
    pub rounds: u64,
    pub drafted: u64,
    pub accepted: u64,
    pub committed: u64,
    pub fallbacks: u64,
    pub rechecks: u64,
    pub nonfinite: u64,
    pub acceptance: f64,
    pub mean_accepted: f64,
}

/// Argmax and, at level B, gap of each row.
#[derive(Debug, Clone, Default)]
pub struct Rows {
    pub tokens: Vec<i32>,
    pub gaps: Vec<f32>,
}

/// What `Verifier::run` drives. No method runs inside of the library: a panic passes through `run` like any other.
pub trait Engine {
    /// Decodes tokens on the draft cache, then drafts up to n.
    fn draft(&mut self, tokens: &[i32], n: usize) -> Result<Vec<i32>>;
    /// Waits until the full cache is in place.
    fn prefetch(&mut self) -> Result<()>;
    /// Runs the tokens, padded to width rows, on the full cache.
    fn verify(&mut self, tokens: &[i32], width: usize) -> Result<Rows>;
    /// Cuts both caches.
    fn truncate(&mut self, draft_length: u64, full_length: u64) -> Result<()>;
    /// Hands final tokens on.
    fn commit(&mut self, tokens: &[i32]) -> Result<()>;
}

/// Says what to do next for one sequence that drafts on a lossy cache and commits what the full one says.
pub struct Verifier {
    core: Arc<Core>,
}

fn end(handle: i64) -> Result<()> {
    unsafe { sys::kvtf_verifier_destroy(handle) };
    Ok(())
}

fn microseconds(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

impl Verifier {
    pub fn new(o: &VerifierOptions) -> Result<Verifier> {
        let packed = record(&[
            i64::from(o.draft_length),
            i64::from(o.draft_max),
            i64::from(o.width),
            i64::from(o.fidelity.0),
            bits(f64::from(o.margin)),
            i64::from(o.first_token),
            i64::from(o.vocabulary),
            o.prompt_tokens as i64,
            o.max_tokens as i64,
            i64::from(o.full_ready),
            i64::from(o.full_reload),
        ]);
        let eos = bytes_of(&o.eos);
        let core = Core::create("verifier", end, vec![], |_, t| unsafe {
            sys::kvtf_verifier_create(packed.as_ptr(), packed.len(), eos.as_ptr(), eos.len(), t.ptr(), Text::LEN)
        })?;
        Ok(Verifier { core })
    }

    pub fn close(&mut self) -> Result<()> {
        self.core.close()
    }

    /// The action that is due; asking again gives the same.
    pub fn next(&mut self) -> Result<Action> {
        let head = 8 * sys::KVTF_ACTION_WORDS as usize;
        let bytes = self.core.on_output("next", head + 4 * 257, |h, buf, cap, t| unsafe {
            sys::kvtf_verifier_next(h, buf, cap, t.ptr(), Text::LEN)
        })?;
        let word = |index| native::word(&bytes, index);
        let tokens = bytes[head..].chunks_exact(4);
        Ok(Action {
            kind: ActionKind(word(sys::KVTF_ACTION_KIND)),
            reason: word(sys::KVTF_ACTION_REASON),
            n: word(sys::KVTF_ACTION_N) as usize,
            width: word(sys::KVTF_ACTION_WIDTH) as usize,
            pending: word(sys::KVTF_ACTION_PENDING) as i32,
            draft_length: word(sys::KVTF_ACTION_DRAFT_LENGTH) as u64,
            full_length: word(sys::KVTF_ACTION_FULL_LENGTH) as u64,
            tokens: tokens.map(|t| i32::from_le_bytes(t.try_into().expect("4 bytes"))).collect(),
        })
    }

    fn report(&mut self, name: &'static str, function: impl FnOnce(i64, &mut Text) -> i64) -> Result<()> {
        self.core.on(name, function).map(|_| ())
    }

    /// Reports a draft.
    pub fn drafted(&mut self, tokens: &[i32], took: Duration) -> Result<()> {
        let tokens = bytes_of(tokens);
        self.report("drafted", |h, t| unsafe {
            sys::kvtf_verifier_drafted(h, tokens.as_ptr(), tokens.len(), microseconds(took), t.ptr(), Text::LEN)
        })
    }

    /// Reports how a prefetch ended: `OK` when the full cache is in place.
    pub fn loaded(&mut self, status: Status, waited: Duration) -> Result<()> {
        self.report("loaded", |h, t| unsafe {
            sys::kvtf_verifier_loaded(h, i64::from(status.0), microseconds(waited), t.ptr(), Text::LEN)
        })
    }

    /// Reports the argmax of each row; gaps only at level B.
    pub fn verified(&mut self, rows: &Rows, took: Duration) -> Result<()> {
        let (tokens, gaps) = (bytes_of(&rows.tokens), bytes_of(&rows.gaps));
        self.report("verified", |h, t| unsafe {
            sys::kvtf_verifier_verified(
                h,
                tokens.as_ptr(),
                tokens.len(),
                gaps.as_ptr(),
                gaps.len(),
                microseconds(took),
                t.ptr(),
                Text::LEN,
            )
        })
    }

    /// Reports a row that was decoded alone.
    pub fn rechecked(&mut self, token: i32, took: Duration) -> Result<()> {
        self.report("rechecked", |h, t| unsafe {
            sys::kvtf_verifier_rechecked(h, i64::from(token), microseconds(took), t.ptr(), Text::LEN)
        })
    }

    /// Reports that both caches are truncated.
    pub fn rolled_back(&mut self) -> Result<()> {
        self.report("rolled back", |h, t| unsafe { sys::kvtf_verifier_rolled_back(h, t.ptr(), Text::LEN) })
    }

    /// Reports that the tokens are handed on.
    pub fn committed(&mut self) -> Result<()> {
        self.report("committed", |h, t| unsafe { sys::kvtf_verifier_committed(h, t.ptr(), Text::LEN) })
    }

    /// Ends the sequence; what was committed stays.
    pub fn cancel(&mut self) -> Result<()> {
        self.report("cancel", |h, t| unsafe { sys::kvtf_verifier_cancel(h, t.ptr(), Text::LEN) })
    }

    pub fn stats(&self) -> Result<VerifierStats> {
        let bytes =
            self.core.on_output("stats", 8 * sys::KVTF_VERIFIER_STATS_WORDS as usize, |h, buf, cap, t| unsafe {
                sys::kvtf_verifier_stats(h, buf, cap, t.ptr(), Text::LEN)
            })?;
        let word = |index| native::word(&bytes, index) as u64;
        Ok(VerifierStats {
            rounds: word(sys::KVTF_VERIFIER_STATS_ROUNDS),
            drafted: word(sys::KVTF_VERIFIER_STATS_DRAFTED),
            accepted: word(sys::KVTF_VERIFIER_STATS_ACCEPTED),
            committed: word(sys::KVTF_VERIFIER_STATS_COMMITTED),
            fallbacks: word(sys::KVTF_VERIFIER_STATS_FALLBACKS),
            rechecks: word(sys::KVTF_VERIFIER_STATS_RECHECKS),
            nonfinite: word(sys::KVTF_VERIFIER_STATS_NONFINITE),
            acceptance: native::real(&bytes, sys::KVTF_VERIFIER_STATS_ACCEPTANCE),
            mean_accepted: native::real(&bytes, sys::KVTF_VERIFIER_STATS_MEAN_ACCEPTED),
        })
    }

    /// Carries out actions until the sequence is done. An error or panic of the engine ends the run as it is;
    /// another run goes on with the action that is due.
    pub fn run(&mut self, engine: &mut impl Engine) -> Result<()> {
        loop {
            let action = self.next()?;
            if action.kind == ActionKind::DONE {
                return Ok(());
            }
            self.step(engine, &action)?;
        }
    }

    fn step(&mut self, engine: &mut impl Engine, a: &Action) -> Result<()> {
        let begun = Instant::now();
        match a.kind {
            ActionKind::DRAFT => {
                let tokens = engine.draft(&a.tokens, a.n)?;
                self.drafted(&tokens, begun.elapsed())
            }
            ActionKind::PREFETCH => {
                let fetched = engine.prefetch();
                let status = fetched.as_ref().err().map_or(Status::OK, |e| e.status);
                self.loaded(status, begun.elapsed())?;
                fetched
            }
            ActionKind::VERIFY | ActionKind::FALLBACK => {
                let rows = engine.verify(&a.tokens, a.width)?;
                self.verified(&rows, begun.elapsed())
            }
            ActionKind::RECHECK => {
                engine.truncate(a.draft_length, a.full_length)?;
                let rows = engine.verify(&a.tokens[a.n..a.n + 1], 1)?;
                let token = rows.tokens.first().copied().ok_or_else(|| {
                    Error::new(Status::INVALID_ARGUMENT, "run", "the engine gave no row for a recheck".into())
                })?;
                self.rechecked(token, begun.elapsed())
            }
            ActionKind::ROLLBACK => {
                engine.truncate(a.draft_length, a.full_length)?;
                self.rolled_back()
            }
            ActionKind::COMMIT => {
                engine.commit(&a.tokens)?;
                self.committed()
            }
            ActionKind(number) => {
                let text = format!("action {} is not one that this crate knows", number);
                Err(Error::new(Status::UNSUPPORTED, "run", text))
            }
        }
    }
}

/// Compares rows of logits decoded alone and in batches; gives the level and, for level B, its margin.
pub fn classify_fidelity(
    alone: &[f32],
    batched: &[f32],
    vocabulary: usize,
    widths: &[u32],
    places: &[u32],
) -> Result<(Fidelity, f64)> {
    let (alone, batched, widths, places) = (bytes_of(alone), bytes_of(batched), bytes_of(widths), bytes_of(places));
    let mut margin = [0; 8];
    let level = call("classify", |t| unsafe {
        sys::kvtf_fidelity_classify(
            alone.as_ptr(),
            alone.len(),
            batched.as_ptr(),
            batched.len(),
            widths.as_ptr(),
            widths.len(),
            places.as_ptr(),
            places.len(),
            vocabulary as i64,
            margin.as_mut_ptr(),
            margin.len(),
            t.ptr(),
            Text::LEN,
        )
    })?;
    Ok((Fidelity(level as i32), f64::from_le_bytes(margin)))
}
