// SPDX-License-Identifier: Apache-2.0
// Clients and their server over real connections: store, barriers, messages to the server, joining and leaving.
#include <gmock/gmock.h>

#include <atomic>
#include <thread>
#include <vector>

#include "control/job.hpp"
#include "support/error_of.hpp"

namespace triax::control::test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using triax::test::error_of;
using State = RankStatus::State;

TEST(Client, GetsValuesThatAnotherRankSet) {
  const Job job(2);
  const auto zero = job.rank(0), one = job.rank(1);
  zero->client.set("a", std::string_view("x\0y", 3));
  EXPECT_EQ(one->client.get("a", deadline_in(kLong)), std::string("x\0y", 3));
  one->client.set("a", "");
  EXPECT_EQ(zero->client.get("a", deadline_in(0)), "");
}

TEST(Client, GetWaitsForTheKey) {
  const Job job(2);
  const auto zero = job.rank(0), one = job.rank(1);
  std::string got;
  std::thread reading([&] { got = one->client.get("address", Deadline::max()); });
  zero->client.set("other", "1");
  zero->client.set("address", "here");
  reading.join();
  EXPECT_EQ(got, "here");
}

TEST(Client, TheDeadlineNamesTheKeyAndForgetsTheRequest) {
  const Job job(1);
  const auto rank = job.rank(0);
  EXPECT_EQ(error_of([&] { rank->client.get("tensor.0/hub", deadline_in(0.01)); }),
            "store: timed out waiting for key \"tensor.0/hub\"\n"
            "  the rank that sets it may be slow or lost");
  EXPECT_THAT(error_of([&] { rank->client.get("tensor.0/hub", deadline_in(-1)); }),
              HasSubstr("timed out waiting for key"));
  rank->client.set("tensor.0/hub", "now");
  EXPECT_EQ(rank->client.get("tensor.0/hub", deadline_in(0)), "now");
}

TEST(Client, ValuesOfManyMegabytesTravelAndLongerOnesAreRefusedHere) {
  const Job job(2);
  const auto zero = job.rank(0), one = job.rank(1);
  std::string value(kMaxFrameBytes - message_overhead() - 1, 'v');
  value[12345] = 'w';
  zero->client.set("k", value);
  EXPECT_TRUE(one->client.get("k", deadline_in(kLong)) == value);
  value += "x";
  EXPECT_THAT(error_of([&] { zero->client.set("k", value); }), HasSubstr("16 MiB is the maximum"));
  EXPECT_THAT(error_of([&] { zero->client.send("k", value); }), HasSubstr("16 MiB is the maximum"));
  EXPECT_EQ(zero->client.add("still here", 1), 1);
}

TEST(Client, AddCountsAcrossRanksAndThreads) {
  const Job job(2);
  const auto zero = job.rank(0), one = job.rank(1);
  zero->client.count("n of zero", 1);
  EXPECT_EQ(zero->client.add("n of zero", 0), 1);
  EXPECT_EQ(zero->client.add("n", 5), 5);
  EXPECT_EQ(one->client.add("n", -5), 0);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int k = 0; k < 50; ++k) (i % 2 == 0 ? zero : one)->client.add("n", 1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(one->client.add("n", 0), 200);
}

TEST(Client, ABarrierHoldsUntilAllAreThereEachTime) {
  const Job job(3);
  std::atomic<int> came = 0;
  std::vector<std::thread> ranks;
  for (int number = 0; number < job.world; ++number) {
    ranks.emplace_back([&, number] {
      const auto rank = job.rank(number);
      for (int round = 1; round <= 20; ++round) {
        ++came;
        rank->client.barrier("step", deadline_in(kLong));
        EXPECT_GE(came, round * job.world);
      }
    });
  }
  for (std::thread& rank : ranks) rank.join();
}

TEST(Client, NamesTheRanksMissingFromABarrier) {
  const Job job(4);
  const auto zero = job.rank(0), two = job.rank(2);
  EXPECT_EQ(error_of([&] { two->client.barrier("start", deadline_in(0.01)); }),
            "barrier \"start\": timed out waiting for ranks 0, 1, 3\n"
            "  the ranks may be slow or lost");
  // A rank whose wait timed out is no longer in the barrier.
  EXPECT_THAT(error_of([&] { zero->client.barrier("start", deadline_in(0.01)); }), HasSubstr("ranks 1-3\n"));
}

TEST(Client, MessagesArriveInOrderBeforeTheRankLeaves) {
  const Job job(1);
  auto rank = job.rank(0);
  for (int i = 0; i < 100; ++i) rank->client.send("line", std::to_string(i));
  rank->client.leave();
  const std::vector<WorkerMessage> messages = job.server->drain_worker_messages();
  ASSERT_EQ(messages.size(), 100u);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(messages[static_cast<std::size_t>(i)].rank, 0);
    EXPECT_EQ(messages[static_cast<std::size_t>(i)].topic, "line");
    EXPECT_EQ(messages[static_cast<std::size_t>(i)].text, std::to_string(i));
  }
  EXPECT_TRUE(job.server->drain_worker_messages().empty());
}

TEST(Client, OfUnreadMessagesTheLatestAreKept) {
  const Job job(1);
  auto rank = job.rank(0);
  const std::string large(15 << 20, 'x');
  std::int64_t sent = 0;
  for (; sent < 8; ++sent) {
    rank->client.send("step", std::to_string(sent) + large);
    rank->client.add("sent", 1); // has an answer, so that little is unsent
  }
  const std::vector<WorkerMessage> messages = job.server->drain_worker_messages();
  ASSERT_EQ(messages.size(), 4u); // 64 MiB hold no more
  EXPECT_EQ(messages.front().text.substr(0, 2), "4x");
  EXPECT_EQ(messages.front().discarded, 4);
  EXPECT_EQ(messages.back().text.substr(0, 2), "7x");
  rank->client.leave();
}

TEST(Client, ARankThatFillsTheQueueWithOtherTopicsIsLost) {
  const Job job(1);
  const auto rank = job.rank(0);
  const std::string large(15 << 20, 'x');
  EXPECT_ANY_THROW({
    for (int topic = 0; topic < 8; ++topic) {
      rank->client.send(std::to_string(topic), large);
      rank->client.add("sent", 1);
    }
  });
  ASSERT_TRUE(eventually([&] { return job.server->failure().has_value(); }));
  EXPECT_THAT(job.server->failure()->why, HasSubstr("it sent more messages than the launcher reads"));
}

TEST(Client, MarksARankThatLeavesAsLeftNotLost) {
  const Job job(2);
  const auto stays = job.rank(0);
  auto goes = job.rank(1);
  EXPECT_EQ(job.state(1), State::joined);
  goes->client.leave();
  EXPECT_EQ(job.state(1), State::left);
  goes->client.leave(); // no effect
  EXPECT_EQ(error_of([&] { goes->client.set("k", "v"); }), "store, setting the key \"k\": this rank has left its job");
  goes.reset();
  EXPECT_THAT(error_of([&] { job.rank(1); }), HasSubstr("rank 1 has left this job and cannot rejoin"));
  EXPECT_EQ(job.state(1), State::left);
  EXPECT_EQ(job.state(0), State::joined);
  EXPECT_FALSE(job.server->failure());
  EXPECT_FALSE(stays->flag.raised());
}

TEST(Client, TheServerKnowsWhereEachRankIs) {
  const Job job(2);
  EXPECT_EQ(job.state(0), State::missing);
  ClientRequest request = job.request(0);
  request.position = [] { return "step 118, 0F3"; };
  const TestRank rank(request);
  EXPECT_TRUE(eventually([&] { return job.status(0).position == "step 118, 0F3"; }));
  EXPECT_EQ(job.status(0).pid, ::getpid());
  EXPECT_FALSE(job.status(0).host.empty());
  EXPECT_EQ(job.state(1), State::missing);
}

TEST(Client, AStopIsSentToAllAndToLaterRanks) {
  const Job job(2);
  std::atomic<int> zero_heard = 0, one_heard = 0;
  ClientRequest zero = job.request(0), one = job.request(1);
  zero.on_stop = [&](int signal) { zero_heard = signal; };
  one.on_stop = [&](int signal) { one_heard = signal; };
  const TestRank first(zero);
  job.server->stop(15);
  EXPECT_TRUE(eventually([&] { return zero_heard == 15; }));
  const TestRank second(one);
  EXPECT_TRUE(eventually([&] { return one_heard == 15; }));
  EXPECT_FALSE(first.flag.raised());
}

TEST(Client, ItMayComeBeforeItsServer) {
  ServerRequest request = server_of(1);
  request.port = Server(server_of(1)).address().port; // unused again
  std::thread rank([&] {
    TestRank early(client_of({"127.0.0.1", request.port}, 0, 1));
    early.client.set("early", "yes");
  });
  Server server(request); // the port is usable although connections to it have just ended
  server.start();
  rank.join();
  EXPECT_EQ(server.ranks()[0].state, State::left);
}

TEST(Client, ItWaitsForAServerThatListensAndHasNotStarted) {
  Server server(server_of(1));
  std::thread rank([&] { TestRank early(client_of(server.address(), 0, 1)); });
  server.start();
  rank.join();
}

TEST(Client, WhereNoServerIsTheErrorNamesTheAddress) {
  const os::Address unserved = Server(server_of(1)).address();
  ClientRequest request = client_of(unserved, 0, 1);
  request.start_timeout_s = 0.1;
  EXPECT_EQ(
      error_of([&] { TestRank rank(request); }),
      "cannot connect to the job server at " + to_text(unserved) +
          " within 0.1 s: Connection refused\n"
          "  check that rank 0 runs there, and that this machine can reach that port (launch.interface, launch.port)");
  request.server.host = "no-such-host.invalid";
  EXPECT_THAT(error_of([&] { TestRank rank(request); }), HasSubstr("no-such-host.invalid:"));
}

TEST(Client, AServerThatNeverAnswersEndsTheWaitAtTheDeadline) {
  const os::Descriptor mute = os::listen_on({"127.0.0.1", 0});
  ClientRequest request = client_of({"127.0.0.1", os::port_of(mute)}, 0, 1);
  request.start_timeout_s = 0.1;
  EXPECT_THAT(error_of([&] { TestRank rank(request); }), HasSubstr("within 0.1 s: it does not answer"));
}

TEST(Client, RanksThatAreNotOfTheJobGetTheReason) {
  const Job job(2);
  const auto here = job.rank(1);
  const auto refusal = [&](int rank, int world) {
    return error_of([&] { TestRank refused(client_of(job.server->address(), rank, world)); });
  };
  EXPECT_THAT(refusal(1, 2), HasSubstr("refused this rank: rank 1 has already joined (host "));
  EXPECT_THAT(refusal(2, 2), HasSubstr("refused this rank: rank 2 does not exist: this job has ranks 0 to 1"));
  EXPECT_THAT(refusal(-1, 2), HasSubstr("rank -1 does not exist"));
  EXPECT_THAT(refusal(0, 3), HasSubstr("this job has 2 ranks, but rank 0 was started as one of 3"));
  here->client.set("k", "unharmed");
  EXPECT_FALSE(job.server->failure());
}

TEST(Client, ATokenLetsIn) {
  ServerRequest request = server_of(1);
  request.token = JobToken::make();
  const Job job(request);
  ClientRequest rogue = job.request(0);
  const std::string refused = error_of([&] { TestRank rank(rogue); });
  EXPECT_THAT(refused, StartsWith("the job server at " + to_text(job.server->address()) +
                                  " refused this rank\n  set the same TRIAX_JOB_TOKEN"));
  rogue.token = JobToken(std::string(64, 'a'));
  EXPECT_EQ(error_of([&] { TestRank rank(rogue); }), refused);
  rogue.token = JobToken(std::string(600, 'a'));
  EXPECT_THAT(error_of([&] { TestRank rank(rogue); }), HasSubstr("longer than 512 bytes"));
  ClientRequest known = job.request(0);
  known.token = request.token;
  TestRank rank(known);
  rank.client.set("k", "v");
}

} // namespace
} // namespace triax::control::test
