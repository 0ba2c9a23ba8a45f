package kvartet

import (
	"encoding/binary"
	"fmt"
	"time"

	"kvartet/internal/generated/flat"
)

// Fidelity is what a probe measured; see ClassifyFidelity.
type Fidelity int32

// Levels: C bitwise equal to decoding one by one, B equal but for close calls, A equal at a fixed width, N none.
var (
	FidelityN = Fidelity(flat.KVTF_FIDELITY_N)
	FidelityA = Fidelity(flat.KVTF_FIDELITY_A)
	FidelityB = Fidelity(flat.KVTF_FIDELITY_B)
	FidelityC = Fidelity(flat.KVTF_FIDELITY_C)
)

// Kinds of actions. A kind that this package does not know keeps its number.
var (
	ActionDraft    = flat.KVTF_ACTION_DRAFT
	ActionPrefetch = flat.KVTF_ACTION_PREFETCH
	ActionVerify   = flat.KVTF_ACTION_VERIFY
	ActionRecheck  = flat.KVTF_ACTION_RECHECK
	ActionRollback = flat.KVTF_ACTION_ROLLBACK
	ActionCommit   = flat.KVTF_ACTION_COMMIT
	ActionFallback = flat.KVTF_ACTION_FALLBACK
	ActionDone     = flat.KVTF_ACTION_DONE
)

// VerifierOptions: begin with DefaultVerifierOptions.
type VerifierOptions struct {
	DraftLength, DraftMax, Width uint32
	Fidelity                     Fidelity
	Margin                       float32
	FirstToken                   int32
	Vocabulary                   uint32
	PromptTokens, MaxTokens      uint64
	EOS                          []int32
	FullReady, FullReload        bool
}

// DefaultVerifierOptions are the library's.
func DefaultVerifierOptions() VerifierOptions {
	d := mustDefaults(flat.KVTF_RECORD_VERIFIER)
	return VerifierOptions{
		DraftLength: uint32(word(d, flat.KVTF_VERIFIER_DRAFT_LENGTH)), DraftMax: uint32(word(d, flat.KVTF_VERIFIER_DRAFT_MAX)),
		Width: uint32(word(d, flat.KVTF_VERIFIER_WIDTH)), Fidelity: Fidelity(word(d, flat.KVTF_VERIFIER_FIDELITY)),
		Margin: float32(real(d, flat.KVTF_VERIFIER_MARGIN)), FullReady: word(d, flat.KVTF_VERIFIER_FULL_READY) != 0,
		FullReload: word(d, flat.KVTF_VERIFIER_FULL_RELOAD) != 0,
	}
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// Verifier says what to do next for one sequence that drafts on a lossy cache and commits what the full one says.
type Verifier struct{ ref *ref }

// NewVerifier begins a sequence.
func NewVerifier(o VerifierOptions) (*Verifier, error) {
	if err := checkABI(); err != nil {
		return nil, err
	}
	packed := record(int64(o.DraftLength), int64(o.DraftMax), int64(o.Width), int64(o.Fidelity), bits(float64(o.Margin)),
		int64(o.FirstToken), int64(o.Vocabulary), int64(o.PromptTokens), int64(o.MaxTokens), flag(o.FullReady), flag(o.FullReload))
	r, err := newRef("verifier", nil, destroyed(flat.Kvtf_verifier_destroy), func([]int64) (int64, error) {
		return call("verifier create", func(text []byte) int64 {
			return flat.Kvtf_verifier_create(packed, bytesOf(o.EOS), text)
		})
	})
	if err != nil {
		return nil, err
	}
	return &Verifier{r}, nil
}

// Close ends the verifier.
func (v *Verifier) Close() error { return v.ref.close() }

// Action is what to carry out now; see verifier.h for each kind.
type Action struct {
	Kind, Reason, N, Width  int
	Pending                 int32
	DraftLength, FullLength uint64
	Tokens                  []int32
}

// Next gives the action that is due; asking again gives the same.
func (v *Verifier) Next() (Action, error) {
	b, err := v.ref.onOutput("next", 8*flat.KVTF_ACTION_WORDS+4*257, flat.Kvtf_verifier_next)
	if err != nil {
		return Action{}, err
	}
	w := func(i int) int { return int(word(b, i)) }
	a := Action{Kind: w(flat.KVTF_ACTION_KIND), Reason: w(flat.KVTF_ACTION_REASON), N: w(flat.KVTF_ACTION_N),
		Width: w(flat.KVTF_ACTION_WIDTH), Pending: int32(w(flat.KVTF_ACTION_PENDING)),
		DraftLength: uint64(w(flat.KVTF_ACTION_DRAFT_LENGTH)), FullLength: uint64(w(flat.KVTF_ACTION_FULL_LENGTH)),
		Tokens: make([]int32, w(flat.KVTF_ACTION_TOKENS))}
	for i := range a.Tokens {
		a.Tokens[i] = int32(binary.LittleEndian.Uint32(b[8*flat.KVTF_ACTION_WORDS+4*i:]))
	}
	return a, nil
}

// Drafted reports a draft.
func (v *Verifier) Drafted(tokens []int32, took time.Duration) error {
	_, err := v.ref.on("drafted", func(h int64, text []byte) int64 {
		return flat.Kvtf_verifier_drafted(h, bytesOf(tokens), took.Microseconds(), text)
	})
	return err
}

// Loaded reports how a prefetch ended: 0 when the full cache is in place.
func (v *Verifier) Loaded(status Status, waited time.Duration) error {
	_, err := v.ref.on("loaded", func(h int64, text []byte) int64 {
		return flat.Kvtf_verifier_loaded(h, int64(status), waited.Microseconds(), text)
	})
	return err
}

// Verified reports the argmax of each row; gaps only at level B.
func (v *Verifier) Verified(tokens []int32, gaps []float32, took time.Duration) error {
	_, err := v.ref.on("verified", func(h int64, text []byte) int64 {
		return flat.Kvtf_verifier_verified(h, bytesOf(tokens), bytesOf(gaps), took.Microseconds(), text)
	})
	return err
}

// Rechecked reports a row that was decoded alone.
func (v *Verifier) Rechecked(token int32, took time.Duration) error {
	_, err := v.ref.on("rechecked", func(h int64, text []byte) int64 {
		return flat.Kvtf_verifier_rechecked(h, int64(token), took.Microseconds(), text)
	})
	return err
}

// RolledBack reports that both caches are truncated.
func (v *Verifier) RolledBack() error {
	_, err := v.ref.on("rolled back", flat.Kvtf_verifier_rolled_back)
	return err
}

// Committed reports that the tokens are handed on.
func (v *Verifier) Committed() error {
	_, err := v.ref.on("committed", flat.Kvtf_verifier_committed)
	return err
}

// Cancel ends the sequence; what was committed stays.
func (v *Verifier) Cancel() error {
	_, err := v.ref.on("cancel", flat.Kvtf_verifier_cancel)
	return err
}

// VerifierStats are counts so far.
type VerifierStats struct {
	Rounds, Drafted, Accepted, Committed, Fallbacks, Rechecks, Nonfinite uint64
	Acceptance, MeanAccepted                                             float64
}

// Stats copies the counts.
func (v *Verifier) Stats() (VerifierStats, error) {
	s, err := v.ref.onOutput("stats", 8*flat.KVTF_VERIFIER_STATS_WORDS, flat.Kvtf_verifier_stats)
	if err != nil {
		return VerifierStats{}, err
	}
	w := func(i int) uint64 { return uint64(word(s, i)) }
	return VerifierStats{w(flat.KVTF_VERIFIER_STATS_ROUNDS), w(flat.KVTF_VERIFIER_STATS_DRAFTED),
		w(flat.KVTF_VERIFIER_STATS_ACCEPTED), w(flat.KVTF_VERIFIER_STATS_COMMITTED),
		w(flat.KVTF_VERIFIER_STATS_FALLBACKS), w(flat.KVTF_VERIFIER_STATS_RECHECKS),
		w(flat.KVTF_VERIFIER_STATS_NONFINITE), real(s, flat.KVTF_VERIFIER_STATS_ACCEPTANCE),
		real(s, flat.KVTF_VERIFIER_STATS_MEAN_ACCEPTED)}, nil
}

// Engine is what Run drives. No method runs inside of the library: a panic passes through Run like any other.
type Engine interface {
	// Draft decodes tokens on the draft cache, then drafts up to n.
	Draft(tokens []int32, n int) ([]int32, error)
	// Prefetch waits until the full cache is in place.
	Prefetch() error
	// Verify runs rows (the tokens, padded to width) on the full cache: the argmax and the gap of each token's row.
	Verify(tokens []int32, width int) ([]int32, []float32, error)
	// Truncate cuts both caches.
	Truncate(draftLength, fullLength uint64) error
	// Commit hands final tokens on.
	Commit(tokens []int32) error
}

// Run carries out actions until the sequence is done. An error of the engine ends it as it is; the sequence can
// go on with another Run, but for a load that failed, which the verifier asks for again.
func (v *Verifier) Run(engine Engine) error {
	for {
		action, err := v.Next()
		if err != nil || action.Kind == ActionDone {
			return err
		}
		if err := v.step(engine, action); err != nil {
			return err
		}
	}
}

func (v *Verifier) step(engine Engine, a Action) error {
	begun := time.Now()
	switch a.Kind {
	case ActionDraft:
		tokens, err := engine.Draft(a.Tokens, a.N)
		if err != nil {
			return err
		}
		return v.Drafted(tokens, time.Since(begun))
	case ActionPrefetch:
		if err := engine.Prefetch(); err != nil {
			if reported := v.Loaded(StatusOf(err), time.Since(begun)); reported != nil {
				return reported
			}
			return err
		}
		return v.Loaded(0, time.Since(begun))
	case ActionVerify, ActionFallback:
		tokens, gaps, err := engine.Verify(a.Tokens, a.Width)
		if err != nil {
			return err
		}
		return v.Verified(tokens, gaps, time.Since(begun))
	case ActionRecheck:
		return v.recheck(engine, a, begun)
	case ActionRollback:
		if err := engine.Truncate(a.DraftLength, a.FullLength); err != nil {
			return err
		}
		return v.RolledBack()
	case ActionCommit:
		if err := engine.Commit(a.Tokens); err != nil {
			return err
		}
		return v.Committed()
	}
	return &Error{ErrUnsupported, "run", fmt.Sprintf("action %d is not one that this package knows", a.Kind)}
}

func (v *Verifier) recheck(engine Engine, a Action, begun time.Time) error {
	if err := engine.Truncate(a.DraftLength, a.FullLength); err != nil {
		return err
	}
	tokens, _, err := engine.Verify(a.Tokens[a.N:a.N+1], 1)
	if err != nil {
		return err
	}
	if len(tokens) != 1 {
		return &Error{ErrInvalidArgument, "run", fmt.Sprintf("the engine gave %d rows for 1", len(tokens))}
	}
	return v.Rechecked(tokens[0], time.Since(begun))
}

// ClassifyFidelity compares rows of logits decoded alone and in batches; see verifier.h.
func ClassifyFidelity(alone, batched []float32, vocabulary int, widths, places []uint32) (Fidelity, float32, error) {
	margin := make([]byte, 8)
	level, err := call("classify", func(text []byte) int64 {
		return flat.Kvtf_fidelity_classify(bytesOf(alone), bytesOf(batched), bytesOf(widths), bytesOf(places),
			int64(vocabulary), margin, text)
	})
	return Fidelity(level), float32(real(margin, 0)), err
}
