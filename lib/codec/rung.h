// What the rates and the ratio of a rung may be, wherever it comes from: an option, or a profile's bytes.
//
// Stateless and thread-safe.
#ifndef KVARTET_LIB_CODEC_RUNG_H_
#define KVARTET_LIB_CODEC_RUNG_H_

#include "base/status.h"
#include "kvartet/planner.h"

namespace kvt {

// Bandwidths and rates, in bytes a second, that anything is made of.
inline constexpr double kRateMin = 1, kRateMax = 1e15;

// An error is of `code` and names the field, which begins with `name`.
inline Status CheckRung(kvt_status_t code, absl::string_view name, const kvt_codec_rung_t& rung) {
  const auto bad = [&](absl::string_view field, const absl::AlphaNum& value, absl::string_view expected) {
    return Error(code, absl::StrCat(name, field, " is ", value, ", expected ", expected));
  };
  const auto is_rate = [](double rate) { return rate >= kRateMin && rate <= kRateMax; };
  if (!is_rate(rung.encode_rate)) return bad("encode_rate", rung.encode_rate, "1 to 1e15");
  if (!is_rate(rung.decode_rate)) return bad("decode_rate", rung.decode_rate, "1 to 1e15");
  if (!(rung.ratio >= 1e-3 && rung.ratio <= 1e6)) return bad("ratio", rung.ratio, "0.001 to 1e6");
  if (rung.reserved != 0) return bad("reserved", rung.reserved, "0");
  return OkStatus();
}

}  // namespace kvt

#endif  // KVARTET_LIB_CODEC_RUNG_H_
