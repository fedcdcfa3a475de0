// SPDX-License-Identifier: Apache-2.0
// The NCCL stand-in: calls that wait for ranks, and how they end.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>
#include <vector>

#include "nccl_harness.hpp"

namespace triax::test {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

TEST_F(Nccl, SendsOutsideOfAGroupWaitForEachOther) {
  constexpr std::size_t kCount = 300000;
  const ReportSoon soon;
  const std::string printed = run(1, [](Rank& rank) {
    float* data = filled(kCount, 1);
    const int peer = 1 - rank.number;
    EXPECT_EQ(ncclSend(data, kCount, ncclFloat, peer, rank.comms[0], rank.streams[0]), ncclSuccess);
    EXPECT_EQ(ncclRecv(data, kCount, ncclFloat, peer, rank.comms[0], rank.streams[0]), ncclSuccess);
    wait_for_message("ncclSend with rank " + std::to_string(peer) + " is not done");
    EXPECT_EQ(cudaStreamQuery(rank.streams[0]), cudaErrorNotReady);
    rank.abort();
    rank.finish();
  });
  EXPECT_THAT(printed, HasSubstr("NCCL: ncclSend of communicator"));
}

TEST_F(Nccl, TwoCommunicatorsInOneOrderDoNotWaitForEachOther) {
  const std::string printed = run(2, [](Rank& rank) {
    float* data = filled(8, 1);
    for (const int of : {1, 0}) EXPECT_EQ(all_reduce(rank, data, 4, of), ncclSuccess);
    ok(rank.finish());
  });
  EXPECT_EQ(printed, "");
}

TEST_F(Nccl, TwoCommunicatorsInDifferentOrdersAreADeadlock) {
  std::atomic<int> failed = 0; // one rank finds it; its abort ends the calls of the other
  const std::string printed = run(2, [&failed](Rank& rank) {
    float* first = filled(4, 1);
    float* second = filled(4, 1);
    EXPECT_EQ(all_reduce(rank, first, 4, rank.number), ncclSuccess);
    EXPECT_EQ(all_reduce(rank, second, 4, 1 - rank.number), ncclSuccess);
    failed += rank.finish() != cudaSuccess ? 1 : 0;
    for (int of = 0; of < 2; ++of)
      if (rank.comms[static_cast<std::size_t>(of)]) rank.abort(of);
  });
  EXPECT_GE(failed, 1);
  EXPECT_THAT(printed, ContainsRegex("cudaErrorLaunchTimeout.*deadlock: GPU [0-9]+ calls communicator .* before "
                                     "communicator .*; rank [01] of .* calls .* before it[.] "
                                     "Call communicators in the same order on all ranks"));
}

TEST_F(Nccl, AMemberThatDoesNotComeIsNamed) {
  const ReportSoon soon;
  const std::string printed = run(1, [](Rank& rank) {
    float* data = filled(4, 1);
    if (rank.number == 1) wait_for_message("rank 1 of");
    EXPECT_EQ(all_reduce(rank, data, 4), ncclSuccess);
    ok(rank.finish());
  });
  EXPECT_THAT(printed,
              ContainsRegex("NCCL: ncclAllReduce of communicator .* waits for .*; rank 1 of .* has not called"));
}

TEST_F(Nccl, AMemberThatDoesNotJoinIsNamed) {
  const ReportSoon soon;
  ncclUniqueId id;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  ::testing::internal::CaptureStderr();
  const auto join = [&](int number) {
    ok(cudaSetDevice(devices_[static_cast<std::size_t>(number)]));
    ncclComm_t comm = nullptr;
    EXPECT_EQ(ncclCommInitRankConfig(&comm, 2, id, number, nullptr), ncclSuccess);
    ncclComm_t half = nullptr;
    if (number == 1) wait_for_message("rank 1 has not called it");
    EXPECT_EQ(ncclCommSplit(comm, 0, 0, &half, nullptr), ncclSuccess);
    for (const ncclComm_t each : {half, comm}) EXPECT_EQ(ncclCommDestroy(each), ncclSuccess);
  };
  std::thread first(join, 0);
  wait_for_message("; rank 1 has not joined");
  join(1);
  first.join();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(ContainsRegex("NCCL: communicator .*, rank 0 of 2 on GPU .* waits for .*; rank 1 has not joined"),
                    ContainsRegex("NCCL: ncclCommSplit of communicator .*; rank 1 has not called it")));
}

/// Members are processes here. The second one ends while the first one waits for it.
TEST_F(Nccl, AMemberWhoseProcessEndsIsNamed) {
  constexpr const char* kId = "TRIAX_TEST_NCCL_ID"; // set in the second process
  const auto join = [&](const ncclUniqueId& id, int number) {
    Rank rank;
    rank.number = number;
    rank.comms.push_back(nullptr);
    EXPECT_EQ(ncclCommInitRankConfig(rank.comms.data(), 2, id, number, nullptr), ncclSuccess);
    rank.streams.push_back(make_stream());
    EXPECT_EQ(all_reduce(rank, filled(4, 1), 4), ncclSuccess);
    return rank;
  };
  ncclUniqueId id{};
  if (const char* text = std::getenv(kId)) {
    std::strncpy(id.internal, text, sizeof id.internal - 1);
    join(id, 1).finish();
    _exit(0);
  }
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  ::testing::internal::CaptureStderr();
  std::thread second([&id] {
    const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
    const std::string command =
        std::string(kId) + "=" + id.internal + " '" + program + "' --gtest_filter=Nccl.AMemberWhoseProcessEndsIsNamed";
    EXPECT_EQ(std::system((command + " > /dev/null").c_str()), 0);
  });
  Rank rank = join(id, 0);
  rank.finish(); // all_reduce() of both
  if (rank.comms[0]) all_reduce(rank, filled(4, 1), 4);
  rank.finish();
  second.join();
  EXPECT_EQ(rank.last_state, ncclRemoteError);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ContainsRegex("NCCL: communicator .*: the process of rank 1 \\(pid [0-9]+\\) has ended"));
}

/// A process that was killed while it joined leaves its segment behind, and its id is used again.
TEST_F(Nccl, TheSegmentOfAnEarlierProcessIsNotUsed) {
  std::vector<std::string> names;
  for (int number = 1; number <= 100; ++number) {
    names.push_back("/gpu-stand-in-" + std::to_string(getpid()) + "-" + std::to_string(number));
    const int file = shm_open(names.back().c_str(), O_RDWR | O_CREAT, 0600);
    const std::vector<std::uint8_t> old(64, 0xFF);
    EXPECT_EQ(write(file, old.data(), old.size()), 64);
    close(file);
  }
  ncclUniqueId id;
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  EXPECT_EQ(ncclCommInitRankConfig(&comm, 1, id, 0, nullptr), ncclSuccess);
  EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  for (const std::string& name : names) shm_unlink(name.c_str());
}

/// Members are processes. The second one leaves, and then ends.
TEST_F(Nccl, TheEndOfAMemberThatHasLeftIsNoFailure) {
  ncclUniqueId id;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  const pid_t second = fork();
  if (second == 0) {
    ncclComm_t comm = nullptr;
    const bool joined =
        cudaSetDevice(devices_[1]) == cudaSuccess && ncclCommInitRankConfig(&comm, 2, id, 1, nullptr) == ncclSuccess;
    _exit(joined && ncclCommDestroy(comm) == ncclSuccess ? 0 : 1);
  }
  Rank rank;
  rank.comms.push_back(nullptr);
  ok(cudaSetDevice(devices_[0]));
  EXPECT_EQ(ncclCommInitRankConfig(rank.comms.data(), 2, id, 0, nullptr), ncclSuccess);
  int status = -1;
  EXPECT_EQ(waitpid(second, &status, 0), second);
  EXPECT_EQ(status, 0);
  rank.streams.push_back(make_stream());
  EXPECT_EQ(all_reduce(rank, filled(4, 1), 4), ncclSuccess);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(rank.state(), ncclSuccess);
  rank.abort();
  EXPECT_EQ(rank.finish(), cudaSuccess);
}

TEST_F(Nccl, AbortEndsACallThatThePeerNeverPosts) {
  run(1, [](Rank& rank) {
    if (rank.number == 1) return;
    float* data = filled(4, 1);
    EXPECT_EQ(all_reduce(rank, data, 4), ncclSuccess);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(cudaStreamQuery(rank.streams[0]), cudaErrorNotReady);
    rank.abort();
    rank.finish();
  });
}

TEST_F(Nccl, AnAbortDoesNotEndTheCallsOfOtherMembers) {
  std::atomic<bool> posted = false, aborted = false;
  run(1, [&](Rank& rank) {
    if (rank.number == 1) {
      while (!posted) std::this_thread::yield();
      rank.abort();
      aborted = true;
      return;
    }
    float* data = filled(4, 1);
    EXPECT_EQ(all_reduce(rank, data, 4), ncclSuccess);
    posted = true;
    while (!aborted) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(rank.state(), ncclSuccess);
    EXPECT_EQ(cudaStreamQuery(rank.streams[0]), cudaErrorNotReady);
    rank.abort();
    EXPECT_EQ(rank.finish(), cudaSuccess);
  });
}

/// Finalizing takes until then, too.
TEST_F(Nccl, ACommunicatorEndsWhenNoGraphContainsItsCalls) {
  const ReportSoon soon;
  const std::string printed = run(1, [](Rank& rank) {
    float* data = filled(4, 1);
    ok(cudaStreamBeginCapture(rank.streams[0], cudaStreamCaptureModeRelaxed));
    EXPECT_EQ(all_reduce(rank, data, 4), ncclSuccess);
    cudaGraph_t graph = nullptr;
    ok(cudaStreamEndCapture(rank.streams[0], &graph));
    cudaGraphExec_t launchable = nullptr;
    ok(cudaGraphInstantiate(&launchable, graph, 0));
    ok(cudaGraphLaunch(launchable, rank.streams[0]));
    ok(rank.finish());
    EXPECT_EQ(values_of(data, 4), std::vector<float>(4, 2));
    EXPECT_EQ(ncclCommFinalize(rank.comms[0]), ncclSuccess);
    EXPECT_EQ(rank.state(), ncclInProgress);
    ok(cudaGraphDestroy(graph));
    EXPECT_EQ(rank.state(), ncclInProgress);
    std::atomic<bool> is_aborted = false;
    std::thread aborting([&] {
      rank.abort();
      is_aborted = true;
    });
    int device = 0;
    ok(cudaGetDevice(&device));
    wait_for_message("rank " + std::to_string(rank.number) + " of 2 on GPU " + std::to_string(device) + " waits for");
    EXPECT_FALSE(is_aborted);
    ok(cudaGraphExecDestroy(launchable));
    aborting.join();
  });
  EXPECT_THAT(printed, ContainsRegex("NCCL: ncclCommAbort of communicator .* waits for .*; a CUDA graph exists that "
                                     "contains 1 of its groups of calls: destroy it first"));
}

} // namespace
} // namespace triax::test
