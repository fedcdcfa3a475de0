// SPDX-License-Identifier: Apache-2.0
#include "train/uninstalled.hpp"

namespace triax::train {

namespace {

[[noreturn]] void not_installed() {
  throw Error("the plugin is not installed here: the run can be planned, but not trained");
}

class UninstalledKernels final : public KernelSet {
 public:
  DeviceKind device_kind() const noexcept override { return DeviceKind::sim; }
  Refusals supports(const KernelRequest&) const override { return {}; }
  Refusals supports(const OpCall&) const override { return {}; }
  std::size_t scratch_bytes(const OpCall&) const override { return 0; }
  void prepare(const OpCall&) override {}
  void start(Device&) override { not_installed(); }

 protected:
  void run(const OpCall&, const OpContext&) override { not_installed(); }
};

class UninstalledCommunicator final : public CommBackend {
 public:
  /// The same as schedule::kMinGuarantee.
  CommTraits traits() const override {
    CommTraits traits;
    traits.order = CommTraits::Order::serial;
    traits.send = CommTraits::Send::rendezvous;
    traits.post = CommTraits::Post::blocking;
    traits.ranks = CommTraits::Ranks::many_per_process;
    return traits;
  }
  Refusals supports(const CommRequest&) const override { return {}; }
  void start(Device&) override { not_installed(); }
  std::unique_ptr<Communicator> join(const Group&, Store&, Deadline) override { not_installed(); }
};

template <class Interface, class StandIn>
plugin::Instance<Interface> make() {
  return {new StandIn(), plugin::Destroyer([](void* object) { delete static_cast<Interface*>(object); })};
}

} // namespace

plugin::Instance<KernelSet> make_uninstalled_kernels() {
  return make<KernelSet, UninstalledKernels>();
}

plugin::Instance<CommBackend> make_uninstalled_communicator() {
  return make<CommBackend, UninstalledCommunicator>();
}

} // namespace triax::train
