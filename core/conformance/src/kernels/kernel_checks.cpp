// SPDX-License-Identifier: Apache-2.0
// The tables together, and the checks of each operation: its cases, compared with its formula.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <set>
#include <string_view>

#include "kernel_check_tables.hpp"
#include "triax/conformance/clause.hpp"

namespace triax::conformance {

namespace {

using cases::OperationCase;

constexpr DType kComputeTypes[] = {DType::f32, DType::f64, DType::bf16, DType::f16};

DType master_of(DType compute) {
  return compute == DType::f64 ? DType::f64 : DType::f32;
}

struct NamedOperation {
  Op op;
  const char* arguments; // "AttentionFwd"
};
constexpr NamedOperation kOperations[] = {
#define TRIAX_OP(Args, name) {Op::name, #Args},
    TRIAX_OPERATIONS(TRIAX_OP)
#undef TRIAX_OP
};

/// The clause of an operation is the comment of its arguments.
std::string clause_of(const NamedOperation& operation) {
  const auto all = clauses();
  const auto found = std::ranges::find_if(
      all, [&](const Clause& clause) { return std::string_view(clause.of) == operation.arguments; });
  TRIAX_REQUIRE(found != all.end(), "the comment of {} has no id of a clause", operation.arguments);
  return found->id;
}

void is_its_formula(const KernelSubject& subject, Op op, Report& report) {
  KernelSession session(subject.kernels());
  int compared = 0;
  for_cases(subject, CaseSize::any, [&](const OperationCase& one) {
    if (one.in_place || cases::op_of(one) != op) return;
    const cases::CaseRun run = session.run(one);
    if (!run.refusals.empty()) return;
    ++compared;
    const std::string differs =
        cases::differences(one, run.results, cases::formula_results(one), cases::tolerance_of(one));
    report.expect(differs.empty(), "{}: {}", to_text(one), differs);
    expect_clean(report, one, run);
  });
  report.expect(compared > 0, "supports() refuses every case of {}", name_of(op));
}

Check operation_check(const std::shared_ptr<const KernelSubject>& subject, const NamedOperation& operation) {
  return {text("{}.IsItsFormula", operation.arguments), clause_of(operation),
          [subject, op = operation.op] {
            if (std::string reason = unless_computes(*subject); !reason.empty()) return reason;
            const auto refused = subject->answers.refused.find(std::string(name_of(op)));
            if (refused == subject->answers.refused.end()) return std::string();
            return text("{} refuses {}: {}", subject->name, name_of(op), refused->second);
          },
          [subject, op = operation.op](Report& report) { is_its_formula(*subject, op, report); }};
}

/// FLOPs and elements. Medium leaves out long sequences.
double max_cost(CaseSize size) {
  switch (size) {
    case CaseSize::small:
      return 60'000;
    case CaseSize::medium:
      return 3'000'000;
    case CaseSize::any:
      return std::numeric_limits<double>::infinity();
  }
  return 0;
}

std::string unless_on_host(const KernelSubject& subject) {
  if (subject.answers.device == DeviceKind::host) return {};
  return text("the device is {}", name_of(subject.answers.device));
}

} // namespace

KernelAnswers ask_kernels(KernelSet& kernels, const CallGuard& guard) {
  const auto ask = [&guard](const char* function, const char* clause, const auto& call) {
    return probe(guard, {KernelSet::kKind, function, clause}, call);
  };
  KernelAnswers out{ask("device_kind", "K4", [&] { return kernels.device_kind(); }),
                    ask("computes", "", [&] { return kernels.computes(); }),
                    {},
                    {},
                    false};
  std::set<std::string> accepted;
  for (const DType type : kComputeTypes) {
    const KernelRequest request{type, master_of(type)};
    if (!ask("supports", "K1", [&] { return kernels.supports(request); }).empty()) continue;
    out.types.push_back(type);
    for (const OperationCase& one : cases::operation_cases(type))
      cases::plan_case(one, [&](const OpCall& call) {
        const Refusals answer = ask("supports", "K2", [&] { return kernels.supports(call); });
        const std::string name(name_of(call.op));
        if (answer.empty()) accepted.insert(name);
        if (!answer.empty()) out.refused.emplace(name, answer.front().message);
      });
  }
  std::erase_if(out.refused, [&](const auto& refused) { return accepted.contains(refused.first); });
  out.repeats = ask("repeats", "K56", [&] { return has_repeats(kernels, out.types); });
  return out;
}

std::string unless_computes(const KernelSubject& subject) {
  return subject.answers.computes ? "" : text("{} models the time of operations, but computes nothing", subject.name);
}

std::string unless_counted_on_host(const KernelSubject& subject) {
  if (!subject.allocations) return "allocations are not counted in this program";
  return unless_on_host(subject);
}

std::string unless_on_device(const KernelSubject& subject) {
  if (std::string reason = unless_computes(subject); !reason.empty()) return reason;
  return subject.answers.device == DeviceKind::host
             ? "on the host, the core waits for the stream before it calls the kernel set"
             : "";
}

std::string unless_threads(const KernelSubject& subject) {
  if (std::string reason = unless_computes(subject); !reason.empty()) return reason;
  return subject.with_threads ? "" : text("{} has no option for threads", subject.name);
}

void for_cases(const KernelSubject& subject, CaseSize size, const std::function<void(const OperationCase&)>& body) {
  const Object<KernelSet> asked = subject.kernels();
  for (const DType type : subject.answers.types)
    for (const OperationCase& one : cases::operation_cases(type)) {
      if (cases::cost_of(one) > max_cost(size)) continue;
      bool is_refused = false;
      cases::plan_case(one, [&](const OpCall& call) { is_refused = is_refused || !asked->supports(call).empty(); });
      if (!is_refused) body(one);
    }
}

void for_small_cases(const KernelSubject& subject, const std::function<void(const OperationCase&)>& body) {
  if (subject.answers.device == DeviceKind::host || subject.answers.types.empty())
    return for_cases(subject, CaseSize::small, body);
  KernelSubject one_type = subject;
  one_type.answers.types.resize(1);
  for_cases(one_type, CaseSize::small, body);
}

void expect_equal_bits(Report& report, const std::string& what, const cases::CaseResults& got,
                       const cases::CaseResults& want) {
  for (const auto& [name, values] : want)
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double value = got.at(name)[i];
      if (std::bit_cast<std::uint64_t>(value) == std::bit_cast<std::uint64_t>(values[i])) continue;
      report.fail(text("{}: element {} of {} is {}, must be {}", what, i, name, value, values[i]));
      return;
    }
}

void expect_clean(Report& report, const OperationCase& one, const cases::CaseRun& run) {
  for (const std::string& name : run.inputs_written) report.fail(text("{}: writes its input {}", to_text(one), name));
  for (const std::string& name : run.written_beside) report.fail(text("{}: writes beside {}", to_text(one), name));
  for (const std::string& overrun : run.scratch_overruns)
    report.fail(text("{}: {} of scratch writes beside them", to_text(one), overrun));
}

std::vector<Check> operation_checks(const KernelSubject& subject) {
  const auto shared = std::make_shared<const KernelSubject>(subject);
  std::vector<Check> out;
  out.reserve(std::size(kOperations));
  for (const NamedOperation& operation : kOperations) out.push_back(operation_check(shared, operation));
  return out;
}

std::vector<Check> kernel_checks(const KernelSubject& subject) {
  std::vector<Check> out;
  const auto add = [&](const std::vector<Check>& checks) { out.insert(out.end(), checks.begin(), checks.end()); };
  for (const auto table : {kernel_request_checks(), kernel_memory_checks(), kernel_value_checks(),
                           cases::kernel_derivative_checks(), kernel_bit_checks(), cases::kernel_dropout_checks()})
    add(bind_checks(table, subject));
  add(operation_checks(subject));
  return out;
}

} // namespace triax::conformance
