#include "train_text.hpp"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <set>
#include <sstream>

#include "report/units.hpp"
#include "train/plugins.hpp"

namespace triax::app {

namespace fs = std::filesystem;

std::string shown(const fs::path& path) {
  std::error_code none;
  const fs::path here = fs::current_path(none); // which may have been removed
  const fs::path relative = none ? path : fs::proximate(path, here, none);
  return none || relative.native().size() > path.native().size() ? path.string() : relative.string();
}

namespace {

/// Quoted for a shell where it has to be.
std::string word(const std::string& text) {
  const auto plain = [](unsigned char c) {
    return std::isalnum(c) || std::string_view("-_./=+,:@%").find(c) != std::string_view::npos;
  };
  if (!text.empty() && std::ranges::all_of(text, plain)) return text;
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

/// This program, as it can be called again.
std::string program() {
  std::error_code none;
  const fs::path self = fs::read_symlink("/proc/self/exe", none);
  if (none) return "triax";
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (fs::equivalent(fs::path(folder) / self.filename(), self, none)) return self.filename().string();
  return word(shown(self));
}

/// The communicators that this run's axes use; of one rank, what its axes would.
std::string communicators(const config::RunConfig& run) {
  const Layout layout = train::layout_of(run);
  std::set<std::string> used, named;
  for (const auto& [axis, choice] : run.comm) {
    named.insert(choice.name);
    if (layout.size(axis) > 1) used.insert(choice.name);
  }
  std::string out;
  for (const std::string& name : used.empty() ? named : used) out += (out.empty() ? "" : " ") + name;
  return out;
}

} // namespace

std::vector<std::string> notes(const config::RunConfig& run) {
  std::vector<std::string> out;
  if (run.lr.warmup_steps > run.train.steps) // as when a run is tried out for a few steps
    out.push_back(
        text("lr.warmup_steps = {} is more than train.steps = {}: the run ends in its warm-up, below "
             "optimizer.lr = {}",
             run.lr.warmup_steps, run.train.steps, run.optimizer_core.lr));
  return out;
}

std::string start_line(const config::RunConfig& run, const train::Preflight& checked,
                       const train::Placement& placement) {
  const auto& parallel = run.parallel;
  return text("{}: {} parameters, pipeline {} x tensor {} x data {}; {}, {}, {}, {}, {}; {}; folder {}",
              shown(run.file), report::count_text(static_cast<double>(checked.parameters)), parallel.pipeline,
              parallel.tensor, parallel.data, run.model.name, run.kernels.name, run.optimizer.name, run.schedule.name,
              communicators(run), train::to_text(placement, checked.device), shown(run.folder));
}

std::string result_line(const config::RunConfig& run, const train::LoopResult& result) {
  // A mean of logarithms of probabilities is 0 only where nobody has computed one.
  if (result.steps > 0 && result.first_loss == 0 && result.last_loss == 0)
    return text("ran {} step{}: {} computed nothing, all losses are 0 and mean nothing; {} tokens/s, metrics in {}",
                result.steps, result.steps == 1 ? "" : "s", run.kernels.name, report::count_text(result.tokens_per_s),
                shown(run.log.metrics));
  const std::string skipped = result.skipped > 0 ? text(", {} of them skipped", result.skipped) : "";
  std::string line = text("trained {} step{}{}: loss {} to {}", result.steps, result.steps == 1 ? "" : "s", skipped,
                          report::decimals_text(result.first_loss, 4), report::decimals_text(result.last_loss, 4));
  if (result.eval_loss) line += text(", held out {}", report::decimals_text(*result.eval_loss, 4));
  return line + text(", {} tokens/s, metrics in {}", report::count_text(result.tokens_per_s), shown(run.log.metrics));
}

std::string stop_line(const config::RunConfig& run, const train::LoopResult& result) {
  return text("stopped by {} after step {} of {}; metrics in {}", result.signal == SIGINT ? "SIGINT" : "SIGTERM",
              result.steps, run.train.steps, shown(run.log.metrics));
}

std::string next_line(const config::RunConfig& run, const std::string& file,
                      const std::vector<config::Override>& overrides) {
  std::string line = "next: " + program() + " train " + word(file);
  for (const config::Override& override : overrides)
    if (override.key != "train.steps" && override.key != "run.dir" && override.key != "log.metrics")
      line += " --set " + word(override.key + "=" + override.value);
  const std::string folder = shown(run.folder.parent_path() / (run.folder.filename().string() + "-longer"));
  return line + text(" --set train.steps={} --set {}", 2 * run.train.steps, word("run.dir=" + folder));
}

} // namespace triax::app
