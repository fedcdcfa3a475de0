// SPDX-License-Identifier: Apache-2.0
// Failures in a group: every member gets an error message, and soon.
#include <gmock/gmock.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "support/communicator_suite.hpp"
#include "support/error_of.hpp"
#include "support/stop_once.hpp"

namespace {

using namespace triax;
using ::testing::AllOf;
using ::testing::HasSubstr;
using triax::test::error_of;
using triax::test::guarantees;
using triax::test::Rank;
using triax::test::run_members;
using triax::test::StopOnce;

constexpr const char* kRunsByItself = "calls run on the GPU by themselves, and no host compares them";

TEST(Abort, FailsPendingAndLaterCallsOfAllMembers) {
  run_members(3, [](Rank& rank) {
    Communicator& comm = rank.join("tensor");
    const TensorView view = rank.tensor(DType::f32, {100});
    if (rank.index() == 2) {
      for (const char* posted : {"posted 0", "posted 1"}) rank.store().get(posted, Rank::deadline());
      comm.abort("it ran out of paper");
    } else {
      const Work pending = comm.all_reduce(view, view, Reduce::sum, rank.stream(), 31);
      rank.store().set(text("posted {}", rank.index()), "");
      EXPECT_EQ(error_of([&] { rank.wait(pending); }), "action 31: rank 2 aborted group tensor.0: it ran out of paper");
    }
    const TensorView more = rank.tensor(DType::f32, {100});
    const auto reason = HasSubstr("rank 2 aborted group tensor.0: it ran out of paper");
    EXPECT_THAT(error_of([&] { rank.wait(comm.all_reduce(more, more, Reduce::sum, rank.stream())); }), reason);
    const Transfer transfer{Direction::send, (rank.index() + 1) % 3, 0, more};
    EXPECT_THAT(error_of([&] { rank.wait(comm.exchange({&transfer, 1}, rank.stream())); }), reason);
    EXPECT_THAT(error_of([&] { comm.barrier(Rank::deadline()); }), reason);
  });
}

TEST(Abort, MayComeFromAnyThread) {
  run_members(2, [](Rank& rank) {
    Communicator& comm = rank.join("tensor");
    const TensorView view = rank.tensor(DType::f32, {8});
    if (rank.index() == 1) {
      std::thread([&] { comm.abort("the watchdog"); }).join();
      return;
    }
    EXPECT_THAT(error_of([&] { rank.wait(comm.broadcast(view, 1, rank.stream())); }),
                HasSubstr("rank 1 aborted group tensor.0: the watchdog"));
  });
}

TEST(Abort, KeepsTheFirstReason) {
  run_members(2, [](Rank& rank) {
    Communicator& comm = rank.join("tensor");
    if (rank.index() == 0) {
      comm.abort("first");
      comm.abort("second");
    }
    const TensorView view = rank.tensor(DType::f32, {8});
    EXPECT_THAT(error_of([&] { rank.wait(comm.broadcast(view, 0, rank.stream())); }), HasSubstr("first"));
  });
}

TEST(Abort, DoesNotCountRefusedCalls) {
  run_members(2, [](Rank& rank) {
    Communicator& comm = rank.join("tensor");
    const TensorView view = rank.tensor(DType::f32, {8}), half = rank.tensor(DType::f32, {4});
    const TensorView other = rank.tensor(DType::f32, {8});
    rank.wait(comm.all_reduce(view, view, Reduce::sum, rank.stream()));
    const CommStats before = comm.stats();
    rank.store().set(text("waited {}", rank.index()), "");
    rank.store().get(text("waited {}", 1 - rank.index()), Rank::deadline());
    comm.abort("enough");
    comm.all_reduce(view, view, Reduce::sum, rank.stream());
    comm.reduce_scatter(view, half, Reduce::sum, rank.stream());
    comm.all_gather(half, view, rank.stream());
    comm.all_to_all(view, other, rank.stream());
    comm.broadcast(view, 0, rank.stream());
    const Transfer transfer{Direction::send, 1 - rank.index(), 0, view};
    comm.exchange({&transfer, 1}, rank.stream());
    EXPECT_EQ(comm.stats().ops, before.ops);
    EXPECT_EQ(comm.stats().bytes_out, before.bytes_out);
    EXPECT_EQ(comm.stats().bytes_in, before.bytes_in);
  });
}

TEST(Abort, FailsCallsThatTheirStreamHoldsBack) {
  if (!guarantees().needs_progress) GTEST_SKIP() << kRunsByItself;
  run_members(2, [](Rank& rank) {
    Communicator& comm = rank.join("tensor");
    comm.barrier(Rank::deadline()); // an abort would also end a join
    HostEvent never;
    const TensorView view = rank.tensor(DType::f32, {8});
    rank.stream().wait(never.arm());
    const Work held = comm.all_reduce(view, view, Reduce::sum, rank.stream());
    comm.abort("enough");
    EXPECT_THAT(error_of([&] { rank.wait(held); }), HasSubstr("enough"));
  });
}

TEST(Mismatch, OfCollectivesIsReportedToAll) {
  if (!guarantees().needs_progress) GTEST_SKIP() << kRunsByItself;
  run_members(2, [](Rank& rank) {
    Communicator& comm = rank.join("tensor");
    const TensorView view = rank.tensor(DType::f32, {rank.index() == 0 ? 8 : 9});
    EXPECT_THAT(
        error_of([&] { rank.wait(comm.all_reduce(view, view, Reduce::sum, rank.stream())); }),
        AllOf(HasSubstr("all_reduce of 8 f32 (sum) on rank 0"), HasSubstr("all_reduce of 9 f32 (sum) on rank 1"),
              HasSubstr("must post the same collectives in the same order")));
  });
}

TEST(Mismatch, OfOrderTypeReductionOrRootIsFound) {
  if (!guarantees().needs_progress) GTEST_SKIP() << kRunsByItself;
  for (int kind = 0; kind < 4; ++kind) {
    run_members(2, [&](Rank& rank) {
      Communicator& comm = rank.join("tensor");
      const bool odd = rank.index() == 1;
      const TensorView view = rank.tensor(kind == 0 && odd ? DType::i32 : DType::f32, {4});
      const auto post = [&] {
        if (kind == 1 && odd) return comm.broadcast(view, 0, rank.stream());
        if (kind == 2 && odd) return comm.all_reduce(view, view, Reduce::max, rank.stream());
        if (kind == 3) return comm.broadcast(view, odd ? 1 : 0, rank.stream());
        return comm.all_reduce(view, view, Reduce::sum, rank.stream());
      };
      EXPECT_THAT(error_of([&] { rank.wait(post()); }), HasSubstr(" does not match ")) << kind;
    });
  }
}

/// The sender may get the error later, because a backend may complete a send before it is received.
TEST(Mismatch, OfATransferIsReportedToBoth) {
  if (!guarantees().needs_progress) GTEST_SKIP() << kRunsByItself;
  for (const bool other_type : {false, true}) {
    run_members(2, [&](Rank& rank) {
      Communicator& comm = rank.join("tensor");
      const bool sender = rank.index() == 0;
      const TensorView view = sender ? rank.tensor(DType::f32, {6})
                                     : rank.tensor(other_type ? DType::i32 : DType::f32, {other_type ? 6 : 5});
      const Transfer one{sender ? Direction::send : Direction::receive, 1 - rank.index(), 4, view};
      EXPECT_THAT(error_of([&] {
                    rank.wait(comm.exchange({&one, 1}, rank.stream()));
                    comm.barrier(Rank::deadline());
                  }),
                  HasSubstr(text("group tensor.0, channel 4: rank 0 sends 6 f32 where rank 1 receives {}",
                                 other_type ? "6 i32" : "5 f32")));
    });
  }
}

TEST(Leaving, IsReportedToRanksThatWait) {
  run_members(2, [](Rank& rank) {
    Communicator& comm = rank.join("tensor");
    if (rank.index() == 1) return; // the communicator ends with the rank
    const TensorView view = rank.tensor(DType::f32, {4});
    EXPECT_THAT(error_of([&] { rank.wait(comm.all_reduce(view, view, Reduce::sum, rank.stream())); }),
                HasSubstr("rank 1 left group tensor.0 while rank 0 waits for it"));
  });
}

TEST(Leaving, WithCallsPendingIsReportedToo) {
  if (!guarantees().needs_progress) GTEST_SKIP() << kRunsByItself;
  run_members(2, [](Rank& rank) {
    Communicator& comm = rank.join("tensor");
    const TensorView view = rank.tensor(DType::f32, {4});
    if (rank.index() == 1) {
      comm.all_reduce(view, view, Reduce::sum, rank.stream()); // never waited for
      rank.store().get("both have joined", Rank::deadline());
      return;
    }
    rank.store().set("both have joined", "");
    EXPECT_THAT(error_of([&] { rank.wait(comm.all_reduce(view, view, Reduce::sum, rank.stream())); }),
                HasSubstr("rank 1 left group tensor.0 before its calls were complete"));
  });
}

TEST(Leaving, AStreamMayOutliveACommunicatorWithPendingCalls) {
  if (!guarantees().needs_progress) GTEST_SKIP() << kRunsByItself;
  run_members(2, [](Rank& rank) {
    std::unique_ptr<Communicator> comm =
        rank.backend().join(rank.layout().group(rank.index(), "tensor"), rank.store(), Rank::deadline());
    comm->barrier(Rank::deadline()); // a member that leaves would also end a join
    HostEvent gate;
    const std::unique_ptr<Stream> stream = rank.device().make_stream("longer");
    const std::unique_ptr<Stream> dropped = rank.device().make_stream("dropped");
    const TensorView view = rank.tensor(DType::f32, {4});
    const Event open = gate.arm();
    stream->wait(open);
    dropped->wait(open);
    comm->all_reduce(view, view, Reduce::sum, *stream);
    comm->all_reduce(view, view, Reduce::sum, *dropped);
    comm.reset();
    gate.fire();
    stream->ready(); // reaches a call whose communicator is destroyed
  });
}

TEST(Barrier, TimesOutAndNamesTheMissingRanks) {
  run_members(2, [](Rank& rank) {
    Communicator& comm = rank.join("tensor");
    if (rank.index() == 1) {
      EXPECT_THAT(error_of([&] { comm.barrier(deadline_in(0.02)); }),
                  HasSubstr("barrier of group tensor.0: timed out waiting for rank 0"));
    }
    rank.store().set(text("done {}", rank.index()), "");
    rank.store().get("done 1", Rank::deadline());
  });
}

TEST(Barrier, ItsDeadlineDoesNotCountTheTimeInWhichTheRankIsStopped) {
  run_members(2, [](Rank& rank) {
    Communicator& comm = rank.join("tensor");
    StopOnce source([&rank] {
      std::this_thread::sleep_for(std::chrono::milliseconds(1500));
      rank.store().set("continued", "");
    });
    if (rank.index() == 1) {
      rank.device().add_source(source);
      EXPECT_NO_THROW(comm.barrier(deadline_in(1.2)));
      rank.device().remove_source(source);
    } else {
      rank.store().get("continued", Rank::deadline());
      comm.barrier(Rank::deadline());
    }
  });
}

TEST(Reduction, OfBytesIsRefused) {
  run_members(2, [](Rank& rank) {
    Communicator& comm = rank.join("tensor");
    const TensorView view = rank.tensor(DType::u8, {4});
    EXPECT_THAT(error_of([&] { comm.all_reduce(view, view, Reduce::sum, rank.stream()); }),
                HasSubstr("u8[4] cannot be reduced"));
  });
}

/// If one rank fails, run_ranks() throws its error and no rank hangs.
TEST(RunRanks, TheFirstErrorComesOutAndTheOthersStop) {
  const std::string what = error_of([] {
    run_members(4, [](Rank& rank) {
      Communicator& comm = rank.join("tensor");
      const TensorView view = rank.tensor(DType::f32, {1000});
      for (int step = 0;; ++step) {
        if (rank.index() == 3 && step == 20) throw Error("no space on the disk", "rank 3");
        rank.wait(comm.all_reduce(view, view, Reduce::sum, rank.stream()));
      }
    });
  });
  EXPECT_EQ(what, "rank 3: no space on the disk");
}

TEST(RunRanks, ARankThatWaitsWithoutAPeerIsAborted) {
  const std::string what = error_of([] {
    run_members(2, [](Rank& rank) {
      if (rank.index() == 1) throw Error("gone");
      HostEvent never;
      rank.device().wait(never.arm(), Rank::deadline());
    });
  });
  EXPECT_EQ(what, "gone");
}

} // namespace
