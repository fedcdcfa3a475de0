// SPDX-License-Identifier: Apache-2.0
#include "named_tensors.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "triax/text.hpp"

namespace triax::conformance {

namespace {

std::string element_text(const TensorBytes& tensor, std::size_t i) {
  std::string out;
  with_type(tensor.dtype, [&](auto value) {
    std::memcpy(&value, tensor.bytes.data() + i * sizeof value, sizeof value);
    out = text("{}", static_cast<double>(value));
  });
  return out;
}

std::string tensor_difference(const std::string& name, const TensorBytes& has, const TensorBytes& wanted) {
  const std::size_t width = bytes_of(wanted.dtype), elements = wanted.bytes.size() / width;
  if (has.dtype != wanted.dtype || has.bytes.size() != wanted.bytes.size())
    return text("{} has {} elements of {}, must have {} of {}", name, has.bytes.size() / bytes_of(has.dtype),
                name_of(has.dtype), elements, name_of(wanted.dtype));
  for (std::size_t i = 0; i < elements; ++i)
    if (std::memcmp(has.bytes.data() + i * width, wanted.bytes.data() + i * width, width) != 0)
      return text("element {} of {} is {}, must be {}", i, name, element_text(has, i), element_text(wanted, i));
  return {};
}

} // namespace

TensorBytes bytes_of_tensor(const TensorView& view) {
  const auto* const begin = view.as<const std::byte>();
  return {view.dtype(), std::vector<std::byte>(begin, begin + view.bytes())};
}

std::string difference(const Tensors& got, const Tensors& expected) {
  for (const auto& [name, wanted] : expected) {
    const auto found = got.find(name);
    if (found == got.end()) return text("{} is missing", name);
    if (std::string differs = tensor_difference(name, found->second, wanted); !differs.empty()) return differs;
  }
  for (const auto& [name, more] : got)
    if (!expected.contains(name)) return text("{} must not exist", name);
  return {};
}

std::vector<double> values_of(const TensorView& view) {
  std::vector<double> out(static_cast<std::size_t>(view.elements()));
  with_type(view.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<double>(view.as<T>()[i]);
  });
  return out;
}

double epsilon_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return std::numeric_limits<double>::epsilon();
    case DType::f16:
      return 0x1p-10;
    case DType::bf16:
      return 0x1p-7;
    default:
      return std::numeric_limits<float>::epsilon();
  }
}

double magnitude_of(std::span<const double> values) {
  double out = 0;
  for (const double value : values) out = std::max(out, std::abs(value));
  return out;
}

std::string difference(std::span<const double> got, std::span<const double> expected, double tolerance) {
  if (got.size() != expected.size()) return text("{} elements, must be {}", got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    if (!(std::abs(got[i] - expected[i]) <= tolerance)) // NaN differs
      return text("element {} is {}, must be {} up to {}", i, got[i], expected[i], tolerance);
  return {};
}

} // namespace triax::conformance
