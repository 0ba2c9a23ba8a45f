#include "model/view.h"

#include <gmock/gmock.h>

#include <functional>

#include "unit/model/model_options.h"

namespace kvt {
namespace {

using testing::HasSubstr;

// A host's memory for layers 2 and 3, heads 1 and 2 of the model, with 40 f16 tokens: [token][head][element].
class Host {
 public:
  Host() : memory_(4, std::vector<uint16_t>(40 * 2 * 64)) {
    for (auto& rows : memory_) bases_.push_back(rows.data());
    kvt_view_init(&view, sizeof view);
    view.element = KVT_ELEMENT_F16;
    view.layer_begin = 2, view.layer_end = 4, view.head_begin = 1, view.head_end = 3;
    view.bases = bases_.data();
    view.base_count = bases_.size();
    for (int s = 0; s < 2; ++s)
      view.token_stride[s] = 256, view.head_stride[s] = 128, view.element_stride[s] = 2;
    view.tokens = 40;
  }
  void Page(const std::vector<int32_t>& table, uint32_t page_tokens) {
    table_ = table;
    view.block_table = table_.data();
    view.block_table_len = table_.size();
    view.page_tokens = page_tokens;
    for (int s = 0; s < 2; ++s) view.page_stride[s] = int64_t{256} * page_tokens;
  }
  uint8_t* base(size_t i) { return reinterpret_cast<uint8_t*>(bases_[i]); }
  void* const* bases() { return bases_.data(); }
  void SetBase(size_t i, void* to) { bases_[i] = to; }
  kvt_view_t view;

 private:
  std::vector<std::vector<uint16_t>> memory_;
  std::vector<void*> bases_;
  std::vector<int32_t> table_;
};

class ViewTest : public testing::Test {
 protected:
  const std::shared_ptr<const Model> model_ = MakeModel(KvOptions());
};

TEST_F(ViewTest, ContiguousAddresses) {
  Host host;
  host.view.first_position = 1000;
  const auto view = View::Check(*model_, &host.view);
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(view->Token(2, 0, 0), host.base(0));
  EXPECT_EQ(view->Token(2, 1, 3), host.base(1) + 3 * 256);
  EXPECT_EQ(view->Token(3, 0, 39), host.base(2) + 39 * 256);
  EXPECT_EQ(view->Run(7), 33u);
  EXPECT_EQ(view->first_position(), 1000u);
}

TEST_F(ViewTest, PagedAddressesAndOwnedTable) {
  Host host;
  host.Page({4, 0, 2, -1}, 16);
  auto view = View::Check(*model_, &host.view);
  ASSERT_TRUE(view.ok()) << view.status();
  host.Page({9, 9, 9, 9}, 16);
  EXPECT_EQ(view->Token(2, 0, 5), host.base(0) + 4 * 4096 + 5 * 256);
  EXPECT_EQ(view->Token(3, 1, 16), host.base(3));
  EXPECT_EQ(view->Token(3, 1, 39), host.base(3) + 2 * 4096 + 7 * 256);
  EXPECT_EQ(view->Run(5), 11u);
  EXPECT_EQ(view->Run(32), 8u);
}

TEST_F(ViewTest, PinnedMemoryIsHostMemoryAndStridesMayBeNegative) {
  Host host;
  host.view.memory = KVT_MEMORY_PINNED;
  for (size_t i = 0; i < 4; ++i) host.SetBase(i, host.base(i) + 39 * 256);
  host.view.token_stride[0] = host.view.token_stride[1] = -256;
  const auto view = View::Check(*model_, &host.view);
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(view->Token(2, 0, 39), host.base(0) - 39 * 256);
}

TEST_F(ViewTest, ZeroStrideWhereThereIsOneStep) {
  Host host;
  host.view.head_end = 2;
  host.view.head_stride[0] = host.view.head_stride[1] = 0;
  host.view.tokens = 1;
  host.view.token_stride[0] = host.view.token_stride[1] = 0;
  EXPECT_TRUE(View::Check(*model_, &host.view).ok());
  host.view.tokens = 0;
  EXPECT_TRUE(View::Check(*model_, &host.view).ok());
}

TEST_F(ViewTest, MlaHasOneStreamAndTheSecondStridesDoNotMatter) {
  const auto mla = MakeModel(MlaOptions());
  std::vector<uint16_t> rows(4 * 576);
  void* base = rows.data();
  kvt_view_t view;
  kvt_view_init(&view, sizeof view);
  view.layer_end = 1, view.head_end = 1, view.bases = &base, view.base_count = 1, view.tokens = 4;
  view.token_stride[0] = 1152, view.element_stride[0] = 2;
  view.token_stride[1] = INT64_MIN;
  const auto checked = View::Check(*mla, &view);
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_EQ(checked->Token(0, KVT_STREAM_LATENT, 3), static_cast<uint8_t*>(base) + 3 * 1152);
}

TEST_F(ViewTest, BadFieldsAreRefusedByNameAndValue) {
  struct Edit {
    kvt_status_t status;
    const char* message;
    std::function<void(Host*)> apply;
  };
  const Edit edits[] = {
      {KVT_ERR_INVALID_ARGUMENT, "kvt_view.struct_size is 12", [](Host* h) { h->view.struct_size = 12; }},
      {KVT_ERR_INVALID_ARGUMENT, "memory is 0", [](Host* h) { h->view.memory = 0; }},
      {KVT_ERR_INVALID_ARGUMENT, "memory is 4", [](Host* h) { h->view.memory = 4; }},
      {KVT_ERR_UNAVAILABLE, "libkvartet_cuda.so", [](Host* h) { h->view.memory = KVT_MEMORY_CUDA; }},
      {KVT_ERR_INVALID_ARGUMENT, "device is 1", [](Host* h) { h->view.device = 1; }},
      {KVT_ERR_INVALID_ARGUMENT, "order_stream is set", [](Host* h) { h->view.order_stream = h; }},
      {KVT_ERR_INVALID_ARGUMENT, "reserved is 5", [](Host* h) { h->view.reserved = 5; }},
      {KVT_ERR_INVALID_ARGUMENT, "element is 6", [](Host* h) { h->view.element = 6; }},
      {KVT_ERR_INVALID_ARGUMENT, "layers is [4, 4)", [](Host* h) { h->view.layer_begin = 4; }},
      {KVT_ERR_MISMATCH, "layer_end is 31, the model has 30 layers",
       [](Host* h) { h->view.layer_begin = 29, h->view.layer_end = 31; }},
      {KVT_ERR_INVALID_ARGUMENT, "heads is [3, 2)",
       [](Host* h) { h->view.head_begin = 3, h->view.head_end = 2; }},
      {KVT_ERR_MISMATCH, "head_end is 4, the model has 3 heads", [](Host* h) { h->view.head_end = 4; }},
      {KVT_ERR_INVALID_ARGUMENT, "base_count is 3", [](Host* h) { h->view.base_count = 3; }},
      {KVT_ERR_INVALID_ARGUMENT, "base_count is 5", [](Host* h) { h->view.base_count = 5; }},
      {KVT_ERR_INVALID_ARGUMENT, "bases is NULL", [](Host* h) { h->view.bases = nullptr; }},
      {KVT_ERR_INVALID_ARGUMENT, "bases[2] is NULL", [](Host* h) { h->SetBase(2, nullptr); }},
      {KVT_ERR_INVALID_ARGUMENT, "block_table is NULL", [](Host* h) { h->view.block_table_len = 3; }},
      {KVT_ERR_INVALID_ARGUMENT, "page_tokens is 0",
       [](Host* h) {
         h->Page({0, 1, 2}, 16), h->view.page_tokens = 0;
       }},
      {KVT_ERR_INVALID_ARGUMENT, "block_table_len is 2, 40 tokens in pages of 16 need 3",
       [](Host* h) {
         h->Page({0, 1}, 16);
       }},
      {KVT_ERR_INVALID_ARGUMENT, "block_table[1] is -7",
       [](Host* h) {
         h->Page({0, -7, 2}, 16);
       }},
      {KVT_ERR_INVALID_ARGUMENT, "element_stride[0] is 0", [](Host* h) { h->view.element_stride[0] = 0; }},
      {KVT_ERR_INVALID_ARGUMENT, "element_stride[1] is 1", [](Host* h) { h->view.element_stride[1] = 1; }},
      {KVT_ERR_INVALID_ARGUMENT, "head_stride[1] is 0", [](Host* h) { h->view.head_stride[1] = 0; }},
      {KVT_ERR_INVALID_ARGUMENT, "token_stride[0] is -1", [](Host* h) { h->view.token_stride[0] = -1; }},
      {KVT_ERR_INVALID_ARGUMENT, "page_stride[0] is 0",
       [](Host* h) {
         h->Page({0, 1, 2}, 16), h->view.page_stride[0] = 0;
       }},
      {KVT_ERR_INVALID_ARGUMENT, "token_stride[0] is 256", [](Host* h) { h->view.tokens = UINT64_MAX; }},
      {KVT_ERR_INVALID_ARGUMENT, "token_stride[1] is -9223372036854775808",
       [](Host* h) { h->view.token_stride[1] = INT64_MIN; }},
      {KVT_ERR_INVALID_ARGUMENT, "page_stride[0] is 9223372036854775807",
       [](Host* h) {
         h->Page({0, 1, INT32_MAX}, 16), h->view.page_stride[0] = INT64_MAX;
       }},
      {KVT_ERR_INVALID_ARGUMENT, "bases[0] is",
       [](Host* h) { h->view.token_stride[0] = -(int64_t{1} << 56); }},
      {KVT_ERR_INVALID_ARGUMENT, "first_position is 18446744073709551600",
       [](Host* h) { h->view.first_position = 18446744073709551600u; }},
  };
  for (const Edit& edit : edits) {
    Host host;
    edit.apply(&host);
    const auto view = View::Check(*model_, &host.view);
    ASSERT_FALSE(view.ok()) << edit.message;
    EXPECT_EQ(CodeOf(view.status()), edit.status) << view.status();
    EXPECT_THAT(std::string(view.status().message()), HasSubstr(edit.message));
  }
  EXPECT_EQ(CodeOf(View::Check(*model_, nullptr).status()), KVT_ERR_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace kvt
