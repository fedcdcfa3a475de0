// SPDX-License-Identifier: Apache-2.0
#include "common/memory_limit.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

#include "config/byte_size.hpp"
#include "report/units.hpp"

namespace triax::app {

namespace {

/// "activations 60 GB, optimizer state 20.1 GB, weights 10 GB"
std::string parts_text(const std::vector<train::MemoryRow>& parts) {
  constexpr std::size_t kMaxParts = 3;
  std::string out;
  for (std::size_t at = 0; at < std::min(parts.size(), kMaxParts) && parts[at].bytes > 0; ++at)
    out += text("{}{} {}", at == 0 ? "" : ", ", parts[at].what, report::bytes_text(parts[at].bytes));
  return out;
}

/// The change that saves memory, given the largest part.
std::string remedy(const config::RunConfig& run, const train::RankPlan& plan, const std::string& largest) {
  if (largest == "activations") {
    int in_flight = 0;
    for (const executor::ActivationPart& part : plan.activations) in_flight = std::max(in_flight, part.microbatches);
    std::string next = "use ";
    if (run.memory.recompute.any("optimal")) next += "a smaller memory.activation_budget, ";
    if (!run.memory.recompute.all("full")) next += "memory.recompute = \"full\", ";
    if (run.parallel.tensor > 1 && !run.parallel.sequence) next += "parallel.sequence = true, ";
    if (run.batch.micro > 1) next += "a smaller batch.micro, ";
    if (run.parallel.data > 1 && run.optimizer_core.shard == "none") next += "optimizer.shard = \"states\", ";
    const bool is_first = next == "use ";
    if (in_flight == 1) return next + (is_first ? "" : "or ") + "a larger parallel.tensor or parallel.pipeline";
    return text(
        "{}a larger parallel.tensor or parallel.pipeline, or a scheduler that keeps fewer than {} microbatches in "
        "flight",
        next, in_flight);
  }
  if (largest == "scratch" || largest == "batches") return "use a smaller batch.micro";
  if (run.parallel.data > 1 && run.optimizer_core.shard == "none")
    return "use optimizer.shard = \"states\", which shards optimizer state over the data ranks, or a larger "
           "parallel.tensor or parallel.pipeline, which divide weights and gradients too";
  return "use a larger parallel.tensor or parallel.pipeline: they divide weights, gradients and optimizer state";
}

} // namespace

std::string is_memory_limit(const std::string& written) {
  if (config::bytes_of(written)) return {};
  if (config::is_too_large(written)) return text("must be at most {}, got \"{}\"", config::kMaxSize, written);
  return text("must be a size above 0 with a unit (such as 80GiB), got \"{}\"", written);
}

MemoryLimit parse_memory_limit(const std::string& written) {
  const std::optional<std::uint64_t> bytes = config::bytes_of(written);
  TRIAX_REQUIRE(bytes, "\"{}\" is not a size", written);
  return {written, *bytes};
}

const train::RankPlan& largest_plan(const train::Preflight& preflight) {
  TRIAX_REQUIRE(!preflight.plans.empty(), "a run of no ranks");
  return *std::ranges::max_element(preflight.plans, {}, &train::RankPlan::bytes);
}

Refusals fits(const MemoryLimit& limit, const config::RunConfig& run, const train::Preflight& preflight) {
  if (preflight.plans.empty()) return {}; // errors are already reported
  const train::RankPlan& most = largest_plan(preflight);
  if (most.bytes() <= limit.bytes) return {};
  std::size_t above = 0;
  for (const train::RankPlan& plan : preflight.plans) above += plan.bytes() > limit.bytes ? plan.ranks.size() : 0;
  std::vector<train::MemoryRow> parts = most.memory;
  std::erase_if(parts, [](const train::MemoryRow& part) { return part.is_on_host; });
  std::ranges::stable_sort(parts, std::ranges::greater{}, &train::MemoryRow::bytes);
  const std::string more = above > 1 ? text("; {} ranks do not fit", above) : std::string();
  return make_refusal(ErrorCode::kOutOfMemory, {"--memory"},
                      "--memory {}: rank {} needs {}, {} too much; largest: {}{}", limit.written, most.ranks.front(),
                      report::bytes_text(most.bytes()), report::bytes_text(most.bytes() - limit.bytes),
                      parts_text(parts), more)
      .with_hint("{}; \"triax fit RUN.toml --memory {}\", with the same --set, lists what fits",
                 remedy(run, most, parts.front().what), limit.written);
}

} // namespace triax::app
