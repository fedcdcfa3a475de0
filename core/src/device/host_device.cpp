// SPDX-License-Identifier: Apache-2.0
// The host device: memory from the heap, streams that the progress loop advances, data movements inside the call.
#include <new>
#include <string>
#include <utility>

#include "device/host_stream.hpp"
#include "device/movement.hpp"
#include "triax/device.hpp"
#include "triax/error.hpp"

namespace triax {

namespace {

constexpr std::align_val_t kAlign{Arena::kAlignment};

class HostMemory final : public Memory {
 public:
  explicit HostMemory(std::size_t bytes) : Memory(::operator new(bytes, kAlign), bytes) {}
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;
  ~HostMemory() override { ::operator delete(data(), kAlign); }
};

class HostDevice final : public Device {
 public:
  DeviceKind kind() const noexcept override { return DeviceKind::host; }
  std::string description() const override { return "host memory, operations in the calling thread"; }

  std::unique_ptr<Memory> allocate(std::size_t bytes, MemoryKind) override {
    try {
      return std::make_unique<HostMemory>(bytes);
    } catch (const std::bad_alloc&) {
      throw Error(text("the host cannot allocate {} bytes of memory", bytes), {},
                  "use a smaller batch.micro or model, or more ranks");
    }
  }

  std::unique_ptr<Stream> make_stream(std::string name) override {
    return std::make_unique<device::HostStream>(std::move(name), *this);
  }

  void copy(const TensorView& to, const TensorView& from, Stream& stream) override { move("copy", to, from, stream); }
  void upload(const TensorView& to, const TensorView& host_from, Stream& stream) override {
    move("upload", to, host_from, stream);
  }
  void download(const TensorView& host_to, const TensorView& from, Stream& stream) override {
    move("download", host_to, from, stream);
  }
  void fill(const TensorView& to, double value, Stream& stream) override {
    stream.ready();
    device::fill_elements(to, value);
  }
  void convert(const TensorView& to, const TensorView& from, Stream& stream) override {
    device::check_movement("convert", to, from, false);
    stream.ready();
    device::convert_elements(to, from);
  }
  void add(const TensorView& to, const TensorView& from, Stream& stream) override {
    device::check_add(to, from);
    stream.ready();
    device::add_elements(to, from);
  }

 private:
  static void move(std::string_view name, const TensorView& to, const TensorView& from, Stream& stream) {
    device::check_movement(name, to, from, true);
    stream.ready();
    device::copy_elements(to, from);
  }
};

} // namespace

std::unique_ptr<Device> make_host_device() {
  return std::make_unique<HostDevice>();
}

} // namespace triax
