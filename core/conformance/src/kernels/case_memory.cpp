// SPDX-License-Identifier: Apache-2.0
#include "case_memory.hpp"

#include <array>
#include <cstring>

namespace triax::conformance::cases {

namespace {

/// Moves elements between views on the host.
class HostMover {
 public:
  void convert(const TensorView& to, const TensorView& from) { device_->convert(to, from, *stream_); }
  void copy(const TensorView& to, const TensorView& from) { device_->copy(to, from, *stream_); }

 private:
  std::unique_ptr<Device> device_ = make_host_device();
  std::unique_ptr<Stream> stream_ = device_->make_stream("values of a case");
};

} // namespace

CaseMemory::CaseMemory(const OperationCase& one, const CaseTensor& tensor, const CaseSetup& setup)
    : tensor_(tensor), setup_(setup), dtype_(type_of(tensor, setup.dtype)) {
  const std::int64_t last = tensor.shape.rank() == 0 ? 1 : tensor.shape[-1];
  const std::int64_t rows = last == 0 ? 0 : tensor.shape.elements() / last;
  const std::size_t inner = static_cast<std::size_t>(rows * (last + tensor.padding)) * bytes_of(dtype_);
  bytes_.assign(before() + inner + kGuard, kPoison);
  if (tensor.role != Role::out) {
    write(one);
  } else if (setup.zero_outputs) {
    const std::vector<double> zeros(static_cast<std::size_t>(tensor.shape.elements()));
    HostMover().convert(view_at(bytes_.data()), {const_cast<double*>(zeros.data()), DType::f64, tensor.shape});
  }
  original_ = bytes_;
}

/// Tensors of bytes hold a struct, which needs its alignment, so they are not shifted.
std::size_t CaseMemory::before() const {
  return kGuard + (dtype_ == DType::u8 ? 0 : static_cast<std::size_t>(setup_.shift) * bytes_of(dtype_));
}

TensorView CaseMemory::view_at(void* base) const {
  const Shape& shape = tensor_.shape;
  std::array<std::int64_t, kMaxRank> strides{};
  std::int64_t step = 1;
  for (int dim = shape.rank() - 1; dim >= 0; --dim) {
    strides[static_cast<std::size_t>(dim)] = step;
    step *= shape[dim] + (dim == shape.rank() - 1 ? tensor_.padding : 0);
  }
  return {static_cast<std::byte*>(base) + before(), dtype_, shape, strides};
}

/// Writes the values, rounded to the case's type: the formulas in f64 get the same inputs as the tested set.
void CaseMemory::write(const OperationCase& one) {
  std::vector<double> values = values_of(one, tensor_);
  const DType narrow = type_of(tensor_, one.dtype);
  std::vector<std::byte> rounded(values.size() * bytes_of(narrow));
  const TensorView from(values.data(), DType::f64, tensor_.shape), through(rounded.data(), narrow, tensor_.shape);
  HostMover mover;
  mover.convert(through, from);
  mover.convert(view_at(bytes_.data()), through);
}

void CaseMemory::upload(Device& device, Stream& stream) {
  memory_ = device.allocate(bytes_.size(), MemoryKind::device);
  const TensorView on_device = bytes_at(memory_->data(), bytes_.size());
  device.upload(on_device, bytes_at(bytes_.data(), bytes_.size()), stream);
  if (!setup_.late_inputs || dtype_ == DType::u8) return;
  late_ = device.allocate(bytes_.size(), MemoryKind::device);
  device.copy(bytes_at(late_->data(), bytes_.size()), on_device, stream);
  device.fill(on_device, kPoisonValue, stream);
}

void CaseMemory::move_late_inputs(Device& device, Stream& stream) {
  if (late_) device.copy(bytes_at(memory_->data(), bytes_.size()), bytes_at(late_->data(), bytes_.size()), stream);
}

void CaseMemory::download(Device& device, Stream& stream) {
  device.download(bytes_at(bytes_.data(), bytes_.size()), bytes_at(memory_->data(), bytes_.size()), stream);
}

std::vector<double> CaseMemory::values() const {
  std::vector<double> values(static_cast<std::size_t>(tensor_.shape.elements()));
  const TensorView written = view_at(const_cast<std::byte*>(bytes_.data()));
  HostMover().convert(TensorView(values.data(), DType::f64, tensor_.shape), written);
  return values;
}

bool CaseMemory::is_written_beside() const {
  std::vector<std::byte> expected = original_;
  if (tensor_.role != Role::in)
    HostMover().copy(view_at(expected.data()), view_at(const_cast<std::byte*>(bytes_.data())));
  return std::memcmp(expected.data(), bytes_.data(), bytes_.size()) != 0; // operator== compares byte by byte
}

} // namespace triax::conformance::cases
