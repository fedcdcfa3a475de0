// A kernel set through its plugin's door, on a host device of its own.
//
// Threads: one. Ownership: owns the set and the device. Blocking: loading reads a file. For programs made by
// triax_add_test: name the plugin's target under DEPENDS.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "plugin/loader.hpp"
#include "support/places.hpp"
#include "triax/kernels.hpp"

namespace triax::testing {

/// A set loaded from where this program was built or installed, started on a device of its own.
class LoadedKernels {
 public:
  explicit LoadedKernels(const std::string& name)
      : library_(plugin::load(test::plugin_file(name), KernelSet::kKind)),
        set_(plugin::create<KernelSet>(library_, {options_, null_log(), layout_, 0, 1})) {
    set_->start(*device_);
  }
  KernelSet& set() { return *set_; }
  Device& device() { return *device_; }

 private:
  std::unique_ptr<Device> device_ = make_host_device();
  Options options_;
  Layout layout_ = Layout::ptd(1, 1, 1);
  const plugin::Library& library_;
  plugin::Instance<KernelSet> set_;
};

} // namespace triax::testing
