// SPDX-License-Identifier: Apache-2.0
#include "plugin/plugin_kinds.hpp"

#include <algorithm>
#include <iterator>

#include "triax/communicator.hpp"
#include "triax/kernels.hpp"
#include "triax/layout.hpp"
#include "triax/model.hpp"
#include "triax/optimizer.hpp"
#include "triax/planner.hpp"
#include "triax/scheduler.hpp"

namespace triax::plugin {

namespace {

// A test compares them with the tables of the config module.
constexpr std::string_view kCommKeys[] = {kTensorAxis, kPipelineAxis, kDataAxis}; // tables inside [comm]
constexpr std::string_view kModelKeys[] = {"vocab"};
constexpr std::string_view kOptimizerKeys[] = {"lr", "weight_decay", "shard", "prefetch"};

struct KindWords {
  std::string_view table, prefix, article_name, plural;
};

/// Before 1.0 the oldest version is the current one. From 1.0 it is that of the last change that old plugins do not
/// survive: pass it as `oldest`.
template <class Interface>
constexpr PluginKind kind_of(const KindWords& words, std::span<const std::string_view> core_keys = {},
                             std::uint32_t oldest = Interface::kInterfaceVersion) {
  static_assert(Interface::kInterfaceVersion > 0);
  return {Interface::kKind, Interface::kInterfaceVersion, oldest,       words.table,
          words.prefix,     words.article_name,           words.plural, core_keys};
}

constexpr PluginKind kKinds[] = {
    kind_of<CommBackend>({"comm", "comm-", "a communicator", "communicators"}, kCommKeys),
    kind_of<Scheduler>({"schedule", "sched-", "a scheduler", "schedulers"}),
    kind_of<KernelSet>({"kernels", "kernels-", "a kernel set", "kernel sets"}),
    kind_of<Model>({"model", "model-", "a model", "models"}, kModelKeys),
    kind_of<Optimizer>({"optimizer", "optim-", "an optimizer", "optimizers"}, kOptimizerKeys),
    kind_of<Planner>({"plan", "plan-", "a planner", "planners"}),
};

} // namespace

std::span<const PluginKind> plugin_kinds() {
  return kKinds;
}

const PluginKind* find_plugin_kind(std::string_view name) {
  const auto* known = std::ranges::find(kKinds, name, &PluginKind::name);
  return known == std::end(kKinds) ? nullptr : known;
}

std::string plugin_kind_names() {
  std::string out;
  for (const PluginKind& kind : kKinds) out.append(out.empty() ? "" : ", ").append(kind.name);
  return out;
}

Refusals check_interface_version(const PluginKind& kind, std::uint32_t version) {
  if (version >= kind.oldest_version && version <= kind.version) return {};
  const std::string ours = kind.oldest_version == kind.version
                               ? text("version {}", kind.version)
                               : text("versions {} to {}", kind.oldest_version, kind.version);
  const char* const next = version > kind.version
                               ? "use the Triax that it was built for, or rebuild it against this one"
                               : "rebuild it against this triax: docs/plugins/changelog.md lists "
                                 "what changed";
  return make_refusal(ErrorCode::kIncompatible, {}, "it is built for version {} of the {} interface; this triax has {}",
                      version, kind.name, ours)
      .with_hint("{}", next);
}

} // namespace triax::plugin
