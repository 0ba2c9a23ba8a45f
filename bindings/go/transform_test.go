package kvartet

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"
)

// document is a view of `n` tokens whose rows, from 1 to 2, vary in few directions, as those of a text do.
func document(n, seed int) View {
	v := emptyView(n)
	row := int(v.TokenStride[0] / 2)
	for i := 0; i < len(v.Memory)/2; i++ {
		token, channel := i/row%n, i%row
		mantissa := 512 + (token*seed*13%31-15)*(channel%17-8)*4
		v.Memory[2*i], v.Memory[2*i+1] = byte(mantissa), byte(0x3c|mantissa>>8)
	}
	return v
}

// newProfile calibrates a profile of two documents.
func newProfile(t *testing.T, m *Model) ([]byte, *Calibration) {
	c, err := NewCalibration(m, nil)
	closing(t, must(t, c, err))
	for seed := 1; seed <= 2; seed++ {
		ok(t, c.Add(document(128, seed), 0, 128))
	}
	profile, err := c.Finish()
	return must(t, profile, err), c
}

func transform(m *Model, profile []byte, ratio uint32) (*Codec, error) {
	o := DefaultCodecOptions()
	o.Profile, o.Ratio = profile, ratio
	return NewCodec(m, "transform", &o)
}

func TestCalibrateAndTransform(t *testing.T) {
	m := newModel(t)
	equal(t, DefaultCalibrationOptions().RatioMin, uint32(4))
	equal(t, DefaultCodecOptions().Ratio, uint32(0))
	profile, calibration := newProfile(t, m)
	info, err := calibration.Progress()
	equal(t, must(t, info, err), CalibrationInfo{2, 2 * 124, 0})
	saved, err := calibration.Save()
	restored, err := RestoreCalibration(m, must(t, saved, err))
	closing(t, must(t, restored, err))
	again, err := restored.Finish()
	if !bytes.Equal(must(t, again, err), profile) {
		t.Fatal("the restored calibration makes another profile")
	}
	described, err := DescribeProfile(profile)
	if !strings.Contains(must(t, described, err), "groups") {
		t.Errorf("description %s", described)
	}
	codec, err := transform(m, profile, 8)
	closing(t, must(t, codec, err))
	v := document(128, 1)
	frame, _, err := codec.Encode(v, Spec{TokenCount: 128})
	if len(must(t, frame, err)) > len(v.Memory)/5 {
		t.Errorf("frame of %d bytes for %d", len(frame), len(v.Memory))
	}
	loaded := emptyView(128)
	report, err := codec.Decode(frame, loaded, Spec{TokenCount: 128})
	equal(t, must(t, report, err).DecodedBytes, uint64(len(v.Memory)))
	var sum float64
	for i := 0; i < len(v.Memory); i += 2 {
		sum += math.Abs(half(v.Memory[i:]) - half(loaded.Memory[i:]))
	}
	if mean := sum / float64(len(v.Memory)/2); !(mean < 0.05) {
		t.Errorf("elements are off by %v", mean)
	}
}

func TestProfileMissing(t *testing.T) {
	c, m := newCache(t, newRuntime(t), "mem:?capacity=16MiB"), newModel(t)
	profile, _ := newProfile(t, m)
	codec, err := transform(m, profile, 8)
	closing(t, must(t, codec, err))
	frame, _, err := codec.Encode(document(64, 1), Spec{TokenCount: 64})
	must(t, frame, err)
	loaded := emptyView(64)
	_, err = newCodec(t, m, "raw").Decode(frame, loaded, Spec{TokenCount: 64})
	refused(t, err, ErrProfileMissing, "profile")
	// The profile travels like a frame.
	fingerprint, err := ProfileFingerprint(profile)
	key, err := ProfileKey(must(t, fingerprint, err))
	must(t, key, err)
	wrapped, err := WrapProfile(profile, Digest{})
	ok(t, c.Put(&key, must(t, wrapped, err)))
	fetched, err := c.Get(key)
	fetched, err = UnwrapProfile(must(t, fetched, err))
	if !bytes.Equal(must(t, fetched, err), profile) {
		t.Fatal("the fetched profile differs")
	}
	other, err := transform(m, fetched, 4)
	closing(t, must(t, other, err))
	_, err = other.Decode(frame, loaded, Spec{TokenCount: 64})
	ok(t, err)
}

func TestBadInputProfiles(t *testing.T) {
	m := newModel(t)
	profile, calibration := newProfile(t, m)
	_, err := transform(m, nil, 8)
	refused(t, err, ErrInvalidArgument, "profile")
	for _, ratio := range []uint32{3, 33} {
		_, err = transform(m, profile, ratio)
		refused(t, err, ErrInvalidArgument, "ratio")
	}
	for _, at := range []int{0, 8, len(profile) / 2, len(profile) - 1} {
		damaged := append([]byte(nil), profile...)
		damaged[at] ^= 1
		if _, err = transform(m, damaged, 8); StatusOf(err) != ErrCorrupt && StatusOf(err) != ErrVersion {
			t.Errorf("byte %d: %v", at, err)
		}
	}
	_, err = ProfileFingerprint(profile[:len(profile)/2])
	refused(t, err, ErrCorrupt)
	o := modelOptions()
	o.ID = []byte("other weights")
	other, err := NewModel(o)
	closing(t, must(t, other, err))
	_, err = transform(other, profile, 8)
	refused(t, err, ErrMismatch)
	saved, err := calibration.Save()
	_, err = RestoreCalibration(other, must(t, saved, err))
	refused(t, err, ErrMismatch)
	_, err = RestoreCalibration(m, saved[:len(saved)-1])
	refused(t, err, ErrCorrupt)
	options := DefaultCalibrationOptions()
	options.RatioMin = 3
	_, err = NewCalibration(m, &options)
	refused(t, err, ErrInvalidArgument, "ratio_min")
	empty, err := NewCalibration(m, nil)
	closing(t, must(t, empty, err))
	_, err = empty.Finish()
	refused(t, err, ErrOutOfRange, "64")
	refused(t, empty.Add(document(16, 1), 0, 17), ErrOutOfRange, "token")
	short := document(16, 1)
	short.Memory = short.Memory[:len(short.Memory)-1]
	refused(t, empty.Add(short, 0, 16), ErrOutOfRange, "memory")
	_, err = ProfileKey([]byte{1})
	refused(t, err, ErrInvalidArgument, "fingerprint")
	_, frames := frames(t, m, 1)
	_, err = UnwrapProfile(frames[0])
	refused(t, err, ErrMismatch)
}

func TestRopeAndShard(t *testing.T) {
	o := modelOptions()
	o.RopeStyle, o.RopeDims, o.RopeBase = RopeHalfSplit, o.KDim, 10000
	m, err := NewModel(o)
	closing(t, must(t, m, err))
	shard, err := m.Shard()
	equal(t, must(t, shard, err), Shard{0, 2, 0, 2, 16})
	v, before := document(32, 1), document(32, 1)
	v.FirstPosition = 100
	ok(t, m.Rope(v, 8, 24, true))
	row := int(v.TokenStride[0])
	if !bytes.Equal(v.Memory[:8*row], before.Memory[:8*row]) || bytes.Equal(v.Memory[8*row:32*row], before.Memory[8*row:32*row]) {
		t.Error("other tokens were turned than those asked for")
	}
	ok(t, m.Rope(v, 8, 24, false))
	for i := 0; i < len(v.Memory); i += 2 {
		if d := half(v.Memory[i:]) - half(before.Memory[i:]); math.Abs(d) > 0.01 {
			t.Fatalf("element %d is off by %v", i/2, d)
		}
	}
	refused(t, m.Rope(v, 8, 25, true), ErrOutOfRange, "token")
	v.Memory = v.Memory[:len(v.Memory)-1]
	refused(t, m.Rope(v, 0, 1, true), ErrOutOfRange, "memory")
}

// awaitPart polls until `parts` of an operation are in place; false at its end.
func awaitPart(t *testing.T, n *Node, o *Operation, parts uint64) bool {
	for deadline := time.Now().Add(wait); time.Now().Before(deadline); {
		_, err := n.WaitEvent(wait)
		ok(t, err)
		done, err := n.Poll(1)
		for _, c := range must(t, done, err) {
			equal(t, c.ID, o.ID())
			if !c.Part {
				return false
			}
			if c.ItemsOK == parts {
				return true
			}
		}
	}
	t.Fatal("no part came")
	return false
}

// streamPair is a node, a client of it, and the peer that the client sees.
func streamPair(t *testing.T, m *Model) (*Node, *Node, *Peer) {
	r := newRuntime(t)
	o := DefaultNodeOptions()
	client, err := OpenNode(r, m, o)
	closing(t, must(t, client, err))
	o.Listen = "tcp://127.0.0.1:0"
	server, err := OpenNode(r, m, o)
	closing(t, must(t, server, err))
	url, err := server.URL()
	peer, err := client.Connect(must(t, url, err), wait)
	return server, client, closing(t, must(t, peer, err))
}

func TestStreamByLayers(t *testing.T) {
	m := newModel(t)
	server, client, peer := streamPair(t, m)
	codec, key, v := newCodec(t, m, "raw"), Key{5}, viewOf(32)
	o, err := peer.SubmitPullStream(key, 2*len(v.Memory), 8, wait) // asked for before it is opened
	must(t, o, err)
	stream, err := server.OpenStream(key)
	must(t, stream, err)
	loaded := emptyView(32)
	for layer := uint32(0); layer < 2; layer++ {
		spec := Spec{LayerBegin: layer, LayerEnd: layer + 1, TokenCount: 32, Key: key}
		frame, _, err := codec.Encode(v, spec)
		ok(t, stream.Append(must(t, frame, err)))
		equal(t, awaitPart(t, client, o, uint64(layer)+1), true)
		got, err := o.Frame(int(layer))
		if !bytes.Equal(must(t, got, err), frame) {
			t.Fatalf("the frame of layer %d differs", layer)
		}
		_, err = codec.Decode(got, loaded, spec)
		ok(t, err)
	}
	_, err = o.Frame(2)
	refused(t, err, ErrOutOfRange, "2 parts")
	ok(t, stream.Finish())
	completion, err := o.Wait(wait)
	equal(t, must(t, completion, err).ItemsOK, uint64(2))
	if !bytes.Equal(loaded.Memory, v.Memory) {
		t.Error("the loaded rows differ")
	}
	last, err := o.Frame(1)
	refused(t, stream.Append(must(t, last, err)), ErrClosed)
	ok(t, o.Close())
	ok(t, stream.Close())
}

func TestStreamEndsEarly(t *testing.T) {
	m := newModel(t)
	server, client, peer := streamPair(t, m)
	_, list := frames(t, m, 2)
	for i, end := range []func(*Stream) error{(*Stream).Abort, (*Stream).Close} {
		key := Key{byte(i + 1)}
		stream, err := server.OpenStream(key)
		must(t, stream, err)
		_, err = server.OpenStream(key)
		refused(t, err, ErrAlreadyExists)
		refused(t, stream.Append(list[0][:100]), ErrCorrupt)
		o, err := peer.SubmitPullStream(key, 1<<20, 4, wait)
		must(t, o, err)
		ok(t, stream.Append(list[0]))
		equal(t, awaitPart(t, client, o, 1), true)
		ok(t, end(stream))
		_, err = o.Wait(wait)
		refused(t, err, ErrCancelled)
		frame, err := o.Frame(0)
		if !bytes.Equal(must(t, frame, err), list[0]) {
			t.Error("the part that came is lost")
		}
		ok(t, o.Close())
		ok(t, stream.Close())
	}
	stream, err := server.OpenStream(Key{9})
	must(t, stream, err)
	ok(t, stream.Append(list[0]))
	ok(t, stream.Append(list[1]))
	ok(t, stream.Finish())
	o, err := peer.SubmitPullStream(Key{9}, 1<<20, 1, wait)
	must(t, o, err)
	_, err = o.Wait(wait)
	refused(t, err, ErrBufferTooSmall)
	ok(t, o.Close())
	ok(t, stream.Close())
	_, err = peer.SubmitPullStream(Key{9}, 0, 1, wait)
	refused(t, err, ErrInvalidArgument, "bytes is 0")
}
