#include "kvartet/select.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <tuple>
#include <vector>

#include "base/boundary.h"
#include "base/options.h"
#include "select/importance.h"
#include "select/merge.h"
#include "select/select.h"
#include "select/thought.h"

namespace {

// What the copy-out protocol asks before anything is computed; `name` is the array's.
kvt::Status CheckOut(absl::string_view name, const void* out, size_t cap, const size_t* needed) {
  if (out == nullptr && cap != 0)
    return kvt::Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat(name, " is NULL but cap is ", cap));
  if (out == nullptr && needed == nullptr)
    return kvt::Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat(name, " and needed are both NULL"));
  return kvt::OkStatus();
}

kvt::Status TooSmall(size_t cap, uint64_t entries, absl::string_view of) {
  return kvt::Error(KVT_ERR_BUFFER_TOO_SMALL,
                    absl::StrCat("cap is ", cap, ", needed are ", entries, " ", of));
}

// The copy-out protocol for entries that are computed.
template <typename T>
kvt::Status CopyRows(const std::vector<T>& entries, absl::string_view of, T* out, size_t cap,
                     size_t* needed) {
  if (needed != nullptr) *needed = entries.size();
  if (out == nullptr) return kvt::OkStatus();
  if (cap < entries.size()) return TooSmall(cap, entries.size(), of);
  std::copy(entries.begin(), entries.end(), out);
  return kvt::OkStatus();
}

// An array of the caller's.
template <typename T>
kvt::StatusOr<absl::Span<const T>> Array(absl::string_view name, const T* data, size_t count) {
  if (data == nullptr && count != 0)
    return kvt::Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat(name, " is NULL but its count is ", count));
  return absl::Span<const T>(data, count);
}

// Statistics of any number of rows.
kvt::StatusOr<kvt::Attention> ReadRows(const kvt::View& view, const kvt_attention_t* attention) {
  KVT_ASSIGN_OR_RETURN(kvt::Attention rows, kvt::Attention::Check(view, attention, UINT32_MAX));
  if (rows.from_queries()) KVT_RETURN_IF_ERROR(kvt::CheckKeys(view));
  return rows;
}

kvt::StatusOr<kvt::Thinner> ReadThinner(const kvt_thought_options_t* options) {
  kvt_thought_options_t read = kvt::DefaultThoughtOptions();
  if (options != nullptr) KVT_RETURN_IF_ERROR(kvt::ReadStruct(options, "kvt_thought_options", &read));
  return kvt::Thinner::Check(read);
}

}  // namespace

extern "C" {

KVT_API void kvt_select_options_init(kvt_select_options_t* options, size_t struct_size) {
  kvt::VoidBoundary([&] { kvt::InitStruct(kvt::DefaultSelectOptions(), options, struct_size); });
}

KVT_API void kvt_attention_init(kvt_attention_t* attention, size_t struct_size) {
  kvt_attention_t zeros = {};
  zeros.struct_size = sizeof zeros;
  kvt::VoidBoundary(
      [&] { kvt::InitStruct(zeros, attention, struct_size, offsetof(kvt_attention_t, row_tokens)); });
}

KVT_API kvt_status_t kvt_select_tokens(kvt_model_t model, const kvt_view_t* view,
                                       const kvt_attention_t* attention, const kvt_select_options_t* options,
                                       uint32_t* tokens, size_t cap, size_t* needed) {
  return kvt::Boundary([&]() -> kvt::Status {
    KVT_RETURN_IF_ERROR(CheckOut("tokens", tokens, cap, needed));
    kvt_select_options_t read = kvt::DefaultSelectOptions();
    if (options != nullptr) KVT_RETURN_IF_ERROR(kvt::ReadStruct(options, "kvt_select_options", &read));
    KVT_ASSIGN_OR_RETURN(const kvt::Selector selector, kvt::Selector::Check(read));
    KVT_ASSIGN_OR_RETURN(const auto found, kvt::Lookup<const kvt::Model>(model));
    KVT_ASSIGN_OR_RETURN(const kvt::View keys, kvt::View::Check(*found, view));
    std::optional<kvt::Attention> given;
    if (attention != nullptr) {
      KVT_ASSIGN_OR_RETURN(given, kvt::Attention::Check(keys, attention, kvt::Attention::kRowsOfChoice));
    }
    const kvt::Attention* rows = given.has_value() ? &*given : nullptr;
    KVT_RETURN_IF_ERROR(selector.CheckInput(keys, rows));
    const uint64_t entries = selector.Entries(keys, rows);
    if (needed != nullptr) *needed = entries;
    if (tokens == nullptr) return kvt::OkStatus();
    if (cap < entries) return TooSmall(cap, entries, "tokens");
    return CopyRows(selector.Choose(*found, keys, rows), "tokens", tokens, cap, needed);
  });
}

KVT_API void kvt_merge_options_init(kvt_merge_options_t* options, size_t struct_size) {
  kvt::VoidBoundary([&] { kvt::InitStruct(kvt::DefaultMergeOptions(), options, struct_size); });
}

KVT_API kvt_status_t kvt_select_merges(kvt_model_t model, const kvt_view_t* view,
                                       const kvt_attention_t* attention, const kvt_merge_options_t* options,
                                       const uint32_t* tokens, size_t token_count, kvt_merge_t* merges,
                                       size_t cap, size_t* needed) {
  return kvt::Boundary([&]() -> kvt::Status {
    KVT_RETURN_IF_ERROR(CheckOut("merges", merges, cap, needed));
    KVT_ASSIGN_OR_RETURN(const auto kept, Array("tokens", tokens, token_count));
    kvt_merge_options_t read = kvt::DefaultMergeOptions();
    if (options != nullptr) KVT_RETURN_IF_ERROR(kvt::ReadStruct(options, "kvt_merge_options", &read));
    KVT_ASSIGN_OR_RETURN(const kvt::Merger merger, kvt::Merger::Check(read));
    KVT_ASSIGN_OR_RETURN(const auto found, kvt::Lookup<const kvt::Model>(model));
    KVT_ASSIGN_OR_RETURN(const kvt::View keys, kvt::View::Check(*found, view));
    KVT_ASSIGN_OR_RETURN(const kvt::Attention rows, ReadRows(keys, attention));
    KVT_ASSIGN_OR_RETURN(const std::vector<kvt_merge_t> planned, merger.Plan(*found, keys, rows, kept));
    return CopyRows(planned, "merges", merges, cap, needed);
  });
}

KVT_API kvt_status_t kvt_merges_apply(kvt_model_t model, const kvt_view_t* view, const uint32_t* tokens,
                                      size_t token_count, const kvt_merge_t* merges, size_t merge_count) {
  return kvt::Boundary([&]() -> kvt::Status {
    KVT_ASSIGN_OR_RETURN(const auto kept, Array("tokens", tokens, token_count));
    KVT_ASSIGN_OR_RETURN(const auto list, Array("merges", merges, merge_count));
    KVT_ASSIGN_OR_RETURN(const auto found, kvt::Lookup<const kvt::Model>(model));
    KVT_ASSIGN_OR_RETURN(const kvt::View rows, kvt::View::Check(*found, view));
    return kvt::ApplyMerges(*found, rows, kept, list);
  });
}

KVT_API void kvt_thought_options_init(kvt_thought_options_t* options, size_t struct_size) {
  kvt::VoidBoundary([&] { kvt::InitStruct(kvt::DefaultThoughtOptions(), options, struct_size); });
}

KVT_API kvt_status_t kvt_thought_sparsity(kvt_model_t model, const kvt_view_t* view,
                                          const kvt_attention_t* attention,
                                          const kvt_thought_options_t* options, float* sparsity, size_t cap,
                                          size_t* needed) {
  return kvt::Boundary([&]() -> kvt::Status {
    KVT_RETURN_IF_ERROR(CheckOut("sparsity", sparsity, cap, needed));
    KVT_ASSIGN_OR_RETURN(const kvt::Thinner thinner, ReadThinner(options));
    KVT_ASSIGN_OR_RETURN(const auto found, kvt::Lookup<const kvt::Model>(model));
    KVT_ASSIGN_OR_RETURN(const kvt::View keys, kvt::View::Check(*found, view));
    KVT_ASSIGN_OR_RETURN(const kvt::Attention rows, ReadRows(keys, attention));
    const size_t layers = rows.layer_end() - rows.layer_begin();
    if (needed != nullptr) *needed = layers;
    if (sparsity == nullptr) return kvt::OkStatus();
    if (cap < layers) return TooSmall(cap, layers, "layers");
    return CopyRows(thinner.Sparsities(*found, keys, rows), "layers", sparsity, cap, needed);
  });
}

KVT_API kvt_status_t kvt_thought_thresholds(const float* sparsities, size_t count, float* low, float* high) {
  return kvt::Boundary([&]() -> kvt::Status {
    if (low == nullptr) return kvt::Error(KVT_ERR_INVALID_ARGUMENT, "low is NULL");
    if (high == nullptr) return kvt::Error(KVT_ERR_INVALID_ARGUMENT, "high is NULL");
    KVT_ASSIGN_OR_RETURN(const auto seen, Array("sparsities", sparsities, count));
    KVT_ASSIGN_OR_RETURN(std::tie(*low, *high), kvt::ThoughtThresholds(seen));
    return kvt::OkStatus();
  });
}

KVT_API kvt_status_t kvt_thoughts_step(const kvt_thought_options_t* options, kvt_thought_t* thoughts,
                                       size_t count) {
  return kvt::Boundary([&]() -> kvt::Status {
    KVT_RETURN_IF_ERROR(Array("thoughts", thoughts, count).status());
    KVT_ASSIGN_OR_RETURN(const kvt::Thinner thinner, ReadThinner(options));
    return thinner.Step(absl::MakeSpan(thoughts, count));
  });
}

KVT_API kvt_status_t kvt_select_thoughts(kvt_model_t model, const kvt_view_t* view,
                                         const kvt_thought_options_t* options, const kvt_thought_t* thoughts,
                                         size_t count, uint32_t* tokens, size_t cap, size_t* needed) {
  return kvt::Boundary([&]() -> kvt::Status {
    KVT_RETURN_IF_ERROR(CheckOut("tokens", tokens, cap, needed));
    KVT_ASSIGN_OR_RETURN(const auto list, Array("thoughts", thoughts, count));
    KVT_ASSIGN_OR_RETURN(const kvt::Thinner thinner, ReadThinner(options));
    KVT_ASSIGN_OR_RETURN(const auto found, kvt::Lookup<const kvt::Model>(model));
    KVT_ASSIGN_OR_RETURN(const kvt::View keys, kvt::View::Check(*found, view));
    KVT_RETURN_IF_ERROR(kvt::CheckKeys(keys));
    KVT_ASSIGN_OR_RETURN(const uint64_t entries, thinner.Entries(keys, list));
    if (needed != nullptr) *needed = entries;
    if (tokens == nullptr) return kvt::OkStatus();
    if (cap < entries) return TooSmall(cap, entries, "tokens");
    return CopyRows(thinner.Choose(*found, keys, list), "tokens", tokens, cap, needed);
  });
}

KVT_API void kvt_importance_options_init(kvt_importance_options_t* options, size_t struct_size) {
  kvt::VoidBoundary([&] { kvt::InitStruct(kvt::DefaultImportanceOptions(), options, struct_size); });
}

KVT_API kvt_status_t kvt_token_importance(kvt_model_t model, const kvt_view_t* view,
                                          const kvt_attention_t* attention,
                                          const kvt_importance_options_t* options, int8_t* importance,
                                          size_t cap, size_t* needed) {
  return kvt::Boundary([&]() -> kvt::Status {
    KVT_RETURN_IF_ERROR(CheckOut("importance", importance, cap, needed));
    kvt_importance_options_t read = kvt::DefaultImportanceOptions();
    if (options != nullptr) KVT_RETURN_IF_ERROR(kvt::ReadStruct(options, "kvt_importance_options", &read));
    KVT_ASSIGN_OR_RETURN(const kvt::Importance judge, kvt::Importance::Check(read));
    KVT_ASSIGN_OR_RETURN(const auto found, kvt::Lookup<const kvt::Model>(model));
    KVT_ASSIGN_OR_RETURN(const kvt::View keys, kvt::View::Check(*found, view));
    KVT_ASSIGN_OR_RETURN(const kvt::Attention rows, ReadRows(keys, attention));
    if (needed != nullptr) *needed = keys.tokens();
    if (importance == nullptr) return kvt::OkStatus();
    if (cap < keys.tokens()) return TooSmall(cap, keys.tokens(), "values");
    return CopyRows(judge.Exponents(*found, keys, rows), "values", importance, cap, needed);
  });
}

}  // extern "C"
