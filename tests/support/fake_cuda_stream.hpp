// A stream of the fake CUDA device: as core/cuda's, a native stream and a queue of what on it is the host's business.
//
// Threads: the rank's main thread, but for current(). Ownership: the queue refers to tasks and events of others; the
// lane belongs to the device. Blocking: ready(); launches too, while first uses are announced. Errors: Error.
//
// An item of the queue (a wait for a host event, a host task) starts when the items before it are over and, if it is a
// task, when the device work put on the stream before it is. Work put on the stream later waits for it at the lane's
// gate, or is put there when it is over. When the stream goes, its gate opens.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "device/host_queue.hpp"
#include "support/fake_cuda_device.hpp"
#include "support/fake_cuda_lane.hpp"
#include "support/fake_cuda_tape.hpp"

namespace triax::test::fake_cuda {

class FakeStream final : public Stream, public FakeCudaStream {
 public:
  /// Enters itself into the device's list of streams, and leaves it when it goes.
  FakeStream(std::string name, Device& device, Lane& lane, std::vector<FakeStream*>& streams, const bool& first_use);
  FakeStream(const FakeStream&) = delete;
  FakeStream& operator=(const FakeStream&) = delete;
  ~FakeStream() override;

  std::string_view name() const noexcept override { return name_; }
  void wait(const Event& event) override;
  Event record() override;
  void post(HostTask& task) override;
  bool advance() noexcept override;
  void ready() override;
  void begin(ActionId action, const char*) noexcept override { current_.store(action, std::memory_order_relaxed); }
  void end(ActionId) noexcept override { current_.store(kNoAction, std::memory_order_relaxed); }
  ActionId current() const noexcept override { return current_.load(std::memory_order_relaxed); }
  void* native() noexcept override { return static_cast<FakeCudaStream*>(this); }

  void enqueue(std::function<void()> item) override;
  void* alias(void* inside) const override { return host_alias(inside); }
  /// Puts work after everything before.
  void launch(Item item);
  /// Lets what a native library will put on it come after everything before.
  void admit();
  /// What is put from now on goes on the tape; null: on the stream.
  void record_on(Tape* tape);
  /// Pumps until the host's work on it is over.
  void pass_host_work();

 private:
  device::HostQueue& host_work();
  Event work_before();
  void hold_back();

  std::string name_;
  Lane& lane_;
  std::vector<FakeStream*>& streams_;
  device::HostQueue queue_;
  const bool& first_use_;  // the device's
  std::uint32_t held_ = 0; // the number of the last item that work was held back for
  bool worked_ = false;    // device work was put on the stream since the last item
  Tape* tape_ = nullptr;
  std::atomic<ActionId> current_{kNoAction};
};

} // namespace triax::test::fake_cuda
