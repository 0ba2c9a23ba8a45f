package io.kvartet;

import io.kvartet.internal.generated.Flat;
import io.kvartet.internal.generated.FlatConstants;
import java.nio.ByteBuffer;
import java.util.function.Consumer;

/** The library as a whole: versions, digests, hashes, and what happens to objects that nobody closed. */
public final class Kvartet {
  /** Bytes of a key. */
  public static final int KEY_BYTES = FlatConstants.KVTF_KEY_BYTES;
  public static final int F32 = FlatConstants.KVTF_ELEMENT_F32;
  public static final int F16 = FlatConstants.KVTF_ELEMENT_F16;
  public static final int BF16 = FlatConstants.KVTF_ELEMENT_BF16;
  public static final int LAYOUT_KV = FlatConstants.KVTF_LAYOUT_KV;
  public static final int LAYOUT_MLA = FlatConstants.KVTF_LAYOUT_MLA;
  public static final int ROPE_NONE = FlatConstants.KVTF_ROPE_NONE;
  public static final int ROPE_INTERLEAVED = FlatConstants.KVTF_ROPE_INTERLEAVED;
  public static final int ROPE_HALF_SPLIT = FlatConstants.KVTF_ROPE_HALF_SPLIT;

  private Kvartet() {}

  /** The loaded library's version. */
  public static String version() {
    return Native.text(Native.output("version", 32, (buffer, error) -> Flat.kvtf_version(buffer)));
  }

  /** The loaded library's ABI: major in the upper 16 bits. */
  public static int abiVersion() {
    return (int) Native.call("abi version", error -> Flat.kvtf_abi_version());
  }

  /** What frames carry and peers are checked by. */
  public static byte[] namespaceDigest(byte[] namespace, byte[] salt) {
    return Native.output("digest", FlatConstants.KVTF_DIGEST_BYTES,
        (buffer, error) -> Flat.kvtf_namespace_digest(namespace, salt, buffer, error));
  }

  /** Routing hashes as NVIDIA Dynamo and SMG compute them, unsigned; never use them to name data. */
  public static long[] blockHashes(int[] tokens, int blockTokens, byte[] adapter, byte[] namespace) {
    int room = blockTokens > 0 ? 8 * (tokens.length / blockTokens + 1) : 8;
    byte[] packed = Native.output("block hashes", room, (buffer, error) ->
        Flat.kvtf_block_hashes(blockTokens, Native.ints(tokens), adapter, namespace, buffer, error));
    long[] hashes = new long[packed.length / 8];
    for (int i = 0; i < hashes.length; ++i) hashes[i] = Native.word(packed, i);
    return hashes;
  }

  /** Checks a whole frame without decoding it. */
  public static void verifyFrame(ByteBuffer frame) {
    Native.call("frame verify", error -> Flat.kvtf_frame_verify(Native.input(frame), error));
  }

  /** A frame's header as JSON. */
  public static String describeFrame(ByteBuffer frame) {
    return Native.text(Native.output("frame describe", 1024,
        (buffer, error) -> Flat.kvtf_frame_describe(Native.input(frame), buffer, error)));
  }

  /** Says what happens when an object is dropped without close; the default writes to the system log. */
  public static void setLeakHandler(Consumer<String> handler) {
    NativeObject.setLeakHandler(handler);
  }
}
