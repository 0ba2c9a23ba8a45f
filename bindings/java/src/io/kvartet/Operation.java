package io.kvartet;

import io.kvartet.internal.generated.Flat;
import io.kvartet.internal.generated.FlatConstants;

/** Runs beyond the call that submitted it. Close it when its results are read; that cancels one under way. */
public final class Operation extends NativeObject {
  /** What an operation reports when it ends, and a stream's for each part: then `part`, and itemsOk are in place. */
  public record Completion(long id, int status, boolean part, long itemsOk, long items, long bytes) {
    static Completion of(byte[] packed, int index) {
      int at = index * FlatConstants.KVTF_COMPLETION_WORDS;
      return new Completion(Native.word(packed, at + FlatConstants.KVTF_COMPLETION_OPERATION),
          (int) Native.word(packed, at + FlatConstants.KVTF_COMPLETION_STATUS),
          Native.word(packed, at + FlatConstants.KVTF_COMPLETION_KIND) == FlatConstants.KVTF_COMPLETION_PART,
          Native.word(packed, at + FlatConstants.KVTF_COMPLETION_ITEMS_OK),
          Native.word(packed, at + FlatConstants.KVTF_COMPLETION_ITEMS),
          Native.word(packed, at + FlatConstants.KVTF_COMPLETION_MOVED));
    }
  }

  private final long id;

  Operation(Create create, NativeObject... parents) {
    super("operation", Flat::kvtf_operation_release, create, parents);
    id = state.enter();
    state.leave();
  }

  /** What the operation's completion carries. */
  public long id() {
    return id;
  }

  /** Waits for the end; throws its status. TIMEOUT is this call's deadline or the operation's. */
  public Completion await(long timeoutMs) {
    byte[] buffer = new byte[FlatConstants.KVTF_COMPLETION_BYTES];
    on("wait", (h, error) -> Flat.kvtf_operation_wait(h, timeoutMs, buffer, error));
    return Completion.of(buffer, 0);
  }

  /** Ends the operation early: its completion then carries CANCELLED. */
  public void cancel() {
    on("cancel", Flat::kvtf_operation_cancel);
  }

  /** The items' own statuses, once the operation has ended. */
  public int[] results() {
    byte[] packed = onOutput("results", 256, Flat::kvtf_operation_results);
    return Native.ints(packed, 0, packed.length / 4);
  }

  /** What a pull brought for an item, or a part of a stream once it is in place. */
  public byte[] frame(int item) {
    return onOutput("frame", 4096, (h, buffer, error) -> Flat.kvtf_operation_frame(h, item, buffer, error));
  }

  static Completion[] poll(NativeObject owner, int max, OnOutput function) {
    byte[] packed = owner.onOutput("poll", max * FlatConstants.KVTF_COMPLETION_BYTES, function);
    Completion[] completions = new Completion[packed.length / FlatConstants.KVTF_COMPLETION_BYTES];
    for (int i = 0; i < completions.length; ++i) completions[i] = Completion.of(packed, i);
    return completions;
  }

  static boolean awaitEvent(NativeObject owner, long timeoutMs, On eventFd) {
    return owner.on("event wait", (h, error) -> {
      long fd = eventFd.run(h, error);
      return fd < 0 ? fd : Flat.kvtf_event_wait(fd, timeoutMs, error);
    }) == 1;
  }
}
