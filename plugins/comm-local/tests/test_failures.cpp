// SPDX-License-Identifier: Apache-2.0
// Leaving a group, where comm-local differs from other communicators: a limited number of entries, and published
// buffers.
#include <gmock/gmock.h>

#include <memory>
#include <vector>

#include "support/error_of.hpp"
#include "support/ranks.hpp"

namespace {

using namespace triax;
using ::testing::HasSubstr;
using triax::test::error_of;
using triax::test::Rank;
using triax::test::run_ranks;

/// Rank 1 receives broadcasts until it needs an entry again. Rank 0 has posted nothing, so the entry is never free.
TEST(Leaving, IsReportedToRanksThatWaitForAFreeEntry) {
  constexpr int kCalls = 17; // one more than there are entries
  run_ranks(3, [](Rank& rank) {
    Communicator& comm = rank.join("tensor");
    const TensorView view = rank.tensor(DType::f32, {4});
    if (rank.index() == 2) {
      std::vector<std::unique_ptr<Stream>> streams;
      for (int i = 0; i < kCalls; ++i) {
        streams.push_back(rank.device().make_stream("broadcast"));
        comm.broadcast(view, 2, *streams.back());
      }
      for (int i = 0; i < kCalls; ++i) rank.device().progress();
      rank.store().set("posted", "");
      rank.store().get("failed", Rank::deadline());
      return;
    }
    rank.store().get("posted", Rank::deadline());
    if (rank.index() == 0) return;
    Work last;
    for (int i = 0; i < kCalls; ++i) last = comm.broadcast(view, 2, rank.stream());
    EXPECT_THAT(error_of([&] { rank.wait(last); }), HasSubstr("rank 0 left group tensor.0 while rank 1 waits for it"));
    rank.store().set("failed", "");
  });
}

// A stream may be destroyed before its communicator, and memory after both. A peer must not read a published buffer
// after that.
TEST(Leaving, AStreamThatGoesWithAPublishedSendEndsTheGroup) {
  run_ranks(2, [](Rank& rank) {
    const std::unique_ptr<Communicator> comm =
        rank.backend().join(rank.layout().group(rank.index(), "tensor"), rank.store(), Rank::deadline());
    if (rank.index() == 0) {
      const std::unique_ptr<Memory> memory = rank.device().allocate(64, MemoryKind::device);
      const Transfer send{Direction::send, 1, 0, {memory->data(), DType::f32, {4}}};
      std::unique_ptr<Stream> stream = rank.device().make_stream("short");
      comm->exchange({&send, 1}, *stream);
      rank.device().progress(); // published
      stream.reset();
      rank.store().set("gone", "");
    } else {
      const TensorView view = rank.tensor(DType::f32, {4});
      const Transfer receive{Direction::receive, 0, 0, view};
      rank.store().get("gone", Rank::deadline());
      const Work work = comm->exchange({&receive, 1}, rank.stream());
      EXPECT_THAT(error_of([&] { rank.wait(work); }),
                  HasSubstr("rank 0 left group tensor.0 before its calls were complete"));
    }
  });
}

} // namespace
