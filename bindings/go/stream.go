package kvartet

import (
	"time"

	"kvartet/internal/generated/flat"
)

// Stream takes frames, usually of consecutive layers, while a prefill still runs; peers pull them as they come.
// One goroutine at a time.
type Stream struct{ ref *ref }

// OpenStream opens a stream under a key. A peer may have asked for it before.
func (n *Node) OpenStream(key Key) (*Stream, error) {
	r, err := newRef("stream", []*ref{n.ref}, destroyed(flat.Kvtf_stream_destroy), func(h []int64) (int64, error) {
		return call("stream open", func(text []byte) int64 { return flat.Kvtf_stream_open(h[0], key[:], text) })
	})
	if err != nil {
		return nil, err
	}
	return &Stream{r}, nil
}

// Append adds one frame, which is copied.
func (s *Stream) Append(frame []byte) error {
	_, err := s.ref.on("stream append", func(h int64, text []byte) int64 { return flat.Kvtf_stream_append(h, frame, text) })
	return err
}

func (s *Stream) end(name string, ok int64) error {
	_, err := s.ref.on(name, func(h int64, text []byte) int64 { return flat.Kvtf_stream_finish(h, ok, text) })
	return err
}

// Finish completes the stream; peers may go on pulling it until Close.
func (s *Stream) Finish() error { return s.end("stream finish", 1) }

// Abort ends the stream; its pullers get ErrCancelled.
func (s *Stream) Abort() error { return s.end("stream abort", 0) }

// Close forgets the stream; one that has not been finished is aborted.
func (s *Stream) Close() error { return s.ref.close() }

// SubmitPullStream pulls a stream of up to `parts` frames, which fill up to `bytes`. Each part gives the node a
// Completion with Part set, from when on Operation.Frame(ItemsOK - 1) copies it; the stream's end gives one without.
func (p *Peer) SubmitPullStream(key Key, bytes, parts int, timeout time.Duration) (*Operation, error) {
	return submit([]*ref{p.node.ref, p.ref}, func(h []int64) (int64, error) {
		return call("submit pull stream", func(text []byte) int64 {
			return flat.Kvtf_peer_submit_pull_stream(h[0], h[1], key[:], int64(bytes), int64(parts),
				milliseconds(timeout), text)
		})
	})
}
