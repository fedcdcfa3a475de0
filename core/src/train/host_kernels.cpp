// SPDX-License-Identifier: Apache-2.0
#include "train/host_kernels.hpp"

#include "plugin/call_guard.hpp"
#include "train/uninstalled.hpp"
#include "triax/rank_activity.hpp"

namespace triax::train {

namespace {

constexpr const char* kKey = "memory.offload_kernels";

plugin::Instance<KernelSet> make_host_kernels(const config::RunConfig& run, const Layout& layout, int rank, int threads,
                                              Log& log) {
  if (!run.memory.host_kernels) return make_uninstalled_kernels(); // a run of which only the schedule is read
  const config::PluginChoice& choice = *run.memory.host_kernels;
  return call_plugin("create", choice.name.c_str(), [&] {
    return plugin::create<KernelSet>(*choice.library, PluginContext{choice.options, log, layout, rank, threads},
                                     choice.folders);
  });
}

} // namespace

bool updates_on_host(const config::RunConfig& run, DeviceKind device) {
  return run.memory.offload == "optimizer" && device != DeviceKind::host && !run.evaluates;
}

executor::OffloadRequest offload_request(const config::RunConfig& run, DeviceKind device) {
  using executor::OffloadTarget;
  const bool on_disk = run.memory.offload == "disk" && !run.evaluates;
  const OffloadTarget target = on_disk                        ? OffloadTarget::storage
                               : updates_on_host(run, device) ? OffloadTarget::host
                                                              : OffloadTarget::none;
  return {.target = target,
          .buffer_bytes = run.memory.offload_buffer_bytes,
          .gradients = run.memory.offload_gradients == "bf16" ? DType::bf16 : run.train.master,
          .delayed = run.memory.offload_delayed_update};
}

HostKernelSet::HostKernelSet(const config::RunConfig& run, const Layout& layout, int rank, int threads, Log& log)
    : kernels_(make_host_kernels(run, layout, rank, threads, log)) {}

Refusals HostKernelSet::refusals(const config::RunConfig& run, const OptimizerTraits& optimizer) const {
  Refusals out;
  if (run.train.compute == run.train.master)
    out.add(make_refusal(ErrorCode::kUnsupported, {"memory.offload", "train.precision"},
                         "memory.offload = \"optimizer\": with train.precision = {} layers read the master weights, so "
                         "these cannot leave the device",
                         run.values.at("train.precision"))
                .with_hint("use train.precision \"bf16\" or \"fp16\", or leave memory.offload out"));
  if (run.train.cuda_graph)
    out.add(
        make_refusal(ErrorCode::kUnsupported, {"memory.offload", "train.cuda_graph"},
                     "train.cuda_graph cannot be combined with memory.offload = \"optimizer\": the host updates the "
                     "weights, and a CUDA graph runs without the host")
            .with_hint("leave one of them out"));
  if (!optimizer.elementwise)
    out.add(make_refusal(ErrorCode::kUnsupported, {"memory.offload", "optimizer.plugin"},
                         "memory.offload = \"optimizer\" updates each element alone, but optimizer.plugin \"{}\" needs "
                         "values of whole parameters, which its ranks would exchange between their devices",
                         run.optimizer.name)
                .with_hint("use an optimizer that updates each element alone, such as optim-adamw, or leave "
                           "memory.offload out and use optimizer.shard"));
  if (!run.memory.host_kernels) return out;
  const config::PluginChoice& choice = *run.memory.host_kernels;
  if (kernels_->device_kind() != DeviceKind::host || !kernels_->computes())
    out.add(make_refusal(ErrorCode::kUnsupported, {kKey},
                         "{} = \"{}\" does not compute on the CPU, so it cannot update the weights on the host", kKey,
                         choice.name)
                .with_hint("use a kernel set for the CPU, such as kernels-cpu"));
  else
    out.add(of_host_kernels(run, plugin::guarded_call(choice.name, "supports", [&] {
                              return kernels_->supports(KernelRequest{run.train.compute, run.train.master});
                            })));
  return out;
}

executor::HostKernels HostKernelSet::start(const config::RunConfig& run) {
  return call_plugin("start", run.memory.host_kernels->name.c_str(), [&] {
    device_ = kernels_->make_device({});
    stream_ = device_->make_stream("updates on the host");
    kernels_->start(*device_);
    return executor::HostKernels{*kernels_, *device_, *stream_};
  });
}

Refusals of_host_kernels(const config::RunConfig& run, Refusals refusals) {
  for (Refusal& refusal : refusals) {
    refusal.keys.emplace_back(kKey);
    refusal.message = text("{} = \"{}\": {}", kKey, run.memory.host_kernels->name, refusal.message);
    if (refusal.hint.empty()) refusal.hint = text("choose another {}", kKey);
  }
  return refusals;
}

} // namespace triax::train
