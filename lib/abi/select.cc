#include "kvartet/select.h"

#include <algorithm>
#include <optional>

#include "base/boundary.h"
#include "base/options.h"
#include "select/select.h"

extern "C" {

KVT_API void kvt_select_options_init(kvt_select_options_t* options, size_t struct_size) {
  kvt::VoidBoundary([&] { kvt::InitStruct(kvt::DefaultSelectOptions(), options, struct_size); });
}

KVT_API void kvt_attention_init(kvt_attention_t* attention, size_t struct_size) {
  kvt_attention_t zeros = {};
  zeros.struct_size = sizeof zeros;
  kvt::VoidBoundary([&] { kvt::InitStruct(zeros, attention, struct_size); });
}

KVT_API kvt_status_t kvt_select_tokens(kvt_model_t model, const kvt_view_t* view,
                                       const kvt_attention_t* attention, const kvt_select_options_t* options,
                                       uint32_t* tokens, size_t cap, size_t* needed) {
  return kvt::Boundary([&]() -> kvt::Status {
    if (tokens == nullptr && cap != 0)
      return kvt::Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat("tokens is NULL but cap is ", cap));
    if (tokens == nullptr && needed == nullptr)
      return kvt::Error(KVT_ERR_INVALID_ARGUMENT, "tokens and needed are both NULL");
    kvt_select_options_t read = kvt::DefaultSelectOptions();
    if (options != nullptr) KVT_RETURN_IF_ERROR(kvt::ReadStruct(options, "kvt_select_options", &read));
    KVT_ASSIGN_OR_RETURN(const kvt::Selector selector, kvt::Selector::Check(read));
    KVT_ASSIGN_OR_RETURN(const auto found, kvt::Lookup<const kvt::Model>(model));
    KVT_ASSIGN_OR_RETURN(const kvt::View keys, kvt::View::Check(*found, view));
    std::optional<kvt::Attention> given;
    if (attention != nullptr) {
      KVT_ASSIGN_OR_RETURN(given, kvt::Attention::Check(keys, attention));
    }
    const kvt::Attention* rows = given.has_value() ? &*given : nullptr;
    KVT_RETURN_IF_ERROR(selector.CheckInput(keys, rows));
    const uint64_t entries = selector.Entries(keys, rows);
    if (needed != nullptr) *needed = entries;
    if (tokens == nullptr) return kvt::OkStatus();
    if (cap < entries) {
      return kvt::Error(KVT_ERR_BUFFER_TOO_SMALL,
                        absl::StrCat("cap is ", cap, ", needed are ", entries, " tokens"));
    }
    const std::vector<uint32_t> chosen = selector.Choose(*found, keys, rows);
    std::copy(chosen.begin(), chosen.end(), tokens);
    return kvt::OkStatus();
  });
}

}  // extern "C"
