// SPDX-License-Identifier: Apache-2.0
#include "plan/link_traffic.hpp"

#include <algorithm>
#include <numeric>
#include <span>

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

/// The plans of all ranks that differ, without what depends on this machine.
train::Preflight planned(const config::RunConfig& run, const Layout& layout, Log& log) {
  const train::RankPlugins plugins(run, layout, 0, 1, log);
  const train::Programs programs = train::lower_programs(run, layout, plugins, plugins.rows());
  std::vector<int> ranks(static_cast<std::size_t>(layout.pipeline_size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return train::plan_under(run, train::choose_placement(run), log, programs, ranks,
                           train::PlannedRanks::all_that_differ);
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
  const train::Preflight checked = planned(run, layout, log);
  if (!checked.refusals.empty()) throw to_error(checked.refusals);
  std::vector<AxisTraffic> out;
  for (const train::RankPlan& plan : checked.plans)
    for (const int rank : plan.ranks)
      for (std::size_t axis = 0; axis < plan.communication.size(); ++axis) {
        const executor::AxisPlan& of = plan.communication[axis];
        if (axis == out.size()) out.push_back({of.axis, {}, {}});
        const ByLink bytes = sent_by(layout, rank, plan.ranks.front(), of, devices);
        for (std::size_t kind = 0; kind < kLinkKinds; ++kind) count(out[axis].by_link[kind], bytes[kind]);
        count(out[axis].sent, bytes[0] + bytes[1]);
      }
  return out;
}

} // namespace triax::plan
