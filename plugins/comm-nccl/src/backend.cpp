// SPDX-License-Identifier: Apache-2.0
#include "backend.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

#include "nccl_bootstrap.hpp"
#include "nccl_communicator.hpp"
#include "results.hpp"

namespace triax::comm_nccl {

NcclBackend::NcclBackend(const PluginContext& context, const NcclApi& api)
    : api_(api), log_(context.log), rank_(context.rank), settings_(read_settings(context.options)) {}

// NCCL does not guarantee that kernels of two communicators run at the same time. So all calls have one order per
// device, the host's order, which start() asks NCCL to keep. With edge_communicators each edge has its own communicator
// and small kernels that fit on the GPU together; then only calls of one edge are ordered. A send waits for its
// receive. Sums: NCCL chooses the order by size and machine, the same in every run. One rank per process: NCCL reads
// the environment once, and finds a rank's GPU through the calling thread.
CommTraits NcclBackend::traits() const {
  CommTraits traits;
  traits.order = settings_.edge_communicators ? CommTraits::Order::channel : CommTraits::Order::serial;
  traits.send = CommTraits::Send::rendezvous;
  traits.post = CommTraits::Post::nonblocking;
  traits.reduction = CommTraits::Reduction::fixed;
  traits.ranks = CommTraits::Ranks::one_per_process;
  traits.stream_ordered = true;
  return traits;
}

Refusals NcclBackend::supports(const CommRequest& request) const {
  if (request.device != DeviceKind::cuda)
    return make_refusal(ErrorCode::kUnsupported, {}, "comm-nccl moves CUDA memory; the kernel set's device is {}",
                        name_of(request.device))
        .with_hint(
            "use a kernel set that computes on GPUs, or a communicator for memory of the host: comm-ucx, comm-local");
  Refusals out = check_version(api_);
  const bool has_order = out.empty() && version() >= kOrderVersion;
  out.add(settings_.refusals);
  if (has_order) out.add(settings_.order_refusals);
  const auto other = std::ranges::find_if(request.axes, [](const std::string& axis) { return axis != kPipelineAxis; });
  if (settings_.edge_communicators && other != request.axes.end()) // the calls of other axes need the single order
    out.add(make_refusal(
                ErrorCode::kUnsupported, {"comm.edge_communicators"},
                "comm-nccl: edge_communicators = true is only for the pipeline axis, but this table serves the {} axis",
                *other)
                .with_hint("set it in the table [comm.pipeline]: edge_communicators = true"));
  return out;
}

int NcclBackend::version() const {
  int version = 0;
  check(api_, api_.get_version(&version), "ncclGetVersion", "comm-nccl");
  return version;
}

void NcclBackend::start(Device& device) {
  CommRequest request;
  request.device = device.kind();
  if (Refusals answer = supports(request); !answer.empty()) throw to_error(answer);
  device_ = &device;
  for (const std::string& note : settings_.notes) log_.info("{}", note);
  // Must precede the first call that makes NCCL read its environment.
  if (!std::getenv("NCCL_RUNTIME_CONNECT")) set({"NCCL_RUNTIME_CONNECT", "0"}); // connect when joining, not in a step
  set_launch_order();
  if (!settings_.several_ranks_per_gpu) return;
  log_.warn("comm-nccl: several_ranks_per_gpu = true is only for tests: each call takes milliseconds");
  for (const Variable& variable : variables_for_shared_gpu(rank_)) set(variable);
}

/// The executor launches in one order, but on several streams and communicators. Also set if only edges have
/// communicators: NCCL reads the variable once, and other axes may join later.
void NcclBackend::set_launch_order() {
  if (version() >= kOrderVersion) {
    if (!std::getenv(kOrder)) set({kOrder, "1"});
    return;
  }
  log_.info(
      "comm-nccl: NCCL {} does not order calls of different communicators; {} and later do. Several axes over "
      "comm-nccl are safe only if their kernels fit on the GPU at the same time",
      version_text(version()), version_text(kOrderVersion));
}

void NcclBackend::set(const Variable& variable) {
  log_.info("comm-nccl: sets {} = {} for NCCL", variable.name, variable.value);
  api_.set_variable(variable.name.c_str(), variable.value.c_str());
}

std::unique_ptr<Communicator> NcclBackend::join(const Group& group, Store& store, Deadline deadline) {
  TRIAX_REQUIRE(device_, "comm-nccl: join() before start()");
  GroupHandles handles = Bootstrap(api_, settings_, *device_, group, store, deadline).join();
  return std::make_unique<NcclCommunicator>(api_, *device_, store, group, std::move(handles),
                                            settings_.register_buffers);
}

} // namespace triax::comm_nccl
