// SPDX-License-Identifier: Apache-2.0
#include "plan/link_traffic.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "executor/split.hpp"
#include "train/memory_ranks.hpp"
#include "train/preflight.hpp"
#include "train/rank_setup.hpp"
#include "triax/error.hpp"

namespace triax::plan {

namespace {

using Axes = std::span<const std::string>;

/// The rank with this index in the group of `rank` over these axes: members are in the order of their ranks.
int member_of(const Layout& layout, int rank, Axes axes, int index) {
  std::vector<int> coordinates = layout.coordinates(rank);
  for (std::size_t at = 0; at < coordinates.size(); ++at) {
    const Axis& axis = layout.axes()[at];
    if (std::ranges::find(axes, axis.name) == axes.end()) continue;
    coordinates[at] = index % axis.size;
    index /= axis.size;
  }
  return layout.rank_of(coordinates);
}

/// The properties of a pipeline rank on which the bytes that it sends depend.
struct SendingRank {
  std::vector<std::vector<int>> layers;             // kinds, by stage
  std::vector<schedule::Facts> facts;               // of the stages
  std::vector<std::pair<Recompute, int>> recompute; // of the stages: how, and with `full` blocks of a group
  std::vector<int> actions; // number, by stage of the rank, after them those of the whole rank, and kind
  std::vector<int> peers;   // of the stages' neighbours on other ranks, in order
  bool has_tie = false;

  /// Whether a rank sends as much as another. Each peer of the other is then one peer of this rank.
  bool sends_as(const SendingRank& other) const {
    if (has_tie || other.has_tie || layers != other.layers || facts != other.facts || recompute != other.recompute ||
        actions != other.actions)
      return false;
    for (std::size_t at = 0; at < peers.size(); ++at)
      if (peers[at] != peer_of(other, other.peers[at])) return false;
    return true;
  }
  /// The peer that this rank has in the place of a peer of `other`.
  int peer_of(const SendingRank& other, int peer) const {
    const auto found = std::ranges::find(other.peers, peer);
    TRIAX_REQUIRE(found != other.peers.end(), "pipeline rank {} has no neighbour stage, but it is sent to", peer);
    return peers[static_cast<std::size_t>(found - other.peers.begin())];
  }
};

/// `context`: of the model's layers; `device`: of the kernel set.
SendingRank sending_rank(const config::RunConfig& run, const schedule::Program& program, const Model& model,
                         const LayerContext& context, DeviceKind device, std::span<const int> kinds) {
  SendingRank out;
  const std::vector<executor::StageLayers> split =
      executor::split_layers(model, program.stage_map().stages(), run.parallel.split);
  const schedule::StageMap& stage_map = program.stage_map();
  for (const int stage : program.stages()) {
    const executor::StageLayers& of = split[static_cast<std::size_t>(stage)];
    const auto first = kinds.begin() + of.first;
    out.layers.emplace_back(first, first + of.count);
    out.facts.push_back(stage_map.facts(stage));
    const Recompute how = run.memory.recompute_of(stage);
    const int group = how == Recompute::full ? train::recompute_group(run, model, context, program, stage, device) : 0;
    out.recompute.emplace_back(how, group);
    if (stage_map.has(stage, schedule::kBeforeElsewhere)) out.peers.push_back(stage_map.rank_of(stage - 1));
    if (stage_map.has(stage, schedule::kAfterElsewhere)) out.peers.push_back(stage_map.rank_of(stage + 1));
    for (const Tie& tie : model.ties())
      for (const int layer : {tie.layer_a, tie.layer_b})
        out.has_tie |= layer >= of.first && layer < of.first + of.count;
  }
  out.actions.assign((out.layers.size() + 1) * schedule::kKinds, 0);
  for (const schedule::ProgramAction& action : program.actions()) {
    const std::size_t stage =
        action.stage < 0 ? out.layers.size() : static_cast<std::size_t>(stage_map.number_on_rank(action.stage));
    ++out.actions[stage * schedule::kKinds + static_cast<std::size_t>(action.kind)];
  }
  return out;
}

/// The dry runs of the pipeline ranks that differ, without what depends on this machine.
struct PlannedTraffic {
  train::Preflight checked;
  std::vector<SendingRank> ranks; // by pipeline rank
  std::vector<int> planned;       // by pipeline rank: the one whose dry run it has
};

PlannedTraffic planned(const config::RunConfig& run, const Layout& layout, Log& log) {
  const train::RankPlugins plugins(run, layout, 0, 1, log);
  const Model& model = plugins.model();
  const train::Programs programs = train::lower_programs(run, layout, plugins, plugins.rows());
  const LayerContext context = train::layer_context(run, model, layout, 0);
  const std::vector<int> kinds = train::layer_kinds(model, context);
  PlannedTraffic out;
  std::vector<int> ranks; // that are planned
  for (const schedule::Program& program : programs.training) {
    const SendingRank& rank =
        out.ranks.emplace_back(sending_rank(run, program, model, context, plugins.kernels().device_kind(), kinds));
    const auto same =
        std::ranges::find_if(ranks, [&](int of) { return rank.sends_as(out.ranks[static_cast<std::size_t>(of)]); });
    out.planned.push_back(same == ranks.end() ? program.rank() : *same);
    if (same == ranks.end()) ranks.push_back(program.rank());
  }
  out.checked =
      train::plan_under(run, train::choose_placement(run), log, programs, ranks, train::PlannedRanks::all_that_differ);
  return out;
}

/// The plan of an axis, of a pipeline rank that sends as the planned one. Collectives are in the entries of all
/// members, transfers in that of the planned rank only.
executor::AxisPlan moved_to(const executor::AxisPlan& of, const PlannedTraffic& traffic, int pipeline) {
  executor::AxisPlan out = of;
  const int planned = traffic.planned[static_cast<std::size_t>(pipeline)];
  if (planned == pipeline || of.axes != std::vector<std::string>{std::string(kPipelineAxis)}) return out;
  out.sent.clear();
  for (const auto& [peer, bytes] : of.sent) {
    const auto& ranks = traffic.ranks;
    out.sent[ranks[static_cast<std::size_t>(pipeline)].peer_of(ranks[static_cast<std::size_t>(planned)], peer)] +=
        bytes;
    out.of_member[static_cast<std::size_t>(pipeline)].bytes_out += bytes;
  }
  return out;
}

/// The rank that differs from `rank` in its pipeline coordinate only.
int at_pipeline(const Layout& layout, int rank, int pipeline) {
  const std::string axis(kPipelineAxis);
  return member_of(layout, rank, std::span(&axis, 1), pipeline);
}

using ByLink = std::array<std::uint64_t, kLinkKinds>;

/// The bytes that a rank sends over an axis, whose plan is that of `planned`, a rank with the same layers. Transfers
/// are those of `planned` alone: other ranks have the same ones only if they have the same index in their group.
ByLink sent_by(const Layout& layout, int rank, int planned, const executor::AxisPlan& plan, int devices) {
  ByLink out{};
  const auto add = [&](int index, std::uint64_t bytes) {
    const int peer = member_of(layout, rank, plan.axes, index);
    const LinkKind kind = peer / devices == rank / devices ? LinkKind::node : LinkKind::network;
    out[static_cast<std::size_t>(kind)] += bytes;
  };
  const int member = layout.group_rank(rank, plan.axes), members = static_cast<int>(plan.of_member.size());
  std::uint64_t in_collectives = plan.of_member[static_cast<std::size_t>(member)].bytes_out;
  if (member == layout.group_rank(planned, plan.axes))
    for (const auto& [index, bytes] : plan.sent) {
      TRIAX_REQUIRE(bytes <= in_collectives, "the dry run of rank {} sends {} bytes in transfers, but {} in all",
                    planned, bytes, in_collectives);
      add(index, bytes);
      in_collectives -= bytes;
    }
  add((member + 1) % members, in_collectives);
  return out;
}

void count(SentBytes& sum, std::uint64_t bytes) {
  sum.most = std::max(sum.most, bytes);
  sum.all += bytes;
}

} // namespace

std::vector<AxisTraffic> link_traffic(const config::RunConfig& run, int devices, Log& log) {
  const Layout layout = train::layout_of(run);
  const PlannedTraffic traffic = planned(run, layout, log);
  if (!traffic.checked.refusals.empty()) throw to_error(traffic.checked.refusals);
  std::vector<AxisTraffic> out;
  for (int pipeline = 0; pipeline < layout.pipeline_size(); ++pipeline)
    for (const train::RankPlan& plan : traffic.checked.plans) {
      if (plan.pipeline != traffic.planned[static_cast<std::size_t>(pipeline)]) continue;
      const int first = at_pipeline(layout, plan.ranks.front(), pipeline);
      for (std::size_t axis = 0; axis < plan.communication.size(); ++axis) {
        const executor::AxisPlan of = moved_to(plan.communication[axis], traffic, pipeline);
        if (axis == out.size()) out.push_back({of.axis, {}, {}});
        for (const int rank : plan.ranks) {
          const ByLink bytes = sent_by(layout, at_pipeline(layout, rank, pipeline), first, of, devices);
          for (std::size_t kind = 0; kind < kLinkKinds; ++kind) count(out[axis].by_link[kind], bytes[kind]);
          count(out[axis].sent, bytes[0] + bytes[1]);
        }
      }
    }
  return out;
}

} // namespace triax::plan
