package io.kvartet;

import io.kvartet.internal.generated.Flat;
import java.nio.ByteBuffer;

/**
 * Takes frames, usually of consecutive layers, while a prefill still runs; peers pull them as they come. Closing it
 * forgets it, and aborts one that has not been finished. Threads: one at a time.
 */
public final class FrameStream extends NativeObject {
  FrameStream(Node node, byte[] key) {
    super("stream", Flat::kvtf_stream_destroy, (h, error) -> Flat.kvtf_stream_open(h[0], key, error), node);
  }

  /** Adds one frame, which is copied. */
  public void append(ByteBuffer frame) {
    on("stream append", (h, error) -> Flat.kvtf_stream_append(h, Native.input(frame), error));
  }

  /** Completes the stream; peers may go on pulling it until it is closed. */
  public void finish() {
    on("stream finish", (h, error) -> Flat.kvtf_stream_finish(h, 1, error));
  }

  /** Ends the stream; its pullers get CANCELLED. */
  public void abort() {
    on("stream abort", (h, error) -> Flat.kvtf_stream_finish(h, 0, error));
  }
}
