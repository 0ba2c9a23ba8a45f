#include "base/handles.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

namespace kvt {

// Two kinds of object that this program has no others of.
struct Thing {
  explicit Thing(std::atomic<int>* alive_count = nullptr) : alive(alive_count) {
    if (alive != nullptr) ++*alive;
  }
  ~Thing() {
    if (alive != nullptr) --*alive;
  }
  std::atomic<int>* alive;
};
struct Other {};
template <>
struct HandleTraits<Thing> {
  static constexpr HandleType kType = HandleType::kStream;
};
template <>
struct HandleTraits<Other> {
  static constexpr HandleType kType = HandleType::kPeer;
};

namespace {

template <typename T>
kvt_status_t CodeOfLookup(uint64_t id) {
  return CodeOf(Lookup<T>(id).status());
}

TEST(HandlesTest, FindsTheObjectUntilItIsTaken) {
  auto thing = std::make_shared<Thing>();
  const uint64_t id = NewHandle(thing);
  EXPECT_NE(id, 0u);
  EXPECT_EQ(id >> 63, 0u);
  EXPECT_EQ(*Lookup<Thing>(id), thing);
  EXPECT_EQ(Take<Thing>(id), thing);
  EXPECT_EQ(CodeOfLookup<Thing>(id), KVT_ERR_STALE_HANDLE);
  EXPECT_EQ(Take<Thing>(id), nullptr);
}

TEST(HandlesTest, NullForeignAndInventedIdsAreStale) {
  const uint64_t id = NewHandle(std::make_shared<Thing>());
  EXPECT_EQ(CodeOfLookup<Thing>(0), KVT_ERR_STALE_HANDLE);
  for (int bit = 0; bit < 64; ++bit) {
    if (bit < 32) continue;  // another slot may be live
    EXPECT_EQ(CodeOfLookup<Thing>(id ^ (uint64_t{1} << bit)), KVT_ERR_STALE_HANDLE) << bit;
    EXPECT_EQ(Take<Thing>(id ^ (uint64_t{1} << bit)), nullptr) << bit;
  }
  EXPECT_EQ(CodeOfLookup<Thing>(UINT64_MAX), KVT_ERR_STALE_HANDLE);
  EXPECT_EQ(CodeOfLookup<Thing>(id | 0xffffffffu), KVT_ERR_STALE_HANDLE);
  EXPECT_NE(Take<Thing>(id), nullptr);
}

TEST(HandlesTest, WrongTypeIsToldApartAndNotTaken) {
  const uint64_t id = NewHandle(std::make_shared<Other>());
  const Status status = Lookup<Thing>(id).status();
  EXPECT_EQ(CodeOf(status), KVT_ERR_WRONG_HANDLE);
  EXPECT_NE(status.message().find("is a peer, not a stream"), absl::string_view::npos) << status;
  EXPECT_EQ(Take<Thing>(id), nullptr);
  EXPECT_NE(Take<Other>(id), nullptr);
}

TEST(HandlesTest, AReusedSlotDoesNotReviveAnOldId) {
  std::set<uint64_t> ids;
  for (int i = 0; i < 1000; ++i) {
    const uint64_t id = NewHandle(std::make_shared<Thing>());
    EXPECT_TRUE(ids.insert(id).second);
    Take<Thing>(id);
  }
  const uint64_t live = NewHandle(std::make_shared<Thing>());
  for (const uint64_t id : ids) EXPECT_EQ(CodeOfLookup<Thing>(id), KVT_ERR_STALE_HANDLE);
  EXPECT_EQ(CodeOfLookup<Thing>(live), KVT_OK);
  Take<Thing>(live);
}

TEST(HandlesTest, AnObjectInUseOutlivesItsHandle) {
  std::atomic<int> alive{0};
  const uint64_t id = NewHandle(std::make_shared<Thing>(&alive));
  auto used = *Lookup<Thing>(id);
  Take<Thing>(id);
  EXPECT_EQ(alive, 1);
  used = nullptr;
  EXPECT_EQ(alive, 0);
}

// Threads look up and take the same ids: each is taken exactly once, and lookups succeed or say stale.
TEST(HandlesTest, ManyThreadsTakeEachIdOnce) {
  constexpr int kThreads = 8, kIds = 2000;
  std::atomic<int> alive{0}, taken{0}, unexpected{0};
  std::vector<uint64_t> ids;
  for (int i = 0; i < kIds; ++i) ids.push_back(NewHandle(std::make_shared<Thing>(&alive)));
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kIds; ++i) {
        const uint64_t id = ids[(i + t * 251) % kIds];
        const auto found = Lookup<Thing>(id);
        if (!found.ok() && CodeOf(found.status()) != KVT_ERR_STALE_HANDLE) ++unexpected;
        if (Take<Thing>(id) != nullptr) ++taken;
        Take<Thing>(NewHandle(std::make_shared<Thing>(&alive)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(taken, kIds);
  EXPECT_EQ(unexpected, 0);
  EXPECT_EQ(alive, 0);
}

}  // namespace
}  // namespace kvt
