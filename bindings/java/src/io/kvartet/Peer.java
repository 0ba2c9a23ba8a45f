package io.kvartet;

import io.kvartet.internal.generated.Flat;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/** A connection to another node. */
public final class Peer extends NativeObject {
  /** Frames that were pulled (null: one that did not come), their statuses, and 0 or the first failure. */
  public record Pulled(int status, int[] results, List<byte[]> frames) {}

  private final Node node;

  Peer(Node node, String url, long timeoutMs) {
    super("peer", Flat::kvtf_peer_destroy,
        (h, error) -> Flat.kvtf_node_connect(h[0], Native.utf8(url), timeoutMs, error), node);
    this.node = node;
  }

  /** Pulls frames by key, each up to maxFrame bytes and checked. */
  public Pulled pull(List<byte[]> keys, int maxFrame, long timeoutMs) {
    ByteBuffer slots = ByteBuffer.allocateDirect(Math.max(1, Math.multiplyExact(keys.size(), maxFrame)));
    byte[] lengths = new byte[8 * keys.size()];
    Cache.Moved moved = Cache.moved(keys.size(), results -> both("pull", (h, peer, error) -> Flat.kvtf_peer_pull(h, peer,
        Native.join(keys), slots, maxFrame, lengths, results, timeoutMs, error)));
    List<byte[]> frames = new ArrayList<>();
    for (int i = 0; i < keys.size(); ++i) {
      byte[] frame = moved.results()[i] == Status.OK ? new byte[(int) Native.word(lengths, i)] : null;
      if (frame != null) slots.get(i * maxFrame, frame);
      frames.add(frame);
    }
    return new Pulled(moved.status(), moved.results(), frames);
  }

  /** Puts frames into the cache that the peer serves. */
  public Cache.Moved push(List<byte[]> keys, List<byte[]> frames, long timeoutMs) {
    return Cache.moved(keys.size(), results -> both("push", (h, peer, error) -> Flat.kvtf_peer_push(h, peer,
        Native.join(keys), Native.join(frames), Native.lengths(frames), results, timeoutMs, error)));
  }

  /** As pull; {@link Operation#frame} gives what it brought. */
  public Operation submitPull(List<byte[]> keys, int maxFrame, long timeoutMs) {
    return new Operation((h, error) -> Flat.kvtf_peer_submit_pull(h[0], h[1], Native.join(keys), maxFrame, timeoutMs,
        error), node, this);
  }

  /** As push. */
  public Operation submitPush(List<byte[]> keys, List<byte[]> frames, long timeoutMs) {
    return new Operation((h, error) -> Flat.kvtf_peer_submit_push(h[0], h[1], Native.join(keys), Native.join(frames),
        Native.lengths(frames), timeoutMs, error), node, this);
  }

  /**
   * Pulls a stream of up to `parts` frames, which fill up to `bytes`. Each part gives the node a completion with `part`
   * set, from when on `frame(itemsOk - 1)` copies it; the stream's end gives one without.
   */
  public Operation submitPullStream(byte[] key, long bytes, int parts, long timeoutMs) {
    return new Operation((h, error) -> Flat.kvtf_peer_submit_pull_stream(h[0], h[1], key, bytes, parts, timeoutMs, error),
        node, this);
  }

  private interface Both {
    long run(long node, long peer, ByteBuffer error);
  }

  /** A call that needs the node, too, which the peer keeps open. */
  private long both(String name, Both function) {
    return node.on(name, (h, unused) -> on(name, (peer, error) -> function.run(h, peer, error)));
  }
}
