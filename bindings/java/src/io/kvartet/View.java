package io.kvartet;

import java.nio.ByteBuffer;

/**
 * Where KV lies in a direct buffer: base i (layer by layer, stream by stream) is an offset into it; strides are in
 * bytes, one a stream. Nothing is copied, and a view that leaves its memory is refused.
 */
public final class View {
  public int element = Kvartet.F16;
  public int layerBegin;
  public int layerEnd;
  public int headBegin;
  public int headEnd;
  public long tokens;
  public long firstPosition;
  public final long[] tokenStride = new long[2];
  public final long[] headStride = new long[2];
  public final long[] elementStride = new long[2];
  public final long[] pageStride = new long[2];
  public int pageTokens;
  public long[] bases = {};
  public int[] blockTable = {};
  /** Direct, from its position to its limit. Not used by operations, which hold a {@link Memory}. */
  public ByteBuffer memory;

  /** Planes of f16 rows, one after another, layer by layer; `memory` is for the caller to set. */
  public static View contiguous(Model.Options model, int tokens) {
    View view = new View();
    view.layerEnd = model.layers;
    view.headEnd = model.kvHeads;
    view.tokens = tokens;
    int streams = model.vDim > 0 ? 2 : 1;
    int[] dims = {model.kDim, model.vDim};
    for (int s = 0; s < streams; ++s) {
      view.elementStride[s] = 2;
      view.headStride[s] = 2L * dims[s];
      view.tokenStride[s] = view.headStride[s] * model.kvHeads;
    }
    view.bases = new long[model.layers * streams];
    long at = 0;
    for (int i = 0; i < view.bases.length; ++i) {
      view.bases[i] = at;
      at += view.tokenStride[i % streams] * tokens;
    }
    return view;
  }

  /** The memory that such a view needs. */
  public static int bytes(Model.Options model, int tokens) {
    return Math.multiplyExact(2 * (model.kDim + model.vDim) * model.kvHeads * model.layers, tokens);
  }

  byte[] record() {
    return Native.record(element, layerBegin, layerEnd, headBegin, headEnd, tokens, firstPosition, tokenStride[0],
        tokenStride[1], headStride[0], headStride[1], elementStride[0], elementStride[1], pageStride[0], pageStride[1],
        pageTokens);
  }

  byte[] baseBytes() {
    return Native.record(bases);
  }

  byte[] tableBytes() {
    return Native.ints(blockTable);
  }

  ByteBuffer room() {
    return Native.room(memory);
  }
}
