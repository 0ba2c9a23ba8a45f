package io.kvartet;

import io.kvartet.internal.generated.Flat;
import io.kvartet.internal.generated.FlatConstants;
import java.nio.ByteBuffer;
import java.util.List;

/** Keeps frames by key, in memory or in a directory. */
public final class Cache extends NativeObject {
  /** Counts since the cache was opened. */
  public record Stats(long frames, long bytes, long capacityBytes, long puts, long hits, long misses, long evictions,
      long removals, long corrupt, long torn, long checksums) {}

  /** What moves blocks: the statuses of all, and 0 or the first failure. */
  public record Moved(int status, int[] results) {}

  private volatile int guess = 4096; // bytes of the longest frame that get met

  /** Opens "mem:?capacity=4GiB", "file:/directory" and the like. */
  public Cache(KvRuntime runtime, String url) {
    super("cache", Cache::end, (h, error) -> Flat.kvtf_cache_open(h[0], Native.utf8(url), error), runtime);
  }

  private static void end(long handle) {
    try {
      Native.call("cache close", error -> Flat.kvtf_cache_close(handle, KvRuntime.CLOSE_MS, error));
    } finally {
      Flat.kvtf_cache_destroy(handle);
    }
  }

  /**
   * Stores one frame under its key; it replaces one of another form. It runs in the calling thread; with "file:" it
   * waits for the disk. A direct buffer is not copied.
   */
  public void put(byte[] key, ByteBuffer frame) {
    Object bytes = Native.input(frame);
    on("put", (cache, error) -> Flat.kvtf_cache_put_one(cache, key, bytes, error));
  }

  /** As put of a buffer, of a copy of the array. */
  public void put(byte[] key, byte[] frame) {
    on("put", (cache, error) -> Flat.kvtf_cache_put_one(cache, key, frame, error));
  }

  /** Stores frames; the statuses are each frame's own. */
  public Moved putAll(List<byte[]> keys, List<byte[]> frames, long timeoutMs) {
    return moved(keys.size(), results -> on("put", (cache, error) -> Flat.kvtf_cache_put(cache, Native.join(keys),
        Native.join(frames), Native.lengths(frames), results, timeoutMs, error)));
  }

  /** Copies a frame, checked whole, to the buffer's position and returns its bytes; the position stays. */
  public int get(byte[] key, ByteBuffer buffer) {
    ByteBuffer room = Native.room(buffer);
    long length = on("get", (cache, error) -> Flat.kvtf_cache_get(cache, key, room, error));
    if (length > room.capacity()) {
      throw new KvartetException(Status.BUFFER_TOO_SMALL, "get",
          "the frame has " + length + " bytes, the buffer " + room.capacity());
    }
    return (int) length;
  }

  /** Copies a frame, checked whole. */
  public byte[] get(byte[] key) {
    byte[] frame = onOutput("get", guess, (cache, buffer, error) -> Flat.kvtf_cache_get(cache, key, buffer, error));
    if (frame.length > guess) guess = frame.length;
    return frame;
  }

  /** Length of the longest prefix of keys that is present. */
  public int match(List<byte[]> keys) {
    return (int) on("match", (cache, error) -> Flat.kvtf_cache_match(cache, Native.join(keys), error));
  }

  /** Removes frames and returns how many were there. */
  public int remove(List<byte[]> keys) {
    return (int) on("remove", (cache, error) -> Flat.kvtf_cache_remove(cache, Native.join(keys), error));
  }

  public Stats stats() {
    byte[] s = onOutput("stats", 8 * FlatConstants.KVTF_CACHE_STATS_WORDS, Flat::kvtf_cache_stats);
    return new Stats(Native.word(s, FlatConstants.KVTF_CACHE_STATS_FRAMES),
        Native.word(s, FlatConstants.KVTF_CACHE_STATS_BYTES), Native.word(s, FlatConstants.KVTF_CACHE_STATS_CAPACITY_BYTES),
        Native.word(s, FlatConstants.KVTF_CACHE_STATS_PUTS), Native.word(s, FlatConstants.KVTF_CACHE_STATS_HITS),
        Native.word(s, FlatConstants.KVTF_CACHE_STATS_MISSES), Native.word(s, FlatConstants.KVTF_CACHE_STATS_EVICTIONS),
        Native.word(s, FlatConstants.KVTF_CACHE_STATS_REMOVALS), Native.word(s, FlatConstants.KVTF_CACHE_STATS_CORRUPT),
        Native.word(s, FlatConstants.KVTF_CACHE_STATS_TORN), Native.word(s, FlatConstants.KVTF_CACHE_STATS_CHECKSUMS));
  }

  /** Items fail one by one: their statuses are a result; a refusal of the whole call is thrown. */
  static Moved moved(int count, java.util.function.ToLongFunction<byte[]> function) {
    byte[] results = new byte[4 * count];
    try {
      function.applyAsLong(results);
      return new Moved(Status.OK, Native.ints(results, 0, count));
    } catch (KvartetException e) {
      int[] statuses = Native.ints(results, 0, count);
      for (int status : statuses) {
        if (status != Status.OK) return new Moved(e.status(), statuses);
      }
      throw e;
    }
  }

  /** Encodes blocks of a view under keys. */
  public Moved store(Codec codec, View v, Codec.Spec s, int blockTokens, List<byte[]> keys, long timeoutMs) {
    long codecHandle = codec.state.enter();
    try {
      return moved(keys.size(), results -> on("store", (cache, error) -> Flat.kvtf_cache_store(cache, codecHandle,
          v.record(), v.baseBytes(), v.tableBytes(), v.room(), s.record(), s.digest, blockTokens, Native.join(keys),
          results, timeoutMs, error)));
    } finally {
      codec.state.leave();
    }
  }

  /** Checks and decodes blocks into a view. */
  public Moved load(Codec codec, View v, Codec.Spec s, int blockTokens, List<byte[]> keys, long timeoutMs) {
    long codecHandle = codec.state.enter();
    try {
      return moved(keys.size(), results -> on("load", (cache, error) -> Flat.kvtf_cache_load(cache, codecHandle,
          v.record(), v.baseBytes(), v.tableBytes(), v.room(), s.record(), s.digest, blockTokens, Native.join(keys),
          results, timeoutMs, error)));
    } finally {
      codec.state.leave();
    }
  }

  /** Copies frames and puts them. */
  public Operation submitPut(List<byte[]> keys, List<byte[]> frames, long timeoutMs) {
    return new Operation((h, error) -> Flat.kvtf_cache_submit_put(h[0], Native.join(keys), Native.join(frames),
        Native.lengths(frames), timeoutMs, error), this);
  }

  /** As store, from memory that stays open until the operation is closed. */
  public Operation submitStore(Codec codec, View v, Memory memory, Codec.Spec s, int blockTokens, List<byte[]> keys,
      long timeoutMs) {
    return new Operation((h, error) -> Flat.kvtf_cache_submit_store(h[0], h[2], v.record(), v.baseBytes(),
        v.tableBytes(), h[1], s.record(), s.digest, blockTokens, Native.join(keys), timeoutMs, error), this, memory, codec);
  }

  /** As load, into memory. */
  public Operation submitLoad(Codec codec, View v, Memory memory, Codec.Spec s, int blockTokens, List<byte[]> keys,
      long timeoutMs) {
    return new Operation((h, error) -> Flat.kvtf_cache_submit_load(h[0], h[2], v.record(), v.baseBytes(),
        v.tableBytes(), h[1], s.record(), s.digest, blockTokens, Native.join(keys), timeoutMs, error), this, memory, codec);
  }

  /** A descriptor that is readable while completions wait; it belongs to the cache. */
  public int eventFd() {
    return (int) on("event fd", Flat::kvtf_cache_event_fd);
  }

  /** Waits until the descriptor is readable; false at the deadline. */
  public boolean awaitEvent(long timeoutMs) {
    return Operation.awaitEvent(this, timeoutMs, Flat::kvtf_cache_event_fd);
  }

  /** Drains up to max completions. */
  public Operation.Completion[] poll(int max) {
    return Operation.poll(this, max, Flat::kvtf_cache_poll);
  }
}
