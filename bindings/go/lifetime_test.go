package kvartet

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestClosedHandle(t *testing.T) {
	r, m := newRuntime(t), newModel(t)
	keys, list := frames(t, m, 1)
	c, err := OpenCache(r, "mem:?capacity=1MiB")
	must(t, c, err)
	ok(t, c.Close())
	ok(t, c.Close())
	refused(t, c.Put(&keys[0], list[0]), ErrClosed, "cache")
	_, err = c.Get(keys[0])
	refused(t, err, ErrClosed)
	_, err = c.Match(keys)
	refused(t, err, ErrClosed)
	_, err = c.Stats()
	refused(t, err, ErrClosed)
	_, err = c.SubmitPut(keys, list, wait)
	refused(t, err, ErrClosed)
	gone, err := NewModel(modelOptions())
	ok(t, must(t, gone, err).Close())
	_, err = NewCodec(gone, "raw", nil)
	refused(t, err, ErrClosed)
	_, err = gone.Fingerprint()
	refused(t, err, ErrClosed)
	v, err := NewVerifier(toyOptions(4))
	ok(t, must(t, v, err).Close())
	_, err = v.Next()
	refused(t, err, ErrClosed)
	// Every other kind of object.
	server, _, peer := streamPair(t, m)
	stream, err := server.OpenStream(Key{1})
	ok(t, must(t, stream, err).Close())
	refused(t, stream.Append(list[0]), ErrClosed, "stream")
	refused(t, stream.Finish(), ErrClosed)
	calibration, err := NewCalibration(m, nil)
	ok(t, must(t, calibration, err).Close())
	refused(t, calibration.Add(viewOf(16), 0, 16), ErrClosed, "calibration")
	_, err = calibration.Finish()
	refused(t, err, ErrClosed)
	memory, err := NewMemory(16)
	ok(t, must(t, memory, err).Close())
	refused(t, memory.Read(0, nil), ErrClosed, "memory")
	meter, err := NewMeter(r)
	ok(t, must(t, meter, err).Close())
	_, err = meter.JSON()
	refused(t, err, ErrClosed, "meter")
	node, err := OpenNode(r, m, DefaultNodeOptions())
	ok(t, must(t, node, err).Close())
	_, err = node.Connect("tcp://127.0.0.1:1", wait)
	refused(t, err, ErrClosed, "node")
	_, err = node.OpenStream(Key{1})
	refused(t, err, ErrClosed)
	o, err := peer.SubmitPullStream(Key{2}, 64, 1, wait)
	ok(t, must(t, o, err).Close())
	_, err = o.Frame(0)
	refused(t, err, ErrClosed, "operation")
	refused(t, o.Cancel(), ErrClosed)
	// Below the layer: a stale handle is an error of the library's own.
	_, err = call("get", func(text []byte) int64 { return rawGet(m.ref.handle, keys[0][:], text) })
	refused(t, err, ErrWrongHandle)
	_, err = call("get", func(text []byte) int64 { return rawGet(-5, keys[0][:], text) })
	if err == nil {
		t.Error("an invented handle was accepted")
	}
}

func TestParentWithChildren(t *testing.T) {
	r, err := NewRuntime(nil)
	must(t, r, err)
	c, err := OpenCache(r, "mem:?capacity=16MiB")
	must(t, c, err)
	m := newModel(t)
	keys, list := frames(t, m, 1)
	refused(t, r.Close(), ErrBusy, "1 open")
	o, err := c.SubmitPut(keys, list, wait)
	must(t, o, err)
	refused(t, c.Close(), ErrBusy)
	ok(t, c.Put(&keys[0], list[0]))
	node := DefaultNodeOptions()
	node.Listen = "tcp://127.0.0.1:0"
	server, err := OpenNode(r, m, node)
	ok(t, must(t, server, err).Serve(c))
	ok(t, o.Close())
	refused(t, c.Close(), ErrBusy)
	refused(t, m.Close(), ErrBusy)
	ok(t, server.Close())
	ok(t, c.Close())
	ok(t, r.Close())
}

func TestConcurrentClose(t *testing.T) {
	r, m := newRuntime(t), newModel(t)
	keys, list := frames(t, m, 1)
	for round := 0; round < 20; round++ {
		c, err := OpenCache(r, "mem:?capacity=16MiB")
		must(t, c, err)
		o, err := c.SubmitPut(keys, list, wait)
		must(t, o, err)
		var all sync.WaitGroup
		var bad atomic.Value
		for worker := 0; worker < 8; worker++ {
			all.Add(1)
			go func(worker int) {
				defer all.Done()
				for i := 0; i < 50; i++ {
					var err error
					switch worker % 4 {
					case 0:
						err = c.Close()
					case 1:
						err = c.Put(&keys[0], list[0])
					case 2:
						err = o.Close()
					case 3:
						_, err = o.Wait(wait)
					}
					if err != nil && !errors.Is(err, ErrBusy) && !errors.Is(err, ErrClosed) {
						bad.Store(err)
					}
				}
			}(worker)
		}
		all.Wait()
		if err := bad.Load(); err != nil {
			t.Fatal(err)
		}
		ok(t, o.Close())
		ok(t, c.Close())
	}
}

func TestConcurrentCalls(t *testing.T) {
	c, m := newCache(t, newRuntime(t), "mem:?capacity=64MiB"), newModel(t)
	keys, list := frames(t, m, 8)
	var all sync.WaitGroup
	for worker := range keys {
		all.Add(1)
		go func(i int) {
			defer all.Done()
			for n := 0; n < 100; n++ {
				if err := c.Put(&keys[i], list[i]); err != nil {
					t.Error(err)
				}
				frame, err := c.Get(keys[i])
				if err != nil || !bytes.Equal(frame, list[i]) {
					t.Errorf("frame %d: %v", i, err)
				}
				_, err = NewCodec(m, "no-codec-"+strconv.Itoa(i), nil)
				if err == nil || !strings.Contains(err.Error(), "no-codec-"+strconv.Itoa(i)) {
					t.Errorf("text of another goroutine: %v", err)
				}
			}
		}(worker)
	}
	all.Wait()
}

func TestLeakReported(t *testing.T) {
	reported := make(chan string, 8)
	SetLeakHandler(func(kind string) { reported <- kind })
	var handle int64
	func() {
		dropped, err := NewVerifier(toyOptions(4))
		handle = must(t, dropped, err).ref.handle
	}()
	deadline := time.After(wait)
	for {
		runtime.GC()
		select {
		case kind := <-reported:
			equal(t, kind, "verifier")
			ok(t, destroyed(rawVerifierDestroy)(handle))
			return
		case <-deadline:
			t.Fatal("no report")
		case <-time.After(time.Millisecond):
		}
	}
}

// residentKB is the process's memory in use.
func residentKB(t *testing.T) int {
	file, err := os.Open("/proc/self/status")
	ok(t, err)
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); fields[0] == "VmRSS:" {
			n, err := strconv.Atoi(fields[1])
			return must(t, n, err)
		}
	}
	t.Fatal("no VmRSS")
	return 0
}

func TestManyCallsNoLeak(t *testing.T) {
	calls := 100000
	if text := os.Getenv("KVT_BINDINGS_CALLS"); text != "" {
		n, err := strconv.Atoi(text)
		calls = must(t, n, err)
	}
	r := newRuntime(t)
	c, m := newCache(t, r, "mem:?capacity=16MiB"), newModel(t)
	keys, list := frames(t, m, 1)
	buf := make([]byte, len(list[0]))
	work := func(n int) {
		for i := 0; i < n; i += 10 {
			ok(t, c.Put(&keys[0], list[0]))
			_, err := c.GetInto(&keys[0], buf)
			ok(t, err)
			_, err = c.Get(Key{9})
			refused(t, err, ErrNotFound)
			codec, err := NewCodec(m, "raw", nil)
			ok(t, must(t, codec, err).Close())
			v, err := NewVerifier(toyOptions(4))
			_, err = must(t, v, err).Next()
			ok(t, err)
			ok(t, v.Close())
			o, err := c.SubmitPut(keys, list, wait)
			_, err = must(t, o, err).Wait(wait)
			ok(t, err)
			ok(t, o.Close())
			calibration, err := NewCalibration(m, nil)
			ok(t, must(t, calibration, err).Close())
			_, err = NewCodec(m, "zip", nil)
			refused(t, err, ErrUnsupported)
		}
	}
	work(calls / 10)
	runtime.GC()
	before := residentKB(t)
	work(calls)
	runtime.GC()
	if grown := residentKB(t) - before; grown > 16*1024 {
		t.Errorf("%d calls left %d KB", calls, grown)
	}
	used, err := r.MemoryUsed()
	if must(t, used, err) > 1<<20 {
		t.Errorf("the runtime holds %d bytes", used)
	}
}
