// SPDX-License-Identifier: Apache-2.0
// Values in special arrangements: targets of "+=", outputs that are inputs, views at any address, working weights.
#include <algorithm>
#include <cmath>
#include <string>

#include "kernel_check_tables.hpp"
#include "triax/element_type.hpp"

namespace triax::conformance {

namespace {

using cases::CaseResults;
using cases::CaseRun;
using cases::CaseSetup;
using cases::CaseTensor;
using cases::OperationCase;
using cases::Role;

bool has_targets(Op op) {
  return op == Op::bias_bwd || op == Op::norm_bwd_weight || op == Op::embed_bwd || op == Op::linear_bwd_weight ||
         op == Op::attention_bwd;
}

bool is_target(const CaseTensor& tensor) {
  return tensor.role == Role::in_out;
}

OperationCase with_zero_targets(const OperationCase& one) {
  OperationCase out = one;
  for (CaseTensor& tensor : out.tensors)
    if (is_target(tensor)) tensor.values.assign(static_cast<std::size_t>(tensor.shape.elements()), 0.0);
  return out;
}

/// The target holds its old values plus what the call writes onto zeros.
void targets_are_added_to(const KernelSubject& subject, Report& report) {
  KernelSession session(subject.kernels());
  for_small_cases(subject, [&](const OperationCase& one) {
    if (!has_targets(cases::op_of(one)) || std::ranges::none_of(one.tensors, is_target)) return;
    const CaseResults results = session.run(one).results, alone = session.run(with_zero_targets(one)).results;
    for (const CaseTensor& tensor : one.tensors) {
      if (!is_target(tensor)) continue;
      std::vector<double> sum = cases::values_of(one, tensor);
      double terms = 0, sums = 0; // largest values: the terms are rounded, and the sum may be smaller
      for (std::size_t i = 0; i < sum.size(); ++i) {
        const double added = alone.at(tensor.name)[i];
        terms = std::max({terms, std::abs(sum[i]), std::abs(added)});
        sum[i] += added;
        sums = std::max(sums, std::abs(sum[i]));
      }
      const double factor = sums > 0 ? std::max(1.0, terms / sums) : 1;
      const std::string differs =
          cases::differences(one, results, {{tensor.name, sum}}, factor * cases::tolerance_of(one));
      report.expect(differs.empty(), "{}, the target's old values and what is added: {}", to_text(one), differs);
    }
  });
}

void expect_formula(Report& report, const OperationCase& one, const CaseRun& run, const std::string& what) {
  const std::string differs =
      cases::differences(one, run.results, cases::formula_results(one), cases::tolerance_of(one));
  report.expect(differs.empty(), "{}{}: {}", to_text(one), what, differs);
}

void outputs_may_be_inputs(const KernelSubject& subject, Report& report) {
  KernelSession session(subject.kernels());
  for_cases(subject, CaseSize::any, [&](const OperationCase& one) {
    if (one.in_place) expect_formula(report, one, session.run(one), "");
  });
}

void views_begin_at_any_element(const KernelSubject& subject, Report& report) {
  KernelSession session(subject.kernels());
  for_cases(subject, CaseSize::medium, [&](const OperationCase& one) {
    CaseSetup setup;
    setup.shift = 1;
    expect_formula(report, one, session.run(one, setup), ", one element after a multiple of 256 bytes");
  });
}

/// The first element of `working` that is not `master` rounded once.
std::string working_difference(DType type, const std::vector<double>& working, const std::vector<double>& master) {
  for (std::size_t i = 0; i < master.size(); ++i) {
    double rounded = master[i];
    with_type_among<float, Bf16, F16>(type,
                                      [&](auto zero) { rounded = static_cast<double>(decltype(zero)(master[i])); });
    if (working[i] != rounded)
      return text("element {} is {}, but the master weight {} rounds to {}", i, working[i], master[i], rounded);
  }
  return {};
}

void working_is_rounded_master(const KernelSubject& subject, Report& report) {
  KernelSession session(subject.kernels());
  for_cases(subject, CaseSize::any, [&](const OperationCase& one) {
    const Op op = cases::op_of(one);
    if (op != Op::adamw && op != Op::sgd && op != Op::multi_adamw) return;
    if (one.name.ends_with("skipped")) return; // nothing is written
    const CaseResults results = session.run(one).results;
    for (const CaseTensor& tensor : one.tensors) {
      const bool is_working = tensor.name == "working" || tensor.name.starts_with("w");
      if (!is_working) continue;
      const std::string master = tensor.name == "working" ? "p" : "p" + tensor.name.substr(1);
      const std::string differs =
          working_difference(cases::type_of(tensor, one.dtype), results.at(tensor.name), results.at(master));
      report.expect(differs.empty(), "{}, {}: {}", to_text(one), tensor.name, differs);
    }
  });
}

constexpr KernelCheck kKernelValueChecks[] = {
    {"Targets.AreAddedTo", "K10", unless_computes, targets_are_added_to},
    {"Outputs.MayBeInputs", "K11", unless_computes, outputs_may_be_inputs},
    {"Views.BeginAtAnyElement", "K12", unless_computes, views_begin_at_any_element},
    {"Working.IsTheRoundedMaster", "K13", unless_computes, working_is_rounded_master},
};

} // namespace

std::span<const KernelCheck> kernel_value_checks() {
  return kKernelValueChecks;
}

} // namespace triax::conformance
