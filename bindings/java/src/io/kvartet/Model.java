package io.kvartet;

import io.kvartet.internal.generated.Flat;
import io.kvartet.internal.generated.FlatConstants;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** An immutable description of what computed the KV. */
public final class Model extends NativeObject {
  /** Begins with the library's defaults. */
  public static final class Options {
    public byte[] id;
    public byte[] adapter;
    public int layout;
    public int layers;
    public int kvHeads;
    public int kDim;
    public int vDim;
    public int element;
    public int ropeStyle;
    public int ropeOffset;
    public int ropeDims;
    public double ropeBase;
    public double ropeMagnitude;
    public double[] ropeFactors;

    public Options() {
      byte[] d = Native.defaults(FlatConstants.KVTF_RECORD_MODEL);
      layout = (int) Native.word(d, FlatConstants.KVTF_MODEL_LAYOUT);
      layers = (int) Native.word(d, FlatConstants.KVTF_MODEL_LAYERS);
      kvHeads = (int) Native.word(d, FlatConstants.KVTF_MODEL_KV_HEADS);
      kDim = (int) Native.word(d, FlatConstants.KVTF_MODEL_K_DIM);
      vDim = (int) Native.word(d, FlatConstants.KVTF_MODEL_V_DIM);
      element = (int) Native.word(d, FlatConstants.KVTF_MODEL_ELEMENT);
      ropeStyle = (int) Native.word(d, FlatConstants.KVTF_MODEL_ROPE_STYLE);
      ropeOffset = (int) Native.word(d, FlatConstants.KVTF_MODEL_ROPE_OFFSET);
      ropeDims = (int) Native.word(d, FlatConstants.KVTF_MODEL_ROPE_DIMS);
      ropeBase = Native.real(d, FlatConstants.KVTF_MODEL_ROPE_BASE);
      ropeMagnitude = Native.real(d, FlatConstants.KVTF_MODEL_ROPE_MAGNITUDE);
    }

    byte[] record() {
      return Native.record(layout, layers, kvHeads, kDim, vDim, element, ropeStyle, ropeOffset, ropeDims,
          Double.doubleToRawLongBits(ropeBase), Double.doubleToRawLongBits(ropeMagnitude));
    }
  }

  /** The part of a model that one rank holds. */
  public record Shard(int layerBegin, int layerEnd, int headBegin, int headEnd, int blockTokens) {}

  /** Bytes that belong to a token beside its id. */
  public record Extra(long token, byte[] data) {}

  /** What a key is made of beside the model and the tokens. */
  public static final class Naming {
    public int blockTokens = FlatConstants.KVTF_GRAIN_TOKENS;
    public byte[] namespace;
    public byte[] salt;
    public List<Extra> extras = List.of();
  }

  public Model(Options o) {
    super("model", Flat::kvtf_model_destroy, (h, error) ->
        Flat.kvtf_model_create(o.record(), o.id, o.adapter, Native.doubles(o.ropeFactors), error));
  }

  /** The 128-bit identity. */
  public byte[] fingerprint() {
    return onOutput("fingerprint", FlatConstants.KVTF_FINGERPRINT_BYTES, Flat::kvtf_model_fingerprint);
  }

  /** The bytes that the fingerprint is of. */
  public byte[] canonical() {
    return onOutput("canonical", 256, Flat::kvtf_model_canonical);
  }

  /** MISMATCH, naming the first field that differs, unless both are the same model. */
  public void compare(Model other) {
    long right = other.state.enter();
    try {
      on("compare", (left, error) -> Flat.kvtf_model_compare(left, right, error));
    } finally {
      other.state.leave();
    }
  }

  /** The whole model, in blocks of 16 tokens, to cut a part from. */
  public Shard shard() {
    byte[] s = onOutput("shard", 8 * FlatConstants.KVTF_SHARD_WORDS, Flat::kvtf_model_shard);
    return new Shard((int) Native.word(s, FlatConstants.KVTF_SHARD_LAYER_BEGIN),
        (int) Native.word(s, FlatConstants.KVTF_SHARD_LAYER_END), (int) Native.word(s, FlatConstants.KVTF_SHARD_HEAD_BEGIN),
        (int) Native.word(s, FlatConstants.KVTF_SHARD_HEAD_END), (int) Native.word(s, FlatConstants.KVTF_SHARD_BLOCK_TOKENS));
  }

  /** Turns the rotary embedding of tokens of a view back (undo) or forth, in place. */
  public void rope(View v, long tokenBegin, long tokens, boolean undo) {
    on("rope", (model, error) -> Flat.kvtf_model_rope(model, v.record(), v.baseBytes(), v.tableBytes(), v.room(),
        tokenBegin, tokens, undo ? 1 : 0, error));
  }

  /** The keys of all whole blocks, in order. */
  public List<byte[]> keys(int[] tokens, Naming naming) {
    List<byte[]> extras = new ArrayList<>();
    for (Extra extra : naming.extras) {
      extras.add(Native.record(extra.token(), extra.data().length));
      extras.add(extra.data());
    }
    int room = Kvartet.KEY_BYTES * (tokens.length / Math.max(1, naming.blockTokens) + 1);
    byte[] packed = onOutput("keys", room, (model, buffer, error) -> Flat.kvtf_keys_compute(model, naming.blockTokens,
        naming.namespace, naming.salt, Native.ints(tokens), Native.join(extras), buffer, error));
    List<byte[]> keys = new ArrayList<>();
    for (int at = 0; at < packed.length; at += Kvartet.KEY_BYTES) {
      keys.add(Arrays.copyOfRange(packed, at, at + Kvartet.KEY_BYTES));
    }
    return keys;
  }

  public List<byte[]> keys(int[] tokens) {
    return keys(tokens, new Naming());
  }
}
