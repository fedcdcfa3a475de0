// SPDX-License-Identifier: Apache-2.0
// Short helpers for writing the cases of operations.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "support/operation_cases.hpp"

namespace triax::test {

using Tensors = std::vector<CaseTensor>;

inline CaseTensor in(std::string name, Shape shape, std::int64_t padding = 0) {
  return {.name = std::move(name), .role = Role::in, .shape = shape, .padding = padding};
}
inline CaseTensor out(std::string name, Shape shape, std::int64_t padding = 0) {
  return {.name = std::move(name), .role = Role::out, .shape = shape, .padding = padding};
}
inline CaseTensor in_out(std::string name, Shape shape) {
  return {.name = std::move(name), .role = Role::in_out, .shape = shape};
}
inline CaseTensor statistic_out(std::string name, Shape shape) {
  return {.name = std::move(name), .role = Role::out, .shape = shape, .kind = Kind::statistic};
}
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
/// Numbers of `count` samples, starting at `first`.
inline CaseTensor samples(std::int64_t count, std::int64_t first = 3) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(static_cast<double>(first + i));
  return own("samples", Role::in, DType::i64, {count}, std::move(values));
}

class CaseList {
 public:
  explicit CaseList(DType dtype) : dtype_(dtype) {}
  template <class Build>
  void add(std::string name, Tensors tensors, Build build) {
    cases_.push_back({std::move(name), dtype_, std::move(tensors), std::move(build)});
  }
  std::vector<OperationCase> take() { return std::move(cases_); }
  DType dtype() const { return dtype_; }

 private:
  DType dtype_;
  std::vector<OperationCase> cases_;
};

inline constexpr PhiloxKey kCaseKey = philox_key(1234, RandomPurpose::dropout);

} // namespace triax::test
