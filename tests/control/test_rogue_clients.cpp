// SPDX-License-Identifier: Apache-2.0
// Connections that are not ranks of the job do no harm, and neither does a rank that misbehaves.
#include <gmock/gmock.h>
#include <sys/socket.h>

#include <random>
#include <vector>

#include "control/job.hpp"

namespace triax::control::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Kind = Message::Kind;
using State = RankStatus::State;

/// A job of two ranks with a token, and its rank 0.
struct RogueClientsTest : ::testing::Test {
  static ServerRequest request() {
    ServerRequest request = server_of(2);
    request.token = JobToken("the secret of this job");
    return request;
  }
  std::unique_ptr<TestRank> come(int number) const {
    ClientRequest known = job.request(number);
    known.token = JobToken("the secret of this job");
    return std::make_unique<TestRank>(known);
  }
  Raw raw(int rank) const { return {job.server->address(), hello_of(rank, 2, "the secret of this job")}; }
  /// Checks that the server still works.
  void expect_no_harm() {
    EXPECT_EQ(zero->client.add("n", 1), ++calls);
    EXPECT_FALSE(job.server->failure());
    EXPECT_FALSE(zero->flag.raised());
    EXPECT_EQ(job.state(1), State::missing);
  }

  const Job job{request()};
  const std::unique_ptr<TestRank> zero = come(0);
  int calls = 0;
};

TEST_F(RogueClientsTest, DropsConnectionsWithoutAValidHello) {
  const std::string nonsense[] = {
      "GET / HTTP/1.1\r\nHost: n7\r\n\r\n",
      "SSH-2.0-OpenSSH_9.2\r\n",
      std::string("\xFF\xFF\xFF\xFF", 4),                    // frame of 4 GiB
      std::string("\x01\x04\0\0", 4),                        // one byte too many
      std::string(4, '\0'),                                  // empty frame
      std::string("\x10\0\0\0TRIX-JOBTRIX-JOB", 20),         // magic number, but an invalid version
      std::string("\x16\x03\x01\0\xA5\x01\0\0\xA1\x03", 10), // TLS
      encode(message(Kind::add, 1, "n")),                    // a request before the hello
      std::string(100000, 'x'),
  };
  for (const std::string& bytes : nonsense) {
    Raw rogue(job.server->address());
    rogue.connection.send(bytes);
    EXPECT_TRUE(rogue.is_dropped()) << bytes.substr(0, 20);
    expect_no_harm();
  }
}

TEST_F(RogueClientsTest, ForgetsConnectionsThatCloseOrReset) {
  for (int i = 0; i < 50; ++i) {
    Raw scanner(job.server->address());
    const linger hard{1, static_cast<int>(i % 2)}; // 0: closing resets the connection
    ::setsockopt(scanner.connection.socket().number(), SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    if (i % 3 == 0) scanner.connection.send(encode(hello_of(1, 2, "wrong")).substr(0, 20));
  }
  expect_no_harm();
}

TEST_F(RogueClientsTest, WithoutTheTokenNothingIsSent) {
  for (const char* token : {"", "the secret of this joB", "the secret of this job and more", "t"}) {
    // The answer reveals neither whether the rank has joined nor how many ranks exist.
    for (const Hello& hello : {hello_of(1, 2, token), hello_of(0, 2, token), hello_of(7, 9, token)}) {
      Raw rogue(job.server->address());
      rogue.connection.send(encode(hello));
      const auto answer = rogue.next();
      ASSERT_TRUE(answer);
      EXPECT_EQ(answer->kind, Kind::refused);
      EXPECT_EQ(answer->value + answer->key, "");
      rogue.connection.send(encode(message(Kind::add, 1, "n"))); // ignored
      EXPECT_TRUE(rogue.is_dropped());
    }
  }
  expect_no_harm();
}

TEST_F(RogueClientsTest, CountsAndNamesRejectedClients) {
  const auto rejected = [&](const Hello& hello) {
    Raw rogue(job.server->address());
    rogue.connection.send(encode(hello));
    EXPECT_TRUE(rogue.is_dropped());
  };
  rejected(hello_of(1, 2, "the wrong secret"));
  rejected(hello_of(1, 2, "the wrong secret"));
  rejected(hello_of(1, 2, ""));
  Hello other = hello_of(1, 2);
  other.version = kProtocolVersion + 1;
  rejected(other);
  Raw web(job.server->address());
  web.connection.send("GET / HTTP/1.1\r\nHost: n7\r\n\r\n");
  EXPECT_TRUE(web.is_dropped());
  EXPECT_TRUE(eventually([&] { return job.server->rejections().total == 5; }));
  EXPECT_EQ(to_text(job.server->rejections()),
            "rejected 5 connections: rank 1 from 127.0.0.1: wrong token (2 times); rank 1 from 127.0.0.1: no token; "
            "127.0.0.1: protocol version " +
                std::to_string(kProtocolVersion + 1) + " instead of " + std::to_string(kProtocolVersion) +
                "; 127.0.0.1: no valid handshake");
  Hello twice = hello_of(0, 2, "the secret of this job");
  twice.host = "n7\x1b[2J";
  rejected(twice);
  EXPECT_THAT(job.server->rejections().kinds.back().reason, HasSubstr("rank 0 has already joined"));
  expect_no_harm();
}

TEST_F(RogueClientsTest, AnotherVersionIsRefusedBeforeAnythingElse) {
  Hello hello = hello_of(1, 2, "whatever its token means there");
  hello.version = kProtocolVersion + 1;
  Raw rogue(job.server->address());
  rogue.connection.send(encode(hello));
  const auto answer = rogue.next();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->kind, Kind::refused);
  EXPECT_EQ(answer->value,
            text("the server has protocol version {}, this rank {}: use the same build of Triax on all ranks",
                 kProtocolVersion, kProtocolVersion + 1));
  EXPECT_TRUE(rogue.is_dropped());
  expect_no_harm();
}

TEST_F(RogueClientsTest, ImpossibleRanksGetTheReasonAndNothingOfTheToken) {
  for (const auto& [rank, world] : {std::pair(0, 2), {2, 2}, {-1, 2}, {1 << 30, 2}, {1, 3}, {1, -2}}) {
    Raw rogue(job.server->address());
    rogue.connection.send(encode(hello_of(rank, world, "the secret of this job")));
    const auto answer = rogue.next();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->kind, Kind::refused);
    EXPECT_THAT(answer->value, HasSubstr("rank"));
    EXPECT_THAT(answer->value, Not(HasSubstr("secret")));
    EXPECT_TRUE(rogue.is_dropped());
  }
  expect_no_harm();
}

TEST_F(RogueClientsTest, AcceptsRanksDespiteManySilentConnections) {
  std::vector<Raw> crowd;
  for (int i = 0; i < 200; ++i) crowd.emplace_back(job.server->address());
  expect_no_harm();
  const auto one = come(1);
  one->client.set("k", "v");
  EXPECT_EQ(zero->client.get("k", deadline_in(kLong)), "v");
  // The oldest connections were dropped for new ones, long before their timeout.
  EXPECT_TRUE(crowd.front().is_dropped());
}

// This takes the five seconds after which a silent connection is dropped.
TEST_F(RogueClientsTest, DropsConnectionsThatDoNotFinishTheirHello) {
  Raw mute(job.server->address()), half(job.server->address()), slow(job.server->address());
  const std::string hello = encode(hello_of(1, 2, "the secret of this job"));
  half.connection.send(hello.substr(0, hello.size() / 2));
  for (std::size_t sent = 0; sent + 1 < hello.size() && !slow.connection.ended(); ++sent) {
    slow.connection.send(hello.substr(sent, 1));
    if (os::wait_readable(slow.connection.socket(), deadline_in(0.1))) slow.connection.receive();
  }
  EXPECT_TRUE(mute.is_dropped());
  EXPECT_TRUE(half.is_dropped());
  EXPECT_TRUE(slow.is_dropped());
  expect_no_harm();
}

TEST_F(RogueClientsTest, ARankThatTalksNonsenseIsLost) {
  Raw one = raw(1);
  one.connection.send(std::string("\x02\0\0\0\x63\x01", 6));
  EXPECT_TRUE(one.is_dropped());
  ASSERT_TRUE(job.server->failure());
  EXPECT_EQ(job.server->failure()->rank, 1);
  EXPECT_EQ(job.server->failure()->why, "invalid protocol message");
  EXPECT_TRUE(eventually([&] { return zero->flag.raised(); }));
}

TEST_F(RogueClientsTest, ARankThatSpeaksLikeAServerIsLost) {
  Raw one = raw(1);
  one.connection.send(encode(message(Kind::welcome)));
  EXPECT_TRUE(one.is_dropped());
  EXPECT_EQ(job.server->failure()->why, "it sent a message that only the server may send");
}

TEST_F(RogueClientsTest, ARankThatAnnouncesTooMuchIsLostBeforeItSendsIt) {
  Raw one = raw(1);
  one.connection.send(std::string("\x01\0\0\x01", 4)); // 16 MiB and one byte
  EXPECT_TRUE(one.is_dropped());
  EXPECT_EQ(job.server->failure()->why, "it announced a message above the size limit");
}

TEST_F(RogueClientsTest, ARankThatGoesWithoutGoodbyeIsLost) {
  { const Raw one = raw(1); }
  EXPECT_TRUE(eventually([&] { return zero->flag.raised(); }));
  EXPECT_EQ(zero->flag.reason(), "rank 1 was lost: the connection was closed");
  EXPECT_EQ(job.state(1), State::lost);
}

TEST_F(RogueClientsTest, ReadsTheLastMessageOfARankThatReadsNothing) {
  {
    Raw one = raw(1);
    std::string stream; // one piece, because a reset discards what the system has not sent yet
    for (int i = 0; i < 20; ++i) stream += encode(message(Kind::beat, 0, "", "step 5"));
    one.connection.send(stream + encode(message(Kind::rank_failed, 0, "step 6", "no memory")));
  } // answers are unread, so closing resets the connection
  EXPECT_TRUE(eventually([&] { return job.state(1) == State::lost; }));
  EXPECT_FALSE(job.server->failure()->lost);
  EXPECT_EQ(job.server->failure()->why, "no memory");
  EXPECT_EQ(job.status(1).position, "step 6");
}

TEST_F(RogueClientsTest, AnswersASlowReaderWithoutBlocking) {
  constexpr int kRequests = 200;
  const std::string value(1 << 20, 'v');
  zero->client.set("k", value);
  Raw one = raw(1);
  for (std::uint64_t id = 1; id <= kRequests; ++id) one.connection.send(encode(message(Kind::get, id, "k")));
  EXPECT_EQ(zero->client.add("n", 1), 1); // the server does not block on rank 1
  for (std::uint64_t id = 1; id <= kRequests; ++id) {
    const auto answer = one.next();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->id, id);
    EXPECT_EQ(answer->value.size(), value.size());
  }
  EXPECT_FALSE(job.server->failure());
}

TEST_F(RogueClientsTest, MarksARankThatReadsNothingAsLost) {
  Raw one = raw(1);
  for (std::uint64_t id = 1; id <= 200; ++id) one.connection.send(encode(message(Kind::get, id, "k")));
  one.connection.send(encode(message(Kind::set, 201, "asked", "")));
  zero->client.get("asked", deadline_in(kLong));
  zero->client.send("about", "to set");
  EXPECT_FALSE(job.server->failure());
  try {
    zero->client.set("k", std::string(1 << 20, 'v')); // 200 MiB of answers
  } catch (const Error&) {                            // the loss may precede the answer
  }
  EXPECT_TRUE(eventually([&] { return job.server->failure().has_value(); }));
  EXPECT_EQ(job.server->failure()->rank, 1);
  EXPECT_EQ(job.server->failure()->why, "it does not read its messages");
}

TEST_F(RogueClientsTest, AKeyThatIsTooLongIsRefused) {
  Raw one = raw(1);
  one.connection.send(encode(message(Kind::set, 1, std::string(4097, 'k'), "v")));
  const auto refused = one.next();
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->kind, Kind::refused);
  EXPECT_EQ(refused->value, "the key has 4097 bytes; the maximum is 4096");
  one.connection.send(encode(message(Kind::set, 2, std::string(4096, 'k'), "v")));
  EXPECT_EQ(one.next()->kind, Kind::done);
}

TEST_F(RogueClientsTest, RefusesTooManyOrDuplicateWaits) {
  Raw one = raw(1);
  for (std::uint64_t id = 1; id <= 1025; ++id) one.connection.send(encode(message(Kind::get, id, "k")));
  auto answer = one.next();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->kind, Kind::refused);
  EXPECT_EQ(answer->id, 1025u);
  one.connection.send(encode(message(Kind::forget, 1)));
  EXPECT_EQ(one.next()->kind, Kind::missing);
  one.connection.send(encode(message(Kind::barrier, 2000, "b")));
  one.connection.send(encode(message(Kind::forget, 2)));
  EXPECT_EQ(one.next()->id, 2u);
  one.connection.send(encode(message(Kind::barrier, 2001, "b")));
  answer = one.next();
  EXPECT_EQ(answer->id, 2001u);
  EXPECT_EQ(answer->value, "rank 1 is already in the barrier \"b\"");
  one.connection.send(encode(message(Kind::forget, 77777))); // unknown request: no answer
  one.connection.send(encode(message(Kind::add, 2002, "m")));
  EXPECT_EQ(one.next()->id, 2002u);
  one.connection.send(encode(message(Kind::goodbye)));
  EXPECT_EQ(one.next()->kind, Kind::goodbye);
  zero->client.set("k", "v"); // its request no longer exists
  EXPECT_FALSE(job.server->failure());
}

// The server survives any input from a rank.
TEST(RogueClientsFuzz, ChangedStreamsOfARank) {
  std::mt19937 random(9);
  for (int round = 0; round < 100; ++round) {
    const Job job(2);
    const auto zero = job.rank(0);
    std::string stream;
    for (std::uint64_t id = 1; id < 30; ++id) {
      Message any = message(static_cast<Kind>(1 + random() % 19), id, std::string(random() % 3, 'k'), "value");
      any.number = static_cast<int>(random() % 5) - 2;
      stream += encode(any);
    }
    if (round % 2 == 1) {
      for (int changes = 0; changes < 4; ++changes) stream[random() % stream.size()] = static_cast<char>(random());
    }
    {
      Raw one(job.server->address(), hello_of(1, 2));
      one.connection.send(stream);
      while (os::wait_readable(one.connection.socket(), deadline_in(0))) {
        if (!one.next()) break;
      }
    }
    EXPECT_TRUE(eventually([&] { return job.state(1) == State::lost || job.state(1) == State::left; }));
    zero->client.leave(); // waits for an answer
    EXPECT_EQ(job.state(0), State::left);
  }
}

} // namespace
} // namespace triax::control::test
