#include "measure/request_parts.h"

#include <limits>

namespace kvt {

const char* PartName(int32_t part) {
  switch (part) {
    case KVT_PART_QUEUE:
      return "queue";
    case KVT_PART_PREFILL:
      return "prefill";
    case KVT_PART_ENCODE:
      return "encode";
    case KVT_PART_TRANSFER:
      return "transfer";
    case KVT_PART_DECODE:
      return "decode";
    case KVT_PART_FIRST_TOKEN:
      return "first_token";
    default:
      return "other";
  }
}

const char* CounterName(int32_t counter) {
  switch (counter) {
    case KVT_COUNTER_BYTES_RAW:
      return "bytes_raw";
    case KVT_COUNTER_BYTES_MOVED:
      return "bytes_moved";
    case KVT_COUNTER_CHECKSUMS:
      return "checksums";
    case KVT_COUNTER_BLOCKS_HIT:
      return "blocks_hit";
    case KVT_COUNTER_BLOCKS_MISSED:
      return "blocks_missed";
    case KVT_COUNTER_TOKENS_PROMPT:
      return "tokens_prompt";
    case KVT_COUNTER_TOKENS_OUTPUT:
      return "tokens_output";
    case KVT_COUNTER_TOKENS_DRAFTED:
      return "tokens_drafted";
    case KVT_COUNTER_TOKENS_ACCEPTED:
      return "tokens_accepted";
    default:
      return "nonfinite";
  }
}

Status CheckPart(int32_t part, absl::string_view field) {
  if (part >= 1 && part <= kParts) return OkStatus();
  return Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat(field, " is ", part, ", parts are 1 to ", kParts));
}

Status CheckCounter(int32_t counter) {
  if (counter >= 1 && counter <= kCounters) return OkStatus();
  return Error(KVT_ERR_INVALID_ARGUMENT,
               absl::StrCat("counter is ", counter, ", counters are 1 to ", kCounters));
}

uint64_t Sum(const PartTimes& times) {
  uint64_t sum = 0;
  for (const uint64_t ns : times) sum += ns;
  return sum;
}

void Add(uint64_t amount, uint64_t* counter) {
  const uint64_t room = std::numeric_limits<uint64_t>::max() - *counter;
  *counter += amount < room ? amount : room;
}

void RequestParts::CloseRunning(uint64_t now_ns) {
  if (running_ == 0 || now_ns <= last_ns_) return;
  times_[running_ - 1] += now_ns - last_ns_;
  last_ns_ = now_ns;
}

Status RequestParts::Mark(int32_t part, uint64_t now_ns) {
  KVT_RETURN_IF_ERROR(CheckPart(part, "part"));
  if (has_first_token()) {
    return Error(KVT_ERR_INVALID_ARGUMENT,
                 absl::StrCat("part ", PartName(part), " begins after the request's first token"));
  }
  CloseRunning(now_ns);
  running_ = part;
  return OkStatus();
}

Status RequestParts::Attribute(int32_t from, int32_t to, uint64_t ns, uint64_t now_ns) {
  KVT_RETURN_IF_ERROR(CheckPart(from, "from"));
  KVT_RETURN_IF_ERROR(CheckPart(to, "to"));
  CloseRunning(now_ns);
  if (times_[from - 1] < ns) {
    return Error(KVT_ERR_OUT_OF_RANGE,
                 absl::StrCat("nanoseconds is ", ns, ", part ", PartName(from), " has ", times_[from - 1]));
  }
  times_[from - 1] -= ns;
  times_[to - 1] += ns;
  return OkStatus();
}

Status RequestParts::FirstToken(uint64_t now_ns) {
  if (has_first_token())
    return Error(KVT_ERR_INVALID_ARGUMENT, "the request's first token was marked before");
  CloseRunning(now_ns);
  running_ = 0;
  return OkStatus();
}

}  // namespace kvt
