// SPDX-License-Identifier: Apache-2.0
// The NCCL stand-in: what calls compute, and what they refuse.
#include <atomic>
#include <thread>

#include "nccl_harness.hpp"

namespace triax::test {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

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

TEST_F(Nccl, BytesThatWereNeverWrittenAreNotSent) {
  std::atomic<bool> failed = false;
  const std::string printed = run(1, [&failed](Rank& rank) {
    float* data = rank.number == 0 ? allocate<float>(4) : filled(4, 1);
    EXPECT_EQ(all_reduce(rank, data, 4), ncclSuccess);
    if (rank.number == 0) {
      EXPECT_NE(rank.finish(), cudaSuccess);
      failed = true;
    }
    while (!failed) std::this_thread::yield();
    rank.abort();
    rank.finish();
  });
  EXPECT_THAT(printed, HasSubstr("ncclAllReduce: sendbuff"));
  EXPECT_THAT(printed, HasSubstr("never written"));
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

TEST_F(Nccl, CallsInPlaceUseEachRanksPart) {
  const std::string printed = run(1, [](Rank& rank) {
    float* data = filled(8, 1.0f + static_cast<float>(rank.number));
    float* own = data + 4 * rank.number;
    const ncclComm_t comm = rank.comms[0];
    const cudaStream_t stream = rank.streams[0];
    EXPECT_EQ(ncclReduceScatter(data, own, 4, ncclFloat, ncclSum, comm, stream), ncclSuccess);
    EXPECT_EQ(ncclAllGather(own, data, 4, ncclFloat, comm, stream), ncclSuccess);
    EXPECT_EQ(ncclAllGather(data + 4, data + 4, 0, ncclFloat, comm, stream), ncclSuccess);
    ok(rank.finish());
    EXPECT_THAT(values_of(data, 8), Each(3.0f));
  });
  EXPECT_EQ(printed, "");
}

TEST_F(Nccl, RefusesBuffersThatOverlapOtherwise) {
  run(1, [](Rank& rank) {
    if (rank.number == 0) return;
    float* data = filled(16, 1);
    const ncclComm_t comm = rank.comms[0];
    const cudaStream_t stream = rank.streams[0];
    const auto refused = [&](const std::string& text, ncclResult_t result) {
      EXPECT_EQ(result, ncclInvalidArgument) << text;
      EXPECT_THAT(ncclGetLastError(comm), AllOf(HasSubstr("overlaps recvbuff"), HasSubstr(text)));
    };
    const std::string equal = "needs sendbuff == recvbuff on rank 1";
    refused("sendbuff (32 bytes at byte 0 of ", ncclAllReduce(data, data + 2, 8, ncclFloat, ncclSum, comm, stream));
    refused("recvbuff (32 bytes at byte 8 of ", ncclAllReduce(data, data + 2, 8, ncclFloat, ncclSum, comm, stream));
    refused(equal, ncclAllReduce(data + 7, data, 8, ncclFloat, ncclSum, comm, stream));
    refused(equal, ncclBroadcast(data, data + 2, 8, ncclFloat, 1, comm, stream));
    refused("needs sendbuff == recvbuff + 32 bytes on rank 1", ncclAllGather(data, data, 8, ncclFloat, comm, stream));
    refused("needs sendbuff + 32 bytes == recvbuff on rank 1",
            ncclReduceScatter(data, data, 8, ncclFloat, ncclSum, comm, stream));
  });
}

TEST_F(Nccl, RefusesCallsBeforeAllMembersHaveJoined) {
  ncclUniqueId id;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  ok(cudaSetDevice(devices_[0]));
  float* data = filled(4, 1);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t comm = nullptr, part = nullptr;
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(ncclCommInitRankConfig(&comm, 2, id, 0, &config), ncclInProgress);
  EXPECT_EQ(ncclAllReduce(data, data, 4, ncclFloat, ncclSum, comm, make_stream()), ncclInvalidUsage);
  EXPECT_EQ(ncclCommSplit(comm, 0, 0, &part, &config), ncclInvalidUsage);
  EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
  const std::string printed = ::testing::internal::GetCapturedStderr();
  for (const char* const call : {"ncclAllReduce", "ncclCommSplit"})
    EXPECT_THAT(printed, ::testing::ContainsRegex(std::string(call) +
                                                  ": communicator .* is not ready: it joins, or was aborted"));
}

TEST_F(Nccl, RefusesMoreSplitsThanItHasPlaces) {
  ncclUniqueId id;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  ncclComm_t comm = nullptr, part = nullptr;
  EXPECT_EQ(ncclCommInitRankConfig(&comm, 1, id, 0, nullptr), ncclSuccess);
  for (int split = 0; split < 64; ++split)
    EXPECT_EQ(ncclCommSplit(comm, NCCL_SPLIT_NOCOLOR, 0, &part, nullptr), ncclSuccess);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(ncclCommSplit(comm, NCCL_SPLIT_NOCOLOR, 0, &part, nullptr), ncclInvalidUsage);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("ncclCommSplit: more than 64 splits of communicator"));
  EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
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
