package io.kvartet;

import io.kvartet.internal.generated.Flat;
import io.kvartet.internal.generated.FlatConstants;

/** Profiles, as {@link Calibration} makes them. Experimental: it may change in any release. */
public final class Profile {
  private Profile() {}

  /** Checks a profile whole and names it. */
  public static byte[] fingerprint(byte[] profile) {
    return Native.output("profile fingerprint", FlatConstants.KVTF_FINGERPRINT_BYTES,
        (buffer, error) -> Flat.kvtf_profile_fingerprint(profile, buffer, error));
  }

  /** A profile as JSON. */
  public static String describe(byte[] profile) {
    return Native.text(Native.output("profile describe", 4096,
        (buffer, error) -> Flat.kvtf_profile_describe(profile, buffer, error)));
  }

  /** Where caches and peers keep the profile of a fingerprint. */
  public static byte[] key(byte[] fingerprint) {
    return Native.output("profile key", FlatConstants.KVTF_KEY_BYTES,
        (buffer, error) -> Flat.kvtf_profile_key(fingerprint, buffer, error));
  }

  /** A frame of a profile, to put into a cache or to serve; `digest` may be null. */
  public static byte[] wrap(byte[] profile, byte[] digest) {
    return Native.output("profile wrap", profile.length + 4096,
        (buffer, error) -> Flat.kvtf_profile_wrap(profile, digest, buffer, error));
  }

  /** Checks such a frame whole and copies the profile out. */
  public static byte[] unwrap(byte[] frame) {
    return Native.output("profile unwrap", frame.length,
        (buffer, error) -> Flat.kvtf_profile_unwrap(frame, buffer, error));
  }
}
