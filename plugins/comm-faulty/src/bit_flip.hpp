// SPDX-License-Identifier: Apache-2.0
// A host task behind a call of the wrapped communicator: flips a bit of what the call has received, then fires a
// separate event, which stands for the call's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <triax/device.hpp>
#include <triax/tensor.hpp>

#include "pooled_task.hpp"

namespace triax::comm_faulty {

class BitFlip final : public PooledTask {
 public:
  /// `received`: host memory with at least one byte. `bit`: any number.
  Event start(const Event& call, const TensorView& received, std::uint32_t bit) noexcept;
  /// For the progress loop: fails the event if the call failed before the task reached the front of its stream.
  void poll() noexcept;
  void fail(std::string_view why) noexcept;

  bool advance() noexcept override;
  void dropped() noexcept override;

 private:
  HostEvent event_;
  Event call_;
  std::byte* byte_ = nullptr;
  std::byte mask_{};
};

} // namespace triax::comm_faulty
