package kvartet

import (
	"sync/atomic"
	"time"

	"kvartet/internal/generated/flat"
)

// Cache keeps frames by key, in memory or in a directory.
type Cache struct {
	ref   *ref
	guess int64 // bytes of the longest frame that Get met
}

// OpenCache opens "mem:?capacity=4GiB", "file:/directory" and the like.
func OpenCache(r *Runtime, url string) (*Cache, error) {
	end := func(handle int64) error {
		_, err := call("cache close", func(text []byte) int64 {
			return flat.Kvtf_cache_close(handle, milliseconds(closeWait), text)
		})
		flat.Kvtf_cache_destroy(handle)
		return err
	}
	ref, err := newRef("cache", []*ref{r.ref}, end, func(h []int64) (int64, error) {
		return call("cache open", func(text []byte) int64 { return flat.Kvtf_cache_open(h[0], []byte(url), text) })
	})
	if err != nil {
		return nil, err
	}
	return &Cache{ref: ref, guess: 4096}, nil
}

// Close flushes and ends the cache; ErrBusy while operations or calls of it are open or a node serves it.
func (c *Cache) Close() error { return c.ref.close() }

// Put stores one frame under its key; it replaces one of another form. It runs in the calling thread; with "file:" it
// waits for the disk.
func (c *Cache) Put(key *Key, frame []byte) error {
	_, err := c.ref.on("put", func(cache int64, text []byte) int64 {
		return flat.Kvtf_cache_put_one(cache, key[:], frame, text)
	})
	return err
}

// pack lays frames one after another.
func pack(frames [][]byte) ([]byte, []uint64) {
	lengths := make([]uint64, len(frames))
	var packed []byte
	for i, frame := range frames {
		lengths[i] = uint64(len(frame))
		packed = append(packed, frame...)
	}
	return packed, lengths
}

// PutAll stores frames; each has its own status, and err is the first failure.
func (c *Cache) PutAll(keys []Key, frames [][]byte, timeout time.Duration) ([]Status, error) {
	packed, lengths := pack(frames)
	results := make([]Status, len(keys))
	_, err := c.ref.on("put", func(cache int64, text []byte) int64 {
		return flat.Kvtf_cache_put(cache, bytesOf(keys), packed, bytesOf(lengths), bytesOf(results), milliseconds(timeout), text)
	})
	return results, err
}

// GetInto copies a frame, checked whole, into buf and returns its length; ErrBufferTooSmall when buf is shorter.
func (c *Cache) GetInto(key *Key, buf []byte) (int, error) {
	n, err := c.ref.on("get", func(cache int64, text []byte) int64 { return flat.Kvtf_cache_get(cache, key[:], buf, text) })
	if err == nil && int(n) > len(buf) {
		return int(n), &Error{ErrBufferTooSmall, "get", "the buffer is shorter than the frame"}
	}
	return int(n), err
}

// Get copies a frame, checked whole.
func (c *Cache) Get(key Key) ([]byte, error) {
	frame, err := c.ref.onOutput("get", int(atomic.LoadInt64(&c.guess)), func(cache int64, buf, text []byte) int64 {
		return flat.Kvtf_cache_get(cache, key[:], buf, text)
	})
	if n := int64(len(frame)); n > atomic.LoadInt64(&c.guess) {
		atomic.StoreInt64(&c.guess, n)
	}
	return frame, err
}

// Match is the length of the longest prefix of keys that is present.
func (c *Cache) Match(keys []Key) (int, error) {
	n, err := c.ref.on("match", func(cache int64, text []byte) int64 { return flat.Kvtf_cache_match(cache, bytesOf(keys), text) })
	return int(n), err
}

// Remove removes frames and returns how many were there.
func (c *Cache) Remove(keys []Key) (int, error) {
	n, err := c.ref.on("remove", func(cache int64, text []byte) int64 {
		return flat.Kvtf_cache_remove(cache, bytesOf(keys), text)
	})
	return int(n), err
}

// CacheStats are counts since the cache was opened.
type CacheStats struct {
	Frames, Bytes, CapacityBytes, Puts, Hits, Misses, Evictions, Removals, Corrupt, Torn, Checksums uint64
}

// Stats copies the counts.
func (c *Cache) Stats() (CacheStats, error) {
	s, err := c.ref.onOutput("stats", 8*flat.KVTF_CACHE_STATS_WORDS, flat.Kvtf_cache_stats)
	if err != nil {
		return CacheStats{}, err
	}
	w := func(i int) uint64 { return uint64(word(s, i)) }
	return CacheStats{w(flat.KVTF_CACHE_STATS_FRAMES), w(flat.KVTF_CACHE_STATS_BYTES),
		w(flat.KVTF_CACHE_STATS_CAPACITY_BYTES), w(flat.KVTF_CACHE_STATS_PUTS), w(flat.KVTF_CACHE_STATS_HITS),
		w(flat.KVTF_CACHE_STATS_MISSES), w(flat.KVTF_CACHE_STATS_EVICTIONS), w(flat.KVTF_CACHE_STATS_REMOVALS),
		w(flat.KVTF_CACHE_STATS_CORRUPT), w(flat.KVTF_CACHE_STATS_TORN), w(flat.KVTF_CACHE_STATS_CHECKSUMS)}, nil
}

// Store encodes blocks of a view under keys; Load brings them back. Each block has its own status.
func (c *Cache) Store(codec *Codec, v View, s Spec, blockTokens uint32, keys []Key, timeout time.Duration) ([]Status, error) {
	return c.move("store", flat.Kvtf_cache_store, codec, v, s, blockTokens, keys, timeout)
}

// Load checks and decodes blocks into a view.
func (c *Cache) Load(codec *Codec, v View, s Spec, blockTokens uint32, keys []Key, timeout time.Duration) ([]Status, error) {
	return c.move("load", flat.Kvtf_cache_load, codec, v, s, blockTokens, keys, timeout)
}

type moveFunction func(cache, codec int64, view, bases, table, memory, spec, digest []byte, blockTokens int64,
	keys, results []byte, timeoutMS int64, err []byte) int64

func (c *Cache) move(name string, function moveFunction, codec *Codec, v View, s Spec, blockTokens uint32, keys []Key,
	timeout time.Duration) ([]Status, error) {
	codecHandle, err := codec.ref.enter()
	if err != nil {
		return nil, err
	}
	defer codec.ref.leave()
	results := make([]Status, len(keys))
	_, err = c.ref.on(name, func(cache int64, text []byte) int64 {
		return function(cache, codecHandle, v.record(), bytesOf(v.Bases), bytesOf(v.BlockTable), v.Memory, s.record(),
			digestBytes(s.Digest), int64(blockTokens), bytesOf(keys), bytesOf(results), milliseconds(timeout), text)
	})
	return results, err
}

// EventFD is readable while completions wait; it belongs to the cache.
func (c *Cache) EventFD() (int, error) {
	n, err := c.ref.on("event fd", flat.Kvtf_cache_event_fd)
	return int(n), err
}

// WaitEvent waits until EventFD is readable; false at the deadline.
func (c *Cache) WaitEvent(timeout time.Duration) (bool, error) {
	return waitEvent(c.ref, flat.Kvtf_cache_event_fd, timeout)
}

func waitEvent(r *ref, eventFD func(int64, []byte) int64, timeout time.Duration) (bool, error) {
	n, err := r.on("event wait", func(handle int64, text []byte) int64 {
		fd := eventFD(handle, text)
		if fd < 0 {
			return fd
		}
		return flat.Kvtf_event_wait(fd, milliseconds(timeout), text)
	})
	return n == 1, err
}

// Completion is what an operation reports when it ends, and a stream's for each part.
type Completion struct {
	ID             int64 // that of the Operation
	Status         Status
	Part           bool // of a stream that goes on; ItemsOK parts are in place
	ItemsOK, Items uint64
	Bytes          uint64
}

func completionOf(b []byte) Completion {
	return Completion{word(b, flat.KVTF_COMPLETION_OPERATION), Status(word(b, flat.KVTF_COMPLETION_STATUS)),
		word(b, flat.KVTF_COMPLETION_KIND) == int64(flat.KVTF_COMPLETION_PART), uint64(word(b, flat.KVTF_COMPLETION_ITEMS_OK)), uint64(word(b, flat.KVTF_COMPLETION_ITEMS)),
		uint64(word(b, flat.KVTF_COMPLETION_MOVED))}
}

// Poll drains up to max completions.
func (c *Cache) Poll(max int) ([]Completion, error) { return poll(c.ref, flat.Kvtf_cache_poll, max) }

func poll(r *ref, function func(handle int64, buf, err []byte) int64, max int) ([]Completion, error) {
	buf := make([]byte, max*flat.KVTF_COMPLETION_BYTES)
	n, err := r.on("poll", func(handle int64, text []byte) int64 { return function(handle, buf, text) })
	if err != nil {
		return nil, err
	}
	completions := make([]Completion, int(n)/flat.KVTF_COMPLETION_BYTES)
	for i := range completions {
		completions[i] = completionOf(buf[i*flat.KVTF_COMPLETION_BYTES:])
	}
	return completions, nil
}
