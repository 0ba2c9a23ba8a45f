package io.kvartet;

/** A failed call: its status and the library's text. A status that {@link Status} does not name keeps its number. */
public final class KvartetException extends RuntimeException {
  private static final long serialVersionUID = 1;
  private final int status;

  public KvartetException(int status, String call, String text) {
    super(call + ": " + Status.name(status) + ": " + text);
    this.status = status;
  }

  /** A number of {@link Status}. */
  public int status() {
    return status;
  }
}
