// SPDX-License-Identifier: Apache-2.0
// Instances of the kernel set, without the plugin interface, with chosen threads and loops, each on its own device.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "cpu_kernels.hpp"

namespace triax::kernels_cpu {

class CpuSet {
 public:
  explicit CpuSet(int threads, const Loops& loops = best_loops()) : set_(threads, loops) { set_.start(*device_); }
  CpuKernels& set() { return set_; }
  Device& device() { return *device_; }
  Stream& stream() { return *stream_; }

  /// Runs a call; grows the scratch as needed.
  template <class Args>
  void run(const Args& args) {
    const OpCall call = call_of(args);
    scratch_.resize(std::max(scratch_.size(), set_.scratch_bytes(call)));
    set_.issue(call, {*stream_, scratch_});
  }

 private:
  std::unique_ptr<Device> device_ = make_host_device();
  std::unique_ptr<Stream> stream_ = device_->make_stream("test");
  CpuKernels set_;
  std::vector<std::byte> scratch_;
};

/// Makes GoogleTest print the name of the loops.
inline void PrintTo(const Loops* loops, std::ostream* out) {
  *out << loops->name;
}

/// All loops that this machine can run.
inline std::vector<const Loops*> all_loops() {
  LoopsList list;
  runnable_loops(list);
  std::vector<const Loops*> loops;
  for (int i = 0; list[i]; ++i) loops.push_back(list[i]);
  return loops;
}

/// Numbers in [low, high) that depend on the seed only.
inline std::vector<float> numbers(std::int64_t count, std::uint32_t seed, float low = -1, float high = 1) {
  std::vector<float> values(static_cast<std::size_t>(count));
  const PhiloxKey key = philox_key(seed, RandomPurpose::test);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = low + (high - low) * uniform(philox_at(key, i, 0, 0)[i % 4]);
  }
  return values;
}

/// A view of all of `values`.
inline TensorView view(std::vector<float>& values, const Shape& shape) {
  return {values.data(), DType::f32, shape};
}

} // namespace triax::kernels_cpu
