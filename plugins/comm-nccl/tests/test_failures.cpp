// SPDX-License-Identifier: Apache-2.0
// Errors inside NCCL or of a member end the group soon, with a message.
#include <gmock/gmock.h>

#include <memory>
#include <string>

#include "backend.hpp"
#include "members.hpp"
#include "support/error_of.hpp"
#include "triax/registration.hpp"

namespace triax::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using triax::test::error_of;
using triax::test::Rank;

TEST(Failures, APeerThatDiesInACollectiveIsNamed) {
  run_members(2, {}, [](Rank& rank) {
    Communicator& comm = rank.join("tensor");
    const TensorView view = rank.tensor(DType::f32, {100});
    if (rank.index() == 1) {
      rank.store().get("posted", Rank::deadline());
      die(1);
      rank.store().get("failed", Rank::deadline());
      return;
    }
    const Work work = comm.all_reduce(view, view, Reduce::sum, rank.stream(), 7);
    rank.store().set("posted", "");
    EXPECT_THAT(
        error_of([&] { rank.wait(work); }),
        AllOf(HasSubstr("action 7: group tensor.0: NCCL failed on rank 0, in a group with rank 1: remote process "
                        "exited or there was a network error (ncclRemoteError): connection closed by remote peer"),
              HasSubstr("another rank may be lost")));
    EXPECT_TRUE(rank.device().abort_flag().raised()) << "what an aborted kernel leaves behind is no result";
    rank.store().set("failed", "");
  });
  EXPECT_GE(counts().aborts, 1);
}

TEST(Failures, AnErrorThatNcclFindsLaterEndsTheGroupOfAllMembers) {
  run_members(3, {}, [](Rank& rank) {
    Communicator& comm = rank.join("tensor");
    const TensorView view = rank.tensor(DType::f32, {100});
    if (rank.index() == 2) {
      for (const char* posted : {"posted 0", "posted 1"}) rank.store().get(posted, Rank::deadline());
      fail_later(2, ncclUnhandledCudaError, "Cuda failure 'an illegal memory access was encountered'");
    } else {
      comm.all_reduce(view, view, Reduce::sum, rank.stream());
      rank.store().set(text("posted {}", rank.index()), "");
    }
    HostEvent never;
    EXPECT_THAT(error_of([&] { rank.device().wait(never.arm(), Rank::deadline()); }),
                AllOf(HasSubstr("NCCL failed on rank 2"), HasSubstr("an illegal memory access was encountered")));
  });
}

TEST(Failures, ACallThatNcclRefusesThrows) {
  run_members(2, {}, [](Rank& rank) {
    Communicator& comm = rank.join("tensor");
    const TensorView view = rank.tensor(DType::f32, {4});
    fail_next(rank.index(), "ncclAllReduce", ncclInvalidArgument, "a reason");
    EXPECT_THAT(error_of([&] { comm.all_reduce(view, view, Reduce::sum, rank.stream()); }),
                HasSubstr("group tensor.0: ncclAllReduce: an error (ncclInvalidArgument): a reason"));
    const Transfer set[] = {{Direction::send, 1 - rank.index(), 0, view}};
    fail_next(rank.index(), "ncclSend", ncclInvalidArgument, "another");
    EXPECT_THAT(error_of([&] { comm.exchange(set, rank.stream()); }), HasSubstr("another"));
  });
}

/// The kernel on the GPU never ends; another thread aborts; the rank continues at once, and ends.
TEST(Failures, AbortFromAnotherThreadStopsARunningCall) {
  run_members(2, {}, [](Rank& rank) {
    Communicator& comm = rank.join("tensor");
    if (rank.index() == 1) {
      rank.store().get("over", Rank::deadline());
      return;
    }
    const TensorView view = rank.tensor(DType::f32, {4});
    const Work work = comm.all_reduce(view, view, Reduce::sum, rank.stream());
    std::thread watchdog([&] { comm.abort("the watchdog"); });
    EXPECT_THAT(error_of([&] { rank.wait(work); }), HasSubstr("rank 0 aborted group tensor.0: the watchdog"));
    watchdog.join();
    rank.store().set("over", "");
  });
  EXPECT_GE(counts().aborts, 1);
}

/// NCCL's abort waits until the communicator's kernels have left their streams. The second communicator's kernel is
/// queued behind one of the first, which is not aborted yet.
TEST(Failures, AnAbortDoesNotWaitForAnotherCommunicators) {
  run_members(2, {}, [](Rank& rank) {
    Communicator &before = rank.join("tensor"), &behind = rank.join_world();
    if (rank.index() == 1) {
      rank.store().get("over", Rank::deadline());
      return;
    }
    const TensorView view = rank.tensor(DType::f32, {4});
    const Work first = before.all_reduce(view, view, Reduce::sum, rank.stream());
    const Work second = behind.all_reduce(view, view, Reduce::sum, rank.stream());
    behind.abort("enough");
    before.abort("of this one too");
    for (const Work& work : {first, second})
      EXPECT_THAT(error_of([&] { rank.wait(work); }), HasSubstr("aborted group world: enough"));
    rank.store().set("over", "");
  });
  EXPECT_GE(counts().aborts, 2);
}

/// The other members get the abort although it has not completed.
TEST(Failures, AnAbortIsSentBeforeItHasFinished) {
  run_members(2, {}, [](Rank& rank) {
    Communicator &before = rank.join("tensor"), &behind = rank.join_world();
    const TensorView view = rank.tensor(DType::f32, {4});
    if (rank.index() == 1) {
      EXPECT_THAT(error_of([&] { rank.wait(behind.all_reduce(view, view, Reduce::sum, rank.stream())); }),
                  HasSubstr("rank 0 aborted group world: enough"));
      rank.store().set("heard", "");
      return;
    }
    before.all_reduce(view, view, Reduce::sum, rank.stream());
    behind.all_reduce(view, view, Reduce::sum, rank.stream());
    behind.abort("enough");
    behind.progress();
    rank.store().get("heard", Rank::deadline());
    before.abort("of this one too");
  });
}

TEST(Failures, AbortOfEdgesStopsThemToo) {
  FakeNcclOptions options;
  options.edge_communicators = true;
  run_members(Layout::ptd(2, 1, 1), options, [](Rank& rank) {
    Communicator& comm = rank.join("pipeline");
    if (rank.index() == 1) {
      rank.store().get("over", Rank::deadline());
      return;
    }
    const Transfer one{Direction::receive, 1, 0, rank.tensor(DType::f32, {4})};
    const Work work = comm.exchange({&one, 1}, rank.stream());
    comm.abort("enough");
    EXPECT_THAT(error_of([&] { rank.wait(work); }), HasSubstr("enough"));
    rank.store().set("over", "");
  });
}

TEST(Failures, LeavingWithCallsThatRunIsReportedToTheOthers) {
  run_members(2, {}, [](Rank& rank) {
    const Group group = rank.layout().group(rank.index(), "tensor");
    std::unique_ptr<Communicator> comm = rank.backend().join(group, rank.store(), Rank::deadline());
    const TensorView view = rank.tensor(DType::f32, {4});
    if (rank.index() == 1) {
      comm->all_reduce(view, view, Reduce::sum, rank.stream());
      comm.reset();
      rank.store().set("gone", "");
      return;
    }
    rank.store().get("gone", Rank::deadline());
    EXPECT_THAT(error_of([&] { rank.wait(comm->all_reduce(view, view, Reduce::sum, rank.stream())); }),
                HasSubstr("rank 1 left group tensor.0 before its calls were complete"));
  });
}

/// The peer leaves without posting the matching send.
TEST(Failures, LeavingIsReportedToTheReceiver) {
  run_members(2, {}, [](Rank& rank) {
    Communicator& comm = rank.join("tensor");
    if (rank.index() == 1) return;
    const Transfer one{Direction::receive, 1, 0, rank.tensor(DType::f32, {4})};
    EXPECT_THAT(error_of([&] {
                  rank.wait(comm.exchange({&one, 1}, rank.stream()));
                }),
                HasSubstr("rank 1 left group tensor.0 while rank 0 waits for it"));
  });
}

/// Set for a rank's thread: NCCL connects to a peer that does not come, so calls stay in progress.
thread_local bool connects = false;

/// The launch itself waits for the peer, and ends when the peer has left.
TEST(Failures, LeavingIsReportedWithinALaunch) {
  static const comm_nccl::NcclApi kApi = [] {
    comm_nccl::NcclApi api = fake_nccl();
    api.all_reduce = [](const void* in, void* out, std::size_t n, ncclDataType_t t, ncclRedOp_t r, ncclComm_t c,
                        cudaStream_t s) {
      return connects ? ncclInProgress : fake_nccl().all_reduce(in, out, n, t, r, c, s);
    };
    api.comm_get_async_error = [](ncclComm_t comm, ncclResult_t* state) {
      const ncclResult_t result = fake_nccl().comm_get_async_error(comm, state);
      if (connects) *state = ncclInProgress;
      return result;
    };
    return api;
  }();
  Communication given = communication({});
  given.backend = [](const PluginContext& context) { return std::make_unique<comm_nccl::NcclBackend>(context, kApi); };
  run_ranks(
      Layout::ptd(1, 2, 1),
      [](Rank& rank) {
        Communicator& comm = rank.join("tensor");
        if (rank.index() == 1) return;
        connects = true;
        const TensorView view = rank.tensor(DType::f32, {4});
        EXPECT_THAT(error_of([&] { rank.wait(comm.all_reduce(view, view, Reduce::sum, rank.stream())); }),
                    HasSubstr("rank 1 left group tensor.0 while rank 0 waits for it"));
        connects = false;
      },
      given);
}

TEST(Registration, IsOnlyOnRequest) {
  run_members(2, {}, [](Rank& rank) { EXPECT_EQ(find_extension<Registration>(rank.join("tensor")), nullptr); });
  FakeNcclOptions options;
  options.register_buffers = options.edge_communicators = true;
  run_members(Layout::ptd(2, 1, 1), options, [](Rank& rank) {
    Communicator& comm = rank.join("pipeline");
    EXPECT_EQ(comm.extension("another"), nullptr);
    auto* registration = find_extension<Registration>(comm);
    ASSERT_TRUE(registration);
    const TensorView block = rank.tensor(DType::f32, {100});
    registration->add(block.data(), block.bytes());
    fail_next(rank.index(), "ncclCommRegister", ncclSystemError, "too many");
    EXPECT_THAT(error_of([&] { registration->add(block.data(), block.bytes()); }), HasSubstr("too many"));
  });
  EXPECT_EQ(counts().registered, 2 * 3) << "two edges and the group, on two ranks";
  EXPECT_EQ(counts().deregistered, counts().registered);
}

} // namespace
} // namespace triax::test
