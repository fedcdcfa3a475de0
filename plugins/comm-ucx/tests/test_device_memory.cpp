// SPDX-License-Identifier: Apache-2.0
// Staged device memory: pieces of all lengths, mismatched lengths, and refusals. Always on a fake CUDA device; the
// shared suite runs there too (CMakeLists.txt).
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "support/communicator_suite.hpp"
#include "support/error_of.hpp"
#include "support/fake_cuda_device.hpp"

namespace {

using namespace triax;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using triax::test::Communication;
using triax::test::error_of;
using triax::test::Rank;
using triax::test::run_ranks;
using triax::test::under_test;

constexpr std::int64_t kPiece = 512 << 10; // bytes

Communication on_devices(std::uint64_t seed) {
  Communication communication{"comm-ucx", {}};
  communication.options.set("staging_bytes", std::int64_t{1 << 20}); // less than needed: more is allocated
  communication.device = [seed](int index) {
    return test::make_fake_cuda_device(seed + static_cast<std::uint64_t>(index));
  };
  return communication;
}

std::vector<std::uint8_t> given(int member, std::int64_t bytes) {
  std::vector<std::uint8_t> values(static_cast<std::size_t>(bytes));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<std::uint8_t>((i * 31 + (i >> 9) + static_cast<std::size_t>(member) * 7) % 251);
  }
  return values;
}

class Pieces : public ::testing::TestWithParam<std::int64_t> {};
INSTANTIATE_TEST_SUITE_P(Of, Pieces,
                         ::testing::Values(0, 1, kPiece - 1, kPiece, kPiece + 1, 2 * kPiece - 1, 2 * kPiece,
                                           2 * kPiece + 1, 3 * kPiece, 5 * kPiece + 77),
                         [](const auto& each) { return std::to_string(each.param) + "bytes"; });

/// Both directions at once, twice, and a small transfer next to the large: consecutive calls use the same buffers.
TEST_P(Pieces, AreExchangedWhole) {
  run_ranks(
      2,
      [&](Rank& rank) {
        Communicator& comm = rank.join("tensor");
        const int other = 1 - rank.index();
        for (int round = 0; round < 2; ++round) {
          const TensorView out = rank.tensor(DType::u8, {GetParam()}, given(rank.index() + 2 * round, GetParam()));
          const TensorView in = rank.tensor(DType::u8, {GetParam()});
          const TensorView small_out = rank.tensor(DType::u8, {3}, given(rank.index(), 3));
          const TensorView small_in = rank.tensor(DType::u8, {3});
          const Transfer set[] = {{Direction::send, other, 0, out},
                                  {Direction::receive, other, 0, in},
                                  {Direction::receive, other, 5, small_in},
                                  {Direction::send, other, 5, small_out}};
          rank.wait(comm.exchange(set, rank.stream()));
          EXPECT_TRUE(rank.values<std::uint8_t>(in) == given(other + 2 * round, GetParam()));
          EXPECT_TRUE(rank.values<std::uint8_t>(small_in) == given(other, 3));
          EXPECT_TRUE(rank.values<std::uint8_t>(out) == given(rank.index() + 2 * round, GetParam()));
        }
        EXPECT_EQ(comm.stats().bytes_out, 2 * static_cast<std::uint64_t>(GetParam() + 3)) << "payload counts once";
        EXPECT_EQ(comm.stats().bytes_in, comm.stats().bytes_out);
      },
      on_devices(11));
}

TEST_P(Pieces, AreGatheredAndBroadcastWhole) {
  run_ranks(
      3,
      [&](Rank& rank) {
        Communicator& comm = rank.join("tensor");
        const std::int64_t bytes = GetParam();
        const TensorView all = rank.tensor(DType::u8, {3 * bytes});
        const TensorView mine = all.slice(0, rank.index() * bytes, (rank.index() + 1) * bytes);
        rank.write(mine, given(rank.index(), bytes).data());
        rank.wait(comm.all_gather(mine, all, rank.stream())); // in place
        for (int member = 0; member < 3; ++member) {
          const TensorView theirs = all.slice(0, member * bytes, (member + 1) * bytes);
          EXPECT_TRUE(rank.values<std::uint8_t>(theirs) == given(member, bytes));
        }
        rank.wait(comm.broadcast(mine, 2, rank.stream()));
        EXPECT_TRUE(rank.values<std::uint8_t>(mine) == given(2, bytes));
      },
      on_devices(12));
}

/// Work on the stream before a call is complete when the call reads; work after it waits for the call.
TEST(Order, OfAStreamHoldsAroundACall) {
  run_ranks(
      2,
      [](Rank& rank) {
        Communicator& comm = rank.join("tensor");
        const TensorView view = rank.tensor(DType::f32, {300'000}), sum = rank.tensor(DType::f32, {300'000});
        const TensorView after = rank.tensor(DType::f32, {300'000});
        for (int step = 1; step <= 5; ++step) {
          Device& device = rank.device();
          device.fill(view, step + rank.index(), rank.stream());
          comm.all_reduce(view, sum, Reduce::sum, rank.stream());
          device.fill(view, -1, rank.stream());
          device.copy(after, sum, rank.stream());
          const std::vector<float> values = rank.values<float>(after);
          EXPECT_EQ(std::count(values.begin(), values.end(), static_cast<float>(2 * step + 1)), 300'000);
        }
      },
      on_devices(13));
}

/// Also for lengths that differ by whole pieces.
TEST(Lengths, ThatDifferAreReported) {
  for (const auto& [sent, taken] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {2 * kPiece, 3 * kPiece}, {3 * kPiece, 2 * kPiece}, {kPiece, 0}, {10, kPiece}, {kPiece + 8, kPiece + 4}}) {
    run_ranks(
        2,
        [&, bytes_sent = sent, bytes_taken = taken](Rank& rank) {
          Communicator& comm = rank.join("tensor");
          const bool sends = rank.index() == 0;
          const TensorView view = rank.tensor(DType::u8, {sends ? bytes_sent : bytes_taken});
          const Transfer one{sends ? Direction::send : Direction::receive, 1 - rank.index(), 4, view};
          EXPECT_THAT(error_of([&] {
                        rank.wait(comm.exchange({&one, 1}, rank.stream()));
                        comm.barrier(Rank::deadline());
                      }),
                      AllOf(HasSubstr("group tensor.0, channel 4: rank 0 sends "),
                            HasSubstr(text("where rank 1 receives {} u8", bytes_taken))));
        },
        on_devices(14));
  }
}

/// The peer never posts: when the calls have failed, copies and UCX operations are complete, and memory may be freed.
TEST(Abort, InTheMiddleOfALargeCallLeavesNothingBehind) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    run_ranks(
        3,
        [seed](Rank& rank) {
          Communicator& comm = rank.join("tensor");
          constexpr std::int64_t kElements = 1'500'000;
          std::unique_ptr<Memory> memory = rank.device().allocate(4 * kElements, MemoryKind::device);
          const TensorView view(memory->data(), DType::f32, {kElements});
          rank.device().fill(view, 1, rank.stream());
          const Work work = comm.all_reduce(view, view, Reduce::sum, rank.stream());
          if (rank.index() == 2) {
            for (std::uint64_t i = 0; i < 50 * seed; ++i) rank.device().progress();
            comm.abort("enough");
          }
          const std::string why = error_of([&] { rank.wait(work); });
          if (why != "no error") { // a rank that was already done gets no error here
            EXPECT_THAT(why, HasSubstr("rank 2 aborted group tensor.0: enough"));
          }
          memory.reset();
        },
        on_devices(100 * seed));
  }
}

/// The log of a run, from any thread.
class Lines final : public Log {
 public:
  bool enabled(LogLevel level) const noexcept override { return level >= LogLevel::info; }
  void write(LogLevel, std::string_view line) noexcept override {
    const std::lock_guard lock(mutex_);
    lines_.emplace_back(line);
  }
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

TEST(Log, ReportsTheTransferPathOnce) {
  Lines log;
  Communication communication = under_test();
  communication.log = &log;
  const bool direct = communication.plugin != "comm-ucx"; // in the build whose UCX supports the fake device's memory
  if (!communication.device) communication.device = on_devices(1).device;
  run_ranks(
      3, [](Rank& rank) { rank.join("tensor"); }, communication);
  EXPECT_THAT(log.lines(), ElementsAre(HasSubstr(direct ? "transfers GPU memory directly (device_memory = \"direct\")"
                                                        : "through pinned host memory")));
}

TEST(Refusal, DirectWithoutCudaSupportInUcx) {
  Communication communication = on_devices(1);
  communication.options.set("device_memory", std::string("direct"));
  const auto words =
      AllOf(HasSubstr("device_memory = \"direct\", but UCX on this machine does not support CUDA memory"),
            HasSubstr("use device_memory = \"staged\""));
  run_ranks(
      1, [&](Rank& rank) { EXPECT_THAT(error_of([&] { rank.backend(); }), words); }, communication);
  communication.device = {}; // the option has no effect on the host
  run_ranks(
      1,
      [&](Rank& rank) {
        CommRequest request{DeviceKind::cuda, {"tensor"}, true};
        const Refusals answer = rank.backend().supports(request);
        EXPECT_THAT(answer.front().message + " " + answer.front().hint, words);
        request.device = DeviceKind::host;
        EXPECT_TRUE(rank.backend().supports(request).empty());
      },
      communication);
}

TEST(Refusal, RefusesAGroupWithDifferentDeviceMemorySettings) {
  Communication communication = on_devices(1);
  communication.device = [](int index) { return index == 0 ? make_host_device() : test::make_fake_cuda_device(1); };
  run_ranks(
      2,
      [](Rank& rank) {
        const Group group = rank.layout().group(rank.index(), "tensor");
        EXPECT_THAT(error_of([&] { rank.backend().join(group, rank.store(), Rank::deadline()); }),
                    AllOf(HasSubstr(rank.index() == 0 ? "rank 1 has device_memory staged, rank 0 has host"
                                                      : "rank 0 has device_memory host, rank 1 has staged"),
                          HasSubstr("device_memory = \"staged\"")));
      },
      communication);
}

} // namespace
