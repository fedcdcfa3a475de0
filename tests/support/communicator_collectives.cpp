// SPDX-License-Identifier: Apache-2.0
// Collectives on 1 to 5 ranks, on a loaded plugin: values, bits, bytes.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "support/communicator_suite.hpp"
#include "triax/half.hpp"
#include "triax/random.hpp"

namespace {

using namespace triax;
using triax::test::Rank;
using triax::test::run_members;

/// A value in [-1, 1) that depends on the member and the element.
float sample(int member, std::int64_t element) {
  const PhiloxKey key = philox_key(11, RandomPurpose::test);
  const PhiloxBlock block = philox_at(key, static_cast<std::uint64_t>(element), static_cast<std::uint32_t>(member), 0);
  return 2 * uniform(block[static_cast<std::size_t>(element % 4)]) - 1;
}

/// Fills the view with the values of `member`; integers are from -1000 to 1000.
void draw(Rank& rank, const TensorView& view, int member) {
  std::vector<double> values(static_cast<std::size_t>(view.elements()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float value = sample(member, static_cast<std::int64_t>(i));
    values[i] = is_floating(view.dtype()) ? value : std::nearbyint(1000 * value);
  }
  const TensorView wide = rank.tensor(DType::f64, {view.elements()}, values);
  rank.device().convert(view.flat(), wide, rank.stream());
  rank.finish();
}

TensorView drawn(Rank& rank, DType dtype, std::int64_t elements, int member) {
  const TensorView view = rank.tensor(dtype, {elements});
  draw(rank, view, member);
  return view;
}

/// The reduction over the members in rank order, in the type that the interface specifies: the exact bits.
template <class T, class Sum>
std::vector<std::byte> expected_typed(Rank& rank, DType dtype, std::int64_t elements, int members, Reduce reduce) {
  std::vector<Sum> sums(static_cast<std::size_t>(elements));
  for (int member = 0; member < members; ++member) {
    const std::vector<T> one = rank.values<T>(drawn(rank, dtype, elements, member));
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const Sum value = static_cast<Sum>(one[i]);
      sums[i] = member == 0 ? value : reduce == Reduce::sum ? sums[i] + value : std::max(sums[i], value);
    }
  }
  std::vector<T> out;
  for (const Sum sum : sums) out.push_back(T(sum));
  std::vector<std::byte> raw(out.size() * sizeof(T));
  if (!out.empty()) std::memcpy(raw.data(), out.data(), raw.size());
  return raw;
}

std::vector<std::byte> expected(Rank& rank, DType dtype, std::int64_t elements, int members, Reduce reduce) {
  switch (dtype) {
    case DType::f32:
      return expected_typed<float, float>(rank, dtype, elements, members, reduce);
    case DType::f64:
      return expected_typed<double, double>(rank, dtype, elements, members, reduce);
    case DType::bf16:
      return expected_typed<Bf16, float>(rank, dtype, elements, members, reduce);
    case DType::f16:
      return expected_typed<F16, float>(rank, dtype, elements, members, reduce);
    case DType::i32:
      return expected_typed<std::int32_t, std::int32_t>(rank, dtype, elements, members, reduce);
    default:
      return expected_typed<std::int64_t, std::int64_t>(rank, dtype, elements, members, reduce);
  }
}

constexpr DType kReduced[] = {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i32, DType::i64};

class Collectives : public ::testing::TestWithParam<int> {
 protected:
  int n = GetParam();
};
INSTANTIATE_TEST_SUITE_P(Ranks, Collectives, ::testing::Values(2, 3, 4, 5),
                         [](const auto& each) { return "n" + std::to_string(each.param); });

TEST_P(Collectives, AllReduceHasTheBitsOfTheSumInRankOrder) {
  run_members(n, [&](Rank& rank) {
    Communicator& comm = rank.join("tensor");
    for (const DType dtype : kReduced) {
      for (const Reduce reduce : {Reduce::sum, Reduce::max}) {
        for (const std::int64_t elements : {0, 1, 2, 3, 7, 64, 1501, 20'003}) {
          const TensorView in = drawn(rank, dtype, elements, rank.index());
          const TensorView out = rank.tensor(dtype, {elements});
          rank.wait(comm.all_reduce(in, out, reduce, rank.stream()));
          EXPECT_EQ(rank.bytes(out), expected(rank, dtype, elements, n, reduce))
              << name_of(dtype) << " " << elements << " elements";
          rank.wait(comm.all_reduce(in, in, reduce, rank.stream())); // in place
          EXPECT_EQ(rank.bytes(in), rank.bytes(out)) << name_of(dtype) << " in place";
        }
      }
    }
  });
}

TEST_P(Collectives, ReduceScatterGivesEachItsPart) {
  run_members(n, [&](Rank& rank) {
    Communicator& comm = rank.join("tensor");
    for (const DType dtype : kReduced) {
      for (const std::int64_t part : {0, 1, 513}) {
        const TensorView in = drawn(rank, dtype, part * n, rank.index());
        const TensorView out = rank.tensor(dtype, {part});
        rank.wait(comm.reduce_scatter(in, out, Reduce::sum, rank.stream()));
        const std::vector<std::byte> all = expected(rank, dtype, part * n, n, Reduce::sum);
        const auto begin = all.begin() + static_cast<std::ptrdiff_t>(out.bytes()) * rank.index();
        const std::vector<std::byte> mine(begin, begin + static_cast<std::ptrdiff_t>(out.bytes()));
        EXPECT_EQ(rank.bytes(out), mine) << name_of(dtype) << " " << part;
        const TensorView place = in.slice(0, part * rank.index(), part * (rank.index() + 1));
        rank.wait(comm.reduce_scatter(in, place, Reduce::sum, rank.stream()));
        EXPECT_EQ(rank.bytes(place), mine) << name_of(dtype) << " in place";
      }
    }
  });
}

TEST_P(Collectives, AllGatherIsInTheOrderOfTheGroup) {
  run_members(n, [&](Rank& rank) {
    Communicator& comm = rank.join("tensor");
    for (const std::int64_t part : {0, 1, 100}) {
      const TensorView in = drawn(rank, DType::f16, part, rank.index());
      const TensorView out = rank.tensor(DType::f16, {part * n});
      rank.wait(comm.all_gather(in, out, rank.stream()));
      const TensorView place = rank.tensor(DType::f16, {part * n});
      const TensorView mine = place.slice(0, part * rank.index(), part * (rank.index() + 1));
      draw(rank, mine, rank.index());
      rank.wait(comm.all_gather(mine, place, rank.stream()));
      for (int member = 0; member < n; ++member) {
        const TensorView theirs = drawn(rank, DType::f16, part, member);
        EXPECT_EQ(rank.bytes(out.slice(0, part * member, part * (member + 1))), rank.bytes(theirs));
        EXPECT_EQ(rank.bytes(place.slice(0, part * member, part * (member + 1))), rank.bytes(theirs)) << "in place";
      }
    }
  });
}

TEST_P(Collectives, AllToAllTransposes) {
  run_members(n, [&](Rank& rank) {
    Communicator& comm = rank.join("tensor");
    const std::int64_t part = 33;
    std::vector<std::uint8_t> given(static_cast<std::size_t>(part * n));
    for (std::size_t i = 0; i < given.size(); ++i)
      given[i] = static_cast<std::uint8_t>(i * 7 + static_cast<std::size_t>(rank.index()));
    const TensorView in = rank.tensor(DType::u8, {part * n}, given);
    const TensorView out = rank.tensor(DType::u8, {part * n});
    rank.wait(comm.all_to_all(in, out, rank.stream()));
    const std::vector<std::uint8_t> got = rank.values<std::uint8_t>(out);
    for (int member = 0; member < n; ++member) {
      for (std::int64_t i = 0; i < part; ++i) {
        EXPECT_EQ(got[static_cast<std::size_t>(member * part + i)],
                  static_cast<std::uint8_t>((rank.index() * part + i) * 7 + member));
      }
    }
  });
}

TEST_P(Collectives, BroadcastComesFromEachRoot) {
  run_members(n, [&](Rank& rank) {
    Communicator& comm = rank.join("tensor");
    for (int root = 0; root < n; ++root) {
      const TensorView view = drawn(rank, DType::i64, 77, rank.index());
      rank.wait(comm.broadcast(view, root, rank.stream()));
      EXPECT_EQ(rank.bytes(view), rank.bytes(drawn(rank, DType::i64, 77, root)));
    }
  });
}

/// More calls in flight than a group has entries, on two streams, mixed.
TEST_P(Collectives, ManyCallsInFlightOnTwoStreams) {
  run_members(n, [&](Rank& rank) {
    Communicator& comm = rank.join("tensor");
    const std::unique_ptr<Stream> other = rank.device().make_stream("other");
    std::vector<TensorView> views;
    std::vector<Work> works;
    for (int i = 0; i < 100; ++i) {
      views.push_back(rank.tensor(DType::i32, {5}));
      rank.device().fill(views.back(), i + rank.index(), rank.stream());
    }
    other->wait(rank.stream().record());
    for (int i = 0; i < 100; ++i) {
      const TensorView& view = views[static_cast<std::size_t>(i)];
      Stream& stream = i % 3 == 0 ? *other : rank.stream();
      if (i % 2 == 0) {
        works.push_back(comm.all_reduce(view, view, Reduce::sum, stream));
      } else {
        works.push_back(comm.broadcast(view, i % n, stream));
      }
    }
    for (const Work& work : works) rank.wait(work);
    for (int i = 0; i < 100; ++i) {
      const int value = i % 2 == 0 ? n * i + n * (n - 1) / 2 : i + i % n;
      const TensorView& view = views[static_cast<std::size_t>(i)];
      EXPECT_EQ(rank.values<std::int32_t>(view), std::vector<std::int32_t>(5, value)) << i;
    }
    rank.stream().ready();
    other->ready();
  });
}

TEST_P(Collectives, APostDoesNotCompleteInsideTheCall) {
  run_members(n, [&](Rank& rank) {
    Communicator& comm = rank.join("tensor");
    const TensorView view = drawn(rank, DType::f32, 10, rank.index());
    HostEvent gate;
    if (!rank.on_host()) rank.stream().wait(gate.arm()); // a GPU's stream runs without polling
    const Work work = comm.all_reduce(view, view, Reduce::sum, rank.stream(), 42);
    EXPECT_FALSE(work.event.fired());
    EXPECT_EQ(work.action, 42u);
    if (!rank.on_host()) gate.fire();
    rank.wait(work);
    EXPECT_TRUE(work.event.fired());
  });
}

TEST_P(Collectives, StartAfterTheEventsThatTheirStreamWaitsFor) {
  run_members(n, [&](Rank& rank) {
    Communicator& comm = rank.join("tensor");
    HostEvent gate;
    const TensorView view = rank.tensor(DType::f32, {3});
    rank.stream().wait(gate.arm());
    const Work work = comm.all_reduce(view, view, Reduce::sum, rank.stream());
    for (int i = 0; i < 10; ++i) rank.device().progress();
    EXPECT_FALSE(work.event.fired());
    rank.put(view, std::vector<float>(3, 1)); // the transport must not read the buffer before the call's turn
    gate.fire();
    rank.wait(work);
    EXPECT_EQ(rank.values<float>(view), std::vector<float>(3, static_cast<float>(n)));
  });
}

TEST_P(Collectives, CountOperationsAndTheBytesThatCross) {
  run_members(n, [&](Rank& rank) {
    Communicator& comm = rank.join("tensor");
    const auto others = static_cast<std::uint64_t>(n - 1);
    const TensorView big = rank.tensor(DType::f32, {15'000 * n}), small = rank.tensor(DType::f32, {15'000});
    const TensorView big2 = rank.tensor(DType::f32, {15'000 * n});
    std::uint64_t out = 0, in = 0, ops = 0;
    const auto check = [&](const char* name, const Work& work, std::uint64_t more_out, std::uint64_t more_in) {
      rank.wait(work);
      out += more_out;
      in += more_in;
      EXPECT_EQ(comm.stats().ops, ++ops) << name;
      EXPECT_EQ(comm.stats().bytes_out, out) << name;
      EXPECT_EQ(comm.stats().bytes_in, in) << name;
    };
    Stream& stream = rank.stream();
    // 2(n-1)/n of the buffer's 60000 n bytes; the size selects the large algorithm in every backend
    check("all_reduce", comm.all_reduce(big, big, Reduce::sum, stream), 120'000 * others, 120'000 * others);
    check("reduce_scatter", comm.reduce_scatter(big, small, Reduce::sum, stream), 60'000 * others, 60'000 * others);
    check("all_gather", comm.all_gather(small, big, stream), 60'000 * others, 60'000 * others);
    check("all_to_all", comm.all_to_all(big, big2, stream), 60'000 * others, 60'000 * others);
    check("broadcast", comm.broadcast(small, 0, stream), rank.index() == 0 ? 60'000 * others : 0,
          rank.index() == 0 ? 0 : 60'000);
  });
}

TEST_P(Collectives, BarrierReturnsAfterAllRanksArrive) {
  std::atomic<int> come{0};
  run_members(n, [&](Rank& rank) {
    Communicator& comm = rank.join("tensor");
    for (int round = 1; round <= 20; ++round) {
      come.fetch_add(1);
      comm.barrier(Rank::deadline());
      EXPECT_GE(come.load(), round * n);
      comm.barrier(Rank::deadline());
    }
  });
}

TEST(Groups, OfAllAxesWorkSideBySide) {
  run_members(Layout::ptd(2, 2, 2), [](Rank& rank) {
    const Groups groups = rank.join_axes();
    std::vector<TensorView> views;
    std::vector<Work> works;
    std::vector<std::unique_ptr<Stream>> streams;
    for (const char* axis : {"tensor", "data", "pipeline"}) {
      streams.push_back(rank.device().make_stream(axis));
      views.push_back(rank.tensor<std::int32_t>(DType::i32, {1}, {1 << rank.index()}));
      works.push_back(groups.find(axis)->all_reduce(views.back(), views.back(), Reduce::sum, *streams.back()));
    }
    for (const Work& work : works) rank.wait(work);
    for (std::size_t i = 0; i < 3; ++i) {
      const char* axis = i == 0 ? "tensor" : i == 1 ? "data" : "pipeline";
      int sum = 0;
      for (const int member : rank.layout().group(rank.index(), axis).ranks) sum += 1 << member;
      EXPECT_EQ(rank.values<std::int32_t>(views[i]).front(), sum) << axis;
    }
  });
}

} // namespace
