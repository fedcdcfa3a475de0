// SPDX-License-Identifier: Apache-2.0
// Addresses on which a server listens, and errors before it starts.
#include <gmock/gmock.h>
#include <sys/resource.h>

#include "control/job.hpp"
#include "support/error_of.hpp"

namespace triax::control::test {
namespace {

using ::testing::HasSubstr;
using triax::test::error_of;

TEST(Server, ListensOnLoopbackByDefault) {
  const Server server(server_of(1));
  EXPECT_EQ(server.address().host, "127.0.0.1");
  EXPECT_GT(server.address().port, 0);
  EXPECT_FALSE(server.failure());
  EXPECT_EQ(server.ranks().size(), 1u);
}

TEST(Server, APortInUseIsRefusedWithTheNextStep) {
  const Server first(server_of(1));
  ServerRequest request = server_of(1);
  request.port = first.address().port;
  EXPECT_EQ(error_of([&] { Server second(request); }),
            text("job server: port {} of 127.0.0.1 is in use\n  choose another with launch.port, or leave it out",
                 request.port));
}

TEST(Server, APortIsFreeAgainWhenItsJobHasEnded) {
  ServerRequest request = server_of(1);
  for (int job = 0; job < 3; ++job) {
    Job again(request);
    request.port = again.server->address().port;
    Raw open(again.server->address(), hello_of(0, 1)); // the server closes first, so its end stays in TIME_WAIT
    again.server.reset();
    EXPECT_TRUE(open.is_dropped());
  }
}

TEST(Server, AnAddressThatOthersReachNeedsAToken) {
  std::string outside;
  for (const char* name : {"eth0", "ens3", "enp1s0"}) {
    try {
      outside = os::address_of_interface(name);
    } catch (const Error&) { // this machine has no such interface
    }
  }
  if (outside.empty()) GTEST_SKIP() << "this machine has no interface but loopback";
  ServerRequest request = server_of(1);
  request.interface = outside;
  EXPECT_EQ(error_of([&] { Server server(request); }),
            "the job server at " + outside +
                " is reachable from other machines, but the job has no token\n"
                "  set TRIAX_JOB_TOKEN or launch.token_file, or leave launch.interface out");
  request.token = JobToken::make();
  const Job job(request);
  EXPECT_EQ(job.server->address().host, outside);
  ClientRequest client = job.request(0);
  client.token = request.token;
  TestRank rank(client);
  rank.client.set("k", "v");
}

TEST(Server, RanksMeetOverIpv6) {
  ServerRequest request = server_of(1);
  request.interface = "::1";
  std::unique_ptr<Job> job;
  try {
    job = std::make_unique<Job>(request);
  } catch (const Error& error) {
    GTEST_SKIP() << "this machine has no IPv6 loopback: " << error.what();
  }
  EXPECT_THAT(to_text(job->server->address()), HasSubstr("[::1]:"));
  job->rank(0)->client.set("k", "v");
}

TEST(Server, AJobOfMoreRanksThanFilesIsRefused) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int world = static_cast<int>(std::min<rlim_t>(before.rlim_max, 1 << 30));
  EXPECT_THAT(error_of([&] { Server server(server_of(world)); }),
              HasSubstr("ask the administrator to raise the hard limit of open files (ulimit -Hn)"));
}

TEST(Server, EndsWithoutHavingStarted) {
  Server server(server_of(3));
  server.stop(15);
  server.fail({1, true, "killed by signal 9"});
  EXPECT_EQ(server.failure()->rank, 1);
}

TEST(Server, StartsOnce) {
  const Job job(1);
  EXPECT_THAT(error_of([&] { job.server->start(); }), HasSubstr("the server is already started"));
}

} // namespace
} // namespace triax::control::test
