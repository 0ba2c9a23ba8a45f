package io.kvartet;

import static io.kvartet.Kit.WAIT;
import static io.kvartet.Kit.check;
import static io.kvartet.Kit.emptyView;
import static io.kvartet.Kit.equal;
import static io.kvartet.Kit.frames;
import static io.kvartet.Kit.hex;
import static io.kvartet.Kit.modelOptions;
import static io.kvartet.Kit.refused;
import static io.kvartet.Kit.spec;
import static io.kvartet.Kit.tokens;
import static io.kvartet.Kit.viewOf;

import io.kvartet.internal.generated.Flat;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Consumer;

/** The cases of bad input. */
final class BadInput {
  private BadInput() {}

  static void badInputArguments() {
    KvRuntime.Options many = new KvRuntime.Options();
    many.threads = 1000;
    refused(Status.INVALID_ARGUMENT, () -> new KvRuntime(many), "threads", "1000");
    Model.Options none = modelOptions();
    none.layers = 0;
    refused(Status.INVALID_ARGUMENT, () -> new Model(none), "layers");
    Node.Options hasty = new Node.Options();
    hasty.stallMs = 1;
    refused(Status.INVALID_ARGUMENT, () -> new Verifier(new Verifier.Options()));
    refused(Status.INVALID_ARGUMENT, () -> new Memory(-1), "-1");
    refused(Status.INVALID_ARGUMENT, () -> Kvartet.blockHashes(tokens(16), 0, null, null));
    Model.Naming odd = new Model.Naming();
    odd.blockTokens = 17;
    try (KvRuntime r = new KvRuntime(); Model m = new Model(modelOptions()); Cache c = new Cache(r, "mem:?capacity=1MiB")) {
      refused(Status.UNSUPPORTED, () -> new Codec(m, "zip"), "zip");
      refused(Status.UNSUPPORTED, () -> new Cache(r, "gopher:x"), "gopher");
      refused(Status.INVALID_ARGUMENT, () -> new Cache(r, "mem:?capacity=many"), "capacity");
      refused(Status.INVALID_ARGUMENT, () -> m.keys(tokens(16), odd), "block_tokens", "17");
      refused(Status.INVALID_ARGUMENT, () -> new Node(r, m, hasty), "stall_ms", "1");
      refused(Status.INVALID_ARGUMENT, () -> c.match(List.of(new byte[35])), "35");
      refused(Status.INVALID_ARGUMENT,
          () -> c.putAll(List.of(new byte[36], new byte[36]), List.of(new byte[1]), WAIT), "lengths");
      byte[] key = new byte[36];
      key[0] = 1;
      refused(Status.INVALID_ARGUMENT, () -> c.putAll(List.of(key), List.of(new byte[1]), -1), "timeout_ms");
      refused(Status.INVALID_ARGUMENT, () -> c.put(key, new byte[0]), "frame");
      refused(Status.INVALID_ARGUMENT, () -> c.put(key, (ByteBuffer) null), "frame");
      refused(Status.INVALID_ARGUMENT, () -> c.put(new byte[35], new byte[1]), "key is 35");
      refused(Status.INVALID_ARGUMENT, () -> c.put(null, new byte[1]), "key is 0");
    }
    // Below the idiomatic layer: records of sizes that it never makes, and objects that are no bytes.
    refused(Status.INVALID_ARGUMENT, () -> Native.call("runtime", e -> Flat.kvtf_runtime_create(new byte[7], e)), "7 bytes");
    refused(Status.INVALID_ARGUMENT, () -> Native.call("runtime", e -> Flat.kvtf_runtime_create(Native.record(-1), e)), "-1");
    for (Object wrong : List.of("text", ByteBuffer.allocate(8))) {
      try {
        Flat.kvtf_runtime_create(wrong, null);
        throw new AssertionError("accepted " + wrong.getClass());
      } catch (IllegalArgumentException e) {
        check(e.getMessage().contains("direct ByteBuffer"), e.getMessage());
      }
    }
  }

  static void badInputFrames() {
    Model.Options foreign = modelOptions();
    foreign.id = "other weights".getBytes();
    Cases.withCache((c, m) -> {
      Kit.Frames f = frames(m, 2);
      byte[] frame = f.frames().get(0);
      for (int at : new int[] {0, 40, frame.length / 2, frame.length - 1}) {
        byte[] damaged = frame.clone();
        damaged[at] ^= 1;
        int status = Cases.statusOf(() -> Kvartet.verifyFrame(ByteBuffer.wrap(damaged)));
        check(status == Status.CORRUPT || status == Status.VERSION, "byte " + at + ": " + Status.name(status));
        check(Cases.statusOf(() -> c.put(f.keys().get(0), damaged)) != Status.OK, "byte " + at + " was put");
      }
      refused(Status.CORRUPT, () -> Kvartet.verifyFrame(ByteBuffer.wrap(frame, 0, 100)));
      refused(Status.CORRUPT, () -> c.put(f.keys().get(0), ByteBuffer.wrap(frame, 0, 100)));
      refused(Status.MISMATCH, () -> c.put(f.keys().get(1), frame), "key");
      try (Model other = new Model(foreign); Codec codec = new Codec(m, "raw"); Codec strange = new Codec(other, "raw")) {
        refused(Status.MISMATCH, () -> codec.decode(ByteBuffer.wrap(frame), emptyView(16), spec(0, 16, f.keys().get(1))), "key");
        refused(Status.MISMATCH, () -> strange.decode(ByteBuffer.wrap(frame), emptyView(16), spec(0, 16, f.keys().get(0))), "model");
        refused(Status.MISMATCH, () -> m.compare(other), "model_id");
        m.compare(m);
      }
      equal(c.match(f.keys()), 0);
    });
  }

  static void badInputViews() {
    try (Model m = new Model(modelOptions()); Codec codec = new Codec(m, "raw")) {
      record Change(int status, Consumer<View> change) {}
      List<Change> changes = List.of(
          new Change(Status.OUT_OF_RANGE, v -> v.memory.limit(v.memory.capacity() - 1)),
          new Change(Status.OUT_OF_RANGE, v -> v.memory = null),
          new Change(Status.OUT_OF_RANGE, v -> v.bases[0] = -2),
          new Change(Status.OUT_OF_RANGE, v -> v.bases[3]++),
          new Change(Status.OUT_OF_RANGE, v -> v.tokenStride[0] = -v.tokenStride[0]),
          new Change(Status.OUT_OF_RANGE, v -> v.tokenStride[1] = Long.MAX_VALUE),
          new Change(Status.INVALID_ARGUMENT, v -> v.bases = Arrays.copyOf(v.bases, 3)),
          new Change(Status.INVALID_ARGUMENT, v -> v.element = 99),
          new Change(Status.INVALID_ARGUMENT, v -> {
            v.blockTable = new int[1];
            v.pageTokens = 8;
          }));
      for (Change change : changes) {
        View v = viewOf(16);
        change.change().accept(v);
        refused(change.status(), () -> codec.encode(v, spec(0, 16, null)));
      }
      refused(Status.OUT_OF_RANGE, () -> codec.encode(viewOf(16), spec(8, 16, null)));
    }
  }

  static void badInputText() {
    Set<String> seen = new HashSet<>();
    try (KvRuntime r = new KvRuntime(); Model m = new Model(modelOptions()); Meter meter = new Meter(r)) {
      for (String text : List.of("", "Zoë", "日本語", "😀", "a\0b", "a")) {
        Model.Naming naming = new Model.Naming();
        naming.namespace = Native.utf8(text);
        check(seen.add(hex(m.keys(tokens(16), naming).get(0))), "the key of another: " + text);
      }
      meter.begin("日本語 Zoë 😀").end();
      check(meter.json().contains("日本語 Zoë 😀"), meter.json());
      refused(Status.INVALID_ARGUMENT, () -> meter.begin(""));
      refused(Status.UNSUPPORTED, () -> new Codec(m, "zoë"), "zoë");
    }
  }
}
