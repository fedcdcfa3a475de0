// SPDX-License-Identifier: Apache-2.0
// The device of a dry run, which has no memory and runs nothing: layers are run on it once to count what they need.
#include <string>
#include <utility>

#include "device/movement.hpp"
#include "triax/device.hpp"
#include "triax/error.hpp"

namespace triax {

namespace {

class PlanMemory final : public Memory {
 public:
  explicit PlanMemory(std::size_t bytes) : Memory(nullptr, bytes) {}
};

class PlanStream final : public Stream {
 public:
  PlanStream(std::string name, Device& device) : Stream(std::move(name), device) {}
  void wait(const Event&) override {}
  Event record() override { return {}; }
  void post(HostTask&) override {
    throw Error("the device of a dry run has no transports", text("stream \"{}\"", name()),
                "use communicators that send nothing");
  }
  bool advance() noexcept override { return false; }
  void ready() override {}
  void* native() noexcept override { return nullptr; }
};

/// Checks data movements as a real device does, so that a dry run reports the same errors as a run.
class PlanDevice final : public Device {
 public:
  explicit PlanDevice(DeviceKind kind) : kind_(kind) {}
  DeviceKind kind() const noexcept override { return kind_; }
  std::string description() const override { return text("a dry run for {}", name_of(kind_)); }

  std::unique_ptr<Memory> allocate(std::size_t bytes, MemoryKind) override {
    return std::make_unique<PlanMemory>(bytes);
  }
  std::unique_ptr<Stream> make_stream(std::string name) override {
    return std::make_unique<PlanStream>(std::move(name), *this);
  }
  void copy(const TensorView& to, const TensorView& from, Stream&) override {
    device::check_movement("copy", to, from, true);
  }
  void upload(const TensorView& to, const TensorView& host_from, Stream&) override {
    device::check_movement("upload", to, host_from, true);
  }
  void download(const TensorView& host_to, const TensorView& from, Stream&) override {
    device::check_movement("download", host_to, from, true);
  }
  void fill(const TensorView&, double, Stream&) override {}
  void convert(const TensorView& to, const TensorView& from, Stream&) override {
    device::check_movement("convert", to, from, false);
  }
  void add(const TensorView& to, const TensorView& from, Stream&) override { device::check_add(to, from); }

 private:
  DeviceKind kind_;
};

} // namespace

std::unique_ptr<Device> make_dry_run_device(DeviceKind kind) {
  return std::make_unique<PlanDevice>(kind);
}

} // namespace triax
