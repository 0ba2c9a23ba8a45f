package kvartet

import (
	"errors"
	"strings"
	"testing"
	"time"
)

const wait = 5 * time.Second

// modelOptions describe the small model of most tests.
func modelOptions() ModelOptions {
	o := DefaultModelOptions()
	o.ID, o.Layers, o.KVHeads, o.KDim, o.VDim = []byte("digest of the weights"), 2, 2, 32, 32
	return o
}

func must[T any](t testing.TB, value T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// refused demands a status and words of its text.
func refused(t testing.TB, err error, status Status, words ...string) {
	t.Helper()
	if !errors.Is(err, status) {
		t.Fatalf("got %v, want %v", err, status)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("text %q lacks %q", err, word)
		}
	}
}

func equal[T comparable](t testing.TB, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("got %v, want %v", got, want)
	}
}

type closer interface{ Close() error }

// closing closes objects at the test's end, the last one first.
func closing[T closer](t testing.TB, object T) T {
	t.Cleanup(func() {
		if err := object.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return object
}

func newRuntime(t testing.TB) *Runtime {
	r, err := NewRuntime(nil)
	return closing(t, must(t, r, err))
}

func newModel(t testing.TB) *Model {
	m, err := NewModel(modelOptions())
	return closing(t, must(t, m, err))
}

func newCodec(t testing.TB, m *Model, name string) *Codec {
	c, err := NewCodec(m, name, nil)
	return closing(t, must(t, c, err))
}

func newCache(t testing.TB, r *Runtime, url string) *Cache {
	c, err := OpenCache(r, url)
	return closing(t, must(t, c, err))
}

func tokens(n int) []int32 {
	list := make([]int32, n)
	for i := range list {
		list[i] = int32(i)
	}
	return list
}

// viewOf is a view of `n` tokens with recognisable rows; every f16 is finite.
func viewOf(n int) View {
	v := ContiguousView(modelOptions(), n)
	v.Memory = make([]byte, ViewBytes(modelOptions(), n))
	for i := range v.Memory {
		v.Memory[i] = byte(i*7+i/251) & 0x3f
	}
	return v
}

func emptyView(n int) View {
	v := ContiguousView(modelOptions(), n)
	v.Memory = make([]byte, ViewBytes(modelOptions(), n))
	return v
}

// frames makes `n` keys and their frames of 16 tokens.
func frames(t testing.TB, m *Model, n int) ([]Key, [][]byte) {
	codec, err := NewCodec(m, "raw", nil)
	must(t, codec, err)
	defer codec.Close()
	keys, err := m.Keys(tokens(16*n), KeyOptions{})
	must(t, keys, err)
	v := viewOf(16 * n)
	var list [][]byte
	for i, key := range keys {
		frame, _, err := codec.Encode(v, Spec{TokenBegin: uint64(16 * i), TokenCount: 16, Key: key})
		list = append(list, must(t, frame, err))
	}
	return keys, list
}
