// SPDX-License-Identifier: Apache-2.0
// Reductions: values, bits, types and sizes.
#include <cstdint>
#include <string>
#include <vector>

#include "collective_values.hpp"
#include "communicator_check_tables.hpp"

namespace triax::conformance {

namespace {

/// 0, 1, even, odd, not a multiple of any group, and above the thresholds at which transports change their protocol.
constexpr std::int64_t kSizes[] = {0, 1, 2, 3, 7, 64, 1501, 20'003};
constexpr std::int64_t kLargeSize = 300'007;

std::string call_text(const char* name, DType dtype, std::int64_t elements, Reduce reduce, int members) {
  return text("{} of {} {} ({}) in a group of {}", name, elements, name_of(dtype),
              reduce == Reduce::sum ? "sum" : "max", members);
}

template <class T>
void all_reduce_of(Rank& rank, Communicator& comm, std::int64_t elements, Reduce reduce, Values values) {
  const DType dtype = dtype_of<T>();
  const std::string what = call_text("all_reduce", dtype, elements, reduce, comm.size());
  const TensorView in = rank.tensor(dtype, {elements}, input_of<T>(comm.rank(), elements, values));
  const TensorView out = rank.tensor(dtype, {elements});
  const std::vector<T> expected = reduced<T>(comm.size(), elements, reduce, values);
  rank.wait(comm.all_reduce(in, out, reduce, rank.stream()));
  expect_elements(rank, what, out, expected);
  expect_elements(rank, what + ", its `in` afterwards", in, input_of<T>(comm.rank(), elements, values));
  rank.wait(comm.all_reduce(in, in, reduce, rank.stream()));
  expect_elements(rank, what + ", in place", in, expected);
}

void all_reduce(const CommunicatorSubject& subject, Report& report) {
  for_groups(subject, report, [](Rank& rank, Communicator& comm) {
    for (const DType dtype : kReducedTypes)
      with_type(dtype, [&]<class T>(T) {
        for (const Reduce reduce : {Reduce::sum, Reduce::max})
          for (const std::int64_t elements : kSizes) all_reduce_of<T>(rank, comm, elements, reduce, Values::exact);
      });
    all_reduce_of<float>(rank, comm, kLargeSize, Reduce::sum, Values::exact);
  });
}

void all_reduce_in_rank_order(const CommunicatorSubject& subject, Report& report) {
  for_groups(subject, report, [](Rank& rank, Communicator& comm) {
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16})
      with_type(dtype, [&]<class T>(T) {
        for (const std::int64_t elements : kSizes) all_reduce_of<T>(rank, comm, elements, Reduce::sum, Values::rounded);
      });
    all_reduce_of<float>(rank, comm, kLargeSize, Reduce::sum, Values::rounded);
  });
}

void integers_wrap(const CommunicatorSubject& subject, Report& report) {
  for_groups(subject, report, [](Rank& rank, Communicator& comm) {
    for (const std::int64_t elements : {5, 20'003}) {
      all_reduce_of<std::int32_t>(rank, comm, elements, Reduce::sum, Values::rounded);
      all_reduce_of<std::int64_t>(rank, comm, elements, Reduce::sum, Values::rounded);
      all_reduce_of<std::int64_t>(rank, comm, elements, Reduce::max, Values::rounded);
    }
  });
}

template <class T>
void reduce_scatter_of(Rank& rank, Communicator& comm, std::int64_t part, Reduce reduce, Values values) {
  const DType dtype = dtype_of<T>();
  const std::int64_t elements = part * comm.size();
  const std::string what = call_text("reduce_scatter", dtype, elements, reduce, comm.size());
  const TensorView in = rank.tensor(dtype, {elements}, input_of<T>(comm.rank(), elements, values));
  const TensorView out = rank.tensor(dtype, {part});
  const std::vector<T> all = reduced<T>(comm.size(), elements, reduce, values);
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(part * comm.rank());
  const std::vector<T> expected(begin, begin + static_cast<std::ptrdiff_t>(part));
  rank.wait(comm.reduce_scatter(in, out, reduce, rank.stream()));
  expect_elements(rank, what, out, expected);
  const TensorView place = in.slice(0, part * comm.rank(), part * (comm.rank() + 1));
  rank.wait(comm.reduce_scatter(in, place, reduce, rank.stream()));
  expect_elements(rank, what + ", in place", place, expected);
}

void reduce_scatter(const CommunicatorSubject& subject, Report& report) {
  for_groups(subject, report, [](Rank& rank, Communicator& comm) {
    for (const DType dtype : kReducedTypes)
      with_type(dtype, [&]<class T>(T) {
        for (const Reduce reduce : {Reduce::sum, Reduce::max})
          for (const std::int64_t part : {0, 1, 513, 20'003})
            reduce_scatter_of<T>(rank, comm, part, reduce, Values::exact);
      });
  });
}

void reduce_scatter_in_rank_order(const CommunicatorSubject& subject, Report& report) {
  for_groups(subject, report, [](Rank& rank, Communicator& comm) {
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16})
      with_type(dtype, [&]<class T>(T) {
        for (const std::int64_t part : {1, 513, 20'003})
          reduce_scatter_of<T>(rank, comm, part, Reduce::sum, Values::rounded);
      });
  });
}

/// FNV-1a of the bytes, for comparisons through the store.
std::string digest_of(const std::vector<std::byte>& bytes) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const std::byte one : bytes) hash = (hash ^ static_cast<std::uint64_t>(one)) * 0x100000001b3u;
  return to_text(hash);
}

void same_bits_on_all_members(const CommunicatorSubject& subject, Report& report) {
  for_groups(subject, report, [](Rank& rank, Communicator& comm) {
    for (const std::int64_t elements : {1, 1501, 60'001}) {
      const TensorView view = rank.tensor(DType::f32, {elements});
      rank.put(view, input_of<float>(comm.rank(), elements, Values::rounded));
      rank.wait(comm.all_reduce(view, view, Reduce::sum, rank.stream()));
      const std::string own = digest_of(rank.bytes(view));
      const auto key = [&](int member) { return text("bits of {} on {}", elements, member); };
      rank.store().set(key(comm.rank()), own);
      rank.expect(rank.store().get(key(0), rank.long_deadline()) == own,
                  "all_reduce of {} f32 (sum) in a group of {}: the bits differ from those of rank 0", elements,
                  comm.size());
    }
  });
}

/// Repeats a sum, alone and beside other calls that delay some members. `post` adds `in` over the group into `out`.
template <class Post>
void expect_equal_repeats(Rank& rank, Communicator& comm, const char* name, std::int64_t elements,
                          std::int64_t result_elements, const Post& post) {
  const std::unique_ptr<Stream> other = rank.device().make_stream("other");
  const TensorView in = rank.tensor(DType::f32, {elements}), out = rank.tensor(DType::f32, {result_elements});
  const TensorView beside = rank.tensor(DType::f32, {1000});
  rank.put(in, input_of<float>(comm.rank(), elements, Values::rounded));
  std::vector<std::byte> first;
  for (int repeat = 0; repeat < 12; ++repeat) {
    if (repeat % 3 == comm.rank() % 3) rank.progress(20);
    const Work extra = comm.all_reduce(beside, beside, Reduce::max, *other);
    rank.wait(post(in, out));
    rank.wait(extra);
    if (repeat == 0) first = rank.bytes(out);
    rank.expect(rank.bytes(out) == first, "{}: repeat {} differs",
                call_text(name, DType::f32, elements, Reduce::sum, comm.size()), repeat);
  }
}

void all_reduce_repeats(const CommunicatorSubject& subject, Report& report) {
  for_groups(subject, report, [](Rank& rank, Communicator& comm) {
    for (const std::int64_t elements : {257, 60'001})
      expect_equal_repeats(rank, comm, "all_reduce", elements, elements,
                           [&](const TensorView& in, const TensorView& out) {
                             return comm.all_reduce(in, out, Reduce::sum, rank.stream());
                           });
  });
}

void reduce_scatter_repeats(const CommunicatorSubject& subject, Report& report) {
  for_groups(subject, report, [](Rank& rank, Communicator& comm) {
    for (const std::int64_t part : {257, 20'003})
      expect_equal_repeats(rank, comm, "reduce_scatter", part * comm.size(), part,
                           [&](const TensorView& in, const TensorView& out) {
                             return comm.reduce_scatter(in, out, Reduce::sum, rank.stream());
                           });
  });
}

constexpr CommCheck kCollectiveChecks[] = {
    {"AllReduce.IsExactForEveryTypeAndSize", "C20", nullptr, all_reduce},
    {"AllReduce.AddsInRankOrder", "C21", unless_rank_order, all_reduce_in_rank_order},
    {"AllReduce.WrapsIntegers", "C20", nullptr, integers_wrap},
    {"AllReduce.GivesTheSameBitsToAllMembers", "C14", nullptr, same_bits_on_all_members},
    {"AllReduce.GivesTheSameBitsInRepeats", "C22", if_unspecified, all_reduce_repeats},
    {"ReduceScatter.GivesEachMemberItsPart", "C15", nullptr, reduce_scatter},
    {"ReduceScatter.AddsInRankOrder", "C21", unless_rank_order, reduce_scatter_in_rank_order},
    {"ReduceScatter.GivesTheSameBitsInRepeats", "C22", if_unspecified, reduce_scatter_repeats},
};

} // namespace

std::span<const CommCheck> collective_checks() {
  return kCollectiveChecks;
}

} // namespace triax::conformance
