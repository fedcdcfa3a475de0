// SPDX-License-Identifier: Apache-2.0
// Same bits as comm-local, at sizes around every threshold; bytes moved and allocations.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <span>
#include <vector>

#include "support/communicator_suite.hpp"
#include "support/count_allocations.hpp"

namespace {

using namespace triax;
using triax::test::Communication;
using triax::test::Rank;
using triax::test::run_members;
using triax::test::run_ranks;
using triax::test::under_test;

using Bytes = std::vector<std::byte>;

/// The operator of vectors compares these byte by byte, which takes long without optimization.
bool same(const Bytes& a, const Bytes& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

/// Replaces NaNs, whose payload bits are not guaranteed, by infinities.
template <class Bits>
void no_nans(const TensorView& view, Bits exponent) {
  for (Bits& bits : std::span(view.as<Bits>(), static_cast<std::size_t>(view.elements()))) {
    if ((bits & exponent) == exponent) bits = exponent;
  }
}

using Generator = std::mt19937_64; // without optimization, a quarter of the time of Philox

/// At least so many bytes of the bits of a member, which are drawn once.
std::vector<Generator::result_type> bits_of(int member, std::size_t bytes) {
  struct Drawn {
    Generator generator;
    std::vector<Generator::result_type> words;
  };
  static std::mutex mutex;
  static std::map<int, Drawn> drawn;
  const std::size_t count = bytes / sizeof(Generator::result_type) + 1;
  const std::scoped_lock lock(mutex);
  Drawn& of =
      drawn.try_emplace(member, Drawn{Generator(static_cast<Generator::result_type>(member)), {}}).first->second;
  while (of.words.size() < count) of.words.push_back(of.generator());
  return {of.words.begin(), of.words.begin() + static_cast<std::ptrdiff_t>(count)};
}

/// Any bit patterns, including infinities.
void draw_bits(Rank& rank, const TensorView& drawn, int member) {
  std::vector<Generator::result_type> values = bits_of(member, drawn.bytes());
  const TensorView view(values.data(), drawn.dtype(), drawn.shape());
  if (view.dtype() == DType::f32) no_nans<std::uint32_t>(view, 0x7F800000u);
  if (view.dtype() == DType::f64) no_nans<std::uint64_t>(view, 0x7FF0000000000000u);
  if (view.dtype() == DType::bf16) no_nans<std::uint16_t>(view, 0x7F80u);
  if (view.dtype() == DType::f16) no_nans<std::uint16_t>(view, 0x7C00u);
  rank.write(drawn, values.data());
}

struct Case {
  DType dtype;
  Reduce reduce;
  std::int64_t elements;
};

/// Sizes around the small algorithm (16 KiB shared among the others), the rendezvous threshold of 256 KiB, and chunks
/// of 1 MiB, or 512 KiB for staged device memory.
std::vector<Case> cases(int n) {
  std::vector<Case> out;
  const std::int64_t small = (16 << 10) / std::max(1, n - 1), threshold = 256 << 10;
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i32, DType::i64}) {
    const auto width = static_cast<std::int64_t>(bytes_of(dtype));
    for (const Reduce reduce : {Reduce::sum, Reduce::max}) {
      for (const std::int64_t elements : {std::int64_t{0}, std::int64_t{1}, std::int64_t{n + 1}, small / width,
                                          small / width + 1, 3 * small / width + 7}) {
        out.push_back({dtype, reduce, elements});
      }
    }
    if (dtype != DType::f32 && dtype != DType::bf16) continue;
    for (const std::int64_t bytes :
         {n * threshold, n * threshold + width, 4 * n * threshold + 3 * n, 11 * n * threshold}) {
      const std::int64_t elements = bytes / width;
      out.push_back({dtype, Reduce::sum, elements});
    }
  }
  return out;
}

/// The results of each rank in each case, from all_reduce out of place and reduce_scatter in place.
std::vector<std::vector<Bytes>> results(int n, const Communication& communication) {
  std::vector<std::vector<Bytes>> all(static_cast<std::size_t>(n));
  run_ranks(
      n,
      [&](Rank& rank) {
        Communicator& comm = rank.join("tensor");
        for (const Case& one : cases(n)) {
          std::vector<Bytes>& mine = all[static_cast<std::size_t>(rank.index())];
          const std::int64_t part = one.elements / n;
          const TensorView in = rank.tensor(one.dtype, {one.elements}), out = rank.tensor(one.dtype, {one.elements});
          draw_bits(rank, in, rank.index());
          rank.wait(comm.all_reduce(in, out, one.reduce, rank.stream()));
          mine.push_back(rank.bytes(out));
          const TensorView parts = in.slice(0, 0, n * part),
                           own = in.slice(0, part * rank.index(), part * (rank.index() + 1));
          rank.wait(comm.reduce_scatter(parts, own, one.reduce, rank.stream()));
          mine.push_back(rank.bytes(own));
        }
      },
      communication);
  return all;
}

class Bits : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Bits, ::testing::Values(2, 3, 5),
                         [](const auto& each) { return "n" + std::to_string(each.param); });

TEST_P(Bits, AreThoseOfCommLocal) {
  const int n = GetParam();
  const auto expected = results(n, {"comm-local", {}}), actual = results(n, under_test());
  const std::vector<Case> all = cases(n);
  for (int rank = 0; rank < n; ++rank) {
    const auto& theirs = expected[static_cast<std::size_t>(rank)];
    const auto& mine = actual[static_cast<std::size_t>(rank)];
    ASSERT_EQ(mine.size(), theirs.size());
    for (std::size_t i = 0; i < mine.size(); ++i) {
      const Case& one = all[i / 2];
      EXPECT_TRUE(same(mine[i], theirs[i])) << (i % 2 == 0 ? "all_reduce" : "reduce_scatter") << " of " << one.elements
                                            << " " << name_of(one.dtype) << " on rank " << rank;
    }
  }
}

/// Collectives that only move data, above and below the rendezvous threshold.
void move_whole(const Communication& communication) {
  for (const int n : {2, 3}) {
    run_ranks(
        n,
        [&](Rank& rank) {
          Communicator& comm = rank.join("tensor");
          for (const std::int64_t part : {999, 40'000, 700'000}) {
            const TensorView mine = rank.tensor(DType::f32, {part});
            const TensorView all = rank.tensor(DType::f32, {n * part}), turned = rank.tensor(DType::f32, {n * part});
            draw_bits(rank, mine, rank.index());
            rank.wait(comm.all_gather(mine, all, rank.stream()));
            for (int member = 0; member < n; ++member) {
              const TensorView theirs = rank.tensor(DType::f32, {part});
              draw_bits(rank, theirs, member);
              EXPECT_TRUE(same(rank.bytes(all.slice(0, member * part, (member + 1) * part)), rank.bytes(theirs)))
                  << part;
            }
            rank.wait(
                comm.all_to_all(all, turned, rank.stream())); // all ranks send the same: each gets its part n times
            for (int member = 0; member < n; ++member) {
              EXPECT_TRUE(same(rank.bytes(turned.slice(0, member * part, (member + 1) * part)), rank.bytes(mine)))
                  << part;
            }
            rank.wait(comm.broadcast(turned, n - 1, rank.stream()));
            EXPECT_TRUE(same(rank.bytes(turned.slice(0, 0, part)), rank.bytes(all.slice(0, (n - 1) * part, n * part))))
                << part;
          }
        },
        communication);
  }
}

TEST(Sizes, MoveWholeAcrossTheRendezvousThreshold) {
  move_whole(under_test());
}

TEST(Sizes, TheThresholdMayBeAnywhere) {
  Communication communication = under_test();
  communication.options.set("rndv_threshold", std::int64_t{0});
  move_whole(communication);
}

TEST(Transports, MayBeTcpAlone) {
  Communication communication = under_test();
  communication.options.set("transports", std::string("tcp,self"));
  communication.options.set("devices", std::string("lo"));
  move_whole(communication);
}

TEST(Waiting, InAllWaysComesToAnEnd) {
  for (const char* wait : {"spin", "event"}) {
    Communication communication = under_test();
    communication.options.set("wait", std::string(wait));
    move_whole(communication);
  }
}

TEST(Bytes, OfASmallAllReduceAreThoseThatCross) {
  run_members(3, [](Rank& rank) {
    Communicator& comm = rank.join("tensor");
    const TensorView view = rank.tensor(DType::f32, {10});
    rank.wait(comm.all_reduce(view, view, Reduce::sum, rank.stream()));
    EXPECT_EQ(comm.stats().bytes_out, 80u);
    EXPECT_EQ(comm.stats().bytes_in, 80u);
  });
}

/// The calls of a step, repeated, on two streams.
TEST(SteadyState, AllocatesNothing) {
  run_members(3, [](Rank& rank) {
    Communicator& comm = rank.join("tensor");
    const std::unique_ptr<Stream> other = rank.device().make_stream("other");
    const TensorView small = rank.tensor(DType::f32, {100}), large = rank.tensor(DType::f32, {900'000});
    const TensorView part = rank.tensor(DType::f32, {300'000});
    const std::array<Transfer, 2> ring = {
        Transfer{Direction::send, (rank.index() + 1) % 3, 0, small},
        Transfer{Direction::receive, (rank.index() + 2) % 3, 0, part.slice(0, 0, 100)}};
    const auto step = [&] {
      const Work sum = comm.all_reduce(large, large, Reduce::max, *other);
      rank.wait(comm.all_reduce(small, small, Reduce::max, rank.stream()));
      rank.wait(comm.exchange(ring, rank.stream()));
      rank.wait(sum);
      rank.wait(comm.reduce_scatter(large, part, Reduce::max, rank.stream()));
      rank.wait(comm.all_gather(part, large, rank.stream()));
      rank.wait(comm.broadcast(part, 1, *other));
      comm.barrier(Rank::deadline());
    };
    for (int i = 0; i < 4; ++i) step();
    const std::size_t before = triax::test::allocations();
    for (int i = 0; i < 20; ++i) step();
    EXPECT_EQ(triax::test::allocations() - before, 0u);
  });
}

} // namespace
