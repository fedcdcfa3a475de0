// SPDX-License-Identifier: Apache-2.0
// Joining through the store and NCCL, and what the backend supports.
#include <gmock/gmock.h>

#include <cstdlib>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "members.hpp"
#include "support/error_of.hpp"

namespace triax::test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using triax::test::error_of;
using triax::test::Rank;

/// Either the rank's own error, or that of the rank that found the problem first.
auto message_has(const std::string& what) {
  return ::testing::AnyOf(HasSubstr(what), HasSubstr("the other ranks failed: "));
}

std::string join_error(Rank& rank, double seconds = 60) {
  return error_of(
      [&] { rank.backend().join(rank.layout().group(rank.index(), "tensor"), rank.store(), deadline_in(seconds)); });
}

TEST(Backend, DeclaresItsGuarantees) {
  for (const bool edges : {false, true})
    run_members(1, {.edge_communicators = edges}, [edges](Rank& rank) {
      const CommTraits traits = rank.backend().traits();
      EXPECT_EQ(traits.order, edges ? CommTraits::Order::channel : CommTraits::Order::serial);
      EXPECT_EQ(traits.send, CommTraits::Send::rendezvous);
      EXPECT_EQ(traits.post, CommTraits::Post::nonblocking);
      EXPECT_EQ(traits.reduction, CommTraits::Reduction::fixed);
      EXPECT_EQ(traits.ranks, CommTraits::Ranks::one_per_process);
    });
}

TEST(Backend, RefusesMemoryOfTheHost) {
  run_members(1, {}, [](Rank& rank) {
    CommRequest request{DeviceKind::cuda, {"data"}, false};
    EXPECT_TRUE(rank.backend().supports(request).empty()) << rank.backend().supports(request).front().message;
    request.device = DeviceKind::host;
    EXPECT_EQ(rank.backend().supports(request).front().message,
              "comm-nccl moves CUDA memory; the kernel set's device is host");
    EXPECT_THAT(rank.backend().supports(request).front().hint, HasSubstr("comm-ucx"));
  });
}

/// Calls of other axes need the single order, which a backend with edge communicators does not declare.
TEST(Backend, RefusesEdgesForOtherAxes) {
  run_members(1, {.edge_communicators = true}, [](Rank& rank) {
    EXPECT_TRUE(rank.backend().supports({DeviceKind::cuda, {"pipeline"}, false}).empty());
    for (const std::vector<std::string>& axes : {std::vector<std::string>{"data", "pipeline"}, {"data"}}) {
      const Refusals answer = rank.backend().supports({DeviceKind::cuda, axes, false});
      EXPECT_EQ(
          answer.front().message,
          "comm-nccl: edge_communicators = true is only for the pipeline axis, but this table serves the data axis");
      EXPECT_EQ(answer.front().hint, "set it in the table [comm.pipeline]: edge_communicators = true");
    }
  });
}

TEST(Backend, RefusesAnNcclThatIsTooOld) {
  FakeNcclOptions options;
  options.process = [](int rank) { return FakeProcess{rank, text("GPU {}", rank), NCCL_VERSION(2, 18, 5)}; };
  const std::string what = error_of([&] { run_members(1, options, [](Rank& rank) { rank.backend(); }); });
  EXPECT_EQ(what,
            "comm-nccl: the NCCL found here is 2.18.5, but 2.19.0 or newer is needed\n"
            "  install a newer NCCL, or put its folder first in LD_LIBRARY_PATH");
}

TEST(Joining, AVersionThatDiffersIsFoundBeforeNcclIsAsked) {
  FakeNcclOptions options;
  options.process = [](int rank) {
    return FakeProcess{rank, text("GPU {}", rank), rank == 1 ? NCCL_VERSION(2, 20, 3) : NCCL_VERSION(2, 28, 9)};
  };
  run_members(2, options, [](Rank& rank) {
    EXPECT_THAT(join_error(rank), message_has(rank.index() == 0 ? "rank 1 has NCCL 2.20.3, rank 0 has 2.28.9"
                                                                : "rank 0 has NCCL 2.28.9, rank 1 has 2.20.3"));
  });
  EXPECT_EQ(counts().communicators, 0);
}

TEST(Joining, TwoRanksOnOneGpuAreRefused) {
  FakeNcclOptions options;
  options.process = [](int rank) { return FakeProcess{.rank = rank, .gpu = "0000:65:00.0"}; };
  run_members(2, options, [](Rank& rank) {
    const std::string what = join_error(rank);
    EXPECT_THAT(what, AllOf(HasSubstr("rank 0 and rank 1 are on one GPU (0000:65:00.0)"), HasSubstr("group tensor.0")));
  });
  EXPECT_EQ(counts().communicators, 0);
}

class HostId : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const char* given = std::getenv("NCCL_HOSTID")) before_ = given;
    ::setenv("NCCL_HOSTID", "host-0", 1);
  }
  void TearDown() override { before_ ? ::setenv("NCCL_HOSTID", before_->c_str(), 1) : ::unsetenv("NCCL_HOSTID"); }

  /// The error of rank 0 if rank 1 publishes its card with one word replaced, and never reaches NCCL.
  static std::string found(bool permitted, const std::string& word, const std::string& in_place_of,
                           double seconds = 60) {
    std::string out;
    run_members(2, {.several_ranks_per_gpu = permitted}, [&](Rank& rank) {
      if (rank.index() == 0) {
        out = join_error(rank, seconds);
        return;
      }
      std::string card = rank.store().get("comm-nccl/tensor.0/1/entry 0", Rank::deadline());
      ASSERT_NE(card.find(in_place_of), std::string::npos) << card;
      rank.store().set("comm-nccl/tensor.0/1/entry 1", card.replace(card.find(in_place_of), in_place_of.size(), word));
    });
    return out;
  }

 private:
  std::optional<std::string> before_;
};

/// NCCL treats ranks with different NCCL_HOSTIDs as different machines, and would not detect the shared GPU.
TEST_F(HostId, DoesNotStandForPermission) {
  EXPECT_THAT(found(false, "host-1", "host-0"), AllOf(HasSubstr("rank 0 and rank 1 are on one GPU (GPU 0)"),
                                                      HasSubstr("several_ranks_per_gpu = true allows more")));
}

TEST_F(HostId, MayNotBeThatOfAnotherRankOnTheGpu) {
  EXPECT_THAT(found(true, "host-0", "host-0"),
              AllOf(HasSubstr("for NCCL, rank 0 and rank 1 have the same GPU (GPU 0) and host (host-0)"),
                    HasSubstr("needs another NCCL_HOSTID for each rank: unset it")));
}

TEST_F(HostId, AllowsRanksOnOneGpuIfHostIdsDiffer) {
  EXPECT_THAT(found(true, "host-1", "host-0", 1), HasSubstr("ncclCommInitRankConfig: timed out waiting for rank"));
}

TEST_F(HostId, PermissionIsThatOfAllRanks) {
  EXPECT_THAT(found(true, "per_gpu = false", "per_gpu = true"),
              HasSubstr("rank 1 has the key several_ranks_per_gpu = false, rank 0 has"));
}

TEST(Joining, SeveralRanksOnOneGpuNeedVariablesBeforeNcclIsAsked) {
  run_members(2, {.several_ranks_per_gpu = true}, [](Rank& rank) { rank.join("tensor"); });
  for (const char* variable : {"NCCL_HOSTID = triax-rank-0", "NCCL_HOSTID = triax-rank-1", "NCCL_NVLS_ENABLE = 0",
                               "NCCL_MNNVL_ENABLE = 0", "NCCL_RAS_ENABLE = 0", "NCCL_MAX_CTAS = 2"})
    EXPECT_THAT(counts().variables, Contains(variable));
  run_members(2, {}, [](Rank& rank) { rank.join("tensor"); });
  EXPECT_THAT(counts().variables,
              ::testing::Each(::testing::AnyOf("NCCL_RUNTIME_CONNECT = 0", "NCCL_LAUNCH_ORDER_IMPLICIT = 1")));
}

TEST(Joining, KeysMustBeThoseOfAllRanks) {
  run_members(2, {}, [&](Rank& rank) {
    const Group group = rank.layout().group(rank.index(), "tensor");
    if (rank.index() == 1) {
      std::string card = rank.store().get("comm-nccl/tensor.0/1/entry 0", Rank::deadline());
      const std::size_t at = card.find("= false");
      card.replace(at, 7, "= true");
      rank.store().set("comm-nccl/tensor.0/1/entry 1", card);
      return;
    }
    EXPECT_THAT(join_error(rank), HasSubstr("rank 1 has the key edge_communicators = true, rank 0 has"));
  });
}

TEST(Joining, TimesOutAndNamesTheMissingRanks) {
  run_members(4, {}, [](Rank& rank) {
    if (rank.index() == 0) {
      EXPECT_THAT(join_error(rank, 0.05), HasSubstr("group tensor.0: timed out waiting for rank 1, 2, 3"));
      rank.store().set("left", "");
    } else {
      rank.store().get("left", Rank::deadline());
      EXPECT_THAT(join_error(rank), HasSubstr("the other ranks failed: rank 0 could not join"));
    }
  });
}

/// Rank 2 publishes its card, and ends before it reaches NCCL.
TEST(Joining, AMemberThatNeverComesToNcclIsNamed) {
  run_members(3, {}, [](Rank& rank) {
    const std::string key = "comm-nccl/tensor.0/1";
    if (rank.index() == 2) {
      std::string card = rank.store().get(key + "/entry 0", Rank::deadline());
      const std::size_t gpu = card.rfind("GPU 0");
      rank.store().set(key + "/entry 2", card.replace(gpu, 5, "GPU 2"));
      return;
    }
    EXPECT_THAT(join_error(rank, rank.index() == 0 ? 0.5 : 60),
                message_has("ncclCommInitRankConfig: timed out waiting for rank 2"));
  });
}

TEST(Joining, NcclMayTakeItsTime) {
  FakeNcclOptions options;
  options.rules.polls = 1000;
  options.edge_communicators = true;
  run_members(Layout::ptd(3, 1, 1), options, [](Rank& rank) {
    Communicator& comm = rank.join("pipeline");
    const TensorView view = rank.tensor<std::int32_t>(DType::i32, {1}, {1});
    rank.wait(comm.all_reduce(view, view, Reduce::sum, rank.stream()));
    EXPECT_EQ(rank.values<std::int32_t>(view).front(), 3);
  });
}

/// NCCL writes the edge's communicator when the split completes or its parent is aborted. The memory must exist until
/// then, and the communicator must be ended.
TEST(Joining, ASplitThatIsGivenUpLeavesNothing) {
  FakeNcclOptions options;
  options.edge_communicators = true;
  options.rules.split_polls = std::numeric_limits<int>::max();
  run_members(Layout::ptd(2, 1, 1), options, [](Rank& rank) {
    const Group group = rank.layout().group(rank.index(), "pipeline");
    AbortFlag& interrupt = rank.device().abort_flag();
    std::thread left;
    if (rank.index() == 0)
      left = std::thread([&interrupt] {
        const Deadline end = Rank::deadline();
        while (counts().splits < 2 && Clock::now() < end) std::this_thread::yield();
        interrupt.raise("enough");
      });
    const std::string what = error_of([&] { rank.backend().join(group, rank.store(), Rank::deadline()); });
    if (left.joinable()) left.join();
    EXPECT_THAT(what,
                HasSubstr(rank.index() == 0 ? "enough" : "the other ranks failed: rank 0 could not join: enough"));
  });
  EXPECT_EQ(counts().aborts, 4) << "of each rank the group and the edge";
}

TEST(Joining, AnErrorOfNcclComesWithItsWords) {
  run_members(2, {}, [](Rank& rank) {
    if (rank.index() == 0) {
      rank.backend();
      fail_next(0, "ncclCommInitRankConfig", ncclUnhandledCudaError, "Cuda failure 2 'out of memory'");
    }
    EXPECT_THAT(
        join_error(rank),
        message_has(
            "group tensor.0: ncclCommInitRankConfig: unhandled cuda error (ncclUnhandledCudaError): Cuda failure "
            "2 'out of memory'\n  nvidia-smi"));
  });
}

TEST(Joining, RanksOfOneGroupMustAgreeOnItsMembers) {
  run_members(2, {}, [](Rank& rank) {
    Group group = rank.layout().group(rank.index(), "tensor");
    if (rank.index() == 1) group.ranks = {5, 1};
    const std::string what = error_of([&] { rank.backend().join(group, rank.store(), Rank::deadline()); });
    EXPECT_THAT(what, message_has("the group has ranks"));
    if (what.find("other ranks failed") == std::string::npos) {
      EXPECT_THAT(what, HasSubstr("\n  give all ranks the same TOML file, and each rank"));
    }
  });
}

/// The communicator of one group is made without the ranks of the others.
TEST(Joining, AGroupMayBeJoinedAlone) {
  run_members(Layout::ptd(2, 2, 1), {}, [](Rank& rank) {
    if (rank.layout().coordinate(rank.index(), "pipeline") == 1) return;
    Communicator& comm = rank.join("tensor");
    const TensorView view = rank.tensor<std::int32_t>(DType::i32, {1}, {1});
    rank.wait(comm.all_reduce(view, view, Reduce::sum, rank.stream()));
    EXPECT_EQ(rank.values<std::int32_t>(view).front(), 2);
  });
}

TEST(Joining, EveryCommunicatorIsEndedInOrder) {
  run_members(3, {}, [](Rank& rank) { rank.join("tensor"); });
  EXPECT_EQ(counts().communicators, 3);
  EXPECT_EQ(counts().destroyed, 3);
  EXPECT_EQ(counts().aborts, 0);
}

} // namespace
} // namespace triax::test
