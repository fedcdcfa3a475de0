// SPDX-License-Identifier: Apache-2.0
// A kernel set, loaded as a plugin, with filled device buffers, to time its operations.
//
// Ownership: owns the set, its device, and all memory it returns. Blocking: seconds_of() waits for the device; run()
// blocks as the set does. Errors: Error, also if the set refuses an operation.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "config/option_value.hpp"
#include "plugin/loader.hpp"
#include "support/installation.hpp"
#include "triax/kernels.hpp"
#include "triax/random.hpp"

namespace triax::bench {

inline int cores() {
  return static_cast<int>(std::max(std::thread::hardware_concurrency(), 1u));
}

class KernelBench {
 public:
  explicit KernelBench(const std::string& name, int threads = cores())
      : library_(plugin::load(test::plugin_file(name), KernelSet::kKind)),
        options_(defaults(library_)),
        set_(plugin::create<KernelSet>(library_, {options_, null_log(), layout_, 0, threads})) {
    device_ = set_->make_device({});
    stream_ = device_->make_stream("bench");
    set_->start(*device_);
  }

  KernelSet& kernels() { return *set_; }
  Device& device() { return *device_; }
  Stream& stream() { return *stream_; }

  TensorView tensor(const Shape& shape, double value = 0.01, DType dtype = DType::f32) {
    const TensorView view = allocate(shape, dtype);
    device_->fill(view, value, *stream_);
    return view;
  }
  /// Uniform in [-1, 1). The values affect a GPU's power consumption and so its speed: a product of constants is a
  /// tenth faster than one of a model's values.
  TensorView noise(const Shape& shape, DType dtype) {
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
  /// A copy of host values.
  template <class T>
  TensorView tensor(const std::vector<T>& values, const Shape& shape, DType dtype) {
    const TensorView view = allocate(shape, dtype);
    device_->upload(view, {const_cast<T*>(values.data()), dtype, shape}, *stream_);
    device_->wait(stream_->record(), deadline_in(60)); // the values may be freed afterwards
    return view;
  }
  /// A copy on the device of `bytes` bytes at `host`.
  void* block(const void* host, std::size_t bytes) {
    const Shape shape{static_cast<std::int64_t>(bytes)};
    const TensorView view = allocate(shape, DType::u8);
    device_->upload(view, {const_cast<void*>(host), DType::u8, shape}, *stream_);
    device_->wait(stream_->record(), deadline_in(60));
    return view.data();
  }

  /// Prepares and issues the call.
  template <class Args>
  void run(const Args& args) {
    const OpCall call = call_of(args);
    if (const Refusals answer = set_->supports(call); !answer.empty()) throw to_error(answer);
    const std::size_t bytes = set_->scratch_bytes(call);
    if (bytes > scratch_bytes_) {
      device_->wait(stream_->record(), deadline_in(60));
      scratch_ = device_->allocate(bytes, MemoryKind::device);
      scratch_bytes_ = bytes;
    }
    set_->prepare(call);
    issue(call);
  }
  /// Issues a call that run() has prepared.
  void issue(const OpCall& call) {
    set_->issue(call, {*stream_, {static_cast<std::byte*>(scratch_ ? scratch_->data() : nullptr), scratch_bytes_}});
  }

  /// Seconds for `times` calls of body, enqueued without waits in between.
  template <class Body>
  double seconds_of(int times, Body body) {
    device_->wait(stream_->record(), deadline_in(60));
    const auto begin = Clock::now();
    for (int i = 0; i < times; ++i) body();
    device_->wait(stream_->record(), deadline_in(600));
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

 private:
  static constexpr std::int64_t kNoise = (1 << 20) + 8; // the 8 makes tensors of a power-of-two size differ
  static std::vector<float> uniform_numbers() {
    std::vector<float> out(kNoise);
    const PhiloxKey key = philox_key(1, RandomPurpose::test);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = 2 * uniform(philox_at(key, i, 0, 0)[i % 4]) - 1;
    return out;
  }
  static Options defaults(const plugin::Library& library) {
    Options out;
    for (const triax_option& option : library.options) out.set(option.name, config::read_default(option).value.value());
    return out;
  }
  TensorView allocate(const Shape& shape, DType dtype) {
    const std::size_t bytes = static_cast<std::size_t>(shape.elements()) * bytes_of(dtype);
    memory_.push_back(device_->allocate(bytes, MemoryKind::device));
    return {memory_.back()->data(), dtype, shape};
  }

  const plugin::Library& library_;
  Options options_;
  Layout layout_ = Layout::ptd(1, 1, 1);
  std::unique_ptr<Device> device_; // outlives the set and all memory
  plugin::Instance<KernelSet> set_;
  std::unique_ptr<Stream> stream_;
  std::vector<std::unique_ptr<Memory>> memory_;
  TensorView noise_;
  std::int64_t noise_at_ = 0;
  std::unique_ptr<Memory> scratch_;
  std::size_t scratch_bytes_ = 0;
};

} // namespace triax::bench
