#include <algorithm>
#include <cstdint>

#include "check_report.hpp"
#include "config/core_keys.hpp"
#include "report/terminal.hpp"
#include "report/units.hpp"
#include "table.hpp"
#include "train_text.hpp"
#include "triax/text.hpp"

namespace triax::app {

namespace {

using Rows = std::vector<std::vector<std::string>>;

// Where colours are wanted, what was written stands out from what was not.
using report::kBold;
using report::kFaint;
using report::Paint;

/// "derived: number of ranks / (pipeline x tensor)"
std::string origin_text(const config::ResolvedValue& value, const std::string& table) {
  const config::CoreTable* core = config::find_core_table(table);
  if (!core || value.origin != "derived") return value.origin;
  for (const config::CoreKey& key : core->keys) {
    if (value.key.substr(table.size() + 1) == key.option.name) return text("derived: {}", key.derived);
  }
  return value.origin;
}

std::string values_text(const CheckReport& report, Paint paint) {
  constexpr std::size_t kWide = 24; // a path does not push all origins to the right
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
  std::string out = "\ndropped, because another plugin took the table over\n";
  for (const std::string& line : report.loaded.dropped) out += "  " + line + '\n';
  return out;
}

std::string plugins_text(const config::RunConfig& run) {
  Rows rows = {{"table", "plugin", "version", "file"}};
  const auto add = [&rows](const config::PluginChoice& choice) {
    const triax_plugin& plugin = *choice.library->descriptor;
    const std::vector<std::string> row = {choice.table, plugin.name, plugin.version, choice.library->file.string()};
    if (std::find(rows.begin(), rows.end(), row) == rows.end()) rows.push_back(row);
  };
  add(run.model);
  add(run.schedule);
  for (const auto& [axis, choice] : run.comm) add(choice);
  add(run.kernels);
  add(run.optimizer);
  return "\nplugins\n" + table(rows);
}

/// "embedding, block 0-5, head": neighbours that differ in their number only are joined.
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

/// "0, 2, 4, 6"; of many the first and the last: "0, 2 ... 126"
std::string numbers_text(const std::vector<int>& numbers) {
  constexpr std::size_t kMost = 8;
  const std::size_t shown = numbers.size() > kMost ? 2 : numbers.size();
  std::string out;
  for (std::size_t i = 0; i < shown; ++i) out += (i ? ", " : "") + triax::to_text(numbers[i]);
  return shown == numbers.size() ? out : out + " ... " + triax::to_text(numbers.back());
}

/// Ranks that differ in their data coordinate alone have one row.
std::string layout_text(const CheckReport& report) {
  const auto& parallel = report.loaded.run->parallel;
  const int data = parallel.data;
  Rows rows = {{"rank", "pipeline", "data", "tensor", "layers"}};
  for (const train::RankPlan& plan : report.preflight.plans) {
    rows.push_back({numbers_text(plan.ranks), triax::to_text(plan.pipeline), data == 1 ? "0" : text("0-{}", data - 1),
                    triax::to_text(plan.tensor), layers_text(plan.layers)});
  }
  return text("\nlayout: pipeline {} x data {} x tensor {} = {}\n", parallel.pipeline, data, parallel.tensor,
              train::to_text(report.placement, report.preflight.device)) +
         table(rows);
}

std::string memory_text(const train::Preflight& preflight) {
  const std::vector<train::RankPlan>& plans = preflight.plans;
  const auto used = [&plans](std::size_t part) { // what no rank has is left out
    return std::any_of(plans.begin(), plans.end(), [part](const auto& plan) { return plan.memory[part].bytes > 0; });
  };
  Rows rows = {{"rank"}};
  std::uint64_t all = 0, ranks = 0;
  for (const train::RankPlan& plan : plans) {
    std::uint64_t total = 0;
    std::vector<std::string> row = {numbers_text(plan.ranks)};
    for (std::size_t part = 0; part < plan.memory.size(); ++part) {
      if (!used(part)) continue;
      if (rows.size() == 1) rows.front().push_back(plan.memory[part].what);
      row.push_back(report::bytes_text(plan.memory[part].bytes));
      total += plan.memory[part].bytes;
    }
    if (rows.size() == 1) rows.front().push_back("together");
    row.push_back(report::bytes_text(total));
    rows.push_back(row);
    ranks += plan.ranks.size();
    all += plan.ranks.size() * total;
  }
  const std::string sum = ranks > 1 ? text("; of all {} together {}", ranks, report::bytes_text(all)) : std::string();
  return text("\nmemory of each rank{}\n", sum) + table(rows);
}

std::string data_text(const CheckReport& report) {
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
  return text("\nmodel: {} parameters, {} of weights in {}\nstep: {} sequences = {} x {} microbatches of {}\n",
              grouped(report.preflight.parameters), report::bytes_text(bytes), name_of(run.train.master),
              run.batch.global, run.parallel.data == 1 ? "1 rank" : text("{} data ranks", run.parallel.data),
              run.microbatches(), run.batch.micro);
}

} // namespace

std::string to_text(const CheckReport& report, bool colour) {
  std::string noted;
  for (const std::string& note : notes(*report.loaded.run)) noted += "\nnote: " + note + '\n';
  return values_text(report, {colour}) + dropped_text(report) + plugins_text(*report.loaded.run) + layout_text(report) +
         memory_text(report.preflight) + data_text(report) + size_text(report) + noted +
         text("\n{}: {}\n", report.file,
              report.asked_devices ? "ready to train" : "holds together; what this machine has was not asked");
}

} // namespace triax::app
