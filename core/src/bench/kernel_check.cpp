// SPDX-License-Identifier: Apache-2.0
#include "bench/kernel_check.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "triax/element_type.hpp"
#include "triax/error.hpp"

namespace triax::bench {

namespace {

constexpr std::int64_t kMaxCompared = std::int64_t{1} << 22;

/// The outputs before the first call, on the device.
class SavedOutputs {
 public:
  SavedOutputs(KernelSide& side, const KernelCase& one) : side_(side), case_(one) {
    for (const TensorView& output : one.outputs) {
      memory_.push_back(side.device().allocate(output.bytes(), MemoryKind::device));
      copies_.emplace_back(memory_.back()->data(), output.dtype(), output.shape());
      side.device().copy(copies_.back(), output, side.stream());
    }
  }
  void restore() {
    for (std::size_t i = 0; i < copies_.size(); ++i) side_.device().copy(case_.outputs[i], copies_[i], side_.stream());
    side_.finish();
  }

 private:
  KernelSide& side_;
  const KernelCase& case_;
  std::vector<std::unique_ptr<Memory>> memory_;
  std::vector<TensorView> copies_;
};

using Bytes = std::vector<std::vector<std::byte>>;

Bytes outputs_of(KernelSide& side, const KernelCase& one) {
  Bytes out;
  for (const TensorView& output : one.outputs) out.push_back(side.host_bytes(output, kMaxCompared));
  return out;
}

std::vector<double> as_doubles(const std::vector<std::byte>& bytes, DType dtype) {
  std::vector<double> out(bytes.size() / bytes_of(dtype));
  with_type(dtype, [&](auto type) {
    for (std::size_t i = 0; i < out.size(); ++i) {
      std::memcpy(&type, bytes.data() + i * sizeof type, sizeof type);
      if constexpr (std::is_same_v<decltype(type), double>) {
        out[i] = type;
      } else {
        out[i] = static_cast<double>(static_cast<float>(type));
      }
    }
  });
  return out;
}

} // namespace

HostOutputs check_case(KernelSide& side, const KernelCase& one) {
  SavedOutputs saved(side, one);
  const Bytes before = outputs_of(side, one);
  side.run(one.call);
  const Bytes first = outputs_of(side, one);
  saved.restore();
  side.run(one.call);
  const Bytes second = outputs_of(side, one);
  saved.restore();
  const auto fail = [&](const char* what, const char* hint) {
    throw Error(what, text("{}, {}", side.name(), one.name), hint);
  };
  constexpr const char* kReport = "this is a defect of the kernel set: its tests should find it too";
  if (first == before) fail("the operation did not change its outputs", kReport);
  if (first != second) fail("two calls with the same inputs gave different bits", kReport);
  HostOutputs out;
  for (std::size_t i = 0; i < first.size(); ++i) {
    out.push_back(as_doubles(first[i], one.outputs[i].dtype()));
    if (!std::ranges::all_of(out.back(), [](double value) { return std::isfinite(value); }))
      fail("an output is not finite", kReport);
  }
  return out;
}

double difference_of(const HostOutputs& a, const HostOutputs& b) {
  double out = 0;
  for (std::size_t tensor = 0; tensor < a.size(); ++tensor) {
    double largest = 0, difference = 0;
    for (std::size_t i = 0; i < a[tensor].size(); ++i) {
      largest = std::max(largest, std::abs(b[tensor][i]));
      difference = std::max(difference, std::abs(a[tensor][i] - b[tensor][i]));
    }
    if (difference > 0) out = std::max(out, difference / std::max(largest, 1e-30));
  }
  return out;
}

double allowed_difference(DType compute) {
  if (compute == DType::bf16) return 0x1p-6;
  return compute == DType::f16 ? 0x1p-9 : 1e-3; // of products in TF32, which a set for GPUs may use
}

} // namespace triax::bench
