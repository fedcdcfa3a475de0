// SPDX-License-Identifier: Apache-2.0
// comm-ucx: a communicator over UCX's tag interface, for ranks that are threads or processes, on one machine or many.
#include <memory>
#include <optional>
#include <string>
#include <triax/p2p/join.hpp>
#include <triax/plugin.hpp>

#include "signals.hpp"
#include "ucx_settings.hpp"
#include "ucx_transport.hpp"

namespace triax::comm_ucx {

namespace {

constexpr triax_option kOptions[] = {
    option_string("wait", "yield", "yield|spin|event",
                  "how a rank waits: pauses after each poll, after up to 2000 polls, or until an event"),
    option_string("transports", "", nullptr, "transports that UCX may use, as in UCX_TLS; empty: UCX chooses"),
    option_string("devices", "", nullptr, "network devices, as in UCX_NET_DEVICES; empty: UCX chooses"),
    option_int("rndv_threshold", "262144", 0, 1e15,
               "message size in bytes from which UCX uses the rendezvous protocol instead of a copy"),
    option_string(
        "device_memory", "auto", "auto|direct|staged",
        "how GPU memory is transferred; auto: directly if UCX can, else staged; direct: by UCX; staged: through "
        "pinned host memory"),
    option_int(
        "staging_bytes", "33554432", 0, 1e12,
        "bytes of pinned memory allocated at the start if GPU memory is staged; a call that needs more allocates more"),
};

class UcxBackend final : public CommBackend {
 public:
  explicit UcxBackend(const PluginContext& context) : log_(context.log), settings_(read_settings(context.options)) {
    settings_.logs = context.rank == 0;
    leave_signals_alone();
  }

  CommTraits traits() const override { return p2p::traits(CommTraits::Ranks::many_per_process); }

  Refusals supports(const CommRequest& request) const override {
    if (request.device == DeviceKind::sim) {
      return make_refusal(ErrorCode::kUnsupported, {},
                          "comm-ucx moves host and GPU memory; the kernel set's device is sim");
    }
    const bool direct = request.device == DeviceKind::cuda && settings_.device_memory == DeviceMemory::direct;
    if (!settings_.refusals.empty() || !request.on_this_machine) return settings_.refusals;
    return UcxTransport::supports(settings_, direct);
  }

  void start(Device& device) override {
    if (!settings_.refusals.empty()) throw to_error(settings_.refusals);
    transport_.emplace(device, settings_, log_);
  }

  std::unique_ptr<Communicator> join(const Group& group, Store& store, Deadline deadline) override {
    TRIAX_REQUIRE(transport_, "comm-ucx: join() before start()");
    std::unique_ptr<Communicator> joined = p2p::join(*transport_, group, store, deadline, next_);
    transport_->report_unused_variables(); // UCX may have reported them to another rank of this process
    return joined;
  }

 private:
  Log& log_;
  Settings settings_;
  std::optional<UcxTransport> transport_;
  int next_ = 0; // lowest group number that no group has used
};

} // namespace

} // namespace triax::comm_ucx

TRIAX_PLUGIN(triax::CommBackend, triax::comm_ucx::UcxBackend, "comm-ucx", "0.1.0",
             "ranks that are threads or processes, over UCX: shared memory and networks", triax::comm_ucx::kOptions)
