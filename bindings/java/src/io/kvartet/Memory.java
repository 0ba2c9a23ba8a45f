package io.kvartet;

import io.kvartet.internal.generated.Flat;

/** Bytes outside of Java's heap, which operations may hold beyond a call. Closing it then is BUSY. */
public final class Memory extends NativeObject {
  public Memory(long bytes) {
    super("memory", handle -> Native.call("memory close", error -> Flat.kvtf_memory_destroy(handle, error)),
        (h, error) -> Flat.kvtf_memory_create(bytes, error));
  }

  public void write(long offset, byte[] data) {
    on("memory write", (h, error) -> Flat.kvtf_memory_write(h, offset, data, error));
  }

  public void read(long offset, byte[] buffer) {
    on("memory read", (h, error) -> Flat.kvtf_memory_read(h, offset, buffer, error));
  }
}
