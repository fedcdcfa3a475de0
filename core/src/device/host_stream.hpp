// SPDX-License-Identifier: Apache-2.0
// A stream of the host device: a queue of waits, host tasks and marks that the progress loop advances.
//
// Threads: the rank's main thread; current() any. Blocking: ready().
#pragma once

#include <string>

#include "device/host_queue.hpp"

namespace triax::device {

class HostStream final : public Stream {
 public:
  HostStream(std::string name, Device& device);

  void wait(const Event& event) override;
  Event record() override;
  void post(HostTask& task) override;
  bool advance() noexcept override;
  void ready() override;
  void* native() noexcept override { return nullptr; }

 private:
  HostQueue queue_;
};

} // namespace triax::device
