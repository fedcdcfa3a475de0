// SPDX-License-Identifier: Apache-2.0
// Answers before the first call: types, single calls, dry runs, the device.
#include <string>
#include <vector>

#include "kernel_check_tables.hpp"
#include "refusal_check.hpp"

namespace triax::conformance {

namespace {

using cases::OperationCase;

constexpr DType kEveryRequestType[] = {DType::f32, DType::f64, DType::bf16, DType::f16,
                                       DType::i32, DType::i64, DType::u8};
constexpr DType kEveryDataType[] = {DType::f32, DType::f64, DType::bf16, DType::f16};

bool are_equal(const Refusals& a, const Refusals& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

/// Keys may be missing: the core then names the plugin.
void check_kernel_reasons(const Refusals& refusals, const std::string& at, Report& report) {
  for (const Refusal& refusal : refusals) {
    report.expect(!refusal.message.empty(), "{}: a refusal has no message", at);
    for (const std::string& key : refusal.keys)
      report.expect(is_full_key(key), "{}: the refusal \"{}\" has the key \"{}\", must be a full name such as \"{}\"",
                    at, refusal.message, key, "train.precision");
  }
}

void requests_are_answered(const KernelSubject& subject, Report& report) {
  const Object<KernelSet> one = subject.kernels(), other = subject.kernels();
  int accepted = 0;
  for (const DType compute : kEveryRequestType)
    for (const DType master : kEveryRequestType) {
      const KernelRequest request{compute, master};
      const std::string at = text("{} with master weights in {}", name_of(compute), name_of(master));
      Refusals answer;
      const std::string error = error_of([&] { answer = one->supports(request); });
      report.expect(error.empty(), "{}: supports() throws \"{}\"; it must return refusals", at, error);
      if (!error.empty()) continue;
      check_kernel_reasons(answer, at, report);
      report.expect(are_equal(answer, one->supports(request)) && are_equal(answer, other->supports(request)),
                    "{}: supports() answers differently from call to call, or from object to object", at);
      accepted += answer.empty() && is_floating(compute) && is_floating(master);
    }
  report.expect(accepted > 0, "supports() accepts no floating type");
}

void calls_are_refused_with_reasons(const KernelSubject& subject, Report& report) {
  const Object<KernelSet> one = subject.kernels(), other = subject.kernels();
  for (const DType type : kEveryDataType)
    for (const OperationCase& each : cases::operation_cases(type))
      cases::plan_case(each, [&](const OpCall& call) {
        Refusals answer;
        const std::string error = error_of([&] { answer = one->supports(call); });
        report.expect(error.empty(), "{}: supports() throws \"{}\"; it must return refusals", to_text(each), error);
        if (!error.empty()) return;
        check_kernel_reasons(answer, to_text(each), report);
        report.expect(are_equal(answer, one->supports(call)) && are_equal(answer, other->supports(call)),
                      "{}: supports() answers differently from call to call, or from object to object", to_text(each));
      });
}

/// The answers that a dry run gets about each call of a case, on views without data.
struct PlannedCalls {
  std::vector<std::size_t> scratch;

  PlannedCalls(KernelSet& set, const OperationCase& one) {
    cases::plan_case(one, [&](const OpCall& call) {
      scratch.push_back(set.scratch_bytes(call));
      set.prepare(call);
    });
  }
};

void dry_run_needs_no_memory(const KernelSubject& subject, Report& report) {
  const Object<KernelSet> not_started = subject.kernels();
  KernelSession session(subject.kernels());
  for_small_cases(subject, [&](const OperationCase& one) {
    const std::string error = error_of([&] { PlannedCalls(*not_started, one); });
    report.expect(error.empty(), "{}: a dry run before start() fails: {}", to_text(one), error);
    const PlannedCalls planned(session.set(), one);
    cases::CaseSetup setup;
    std::size_t index = 0;
    setup.issue = [&](const OpCall& call, const OpContext&) {
      const std::size_t bytes = session.set().scratch_bytes(call), without_data = planned.scratch.at(index++);
      report.expect(bytes == without_data, "{}: scratch_bytes() of {} is {}, but {} on views without data",
                    to_text(one), name_of(call.op), bytes, without_data);
    };
    session.run(one, setup);
  });
}

void device_is_of_its_kind(const KernelSubject& subject, Report& report) {
  std::unique_ptr<Device> device; // outlives the set
  const Object<KernelSet> set = subject.kernels();
  const DeviceKind kind = set->device_kind();
  device = set->make_device({});
  report.expect(device != nullptr, "make_device() returns no device");
  if (!device) return;
  report.expect(device->kind() == kind, "make_device() creates a {} device, but device_kind() is {}",
                name_of(device->kind()), name_of(kind));
  report.expect(set->threads() >= 1, "threads() is {}, must be at least 1", set->threads());
  set->start(*device);
  report.expect(set->device_kind() == kind, "device_kind() is {} after start(), but {} before",
                name_of(set->device_kind()), name_of(kind));
}

constexpr KernelCheck kKernelRequestChecks[] = {
    {"Request.IsAcceptedOrRefusedWithReasons", "K1", nullptr, requests_are_answered},
    {"Calls.AreRefusedWithReasons", "K2", nullptr, calls_are_refused_with_reasons},
    {"DryRun.NeedsNoMemory", "K3", nullptr, dry_run_needs_no_memory},
    {"Device.IsOfTheKind", "K4", nullptr, device_is_of_its_kind},
};

} // namespace

std::span<const KernelCheck> kernel_request_checks() {
  return kKernelRequestChecks;
}

} // namespace triax::conformance
