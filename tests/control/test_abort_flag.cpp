// SPDX-License-Identifier: Apache-2.0
// JobAbort: listeners get the first failure, and only the first failure counts.
#include <gmock/gmock.h>

#include <atomic>
#include <thread>
#include <vector>

#include "control/abort_flag.hpp"

namespace triax::control {
namespace {

using ::testing::ElementsAre;

class Notes final : public JobAbort::Listener {
 public:
  void abort(std::string_view why) noexcept override { reasons.emplace_back(why); }
  std::vector<std::string> reasons;
};

TEST(JobAbort, TheFirstFailureCountsAndIsSentToAllListeners) {
  JobAbort flag;
  Notes first, second, gone;
  const JobAbort::Listening to_first(flag, first), to_second(flag, second);
  { const JobAbort::Listening to_gone(flag, gone); }
  EXPECT_FALSE(flag.raised());
  EXPECT_TRUE(flag.raise(2, "no memory"));
  EXPECT_FALSE(flag.raise(0, "rank 2 went"));
  EXPECT_TRUE(flag.raise(2, "and once more, where it is caught"));
  EXPECT_TRUE(flag.raised());
  EXPECT_EQ(flag.reason(), "rank 2 failed: no memory");
  EXPECT_THAT(first.reasons, ElementsAre("rank 2 failed: no memory"));
  EXPECT_THAT(second.reasons, ElementsAre("rank 2 failed: no memory"));
  EXPECT_THAT(gone.reasons, ElementsAre());
}

TEST(JobAbort, ALateListenerIsCalledAtOnce) {
  JobAbort flag;
  flag.raise(1, "no memory");
  Notes late;
  const JobAbort::Listening listening(flag, late);
  EXPECT_THAT(late.reasons, ElementsAre("rank 1 failed: no memory"));
}

TEST(JobAbort, RelaysAFailureThatIsNotOfARank) {
  JobAbort flag;
  Notes notes;
  const JobAbort::Listening listening(flag, notes);
  EXPECT_EQ(flag.rank(), -1);
  EXPECT_TRUE(flag.relay(-1, "the server was lost"));
  EXPECT_TRUE(flag.raised());
  EXPECT_EQ(flag.rank(), -1);
  EXPECT_FALSE(flag.raise(0, "as a consequence"));
  EXPECT_EQ(flag.reason(), "the server was lost");
  EXPECT_THAT(notes.reasons, ElementsAre("the server was lost"));
}

TEST(JobAbort, OneOfManyThreadsIsTheFirst) {
  JobAbort flag;
  std::atomic<int> causes = 0;
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 4; ++rank)
    ranks.emplace_back([&, rank] {
      Notes notes;
      const JobAbort::Listening listening(flag, notes);
      if (flag.raise(rank, "at once")) ++causes;
      EXPECT_EQ(notes.reasons.size(), 1u);
    });
  for (std::thread& rank : ranks) rank.join();
  EXPECT_EQ(causes, 1);
}

} // namespace
} // namespace triax::control
