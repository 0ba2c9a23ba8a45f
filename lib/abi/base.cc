#include "kvartet/base.h"

#include "base/boundary.h"
#include "base/options.h"
#include "base/status.h"

extern "C" {

KVT_API uint32_t kvt_abi_version(void) { return KVT_ABI_VERSION; }

KVT_API const char* kvt_version_string(void) { return KVARTET_VERSION; }

KVT_API const char* kvt_status_name(kvt_status_t status) { return kvt::StatusName(status); }

KVT_API kvt_status_t kvt_last_error(char* buf, size_t cap, size_t* needed) {
  // Does not go through Boundary: reading the text must not clear it.
  const absl::string_view text = kvt::LastError();
  const kvt::Status status = kvt::CopyOut(text.data(), text.size(), buf, cap, needed);
  return kvt::CodeOf(status);
}

}  // extern "C"
