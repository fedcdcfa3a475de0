// SPDX-License-Identifier: Apache-2.0
// Short helpers for writing cases of operations.
//
// Threads: any. Ownership: values. Blocking, errors: none.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "triax/conformance/operation_cases.hpp"

namespace triax::conformance::cases {

/// The tensors of a case.
using Tensors = std::vector<CaseTensor>;

/// An input, with random values. `padding`: elements between its rows.
inline CaseTensor in(std::string name, Shape shape, std::int64_t padding = 0) {
  return {.name = std::move(name), .role = Role::in, .shape = shape, .padding = padding};
}
/// An output.
inline CaseTensor out(std::string name, Shape shape, std::int64_t padding = 0) {
  return {.name = std::move(name), .role = Role::out, .shape = shape, .padding = padding};
}
/// A tensor that the call reads and writes.
inline CaseTensor in_out(std::string name, Shape shape) {
  return {.name = std::move(name), .role = Role::in_out, .shape = shape};
}
/// An output of the type of statistics.
inline CaseTensor statistic_out(std::string name, Shape shape) {
  return {.name = std::move(name), .role = Role::out, .shape = shape, .kind = Kind::statistic};
}
/// A tensor whose type is not that of the case. Without `values` they are random.
inline CaseTensor own(std::string name, Role role, DType dtype, Shape shape, std::vector<double> values = {}) {
  return {.name = std::move(name),
          .role = role,
          .shape = shape,
          .kind = Kind::own,
          .dtype = dtype,
          .values = std::move(values)};
}
/// `count` tokens in [0, vocab), in an irregular order.
inline std::vector<double> tokens(std::int64_t count, std::int64_t vocab) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(static_cast<double>((i * i * 7 + i * 3 + 5) % vocab));
  return values;
}
/// The number of a sample. They do not follow each other: a kernel has to read each of them.
constexpr std::int64_t sample_number(std::int64_t first, std::int64_t index) {
  return first + index * (3 * index + 1);
}
/// Numbers of `count` samples, starting at `first`.
inline CaseTensor samples(std::int64_t count, std::int64_t first = 3) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(static_cast<double>(sample_number(first, i)));
  return own("samples", Role::in, DType::i64, {count}, std::move(values));
}

/// Collects cases of one type.
class CaseList {
 public:
  explicit CaseList(DType dtype) : dtype_(dtype) {}
  /// `build`: as OperationCase::build.
  template <class Build>
  void add(std::string name, Tensors tensors, Build build) {
    cases_.push_back({std::move(name), dtype_, std::move(tensors), std::move(build)});
  }
  /// A case in which an output is an input.
  template <class Build>
  void add_in_place(std::string name, Tensors tensors, Build build) {
    add(std::move(name), std::move(tensors), std::move(build));
    cases_.back().in_place = true;
  }
  /// The cases, once.
  std::vector<OperationCase> take() { return std::move(cases_); }
  /// Type of the data.
  DType dtype() const { return dtype_; }

 private:
  DType dtype_;
  std::vector<OperationCase> cases_;
};

/// Key of dropout in cases.
inline constexpr PhiloxKey kCaseKey = philox_key(1234, RandomPurpose::dropout);

} // namespace triax::conformance::cases
