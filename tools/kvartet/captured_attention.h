// Queries that the engine showed, as the library takes them. Threads: as for any value type.
#ifndef KVARTET_TOOLS_KVARTET_CAPTURED_ATTENTION_H_
#define KVARTET_TOOLS_KVARTET_CAPTURED_ATTENTION_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/captured.h"
#include "kvartet/library.h"

namespace kvt::cli {

class CapturedAttention {
 public:
  // Rows [first, first + count) of `captured`, which lives as long. `positions` are those of the view's
  // tokens; those of the rows are among them.
  CapturedAttention(const engine::Captured& captured, size_t first, size_t count,
                    const std::vector<int32_t>& positions);
  CapturedAttention(const CapturedAttention&) = delete;
  CapturedAttention& operator=(const CapturedAttention&) = delete;

  const kvt_attention_t* get() const { return &attention_; }

 private:
  std::vector<uint32_t> tokens_;
  kvt_attention_t attention_;
};

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_CAPTURED_ATTENTION_H_
