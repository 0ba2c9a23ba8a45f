package kvartet

import (
	"time"

	"kvartet/internal/generated/flat"
)

// Memory is bytes outside of Go's heap, which operations may hold beyond a call.
type Memory struct{ ref *ref }

// NewMemory allocates zeroed bytes.
func NewMemory(bytes int) (*Memory, error) {
	end := func(handle int64) error {
		_, err := call("memory close", func(text []byte) int64 { return flat.Kvtf_memory_destroy(handle, text) })
		return err
	}
	r, err := newRef("memory", nil, end, func([]int64) (int64, error) {
		return call("memory create", func(text []byte) int64 { return flat.Kvtf_memory_create(int64(bytes), text) })
	})
	if err != nil {
		return nil, err
	}
	return &Memory{r}, nil
}

// Close frees the memory; ErrBusy while an operation holds it.
func (m *Memory) Close() error { return m.ref.close() }

// Write copies data in.
func (m *Memory) Write(offset int, data []byte) error {
	_, err := m.ref.on("memory write", func(h int64, text []byte) int64 {
		return flat.Kvtf_memory_write(h, int64(offset), data, text)
	})
	return err
}

// Read copies out.
func (m *Memory) Read(offset int, buf []byte) error {
	_, err := m.ref.on("memory read", func(h int64, text []byte) int64 {
		return flat.Kvtf_memory_read(h, int64(offset), buf, text)
	})
	return err
}

// Operation runs beyond the call that submitted it. Close it when its results are read.
type Operation struct {
	ref *ref
	id  int64
}

func submit(parents []*ref, create func(handles []int64) (int64, error)) (*Operation, error) {
	r, err := newRef("operation", parents, destroyed(flat.Kvtf_operation_release), create)
	if err != nil {
		return nil, err
	}
	return &Operation{r, r.handle}, nil
}

// ID is what the operation's Completion carries.
func (o *Operation) ID() int64 { return o.id }

// Close forgets the operation and cancels it if it has not ended.
func (o *Operation) Close() error { return o.ref.close() }

// Wait waits for the end. ErrTimeout is either this call's deadline or the operation's.
func (o *Operation) Wait(timeout time.Duration) (Completion, error) {
	buf := make([]byte, flat.KVTF_COMPLETION_BYTES)
	_, err := o.ref.on("wait", func(h int64, text []byte) int64 {
		return flat.Kvtf_operation_wait(h, milliseconds(timeout), buf, text)
	})
	return completionOf(buf), err
}

// Cancel ends the operation early; its completion then carries ErrCancelled.
func (o *Operation) Cancel() error {
	_, err := o.ref.on("cancel", flat.Kvtf_operation_cancel)
	return err
}

// Results are the items' own statuses, once the operation has ended.
func (o *Operation) Results() ([]Status, error) {
	packed, err := o.ref.onOutput("results", 256, flat.Kvtf_operation_results)
	if err != nil {
		return nil, err
	}
	results := make([]Status, len(packed)/4)
	copy(bytesOf(results), packed)
	return results, nil
}

// Frame copies what a pull brought for item i, or part i of a stream once it is in place.
func (o *Operation) Frame(i int) ([]byte, error) {
	return o.ref.onOutput("frame", 4096, func(h int64, buf, text []byte) int64 {
		return flat.Kvtf_operation_frame(h, int64(i), buf, text)
	})
}

// SubmitPut copies frames and puts them.
func (c *Cache) SubmitPut(keys []Key, frames [][]byte, timeout time.Duration) (*Operation, error) {
	packed, lengths := pack(frames)
	return submit([]*ref{c.ref}, func(h []int64) (int64, error) {
		return call("submit put", func(text []byte) int64 {
			return flat.Kvtf_cache_submit_put(h[0], bytesOf(keys), packed, bytesOf(lengths), milliseconds(timeout), text)
		})
	})
}

// SubmitStore is Store from memory, which stays open until the operation is closed; v.Memory is not used.
func (c *Cache) SubmitStore(codec *Codec, v View, memory *Memory, s Spec, blockTokens uint32, keys []Key,
	timeout time.Duration) (*Operation, error) {
	return c.submitMove("submit store", flat.Kvtf_cache_submit_store, codec, v, memory, s, blockTokens, keys, timeout)
}

// SubmitLoad is Load into memory.
func (c *Cache) SubmitLoad(codec *Codec, v View, memory *Memory, s Spec, blockTokens uint32, keys []Key,
	timeout time.Duration) (*Operation, error) {
	return c.submitMove("submit load", flat.Kvtf_cache_submit_load, codec, v, memory, s, blockTokens, keys, timeout)
}

type submitFunction func(cache, codec int64, view, bases, table []byte, held int64, spec, digest []byte,
	blockTokens int64, keys []byte, timeoutMS int64, err []byte) int64

func (c *Cache) submitMove(name string, function submitFunction, codec *Codec, v View, memory *Memory, s Spec,
	blockTokens uint32, keys []Key, timeout time.Duration) (*Operation, error) {
	codecHandle, err := codec.ref.enter()
	if err != nil {
		return nil, err
	}
	defer codec.ref.leave()
	return submit([]*ref{c.ref, memory.ref}, func(h []int64) (int64, error) {
		return call(name, func(text []byte) int64 {
			return function(h[0], codecHandle, v.record(), bytesOf(v.Bases), bytesOf(v.BlockTable), h[1], s.record(),
				digestBytes(s.Digest), int64(blockTokens), bytesOf(keys), milliseconds(timeout), text)
		})
	})
}
