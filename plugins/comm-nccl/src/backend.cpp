#include "backend.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

#include "communicator.hpp"
#include "meeting.hpp"
#include "results.hpp"
#include "solo.hpp"

namespace comm_nccl {

NcclBackend::NcclBackend(const PluginContext& context, const NcclApi& api)
    : api_(api), log_(context.log), rank_(context.rank), settings_(read_settings(context.options)) {}

// NCCL does not promise that kernels of two communicators run at the same time: it keeps one order for a device, unless
// the edges of a pipeline have communicators and small kernels of their own, which all fit beside each other; then an
// edge waits for itself alone. Sends wait for their receives. Sums: in an order that NCCL chooses by sizes and
// machines, the same in every run. A process has one rank, as NCCL reads its environment once, and finds a rank's GPU
// by its thread.
CommTraits NcclBackend::traits() const {
  CommTraits traits;
  traits.order = settings_.edge_communicators ? CommTraits::Order::channel : CommTraits::Order::serial;
  traits.send = CommTraits::Send::rendezvous;
  traits.post = CommTraits::Post::nonblocking;
  traits.reduction = CommTraits::Reduction::fixed;
  traits.ranks = CommTraits::Ranks::one_per_process;
  return traits;
}

Support NcclBackend::supports(const CommRequest& request) const {
  if (request.device != DeviceKind::cuda)
    return Support::no("comm-nccl moves CUDA memory; the kernel set's device is {}", name_of(request.device))
        .hint("use a kernel set that computes on GPUs, or a communicator for memory of the host: comm-ucx, comm-local");
  if (Support version = check_version(api_); !version) return version;
  if (!settings_.support) return settings_.support;
  if (std::ranges::find(request.axes, "pipeline") != request.axes.end() && !settings_.pipeline)
    return settings_.pipeline;
  return Support::yes();
}

void NcclBackend::start(Device& device) {
  CommRequest request;
  request.device = device.kind();
  if (Support answer = supports(request); !answer) throw Error(answer.reason(), {}, answer.hint());
  device_ = &device;
  for (const std::string& note : settings_.notes) log_.info("{}", note);
  // Before the first call that makes NCCL read its environment.
  if (!std::getenv("NCCL_RUNTIME_CONNECT")) set({"NCCL_RUNTIME_CONNECT", "0"}); // connect when made, not in a step
  if (!settings_.several_ranks_per_gpu) return;
  log_.warn("comm-nccl: several_ranks_per_gpu = true: for correctness alone, each call takes milliseconds");
  for (const Variable& variable : variables_for_shared_gpu(rank_)) set(variable);
}

void NcclBackend::set(const Variable& variable) {
  log_.info("comm-nccl: sets {} = {} for NCCL", variable.name, variable.value);
  api_.set_variable(variable.name.c_str(), variable.value.c_str());
}

std::unique_ptr<Communicator> NcclBackend::join(const Group& group, Store& store, Deadline deadline) {
  TRIAX_REQUIRE(device_, "comm-nccl: join() before start()");
  if (group.size() == 1) return std::make_unique<SoloCommunicator>(group, *device_);
  Meeting meeting = Joining(api_, settings_, *device_, group, store, deadline).join();
  return std::make_unique<NcclCommunicator>(api_, *device_, store, group, std::move(meeting),
                                            settings_.register_buffers);
}

} // namespace comm_nccl
