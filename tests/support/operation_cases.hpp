// SPDX-License-Identifier: Apache-2.0
// Cases for every operation of a kernel set, and the comparison of a set with the reference on them.
//
//   for (const OperationCase& one : operation_cases(DType::f32)) {
//     EXPECT_EQ(compare(tested, device, reference, one, 1e-5), "") << one.name;
//   }
//
// Ownership: cases are values; a comparison allocates on the devices and frees again. Blocking: yes. The reference gets
// the same (rounded) inputs in f64. Outputs start as NaN. Every view is in a larger block of NaN, which must not
// change, so reads and writes outside the views are detected.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "triax/kernels.hpp"

namespace triax::test {

enum class Role { in, out, in_out };
/// Type of a tensor: the case's type, the type of its statistics, or its own type.
enum class Kind { data, statistic, own };

struct CaseTensor {
  std::string name{};
  Role role = Role::in;
  Shape shape{};
  Kind kind = Kind::data;
  DType dtype = DType::f32;     // if kind is own
  std::int64_t padding = 0;     // elements between rows of the last dimension; nonzero: a strided view
  std::vector<double> values{}; // in row order; if empty, drawn from the case's seed
  double low = -1.5, high = 1.5;
};

class CaseViews {
 public:
  const TensorView& operator[](const std::string& name) const { return views_.at(name); }
  void set(const std::string& name, const TensorView& view) { views_[name] = view; }

 private:
  std::map<std::string, TensorView> views_;
};

/// Passed to a case, which calls it with the argument struct that it builds from the views.
class UseCall {
 public:
  explicit UseCall(std::function<void(const OpCall&)> use) : use_(std::move(use)) {}
  template <class Args>
  void operator()(const Args& args) const {
    use_(call_of(args));
  }

 private:
  std::function<void(const OpCall&)> use_;
};

struct OperationCase {
  std::string name; // such as "gemm/transposed b"
  DType dtype = DType::f32;
  std::vector<CaseTensor> tensors;
  std::function<void(const CaseViews&, const UseCall&)> build;
};

/// Every operation, primitive and fused, with several shapes each. f32, f64, or a 16-bit type.
std::vector<OperationCase> operation_cases(DType dtype);
std::vector<OperationCase> primitive_cases(DType dtype);
std::vector<OperationCase> fused_cases(DType dtype);

/// Results of an operation: out and in_out tensors by name, in row order.
using CaseResults = std::map<std::string, std::vector<double>>;

/// Runs `one` on a set in the given type. Throws Error if the set refuses it, or if it wrote outside its views. Views
/// start `shift` elements after a multiple of 256 bytes.
CaseResults run_case(KernelSet& set, Device& device, const OperationCase& one, DType dtype, std::int64_t shift = 0);

/// The results of a set on the host, in f64.
CaseResults reference_results(KernelSet& reference, const OperationCase& one);
/// Empty if every result is within `tolerance` times the largest magnitude of the tensor that is wanted; otherwise a
/// description of the differences.
std::string differences(const CaseResults& got, const CaseResults& want, double tolerance);
/// Empty if every result of `tested` is within `tolerance` times the largest magnitude of the reference's tensor in
/// f64; otherwise a description of the differences.
std::string compare(KernelSet& tested, Device& device, KernelSet& reference, const OperationCase& one, double tolerance,
                    std::int64_t shift = 0);

/// The step scalars as a tensor of bytes, for cases of optimizers and of the loss gradient.
CaseTensor scalars_tensor(const StepScalars& scalars);
inline const StepScalars* scalars_of(const CaseViews& views) {
  return views["scalars"].as<const StepScalars>();
}

} // namespace triax::test
