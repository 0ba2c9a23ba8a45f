package io.kvartet;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Objects;

/** What the cases share: assertions, a small model, its frames and views. */
final class Kit {
  static final long WAIT = 5000;

  private Kit() {}

  static void check(boolean condition, String what) {
    if (!condition) throw new AssertionError(what);
  }

  static void equal(Object got, Object want) {
    check(Objects.equals(got, want), "got " + got + ", want " + want);
  }

  static void same(byte[] got, byte[] want) {
    check(Arrays.equals(got, want), "the bytes differ: " + got.length + " and " + want.length);
  }

  /** Demands a status and words of its text. */
  static KvartetException refused(int status, Runnable call, String... words) {
    try {
      call.run();
    } catch (KvartetException e) {
      check(e.status() == status, "got " + e.getMessage() + ", want " + Status.name(status));
      for (String word : words) check(e.getMessage().contains(word), "text '" + e.getMessage() + "' lacks " + word);
      return e;
    }
    throw new AssertionError("not refused, want " + Status.name(status));
  }

  static Model.Options modelOptions() {
    Model.Options o = new Model.Options();
    o.id = "digest of the weights".getBytes();
    o.layers = 2;
    o.kvHeads = 2;
    o.kDim = 32;
    o.vDim = 32;
    return o;
  }

  static int[] tokens(int n) {
    int[] list = new int[n];
    for (int i = 0; i < n; ++i) list[i] = i;
    return list;
  }

  static View emptyView(int tokens) {
    View view = View.contiguous(modelOptions(), tokens);
    view.memory = ByteBuffer.allocateDirect(View.bytes(modelOptions(), tokens));
    return view;
  }

  /** Recognisable rows; every f16 is finite. */
  static View viewOf(int tokens) {
    View view = emptyView(tokens);
    for (int i = 0; i < view.memory.capacity(); ++i) view.memory.put(i, (byte) ((i * 7 + i / 251) & 0x3f));
    return view;
  }

  static byte[] bytes(View view) {
    byte[] copy = new byte[view.memory.capacity()];
    view.memory.get(0, copy);
    return copy;
  }

  static Codec.Spec spec(long begin, long count, byte[] key) {
    Codec.Spec spec = new Codec.Spec();
    spec.tokenBegin = begin;
    spec.tokenCount = count;
    spec.key = key;
    return spec;
  }

  record Frames(List<byte[]> keys, List<byte[]> frames) {}

  /** n keys and their frames of 16 tokens. */
  static Frames frames(Model model, int n) {
    List<byte[]> keys = model.keys(tokens(16 * n));
    List<byte[]> frames = new ArrayList<>();
    View view = viewOf(16 * n);
    try (Codec codec = new Codec(model, "raw")) {
      for (int i = 0; i < n; ++i) frames.add(codec.encode(view, spec(16L * i, 16, keys.get(i))).frame());
    }
    return new Frames(keys, frames);
  }

  /** A finite f16. */
  static double half(ByteBuffer b, int at) {
    int x = (b.get(at) & 0xff) | (b.get(at + 1) & 0xff) << 8;
    int exponent = x >> 10 & 31;
    double mantissa = (x & 1023) / 1024.0;
    return exponent == 0 ? mantissa * Math.pow(2, -14) : (1 + mantissa) * Math.pow(2, exponent - 15);
  }

  static String hex(byte[] bytes) {
    return HexFormat.of().formatHex(bytes);
  }

  static Verifier.Options toyOptions(int draft) {
    Verifier.Options o = new Verifier.Options();
    o.draftLength = draft;
    o.fidelity = Verifier.FIDELITY_C;
    o.vocabulary = Toy.VOCABULARY;
    o.promptTokens = Toy.PROMPT;
    o.maxTokens = Toy.TOKENS;
    o.firstToken = 1;
    return o;
  }

  /** An engine whose caches are lengths. Its draft errs after multiples of five. */
  static final class Toy implements Verifier.Engine {
    static final int VOCABULARY = 97;
    static final int TOKENS = 60;
    static final int PROMPT = 5;
    long draft = PROMPT;
    long full = PROMPT;
    int loads;
    String failAt;
    final List<Integer> committed = new ArrayList<>();

    static int next(int token) {
      return (token * 31 + 7) % VOCABULARY;
    }

    private void at(String step) {
      if (step.equals(failAt) && committed.size() > 10) throw new IllegalStateException("engine: " + step);
    }

    @Override
    public int[] draft(int[] tokens, int n) {
      at("draft");
      int[] drafted = new int[n];
      int token = tokens[tokens.length - 1];
      for (int i = 0; i < n; ++i) {
        drafted[i] = token % 5 == 0 ? (next(token) + 1) % VOCABULARY : next(token);
        token = drafted[i];
      }
      draft += tokens.length + n - 1;
      return drafted;
    }

    @Override
    public void prefetch() {
      if (++loads == 1) throw new KvartetException(Status.TIMEOUT, "toy", "the first load is late");
    }

    @Override
    public Verifier.Rows verify(int[] tokens, int width) {
      at("verify");
      full += tokens.length;
      return new Verifier.Rows(Arrays.stream(tokens).map(Toy::next).toArray(), null);
    }

    @Override
    public void truncate(long draftLength, long fullLength) {
      check(draftLength <= draft && fullLength <= full, "a cache would grow");
      draft = draftLength;
      full = fullLength;
    }

    @Override
    public void commit(int[] tokens) {
      for (int token : tokens) committed.add(token);
    }

    void checkCommitted() {
      equal(committed.size(), TOKENS - 1);
      int token = 1;
      for (int got : committed) {
        token = next(token);
        equal(got, token);
      }
    }
  }
}
