// SPDX-License-Identifier: Apache-2.0
#include "support/fake_cuda_device.hpp"

#include <atomic>
#include <utility>
#include <vector>

#include "device/movement.hpp"
#include "support/fake_cuda_memory.hpp"
#include "support/fake_cuda_stream.hpp"
#include "support/fake_cuda_tape.hpp"
#include "triax/error.hpp"
#include "triax/lazy_load_guard.hpp"
#include "triax/recording.hpp"

namespace triax::test {

namespace {

using fake_cuda::Block;
using fake_cuda::FakeStream;
using fake_cuda::Freeing;
using fake_cuda::Item;
using fake_cuda::Lane;
using fake_cuda::Place;
using fake_cuda::place_of;
using fake_cuda::Tape;

FakeStream& own(Stream& stream) {
  auto* fake = dynamic_cast<FakeStream*>(&stream);
  TRIAX_REQUIRE(fake, "stream \"{}\" is not one of a fake CUDA device", stream.name());
  return *fake;
}

/// Throws for an access that would fault on a GPU, or that CUDA would refuse.
void check_place(std::string_view call, const TensorView& view, bool right) {
  if (right) return;
  throw Error(text("{}: {} lies in memory that this call does not reach", call, to_text(view)), "fake CUDA device",
              "device memory for the device's side; pinned memory where kernels read what the host wrote");
}

std::atomic<int> launched{0}; // recordings
std::atomic<int> first_uses{0};

class FakeRecording final : public Recording {
 public:
  explicit FakeRecording(Tape tape) : tape_(std::move(tape)) {}
  void launch(Stream& stream) override {
    own(stream).admit();
    tape_.play();
    ++launched;
  }

 private:
  const Tape tape_;
};

class FakeCudaDevice final : public Device, public Recorder, public LazyLoadGuard {
 public:
  explicit FakeCudaDevice(std::uint64_t seed) : seed_(seed) {}
  FakeCudaDevice(const FakeCudaDevice&) = delete;
  FakeCudaDevice& operator=(const FakeCudaDevice&) = delete;
  ~FakeCudaDevice() override {
    for (const auto& lane : lanes_) lane->finish(); // lanes may wait for each other's events
    freeing_.sweep();
  }

  DeviceKind kind() const noexcept override { return DeviceKind::cuda; }
  std::string description() const override { return text("a fake CUDA device, seed {}", seed_); }

  std::unique_ptr<Memory> allocate(std::size_t bytes, MemoryKind kind) override {
    freeing_.sweep();
    return std::make_unique<FakeMemory>(std::make_unique<Block>(bytes, kind), bytes, *this);
  }
  std::unique_ptr<Stream> make_stream(std::string name) override {
    lanes_.push_back(std::make_unique<Lane>(name, seed_, static_cast<std::uint32_t>(lanes_.size())));
    return std::make_unique<FakeStream>(std::move(name), *this, *lanes_.back(), first_use_);
  }

  void copy(const TensorView& to, const TensorView& from, Stream& stream) override {
    device::check_movement("copy", to, from, true);
    launch("copy", Item::Kind::copy, to, from, stream);
  }
  void fill(const TensorView& to, double value, Stream& stream) override {
    launch("fill", Item::Kind::fill, to, to, stream, value);
  }
  void convert(const TensorView& to, const TensorView& from, Stream& stream) override {
    device::check_movement("convert", to, from, false);
    launch("convert", Item::Kind::convert, to, from, stream);
  }
  void add(const TensorView& to, const TensorView& from, Stream& stream) override {
    device::check_add(to, from);
    launch("add", Item::Kind::add, to, from, stream);
  }
  void upload(const TensorView& to, const TensorView& host_from, Stream& stream) override {
    cross("upload", to, host_from, to, host_from, stream);
  }
  void download(const TensorView& host_to, const TensorView& from, Stream& stream) override {
    cross("download", host_to, from, from, host_to, stream);
  }

  void begin_recording(Stream& stream) override {
    own(stream).admit();
    for (Stream* each : streams()) own(*each).record_on(&tape_);
  }
  std::unique_ptr<Recording> end_recording() override {
    for (Stream* each : streams()) own(*each).record_on(nullptr);
    tape_.end();
    return std::make_unique<FakeRecording>(std::exchange(tape_, Tape()));
  }

  void set_may_load_modules(bool may_load) noexcept override {
    first_use_ = may_load;
    first_uses += may_load ? 1 : 0;
  }
  void* extension(std::string_view id) noexcept override {
    if (id == Recorder::kExtension) return static_cast<Recorder*>(this);
    return id == LazyLoadGuard::kExtension ? static_cast<LazyLoadGuard*>(this) : nullptr;
  }

 private:
  class FakeMemory final : public Memory {
   public:
    FakeMemory(std::unique_ptr<Block> block, std::size_t bytes, FakeCudaDevice& device)
        : Memory(block->data(), bytes), block_(std::move(block)), device_(device) {}
    FakeMemory(const FakeMemory&) = delete;
    FakeMemory& operator=(const FakeMemory&) = delete;
    ~FakeMemory() override { device_.free(std::move(block_)); }

   private:
    std::unique_ptr<Block> block_;
    FakeCudaDevice& device_;
  };

  /// cudaFree waits for the GPU. Here that could block forever if a flag is not set, so memory is freed later.
  void free(std::unique_ptr<Block> block) {
    std::vector<Event> before;
    for (const auto& lane : lanes_) before.push_back(lane->record());
    freeing_.take(std::move(block), [before] {
      bool done = true;
      for (const Event& event : before) done = done && event.fired();
      return done;
    });
  }

  static void put(Item::Kind kind, const TensorView& to, const TensorView& from, FakeStream& on, double value = 0) {
    Item item;
    item.kind = kind;
    item.to = fake_cuda::alias_of(to);
    item.from = fake_cuda::alias_of(from);
    item.value = value;
    on.launch(std::move(item));
  }

  static void launch(std::string_view call, Item::Kind kind, const TensorView& to, const TensorView& from,
                     Stream& stream, double value = 0) {
    FakeStream& on = own(stream);
    if (to.elements() == 0) return;
    for (const TensorView& view : {to, from}) check_place(call, view, place_of(view.data()) != Place::plain);
    put(kind, to, from, on, value);
  }

  /// Copies between host and device. The call itself copies memory that is not pinned.
  static void cross(std::string_view call, const TensorView& to, const TensorView& from, const TensorView& of_device,
                    const TensorView& of_host, Stream& stream) {
    device::check_movement(call, to, from, true);
    FakeStream& on = own(stream);
    if (to.elements() == 0) return;
    check_place(call, of_device, place_of(of_device.data()) == Place::device);
    check_place(call, of_host, place_of(of_host.data()) != Place::device);
    put(Item::Kind::copy, to, from, on);
    if (place_of(of_host.data()) == Place::plain) on.ready();
  }

  const std::uint64_t seed_;
  Freeing freeing_;
  std::vector<std::unique_ptr<Lane>> lanes_; // also of destroyed streams
  bool first_use_ = false;
  Tape tape_;
};

} // namespace

std::unique_ptr<Device> make_fake_cuda_device(std::uint64_t seed) {
  return std::make_unique<FakeCudaDevice>(seed);
}

int fake_recordings_launched() noexcept {
  return launched;
}

int fake_first_uses() noexcept {
  return first_uses;
}

FakeCudaStream& fake_launch_stream(Stream& stream) {
  FakeStream& on = own(stream);
  on.admit();
  return on;
}

} // namespace triax::test
