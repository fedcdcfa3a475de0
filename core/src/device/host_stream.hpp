// SPDX-License-Identifier: Apache-2.0
// A stream of the host device: a queue of waits, host tasks and marks that the progress loop advances.
//
// Threads: the rank's main thread; current() any. Blocking: ready().
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "device/host_queue.hpp"

namespace triax::device {

class HostStream final : public Stream {
 public:
  /// Adds itself to the device's list of streams; the destructor removes it.
  HostStream(std::string name, Device& device, std::vector<HostStream*>& streams);
  ~HostStream() override;

  std::string_view name() const noexcept override { return name_; }
  void wait(const Event& event) override;
  Event record() override;
  void post(HostTask& task) override;
  bool advance() noexcept override;
  void ready() override;
  void begin(ActionId action, const char* label) noexcept override;
  void end(ActionId action) noexcept override;
  ActionId current() const noexcept override { return current_.load(std::memory_order_relaxed); }
  void* native() noexcept override { return nullptr; }

 private:
  std::string name_;
  std::vector<HostStream*>& streams_;
  HostQueue queue_;
  std::atomic<ActionId> current_{kNoAction};
};

} // namespace triax::device
