// One test a case of tests/bindings/cases.toml.
package kvartet

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"kvartet/internal/generated/flat"
)

func TestVersionAndAbi(t *testing.T) {
	if !strings.HasPrefix(Version(), "0.") {
		t.Errorf("version %q", Version())
	}
	equal(t, ABIVersion(), uint32(flat.Kvtf_header_abi_version()))
	ok(t, compareABI(0x00010002, 0x00010001))
	refused(t, compareABI(0x00020000, 0x00010000), ErrVersion, "2.0", "1.0")
	refused(t, compareABI(0x00000002, 0x00000001), ErrVersion, "0.2", "0.1")
}

func TestDefaultsAreTheLibrarys(t *testing.T) {
	equal(t, DefaultRuntimeOptions().Threads, uint32(2))
	equal(t, DefaultModelOptions().Element, F16)
	equal(t, DefaultModelOptions().RopeMagnitude, 1.0)
	equal(t, DefaultCodecOptions().GroupTokens, uint32(32))
	equal(t, DefaultNodeOptions().StallMS, uint32(2000))
	equal(t, DefaultVerifierOptions().DraftLength, uint32(8))
}

func TestUnknownStatusKeepsItsNumber(t *testing.T) {
	equal(t, Status(-1234).Error(), "KVT_STATUS_UNKNOWN")
	equal(t, int32(Status(-1234)), int32(-1234))
	equal(t, ErrTimeout.Error(), "KVT_ERR_TIMEOUT")
	equal(t, int32(ErrNotFound), int32(-20))
}

func TestPutGetRoundTrip(t *testing.T) {
	r, m := newRuntime(t), newModel(t)
	keys, list := frames(t, m, 3)
	for _, url := range []string{"mem:?capacity=16MiB", "file:" + t.TempDir()} {
		c := newCache(t, r, url)
		ok(t, c.Put(&keys[0], list[0]))
		statuses, err := c.PutAll(keys[1:], list[1:], wait)
		equal(t, len(must(t, statuses, err)), 2)
		for i := range keys {
			frame, err := c.Get(keys[i])
			if !bytes.Equal(must(t, frame, err), list[i]) {
				t.Fatalf("frame %d of %s differs", i, url)
			}
		}
		stats, err := c.Stats()
		equal(t, must(t, stats, err).Frames, uint64(3))
		equal(t, stats.Puts, uint64(3))
	}
}

func TestMatchPrefix(t *testing.T) {
	c, m := newCache(t, newRuntime(t), "mem:?capacity=16MiB"), newModel(t)
	keys, list := frames(t, m, 4)
	for _, i := range []int{0, 1, 3} {
		ok(t, c.Put(&keys[i], list[i]))
	}
	n, err := c.Match(keys)
	equal(t, must(t, n, err), 2)
	n, err = c.Match(nil)
	equal(t, must(t, n, err), 0)
	n, err = c.Remove(keys[:3])
	equal(t, must(t, n, err), 2)
	n, err = c.Match(keys)
	equal(t, must(t, n, err), 0)
}

func TestMissingKey(t *testing.T) {
	c := newCache(t, newRuntime(t), "mem:?capacity=1MiB")
	_, err := c.Get(Key{1})
	refused(t, err, ErrNotFound)
	if err.(*Error).Text == "" {
		t.Error("no text")
	}
}

func TestStoreLoadView(t *testing.T) {
	c, m := newCache(t, newRuntime(t), "mem:?capacity=16MiB"), newModel(t)
	codec := newCodec(t, m, "raw")
	keys, err := m.Keys(tokens(64), KeyOptions{})
	must(t, keys, err)
	made, loaded := viewOf(64), emptyView(64)
	statuses, err := c.Store(codec, made, Spec{}, 16, keys[:3], wait)
	equal(t, len(must(t, statuses, err)), 3)
	statuses, err = c.Load(codec, loaded, Spec{}, 16, keys, wait)
	refused(t, err, ErrNotFound)
	equal(t, statuses[2], Status(0))
	equal(t, statuses[3], ErrNotFound)
	plane := len(made.Memory) / 4
	for p := 0; p < 4; p++ {
		if !bytes.Equal(made.Memory[p*plane:][:plane*3/4], loaded.Memory[p*plane:][:plane*3/4]) {
			t.Fatalf("plane %d differs", p)
		}
	}
}

func TestAsyncEventDescriptor(t *testing.T) {
	c, m := newCache(t, newRuntime(t), "mem:?capacity=16MiB"), newModel(t)
	keys, list := frames(t, m, 2)
	fd, err := c.EventFD()
	if must(t, fd, err) < 0 {
		t.Fatal("no descriptor")
	}
	ready, err := c.WaitEvent(0)
	equal(t, must(t, ready, err), false)
	o, err := c.SubmitPut(keys, list, wait)
	must(t, o, err)
	ready, err = c.WaitEvent(wait)
	equal(t, must(t, ready, err), true)
	done, err := c.Poll(8)
	equal(t, len(must(t, done, err)), 1)
	equal(t, done[0].ID, o.ID())
	equal(t, done[0].ItemsOK, uint64(2))
	ready, err = c.WaitEvent(0)
	equal(t, must(t, ready, err), false)
	again, err := o.Wait(0)
	equal(t, must(t, again, err).ItemsOK, uint64(2))
	statuses, err := o.Results()
	equal(t, len(must(t, statuses, err)), 2)
	equal(t, statuses[1], Status(0))
	ok(t, o.Close())
}

func TestAsyncLoadIntoMemory(t *testing.T) {
	c, m := newCache(t, newRuntime(t), "mem:?capacity=16MiB"), newModel(t)
	codec := newCodec(t, m, "raw")
	keys, err := m.Keys(tokens(32), KeyOptions{})
	must(t, keys, err)
	v := viewOf(32)
	from, err := NewMemory(len(v.Memory))
	closing(t, must(t, from, err))
	to, err := NewMemory(len(v.Memory))
	closing(t, must(t, to, err))
	ok(t, from.Write(0, v.Memory))
	o, err := c.SubmitStore(codec, v, from, Spec{}, 16, keys, wait)
	must(t, o, err)
	refused(t, from.Close(), ErrBusy)
	_, err = o.Wait(wait)
	ok(t, err)
	ok(t, o.Close())
	o, err = c.SubmitLoad(codec, v, to, Spec{}, 16, keys, wait)
	must(t, o, err)
	_, err = o.Wait(wait)
	ok(t, err)
	ok(t, o.Close())
	got := make([]byte, len(v.Memory))
	ok(t, to.Read(0, got))
	if !bytes.Equal(got, v.Memory) {
		t.Fatal("the loaded bytes differ")
	}
	refused(t, to.Read(1, got), ErrOutOfRange, "offset 1")
}

func TestOperationCancel(t *testing.T) {
	c, m := newCache(t, newRuntime(t), "mem:?capacity=16MiB"), newModel(t)
	keys, list := frames(t, m, 2)
	for i := 0; i < 50; i++ {
		o, err := c.SubmitPut(keys, list, wait)
		must(t, o, err)
		if i%2 == 0 {
			if err := o.Cancel(); err != nil {
				refused(t, err, ErrNotFound)
			}
			if _, err := o.Wait(wait); err != nil {
				refused(t, err, ErrCancelled)
			}
		}
		ok(t, o.Close())
	}
	ok(t, c.Put(&keys[0], list[0]))
	n, err := c.Match(keys[:1])
	equal(t, must(t, n, err), 1)
}

// pair is a node that serves a cache and a peer of it.
func pair(t *testing.T, r *Runtime, m *Model) (*Cache, *Node, *Peer) {
	c := newCache(t, r, "mem:?capacity=16MiB")
	o := DefaultNodeOptions()
	client, err := OpenNode(r, m, o)
	closing(t, must(t, client, err))
	o.Listen = "tcp://127.0.0.1:0"
	server, err := OpenNode(r, m, o)
	closing(t, must(t, server, err))
	ok(t, server.Serve(c))
	url, err := server.URL()
	peer, err := client.Connect(must(t, url, err), wait)
	return c, client, closing(t, must(t, peer, err))
}

func TestPullBetweenNodes(t *testing.T) {
	r, m := newRuntime(t), newModel(t)
	keys, list := frames(t, m, 3)
	c, client, peer := pair(t, r, m)
	ok(t, c.Put(&keys[0], list[0]))
	ok(t, c.Put(&keys[2], list[2]))
	got, statuses, err := peer.Pull(keys, len(list[0])+4096, wait)
	refused(t, err, ErrNotFound)
	equal(t, statuses[1], ErrNotFound)
	if !bytes.Equal(got[0], list[0]) || got[1] != nil || !bytes.Equal(got[2], list[2]) {
		t.Fatal("the pulled frames differ")
	}
	o, err := peer.SubmitPull(keys[:1], len(list[0]), wait)
	must(t, o, err)
	ready, err := client.WaitEvent(wait)
	equal(t, must(t, ready, err), true)
	done, err := client.Poll(4)
	equal(t, must(t, done, err)[0].ID, o.ID())
	frame, err := o.Frame(0)
	if !bytes.Equal(must(t, frame, err), list[0]) {
		t.Fatal("the frame differs")
	}
	_, err = o.Frame(1)
	refused(t, err, ErrOutOfRange)
	ok(t, o.Close())
	stats, err := client.Stats()
	equal(t, must(t, stats, err).FramesReceived, uint64(3))
}

func TestPushBetweenNodes(t *testing.T) {
	r, m := newRuntime(t), newModel(t)
	keys, list := frames(t, m, 3)
	c, _, peer := pair(t, r, m)
	statuses, err := peer.Push(keys[:2], list[:2], wait)
	equal(t, len(must(t, statuses, err)), 2)
	o, err := peer.SubmitPush(keys[2:], list[2:], wait)
	must(t, o, err)
	_, err = o.Wait(wait)
	ok(t, err)
	ok(t, o.Close())
	n, err := c.Match(keys)
	equal(t, must(t, n, err), 3)
}

func TestHandshakeRefused(t *testing.T) {
	r, m := newRuntime(t), newModel(t)
	o := DefaultNodeOptions()
	o.Listen = "tcp://127.0.0.1:0"
	server, err := OpenNode(r, m, o)
	closing(t, must(t, server, err))
	o = DefaultNodeOptions()
	o.Digest, err = NamespaceDigest([]byte("tenant-a"), nil)
	ok(t, err)
	client, err := OpenNode(r, m, o)
	closing(t, must(t, client, err))
	url, err := server.URL()
	_, err = client.Connect(must(t, url, err), wait)
	refused(t, err, ErrMismatch, "namespace")
}

func TestKeysEqualVectors(t *testing.T) {
	o := DefaultModelOptions()
	for i := byte(0); i < 32; i++ {
		o.ID = append(o.ID, i)
	}
	o.Layers, o.KVHeads, o.KDim, o.VDim = 30, 3, 64, 64
	o.RopeStyle, o.RopeDims, o.RopeBase = RopeInterleaved, 64, 100000
	m, err := NewModel(o)
	closing(t, must(t, m, err))
	canonical, err := m.Canonical()
	equal(t, len(must(t, canonical, err)), 112)
	fingerprint, err := m.Fingerprint()
	equal(t, hex.EncodeToString(must(t, fingerprint, err)), "20259ad5389b8b5f1ce670669da7a0da")
	vectors := []struct {
		options KeyOptions
		chain   [2]string
	}{
		{KeyOptions{}, [2]string{"56c921061e63c97331e3a59715d1099a665585aa3880dafac5107aae839bb03b",
			"0b132405f5122541ba08cd14e16acce55ef14bfd06b0e952fb5c90d00d120886"}},
		{KeyOptions{Namespace: []byte("tenant-a"), Salt: []byte("pepper")},
			[2]string{"1d31bfde7267df240436194b55b0735f636a8218c8c2f38cf4dab62a01094bd0",
				"c26272a154c561e5a041eb28efb78c07009e47ff142c443de5332049b27d4c6d"}},
		{KeyOptions{Extras: []Extra{{3, []byte{1, 2, 3}}, {17, []byte("image")}}},
			[2]string{"5d3d84a4c100854c48814e6d931274f3d1233706e424cb35b7a021f63a1b9f8a",
				"bfca45666621d39303a958484e5f1932060a3e9344828b9f321681b2ce45b0e9"}},
	}
	for _, vector := range vectors {
		keys, err := m.Keys(tokens(32), vector.options)
		equal(t, len(must(t, keys, err)), 2)
		for i, key := range keys {
			equal(t, hex.EncodeToString(key[:]), vector.chain[i]+"10000000")
		}
		vector.options.BlockTokens = 32
		keys, err = m.Keys(tokens(32), vector.options)
		equal(t, len(must(t, keys, err)), 1)
		equal(t, hex.EncodeToString(keys[0][:]), vector.chain[1]+"20000000")
	}
	digest, err := NamespaceDigest(nil, nil)
	equal(t, hex.EncodeToString(must(t, digest[:], err)), "97f3e77796337b15dde4bf6fb3a6befa")
	digest, err = NamespaceDigest([]byte("tenant-a"), []byte("pepper"))
	equal(t, hex.EncodeToString(must(t, digest[:], err)), "0f4d37556fc49ac97e98b140c1a41532")
	for _, vector := range []struct {
		adapter, namespace string
		hashes             [2]uint64
	}{{"", "", [2]uint64{15310707395893867146, 13769157705258532664}},
		{"my-lora", "", [2]uint64{7774427462321301335, 13956809587245606139}},
		{"", "tenant-a", [2]uint64{2130915519417463704, 13676355973429745432}}} {
		hashes, err := BlockHashes(tokens(32), 16, []byte(vector.adapter), []byte(vector.namespace))
		equal(t, *(*[2]uint64)(must(t, hashes, err)), vector.hashes)
	}
}

func TestCodecLossyAndDescribed(t *testing.T) {
	m := newModel(t)
	codec := newCodec(t, m, "kivi4")
	v := viewOf(64)
	v.Memory[0], v.Memory[1] = 0, 0x7e // a NaN
	frame, report, err := codec.Encode(v, Spec{TokenCount: 64})
	must(t, frame, err)
	equal(t, report.Nonfinite, uint64(1))
	equal(t, report.FrameBytes, uint64(len(frame)))
	if len(frame) >= len(v.Memory)/2 {
		t.Errorf("frame of %d bytes for %d", len(frame), len(v.Memory))
	}
	ok(t, VerifyFrame(frame))
	text, err := DescribeFrame(frame)
	var described map[string]any
	ok(t, json.Unmarshal([]byte(must(t, text, err)), &described))
	if !strings.Contains(text, "kivi4") {
		t.Errorf("description %s", text)
	}
	loaded := emptyView(64)
	report, err = codec.Decode(frame, loaded, Spec{TokenCount: 64})
	equal(t, must(t, report, err).DecodedBytes, uint64(len(v.Memory)))
	for i := 2; i < len(v.Memory); i += 2 {
		if d := half(v.Memory[i:]) - half(loaded.Memory[i:]); math.Abs(d) > 0.15 {
			t.Fatalf("element %d is off by %v", i/2, d)
		}
	}
}

// half reads a finite f16.
func half(b []byte) float64 {
	x := int(b[0]) | int(b[1])<<8
	exponent, mantissa := x>>10&31, float64(x&1023)
	if exponent == 0 {
		return mantissa / 1024 * math.Pow(2, -14)
	}
	return (1 + mantissa/1024) * math.Pow(2, float64(exponent-15))
}

func TestWrongSize(t *testing.T) {
	c, m := newCache(t, newRuntime(t), "mem:?capacity=16MiB"), newModel(t)
	keys, list := frames(t, m, 1)
	ok(t, c.Put(&keys[0], list[0]))
	small := make([]byte, len(list[0])-1)
	n, err := c.GetInto(&keys[0], small)
	refused(t, err, ErrBufferTooSmall)
	equal(t, n, len(list[0]))
	if !bytes.Equal(small, make([]byte, len(small))) {
		t.Error("the buffer was written")
	}
	whole := make([]byte, len(list[0])+8)
	n, err = c.GetInto(&keys[0], whole)
	equal(t, must(t, n, err), len(list[0]))
	if !bytes.Equal(whole[:n], list[0]) {
		t.Error("the frame differs")
	}
	_, err = c.ref.on("put", func(h int64, text []byte) int64 {
		length := []uint64{uint64(len(list[0]))}
		return flat.Kvtf_cache_put(h, keys[0][:], list[0], bytesOf(length), make([]byte, 3), 100, text)
	})
	refused(t, err, ErrBufferTooSmall, "results")
}

func TestMeterJson(t *testing.T) {
	meter, err := NewMeter(newRuntime(t))
	closing(t, must(t, meter, err))
	for i := 0; i < 3; i++ {
		request, err := meter.Begin("raw")
		ok(t, err)
		ok(t, request.Part(PartQueue))
		ok(t, request.Part(PartPrefill))
		ok(t, request.Count(CounterTokensPrompt, 100))
		ok(t, request.FirstToken())
		refused(t, request.Part(PartPrefill), ErrInvalidArgument)
		ok(t, request.End())
		refused(t, request.End(), ErrNotFound)
	}
	ok(t, meter.Count(CounterChecksums, 7))
	refused(t, meter.Count(999, 1), ErrInvalidArgument)
	text, err := meter.JSON()
	var summary struct {
		Ways []struct {
			Way      string
			Requests int
			Counters map[string]uint64
		}
		Counters map[string]uint64
	}
	ok(t, json.Unmarshal([]byte(must(t, text, err)), &summary))
	equal(t, summary.Ways[0].Way, "raw")
	equal(t, summary.Ways[0].Requests, 3)
	equal(t, summary.Ways[0].Counters["tokens_prompt"], uint64(300))
	equal(t, summary.Counters["checksums"], uint64(7))
	advice, err := meter.Advice()
	if must(t, advice, err) == "" {
		t.Error("no advice")
	}
}
