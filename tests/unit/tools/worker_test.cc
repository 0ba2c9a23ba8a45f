#include "kvartet/worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

namespace kvt::cli {
namespace {

TEST(Worker, RunsTasksInOrder) {
  std::vector<int> seen;
  Worker worker;
  for (int i = 0; i < 100; ++i) worker.Run([&seen, i] { seen.push_back(i); });
  worker.Wait();
  ASSERT_EQ(seen.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(seen[static_cast<size_t>(i)], i);
}

TEST(Worker, HandsAFailureOverOnceAndGoesOn) {
  int later = 0;
  Worker worker;
  worker.Run([] { throw std::runtime_error("broken"); });
  worker.Run([&] { ++later; });
  EXPECT_THROW(worker.Wait(), std::runtime_error);
  EXPECT_EQ(later, 0);
  worker.Run([&] { ++later; });
  worker.Wait();
  EXPECT_EQ(later, 1);
}

TEST(Worker, EndsWithoutAnyTask) {
  Worker worker;
  worker.Wait();
}

}  // namespace
}  // namespace kvt::cli
