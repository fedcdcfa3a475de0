// SPDX-License-Identifier: Apache-2.0
// Lines between processes of this machine, and turns that ranks wait for.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <string>

#include "compare/turn_server.hpp"
#include "support/error_of.hpp"
#include "triax/error.hpp"
#include "triax/text.hpp"

namespace triax::compare {
namespace {

using namespace std::chrono_literals;

std::string unique_name(const char* test) {
  return text("triax-test-turns-{}-{}", ::getpid(), test);
}

report::WaitingRank waiting(int rank, std::int64_t next_step) {
  report::WaitingRank out;
  out.rank = rank;
  out.process = 4711;
  out.next_step = next_step;
  out.on_host = rank == 0;
  out.memory_bytes = 1 << 20;
  out.tokens_per_sample = 8;
  out.traffic = {{"tensor", "comm-ucx", 1, 2, 3}};
  return out;
}

TEST(LocalSocket, LinesArriveWhole) {
  os::LocalListener listener(unique_name("lines"));
  os::LocalConnection client = os::LocalConnection::to(listener.name());
  std::optional<os::LocalConnection> server = listener.accept();
  ASSERT_TRUE(server);
  EXPECT_FALSE(listener.accept()) << "there is no other";
  EXPECT_FALSE(server->read_line(Clock::now())) << "nothing was sent";
  EXPECT_FALSE(server->is_closed());
  client.write_line("first");
  client.write_line(std::string(100'000, 'x'));
  EXPECT_EQ(server->read_line(Clock::now() + 10s), "first");
  EXPECT_EQ(server->read_line(Clock::now() + 10s), std::string(100'000, 'x'));
}

TEST(LocalSocket, TheEndOfTheOtherSideIsNoticed) {
  os::LocalListener listener(unique_name("end"));
  std::optional<os::LocalConnection> client = os::LocalConnection::to(listener.name());
  std::optional<os::LocalConnection> server = listener.accept();
  ASSERT_TRUE(server);
  client->write_line("last");
  client.reset();
  EXPECT_EQ(server->read_line(Clock::now() + 10s), "last");
  EXPECT_FALSE(server->read_line(Clock::now() + 10s));
  EXPECT_TRUE(server->is_closed());
  server->write_line("lost"); // no signal
}

TEST(LocalSocket, ANameBelongsToOneProcess) {
  const os::LocalListener listener(unique_name("taken"));
  EXPECT_NE(test::error_of([&] { os::LocalListener(listener.name()); }).find("cannot listen"), std::string::npos);
  EXPECT_NE(test::error_of([&] { os::LocalConnection::to(unique_name("nobody")); }).find("cannot connect"),
            std::string::npos);
  EXPECT_THROW(os::LocalListener(std::string(200, 'x')), Error);
}

TEST(TurnMessages, AreReadAsTheyWereWritten) {
  const report::WaitingRank rank = report::read_waiting_rank(to_line(waiting(3, 7)));
  EXPECT_EQ(rank.rank, 3);
  EXPECT_EQ(rank.process, 4711);
  EXPECT_EQ(rank.next_step, 7);
  EXPECT_FALSE(rank.on_host);
  EXPECT_EQ(rank.memory_bytes, 1u << 20);
  EXPECT_EQ(rank.tokens_per_sample, 8);
  ASSERT_EQ(rank.traffic.size(), 1u);
  EXPECT_EQ(rank.traffic[0].plugin, "comm-ucx");
  EXPECT_EQ(rank.traffic[0].bytes_in, 3u);
  const report::Turn turn = report::read_turn(to_line(report::Turn{12, 11}));
  EXPECT_EQ(turn.until, 12);
  EXPECT_EQ(turn.timeline, 11);
  for (const char* broken : {"", "{", "[]", "{\"until\":1}", "{\"until\":\"x\",\"timeline\":0}"}) {
    EXPECT_THROW(report::read_turn(broken), Error) << broken;
    EXPECT_THROW(report::read_waiting_rank(broken), Error) << broken;
  }
}

TEST(TurnServer, WaitsForAllRanksAndAnswersAll) {
  TurnServer server(unique_name("turn"), 2);
  os::LocalConnection first = os::LocalConnection::to(server.name());
  first.write_line(report::to_line(waiting(1, 5)));
  EXPECT_FALSE(server.poll(10)) << "one of two";
  os::LocalConnection second = os::LocalConnection::to(server.name());
  EXPECT_FALSE(server.poll(10)) << "it has not said that it waits";
  second.write_line(report::to_line(waiting(0, 5)));
  while (!server.poll(100)) {
  }
  ASSERT_EQ(server.waiting().size(), 2u);
  EXPECT_EQ(server.waiting()[1].rank, 1) << "by rank";
  server.give({9, 8});
  for (os::LocalConnection* rank : {&first, &second}) {
    const std::optional<std::string> line = rank->read_line(Clock::now() + 10s);
    ASSERT_TRUE(line);
    EXPECT_EQ(report::read_turn(*line).until, 9);
  }
  EXPECT_FALSE(server.poll(10)) << "they compute";
}

TEST(TurnServer, RanksAtDifferentStepsAreAnError) {
  TurnServer server(unique_name("steps"), 2);
  os::LocalConnection first = os::LocalConnection::to(server.name());
  os::LocalConnection second = os::LocalConnection::to(server.name());
  first.write_line(report::to_line(waiting(0, 5)));
  second.write_line(report::to_line(waiting(1, 6)));
  while (!server.poll(100)) {
  }
  EXPECT_NE(test::error_of([&] { server.waiting(); }).find("rank 1 waits for step 6, but rank 0 for step 5"),
            std::string::npos);
}

} // namespace
} // namespace triax::compare
