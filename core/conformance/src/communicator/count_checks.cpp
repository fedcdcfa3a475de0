// SPDX-License-Identifier: Apache-2.0
// Counts of operations and bytes.
#include <cstdint>

#include "communicator_check_tables.hpp"

namespace triax::conformance {

namespace {

/// Compares the counts after each call with the sums of what the calls so far must count.
class CountedCalls {
 public:
  CountedCalls(Rank& rank, Communicator& comm) : rank_(rank), comm_(comm) {}

  void expect(const char* name, const Work& work, std::uint64_t out, std::uint64_t in) {
    rank_.wait(work);
    expected_.ops += 1;
    expected_.bytes_out += out;
    expected_.bytes_in += in;
    const CommStats& stats = comm_.stats();
    rank_.expect(
        stats.ops == expected_.ops && stats.bytes_out == expected_.bytes_out && stats.bytes_in == expected_.bytes_in,
        "after {}: ops, bytes_out and bytes_in are {}, {} and {}; must be {}, {} and {}", name, stats.ops,
        stats.bytes_out, stats.bytes_in, expected_.ops, expected_.bytes_out, expected_.bytes_in);
    expected_ = stats; // so that one wrong count is reported once
  }

 private:
  Rank& rank_;
  Communicator& comm_;
  CommStats expected_;
};

void bytes_of_calls(const CommunicatorSubject& subject, Report& report) {
  for_groups(subject, report, [](Rank& rank, Communicator& comm) {
    const int n = comm.size();
    const auto others = static_cast<std::uint64_t>(n - 1);
    constexpr std::int64_t kPart = 20'000; // elements; all buffers are above 64 KiB
    constexpr std::uint64_t kBytes = 4 * kPart;
    const TensorView big = rank.tensor(DType::f32, {kPart * n}), small = rank.tensor(DType::f32, {kPart});
    const TensorView big2 = rank.tensor(DType::f32, {kPart * n}), none = rank.tensor(DType::f32, {0});
    Stream& stream = rank.stream();
    CountedCalls calls(rank, comm);
    // 2(n-1)/n of the buffer, which has n parts
    calls.expect("all_reduce", comm.all_reduce(big, big, Reduce::sum, stream), 2 * kBytes * others,
                 2 * kBytes * others);
    calls.expect("reduce_scatter", comm.reduce_scatter(big, small, Reduce::sum, stream), kBytes * others,
                 kBytes * others);
    calls.expect("all_gather", comm.all_gather(small, big, stream), kBytes * others, kBytes * others);
    calls.expect("all_to_all", comm.all_to_all(big, big2, stream), kBytes * others, kBytes * others);
    const bool is_root = comm.rank() == 0;
    calls.expect("broadcast", comm.broadcast(small, 0, stream), is_root ? kBytes * others : 0, is_root ? 0 : kBytes);
    calls.expect("all_reduce without elements", comm.all_reduce(none, none, Reduce::sum, stream), 0, 0);
  });
}

void bytes_of_transfers(const CommunicatorSubject& subject, Report& report) {
  for_groups(subject, report, [](Rank& rank, Communicator& comm) {
    const int n = comm.size(), next = (comm.rank() + 1) % n, before = (comm.rank() + n - 1) % n;
    const TensorView out = rank.tensor(DType::f32, {3}), in = rank.tensor(DType::f32, {3});
    const Transfer set[] = {send(next, out), receive(before, in)};
    Stream& stream = rank.stream();
    CountedCalls calls(rank, comm);
    calls.expect("an exchange of 3 f32 both ways", comm.exchange(set, stream), 12, 12);
    calls.expect("an exchange without transfers", comm.exchange({}, stream), 0, 0);
    const Transfer sent = send(1, out), received = receive(0, in);
    const auto own = comm.rank() == 0   ? std::span<const Transfer>(&sent, 1)
                     : comm.rank() == 1 ? std::span<const Transfer>(&received, 1)
                                        : std::span<const Transfer>();
    calls.expect("a send from member 0 to member 1", comm.exchange(own, stream), comm.rank() == 0 ? 12 : 0,
                 comm.rank() == 1 ? 12 : 0);
  });
}

constexpr CommCheck kCountChecks[] = {
    {"Counts.OfCollectivesFollowTheFormulas", "C28", nullptr, bytes_of_calls},
    {"Counts.OfTransfersAreTheirViews", "C28", nullptr, bytes_of_transfers},
};

} // namespace

std::span<const CommCheck> count_checks() {
  return kCountChecks;
}

} // namespace triax::conformance
