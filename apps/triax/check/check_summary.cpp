// SPDX-License-Identifier: Apache-2.0
#include "check/check_summary.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <tuple>
#include <vector>

#include "common/resolved_split.hpp"
#include "common/table.hpp"
#include "report/units.hpp"
#include "train/offload_file.hpp"
#include "train/train_text.hpp"
#include "triax/text.hpp"

namespace triax::app {

namespace {

using report::bytes_text;

/// "16 microbatches x (6 blocks x 302 MB + 1 head x 20 MB) + 41 MB of workspace + 2 x 4 MB of transfers"
std::string formula(const std::vector<executor::ActivationPart>& parts) {
  const auto join = [](std::string& to, const std::string& more) { to += (to.empty() ? "" : " + ") + more; };
  std::map<int, std::string, std::greater<>> layers;    // by microbatches
  std::map<std::size_t, int, std::greater<>> transfers; // by size
  std::string others, out;
  for (const executor::ActivationPart& part : parts) {
    const std::string bytes = bytes_text(part.bytes);
    if (part.what == "workspace") {
      join(others, text("{} of workspace", bytes));
    } else if (part.what == "transfers") {
      transfers[part.bytes] += part.layers * part.microbatches;
    } else {
      join(layers[part.microbatches], text("{} x {}", report::counted_text(part.layers, part.what), bytes));
    }
  }
  for (const auto& [microbatches, of] : layers)
    join(out, text("{} x ({})", report::counted_text(microbatches, "microbatch", "microbatches"), of));
  for (const auto& [bytes, count] : transfers) join(others, text("{} x {} of transfers", count, bytes_text(bytes)));
  if (!others.empty()) join(out, others);
  return out;
}

std::string memory_lines(const CheckReport& report) {
  const train::RankPlan& most = largest_plan(report.preflight);
  std::size_t others = 0; // ranks that need as much
  for (const train::RankPlan& plan : report.preflight.plans)
    if (plan.bytes() == most.bytes()) others += plan.ranks.size();
  --others;
  std::string out = text("peak memory: rank {}", most.ranks.front());
  if (others > 0) out += text(" and {} other rank{}", others, others > 1 ? "s" : "");
  out += text(", {}{}", bytes_text(most.bytes()), others > 0 ? " each" : "");
  if (report.limit)
    out += text("; {} in --memory {}, {} free", others > 0 ? "each fits" : "it fits", report.limit->written,
                bytes_text(report.limit->bytes - most.bytes()));
  std::uint64_t activations = 0;
  for (const executor::ActivationPart& part : most.activations) activations += part.total();
  out += text("\nactivations of rank {}: {} = {}\n", most.ranks.front(), bytes_text(activations),
              formula(most.activations));
  for (const train::StageRecomputation& of : report.preflight.recomputation)
    out += text("recomputation of {}\n", to_text(of));
  return out;
}

/// "parameters 1.2 M (stage 0) to 800 k (stage 3)"
template <class Value>
std::string range(const char* what, const std::vector<train::StagePlan>& stages, Value value) {
  const auto least = std::ranges::min_element(stages, {}, value), most = std::ranges::max_element(stages, {}, value);
  const auto number = [&](auto at) {
    return text("{} (stage {})", report::count_text(static_cast<double>(std::invoke(value, *at))), at - stages.begin());
  };
  if (std::invoke(value, *least) == std::invoke(value, *most))
    return text("{} {} on each", what, report::count_text(static_cast<double>(std::invoke(value, *most))));
  return text("{} {} to {}", what, number(most), number(least));
}

/// An automatic split needs one value of memory.recompute, and does not replace numbers that are written.
const char* split_hint(const config::RunConfig& run) {
  const bool is_mixed = !run.memory.recompute.all(run.memory.recompute.of(0));
  return is_mixed || !run.parallel.split.empty() ? "; move layers with parallel.split"
                                                 : "; try parallel.split = \"auto\"";
}

std::string stage_lines(const config::RunConfig& run, const train::Balance& balance) {
  constexpr double kEven = 0.005;
  std::string chosen = run.parallel.excess ? split_text(run) + '\n' : std::string();
  if (!balance.step) return chosen;
  const train::StepEstimate& step = *balance.step;
  std::string out = text("per rank: {}, {}\n", range("parameters", balance.stages, &train::StagePlan::parameters),
                         range("FLOPs of a microbatch", balance.stages, &train::StagePlan::all_flops));
  out += chosen;
  if (std::abs(step.longer) < kEven)
    return out + text("even stages: mean bubble {} (estimated from FLOPs, without transfers)\n",
                      report::percent_text(step.bubble));
  const bool is_longer = step.longer > 0;
  return out +
         text(
             "uneven stages: the step is {} {} than with equal stages (mean bubble {} instead of {}; estimated from "
             "FLOPs, without transfers){}\n",
             report::percent_text(std::abs(step.longer)), is_longer ? "longer" : "shorter",
             report::percent_text(step.bubble), report::percent_text(step.even_bubble),
             is_longer && chosen.empty() ? split_hint(run) : "");
}

/// "offloaded state: rank 0 has most, a file of 1.2 GB; all ranks: 2.4 GB in runs/tiny"
std::string offload_line(const CheckReport& report) {
  const std::vector<train::RankPlan>& plans = report.preflight.plans;
  const train::RankPlan& most = *std::ranges::max_element(plans, {}, &train::RankPlan::offload_bytes);
  if (most.offload_bytes == 0) return {};
  std::uint64_t all = 0;
  for (const train::RankPlan& plan : plans) all += plan.ranks.size() * plan.offload_bytes;
  return text("offloaded state: rank {} has most, a file of {}; all ranks: {} in {}\n", most.ranks.front(),
              bytes_text(most.offload_bytes), bytes_text(all), shown(train::offload_folder(*report.loaded.run)));
}

/// "updates on the host: in a step, rank 0 sends 1.2 MB of gradients to its host, and receives 600 kB of weights; all
/// ranks: 4.8 MB and 2.4 MB"
std::string host_update_line(const std::vector<train::RankPlan>& plans) {
  const auto to_host = [](const train::RankPlan& plan) { return plan.host_traffic.to_host; };
  const train::RankPlan& most = *std::ranges::max_element(plans, {}, to_host);
  if (most.host_traffic.to_host == 0) return {};
  executor::HostTraffic all;
  for (const train::RankPlan& plan : plans) {
    all.to_host += plan.ranks.size() * plan.host_traffic.to_host;
    all.to_device += plan.ranks.size() * plan.host_traffic.to_device;
  }
  return text(
      "updates on the host: in a step, rank {} sends {} of gradients to its host, and receives {} of weights; all "
      "ranks: {} and {}\n",
      most.ranks.front(), bytes_text(most.host_traffic.to_host), bytes_text(most.host_traffic.to_device),
      bytes_text(all.to_host), bytes_text(all.to_device));
}

/// "communication of a step: a rank sends at most 1.2 MB over tensor (rank 0), 300 kB over pipeline (rank 1); all ranks
/// send 8 MB"
std::string communication_line(const std::vector<train::RankPlan>& plans) {
  struct Most {
    std::string axis;
    std::uint64_t bytes = 0;
    int rank = 0;
  };
  std::vector<Most> axes;
  std::uint64_t all = 0;
  for (const train::RankPlan& plan : plans) {
    for (std::size_t data = 0; data < plan.traffic.size(); ++data) {
      for (std::size_t axis = 0; axis < plan.traffic[data].size(); ++axis) {
        const report::GroupTraffic& of = plan.traffic[data][axis];
        if (axis == axes.size()) axes.push_back({of.group, of.bytes_out, plan.ranks[data]});
        if (of.bytes_out > axes[axis].bytes) axes[axis] = {of.group, of.bytes_out, plan.ranks[data]};
        all += of.bytes_out;
      }
    }
  }
  std::string out;
  for (const Most& most : axes)
    out += text("{}{} over {} (rank {})", out.empty() ? "communication of a step: a rank sends at most " : ", ",
                bytes_text(most.bytes), most.axis, most.rank);
  return out.empty() ? out : text("{}; all ranks send {}\n", out, bytes_text(all));
}

/// "embedding, 6 blocks": number of layers of each kind, in order.
std::string layer_counts(const std::vector<std::string>& layers) {
  std::vector<std::pair<std::string, int>> kinds;
  for (const std::string& layer : layers) {
    const std::string kind = layer.substr(0, layer.find_last_not_of("0123456789 ") + 1);
    const auto known = std::ranges::find(kinds, kind, &std::pair<std::string, int>::first);
    if (known == kinds.end()) {
      kinds.emplace_back(kind, 1);
    } else {
      ++known->second;
    }
  }
  std::string out;
  for (const auto& [kind, count] : kinds)
    out += (out.empty() ? "" : ", ") + (count == 1 ? kind : report::counted_text(count, kind));
  return out;
}

struct Group {
  std::vector<const train::RankPlan*> plans;
  std::uint64_t bytes() const { return plans.front()->bytes(); }
};

std::vector<Group> groups_of(const std::vector<train::RankPlan>& plans) {
  std::map<std::pair<std::string, std::vector<std::size_t>>, Group> alike;
  for (const train::RankPlan& plan : plans) {
    std::vector<std::size_t> bytes;
    bytes.reserve(plan.memory.size());
    for (const train::MemoryRow& row : plan.memory) bytes.push_back(row.is_on_host ? 0 : row.bytes);
    alike[{layer_counts(plan.layers), bytes}].plans.push_back(&plan);
  }
  std::vector<Group> out;
  out.reserve(alike.size());
  for (auto& [key, group] : alike) out.push_back(std::move(group));
  std::ranges::stable_sort(out, [](const Group& a, const Group& b) {
    return std::tuple(b.bytes(), a.plans.front()->ranks.front()) <
           std::tuple(a.bytes(), b.plans.front()->ranks.front());
  });
  return out;
}

} // namespace

std::string summary_text(const CheckReport& report) {
  return "\n" + memory_lines(report) + offload_line(report) + host_update_line(report.preflight.plans) +
         communication_line(report.preflight.plans) + stage_lines(*report.loaded.run, report.preflight.balance);
}

std::string groups_text(const train::Preflight& preflight) {
  constexpr std::size_t kMaxGroups = 8;
  const std::vector<Group> groups = groups_of(preflight.plans);
  std::vector<std::vector<std::string>> rows = {{"ranks", "first rank", "pipeline", "layers"}};
  const auto used = [&groups](std::size_t part) { // leaves out parts that no rank has
    return std::ranges::any_of(groups, [part](const Group& of) { return of.plans.front()->memory[part].bytes > 0; });
  };
  const std::vector<train::MemoryRow>& parts = preflight.plans.front().memory;
  for (std::size_t part = 0; part < parts.size(); ++part)
    if (used(part)) rows.front().push_back(heading_of(parts[part]));
  rows.front().emplace_back("total");
  for (std::size_t at = 0; at < std::min(groups.size(), kMaxGroups); ++at) {
    const train::RankPlan& first = *groups[at].plans.front();
    std::vector<int> pipeline;
    std::size_t ranks = 0;
    for (const train::RankPlan* plan : groups[at].plans) {
      ranks += plan->ranks.size();
      if (pipeline.empty() || pipeline.back() != plan->pipeline) pipeline.push_back(plan->pipeline);
    }
    std::vector<std::string>& row = rows.emplace_back();
    row = {triax::to_text(ranks), triax::to_text(first.ranks.front()), numbers_text(pipeline),
           layer_counts(first.layers)};
    for (std::size_t part = 0; part < parts.size(); ++part)
      if (used(part)) row.push_back(bytes_text(first.memory[part].bytes));
    row.push_back(bytes_text(first.bytes()));
  }
  std::string out = table(rows);
  if (groups.size() > kMaxGroups)
    out += text("  ... and {} more groups, with less or equal memory\n", groups.size() - kMaxGroups);
  return out;
}

} // namespace triax::app
