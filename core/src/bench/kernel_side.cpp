// SPDX-License-Identifier: Apache-2.0
#include "bench/kernel_side.hpp"

#include <algorithm>
#include <utility>

#include "triax/error.hpp"
#include "triax/log.hpp"
#include "triax/random.hpp"

namespace triax::bench {

namespace {

constexpr double kWait_s = 600;                // for one turn of the slowest set
constexpr std::int64_t kNoise = (1 << 20) + 8; // the 8 makes tensors of a power-of-two size differ

std::vector<float> uniform_numbers() {
  std::vector<float> out(kNoise);
  const PhiloxKey key = philox_key(1, RandomPurpose::test);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = 2 * uniform(philox_at(key, i, 0, 0)[i % 4]) - 1;
  return out;
}

} // namespace

KernelSide::KernelSide(config::PluginChoice choice, int threads, KernelSide* lender)
    : choice_(std::move(choice)),
      set_(plugin::create<KernelSet>(*choice_.library, {choice_.options, null_log(), layout_, 0, threads})),
      scratch_of_(this) {
  device_ = set_->make_device({});
  if (lender && lender->device_->kind() == device_->kind()) scratch_of_ = lender;
  stream_ = device_->make_stream("bench");
  set_->start(*device_);
}

TensorView KernelSide::allocate(const Shape& shape, DType dtype) {
  const std::size_t bytes = static_cast<std::size_t>(shape.elements()) * bytes_of(dtype);
  memory_.push_back(device_->allocate(bytes, MemoryKind::device));
  return {memory_.back()->data(), dtype, shape};
}

TensorView KernelSide::tensor(const Shape& shape, double value, DType dtype) {
  const TensorView view = allocate(shape, dtype);
  device_->fill(view, value, *stream_);
  return view;
}

TensorView KernelSide::noise(const Shape& shape, DType dtype) {
  const TensorView view = allocate(shape, dtype), flat = view.flat();
  if (noise_.empty()) noise_ = tensor(uniform_numbers(), Shape{kNoise}, DType::f32);
  for (std::int64_t at = 0; at < flat.elements();) {
    const std::int64_t count = std::min(kNoise - noise_at_, flat.elements() - at);
    device_->convert(flat.slice(0, at, at + count), noise_.slice(0, noise_at_, noise_at_ + count), *stream_);
    at += count;
    noise_at_ = (noise_at_ + count) % kNoise;
  }
  return view;
}

/// Returns when the values have been read.
void KernelSide::upload(const TensorView& to, const void* values) {
  device_->upload(to, {const_cast<void*>(values), to.dtype(), to.shape()}, *stream_);
  finish();
}

void* KernelSide::block(const void* host, std::size_t bytes) {
  const TensorView view = allocate({static_cast<std::int64_t>(bytes)}, DType::u8);
  upload(view, host);
  return view.data();
}

std::vector<std::byte> KernelSide::host_bytes(const TensorView& view, std::int64_t most) {
  const TensorView part = view.flat().slice(0, 0, std::min(view.elements(), most));
  std::vector<std::byte> out(part.bytes());
  device_->download({out.data(), part.dtype(), part.shape()}, part, *stream_);
  finish();
  return out;
}

void KernelSide::reserve_scratch(std::size_t bytes) {
  if (bytes <= scratch_bytes_) return;
  finish();
  scratch_ = device_->allocate(bytes, MemoryKind::device);
  scratch_bytes_ = bytes;
}

void KernelSide::run(const OpCall& call) {
  if (const Refusals answer = set_->supports(call); !answer.empty()) throw to_error(answer, choice_.name);
  finish(); // a call may use the memory that is replaced
  scratch_of_->reserve_scratch(set_->scratch_bytes(call));
  set_->prepare(call);
  issue(call);
}

void KernelSide::finish() {
  device_->wait(stream_->record(), deadline_in(kWait_s));
}

} // namespace triax::bench
