// Meeting through the store and NCCL, and what the backend says of itself.
#include <gmock/gmock.h>

#include <string>

#include "members.hpp"
#include "support/error_of.hpp"

namespace triax::test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using triax::testing::error_of;
using triax::testing::Rank;

/// In words of its own, or of whoever found it first.
auto told(const std::string& what) {
  return ::testing::AnyOf(HasSubstr(what), HasSubstr("the others gave up: "));
}

std::string join_error(Rank& rank, double seconds = 60) {
  return error_of(
      [&] { rank.backend().join(rank.layout().group(rank.index(), "tensor"), rank.store(), deadline_in(seconds)); });
}

TEST(Backend, DeclaresWhatAProofMayAssume) {
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
    CommRequest request{
        DeviceKind::cuda, {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i32}, {"data"}, false};
    EXPECT_TRUE(rank.backend().supports(request)) << rank.backend().supports(request).reason();
    request.device = DeviceKind::host;
    EXPECT_EQ(rank.backend().supports(request).reason(),
              "comm-nccl moves CUDA memory; the kernel set's device is host");
    EXPECT_THAT(rank.backend().supports(request).hint(), HasSubstr("comm-ucx"));
  });
}

TEST(Backend, RefusesAnNcclThatIsTooOld) {
  Given given;
  given.process = [](int rank) { return FakeProcess{rank, text("GPU {}", rank), NCCL_VERSION(2, 18, 5)}; };
  const std::string what = error_of([&] { run_members(1, given, [](Rank& rank) { rank.backend(); }); });
  EXPECT_EQ(what,
            "comm-nccl: the NCCL found here is 2.18.5, and 2.19.0 or newer is needed\n"
            "  install a newer NCCL, or put its folder first in LD_LIBRARY_PATH");
}

TEST(Joining, AVersionThatDiffersIsFoundBeforeNcclIsAsked) {
  Given given;
  given.process = [](int rank) {
    return FakeProcess{rank, text("GPU {}", rank), rank == 1 ? NCCL_VERSION(2, 20, 3) : NCCL_VERSION(2, 28, 9)};
  };
  run_members(2, given, [](Rank& rank) {
    EXPECT_THAT(join_error(rank), told(rank.index() == 0 ? "rank 1 has NCCL 2.20.3, rank 0 has 2.28.9"
                                                         : "rank 0 has NCCL 2.28.9, rank 1 has 2.20.3"));
  });
  EXPECT_EQ(counts().communicators, 0);
}

TEST(Joining, TwoRanksOnOneGpuAreRefused) {
  Given given;
  given.process = [](int rank) { return FakeProcess{.rank = rank, .gpu = "0000:65:00.0"}; };
  run_members(2, given, [](Rank& rank) {
    const std::string what = join_error(rank);
    EXPECT_THAT(what, AllOf(HasSubstr("rank 0 and rank 1 are on one GPU (0000:65:00.0)"), HasSubstr("group tensor.0")));
  });
  EXPECT_EQ(counts().communicators, 0);
}

TEST(Joining, SeveralRanksOnOneGpuNeedVariablesBeforeNcclIsAsked) {
  run_members(2, {.several_ranks_per_gpu = true}, [](Rank& rank) { rank.join("tensor"); });
  for (const char* variable : {"NCCL_HOSTID = triax-rank-0", "NCCL_HOSTID = triax-rank-1", "NCCL_NVLS_ENABLE = 0",
                               "NCCL_MNNVL_ENABLE = 0", "NCCL_RAS_ENABLE = 0", "NCCL_MAX_CTAS = 2"})
    EXPECT_THAT(counts().variables, Contains(variable));
  run_members(2, {}, [](Rank& rank) { rank.join("tensor"); });
  EXPECT_THAT(counts().variables, ::testing::Each("NCCL_RUNTIME_CONNECT = 0"));
}

TEST(Joining, KeysMustBeThoseOfAllRanks) {
  run_members(2, {}, [&](Rank& rank) {
    const Group group = rank.layout().group(rank.index(), "tensor");
    if (rank.index() == 1) {
      std::string card = rank.store().get("comm-nccl/tensor.0/1/card 0", Rank::deadline());
      const std::size_t at = card.find("= false");
      card.replace(at, 7, "= true");
      rank.store().set("comm-nccl/tensor.0/1/card 1", card);
      return;
    }
    EXPECT_THAT(join_error(rank), HasSubstr("rank 1 has the key edge_communicators = true, rank 0 has"));
  });
}

TEST(Joining, TheDeadlineNamesWhoIsMissing) {
  run_members(4, {}, [](Rank& rank) {
    if (rank.index() == 0) {
      EXPECT_THAT(join_error(rank, 0.05), HasSubstr("group tensor.0: did not join before the deadline: rank 1, 2, 3"));
      rank.store().set("gave up", "");
    } else {
      rank.store().get("gave up", Rank::deadline());
      EXPECT_THAT(join_error(rank), HasSubstr("the others gave up: rank 0 could not join"));
    }
  });
}

/// It published its card, and died before it came to NCCL.
TEST(Joining, AMemberThatNeverComesToNcclIsNamed) {
  run_members(3, {}, [](Rank& rank) {
    const std::string key = "comm-nccl/tensor.0/1";
    if (rank.index() == 2) {
      std::string card = rank.store().get(key + "/card 0", Rank::deadline());
      const std::size_t gpu = card.rfind("GPU 0");
      rank.store().set(key + "/card 2", card.replace(gpu, 5, "GPU 2"));
      return;
    }
    EXPECT_THAT(join_error(rank, rank.index() == 0 ? 0.5 : 60),
                told("ncclCommInitRankConfig: did not join before the deadline: rank 2"));
  });
}

TEST(Joining, NcclMayTakeItsTime) {
  Given given;
  given.rules.polls = 1000;
  given.edge_communicators = true;
  run_members(Layout::ptd(3, 1, 1), given, [](Rank& rank) {
    Communicator& comm = rank.join("pipeline");
    const TensorView view = rank.tensor<std::int32_t>(DType::i32, {1}, {1});
    rank.wait(comm.all_reduce(view, view, Reduce::sum, rank.stream()));
    EXPECT_EQ(rank.values<std::int32_t>(view).front(), 3);
  });
}

TEST(Joining, AnErrorOfNcclComesWithItsWords) {
  run_members(2, {}, [](Rank& rank) {
    if (rank.index() == 0) {
      rank.backend();
      fail_next(0, "ncclCommInitRankConfig", ncclUnhandledCudaError, "Cuda failure 2 'out of memory'");
    }
    EXPECT_THAT(
        join_error(rank),
        told("group tensor.0: ncclCommInitRankConfig: unhandled cuda error (ncclUnhandledCudaError): Cuda failure "
             "2 'out of memory'\n  nvidia-smi"));
  });
}

TEST(Joining, RanksOfOneGroupMustAgreeOnItsMembers) {
  run_members(2, {}, [](Rank& rank) {
    Group group = rank.layout().group(rank.index(), "tensor");
    if (rank.index() == 1) group.ranks = {5, 1};
    EXPECT_THAT(error_of([&] { rank.backend().join(group, rank.store(), Rank::deadline()); }), told("other ranks"));
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

TEST(Joining, AGroupOfOneNeedsNoNccl) {
  run_members(1, {}, [](Rank& rank) {
    Communicator& comm = rank.join("tensor");
    const TensorView in = rank.tensor<float>(DType::f32, {2}, {3, 4}), out = rank.tensor(DType::f32, {2});
    rank.wait(comm.all_gather(in, out, rank.stream()));
    EXPECT_EQ(rank.values<float>(out), (std::vector<float>{3, 4}));
    comm.barrier(Rank::deadline());
  });
  EXPECT_EQ(counts().communicators, 0);
}

TEST(Joining, EveryCommunicatorIsEndedInOrder) {
  run_members(3, {}, [](Rank& rank) { rank.join("tensor"); });
  EXPECT_EQ(counts().communicators, 3);
  EXPECT_EQ(counts().destroyed, 3);
  EXPECT_EQ(counts().aborts, 0);
}

} // namespace
} // namespace triax::test
