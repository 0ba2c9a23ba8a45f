package kvartet

import (
	"math"
	"strings"
	"testing"

	"kvartet/internal/generated/flat"
)

func TestBadInputArguments(t *testing.T) {
	r, m := newRuntime(t), newModel(t)
	_, err := NewRuntime(&RuntimeOptions{Threads: 1000})
	refused(t, err, ErrInvalidArgument, "threads", "1000")
	o := modelOptions()
	o.Layers = 0
	_, err = NewModel(o)
	refused(t, err, ErrInvalidArgument, "layers")
	_, err = NewCodec(m, "zip", nil)
	refused(t, err, ErrUnsupported, "zip")
	_, err = OpenCache(r, "gopher:x")
	refused(t, err, ErrUnsupported, "gopher")
	_, err = OpenCache(r, "mem:?capacity=many")
	refused(t, err, ErrInvalidArgument, "capacity")
	_, err = OpenCache(r, "")
	if err == nil {
		t.Error("an empty URL was opened")
	}
	_, err = m.Keys(tokens(16), KeyOptions{BlockTokens: 17})
	refused(t, err, ErrInvalidArgument, "block_tokens", "17")
	_, err = BlockHashes(tokens(16), 0, nil, nil)
	refused(t, err, ErrInvalidArgument)
	n := DefaultNodeOptions()
	n.StallMS = 1
	_, err = OpenNode(r, m, n)
	refused(t, err, ErrInvalidArgument, "stall_ms", "1")
	v := DefaultVerifierOptions()
	_, err = NewVerifier(v)
	refused(t, err, ErrInvalidArgument)
	_, err = NewMemory(-1)
	refused(t, err, ErrInvalidArgument, "-1")
	// Below the idiomatic layer: records and arrays of sizes that it never makes.
	_, err = call("runtime create", func(text []byte) int64 { return flat.Kvtf_runtime_create(make([]byte, 7), text) })
	refused(t, err, ErrInvalidArgument, "record", "7 bytes")
	_, err = call("runtime create", func(text []byte) int64 { return flat.Kvtf_runtime_create(record(-1), text) })
	refused(t, err, ErrInvalidArgument, "threads", "-1")
	c := newCache(t, r, "mem:?capacity=1MiB")
	_, err = c.ref.on("match", func(h int64, text []byte) int64 { return flat.Kvtf_cache_match(h, make([]byte, 35), text) })
	refused(t, err, ErrInvalidArgument, "35")
	_, err = c.PutAll(make([]Key, 2), [][]byte{{1}}, wait)
	refused(t, err, ErrInvalidArgument, "lengths")
	_, err = c.PutAll([]Key{{1}}, [][]byte{{1}}, -wait)
	refused(t, err, ErrInvalidArgument, "timeout_ms")
	refused(t, c.Put(&Key{1}, nil), ErrInvalidArgument, "frame")
	refused(t, c.Put(&Key{}, []byte{1}), ErrInvalidArgument, "key")
}

func TestBadInputFrames(t *testing.T) {
	c, m := newCache(t, newRuntime(t), "mem:?capacity=16MiB"), newModel(t)
	codec := newCodec(t, m, "raw")
	keys, list := frames(t, m, 2)
	loaded := emptyView(16)
	for _, at := range []int{0, 40, len(list[0]) / 2, len(list[0]) - 1} {
		damaged := append([]byte(nil), list[0]...)
		damaged[at] ^= 1
		if err := VerifyFrame(damaged); StatusOf(err) != ErrCorrupt && StatusOf(err) != ErrVersion {
			t.Errorf("byte %d: %v", at, err)
		}
		if err := c.Put(&keys[0], damaged); err == nil {
			t.Errorf("byte %d: a damaged frame was put", at)
		}
	}
	refused(t, VerifyFrame(list[0][:100]), ErrCorrupt)
	refused(t, VerifyFrame(nil), ErrInvalidArgument)
	refused(t, c.Put(&keys[0], list[0][:100]), ErrCorrupt)
	refused(t, c.Put(&keys[1], list[0]), ErrMismatch, "key")
	_, err := codec.Decode(list[0], loaded, Spec{TokenCount: 16, Key: keys[1]})
	refused(t, err, ErrMismatch, "key")
	o := modelOptions()
	o.ID = []byte("other weights")
	other, err := NewModel(o)
	closing(t, must(t, other, err))
	_, err = newCodec(t, other, "raw").Decode(list[0], loaded, Spec{TokenCount: 16, Key: keys[0]})
	refused(t, err, ErrMismatch, "model")
	refused(t, m.Compare(other), ErrMismatch, "model_id")
	ok(t, m.Compare(m))
	n, err := c.Match(keys)
	equal(t, must(t, n, err), 0)
}

func TestBadInputViews(t *testing.T) {
	codec := newCodec(t, newModel(t), "raw")
	check := func(status Status, change func(v *View)) {
		t.Helper()
		v := viewOf(16)
		change(&v)
		_, _, err := codec.Encode(v, Spec{TokenCount: 16})
		refused(t, err, status)
	}
	check(ErrOutOfRange, func(v *View) { v.Memory = v.Memory[:len(v.Memory)-1] })
	check(ErrOutOfRange, func(v *View) { v.Memory = nil })
	check(ErrOutOfRange, func(v *View) { v.Bases[0] = -2 })
	check(ErrOutOfRange, func(v *View) { v.Bases[3]++ })
	check(ErrOutOfRange, func(v *View) { v.TokenStride[0] = -v.TokenStride[0] })
	check(ErrOutOfRange, func(v *View) { v.TokenStride[1] = math.MaxInt64 })
	check(ErrOutOfRange, func(v *View) { v.BlockTable, v.PageTokens, v.PageStride = []int32{1 << 30}, 16, [2]int64{2048, 2048} })
	check(ErrInvalidArgument, func(v *View) { v.BlockTable, v.PageTokens = []int32{0}, 8 })
	check(ErrInvalidArgument, func(v *View) { v.Bases = v.Bases[:3] })
	check(ErrInvalidArgument, func(v *View) { v.Element = 99 })
	_, _, err := codec.Encode(viewOf(16), Spec{TokenBegin: 8, TokenCount: 16})
	refused(t, err, ErrOutOfRange)
}

func TestBadInputText(t *testing.T) {
	m := newModel(t)
	plain, err := m.Keys(tokens(16), KeyOptions{})
	must(t, plain, err)
	seen := map[Key]string{plain[0]: "none"}
	for _, text := range []string{"Zoë", "日本語", "a\x00b", "a"} {
		keys, err := m.Keys(tokens(16), KeyOptions{Namespace: []byte(text)})
		must(t, keys, err)
		if before, found := seen[keys[0]]; found {
			t.Errorf("%q has the key of %q", text, before)
		}
		seen[keys[0]] = text
	}
	meter, err := NewMeter(newRuntime(t))
	closing(t, must(t, meter, err))
	request, err := meter.Begin("日本語 Zoë")
	ok(t, request.End())
	text, err := meter.JSON()
	if !strings.Contains(must(t, text, err), "日本語 Zoë") {
		t.Errorf("the label is lost: %s", text)
	}
	_, err = meter.Begin("")
	refused(t, err, ErrInvalidArgument)
	_, err = NewCodec(m, "zoë", nil)
	refused(t, err, ErrUnsupported, "zoë")
}
