package io.kvartet;

import io.kvartet.internal.generated.Flat;
import io.kvartet.internal.generated.FlatConstants;

/** Says what to do next for one sequence that drafts on a lossy cache. Used by one thread at a time. */
public final class Verifier extends NativeObject {
  public static final int FIDELITY_N = FlatConstants.KVTF_FIDELITY_N;
  public static final int FIDELITY_A = FlatConstants.KVTF_FIDELITY_A;
  public static final int FIDELITY_B = FlatConstants.KVTF_FIDELITY_B;
  public static final int FIDELITY_C = FlatConstants.KVTF_FIDELITY_C;
  public static final int DRAFT = FlatConstants.KVTF_ACTION_DRAFT;
  public static final int PREFETCH = FlatConstants.KVTF_ACTION_PREFETCH;
  public static final int VERIFY = FlatConstants.KVTF_ACTION_VERIFY;
  public static final int RECHECK = FlatConstants.KVTF_ACTION_RECHECK;
  public static final int ROLLBACK = FlatConstants.KVTF_ACTION_ROLLBACK;
  public static final int COMMIT = FlatConstants.KVTF_ACTION_COMMIT;
  public static final int FALLBACK = FlatConstants.KVTF_ACTION_FALLBACK;
  public static final int DONE = FlatConstants.KVTF_ACTION_DONE;

  /** Begins with the library's defaults. */
  public static final class Options {
    public int draftLength;
    public int draftMax;
    public int width;
    public int fidelity;
    public float margin;
    public int firstToken;
    public int vocabulary;
    public long promptTokens;
    public long maxTokens;
    public int[] eos = {};
    public boolean fullReady;
    public boolean fullReload;

    public Options() {
      byte[] d = Native.defaults(FlatConstants.KVTF_RECORD_VERIFIER);
      draftLength = (int) Native.word(d, FlatConstants.KVTF_VERIFIER_DRAFT_LENGTH);
      draftMax = (int) Native.word(d, FlatConstants.KVTF_VERIFIER_DRAFT_MAX);
      width = (int) Native.word(d, FlatConstants.KVTF_VERIFIER_WIDTH);
      fidelity = (int) Native.word(d, FlatConstants.KVTF_VERIFIER_FIDELITY);
      margin = (float) Native.real(d, FlatConstants.KVTF_VERIFIER_MARGIN);
      fullReady = Native.word(d, FlatConstants.KVTF_VERIFIER_FULL_READY) != 0;
      fullReload = Native.word(d, FlatConstants.KVTF_VERIFIER_FULL_RELOAD) != 0;
    }

    byte[] record() {
      return Native.record(draftLength, draftMax, width, fidelity, Double.doubleToRawLongBits(margin), firstToken,
          vocabulary, promptTokens, maxTokens, fullReady ? 1 : 0, fullReload ? 1 : 0);
    }
  }

  /** What to carry out now; verifier.h describes each kind. An unknown kind keeps its number. */
  public record Action(int kind, int reason, int n, int width, int pending, long draftLength, long fullLength,
      int[] tokens) {}

  public record Stats(long rounds, long drafted, long accepted, long committed, long fallbacks, long rechecks,
      long nonfinite, double acceptance, double meanAccepted) {}

  /** Argmax and, at level B, gap of each row. */
  public record Rows(int[] tokens, float[] gaps) {}

  /** What {@link #run} drives. No method runs inside of the library: what it throws passes through run. */
  public interface Engine {
    /** Decodes tokens on the draft cache, then drafts up to n. */
    int[] draft(int[] tokens, int n);

    /** Waits until the full cache is in place. */
    void prefetch();

    /** Runs the tokens, padded to width rows, on the full cache. */
    Rows verify(int[] tokens, int width);

    /** Cuts both caches. */
    void truncate(long draftLength, long fullLength);

    /** Hands final tokens on. */
    void commit(int[] tokens);
  }

  /** A level and, for level B, its margin. */
  public record Fidelity(int level, double margin) {}

  public Verifier(Options o) {
    super("verifier", Flat::kvtf_verifier_destroy,
        (h, error) -> Flat.kvtf_verifier_create(o.record(), Native.ints(o.eos), error));
  }

  /** The action that is due; asking again gives the same. */
  public Action next() {
    int head = 8 * FlatConstants.KVTF_ACTION_WORDS;
    byte[] a = onOutput("next", head + 4 * 257, Flat::kvtf_verifier_next);
    return new Action((int) Native.word(a, FlatConstants.KVTF_ACTION_KIND),
        (int) Native.word(a, FlatConstants.KVTF_ACTION_REASON), (int) Native.word(a, FlatConstants.KVTF_ACTION_N),
        (int) Native.word(a, FlatConstants.KVTF_ACTION_WIDTH), (int) Native.word(a, FlatConstants.KVTF_ACTION_PENDING),
        Native.word(a, FlatConstants.KVTF_ACTION_DRAFT_LENGTH), Native.word(a, FlatConstants.KVTF_ACTION_FULL_LENGTH),
        Native.ints(a, head, (int) Native.word(a, FlatConstants.KVTF_ACTION_TOKENS)));
  }

  public void drafted(int[] tokens, long microseconds) {
    on("drafted", (h, error) -> Flat.kvtf_verifier_drafted(h, Native.ints(tokens), microseconds, error));
  }

  /** How a prefetch ended: OK when the full cache is in place. */
  public void loaded(int status, long microseconds) {
    on("loaded", (h, error) -> Flat.kvtf_verifier_loaded(h, status, microseconds, error));
  }

  public void verified(int[] tokens, float[] gaps, long microseconds) {
    on("verified", (h, error) ->
        Flat.kvtf_verifier_verified(h, Native.ints(tokens), Native.floats(gaps), microseconds, error));
  }

  public void rechecked(int token, long microseconds) {
    on("rechecked", (h, error) -> Flat.kvtf_verifier_rechecked(h, token, microseconds, error));
  }

  public void rolledBack() {
    on("rolled back", Flat::kvtf_verifier_rolled_back);
  }

  public void committed() {
    on("committed", Flat::kvtf_verifier_committed);
  }

  /** Ends the sequence; what was committed stays. */
  public void cancel() {
    on("cancel", Flat::kvtf_verifier_cancel);
  }

  public Stats stats() {
    byte[] s = onOutput("stats", 8 * FlatConstants.KVTF_VERIFIER_STATS_WORDS, Flat::kvtf_verifier_stats);
    return new Stats(Native.word(s, FlatConstants.KVTF_VERIFIER_STATS_ROUNDS),
        Native.word(s, FlatConstants.KVTF_VERIFIER_STATS_DRAFTED), Native.word(s, FlatConstants.KVTF_VERIFIER_STATS_ACCEPTED),
        Native.word(s, FlatConstants.KVTF_VERIFIER_STATS_COMMITTED),
        Native.word(s, FlatConstants.KVTF_VERIFIER_STATS_FALLBACKS),
        Native.word(s, FlatConstants.KVTF_VERIFIER_STATS_RECHECKS),
        Native.word(s, FlatConstants.KVTF_VERIFIER_STATS_NONFINITE),
        Native.real(s, FlatConstants.KVTF_VERIFIER_STATS_ACCEPTANCE),
        Native.real(s, FlatConstants.KVTF_VERIFIER_STATS_MEAN_ACCEPTED));
  }

  /**
   * Carries out actions until the sequence is done. What the engine throws ends the run as it is; another run goes
   * on with the action that is due.
   */
  public void run(Engine engine) {
    for (Action action = next(); action.kind() != DONE; action = next()) step(engine, action);
  }

  private static long since(long begun) {
    return (System.nanoTime() - begun) / 1000;
  }

  private void step(Engine engine, Action a) {
    long begun = System.nanoTime();
    if (a.kind() == DRAFT) {
      int[] tokens = engine.draft(a.tokens(), a.n());
      drafted(tokens, since(begun));
    } else if (a.kind() == PREFETCH) {
      prefetch(engine, begun);
    } else if (a.kind() == VERIFY || a.kind() == FALLBACK) {
      Rows rows = engine.verify(a.tokens(), a.width());
      verified(rows.tokens(), rows.gaps(), since(begun));
    } else if (a.kind() == RECHECK) {
      engine.truncate(a.draftLength(), a.fullLength());
      rechecked(engine.verify(new int[] {a.tokens()[a.n()]}, 1).tokens()[0], since(begun));
    } else if (a.kind() == ROLLBACK) {
      engine.truncate(a.draftLength(), a.fullLength());
      rolledBack();
    } else if (a.kind() == COMMIT) {
      engine.commit(a.tokens());
      committed();
    } else {
      throw new KvartetException(Status.UNSUPPORTED, "run", "action " + a.kind() + " is not one that this package knows");
    }
  }

  private void prefetch(Engine engine, long begun) {
    try {
      engine.prefetch();
    } catch (KvartetException e) {
      loaded(e.status(), since(begun));
      throw e;
    }
    loaded(Status.OK, since(begun));
  }

  /** Compares rows of logits decoded alone and in batches; see verifier.h. */
  public static Fidelity classify(float[] alone, float[] batched, int vocabulary, int[] widths, int[] places) {
    byte[] margin = new byte[8];
    long level = Native.call("classify", error -> Flat.kvtf_fidelity_classify(Native.floats(alone),
        Native.floats(batched), Native.ints(widths), Native.ints(places), vocabulary, margin, error));
    return new Fidelity((int) level, Native.real(margin, 0));
  }
}
