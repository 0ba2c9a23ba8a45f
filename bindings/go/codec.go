package kvartet

import "kvartet/internal/generated/flat"

// Codec turns views into frames and back.
type Codec struct{ ref *ref }

// CodecOptions: begin with DefaultCodecOptions.
type CodecOptions struct {
	GroupTokens, GroupChannels uint32 // kivi
	Ratio                      uint32 // transform: raw bytes to stored bytes
	Profile                    []byte // transform: see Calibration
}

// DefaultCodecOptions are the library's.
func DefaultCodecOptions() CodecOptions {
	d := mustDefaults(flat.KVTF_RECORD_CODEC)
	return CodecOptions{GroupTokens: uint32(word(d, flat.KVTF_CODEC_GROUP_TOKENS)),
		GroupChannels: uint32(word(d, flat.KVTF_CODEC_GROUP_CHANNELS)), Ratio: uint32(word(d, flat.KVTF_CODEC_RATIO))}
}

// NewCodec creates a codec such as "raw", "kivi4" or "transform"; nil options are the defaults.
func NewCodec(model *Model, name string, options *CodecOptions) (*Codec, error) {
	var packed, profile []byte
	if options != nil {
		packed = record(int64(options.GroupTokens), int64(options.GroupChannels), int64(options.Ratio))
		profile = options.Profile
	}
	r, err := newRef("codec", []*ref{model.ref}, destroyed(flat.Kvtf_codec_destroy), func(h []int64) (int64, error) {
		return call("codec create", func(text []byte) int64 {
			return flat.Kvtf_codec_create(h[0], []byte(name), packed, profile, text)
		})
	})
	if err != nil {
		return nil, err
	}
	return &Codec{r}, nil
}

// Close ends the codec.
func (c *Codec) Close() error { return c.ref.close() }

// View says where KV lies in Memory: base i (layer by layer, stream by stream) is an offset into it. Strides are
// in bytes, one a stream. Nothing is copied; a view that leaves Memory is refused.
type View struct {
	Element                                            Element
	LayerBegin, LayerEnd, HeadBegin, HeadEnd           uint32
	Tokens, FirstPosition                              uint64
	TokenStride, HeadStride, ElementStride, PageStride [2]int64
	PageTokens                                         uint32
	Bases                                              []int64
	BlockTable                                         []int32
	Memory                                             []byte
}

func (v *View) record() []byte {
	return record(int64(v.Element), int64(v.LayerBegin), int64(v.LayerEnd), int64(v.HeadBegin), int64(v.HeadEnd),
		int64(v.Tokens), int64(v.FirstPosition), v.TokenStride[0], v.TokenStride[1], v.HeadStride[0], v.HeadStride[1],
		v.ElementStride[0], v.ElementStride[1], v.PageStride[0], v.PageStride[1], int64(v.PageTokens))
}

// ContiguousView lays out `tokens` rows of f16 K and V planes, one after another, layer by layer; Memory is for
// the caller to set, ViewBytes long.
func ContiguousView(o ModelOptions, tokens int) View {
	v := View{Element: F16, LayerEnd: o.Layers, HeadEnd: o.KVHeads, Tokens: uint64(tokens)}
	at := int64(0)
	for s, dim := range [2]uint32{o.KDim, o.VDim} {
		v.ElementStride[s] = 2
		v.HeadStride[s] = 2 * int64(dim)
		v.TokenStride[s] = v.HeadStride[s] * int64(o.KVHeads)
	}
	for layer := uint32(0); layer < o.Layers; layer++ {
		for s := 0; s < 2 && v.TokenStride[s] > 0; s++ {
			v.Bases = append(v.Bases, at)
			at += v.TokenStride[s] * int64(tokens)
		}
	}
	return v
}

// ViewBytes is the memory that a ContiguousView needs.
func ViewBytes(o ModelOptions, tokens int) int {
	return 2 * int(o.KDim+o.VDim) * int(o.KVHeads) * int(o.Layers) * tokens
}

// Spec is what a frame is of; the zero value: all layers, no exempt tokens.
type Spec struct {
	LayerBegin, LayerEnd, ExemptFirst, ExemptLast uint32
	TokenBegin, TokenCount                        uint64
	Key                                           Key
	Digest                                        Digest
}

func (s *Spec) record() []byte {
	return record(int64(s.LayerBegin), int64(s.LayerEnd), int64(s.ExemptFirst), int64(s.ExemptLast),
		int64(s.TokenBegin), int64(s.TokenCount))
}

// Report is what a codec did.
type Report struct{ Segments, FrameBytes, DecodedBytes, Nonfinite, Checksums uint64 }

func reportOf(bytes []byte) Report {
	return Report{uint64(word(bytes, flat.KVTF_REPORT_SEGMENTS)), uint64(word(bytes, flat.KVTF_REPORT_FRAME_BYTES)),
		uint64(word(bytes, flat.KVTF_REPORT_DECODED_BYTES)), uint64(word(bytes, flat.KVTF_REPORT_NONFINITE)),
		uint64(word(bytes, flat.KVTF_REPORT_CHECKSUMS))}
}

// Bound is the most bytes that Encode writes.
func (c *Codec) Bound(v View, s Spec) (int, error) {
	n, err := c.ref.on("bound", func(codec int64, text []byte) int64 {
		return flat.Kvtf_codec_bound(codec, v.record(), bytesOf(v.Bases), bytesOf(v.BlockTable), v.Memory, s.record(), text)
	})
	return int(n), err
}

// Encode makes one frame.
func (c *Codec) Encode(v View, s Spec) ([]byte, Report, error) {
	bound, err := c.Bound(v, s)
	if err != nil {
		return nil, Report{}, err
	}
	report := make([]byte, 8*flat.KVTF_REPORT_WORDS)
	frame, err := c.ref.onOutput("encode", bound, func(codec int64, buf, text []byte) int64 {
		return flat.Kvtf_codec_encode(codec, v.record(), bytesOf(v.Bases), bytesOf(v.BlockTable), v.Memory, s.record(),
			s.Key[:], digestBytes(s.Digest), buf, report, text)
	})
	return frame, reportOf(report), err
}

// Decode checks a frame against the spec and writes it into the view. After an error the rows must not be used.
func (c *Codec) Decode(frame []byte, v View, s Spec) (Report, error) {
	report := make([]byte, 8*flat.KVTF_REPORT_WORDS)
	_, err := c.ref.on("decode", func(codec int64, text []byte) int64 {
		return flat.Kvtf_codec_decode(codec, frame, v.record(), bytesOf(v.Bases), bytesOf(v.BlockTable), v.Memory,
			s.record(), s.Key[:], digestBytes(s.Digest), report, text)
	})
	return reportOf(report), err
}

// VerifyFrame checks a whole frame without decoding it.
func VerifyFrame(frame []byte) error {
	_, err := call("frame verify", func(text []byte) int64 { return flat.Kvtf_frame_verify(frame, text) })
	return err
}

// DescribeFrame gives a frame's header as JSON.
func DescribeFrame(frame []byte) (string, error) {
	text, err := output("frame describe", 1024, func(buf, text []byte) int64 {
		return flat.Kvtf_frame_describe(frame, buf, text)
	})
	return string(text), err
}
