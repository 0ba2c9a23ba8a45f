#include "kvartet/select.h"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "base/boundary.h"
#include "base/options.h"
#include "select/importance.h"
#include "select/select.h"

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
    const std::vector<uint32_t> chosen = selector.Choose(*found, keys, rows);
    std::copy(chosen.begin(), chosen.end(), tokens);
    return kvt::OkStatus();
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
    KVT_ASSIGN_OR_RETURN(const kvt::Attention rows, kvt::Attention::Check(keys, attention, UINT32_MAX));
    if (rows.from_queries()) KVT_RETURN_IF_ERROR(kvt::CheckKeys(keys));
    if (needed != nullptr) *needed = keys.tokens();
    if (importance == nullptr) return kvt::OkStatus();
    if (cap < keys.tokens()) return TooSmall(cap, keys.tokens(), "values");
    const std::vector<int8_t> exponents = judge.Exponents(*found, keys, rows);
    std::copy(exponents.begin(), exponents.end(), importance);
    return kvt::OkStatus();
  });
}

}  // extern "C"
