// SPDX-License-Identifier: Apache-2.0
// The job server with several hundred ranks: joining, key exchange, barriers with and without absent ranks, failures,
// leaving.
#include <gtest/gtest.h>

#include "control/simulated_ranks.hpp"
#include "os/open_files.hpp"

namespace triax::control::test {
namespace {

using Kind = Message::Kind;
using State = RankStatus::State;

constexpr int kWorld = 256;

struct ScaleTest : ::testing::Test {
  static void SetUpTestSuite() { os::raise_open_file_limit(2 * kWorld + 256); } // both ends are in this process
  static Deadline soon() { return deadline_in(kLong); }
  void all(Kind kind, const std::string& key, Kind answer) {
    ranks.forget();
    ranks.send_to_all([&](int) { return message(kind, ++id, key, "v"); });
    ranks.until_each(answer, 1, soon());
  }

  const Job job{kWorld};
  SimulatedRanks ranks{job.server->address(), kWorld};
  std::uint64_t id = 0;
};

TEST_F(ScaleTest, AJobFromItsFirstRankToItsLast) {
  EXPECT_EQ(job.server->missing().size(), std::size_t{kWorld});
  ranks.join(soon());
  EXPECT_EQ(job.server->joined(), kWorld);
  EXPECT_TRUE(job.server->missing().empty());

  all(Kind::set, "key", Kind::done);
  all(Kind::get, "key", Kind::value);
  ranks.forget();
  ranks.send_to_all([&](int) { return message(Kind::get, ++id, "later"); });
  ranks.send(7, message(Kind::set, ++id, "later", "now"));
  ranks.until_each(Kind::value, 1, soon());
  EXPECT_EQ(ranks.last(0).value, "now");

  ranks.forget();
  ranks.send_to_all([&](int rank) {
    Message request = message(Kind::add, ++id, "sum");
    request.number = rank;
    return request;
  });
  ranks.until_each(Kind::number, 1, soon());
  EXPECT_EQ(job.server->counter("sum"), kWorld * (kWorld - 1) / 2);
  EXPECT_EQ(job.server->counter("nothing"), 0);

  for (const char* turn : {"one", "two"}) all(Kind::barrier, turn, Kind::done);
  all(Kind::worker_message, "topic", Kind::done);
  EXPECT_EQ(job.server->drain_worker_messages().size(), std::size_t{kWorld});
  all(Kind::beat, "", Kind::beat);

  ranks.forget();
  ranks.send(3, message(Kind::rank_failed, 0, "step 2", "no memory"));
  ranks.until_each(Kind::failed, 1, soon());
  EXPECT_EQ(job.server->failure()->rank, 3);
  all(Kind::goodbye, "", Kind::goodbye);
  for (const RankStatus& rank : job.server->ranks()) EXPECT_EQ(rank.state, State::left);
}

TEST_F(ScaleTest, ABarrierThatSomeMissNamesThemToAll) {
  ranks.join(soon());
  const auto absent = [](int rank) { return rank == 3 || (rank >= 7 && rank <= 12); };
  for (int rank = 0; rank < kWorld; ++rank)
    if (!absent(rank)) ranks.send(rank, message(Kind::barrier, 1, "never"));
  all(Kind::beat, "", Kind::beat); // the answer proves that the server has read the earlier request
  ranks.send(0, message(Kind::forget, 1));
  while (ranks.received(0, Kind::missing) == 0) ranks.serve(20);
  EXPECT_EQ(ranks.last(0).value, "3, 7-12");
}

TEST_F(ScaleTest, TheLossOfOneIsSentToAll) {
  ranks.join(soon());
  job.server->fail({9, true, "killed by signal 9"});
  ranks.until_each(Kind::lost, 1, soon());
  EXPECT_EQ(ranks.last(200).number, 9);
}

} // namespace
} // namespace triax::control::test
