// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>

#include "check/check_report.hpp"
#include "check/check_summary.hpp"
#include "common/printable_line.hpp"
#include "common/table.hpp"
#include "config/core_keys.hpp"
#include "os/terminal.hpp"
#include "report/units.hpp"
#include "train/plugins.hpp"
#include "train/train_text.hpp"
#include "triax/precision.hpp"
#include "triax/text.hpp"

namespace triax::app {

namespace {

using Rows = std::vector<std::vector<std::string>>;

// With colours, values that the user wrote are emphasized.
using os::kBold;
using os::kFaint;
using os::Paint;

/// "derived: number of ranks / (pipeline x tensor)"
std::string origin_text(const config::ResolvedValue& value, const std::string& table) {
  const config::CoreTable* core = config::find_core_table(table);
  if (!core || value.origin != "derived") return printable_line(value.origin);
  for (const config::CoreKey& key : core->keys) {
    if (value.key.substr(table.size() + 1) == key.option.name) return text("derived: {}", key.derived);
  }
  return printable_line(value.origin);
}

std::string values_text(const CheckReport& report, Paint paint) {
  constexpr std::size_t kWide = 24; // limit, so that a long path does not move all origins to the right
  std::size_t key_width = 0, value_width = 0;
  for (const config::ResolvedValue& value : report.loaded.values) {
    key_width = std::max(key_width, value.key.size() - value.key.rfind('.') - 1);
    if (value.value.size() <= kWide) value_width = std::max(value_width, value.value.size());
  }
  std::string out, open;
  for (const config::ResolvedValue& value : report.loaded.values) {
    const std::size_t dot = value.key.rfind('.');
    const std::string name = value.key.substr(0, dot);
    if (name != open) out += paint(kBold, text("[{}]", name)) + '\n';
    open = name;
    std::string line = "  " + value.key.substr(dot + 1);
    line.resize(2 + key_width, ' ');
    line += " = " + value.value;
    line.resize(std::max(line.size(), 5 + key_width + value_width), ' ');
    const std::string origin = "  # " + origin_text(value, name);
    out += (value.origin == "default" ? paint(kFaint, line + origin) : line + paint(kFaint, origin)) + '\n';
  }
  return out;
}

std::string dropped_text(const CheckReport& report) {
  if (report.loaded.dropped.empty()) return {};
  std::string out = "\nignored, because a later file or flag chose another plugin for the table of the key\n";
  for (const std::string& line : report.loaded.dropped) out += "  " + printable_line(line) + '\n';
  return out;
}

std::string plugins_text(const config::RunConfig& run) {
  Rows rows = {{"table", "plugin", "version", "file"}};
  const auto add = [&rows](const config::PluginChoice& choice) {
    std::vector<std::string> row = {choice.table, choice.name, "", "not installed here"};
    if (choice.library)
      row = {choice.table, choice.name, choice.library->descriptor->version, choice.library->file.string()};
    if (std::find(rows.begin(), rows.end(), row) == rows.end()) rows.push_back(row);
  };
  add(run.model);
  add(run.schedule);
  for (const auto& [axis, choice] : run.comm) add(choice);
  add(run.kernels);
  add(run.optimizer);
  return "\nplugins\n" + table(rows);
}

/// "embedding, block 0-5, head": joins neighbours that differ only in their number.
std::string layers_text(const std::vector<std::string>& layers) {
  const auto split = [](const std::string& layer) {
    const std::size_t digits = layer.find_last_not_of("0123456789") + 1;
    return std::pair(layer.substr(0, digits), layer.substr(digits));
  };
  std::string out;
  for (std::size_t first = 0; first < layers.size();) {
    const auto [name, number] = split(layers[first]);
    std::size_t last = first;
    while (!number.empty() && last + 1 < layers.size() && split(layers[last + 1]).first == name) ++last;
    out += (out.empty() ? "" : ", ") + layers[first];
    if (last > first) out += "-" + split(layers[last]).second;
    first = last + 1;
  }
  return out;
}

std::string layout_line(const CheckReport& report) {
  const auto& parallel = report.loaded.run->parallel;
  return text("\nlayout: pipeline {} x data {} x tensor {} = {}\n", parallel.pipeline, parallel.data, parallel.tensor,
              train::to_text(report.placement, report.preflight.device, report.preflight.threads));
}

/// Ranks that differ only in their data coordinate share a row.
std::string layout_text(const CheckReport& report) {
  const int data = report.loaded.run->parallel.data;
  Rows rows = {{"rank", "pipeline", "data", "tensor", "layers"}};
  for (const train::RankPlan& plan : report.preflight.plans) {
    rows.push_back({numbers_text(plan.ranks), triax::to_text(plan.pipeline), data == 1 ? "0" : text("0-{}", data - 1),
                    triax::to_text(plan.tensor), layers_text(plan.layers)});
  }
  return layout_line(report) + table(rows);
}

std::string memory_text(const train::Preflight& preflight) {
  const std::vector<train::RankPlan>& plans = preflight.plans;
  const auto used = [&plans](std::size_t part) { // leaves out parts that no rank has
    return std::any_of(plans.begin(), plans.end(), [part](const auto& plan) { return plan.memory[part].bytes > 0; });
  };
  Rows rows = {{"rank"}};
  std::uint64_t all = 0, ranks = 0;
  for (const train::RankPlan& plan : plans) {
    const std::uint64_t total = plan.bytes(); // without memory of the host
    std::vector<std::string> row = {numbers_text(plan.ranks)};
    for (std::size_t part = 0; part < plan.memory.size(); ++part) {
      if (!used(part)) continue;
      if (rows.size() == 1) rows.front().push_back(heading_of(plan.memory[part]));
      row.push_back(report::bytes_text(plan.memory[part].bytes));
    }
    if (rows.size() == 1) rows.front().push_back("total");
    row.push_back(report::bytes_text(total));
    rows.push_back(row);
    ranks += plan.ranks.size();
    all += plan.ranks.size() * total;
  }
  const std::string sum = ranks > 1 ? text("; all {} ranks: {}", ranks, report::bytes_text(all)) : std::string();
  return text("\nmemory of each rank{}\n", sum) + table(rows);
}

std::string data_text(const CheckReport& report) {
  if (report.preflight.corpora.empty()) return {};
  Rows rows = {{"corpus", "for", "share", "tokens", "epochs"}};
  for (const train::CorpusPlan& corpus : report.preflight.corpora) {
    rows.push_back({corpus.path.string(), corpus.validation ? "validation" : "training",
                    report::decimals_text(100 * corpus.share, 2) + " %", grouped(corpus.tokens),
                    report::decimals_text(corpus.epochs, corpus.epochs < 0.1 ? 4 : 2)});
  }
  return "\ndata\n" + table(rows);
}

std::string size_text(const CheckReport& report) {
  const config::RunConfig& run = *report.loaded.run;
  const std::uint64_t bytes = static_cast<std::uint64_t>(report.preflight.parameters) * bytes_of(run.train.master);
  const std::string& resume = report.preflight.resume;
  return text("\nmodel: {} parameters, {} of weights in {}\nstep: {} = {} x {} of {}\n{}",
              grouped(report.preflight.parameters), report::bytes_text(bytes), precision_name(run.train.master),
              report::counted_text(run.batch.global, "sequence"), report::counted_text(run.parallel.data, "data rank"),
              report::counted_text(run.microbatches(), "microbatch", "microbatches"),
              report::counted_text(run.batch.micro, "sequence"),
              resume.empty() ? resume : text("training: {}\n", resume));
}

} // namespace

std::vector<std::string> notes(const CheckReport& report) {
  if (!report.loaded.run) return {};
  const config::RunConfig& run = *report.loaded.run;
  const train::Preflight& planned = report.preflight;
  std::vector<std::string> out = notes(run, planned.device);
  if (!planned.plans.empty() && train::sharding(run) == schedule::Sharding::gradients && !planned.shares_accumulators)
    out.push_back(
        text("optimizer.shard = \"gradients\" needs as much memory as \"states\", because each rank accumulates "
             "gradients of all its layers until the end of a step; it sends less. A schedule whose stages accumulate "
             "one after another needs less: sched-breadth-first with parallel.chunks of 3 or more"));
  if (!planned.plans.empty() && train::sharding(run) == schedule::Sharding::parameters && !planned.saves_weights)
    out.push_back(text(
        "optimizer.shard = \"parameters\" needs as much memory for weights as \"gradients\", or more, because each "
        "rank has memory for the gathered weights of {} (optimizer.prefetch = {}), and for its part of the weights of "
        "all its stages. More stages per rank need less: parallel.chunks, best with sched-breadth-first",
        run.parallel.chunks == 1
            ? "its only stage"
            : text("{} of its {} stages at a time",
                   std::min<std::int64_t>(run.optimizer_core.prefetch + 1, run.parallel.chunks), run.parallel.chunks),
        run.optimizer_core.prefetch));
  const auto has_file = [](const train::RankPlan& plan) { return plan.offload_bytes > 0; };
  if (!planned.plans.empty() && run.memory.offload == "disk" && std::ranges::none_of(planned.plans, has_file))
    out.push_back(
        text("memory.offload = \"disk\" has no effect: optimizer.plugin \"{}\" has no state, and layers read "
             "the master weights",
             run.optimizer.name));
  return out;
}

std::string to_text(const CheckReport& report, const CheckStyle& style) {
  constexpr std::size_t kMaxRows = 16; // rows of different ranks in the full table
  const std::size_t columns = style.columns > 0 ? static_cast<std::size_t>(style.columns) : 0;
  std::string end;
  for (const std::string& note : notes(report)) end += "\nnote: " + note + '\n';
  if (!report.loaded.unchecked.empty())
    end += "\nnot checked, because this machine lacks the device, the plugin or the data\n";
  for (const std::string& left_out : report.loaded.unchecked) end += "  " + printable_line(left_out) + '\n';
  end +=
      text("\n{}: {}\n", printable_line(report.file),
           report.checked_devices ? "ready to train"
                                  : "configuration is valid; the devices and memory of this machine were not checked");
  const std::string summary = os::fold_words(summary_text(report), columns);
  if (report.preflight.plans.size() > kMaxRows && !style.all)
    return layout_line(report) + size_text(report) + summary + "\n" + groups_text(report.preflight) +
           text("\n--all prints every value, the plugins, the data, and the memory of all {} ranks\n",
                report.loaded.run->parallel.pipeline * report.loaded.run->parallel.tensor *
                    report.loaded.run->parallel.data) +
           end;
  return values_text(report, {style.colour}) + dropped_text(report) + plugins_text(*report.loaded.run) +
         layout_text(report) + memory_text(report.preflight) + summary + data_text(report) + size_text(report) + end;
}

} // namespace triax::app
