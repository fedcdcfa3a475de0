// SPDX-License-Identifier: Apache-2.0
// A kernel set with its device and filled buffers, to time its operations.
//
// Threads: one. Ownership: owns the set, its device, and all memory it returns. Blocking: seconds_of() and host_bytes()
// wait for the device; run() blocks as the set does. Errors: Error, also if the set refuses an operation.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "config/run_config.hpp"
#include "plugin/loader.hpp"
#include "triax/kernels.hpp"

namespace triax::bench {

class KernelSide {
 public:
  /// `threads`: CPU threads that the set may use. `lender`: a side whose scratch memory this one uses if both devices
  /// are of one kind; it must live as long. Two sides are then timed on the same addresses, because the place of a
  /// buffer alone can change the time of an operation by 5 %.
  KernelSide(config::PluginChoice choice, int threads, KernelSide* lender = nullptr);

  const std::string& name() const { return choice_.name; }
  KernelSet& kernels() { return *set_; }
  Device& device() const { return *device_; }
  Stream& stream() { return *stream_; }

  TensorView tensor(const Shape& shape, double value = 0.01, DType dtype = DType::f32);
  /// Uniform in [-1, 1), and the same in each KernelSide. The values affect a GPU's power consumption and so its speed:
  /// a product of constants is a tenth faster than one of a model's values.
  TensorView noise(const Shape& shape, DType dtype);
  /// A copy of host values.
  template <class T>
  TensorView tensor(const std::vector<T>& values, const Shape& shape, DType dtype) {
    const TensorView view = allocate(shape, dtype);
    upload(view, values.data());
    return view;
  }
  /// A copy on the device of `bytes` bytes at `host`.
  void* block(const void* host, std::size_t bytes);
  /// The first elements of a contiguous view, at most `most`.
  std::vector<std::byte> host_bytes(const TensorView& view, std::int64_t most);

  /// Prepares and issues the call.
  void run(const OpCall& call);
  template <class Args>
  void run(const Args& args) {
    run(call_of(args));
  }
  /// Issues a call that run() has prepared.
  void issue(const OpCall& call) {
    const Memory* const scratch = scratch_of_->scratch_.get();
    set_->issue(
        call, {*stream_, {static_cast<std::byte*>(scratch ? scratch->data() : nullptr), scratch_of_->scratch_bytes_}});
  }
  void finish();

  /// Seconds for `times` calls of body, enqueued without waits in between.
  template <class Body>
  double seconds_of(std::int64_t times, Body body) {
    finish();
    const auto begin = Clock::now();
    for (std::int64_t i = 0; i < times; ++i) body();
    finish();
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

 private:
  TensorView allocate(const Shape& shape, DType dtype);
  void upload(const TensorView& to, const void* values);
  void reserve_scratch(std::size_t bytes);

  const config::PluginChoice choice_;
  const Layout layout_ = Layout::ptd(1, 1, 1);
  std::unique_ptr<Device> device_; // outlives the set and all memory
  plugin::Instance<KernelSet> set_;
  std::unique_ptr<Stream> stream_;
  std::vector<std::unique_ptr<Memory>> memory_;
  TensorView noise_;
  std::int64_t noise_at_ = 0;
  std::unique_ptr<Memory> scratch_;
  std::size_t scratch_bytes_ = 0;
  KernelSide* scratch_of_; // this side, or the lender
};

} // namespace triax::bench
