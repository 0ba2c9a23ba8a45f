package kvartet

import (
	"time"

	"kvartet/internal/generated/flat"
)

// Node serves a cache to peers and pulls from them.
type Node struct{ ref *ref }

// NodeOptions: begin with DefaultNodeOptions.
type NodeOptions struct {
	Listen         string // URL to serve on; empty: a client only
	Digest         Digest
	MaxConnections uint32
	MaxFrameBytes  uint64
	StallMS        uint32
}

// DefaultNodeOptions are the library's.
func DefaultNodeOptions() NodeOptions {
	d := mustDefaults(flat.KVTF_RECORD_NODE)
	return NodeOptions{MaxConnections: uint32(word(d, flat.KVTF_NODE_MAX_CONNECTIONS)),
		MaxFrameBytes: uint64(word(d, flat.KVTF_NODE_MAX_FRAME_BYTES)), StallMS: uint32(word(d, flat.KVTF_NODE_STALL_MS))}
}

// OpenNode opens a node for a model's KV and listens if it has a URL.
func OpenNode(r *Runtime, model *Model, o NodeOptions) (*Node, error) {
	packed := record(int64(o.MaxConnections), int64(o.MaxFrameBytes), int64(o.StallMS))
	ref, err := newRef("node", []*ref{r.ref, model.ref}, destroyed(flat.Kvtf_node_destroy), func(h []int64) (int64, error) {
		return call("node open", func(text []byte) int64 {
			return flat.Kvtf_node_open(h[0], h[1], packed, []byte(o.Listen), digestBytes(o.Digest), text)
		})
	})
	if err != nil {
		return nil, err
	}
	return &Node{ref: ref}, nil
}

// Serve lets peers pull from the cache and push into it; the cache stays open until the node is closed.
func (n *Node) Serve(cache *Cache) error {
	node, err := n.ref.enter()
	if err != nil {
		return err
	}
	defer n.ref.leave()
	handle, err := cache.ref.enter()
	if err != nil {
		return err
	}
	if _, err = call("serve", func(text []byte) int64 { return flat.Kvtf_node_serve(node, handle, text) }); err != nil {
		cache.ref.leave()
		return err
	}
	n.ref.mu.Lock()
	n.ref.parents = append(n.ref.parents, cache.ref)
	n.ref.mu.Unlock()
	return nil
}

// Close cancels everything and closes the connections; it never waits for a peer. ErrBusy while peers or calls
// are open.
func (n *Node) Close() error { return n.ref.close() }

// URL is where a peer can connect to.
func (n *Node) URL() (string, error) {
	text, err := n.ref.onOutput("node url", 128, flat.Kvtf_node_url)
	return string(text), err
}

// NodeStats are counts since the node was opened.
type NodeStats struct {
	Connections, BytesSent, BytesReceived, FramesSent, FramesReceived, Checksums uint64
	RefusedVersion, RefusedModel, RefusedNamespace, RefusedLimit, Corrupt        uint64
}

// Stats copies the counts.
func (n *Node) Stats() (NodeStats, error) {
	s, err := n.ref.onOutput("node stats", 8*flat.KVTF_NODE_STATS_WORDS, flat.Kvtf_node_stats)
	if err != nil {
		return NodeStats{}, err
	}
	w := func(i int) uint64 { return uint64(word(s, i)) }
	return NodeStats{w(flat.KVTF_NODE_STATS_CONNECTIONS), w(flat.KVTF_NODE_STATS_BYTES_SENT),
		w(flat.KVTF_NODE_STATS_BYTES_RECEIVED), w(flat.KVTF_NODE_STATS_FRAMES_SENT),
		w(flat.KVTF_NODE_STATS_FRAMES_RECEIVED), w(flat.KVTF_NODE_STATS_CHECKSUMS),
		w(flat.KVTF_NODE_STATS_REFUSED_VERSION), w(flat.KVTF_NODE_STATS_REFUSED_MODEL),
		w(flat.KVTF_NODE_STATS_REFUSED_NAMESPACE), w(flat.KVTF_NODE_STATS_REFUSED_LIMIT),
		w(flat.KVTF_NODE_STATS_CORRUPT)}, nil
}

// EventFD, WaitEvent and Poll are as those of a Cache, for the operations of the node's peers.
func (n *Node) EventFD() (int, error) {
	fd, err := n.ref.on("event fd", flat.Kvtf_node_event_fd)
	return int(fd), err
}

// WaitEvent waits until EventFD is readable; false at the deadline.
func (n *Node) WaitEvent(timeout time.Duration) (bool, error) {
	return waitEvent(n.ref, flat.Kvtf_node_event_fd, timeout)
}

// Poll drains up to max completions.
func (n *Node) Poll(max int) ([]Completion, error) { return poll(n.ref, flat.Kvtf_node_poll, max) }

// Peer is a connection to another node.
type Peer struct {
	ref  *ref
	node *Node
}

// Connect shakes hands with another node.
func (n *Node) Connect(url string, timeout time.Duration) (*Peer, error) {
	r, err := newRef("peer", []*ref{n.ref}, destroyed(flat.Kvtf_peer_destroy), func(h []int64) (int64, error) {
		return call("connect", func(text []byte) int64 {
			return flat.Kvtf_node_connect(h[0], []byte(url), milliseconds(timeout), text)
		})
	})
	if err != nil {
		return nil, err
	}
	return &Peer{r, n}, nil
}

// Close closes the connection.
func (p *Peer) Close() error { return p.ref.close() }

// both makes a call that needs the peer and its node, which a peer keeps open.
func (p *Peer) both(name string, function func(node, peer int64, text []byte) int64) (int64, error) {
	node, err := p.node.ref.enter()
	if err != nil {
		return 0, err
	}
	defer p.node.ref.leave()
	return p.ref.on(name, func(peer int64, text []byte) int64 { return function(node, peer, text) })
}

// Pull brings frames by key, each up to maxFrame bytes and checked. A frame that did not come is nil and has its
// own status; err is the first failure.
func (p *Peer) Pull(keys []Key, maxFrame int, timeout time.Duration) ([][]byte, []Status, error) {
	slots := make([]byte, len(keys)*maxFrame)
	lengths := make([]uint64, len(keys))
	results := make([]Status, len(keys))
	_, err := p.both("pull", func(node, peer int64, text []byte) int64 {
		return flat.Kvtf_peer_pull(node, peer, bytesOf(keys), slots, int64(maxFrame), bytesOf(lengths), bytesOf(results),
			milliseconds(timeout), text)
	})
	frames := make([][]byte, len(keys))
	for i, length := range lengths {
		if results[i] == 0 && length > 0 && length <= uint64(maxFrame) {
			frames[i] = slots[i*maxFrame:][:length:length]
		}
	}
	return frames, results, err
}

// Push puts frames into the cache that the peer serves.
func (p *Peer) Push(keys []Key, frames [][]byte, timeout time.Duration) ([]Status, error) {
	packed, lengths := pack(frames)
	results := make([]Status, len(keys))
	_, err := p.both("push", func(node, peer int64, text []byte) int64 {
		return flat.Kvtf_peer_push(node, peer, bytesOf(keys), packed, bytesOf(lengths), bytesOf(results),
			milliseconds(timeout), text)
	})
	return results, err
}

// SubmitPull is Pull as an operation; Operation.Frame gives what it brought.
func (p *Peer) SubmitPull(keys []Key, maxFrame int, timeout time.Duration) (*Operation, error) {
	return submit([]*ref{p.node.ref, p.ref}, func(h []int64) (int64, error) {
		return call("submit pull", func(text []byte) int64 {
			return flat.Kvtf_peer_submit_pull(h[0], h[1], bytesOf(keys), int64(maxFrame), milliseconds(timeout), text)
		})
	})
}

// SubmitPush is Push as an operation.
func (p *Peer) SubmitPush(keys []Key, frames [][]byte, timeout time.Duration) (*Operation, error) {
	packed, lengths := pack(frames)
	return submit([]*ref{p.node.ref, p.ref}, func(h []int64) (int64, error) {
		return call("submit push", func(text []byte) int64 {
			return flat.Kvtf_peer_submit_push(h[0], h[1], bytesOf(keys), packed, bytesOf(lengths), milliseconds(timeout), text)
		})
	})
}
