// SPDX-License-Identifier: Apache-2.0
// The NCCL stand-in: what calls compute, and each check with a planted fault. Ranks are threads with a device each.
#include <nccl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>

#include "runtime_harness.hpp"

namespace triax::test {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::Each;
using ::testing::HasSubstr;

/// Reports of calls that wait come after a tenth of a second.
struct ReportSoon {
  ReportSoon() { setenv("TRIAX_GPU_NCCL_REPORT_S", "0.1", 1); }
  ~ReportSoon() { unsetenv("TRIAX_GPU_NCCL_REPORT_S"); }
  ReportSoon(const ReportSoon&) = delete;
  ReportSoon& operator=(const ReportSoon&) = delete;
};

class Nccl : public RuntimeTest {
 protected:
  struct Rank {
    int number = 0;
    std::vector<ncclComm_t> comms;
    std::vector<cudaStream_t> streams; // one for each communicator
    ncclResult_t last_state = ncclSuccess;

    ncclResult_t state(int of = 0) {
      const ncclComm_t comm = comms[static_cast<std::size_t>(of)];
      if (comm) {
        EXPECT_EQ(ncclCommGetAsyncError(comm, &last_state), ncclSuccess);
      }
      return last_state;
    }
    /// Waits for the streams. A communicator with an error is aborted, because its calls may never end.
    cudaError_t finish() {
      cudaError_t first = cudaSuccess;
      for (const cudaStream_t each : streams) {
        cudaError_t error = cudaErrorNotReady;
        while ((error = cudaStreamQuery(each)) == cudaErrorNotReady) {
          abort_failed();
          std::this_thread::sleep_for(std::chrono::microseconds(100));
        }
        if (first == cudaSuccess) first = error;
      }
      return first;
    }
    void abort_failed() {
      for (int of = 0; of < static_cast<int>(comms.size()); ++of)
        if (comms[static_cast<std::size_t>(of)] && state(of) != ncclSuccess) abort(of);
    }
    void abort(int of = 0) {
      EXPECT_EQ(ncclCommAbort(std::exchange(comms[static_cast<std::size_t>(of)], nullptr)), ncclSuccess);
    }
  };

  void SetUp() override {
    for (int& each : devices_) {
      RuntimeTest::SetUp();
      each = device_;
    }
  }

  /// Runs two ranks in `count` communicators; returns what was printed.
  std::string run(int count, const std::function<void(Rank&)>& body) {
    std::vector<ncclUniqueId> ids(static_cast<std::size_t>(count));
    for (ncclUniqueId& id : ids) EXPECT_EQ(ncclGetUniqueId(&id), ncclSuccess);
    ::testing::internal::CaptureStderr();
    const auto run_one = [&](int number) {
      ok(cudaSetDevice(devices_[static_cast<std::size_t>(number)]));
      Rank rank;
      rank.number = number;
      for (const ncclUniqueId& id : ids) {
        ncclComm_t comm = nullptr;
        EXPECT_EQ(ncclCommInitRankConfig(&comm, 2, id, number, nullptr), ncclSuccess);
        rank.comms.push_back(comm);
        rank.streams.push_back(make_stream());
      }
      body(rank);
      for (const ncclComm_t comm : rank.comms)
        if (comm) ncclCommDestroy(comm);
    };
    std::thread second(run_one, 1);
    run_one(0);
    second.join();
    return ::testing::internal::GetCapturedStderr();
  }

  /// While run() captures stderr: waits until a message has `text`.
  static void wait_for_message(const std::string& text) {
    std::string printed;
    while (printed.find(text) == std::string::npos) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      std::stringstream all;
      all << std::ifstream("/proc/self/fd/2").rdbuf(); // the file of the capture, from its begin
      printed = all.str();
    }
  }

  static float* filled(std::size_t count, float value) {
    auto* out = allocate<float>(count);
    const std::vector<float> host(count, value);
    ok(cudaMemcpy(out, host.data(), count * sizeof(float), cudaMemcpyHostToDevice));
    return out;
  }
  static std::vector<float> values_of(const float* from, std::size_t count) {
    std::vector<float> out(count);
    ok(cudaMemcpy(out.data(), from, count * sizeof(float), cudaMemcpyDeviceToHost));
    return out;
  }
  static ncclResult_t all_reduce(Rank& rank, float* data, std::size_t count, int of = 0) {
    const auto at = static_cast<std::size_t>(of);
    return ncclAllReduce(data, data, count, ncclFloat, ncclSum, rank.comms[at], rank.streams[at]);
  }

  std::array<int, 2> devices_{};
};

TEST_F(Nccl, CollectivesMoveAndAddTheDataOfAllMembers) {
  constexpr std::size_t kCount = 100000; // more than one chunk
  const std::string printed = run(1, [&](Rank& rank) {
    const ncclComm_t comm = rank.comms[0];
    const cudaStream_t stream = rank.streams[0];
    float* sum = filled(kCount, 1.0f + static_cast<float>(rank.number));
    EXPECT_EQ(all_reduce(rank, sum, kCount), ncclSuccess);
    float* part = filled(kCount / 2, 0);
    EXPECT_EQ(ncclReduceScatter(sum, part, kCount / 2, ncclFloat, ncclMax, comm, stream), ncclSuccess);
    float* own = filled(4, 10.0f * static_cast<float>(rank.number));
    float* all = filled(8, -1);
    EXPECT_EQ(ncclAllGather(own, all, 4, ncclFloat, comm, stream), ncclSuccess);
    EXPECT_EQ(ncclBroadcast(own, own, 4, ncclFloat, 1, comm, stream), ncclSuccess);
    ok(rank.finish());
    EXPECT_THAT(values_of(sum, kCount), Each(3.0f));
    EXPECT_THAT(values_of(part, kCount / 2), Each(3.0f));
    EXPECT_EQ(values_of(all, 8), (std::vector<float>{0, 0, 0, 0, 10, 10, 10, 10}));
    EXPECT_THAT(values_of(own, 4), Each(10.0f));
    EXPECT_EQ(rank.state(), ncclSuccess);
  });
  EXPECT_EQ(printed, "");
}

TEST_F(Nccl, SumsIn16BitsAreRounded) {
  const std::string printed = run(1, [](Rank& rank) {
    // 256 + 1 and 2048 + 1 need one bit more than bf16 and f16 have.
    const std::uint16_t bf16 = rank.number == 0 ? 0x4380 : 0x3F80, f16 = rank.number == 0 ? 0x6800 : 0x3C00;
    auto* data = allocate<std::uint16_t>(2);
    const std::array<std::uint16_t, 2> host{bf16, f16};
    ok(cudaMemcpy(data, host.data(), sizeof host, cudaMemcpyHostToDevice));
    const auto add = [&](int at, ncclDataType_t type) {
      return ncclAllReduce(data + at, data + at, 1, type, ncclSum, rank.comms[0], rank.streams[0]);
    };
    EXPECT_EQ(add(0, ncclBfloat16), ncclSuccess);
    EXPECT_EQ(add(1, ncclFloat16), ncclSuccess);
    ok(rank.finish());
    std::array<std::uint16_t, 2> sums{};
    ok(cudaMemcpy(sums.data(), data, sizeof sums, cudaMemcpyDeviceToHost));
    EXPECT_EQ(sums, (std::array<std::uint16_t, 2>{0x4380, 0x6800})); // ties to even
  });
  EXPECT_EQ(printed, "");
}

TEST_F(Nccl, TransfersOfAGroupGoBothWays) {
  constexpr std::size_t kCount = 300000;
  const std::string printed = run(1, [&](Rank& rank) {
    float* out = filled(kCount, static_cast<float>(rank.number));
    float* in = filled(kCount, -1);
    EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(ncclSend(out, kCount, ncclFloat, 1 - rank.number, rank.comms[0], rank.streams[0]), ncclSuccess);
    EXPECT_EQ(ncclRecv(in, kCount, ncclFloat, 1 - rank.number, rank.comms[0], rank.streams[0]), ncclSuccess);
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
    ok(rank.finish());
    EXPECT_THAT(values_of(in, kCount), Each(1.0f - static_cast<float>(rank.number)));
  });
  EXPECT_EQ(printed, "");
}

TEST_F(Nccl, MembersThatCallDifferentlyFail) {
  const std::string printed = run(1, [](Rank& rank) {
    float* data = filled(16, 1);
    EXPECT_EQ(all_reduce(rank, data, rank.number == 0 ? 8 : 16), ncclSuccess);
    rank.finish();
    EXPECT_EQ(rank.state(), ncclRemoteError);
  });
  EXPECT_THAT(printed, HasSubstr("members call differently: rank"));
  EXPECT_THAT(printed, HasSubstr("ncclAllReduce of 8"));
  EXPECT_THAT(printed, HasSubstr("ncclAllReduce of 16"));
}

TEST_F(Nccl, AReceiveOfAnotherSizeFails) {
  const std::string printed = run(1, [](Rank& rank) {
    float* data = filled(16, 1);
    EXPECT_EQ(rank.number == 0 ? ncclSend(data, 8, ncclFloat, 1, rank.comms[0], rank.streams[0])
                               : ncclRecv(data, 16, ncclFloat, 0, rank.comms[0], rank.streams[0]),
              ncclSuccess);
    rank.finish();
    EXPECT_EQ(rank.state(), ncclRemoteError);
  });
  EXPECT_THAT(printed, HasSubstr("rank 0 sends 32 bytes, and rank 1 receives 64 bytes"));
}

TEST_F(Nccl, AReceiveOfAnotherTypeFails) {
  const std::string printed = run(1, [](Rank& rank) {
    float* data = filled(16, 1);
    EXPECT_EQ(rank.number == 0 ? ncclSend(data, 8, ncclFloat, 1, rank.comms[0], rank.streams[0])
                               : ncclRecv(data, 16, ncclBfloat16, 0, rank.comms[0], rank.streams[0]),
              ncclSuccess);
    rank.finish();
    EXPECT_EQ(rank.state(), ncclRemoteError);
  });
  EXPECT_THAT(printed, HasSubstr("rank 0 sends float32, and rank 1 receives bfloat16"));
}

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

TEST_F(Nccl, BytesThatWereNeverWrittenAreNotSent) {
  const std::string printed = run(1, [](Rank& rank) {
    float* data = rank.number == 0 ? allocate<float>(4) : filled(4, 1);
    EXPECT_EQ(all_reduce(rank, data, 4), ncclSuccess);
    if (rank.number == 0) {
      EXPECT_NE(rank.finish(), cudaSuccess);
      rank.abort();
    }
    rank.finish();
  });
  EXPECT_THAT(printed, HasSubstr("ncclAllReduce: sendbuff"));
  EXPECT_THAT(printed, HasSubstr("never written"));
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
  std::atomic<bool> posted = false;
  run(1, [&posted](Rank& rank) {
    if (rank.number == 1) {
      while (!posted) std::this_thread::yield();
      return rank.abort();
    }
    float* data = filled(4, 1);
    EXPECT_EQ(all_reduce(rank, data, 4), ncclSuccess);
    posted = true;
    while (rank.state() == ncclSuccess) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(rank.state(), ncclRemoteError);
    EXPECT_EQ(cudaStreamQuery(rank.streams[0]), cudaErrorNotReady);
    rank.abort();
    EXPECT_EQ(rank.finish(), cudaSuccess);
  });
}

TEST_F(Nccl, SplitMakesOneCommunicatorForEachColor) {
  const std::string printed = run(1, [](Rank& rank) {
    ncclComm_t half = nullptr, both = nullptr;
    EXPECT_EQ(ncclCommSplit(rank.comms[0], rank.number, 0, &half, nullptr), ncclSuccess);
    EXPECT_EQ(ncclCommSplit(rank.comms[0], 0, -rank.number, &both, nullptr), ncclSuccess); // in the other order
    float* data = filled(4, 1.0f + static_cast<float>(rank.number));
    float* all = filled(8, 0);
    EXPECT_EQ(ncclAllReduce(data, data, 4, ncclFloat, ncclSum, half, rank.streams[0]), ncclSuccess);
    EXPECT_EQ(ncclAllGather(data, all, 4, ncclFloat, both, rank.streams[0]), ncclSuccess);
    ok(rank.finish());
    EXPECT_THAT(values_of(data, 4), Each(1.0f + static_cast<float>(rank.number)));
    EXPECT_EQ(values_of(all, 8), (std::vector<float>{2, 2, 2, 2, 1, 1, 1, 1}));
    ncclCommDestroy(half);
    ncclCommDestroy(both);
  });
  EXPECT_EQ(printed, "");
}

TEST_F(Nccl, RefusesInvalidArguments) {
  const std::string printed = run(1, [this](Rank& rank) {
    float* data = filled(4, 1);
    if (rank.number == 1) return;
    ncclComm_t made = nullptr;
    ncclUniqueId id;
    EXPECT_EQ(ncclGetUniqueId(&id), ncclSuccess);
    EXPECT_EQ(ncclCommInitRankConfig(&made, 2, id, 2, nullptr), ncclInvalidArgument);
    EXPECT_EQ(ncclCommInitRankConfig(&made, 17, id, 2, nullptr), ncclInvalidArgument);
    ok(cudaSetDevice(devices_[1]));
    const cudaStream_t other = make_stream();
    ok(cudaSetDevice(devices_[0]));
    EXPECT_EQ(ncclAllReduce(data, data, 4, ncclFloat, ncclSum, rank.comms[0], other), ncclInvalidArgument);
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
    ncclComm_t gone = rank.comms[0];
    EXPECT_EQ(ncclCommDestroy(gone), ncclSuccess);
    EXPECT_EQ(all_reduce(rank, data, 4), ncclInvalidArgument);
    rank.comms.clear();
  });
  EXPECT_THAT(printed, HasSubstr("ncclCommInitRankConfig: rank 2 of 2"));
  EXPECT_THAT(printed, HasSubstr("ncclCommInitRankConfig: a communicator of 17; the stand-in supports 1 to 16"));
  EXPECT_THAT(printed, HasSubstr("ncclAllReduce: the stream is not one of GPU"));
  EXPECT_THAT(printed, HasSubstr("ncclGroupEnd: ncclGroupStart() was not called"));
  EXPECT_THAT(printed, HasSubstr("the handle is not a communicator's, or that was destroyed"));
}

/// A call of the first rank each, and what its refusal says.
TEST_F(Nccl, RefusesWhatItDoesNotKnow) {
  run(1, [](Rank& rank) {
    if (rank.number == 1) return;
    float* data = filled(4, 1);
    const ncclComm_t comm = rank.comms[0];
    const cudaStream_t stream = rank.streams[0];
    const auto refused = [&](const std::string& text, ncclResult_t result) {
      EXPECT_EQ(result, ncclInvalidArgument) << text;
      EXPECT_THAT(ncclGetLastError(comm), HasSubstr(text));
    };
    refused("the stand-in does not know type " + std::to_string(ncclNumTypes),
            ncclAllReduce(data, data, 4, ncclNumTypes, ncclSum, comm, stream));
    refused("the stand-in does not know reduction " + std::to_string(ncclNumOps),
            ncclAllReduce(data, data, 4, ncclFloat, static_cast<ncclRedOp_t>(ncclNumOps), comm, stream));
    refused("root 2 is not a rank of communicator", ncclBroadcast(data, data, 4, ncclFloat, 2, comm, stream));
    refused("peer 2 is not a rank of communicator", ncclSend(data, 4, ncclFloat, 2, comm, stream));
    refused("sendbuff: 20 bytes are not in one allocation", ncclSend(data, 5, ncclFloat, 1, comm, stream));
    refused("recvbuff: 20 bytes are not in one allocation", ncclRecv(data, 5, ncclFloat, 1, comm, stream));
    void* handle = nullptr;
    refused("ncclCommRegister: 17 bytes are not in one allocation", ncclCommRegister(comm, data, 17, &handle));
    EXPECT_EQ(ncclCommRegister(comm, data, 16, &handle), ncclSuccess);
    EXPECT_EQ(ncclCommDeregister(comm, handle), ncclSuccess);
    EXPECT_EQ(ncclCommFinalize(comm), ncclSuccess);
    int version = 0;
    EXPECT_EQ(ncclGetVersion(&version), ncclSuccess);
    EXPECT_EQ(version, NCCL_VERSION_CODE);
    EXPECT_STREQ(ncclGetErrorString(ncclInProgress), "NCCL operation in progress");
    EXPECT_STREQ(ncclGetErrorString(ncclNumResults), "unknown result code");
  });
}

TEST_F(Nccl, RefusesFieldsOfTheConfigurationThatItDoesNotKnow) {
  ncclUniqueId id;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  const auto refused = [&](const std::string& field, const std::function<void(ncclConfig_t&)>& change) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    change(config);
    ncclComm_t comm = nullptr;
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(ncclCommInitRankConfig(&comm, 1, id, 0, &config), ncclInvalidArgument);
    EXPECT_THAT(::testing::internal::GetCapturedStderr(),
                HasSubstr("the stand-in does not know ncclConfig_t::" + field + "\n"));
  };
  refused("cgaClusterSize", [](ncclConfig_t& c) { c.cgaClusterSize = 2; });
  refused("minCTAs", [](ncclConfig_t& c) { c.minCTAs = 1; });
  refused("splitShare", [](ncclConfig_t& c) { c.splitShare = 1; });
  refused("netName", [](ncclConfig_t& c) { c.netName = "IB"; });
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.maxCTAs = 1;
  config.splitShare = 0;
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitRankConfig(&comm, 1, id, 0, &config), ncclSuccess);
  EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

} // namespace
} // namespace triax::test
