// Places as URLs: scheme:rest?key=value&key=value, with sizes and rates in their usual units.
#ifndef KVARTET_LIB_BASE_URL_H_
#define KVARTET_LIB_BASE_URL_H_

#include <map>
#include <string>

#include "base/status.h"

namespace kvt {

struct Url {
  std::string scheme;                          // lower case, without the colon
  std::string rest;                            // what stands before '?', without a leading "//"
  std::map<std::string, std::string> options;  // each at most once

  // KVT_ERR_INVALID_ARGUMENT names the part that is wrong.
  static StatusOr<Url> Parse(absl::string_view text);
  // Refuses an option that is not in `known`.
  Status CheckOptions(std::initializer_list<absl::string_view> known) const;
  // The option's value, or `fallback` when it is absent.
  StatusOr<uint64_t> Size(const std::string& key, uint64_t fallback) const;
  StatusOr<uint64_t> BytesPerSecond(const std::string& key, uint64_t fallback) const;
  StatusOr<bool> Flag(const std::string& key) const;
};

// "200GiB" -> bytes. B, KB, MB, GB, TB, KiB, MiB, GiB, TiB; a bare number is bytes.
StatusOr<uint64_t> ParseSize(absl::string_view text);
// "1Gbit" -> bytes per second. Kbit, Mbit, Gbit, or a size unit per second.
StatusOr<uint64_t> ParseRate(absl::string_view text);

}  // namespace kvt

#endif  // KVARTET_LIB_BASE_URL_H_
