// What the codecs that a planner chooses from cost with a model's KV, measured on one of its documents.
// Threads: one caller; nothing else may be at work, for seconds are measured.
#ifndef KVARTET_TOOLS_KVARTET_RUNG_COSTS_H_
#define KVARTET_TOOLS_KVARTET_RUNG_COSTS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kvartet/forced_output.h"
#include "kvartet/library.h"

namespace kvt::cli {

// The codecs that the profile is for, from the mildest on, with the rates of one thread. A quality class is
// the mean divergence of the document's continuation in millionths of a nat, rounded up; 0: bit-exact. Throws
// Failure.
std::vector<kvt_profile_rung_t> MeasureRungs(const engine::Engine& engine, const Model& model,
                                             const ProbeDocument& document, std::span<const uint8_t> profile,
                                             uint32_t ratio_min);

// As the system calls it, without what a profile does not take.
std::string ProcessorName();

std::vector<uint8_t> ProfileWithRungs(std::span<const uint8_t> profile,
                                      std::span<const kvt_profile_rung_t> rungs,
                                      const std::string& processor);

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_RUNG_COSTS_H_
