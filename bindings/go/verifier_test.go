package kvartet

import (
	"errors"
	"fmt"
	"testing"

	"kvartet/internal/generated/flat"
)

func rawGet(handle int64, key, text []byte) int64 { return flat.Kvtf_cache_get(handle, key, nil, text) }

func rawVerifierDestroy(handle int64) { flat.Kvtf_verifier_destroy(handle) }

const toyVocabulary, toyTokens, toyPrompt = 97, 60, 5

func toyOptions(draft uint32) VerifierOptions {
	o := DefaultVerifierOptions()
	o.DraftLength, o.Fidelity, o.Vocabulary = draft, FidelityC, toyVocabulary
	o.PromptTokens, o.MaxTokens, o.FirstToken = toyPrompt, toyTokens, 1
	return o
}

// next is what the full model says after a token; the draft model errs after multiples of five.
func next(token int32) int32 { return (token*31 + 7) % toyVocabulary }

// toy is an engine whose caches are lengths.
type toy struct {
	draft, full uint64
	committed   []int32
	loads       int
	fail        func(step string)
}

func (e *toy) at(step string) {
	if e.fail != nil {
		e.fail(step)
	}
}

func (e *toy) Draft(tokens []int32, n int) ([]int32, error) {
	e.at("draft")
	token := tokens[len(tokens)-1]
	var drafted []int32
	for len(drafted) < n {
		guess := next(token)
		if token%5 == 0 {
			guess = (guess + 1) % toyVocabulary
		}
		drafted = append(drafted, guess)
		token = guess
	}
	e.draft += uint64(len(tokens) + n - 1)
	return drafted, nil
}

func (e *toy) Prefetch() error {
	e.loads++
	if e.loads == 1 {
		return ErrTimeout
	}
	return nil
}

func (e *toy) Verify(tokens []int32, width int) ([]int32, []float32, error) {
	e.at("verify")
	rows := make([]int32, len(tokens))
	for i, token := range tokens {
		rows[i] = next(token)
	}
	e.full += uint64(len(tokens))
	return rows, nil, nil
}

func (e *toy) Truncate(draft, full uint64) error {
	if draft > e.draft || full > e.full {
		return errors.New("a cache would grow")
	}
	e.draft, e.full = draft, full
	return nil
}

func (e *toy) Commit(tokens []int32) error {
	e.committed = append(e.committed, tokens...)
	return nil
}

func newToy() *toy { return &toy{draft: toyPrompt, full: toyPrompt} }

func checkToy(t *testing.T, e *toy) {
	t.Helper()
	equal(t, len(e.committed), toyTokens-1)
	token := int32(1)
	for i, got := range e.committed {
		token = next(token)
		if got != token {
			t.Fatalf("token %d is %d, want %d", i, got, token)
		}
	}
}

func TestVerifierToyEngine(t *testing.T) {
	v, err := NewVerifier(toyOptions(6))
	closing(t, must(t, v, err))
	e := newToy()
	err = v.Run(e) // the first load fails and is asked for again
	refused(t, err, ErrTimeout)
	ok(t, v.Run(e))
	checkToy(t, e)
	stats, err := v.Stats()
	equal(t, must(t, stats, err).Committed, uint64(toyTokens))
	if stats.Accepted == 0 || stats.Accepted >= stats.Drafted || stats.Acceptance <= 0 || stats.Acceptance >= 1 {
		t.Errorf("stats %+v", stats)
	}
	refused(t, v.Committed(), ErrInvalidArgument)
}

func TestHostFailurePasses(t *testing.T) {
	for _, step := range []string{"draft", "verify"} {
		v, err := NewVerifier(toyOptions(6))
		must(t, v, err)
		e := newToy()
		e.loads = 1
		e.fail = func(at string) {
			if at == step && len(e.committed) > 10 {
				panic("engine: " + at)
			}
		}
		func() {
			defer func() { equal(t, fmt.Sprint(recover()), "engine: "+step) }()
			_ = v.Run(e)
			t.Error("no panic")
		}()
		e.fail = nil
		ok(t, v.Run(e)) // the action that was due is due again
		checkToy(t, e)
		ok(t, v.Close())
	}
}

func TestFidelityClassify(t *testing.T) {
	rows := []float32{1, 2, 3, 3, 2, 1, 1, 2, 3, 3, 2, 1}
	widths, places := []uint32{4, 4, 2, 2}, []uint32{0, 1, 0, 1}
	level, margin, err := ClassifyFidelity(rows, rows, 3, widths, places)
	equal(t, must(t, level, err), FidelityC)
	equal(t, margin, float32(0))
	near := append([]float32(nil), rows...)
	near[0] += 0.25
	near[3] += 0.125
	level, margin, err = ClassifyFidelity(rows, near, 3, widths, places)
	equal(t, must(t, level, err), FidelityB)
	equal(t, margin, float32(0.5))
	_, _, err = ClassifyFidelity(rows, near[:6], 3, widths, places)
	refused(t, err, ErrInvalidArgument)
}
