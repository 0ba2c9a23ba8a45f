// Package kvartet stores, names, moves and verifies the KV cache of language models. It is the Go layer over
// libkvartet.
//
// Objects are closed once with Close, children before parents: a parent with open children, or an object that
// another goroutine is using, refuses with ErrBusy and stays open. Closing again does nothing. An object that is
// dropped without Close is reported by the leak handler and never freed by the collector.
//
// Every object may be used from several goroutines, a Verifier and a Request by one at a time.
package kvartet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"kvartet/internal/generated/flat"
)

// Status is a number of the library. A number that this package does not know keeps its value.
type Status int32

// Statuses; compare with errors.Is.
var (
	ErrInternal        = Status(flat.KVTF_INTERNAL)
	ErrInvalidArgument = Status(flat.KVTF_INVALID_ARGUMENT)
	ErrOutOfRange      = Status(flat.KVTF_OUT_OF_RANGE)
	ErrBufferTooSmall  = Status(flat.KVTF_BUFFER_TOO_SMALL)
	ErrUnsupported     = Status(flat.KVTF_UNSUPPORTED)
	ErrUnavailable     = Status(flat.KVTF_UNAVAILABLE)
	ErrNotFound        = Status(flat.KVTF_NOT_FOUND)
	ErrAlreadyExists   = Status(flat.KVTF_ALREADY_EXISTS)
	ErrStaleHandle     = Status(flat.KVTF_STALE_HANDLE)
	ErrWrongHandle     = Status(flat.KVTF_WRONG_HANDLE)
	ErrBusy            = Status(flat.KVTF_BUSY)
	ErrClosed          = Status(flat.KVTF_CLOSED)
	ErrTimeout         = Status(flat.KVTF_TIMEOUT)
	ErrCancelled       = Status(flat.KVTF_CANCELLED)
	ErrStalled         = Status(flat.KVTF_STALLED)
	ErrPeerDead        = Status(flat.KVTF_PEER_DEAD)
	ErrCorrupt         = Status(flat.KVTF_CORRUPT)
	ErrMismatch        = Status(flat.KVTF_MISMATCH)
	ErrProfileMissing  = Status(flat.KVTF_PROFILE_MISSING)
	ErrVersion         = Status(flat.KVTF_VERSION)
	ErrIO              = Status(flat.KVTF_IO)
	ErrDiskFull        = Status(flat.KVTF_DISK_FULL)
	ErrLocked          = Status(flat.KVTF_LOCKED)
	ErrPermission      = Status(flat.KVTF_PERMISSION)
	ErrAddressInUse    = Status(flat.KVTF_ADDRESS_IN_USE)
	ErrOutOfMemory     = Status(flat.KVTF_OUT_OF_MEMORY)
	ErrLimit           = Status(flat.KVTF_LIMIT)
)

// Error gives the status's name, for example "KVT_ERR_TIMEOUT".
func (s Status) Error() string {
	var name [64]byte
	n := flat.Kvtf_status_name(int64(s), name[:])
	if n > int64(len(name)) {
		n = 0
	}
	return string(name[:n])
}

// Error is a failed call: its status and the library's text.
type Error struct {
	Status Status
	Call   string
	Text   string
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %s: %s", e.Call, e.Status.Error(), e.Text) }

// Unwrap lets errors.Is compare with a Status.
func (e *Error) Unwrap() error { return e.Status }

// StatusOf gives the status inside of err; 0 for nil, ErrInternal for an error of another origin.
func StatusOf(err error) Status {
	var status Status
	if err == nil || errors.As(err, &status) {
		return status
	}
	return ErrInternal
}

// Key names a block; see docs/keys.md.
type Key [36]byte

// Digest is that of a namespace and salt.
type Digest [16]byte

// Version is that of the loaded library.
func Version() string {
	text, _ := output("version", 32, func(buf, _ []byte) int64 { return flat.Kvtf_version(buf) })
	return string(text)
}

// ABIVersion is that of the loaded library: major in the upper 16 bits.
func ABIVersion() uint32 { return uint32(flat.Kvtf_abi_version()) }

var (
	abiOnce sync.Once
	abiErr  error
)

// compareABI refuses a library of another major version; before 1.0 of another minor one, too.
func compareABI(library, header uint32) error {
	if library>>16 == header>>16 && (header>>16 != 0 || library == header) {
		return nil
	}
	return &Error{ErrVersion, "load", fmt.Sprintf("the library has ABI %d.%d, this package %d.%d",
		library>>16, library&0xffff, header>>16, header&0xffff)}
}

// checkABI runs before the first handle.
func checkABI() error {
	abiOnce.Do(func() { abiErr = compareABI(ABIVersion(), uint32(flat.Kvtf_header_abi_version())) })
	return abiErr
}

// scratch is what a call needs; the pool keeps one for each processor.
type scratch struct {
	text    [1025]byte
	yielded time.Duration // since started
}

var (
	scratches = sync.Pool{New: func() any { return new(scratch) }}
	started   = time.Now()
)

// yieldEvery is half of the 10 ms after which Go's monitor counts a goroutine that never paused as one that hangs. From
// then on it takes the processor from a native call of any length at each of its looks, and wakes a thread to use it,
// which competes with the library's own: a fifth of the time of calls that follow one another. A yield starts the 10 ms
// again.
const yieldEvery = 5 * time.Millisecond

// call makes one native call, which also writes the text of its failure.
func call(name string, function func(err []byte) int64) (int64, error) {
	s := scratches.Get().(*scratch)
	if now := time.Since(started); now-s.yielded > yieldEvery {
		s.yielded = now
		runtime.Gosched()
	}
	text := &s.text
	text[0] = 0
	result := function(text[:])
	var failure error
	if result < 0 {
		end := 0
		for end < len(text) && text[end] != 0 {
			end++
		}
		failure = &Error{Status(result), name, string(text[:end])}
	}
	scratches.Put(s)
	return result, failure
}

// output makes a call whose output has no known size.
func output(name string, guess int, function func(buf, err []byte) int64) ([]byte, error) {
	for {
		buf := make([]byte, guess)
		n, err := call(name, func(text []byte) int64 { return function(buf, text) })
		if err != nil {
			return nil, err
		}
		if n <= int64(guess) {
			return buf[:n], nil
		}
		guess = int(n)
	}
}

// ref is what all objects have: a handle that is given out only while it is open, and counts of its users (calls
// that run) and children.
type ref struct {
	kind    string
	parents []*ref
	end     func(handle int64) error
	mu      sync.Mutex
	handle  int64 // guarded by mu; 0 once closed
	holds   int   // guarded by mu
}

var leakHandler atomic.Value

// SetLeakHandler says what happens when an object is dropped without Close; the default writes to the log.
func SetLeakHandler(handler func(kind string)) { leakHandler.Store(handler) }

func reportLeak(r *ref) {
	r.mu.Lock()
	open := r.handle != 0
	r.mu.Unlock()
	if !open {
		return
	}
	if handler, ok := leakHandler.Load().(func(string)); ok {
		handler(r.kind)
	} else {
		log.Printf("kvartet: a %s was dropped without Close", r.kind)
	}
}

func (r *ref) enter() (int64, error) {
	if r == nil {
		return 0, &Error{ErrInvalidArgument, "enter", "the object is nil"}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.handle == 0 {
		return 0, &Error{ErrClosed, r.kind, "the " + r.kind + " is closed"}
	}
	r.holds++
	return r.handle, nil
}

func (r *ref) leave() {
	r.mu.Lock()
	r.holds--
	r.mu.Unlock()
}

// newRef creates an object under its parents, which stay open until it is closed.
func newRef(kind string, parents []*ref, end func(int64) error, create func(handles []int64) (int64, error)) (*ref, error) {
	handles := make([]int64, len(parents))
	for i, parent := range parents {
		handle, err := parent.enter()
		if err != nil {
			leaveAll(parents[:i])
			return nil, err
		}
		handles[i] = handle
	}
	handle, err := create(handles)
	if err != nil {
		leaveAll(parents)
		return nil, err
	}
	r := &ref{kind: kind, parents: parents, end: end, handle: handle}
	runtime.SetFinalizer(r, reportLeak)
	return r, nil
}

func leaveAll(refs []*ref) {
	for _, r := range refs {
		r.leave()
	}
}

func (r *ref) close() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	if r.handle == 0 {
		r.mu.Unlock()
		return nil
	}
	if r.holds > 0 {
		holds := r.holds
		r.mu.Unlock()
		return &Error{ErrBusy, "close", fmt.Sprintf("the %s has %d open children or calls", r.kind, holds)}
	}
	handle := r.handle
	r.handle = 0
	r.mu.Unlock()
	runtime.SetFinalizer(r, nil)
	err := r.end(handle)
	leaveAll(r.parents)
	return err
}

// on makes one native call on an open object.
func (r *ref) on(name string, function func(handle int64, err []byte) int64) (int64, error) {
	handle, err := r.enter()
	if err != nil {
		return 0, err
	}
	defer r.leave()
	return call(name, func(text []byte) int64 { return function(handle, text) })
}

// onOutput is `on` for a call whose output has no known size.
func (r *ref) onOutput(name string, guess int, function func(handle int64, buf, err []byte) int64) ([]byte, error) {
	handle, err := r.enter()
	if err != nil {
		return nil, err
	}
	defer r.leave()
	return output(name, guess, func(buf, text []byte) int64 { return function(handle, buf, text) })
}

func destroyed(destroy func(int64)) func(int64) error {
	return func(handle int64) error {
		destroy(handle)
		return nil
	}
}

// Records: 64-bit words; see bindings/swig/kvartet_flat.h.

func record(words ...int64) []byte {
	bytes := make([]byte, 8*len(words))
	for i, word := range words {
		binary.LittleEndian.PutUint64(bytes[8*i:], uint64(word))
	}
	return bytes
}

func word(bytes []byte, index int) int64 { return int64(binary.LittleEndian.Uint64(bytes[8*index:])) }

func real(bytes []byte, index int) float64 { return math.Float64frombits(uint64(word(bytes, index))) }

func bits(number float64) int64 { return int64(math.Float64bits(number)) }

func milliseconds(d time.Duration) int64 {
	if d > 0 && d < time.Millisecond {
		return 1
	}
	return d.Milliseconds()
}

// The bytes of slices, in place; the library's byte order is the machine's.

func bytesOf[T int32 | uint32 | int64 | uint64 | float32 | float64 | Key | Status](values []T) []byte {
	if len(values) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&values[0])), uintptr(len(values))*unsafe.Sizeof(values[0]))
}

func digestBytes(digest Digest) []byte {
	if digest == (Digest{}) {
		return nil
	}
	return digest[:]
}

// mustDefaults reads a record of defaults, which cannot fail for a record that the library has.
func mustDefaults(number int) []byte {
	bytes, err := output("defaults", 256, func(buf, text []byte) int64 {
		return flat.Kvtf_defaults(int64(number), buf, text)
	})
	if err != nil {
		panic(err)
	}
	return bytes
}
