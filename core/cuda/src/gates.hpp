// Gates: numbers in pinned memory that streams wait for and the host writes.
//
// Threads: the rank's main thread. Ownership: the device owns all gates until it goes, whatever became of their
// streams: work that is still on the GPU may look at them. Blocking: never. Errors: Error from taking one.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "triax/device.hpp"

namespace triax::cuda {

/// One stream's gate. Numbers given to the stream rise, and it waits for one at a time.
class Gate {
 public:
  Gate() = default;
  Gate(std::uint32_t* host, CUdeviceptr device) : host_(host), device_(device) {}
  explicit operator bool() const noexcept { return host_ != nullptr; }
  CUdeviceptr device() const noexcept { return device_; }
  void open(std::uint32_t number) noexcept;

 private:
  std::uint32_t* host_ = nullptr;
  CUdeviceptr device_ = 0;
};

class Gates {
 public:
  /// Finds out whether streams can wait in this way. `wanted` false: as if they could not.
  explicit Gates(bool wanted);
  bool usable() const noexcept { return wait_ != nullptr; }
  /// While they rest no stream is to wait for the host.
  void rest(bool now) noexcept { resting_ = now; }
  bool resting() const noexcept { return resting_; }
  Gate take();
  /// Work put on the stream later runs after the gate has been opened for `number`, or a later one.
  void close(const Gate& gate, std::uint32_t number, cudaStream_t stream);

 private:
  using WaitValue = CUresult(CUDAAPI*)(CUstream, CUdeviceptr, cuuint32_t, unsigned int);
  bool works(WaitValue wait);

  WaitValue wait_ = nullptr;
  std::vector<std::unique_ptr<Memory>> pages_;
  std::size_t used_ = 0; // bytes of the last page
  bool resting_ = false;
};

} // namespace triax::cuda
