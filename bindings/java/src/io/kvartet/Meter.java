package io.kvartet;

import io.kvartet.internal.generated.Flat;
import io.kvartet.internal.generated.FlatConstants;

/** Sums where the time to first token goes. Closing it ends its open requests. */
public final class Meter extends NativeObject {
  public static final int PART_QUEUE = FlatConstants.KVTF_PART_QUEUE;
  public static final int PART_PREFILL = FlatConstants.KVTF_PART_PREFILL;
  public static final int PART_ENCODE = FlatConstants.KVTF_PART_ENCODE;
  public static final int PART_TRANSFER = FlatConstants.KVTF_PART_TRANSFER;
  public static final int PART_DECODE = FlatConstants.KVTF_PART_DECODE;
  public static final int PART_FIRST_TOKEN = FlatConstants.KVTF_PART_FIRST_TOKEN;
  public static final int PART_OTHER = FlatConstants.KVTF_PART_OTHER;
  public static final int BYTES_RAW = FlatConstants.KVTF_COUNTER_BYTES_RAW;
  public static final int BYTES_MOVED = FlatConstants.KVTF_COUNTER_BYTES_MOVED;
  public static final int CHECKSUMS = FlatConstants.KVTF_COUNTER_CHECKSUMS;
  public static final int BLOCKS_HIT = FlatConstants.KVTF_COUNTER_BLOCKS_HIT;
  public static final int BLOCKS_MISSED = FlatConstants.KVTF_COUNTER_BLOCKS_MISSED;
  public static final int TOKENS_PROMPT = FlatConstants.KVTF_COUNTER_TOKENS_PROMPT;
  public static final int TOKENS_OUTPUT = FlatConstants.KVTF_COUNTER_TOKENS_OUTPUT;
  public static final int TOKENS_DRAFTED = FlatConstants.KVTF_COUNTER_TOKENS_DRAFTED;
  public static final int TOKENS_ACCEPTED = FlatConstants.KVTF_COUNTER_TOKENS_ACCEPTED;
  public static final int NONFINITE = FlatConstants.KVTF_COUNTER_NONFINITE;

  public Meter(KvRuntime runtime) {
    super("meter", Flat::kvtf_meter_destroy, (h, error) -> Flat.kvtf_meter_create(h[0], error), runtime);
  }

  /** What was summed; meter.h has the schema. */
  public String json() {
    return Native.text(onOutput("meter json", 4096, Flat::kvtf_meter_json));
  }

  /** One sentence: which axis to touch first, and why. */
  public String advice() {
    return Native.text(onOutput("advice", 512, Flat::kvtf_meter_advice));
  }

  /** Adds to a counter of the meter itself. */
  public void count(int counter, long amount) {
    on("count", (h, error) -> Flat.kvtf_request_count(h, 0, counter, amount, error));
  }

  /** Starts a request's clock; requests are grouped by way. */
  public Request begin(String way) {
    return new Request(on("begin", (h, error) -> Flat.kvtf_request_begin(h, Native.utf8(way), error)));
  }

  /** One request, from begin to end; used by one thread at a time. */
  public final class Request {
    private final long id;

    private Request(long id) {
      this.id = id;
    }

    /** Says what the time from now on belongs to. */
    public void part(int part) {
      on("part", (h, error) -> Flat.kvtf_request_part(h, id, part, error));
    }

    /** Moves time between parts. */
    public void attribute(int from, int to, long nanoseconds) {
      on("attribute", (h, error) -> Flat.kvtf_request_attribute(h, id, from, to, nanoseconds, error));
    }

    public void firstToken() {
      on("first token", (h, error) -> Flat.kvtf_request_first_token(h, id, error));
    }

    public void count(int counter, long amount) {
      on("count", (h, error) -> Flat.kvtf_request_count(h, id, counter, amount, error));
    }

    /** Folds the request into its way. */
    public void end() {
      on("end", (h, error) -> Flat.kvtf_request_end(h, id, error));
    }
  }
}
