// SPDX-License-Identifier: Apache-2.0
// A failure anywhere reaches all ranks: failed, killed and silent ranks, and a lost server.
#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "control/child.hpp"
#include "control/job.hpp"
#include "support/error_of.hpp"
#include "support/temp_folder.hpp"

namespace triax::control::test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using triax::test::error_of;
using triax::test::TempFolder;
using Kind = Message::Kind;
using State = RankStatus::State;

std::string in_seconds(double seconds) {
  return triax::to_text(seconds);
}

/// A rank as a process that has sent a heartbeat.
struct ChildRank {
  ChildRank(const Job& job, int rank, double silence_s = kLong, double grace_s = kLong)
      : child({CONTROL_RANK, std::to_string(job.server->address().port), std::to_string(rank),
               std::to_string(job.world), in_seconds(silence_s), in_seconds(grace_s)},
              folder / "errors") {
    if (!eventually([&] { return job.status(rank).position == "step 7, 0F3"; }))
      throw std::runtime_error("no rank came");
  }
  TempFolder folder;
  Child child;
};

TEST(Failure, AFailureReachesAllAndAllSayWhereTheyWere) {
  const Job job(3);
  std::atomic<bool> failed = false;
  std::vector<std::unique_ptr<TestRank>> ranks;
  for (int rank = 0; rank < job.world; ++rank) {
    ClientRequest request = job.request(rank);
    request.position = [&failed, rank] { return text("rank {} at {}", rank, failed ? "0B1" : "0F1"); };
    ranks.push_back(std::make_unique<TestRank>(request));
  }
  failed = true;
  EXPECT_TRUE(ranks[1]->flag.raise(1, "no memory\n  use less"));
  for (const int rank : {0, 2}) {
    JobAbort& flag = ranks[static_cast<std::size_t>(rank)]->flag;
    EXPECT_TRUE(eventually([&] { return flag.raised(); }));
    EXPECT_EQ(flag.rank(), 1);
    EXPECT_EQ(flag.reason(), "rank 1 failed: no memory\n  use less");
  }
  ASSERT_TRUE(job.server->failure());
  EXPECT_EQ(job.server->failure()->rank, 1);
  EXPECT_FALSE(job.server->failure()->lost);
  EXPECT_EQ(job.server->failure()->why, "no memory\n  use less");
  for (int rank = 0; rank < job.world; ++rank)
    EXPECT_TRUE(eventually([&] { return job.status(rank).position == text("rank {} at 0B1", rank); }));
}

TEST(Failure, TheServerHearsTheErrorOfARankThatLeavesAtOnce) {
  const Job job(2);
  const auto stays = job.rank(0);
  {
    const auto goes = job.rank(1);
    goes->flag.raise(1, "no memory");
  }
  ASSERT_TRUE(job.server->failure());
  EXPECT_EQ(job.server->failure()->why, "no memory");
  EXPECT_EQ(job.state(1), State::left);
  EXPECT_TRUE(eventually([&] { return stays->flag.raised(); }));
}

TEST(Failure, AFlagRaisedBeforeTheRankCameIsReported) {
  const Job job(1);
  JobAbort flag;
  flag.raise(0, "no such device");
  Client client(job.request(0), flag);
  EXPECT_TRUE(eventually([&] { return job.server->failure().has_value(); }));
  EXPECT_EQ(job.server->failure()->why, "no such device");
}

TEST(Failure, WaitsEndWithItsReasonNowAndLater) {
  const Job job(2);
  const auto zero = job.rank(0), one = job.rank(1);
  std::string get, barrier;
  std::thread getting([&] { get = error_of([&] { zero->client.get("hub", Deadline::max()); }); });
  std::thread waiting([&] { barrier = error_of([&] { zero->client.barrier("end", Deadline::max()); }); });
  one->flag.raise(1, "no memory");
  getting.join();
  waiting.join();
  EXPECT_EQ(get, "store, waiting for the key \"hub\": rank 1 failed: no memory");
  EXPECT_EQ(barrier, "barrier \"end\": rank 1 failed: no memory");
  EXPECT_THAT(error_of([&] { zero->client.set("k", "v"); }), HasSubstr("rank 1 failed: no memory"));
  EXPECT_THAT(error_of([&] { zero->client.add("k", 1); }), HasSubstr("rank 1 failed: no memory"));
}

TEST(Failure, LaterMessagesStillArrive) {
  const Job job(2);
  const auto zero = job.rank(0), one = job.rank(1);
  one->flag.raise(1, "no memory");
  EXPECT_TRUE(eventually([&] { return zero->flag.raised(); }));
  zero->client.send("last", "words");
  zero->client.leave();
  const auto messages = job.server->drain_worker_messages();
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_EQ(messages[0].text, "words");
  EXPECT_EQ(job.state(0), State::left);
}

TEST(Failure, SendsReportedFailuresToCurrentAndLaterRanks) {
  const Job job(2);
  const auto zero = job.rank(0);
  job.server->fail({1, true, "killed by signal 9"});
  job.server->fail({0, true, "a consequence"});
  EXPECT_TRUE(eventually([&] { return zero->flag.raised(); }));
  EXPECT_EQ(zero->flag.reason(), "rank 1 was lost: killed by signal 9");
  EXPECT_EQ(job.server->failure()->why, "killed by signal 9");
  EXPECT_EQ(job.state(1), State::lost);

  const Job other(1);
  other.server->fail({-1, false, "the node goes down"});
  const auto late = other.rank(0);
  EXPECT_TRUE(eventually([&] { return late->flag.raised(); }));
  EXPECT_EQ(late->flag.rank(), -1);
  EXPECT_EQ(late->flag.reason(), "the node goes down");
}

TEST(Failure, ARankThatIsKilledIsLost) {
  const Job job(2);
  const auto zero = job.rank(0);
  ChildRank one(job, 1);
  one.child.send(SIGKILL);
  EXPECT_TRUE(eventually([&] { return zero->flag.raised(); }));
  EXPECT_EQ(zero->flag.rank(), 1);
  EXPECT_EQ(zero->flag.reason(), "rank 1 was lost: the connection was closed");
  EXPECT_TRUE(job.server->failure()->lost);
  EXPECT_EQ(job.status(1).state, State::lost);
  EXPECT_EQ(job.status(1).position, "step 7, 0F3");
}

// Rank 0 does not join, so only rank 1 can be silent.
TEST(Failure, ARankThatIsStoppedIsLostForItsSilence) {
  const Job job(server_of(2, 2));
  const ChildRank one(job, 1);
  one.child.send(SIGSTOP);
  EXPECT_TRUE(eventually([&] { return job.server->failure().has_value(); }));
  EXPECT_EQ(job.server->failure()->rank, 1);
  EXPECT_THAT(job.server->failure()->why, StartsWith("no message from it for 2 s (train.stall_timeout_s): "));
  EXPECT_EQ(job.status(1).position, "step 7, 0F3");
  EXPECT_GE(job.status(1).silent_s, 2);
}

TEST(Failure, AProcessThatDoesNotLeaveIsEndedAndSaysWhereItHung) {
  const Job job(2);
  ChildRank one(job, 1, kLong, 0.1);
  job.server->fail({0, false, "no memory"});
  const int status = one.child.wait();
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_EQ(triax::test::read_file(one.folder / "errors"),
            "rank 1 did not stop within 0.1 s of an abort; terminating it: rank 0 failed: no memory\n"
            "  its position: step 7, 0F3\n");
  EXPECT_TRUE(eventually([&] { return job.state(1) == State::lost; }));
  EXPECT_EQ(job.server->failure()->rank, 0); // the end of rank 1 is not the cause
}

TEST(Failure, WhenTheServerGoesEachRankFails) {
  Job job(2);
  const auto zero = job.rank(0), one = job.rank(1);
  const std::string lost =
      "lost the connection to the job server at " + to_text(job.server->address()) + ": the connection was closed";
  std::string messages;
  std::thread getting([&] { messages = error_of([&] { zero->client.get("never", Deadline::max()); }); });
  job.server.reset();
  getting.join();
  EXPECT_EQ(messages, "store, waiting for the key \"never\": " + lost);
  for (TestRank* rank : {zero.get(), one.get()}) {
    EXPECT_TRUE(eventually([&] { return rank->flag.raised(); }));
    EXPECT_EQ(rank->flag.rank(), -1);
    EXPECT_EQ(rank->flag.reason(), lost);
  }
  EXPECT_THAT(error_of([&] { zero->client.send("last", "words"); }), HasSubstr(lost));
  EXPECT_THAT(error_of([&] { zero->client.leave(); }), HasSubstr("before it received all messages of this rank"));
}

/// A server that welcomes one rank and receives what it sends.
struct FakeServer {
  FakeServer() : listening(os::listen_on({"127.0.0.1", 0})) {}
  ClientRequest request() const { return client_of({"127.0.0.1", os::port_of(listening)}, 0, 2); }
  /// Welcomes the first rank that connects.
  void welcome() {
    os::wait_readable(listening, deadline_in(kLong));
    bool full = false;
    std::string from;
    rank = std::make_unique<Raw>(os::accept_from(listening, full, from));
    ASSERT_TRUE(rank->frame()); // its hello
    rank->connection.send(encode(message(Kind::welcome)));
  }
  os::Descriptor listening;
  std::unique_ptr<Raw> rank;
};

TEST(Failure, BeforeItStopsARankSaysWhereItStood) {
  FakeServer server;
  std::thread welcoming([&] { server.welcome(); });
  ClientRequest request = server.request();
  JobAbort flag;
  std::atomic<bool> raised_before = false;
  request.position = [&] {
    raised_before = flag.raised();
    return std::string("step 3");
  };
  Client client(request, flag);
  welcoming.join();
  Message failure = message(Kind::lost, 0, "", "the connection was closed");
  failure.number = 1;
  server.rank->connection.send(encode(failure));
  for (;;) {
    const auto beat = server.rank->next(Kind::beat);
    ASSERT_TRUE(beat);
    if (beat->number == 0) continue; // an ordinary heartbeat
    EXPECT_EQ(beat->value, "step 3");
    break;
  }
  EXPECT_FALSE(raised_before);
  EXPECT_TRUE(eventually([&] { return flag.raised(); }));
  EXPECT_EQ(flag.reason(), "rank 1 was lost: the connection was closed");
  server.rank.reset(); // leave() would get no answer
}

TEST(Failure, AServerThatFallsSilentIsLost) {
  FakeServer server;
  std::thread welcoming([&] { server.welcome(); });
  ClientRequest request = server.request();
  request.silence_s = 1;
  TestRank rank(request);
  welcoming.join();
  EXPECT_TRUE(eventually([&] { return rank.flag.raised(); }));
  EXPECT_THAT(rank.flag.reason(), HasSubstr(": no message from it for 1 s"));
  EXPECT_THAT(error_of([&] { rank.client.get("k", Deadline::max()); }), HasSubstr("no message from it"));
}

TEST(Failure, AServerThatTalksNonsenseIsLost) {
  FakeServer server;
  std::thread welcoming([&] { server.welcome(); });
  TestRank rank(server.request());
  welcoming.join();
  server.rank->connection.send(std::string("\x03\0\0\0abc", 7));
  EXPECT_TRUE(eventually([&] { return rank.flag.raised(); }));
  EXPECT_THAT(rank.flag.reason(), HasSubstr(": invalid protocol message"));
}

TEST(Failure, ManyRanksFailAtOnceAndOneIsTheCause) {
  const Job job(8);
  std::vector<std::unique_ptr<TestRank>> ranks;
  for (int rank = 0; rank < job.world; ++rank) ranks.push_back(job.rank(rank));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < job.world; ++rank) {
    threads.emplace_back([&, rank] {
      TestRank& own = *ranks[static_cast<std::size_t>(rank)];
      own.flag.raise(rank, "at once");
      own.client.leave();
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(job.server->failure());
  EXPECT_EQ(job.server->failure()->why, "at once");
  for (int rank = 0; rank < job.world; ++rank) EXPECT_EQ(job.state(rank), State::left);
}

} // namespace
} // namespace triax::control::test
