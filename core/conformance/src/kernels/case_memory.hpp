// SPDX-License-Identifier: Apache-2.0
// Memory of a tensor of a case: its view, between guards that nothing may write, on the device and on the host.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "triax/conformance/operation_cases.hpp"

namespace triax::conformance::cases {

inline constexpr std::size_t kGuard = 256; // bytes around each tensor; keeps an arena's alignment
inline constexpr std::byte kPoison{0xFF};  // a NaN in every floating type
inline constexpr int kPoisonValue = 0xFF;  // the same, to fill memory of a device

/// Memory as a view of bytes.
inline TensorView bytes_at(void* data, std::size_t bytes) {
  return {data, DType::u8, {static_cast<std::int64_t>(bytes)}};
}

class CaseMemory {
 public:
  CaseMemory(const OperationCase& one, const CaseTensor& tensor, const CaseSetup& setup);

  /// Allocates the memory on the device and writes it. Late inputs are poison until move_late_inputs().
  void upload(Device& device, Stream& stream);
  /// Copies the inputs in the order of the stream, from a second block of the device.
  void move_late_inputs(Device& device, Stream& stream);
  void download(Device& device, Stream& stream);

  const CaseTensor& tensor() const { return tensor_; }
  TensorView view() const { return view_at(memory_->data()); }
  /// After download(): the elements in row order, and whether other bytes, or those of an input, were written.
  std::vector<double> values() const;
  bool is_written_beside() const;

 private:
  std::size_t before() const;
  TensorView view_at(void* base) const;
  void write(const OperationCase& one);

  const CaseTensor& tensor_;
  const CaseSetup& setup_;
  const DType dtype_;
  std::vector<std::byte> bytes_, original_;
  std::unique_ptr<Memory> memory_, late_;
};

} // namespace triax::conformance::cases
