// SPDX-License-Identifier: Apache-2.0
// Memory that operations read and write: outputs, inputs, scratch memory, the heap.
#include <string>

#include "kernel_check_tables.hpp"

namespace triax::conformance {

namespace {

using cases::CaseRun;
using cases::CaseSetup;
using cases::OperationCase;

void writes_only_its_outputs(const KernelSubject& subject, Report& report) {
  KernelSession session(subject.kernels());
  for_small_cases(subject, [&](const OperationCase& one) {
    CaseRun run = session.run(one);
    run.scratch_overruns.clear(); // another check
    expect_clean(report, one, run);
  });
}

void kernel_scratch_is_enough(const KernelSubject& subject, Report& report) {
  KernelSession session(subject.kernels());
  for_small_cases(subject, [&](const OperationCase& one) {
    for (const std::string& overrun : session.run(one).scratch_overruns)
      report.fail(text("{}: {} of scratch writes beside them", to_text(one), overrun));
  });
}

/// Runs every small case twice, with setups that must not make a difference.
void expect_no_difference(const KernelSubject& subject, const CaseSetup& changed, const char* what, Report& report) {
  KernelSession session(subject.kernels());
  for_small_cases(subject, [&](const OperationCase& one) {
    const CaseRun plain = session.run(one);
    expect_equal_bits(report, text("{}, {}", to_text(one), what), session.run(one, changed).results, plain.results);
  });
}

void scratch_is_written_first(const KernelSubject& subject, Report& report) {
  CaseSetup zeros;
  zeros.zero_scratch = true;
  expect_no_difference(subject, zeros, "if scratch memory holds zeros instead of NaN", report);
}

void kernel_outputs_are_not_read(const KernelSubject& subject, Report& report) {
  CaseSetup zeros;
  zeros.zero_outputs = true;
  expect_no_difference(subject, zeros, "if outputs hold zeros instead of NaN", report);
}

void operations_do_not_allocate(const KernelSubject& subject, Report& report) {
  constexpr int kCounted = 3;
  KernelSession session(subject.kernels());
  for_small_cases(subject, [&](const OperationCase& one) {
    CaseSetup setup;
    setup.issue = [&](const OpCall& call, const OpContext& context) {
      session.set().issue(call, context);
      const std::size_t before = subject.allocations();
      for (int i = 0; i < kCounted; ++i) session.set().issue(call, context);
      const std::size_t allocated = subject.allocations() - before;
      report.expect(allocated == 0, "{}: {} allocations in {} calls of {}, after the first call", to_text(one),
                    allocated, kCounted, name_of(call.op));
    };
    session.run(one, setup);
  });
}

constexpr KernelCheck kKernelMemoryChecks[] = {
    {"Memory.OnlyOutputsAreWritten", "K5", nullptr, writes_only_its_outputs},
    {"Scratch.IsEnough", "K6", nullptr, kernel_scratch_is_enough},
    {"Scratch.IsWrittenBeforeItIsRead", "K7", unless_computes, scratch_is_written_first},
    {"Outputs.AreNotRead", "K8", unless_computes, kernel_outputs_are_not_read},
    {"SteadyState.DoesNotAllocate", "K9", unless_counted_on_host, operations_do_not_allocate},
};

} // namespace

std::span<const KernelCheck> kernel_memory_checks() {
  return kKernelMemoryChecks;
}

} // namespace triax::conformance
