package io.kvartet;

import io.kvartet.internal.generated.Flat;
import io.kvartet.internal.generated.FlatConstants;
import java.nio.ByteBuffer;

/** Turns views into frames and back. */
public final class Codec extends NativeObject {
  /** Begins with the library's defaults. */
  public static final class Options {
    public int groupTokens;
    public int groupChannels;
    /** transform: raw bytes to stored bytes. */
    public int ratio;
    /** transform: see {@link Calibration}. */
    public byte[] profile;

    public Options() {
      byte[] d = Native.defaults(FlatConstants.KVTF_RECORD_CODEC);
      groupTokens = (int) Native.word(d, FlatConstants.KVTF_CODEC_GROUP_TOKENS);
      groupChannels = (int) Native.word(d, FlatConstants.KVTF_CODEC_GROUP_CHANNELS);
      ratio = (int) Native.word(d, FlatConstants.KVTF_CODEC_RATIO);
    }
  }

  /** What a frame is of; as it begins: all layers of the view, no exempt tokens, unnamed. */
  public static final class Spec {
    public int layerBegin;
    public int layerEnd;
    public int exemptFirst;
    public int exemptLast;
    public long tokenBegin;
    public long tokenCount;
    public byte[] key;
    public byte[] digest;

    byte[] record() {
      return Native.record(layerBegin, layerEnd, exemptFirst, exemptLast, tokenBegin, tokenCount);
    }
  }

  /** What a codec did. */
  public record Report(long segments, long frameBytes, long decodedBytes, long nonfinite, long checksums) {
    static Report of(byte[] r) {
      return new Report(Native.word(r, FlatConstants.KVTF_REPORT_SEGMENTS),
          Native.word(r, FlatConstants.KVTF_REPORT_FRAME_BYTES), Native.word(r, FlatConstants.KVTF_REPORT_DECODED_BYTES),
          Native.word(r, FlatConstants.KVTF_REPORT_NONFINITE), Native.word(r, FlatConstants.KVTF_REPORT_CHECKSUMS));
    }
  }

  /** A frame and what encoding it did. */
  public record Encoded(byte[] frame, Report report) {}

  public Codec(Model model, String name) {
    this(model, name, new Options());
  }

  public Codec(Model model, String name, Options o) {
    super("codec", Flat::kvtf_codec_destroy, (h, error) ->
        Flat.kvtf_codec_create(h[0], Native.utf8(name), Native.record(o.groupTokens, o.groupChannels, o.ratio), o.profile,
            error), model);
  }

  /** The most bytes that encode makes. */
  public long bound(View v, Spec s) {
    return on("bound", (codec, error) -> Flat.kvtf_codec_bound(codec, v.record(), v.baseBytes(), v.tableBytes(),
        v.room(), s.record(), error));
  }

  /** Makes one frame. */
  public Encoded encode(View v, Spec s) {
    byte[] report = new byte[8 * FlatConstants.KVTF_REPORT_WORDS];
    int bound = Math.toIntExact(bound(v, s));
    byte[] frame = onOutput("encode", bound, (codec, buffer, error) -> Flat.kvtf_codec_encode(codec, v.record(),
        v.baseBytes(), v.tableBytes(), v.room(), s.record(), s.key, s.digest, buffer, report, error));
    return new Encoded(frame, Report.of(report));
  }

  /** Checks a frame against the spec and writes it into the view; after a failure the rows must not be used. */
  public Report decode(ByteBuffer frame, View v, Spec s) {
    byte[] report = new byte[8 * FlatConstants.KVTF_REPORT_WORDS];
    on("decode", (codec, error) -> Flat.kvtf_codec_decode(codec, Native.input(frame), v.record(), v.baseBytes(),
        v.tableBytes(), v.room(), s.record(), s.key, s.digest, report, error));
    return Report.of(report);
  }
}
