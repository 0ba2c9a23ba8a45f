package io.kvartet;

import io.kvartet.internal.generated.Flat;
import io.kvartet.internal.generated.FlatConstants;

/** Serves a cache to peers and connects to others. Closing it never waits for a peer. */
public final class Node extends NativeObject {
  /** Begins with the library's defaults. */
  public static final class Options {
    /** URL to serve on; null: a client only. */
    public String listen;
    public byte[] digest;
    public int maxConnections;
    public long maxFrameBytes;
    public int stallMs;

    public Options() {
      byte[] d = Native.defaults(FlatConstants.KVTF_RECORD_NODE);
      maxConnections = (int) Native.word(d, FlatConstants.KVTF_NODE_MAX_CONNECTIONS);
      maxFrameBytes = Native.word(d, FlatConstants.KVTF_NODE_MAX_FRAME_BYTES);
      stallMs = (int) Native.word(d, FlatConstants.KVTF_NODE_STALL_MS);
    }
  }

  /** Counts since the node was opened. */
  public record Stats(long connections, long bytesSent, long bytesReceived, long framesSent, long framesReceived,
      long checksums, long refusedVersion, long refusedModel, long refusedNamespace, long refusedLimit, long corrupt) {}

  public Node(KvRuntime runtime, Model model, Options o) {
    super("node", Flat::kvtf_node_destroy, (h, error) -> Flat.kvtf_node_open(h[0], h[1],
        Native.record(o.maxConnections, o.maxFrameBytes, o.stallMs), Native.utf8(o.listen), o.digest, error), runtime,
        model);
  }

  /** Lets peers pull from the cache and push into it; the cache stays open until the node is closed. */
  public void serve(Cache cache) {
    long handle = cache.state.enter();
    boolean serving = false;
    try {
      on("serve", (node, error) -> {
        long result = Flat.kvtf_node_serve(node, handle, error);
        if (result == 0) adopt(cache.state);
        return result;
      });
      serving = true;
    } finally {
      if (!serving) cache.state.leave();
    }
  }

  /** Where a peer can connect to. */
  public String url() {
    return Native.text(onOutput("node url", 128, Flat::kvtf_node_url));
  }

  public Stats stats() {
    byte[] s = onOutput("node stats", 8 * FlatConstants.KVTF_NODE_STATS_WORDS, Flat::kvtf_node_stats);
    return new Stats(Native.word(s, FlatConstants.KVTF_NODE_STATS_CONNECTIONS),
        Native.word(s, FlatConstants.KVTF_NODE_STATS_BYTES_SENT), Native.word(s, FlatConstants.KVTF_NODE_STATS_BYTES_RECEIVED),
        Native.word(s, FlatConstants.KVTF_NODE_STATS_FRAMES_SENT),
        Native.word(s, FlatConstants.KVTF_NODE_STATS_FRAMES_RECEIVED), Native.word(s, FlatConstants.KVTF_NODE_STATS_CHECKSUMS),
        Native.word(s, FlatConstants.KVTF_NODE_STATS_REFUSED_VERSION),
        Native.word(s, FlatConstants.KVTF_NODE_STATS_REFUSED_MODEL),
        Native.word(s, FlatConstants.KVTF_NODE_STATS_REFUSED_NAMESPACE),
        Native.word(s, FlatConstants.KVTF_NODE_STATS_REFUSED_LIMIT), Native.word(s, FlatConstants.KVTF_NODE_STATS_CORRUPT));
  }

  /** Shakes hands with another node. */
  public Peer connect(String url, long timeoutMs) {
    return new Peer(this, url, timeoutMs);
  }

  /** Opens a stream under a key. A peer may have asked for it before. */
  public FrameStream openStream(byte[] key) {
    return new FrameStream(this, key);
  }

  public int eventFd() {
    return (int) on("event fd", Flat::kvtf_node_event_fd);
  }

  public boolean awaitEvent(long timeoutMs) {
    return Operation.awaitEvent(this, timeoutMs, Flat::kvtf_node_event_fd);
  }

  public Operation.Completion[] poll(int max) {
    return Operation.poll(this, max, Flat::kvtf_node_poll);
  }
}
