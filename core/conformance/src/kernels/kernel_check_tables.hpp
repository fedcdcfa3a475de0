// SPDX-License-Identifier: Apache-2.0
// The tables of the kernel suite, and helpers that their source files share.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "triax/conformance/kernel_checks.hpp"
#include "triax/conformance/operation_cases.hpp"

namespace triax::conformance {

using KernelCheck = CheckOf<KernelSubject>;

std::span<const KernelCheck> kernel_request_checks();
std::span<const KernelCheck> kernel_memory_checks();
std::span<const KernelCheck> kernel_bit_checks();
std::span<const KernelCheck> kernel_value_checks();
namespace cases { // these define other cases
std::span<const KernelCheck> kernel_derivative_checks();
std::span<const KernelCheck> kernel_dropout_checks();
} // namespace cases
/// One for each operation.
std::vector<Check> operation_checks(const KernelSubject& subject);

/// Whether the set computes a fused operation and primitives that repeat it with equal bits.
bool has_repeats(KernelSet& set, std::span<const DType> types);

/// Reasons why a check does not apply; empty if it does.
std::string unless_computes(const KernelSubject& subject);
std::string unless_counted_on_host(const KernelSubject& subject);
std::string unless_on_device(const KernelSubject& subject);
std::string unless_threads(const KernelSubject& subject);

/// A kernel set on the device that it makes.
class KernelSession {
 public:
  explicit KernelSession(Object<KernelSet> set) : set_(std::move(set)) {
    device_ = set_->make_device({});
    set_->start(*device_);
  }
  KernelSession(const KernelSession&) = delete;
  KernelSession& operator=(const KernelSession&) = delete;
  ~KernelSession() { set_.reset(); } // before its device

  KernelSet& set() { return *set_; }
  Device& device() { return *device_; }
  cases::CaseRun run(const cases::OperationCase& one, cases::CaseSetup setup = {}) {
    setup.dtype = one.dtype;
    return cases::observe_case(*set_, *device_, one, setup);
  }

 private:
  std::unique_ptr<Device> device_;
  Object<KernelSet> set_;
};

/// "bf16 gemm/1x1x1"
inline std::string to_text(const cases::OperationCase& one) {
  return text("{} {}", name_of(one.dtype), one.name);
}

/// Which cases a check runs, by their cost. Only the checks of operations run all of them.
enum class CaseSize { any, medium, small };

/// Calls the body with every case in every type that the set accepts, except calls that it refuses.
void for_cases(const KernelSubject& subject, CaseSize size,
               const std::function<void(const cases::OperationCase&)>& body);
/// Small cases: on the host in every type, on other devices in the first type, because the GPU stand-in is slow.
void for_small_cases(const KernelSubject& subject, const std::function<void(const cases::OperationCase&)>& body);

/// Fails with the first tensor and element whose bits differ.
void expect_equal_bits(Report& report, const std::string& what, const cases::CaseResults& got,
                       const cases::CaseResults& want);
/// Fails if the run wrote anything that it may not.
void expect_clean(Report& report, const cases::OperationCase& one, const cases::CaseRun& run);

} // namespace triax::conformance
