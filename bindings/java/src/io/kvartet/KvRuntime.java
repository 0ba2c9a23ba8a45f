package io.kvartet;

import io.kvartet.internal.generated.Flat;
import io.kvartet.internal.generated.FlatConstants;

/** The library's threads and memory limit, under caches, nodes and meters. */
public final class KvRuntime extends NativeObject {
  static final long CLOSE_MS = 5000;

  /** Begins with the library's defaults. */
  public static final class Options {
    /** Worker threads, 1 to 256. */
    public int threads;
    /** Bytes for frames and buffers; 0: none. */
    public long memoryLimit;

    public Options() {
      byte[] d = Native.defaults(FlatConstants.KVTF_RECORD_RUNTIME);
      threads = (int) Native.word(d, FlatConstants.KVTF_RUNTIME_THREADS);
      memoryLimit = Native.word(d, FlatConstants.KVTF_RUNTIME_MEMORY_LIMIT);
    }
  }

  public KvRuntime() {
    this(new Options());
  }

  public KvRuntime(Options options) {
    super("runtime", KvRuntime::end,
        (h, error) -> Flat.kvtf_runtime_create(Native.record(options.threads, options.memoryLimit), error));
  }

  private static void end(long handle) {
    try {
      Native.call("runtime close", error -> Flat.kvtf_runtime_close(handle, CLOSE_MS, error));
    } finally {
      Flat.kvtf_runtime_destroy(handle);
    }
  }

  /** What the library has allocated for frames and buffers. */
  public long memoryUsed() {
    return on("memory used", Flat::kvtf_runtime_memory_used);
  }
}
