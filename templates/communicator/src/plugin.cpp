// SPDX-License-Identifier: Apache-2.0
// comm-template: a communicator over Unix-domain sockets, for ranks of one machine. triax::p2p has the collectives, the
// exchanges, the deadlines and the aborts; this plugin moves messages (unix_transport.hpp).
#include <optional>
#include <triax/p2p/join.hpp>
#include <triax/plugin.hpp>

#include "unix_transport.hpp"

namespace triax::comm_template {

namespace {

constexpr triax_option kOptions[] = {
    option_int("staging_bytes", "33554432", 0, 1e12,
               "bytes of pinned memory allocated at the start for GPU memory; a call that needs more allocates more"),
};

class UnixBackend final : public CommBackend {
 public:
  // Only stores arguments. The options are already parsed and checked.
  explicit UnixBackend(const PluginContext& context)
      : staging_bytes_(static_cast<std::size_t>(context.options.integer("staging_bytes"))) {}

  // The guarantees on which the verifier relies. Ranks may be processes or threads of one.
  CommTraits traits() const override { return p2p::traits(CommTraits::Ranks::many_per_process); }

  // Called before training starts, also for a dry run.
  Refusals supports(const CommRequest& request) const override {
    if (request.device == DeviceKind::sim)
      return make_refusal(ErrorCode::kUnsupported, {},
                          "comm-template moves host and GPU memory; the kernel set's device is sim");
    return {};
  }

  void start(Device& device) override { device_ = &device; }

  // Called once per process group, by all its members. The transport is opened here, because a dry run does not join.
  std::unique_ptr<Communicator> join(const Group& group, Store& store, Deadline deadline) override {
    TRIAX_REQUIRE(device_, "comm-template: join() before start()");
    if (!transport_) transport_.emplace(*device_, staging_bytes_);
    return p2p::join(*transport_, group, store, deadline, next_group_);
  }

 private:
  const std::size_t staging_bytes_;
  Device* device_ = nullptr;
  std::optional<UnixTransport> transport_; // from the first join()
  int next_group_ = 0;                     // the lowest number that no group of this rank has
};

} // namespace

} // namespace triax::comm_template

TRIAX_PLUGIN(triax::CommBackend, triax::comm_template::UnixBackend, "comm-template", "0.1.0",
             "ranks of one machine, over Unix-domain sockets", triax::comm_template::kOptions)
