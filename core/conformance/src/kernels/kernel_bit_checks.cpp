// SPDX-License-Identifier: Apache-2.0
// Equal bits: in repeated calls, other objects, at other addresses, with other threads, in the order of the stream.
#include <algorithm>
#include <string>
#include <vector>

#include "kernel_check_tables.hpp"

namespace triax::conformance {

namespace {

using cases::CaseResults;
using cases::CaseSetup;
using cases::OperationCase;

/// Small cases, and sums over more elements than one block of a kernel handles.
std::vector<OperationCase> repeated_cases(const KernelSubject& subject) {
  std::vector<OperationCase> out;
  for_small_cases(subject, [&](const OperationCase& one) { out.push_back(one); });
  if (std::ranges::find(subject.answers.types, DType::f32) != subject.answers.types.end())
    for (OperationCase& one : cases::large_sum_cases()) out.push_back(std::move(one));
  return out;
}

/// The second object computes in the reverse order: results must not depend on earlier calls.
void calls_give_equal_bits(const KernelSubject& subject, Report& report) {
  std::vector<OperationCase> all = repeated_cases(subject);
  std::vector<CaseResults> first;
  {
    KernelSession session(subject.kernels());
    for (const OperationCase& one : all) {
      first.push_back(session.run(one).results);
      expect_equal_bits(report, text("{}, called again", to_text(one)), session.run(one).results, first.back());
    }
  }
  KernelSession other(subject.kernels());
  for (std::size_t i = all.size(); i-- > 0;)
    expect_equal_bits(report, text("{}, in another object, after other calls", to_text(all[i])),
                      other.run(all[i]).results, first[i]);
}

constexpr std::int64_t kAlignedShift = 256; // elements: a multiple of 256 bytes in every type

void addresses_give_equal_bits(const KernelSubject& subject, Report& report) {
  KernelSession session(subject.kernels());
  CaseSetup elsewhere;
  elsewhere.shift = kAlignedShift;
  for_cases(subject, CaseSize::small, [&](const OperationCase& one) {
    expect_equal_bits(report, text("{}, {} elements further on", to_text(one), kAlignedShift),
                      session.run(one, elsewhere).results, session.run(one).results);
  });
}

bool is_elementwise(Op op) {
  switch (op) {
    case Op::bias_add:
    case Op::add:
    case Op::dropout:
    case Op::act_fwd:
    case Op::act_bwd:
    case Op::rope:
    case Op::embed_fwd:
    case Op::scale:
    case Op::adamw:
    case Op::sgd:
    case Op::bias_dropout_add:
    case Op::multi_adamw:
      return true;
    default:
      return false;
  }
}

/// A shift moves elements between the vectors and the tail of a loop.
void elements_have_their_bits_anywhere(const KernelSubject& subject, Report& report) {
  KernelSession session(subject.kernels());
  for_cases(subject, CaseSize::small, [&](const OperationCase& one) {
    if (!is_elementwise(cases::op_of(one))) return;
    const CaseResults aligned = session.run(one).results;
    for (const std::int64_t shift : {1, 3, 13}) {
      CaseSetup setup;
      setup.shift = shift;
      expect_equal_bits(report, text("{}, {} elements after a multiple of 256 bytes", to_text(one), shift),
                        session.run(one, setup).results, aligned);
    }
  });
}

void threads_give_equal_bits(const KernelSubject& subject, Report& report) {
  KernelSession alone(subject.with_threads(1)), two(subject.with_threads(2)), three(subject.with_threads(3)),
      four(subject.with_threads(4));
  for_cases(subject, CaseSize::any, [&](const OperationCase& one) {
    const CaseResults want = alone.run(one).results;
    int threads = 2;
    for (KernelSession* const session : {&two, &three, &four})
      expect_equal_bits(report, text("{}, with {} threads instead of 1", to_text(one), threads++),
                        session->run(one).results, want);
  });
}

/// The inputs come on the stream when the calls are already enqueued. Each case runs before, so that modules are
/// loaded.
void streams_keep_their_order(const KernelSubject& subject, Report& report) {
  KernelSession session(subject.kernels());
  CaseSetup late;
  late.late_inputs = true;
  for_small_cases(subject, [&](const OperationCase& one) {
    const CaseResults want = session.run(one).results;
    expect_equal_bits(report, text("{}, if earlier work of the stream writes the inputs", to_text(one)),
                      session.run(one, late).results, want);
  });
}

constexpr KernelCheck kKernelBitChecks[] = {
    {"Bits.AreEqualInEveryCallAndObject", "K15", unless_computes, calls_give_equal_bits},
    {"Bits.AreEqualAtEveryAlignedAddress", "K16", unless_computes, addresses_give_equal_bits},
    {"Bits.OfAnElementAreEqualAnywhere", "K17", unless_computes, elements_have_their_bits_anywhere},
    {"Bits.AreEqualWithEveryNumberOfThreads", "K18", unless_threads, threads_give_equal_bits},
    {"Stream.OrderIsKept", "K19", unless_on_device, streams_keep_their_order},
};

} // namespace

std::span<const KernelCheck> kernel_bit_checks() {
  return kKernelBitChecks;
}

} // namespace triax::conformance
