package io.kvartet;

import io.kvartet.internal.generated.Flat;
import io.kvartet.internal.generated.FlatConstants;

/** Statuses as numbers, so that those of a newer library keep their value. */
public final class Status {
  public static final int OK = FlatConstants.KVTF_OK;
  public static final int INTERNAL = FlatConstants.KVTF_INTERNAL;
  public static final int INVALID_ARGUMENT = FlatConstants.KVTF_INVALID_ARGUMENT;
  public static final int OUT_OF_RANGE = FlatConstants.KVTF_OUT_OF_RANGE;
  public static final int BUFFER_TOO_SMALL = FlatConstants.KVTF_BUFFER_TOO_SMALL;
  public static final int UNSUPPORTED = FlatConstants.KVTF_UNSUPPORTED;
  public static final int UNAVAILABLE = FlatConstants.KVTF_UNAVAILABLE;
  public static final int NOT_FOUND = FlatConstants.KVTF_NOT_FOUND;
  public static final int ALREADY_EXISTS = FlatConstants.KVTF_ALREADY_EXISTS;
  public static final int STALE_HANDLE = FlatConstants.KVTF_STALE_HANDLE;
  public static final int WRONG_HANDLE = FlatConstants.KVTF_WRONG_HANDLE;
  public static final int BUSY = FlatConstants.KVTF_BUSY;
  public static final int CLOSED = FlatConstants.KVTF_CLOSED;
  public static final int TIMEOUT = FlatConstants.KVTF_TIMEOUT;
  public static final int CANCELLED = FlatConstants.KVTF_CANCELLED;
  public static final int STALLED = FlatConstants.KVTF_STALLED;
  public static final int PEER_DEAD = FlatConstants.KVTF_PEER_DEAD;
  public static final int CORRUPT = FlatConstants.KVTF_CORRUPT;
  public static final int MISMATCH = FlatConstants.KVTF_MISMATCH;
  public static final int PROFILE_MISSING = FlatConstants.KVTF_PROFILE_MISSING;
  public static final int VERSION = FlatConstants.KVTF_VERSION;
  public static final int IO = FlatConstants.KVTF_IO;
  public static final int DISK_FULL = FlatConstants.KVTF_DISK_FULL;
  public static final int LOCKED = FlatConstants.KVTF_LOCKED;
  public static final int PERMISSION = FlatConstants.KVTF_PERMISSION;
  public static final int ADDRESS_IN_USE = FlatConstants.KVTF_ADDRESS_IN_USE;
  public static final int OUT_OF_MEMORY = FlatConstants.KVTF_OUT_OF_MEMORY;
  public static final int LIMIT = FlatConstants.KVTF_LIMIT;

  private Status() {}

  /** For example "KVT_ERR_TIMEOUT"; "KVT_STATUS_UNKNOWN" for a number that the library does not know. */
  public static String name(int status) {
    byte[] buffer = new byte[64];
    long length = Flat.kvtf_status_name(status, buffer);
    return length > buffer.length ? "KVT_STATUS_UNKNOWN" : Native.text(java.util.Arrays.copyOf(buffer, (int) length));
  }
}
