// SPDX-License-Identifier: Apache-2.0
// Cases for every operation of a kernel set: calls with their tensors, and the results that the formulas give.
//
//   for (const OperationCase& one : operation_cases(DType::f32))
//     report.expect(compare(kernels, device, one).empty(), "{}", one.name);
//
// Inputs are rounded to the case's type, and the formulas get the rounded values in double. Outputs and scratch memory
// start as NaN. Every view is in a larger block of NaN, so that reads and writes outside the views are detected.
//
// Threads: one, that of the kernel set's rank. Ownership: cases are values; a run allocates on the device and frees
// again. Blocking: until the work on the device has completed. Errors: Error for what the kernel set throws, and where
// the functions say so.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "triax/kernels.hpp"

namespace triax::conformance::cases {

/// The use of a tensor by the calls of a case.
enum class Role { in, out, in_out };
/// Type of a tensor: the case's type, the type of its statistics, or its own type.
enum class Kind { data, statistic, own };

/// A tensor of a case.
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

/// The views of the tensors of a case, by name.
class CaseViews {
 public:
  const TensorView& operator[](const std::string& name) const { return views_.at(name); }
  /// Adds or replaces a view.
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

/// Calls of one operation, or of a few that belong together.
struct OperationCase {
  std::string name; // such as "gemm/transposed b"
  DType dtype = DType::f32;
  std::vector<CaseTensor> tensors;
  std::function<void(const CaseViews&, const UseCall&)> build;
  bool in_place = false; // an output is an input, where the operation allows that
};

/// Every operation, primitive and fused, with several shapes each. f32, f64, or a 16-bit type.
std::vector<OperationCase> operation_cases(DType dtype);
/// Those of primitives.
std::vector<OperationCase> primitive_cases(DType dtype);
/// Those of fused operations.
std::vector<OperationCase> fused_cases(DType dtype);
/// f32 sums over more rows and elements than one block of a kernel handles.
std::vector<OperationCase> large_sum_cases();

/// Calls `use` with the calls of a case, on views without data.
void plan_case(const OperationCase& one, const std::function<void(const OpCall&)>& use);
/// The operation that a case is for: the last of its calls.
Op op_of(const OperationCase& one);
/// FLOPs of the products of all calls, and elements of all tensors: what a run of the case costs.
double cost_of(const OperationCase& one);
/// Type of a tensor in a case with this type of data.
DType type_of(const CaseTensor& tensor, DType dtype);
/// Values of an input, before they are rounded to its type.
std::vector<double> values_of(const OperationCase& one, const CaseTensor& tensor);

/// Results of a case: out and in_out tensors by name, in row order.
using CaseResults = std::map<std::string, std::vector<double>>;

/// How a case is run.
struct CaseSetup {
  DType dtype = DType::f32;  // type of the data: the case's, or f64
  std::int64_t shift = 0;    // elements between a multiple of 256 bytes and the begin of a view
  bool zero_outputs = false; // outputs start as zeros instead of NaN
  bool zero_scratch = false; // scratch memory starts as zeros instead of NaN
  bool late_inputs = false;  // earlier stream work writes the inputs after the calls are enqueued; not on the host
  std::function<void(const OpCall&, const OpContext&)> issue; // empty: KernelSet::issue()
};

/// The outcome of a run of a case.
struct CaseRun {
  CaseResults results;
  Refusals refusals;                       // why supports() refuses the first refused call; then nothing was computed
  std::vector<std::string> inputs_written; // names of tensors
  std::vector<std::string> written_beside; // names of tensors
  std::vector<std::string> scratch_overruns;
};

/// Runs a case, and reports what is wrong as values.
CaseRun observe_case(KernelSet& set, Device& device, const OperationCase& one, const CaseSetup& setup);

/// Runs a case. Throws Error if the set refuses it, or if it wrote outside its views.
CaseResults run_case(KernelSet& set, Device& device, const OperationCase& one, DType dtype, std::int64_t shift = 0);

/// The results by the definitions of the operations, in double.
CaseResults formula_results(const OperationCase& one);

/// Largest allowed difference, relative to the largest value of a tensor. In 16 bits each operation rounds its outputs;
/// a fused operation rounds several times, and attention, which takes exponentials of rounded scores, many times.
double tolerance_of(const OperationCase& one);

/// Empty if every result is within `tolerance` times the largest magnitude of the tensor that is wanted, and integers
/// are equal; otherwise a description of the differences. Master weights and state of an update have at most the
/// tolerance of f32, also in a case with 16 bits.
std::string differences(const OperationCase& one, const CaseResults& got, const CaseResults& want, double tolerance);
/// Differences of a run on `tested` from the formulas. Throws as run_case().
std::string compare(KernelSet& tested, Device& device, const OperationCase& one, double tolerance,
                    std::int64_t shift = 0);
/// With tolerance_of() the case.
inline std::string compare(KernelSet& tested, Device& device, const OperationCase& one) {
  return compare(tested, device, one, tolerance_of(one));
}

/// The step scalars as a tensor of bytes, for cases of optimizers and of the loss gradient.
CaseTensor scalars_tensor(const StepScalars& scalars);
/// The view of scalars_tensor().
inline const StepScalars* scalars_of(const CaseViews& views) {
  return views["scalars"].as<const StepScalars>();
}

} // namespace triax::conformance::cases
