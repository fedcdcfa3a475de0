// SPDX-License-Identifier: Apache-2.0
// Times of the collectives of a plan over data ranks, and between pipeline ranks that share a parameter.
#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include "plan/plan_costs.hpp"
#include "plan/stage_sums.hpp"

namespace triax::plan {

namespace {

using Kind = Collective::Kind;

} // namespace

/// Whether some of the ranks of two pipeline ranks, `stride` each, have their counterparts on other nodes.
bool PlanCosts::crosses_nodes(int from, int to, int stride) const {
  const int devices = cluster_.node.devices;
  if (from == to) return false;
  if (stride >= devices) return true;
  for (int rank = 0; rank < stride; ++rank)
    if ((from * stride + rank) / devices != (to * stride + rank) / devices) return true;
  return false;
}

/// The data group that lies on most nodes: groups may begin anywhere on a node.
cost::GroupShape PlanCosts::data_group(const TrainingPlan& plan) const {
  const int devices = cluster_.node.devices, stride = plan.tensor, ranks = stride * plan.data;
  cost::GroupShape out = cost::placed(plan.data, stride, devices);
  if (request_.space.ranks <= devices) return out;
  const int step = std::gcd(ranks, devices); // between the places where groups begin
  const int last_begin = devices - step + std::min(stride, step) - 1;
  out.nodes = std::min(plan.data, (last_begin + ranks - stride) / devices + 1);
  return out;
}

double PlanCosts::reduce_s(const TrainingPlan& plan, double parameters) const {
  if (plan.data == 1) return 0;
  const bool scatters_gradients = has(plan, "gradients") || has(plan, "parameters");
  return collectives_.seconds(scatters_gradients ? Kind::reduce_scatter : Kind::all_reduce,
                              cost::reduction_bytes(code_, request_.run.train.master) * parameters, data_group(plan));
}

/// All-gather of the working weights, of which each data rank has a part.
double PlanCosts::gather_s(const TrainingPlan& plan, double parameters) const {
  if (!shards(plan)) return 0;
  return collectives_.seconds(Kind::all_gather,
                              static_cast<double>(bytes_of(request_.run.train.compute)) * parameters / plan.data,
                              data_group(plan));
}

/// Sums of the gradients of tied parameters that are on two pipeline ranks.
double PlanCosts::tied_s(const TrainingPlan& plan, const std::vector<TieRanks>& ties) {
  const std::vector<double>& elements = layers_.tied_elements(plan.tensor);
  const int stride = plan.tensor * plan.data;
  double out = 0;
  for (std::size_t at = 0; at < ties.size(); ++at) {
    if (ties[at].a == ties[at].b) continue;
    const cost::GroupShape group{2, crosses_nodes(ties[at].a, ties[at].b, stride) ? 2 : 1,
                                 std::min(stride, cluster_.node.devices)};
    out += collectives_.seconds(Kind::all_reduce,
                                cost::reduction_bytes(code_, request_.run.train.master) * elements[at], group);
  }
  return out;
}

} // namespace triax::plan
