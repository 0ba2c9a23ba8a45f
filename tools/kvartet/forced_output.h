// What a model puts out for the next tokens of a document, when the rows of its context are not what it
// computed: how far rows that a codec changed take it away. Threads: one at a time for each object.
#ifndef KVARTET_TOOLS_KVARTET_FORCED_OUTPUT_H_
#define KVARTET_TOOLS_KVARTET_FORCED_OUTPUT_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/engine.h"

namespace kvt::cli {

struct ProbeDocument {
  std::vector<int32_t> context, continuation;  // tokens
  engine::KvBlob rows;                         // of the context
};

// Cuts a document of at least 64 tokens; `rows` are of all its tokens.
ProbeDocument CutProbe(std::span<const int32_t> tokens, const engine::KvBlob& rows);

class ForcedOutput {
 public:
  // Engine and document are borrowed. Throws Failure, as do the others.
  ForcedOutput(const engine::Engine& engine, const ProbeDocument& document);

  // The logits of the continuation after these rows.
  std::vector<float> Logits(const engine::KvBlob& rows);
  // Of two such logits: mean over the tokens, in nats.
  double Divergence(const std::vector<float>& full, const std::vector<float>& other) const;

 private:
  const ProbeDocument& document_;
  const size_t vocab_;
  const std::unique_ptr<engine::Session> session_;
};

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_FORCED_OUTPUT_H_
