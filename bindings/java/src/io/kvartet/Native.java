package io.kvartet;

import io.kvartet.internal.generated.Flat;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;

/** Calls of the facade: each also writes the text of its own failure. Threads: any. */
final class Native {
  interface Call {
    long run(ByteBuffer error);
  }

  interface Output {
    long run(byte[] buffer, ByteBuffer error);
  }

  private static final ThreadLocal<ByteBuffer> TEXTS = ThreadLocal.withInitial(() -> ByteBuffer.allocateDirect(1025));

  private Native() {}

  static {
    String path = System.getProperty("kvartet.library");
    if (path != null) {
      System.load(path);
    } else {
      System.loadLibrary("kvartet_jni");
    }
    checkAbi((int) Flat.kvtf_abi_version(), (int) Flat.kvtf_header_abi_version());
  }

  /** Refuses a library of another major version; before 1.0 of another minor one, too. */
  static void checkAbi(int library, int header) {
    boolean fits = library >>> 16 == header >>> 16 && (header >>> 16 != 0 || library == header);
    if (!fits) {
      throw new KvartetException(Status.VERSION, "load", String.format("the library has ABI %d.%d, this package %d.%d",
          library >>> 16, library & 0xffff, header >>> 16, header & 0xffff));
    }
  }

  static long call(String name, Call function) {
    ByteBuffer text = TEXTS.get();
    text.put(0, (byte) 0);
    long result = function.run(text);
    if (result < 0) throw failure((int) result, name, text);
    return result;
  }

  private static KvartetException failure(int status, String name, ByteBuffer text) {
    int end = 0;
    while (end < text.capacity() && text.get(end) != 0) ++end;
    byte[] bytes = new byte[end];
    text.get(0, bytes);
    return new KvartetException(status, name, new String(bytes, StandardCharsets.UTF_8));
  }

  /** A call whose output has no known size. */
  static byte[] output(String name, int guess, Output function) {
    for (int room = guess;;) {
      byte[] buffer = new byte[room];
      long length = call(name, error -> function.run(buffer, error));
      if (length == room) return buffer;
      if (length < room) return Arrays.copyOf(buffer, (int) length);
      if (length > Integer.MAX_VALUE - 8) {
        throw new KvartetException(Status.LIMIT, name, "the output has " + length + " bytes; an array holds fewer");
      }
      room = (int) length;
    }
  }

  static byte[] defaults(int record) {
    return output("defaults", 256, (buffer, error) -> Flat.kvtf_defaults(record, buffer, error));
  }

  /** Bytes for a call: a direct buffer's own from position to limit, else a copy. */
  static Object input(ByteBuffer bytes) {
    if (bytes == null) return null;
    if (bytes.isDirect()) return bytes.slice();
    byte[] copy = new byte[bytes.remaining()];
    bytes.duplicate().get(copy);
    return copy;
  }

  /** Room for a call to write: only a direct buffer stays where it is. */
  static ByteBuffer room(ByteBuffer bytes) {
    if (bytes == null) return null;
    if (!bytes.isDirect() || bytes.isReadOnly()) {
      throw new IllegalArgumentException("a writable direct ByteBuffer is required");
    }
    return bytes.slice();
  }

  static byte[] utf8(String text) {
    return text == null ? null : text.getBytes(StandardCharsets.UTF_8);
  }

  static String text(byte[] bytes) {
    return new String(bytes, StandardCharsets.UTF_8);
  }

  private static ByteBuffer little(int bytes) {
    return ByteBuffer.allocate(bytes).order(ByteOrder.LITTLE_ENDIAN);
  }

  static byte[] record(long... words) {
    ByteBuffer buffer = little(8 * words.length);
    for (long word : words) buffer.putLong(word);
    return buffer.array();
  }

  static long word(byte[] record, int index) {
    return ByteBuffer.wrap(record).order(ByteOrder.LITTLE_ENDIAN).getLong(8 * index);
  }

  static double real(byte[] record, int index) {
    return Double.longBitsToDouble(word(record, index));
  }

  static byte[] ints(int... values) {
    if (values == null) return null;
    ByteBuffer buffer = little(4 * values.length);
    for (int value : values) buffer.putInt(value);
    return buffer.array();
  }

  static int[] ints(byte[] bytes, int offset, int count) {
    int[] values = new int[count];
    ByteBuffer.wrap(bytes, offset, 4 * count).order(ByteOrder.LITTLE_ENDIAN).asIntBuffer().get(values);
    return values;
  }

  static byte[] floats(float... values) {
    if (values == null) return null;
    ByteBuffer buffer = little(4 * values.length);
    for (float value : values) buffer.putFloat(value);
    return buffer.array();
  }

  static byte[] doubles(double... values) {
    if (values == null) return null;
    ByteBuffer buffer = little(8 * values.length);
    for (double value : values) buffer.putDouble(value);
    return buffer.array();
  }

  /** One after another. */
  static byte[] join(List<byte[]> parts) {
    int bytes = 0;
    for (byte[] part : parts) bytes = Math.addExact(bytes, part.length);
    ByteBuffer joined = ByteBuffer.allocate(bytes);
    for (byte[] part : parts) joined.put(part);
    return joined.array();
  }

  static byte[] lengths(List<byte[]> parts) {
    ByteBuffer buffer = little(8 * parts.size());
    for (byte[] part : parts) buffer.putLong(part.length);
    return buffer.array();
  }
}
