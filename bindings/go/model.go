package kvartet

import (
	"encoding/binary"
	"time"

	"kvartet/internal/generated/flat"
)

// Runtime is the library's threads and memory limit, under caches, nodes and meters.
type Runtime struct{ ref *ref }

// RuntimeOptions: begin with DefaultRuntimeOptions.
type RuntimeOptions struct {
	Threads     uint32 // worker threads, 1 to 256
	MemoryLimit uint64 // bytes for frames and buffers; 0: none
}

// DefaultRuntimeOptions are the library's.
func DefaultRuntimeOptions() RuntimeOptions {
	d := mustDefaults(flat.KVTF_RECORD_RUNTIME)
	return RuntimeOptions{uint32(word(d, flat.KVTF_RUNTIME_THREADS)), uint64(word(d, flat.KVTF_RUNTIME_MEMORY_LIMIT))}
}

// NewRuntime starts a runtime; nil options are the defaults.
func NewRuntime(options *RuntimeOptions) (*Runtime, error) {
	if err := checkABI(); err != nil {
		return nil, err
	}
	var packed []byte
	if options != nil {
		packed = record(int64(options.Threads), int64(options.MemoryLimit))
	}
	end := func(handle int64) error {
		_, err := call("runtime close", func(text []byte) int64 {
			return flat.Kvtf_runtime_close(handle, milliseconds(closeWait), text)
		})
		flat.Kvtf_runtime_destroy(handle)
		return err
	}
	r, err := newRef("runtime", nil, end, func([]int64) (int64, error) {
		return call("runtime create", func(text []byte) int64 { return flat.Kvtf_runtime_create(packed, text) })
	})
	if err != nil {
		return nil, err
	}
	return &Runtime{r}, nil
}

// closeWait bounds how long Close waits for work that is under way.
const closeWait = 5 * time.Second

// Close ends the runtime; ErrBusy while caches, nodes or meters of it are open.
func (r *Runtime) Close() error { return r.ref.close() }

// MemoryUsed is what the library has allocated for frames and buffers.
func (r *Runtime) MemoryUsed() (uint64, error) {
	n, err := r.ref.on("memory used", flat.Kvtf_runtime_memory_used)
	return uint64(n), err
}

// Element is the type of KV elements.
type Element uint32

// Elements.
var (
	F32  = Element(flat.KVTF_ELEMENT_F32)
	F16  = Element(flat.KVTF_ELEMENT_F16)
	BF16 = Element(flat.KVTF_ELEMENT_BF16)
)

// Layouts and styles of rotary embeddings.
var (
	LayoutKV        = uint32(flat.KVTF_LAYOUT_KV)
	LayoutMLA       = uint32(flat.KVTF_LAYOUT_MLA)
	RopeNone        = uint32(flat.KVTF_ROPE_NONE)
	RopeInterleaved = uint32(flat.KVTF_ROPE_INTERLEAVED)
	RopeHalfSplit   = uint32(flat.KVTF_ROPE_HALF_SPLIT)
)

// ModelOptions identify what computed the KV: begin with DefaultModelOptions.
type ModelOptions struct {
	ID, Adapter                         []byte
	Layout, Layers, KVHeads, KDim, VDim uint32
	Element                             Element
	RopeStyle, RopeOffset, RopeDims     uint32
	RopeBase, RopeMagnitude             float64
	RopeFactors                         []float64
}

// DefaultModelOptions are the library's.
func DefaultModelOptions() ModelOptions {
	d := mustDefaults(flat.KVTF_RECORD_MODEL)
	return ModelOptions{
		Layout: uint32(word(d, flat.KVTF_MODEL_LAYOUT)), Layers: uint32(word(d, flat.KVTF_MODEL_LAYERS)),
		KVHeads: uint32(word(d, flat.KVTF_MODEL_KV_HEADS)), KDim: uint32(word(d, flat.KVTF_MODEL_K_DIM)),
		VDim: uint32(word(d, flat.KVTF_MODEL_V_DIM)), Element: Element(word(d, flat.KVTF_MODEL_ELEMENT)),
		RopeStyle: uint32(word(d, flat.KVTF_MODEL_ROPE_STYLE)), RopeOffset: uint32(word(d, flat.KVTF_MODEL_ROPE_OFFSET)),
		RopeDims: uint32(word(d, flat.KVTF_MODEL_ROPE_DIMS)), RopeBase: real(d, flat.KVTF_MODEL_ROPE_BASE),
		RopeMagnitude: real(d, flat.KVTF_MODEL_ROPE_MAGNITUDE),
	}
}

// Model is an immutable description of a model.
type Model struct{ ref *ref }

// NewModel creates a model.
func NewModel(o ModelOptions) (*Model, error) {
	if err := checkABI(); err != nil {
		return nil, err
	}
	packed := record(int64(o.Layout), int64(o.Layers), int64(o.KVHeads), int64(o.KDim), int64(o.VDim), int64(o.Element),
		int64(o.RopeStyle), int64(o.RopeOffset), int64(o.RopeDims), bits(o.RopeBase), bits(o.RopeMagnitude))
	r, err := newRef("model", nil, destroyed(flat.Kvtf_model_destroy), func([]int64) (int64, error) {
		return call("model create", func(text []byte) int64 {
			return flat.Kvtf_model_create(packed, o.ID, o.Adapter, bytesOf(o.RopeFactors), text)
		})
	})
	if err != nil {
		return nil, err
	}
	return &Model{r}, nil
}

// Close ends the model; ErrBusy while codecs or nodes of it are open.
func (m *Model) Close() error { return m.ref.close() }

// Fingerprint is the model's 128-bit identity.
func (m *Model) Fingerprint() ([]byte, error) {
	return m.ref.onOutput("fingerprint", 16, flat.Kvtf_model_fingerprint)
}

// Canonical are the bytes that the fingerprint is of.
func (m *Model) Canonical() ([]byte, error) {
	return m.ref.onOutput("canonical", 256, flat.Kvtf_model_canonical)
}

// Compare is nil when both are the same model, else ErrMismatch that names the first field that differs.
func (m *Model) Compare(other *Model) error {
	right, err := other.ref.enter()
	if err != nil {
		return err
	}
	defer other.ref.leave()
	_, err = m.ref.on("compare", func(left int64, text []byte) int64 { return flat.Kvtf_model_compare(left, right, text) })
	return err
}

// Extra is bytes that belong to a token beside its id.
type Extra struct {
	Token uint64
	Data  []byte
}

// KeyOptions: BlockTokens 0 is the library's 16.
type KeyOptions struct {
	BlockTokens     uint32
	Namespace, Salt []byte
	Extras          []Extra
}

// Keys names all whole blocks of tokens, in order.
func (m *Model) Keys(tokens []int32, o KeyOptions) ([]Key, error) {
	block := int64(o.BlockTokens)
	if block == 0 {
		block = int64(flat.KVTF_GRAIN_TOKENS)
	}
	var extras []byte
	for _, extra := range o.Extras {
		extras = append(extras, record(int64(extra.Token), int64(len(extra.Data)))...)
		extras = append(extras, extra.Data...)
	}
	room := len(tokens)/int(block) + 1
	packed, err := m.ref.onOutput("keys", room*len(Key{}), func(model int64, buf, text []byte) int64 {
		return flat.Kvtf_keys_compute(model, block, o.Namespace, o.Salt, bytesOf(tokens), extras, buf, text)
	})
	if err != nil {
		return nil, err
	}
	keys := make([]Key, len(packed)/len(Key{}))
	copy(bytesOf(keys), packed)
	return keys, nil
}

// NamespaceDigest is what frames carry and peers are checked by.
func NamespaceDigest(namespace, salt []byte) (Digest, error) {
	var digest Digest
	_, err := call("digest", func(text []byte) int64 {
		return flat.Kvtf_namespace_digest(namespace, salt, digest[:], text)
	})
	return digest, err
}

// BlockHashes are routing hashes as NVIDIA Dynamo and SMG compute them; never use them to name data.
func BlockHashes(tokens []int32, blockTokens uint32, adapter, namespace []byte) ([]uint64, error) {
	room := 8
	if blockTokens > 0 {
		room = 8 * (len(tokens)/int(blockTokens) + 1)
	}
	packed, err := output("block hashes", room, func(buf, text []byte) int64 {
		return flat.Kvtf_block_hashes(int64(blockTokens), bytesOf(tokens), adapter, namespace, buf, text)
	})
	if err != nil {
		return nil, err
	}
	hashes := make([]uint64, len(packed)/8)
	for i := range hashes {
		hashes[i] = binary.LittleEndian.Uint64(packed[8*i:])
	}
	return hashes, nil
}

// Shard is the part of a model that one rank holds.
type Shard struct{ LayerBegin, LayerEnd, HeadBegin, HeadEnd, BlockTokens uint32 }

// Shard is the whole model, in blocks of 16 tokens, to cut a part from.
func (m *Model) Shard() (Shard, error) {
	s, err := m.ref.onOutput("shard", 8*flat.KVTF_SHARD_WORDS, flat.Kvtf_model_shard)
	if err != nil {
		return Shard{}, err
	}
	w := func(i int) uint32 { return uint32(word(s, i)) }
	return Shard{w(flat.KVTF_SHARD_LAYER_BEGIN), w(flat.KVTF_SHARD_LAYER_END), w(flat.KVTF_SHARD_HEAD_BEGIN),
		w(flat.KVTF_SHARD_HEAD_END), w(flat.KVTF_SHARD_BLOCK_TOKENS)}, nil
}

// Rope turns the rotary embedding of tokens of a view back (undo) or forth, in place.
func (m *Model) Rope(v View, tokenBegin, tokens int, undo bool) error {
	back := int64(0)
	if undo {
		back = 1
	}
	_, err := m.ref.on("rope", func(model int64, text []byte) int64 {
		return flat.Kvtf_model_rope(model, v.record(), bytesOf(v.Bases), bytesOf(v.BlockTable), v.Memory,
			int64(tokenBegin), int64(tokens), back, text)
	})
	return err
}
