// SPDX-License-Identifier: Apache-2.0
// Whether the sides can be measured in the same ranks: as threads of this process, or as processes.
#include <nlohmann/json.hpp>

#include "bench/side_plugins.hpp"
#include "plugin/call_guard.hpp"
#include "plugin/probe_answer.hpp"
#include "plugin/probe_process.hpp"
#include "triax/communicator.hpp"
#include "triax/log.hpp"

namespace triax::bench {

namespace {

using Ranks = CommTraits::Ranks;

template <class Interface>
plugin::Instance<Interface> make_object(const config::PluginChoice& choice, const Layout& layout) {
  return plugin::create<Interface>(*choice.library, {choice.options, null_log(), layout, 0, 1}, choice.folders);
}

DeviceKind ask_kernels(const config::PluginChoice& choice, const CommPlan& plan, Refusals& refusals) {
  const Layout layout = Layout::ptd(1, plan.ranks, 1);
  const auto set = make_object<KernelSet>(choice, layout);
  DeviceRequest request;
  request.local_ranks = plan.ranks;
  const Refusals answer =
      plugin::guarded_call(choice.name, "device_available", [&] { return set->device_available(request); });
  for (const Refusal& refusal : answer)
    refusals.add(make_refusal(refusal.code, {"--kernels"}, "--kernels {}: {}", choice.name, refusal.message)
                     .with_hint("{}", refusal.hint));
  return set->device_kind();
}

void ask_side(const Side& side, const CommPlan& plan, const RankMode& mode, Refusals& refusals) {
  const config::PluginChoice& choice = side.choice;
  const Layout layout = Layout::ptd(1, plan.ranks, 1);
  const auto backend = make_object<CommBackend>(choice, layout);
  const CommRequest request{mode.device, {std::string(kTensorAxis)}, mode.ranks_are_threads, true};
  const Refusals answer = plugin::guarded_call(choice.name, "supports", [&] { return backend->supports(request); });
  for (const Refusal& refusal : answer)
    refusals.add(make_refusal(refusal.code, {side.flag}, "{} {}: {}", side.flag, choice.name, refusal.message)
                     .with_hint("{}", refusal.hint));
}

/// Threads, if a side needs that.
bool choose_threads(const CommPlan& plan, bool started, Refusals& refusals) {
  const Layout layout = Layout::ptd(1, plan.ranks, 1);
  const Side *threads = nullptr, *processes = nullptr;
  for (const Side& side : plan.sides) {
    const Ranks ranks = make_object<CommBackend>(side.choice, layout)->traits().ranks;
    if (ranks == Ranks::same_process) threads = &side;
    if (ranks == Ranks::one_per_process) processes = &side;
  }
  if (threads && processes)
    refusals.add(make_refusal(ErrorCode::kConflict, {"--vs"},
                              "{} joins threads of one process, but {} requires one process per rank",
                              threads->choice.name, processes->choice.name)
                     .with_hint("compare {} with a communicator that joins processes, comm-ucx for example",
                                processes->choice.name));
  if (threads && started)
    refusals.add(make_refusal(ErrorCode::kUnsupported, {threads->flag},
                              "{} {} joins threads of one process, but a launcher has started the ranks as processes",
                              threads->flag, threads->choice.name)
                     .with_hint("run triax bench comm without mpirun, srun or torchrun"));
  return threads != nullptr;
}

} // namespace

RankMode choose_rank_mode(const CommPlan& plan, const config::PluginChoice* kernels, bool started, Refusals& refusals) {
  const auto ask = [&] {
    const plugin::CallScope all({}, "the check of the communicators", {}, plugin::CallKind::unlimited);
    Refusals found;
    RankMode out;
    if (kernels) out.device = ask_kernels(*kernels, plan, found);
    out.ranks_are_threads = choose_threads(plan, started, found);
    if (found.empty())
      for (const Side& side : plan.sides) ask_side(side, plan, out, found);
    return plugin::pack(
        nlohmann::json::array({out.ranks_are_threads, static_cast<int>(out.device), plugin::refusals_json(found)}));
  };
  const plugin::ProbeResult result = plugin::run_probe(ask, plugin::ProbeOutput::inherited);
  RankMode out;
  if (result.failure) {
    refusals.add(make_refusal(ErrorCode::kPluginFailed, {}, "{}: {}", result.failure->plugin, result.failure->reason())
                     .with_hint("{}", result.failure->hint(result.failure->file)));
    return out;
  }
  const nlohmann::json json = plugin::unpack(result.output);
  out.ranks_are_threads = json.at(0);
  out.device = static_cast<DeviceKind>(json.at(1).get<int>());
  refusals.add(plugin::read_refusals(json.at(2)));
  return out;
}

} // namespace triax::bench
