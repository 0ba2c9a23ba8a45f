package kvartet

import (
	"time"

	"kvartet/internal/generated/flat"
)

// Parts of the time to first token.
var (
	PartQueue      = flat.KVTF_PART_QUEUE
	PartPrefill    = flat.KVTF_PART_PREFILL
	PartEncode     = flat.KVTF_PART_ENCODE
	PartTransfer   = flat.KVTF_PART_TRANSFER
	PartDecode     = flat.KVTF_PART_DECODE
	PartFirstToken = flat.KVTF_PART_FIRST_TOKEN
	PartOther      = flat.KVTF_PART_OTHER
)

// Counters.
var (
	CounterBytesRaw       = flat.KVTF_COUNTER_BYTES_RAW
	CounterBytesMoved     = flat.KVTF_COUNTER_BYTES_MOVED
	CounterChecksums      = flat.KVTF_COUNTER_CHECKSUMS
	CounterBlocksHit      = flat.KVTF_COUNTER_BLOCKS_HIT
	CounterBlocksMissed   = flat.KVTF_COUNTER_BLOCKS_MISSED
	CounterTokensPrompt   = flat.KVTF_COUNTER_TOKENS_PROMPT
	CounterTokensOutput   = flat.KVTF_COUNTER_TOKENS_OUTPUT
	CounterTokensDrafted  = flat.KVTF_COUNTER_TOKENS_DRAFTED
	CounterTokensAccepted = flat.KVTF_COUNTER_TOKENS_ACCEPTED
	CounterNonfinite      = flat.KVTF_COUNTER_NONFINITE
)

// Meter sums where the time to first token goes.
type Meter struct{ ref *ref }

// NewMeter creates a meter.
func NewMeter(r *Runtime) (*Meter, error) {
	m, err := newRef("meter", []*ref{r.ref}, destroyed(flat.Kvtf_meter_destroy), func(h []int64) (int64, error) {
		return call("meter create", func(text []byte) int64 { return flat.Kvtf_meter_create(h[0], text) })
	})
	if err != nil {
		return nil, err
	}
	return &Meter{m}, nil
}

// Close ends the meter; its open requests end with it.
func (m *Meter) Close() error { return m.ref.close() }

// JSON is what the meter has summed; meter.h has the schema.
func (m *Meter) JSON() (string, error) {
	text, err := m.ref.onOutput("meter json", 4096, flat.Kvtf_meter_json)
	return string(text), err
}

// Advice is one sentence: which axis to touch first, and why.
func (m *Meter) Advice() (string, error) {
	text, err := m.ref.onOutput("advice", 512, flat.Kvtf_meter_advice)
	return string(text), err
}

// Count adds to a counter of the meter itself.
func (m *Meter) Count(counter int, amount uint64) error { return Request{m, 0}.Count(counter, amount) }

// Request is one request of a meter, from Begin to End.
type Request struct {
	meter *Meter
	id    int64
}

// Begin starts a request's clock; requests are grouped by way.
func (m *Meter) Begin(way string) (Request, error) {
	id, err := m.ref.on("begin", func(h int64, text []byte) int64 { return flat.Kvtf_request_begin(h, []byte(way), text) })
	return Request{m, id}, err
}

// Part says what the time from now on belongs to.
func (r Request) Part(part int) error {
	_, err := r.meter.ref.on("part", func(h int64, text []byte) int64 {
		return flat.Kvtf_request_part(h, r.id, int64(part), text)
	})
	return err
}

// Attribute moves time between parts.
func (r Request) Attribute(from, to int, d time.Duration) error {
	_, err := r.meter.ref.on("attribute", func(h int64, text []byte) int64 {
		return flat.Kvtf_request_attribute(h, r.id, int64(from), int64(to), d.Nanoseconds(), text)
	})
	return err
}

// FirstToken marks the first token.
func (r Request) FirstToken() error {
	_, err := r.meter.ref.on("first token", func(h int64, text []byte) int64 {
		return flat.Kvtf_request_first_token(h, r.id, text)
	})
	return err
}

// Count adds to a counter.
func (r Request) Count(counter int, amount uint64) error {
	_, err := r.meter.ref.on("count", func(h int64, text []byte) int64 {
		return flat.Kvtf_request_count(h, r.id, int64(counter), int64(amount), text)
	})
	return err
}

// End folds the request into its way.
func (r Request) End() error {
	_, err := r.meter.ref.on("end", func(h int64, text []byte) int64 { return flat.Kvtf_request_end(h, r.id, text) })
	return err
}
