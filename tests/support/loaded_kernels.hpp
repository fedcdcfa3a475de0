// SPDX-License-Identifier: Apache-2.0
// A kernel set, loaded as a plugin, on its own device.
//
// Ownership: owns the set and the device. Blocking: loading reads a file. For programs built with triax_add_test: name
// the plugin's target under DEPENDS.
#pragma once

#include <memory>
#include <string>

#include "plugin/loader.hpp"
#include "support/default_options.hpp"
#include "support/installation.hpp"
#include "triax/kernels.hpp"

namespace triax::test {

/// Loads a set from the folder in which this program was built or installed, and starts it on the device that it makes.
/// Its options have their defaults.
class LoadedKernels {
 public:
  explicit LoadedKernels(const std::string& name)
      : library_(plugin::load(test::plugin_file(name), KernelSet::kKind)),
        options_(default_options(library_)),
        set_(plugin::create<KernelSet>(library_, {options_, null_log(), layout_, 0, 1})) {
    device_ = set_->make_device({});
    set_->start(*device_);
  }
  KernelSet& set() { return *set_; }
  Device& device() { return *device_; }

 private:
  std::unique_ptr<Device> device_; // destroyed after the set
  const plugin::Library& library_;
  Options options_;
  Layout layout_ = Layout::ptd(1, 1, 1);
  plugin::Instance<KernelSet> set_;
};

} // namespace triax::test
