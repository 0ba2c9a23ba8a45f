package io.kvartet;

import io.kvartet.internal.generated.Flat;
import io.kvartet.internal.generated.FlatConstants;

/**
 * Gathers statistics of a model's KV from documents and makes a profile of them, which the codec "transform" needs.
 * Experimental: it may change in any release.
 */
public final class Calibration extends NativeObject {
  /** Begins with the library's defaults. */
  public static final class Options {
    /** Layers that share a basis; 0: a third of them. */
    public int groupLayers;
    /** The lowest ratio that the profile is for, 4 to 32. */
    public int ratioMin;
    /** Layers that it is for; 0 and 0: all. */
    public int layerBegin;
    public int layerEnd;
    /** Heads that it is for; 0 and 0: all. */
    public int headBegin;
    public int headEnd;

    public Options() {
      byte[] d = Native.defaults(FlatConstants.KVTF_RECORD_CALIBRATION);
      groupLayers = (int) Native.word(d, FlatConstants.KVTF_CALIBRATION_GROUP_LAYERS);
      ratioMin = (int) Native.word(d, FlatConstants.KVTF_CALIBRATION_RATIO_MIN);
      layerBegin = (int) Native.word(d, FlatConstants.KVTF_CALIBRATION_LAYER_BEGIN);
      layerEnd = (int) Native.word(d, FlatConstants.KVTF_CALIBRATION_LAYER_END);
      headBegin = (int) Native.word(d, FlatConstants.KVTF_CALIBRATION_HEAD_BEGIN);
      headEnd = (int) Native.word(d, FlatConstants.KVTF_CALIBRATION_HEAD_END);
    }

    byte[] record() {
      return Native.record(groupLayers, ratioMin, layerBegin, layerEnd, headBegin, headEnd);
    }
  }

  /** What a calibration has seen. */
  public record Info(long documents, long tokens, long nonfinite) {}

  /** Room for the profile of a small model, so that most need one call. */
  private static final int GUESS = 1 << 18;

  private Calibration(Model model, Create create) {
    super("calibration", Flat::kvtf_calibration_destroy, create, model);
  }

  public Calibration(Model model, Options o) {
    this(model, (h, error) -> Flat.kvtf_calibration_create(h[0], o.record(), error));
  }

  /** Continues one from what save gave. */
  public static Calibration restore(Model model, byte[] saved) {
    return new Calibration(model, (h, error) -> Flat.kvtf_calibration_restore(h[0], saved, error));
  }

  /** Takes in tokens of one document. */
  public void add(View v, long tokenBegin, long tokens) {
    on("calibration add", (h, error) -> Flat.kvtf_calibration_add(h, v.record(), v.baseBytes(), v.tableBytes(), v.room(),
        tokenBegin, tokens, error));
  }

  public Info progress() {
    byte[] s = onOutput("calibration progress", 8 * FlatConstants.KVTF_CALIBRATION_INFO_WORDS,
        Flat::kvtf_calibration_progress);
    return new Info(Native.word(s, FlatConstants.KVTF_CALIBRATION_INFO_DOCUMENTS),
        Native.word(s, FlatConstants.KVTF_CALIBRATION_INFO_TOKENS),
        Native.word(s, FlatConstants.KVTF_CALIBRATION_INFO_NONFINITE));
  }

  /** Copies the state out, to go on later with the same result. */
  public byte[] save() {
    return onOutput("calibration save", GUESS, Flat::kvtf_calibration_save);
  }

  /** Makes the profile of all that was added; it may compute for seconds. */
  public byte[] finish() {
    return onOutput("calibration finish", GUESS, Flat::kvtf_calibration_finish);
  }
}
