// SPDX-License-Identifier: Apache-2.0
#include "report/reported_run.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <system_error>

#include "checkpoint/folder.hpp"
#include "config/document.hpp"
#include "config/run_files.hpp"
#include "os/folder_lock.hpp"
#include "report/metrics_reader.hpp"
#include "triax/error.hpp"
#include "triax/text.hpp"

namespace triax::app {

namespace {

namespace fs = std::filesystem;

constexpr const char* kMetricsName = "metrics.jsonl";

bool is_file(const fs::path& path) {
  std::error_code unknown;
  return fs::is_regular_file(path, unknown);
}

/// The file's object; discarded if it is not JSON.
nlohmann::json read_object(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return nlohmann::json::parse(in, nullptr, false);
}

void read_keys(ReportedRun& run) {
  const fs::path file = run.folder / config::kResolvedFile;
  if (!is_file(file)) {
    run.notes.push_back(text("{} is missing: the configuration is not known", config::kResolvedFile));
    return;
  }
  for (const config::Entry& entry : config::read_document(file, config::kResolvedFile, 0).entries)
    run.keys.emplace_back(entry.table.empty() ? entry.key : entry.table + "." + entry.key,
                          config::to_toml(entry.value));
}

/// log.metrics, relative to the folder, or the usual name.
fs::path metrics_of(const ReportedRun& run) {
  std::string written = run.value("log.metrics");
  if (written.starts_with('"'))
    written = config::parse_document("metrics = " + written, config::kResolvedFile, 0).entries.front().value.text;
  const fs::path named = written.empty() ? run.folder / kMetricsName : run.folder / written;
  return is_file(named) ? named : run.folder / kMetricsName;
}

void read_records(ReportedRun& run) {
  const fs::path file = metrics_of(run);
  if (!is_file(file)) {
    run.notes.push_back(text("{} is missing: the run has not recorded a step", file.filename()));
    return;
  }
  report::MetricsRecords read = report::read_metrics(file);
  const std::size_t lines = read.records.size();
  run.records = report::last_of_each_step(std::move(read.records));
  if (read.damaged_lines > 0)
    run.notes.push_back(text("{}: line {} is not a step record{}; damaged records are skipped", file.filename(),
                             read.first_damaged,
                             read.damaged_lines > 1 ? text(", nor are {} others", read.damaged_lines - 1) : ""));
  if (read.ends_within_line && !run.is_running)
    run.notes.push_back(text("{} ends within a line, which is skipped", file.filename()));
  if (lines != run.records.size())
    run.notes.push_back(text("{}: has several records of a step ({} in total); the last record of each step is used",
                             file.filename(), lines - run.records.size()));
  if (run.records.empty() && read.damaged_lines == 0) run.notes.push_back("no step is recorded yet");
}

void read_memory(ReportedRun& run) {
  const fs::path file = run.folder / config::kMemoryFile;
  if (!is_file(file)) return;
  const nlohmann::json read = read_object(file);
  try {
    for (const nlohmann::json& row : read.at("memory"))
      run.memory.push_back(
          {row.at("what").get<std::string>(), row.at("bytes").get<std::size_t>(), row.at("on_host").get<bool>()});
  } catch (const nlohmann::json::exception&) {
    run.memory.clear();
    run.notes.push_back(text("{} cannot be read", config::kMemoryFile));
  }
}

void read_failure(ReportedRun& run) {
  const fs::path file = run.folder / config::kFailureFile;
  if (!is_file(file)) return;
  const nlohmann::json read = read_object(file);
  const auto reason = read.is_object() ? read.find("reason") : read.end();
  run.failure = reason != read.end() && reason->is_string() ? reason->get<std::string>() : "see failure.json";
}

void read_timelines(ReportedRun& run) {
  const std::size_t files = report::timelines_in(run.folder).size();
  for (std::size_t rank = 0; rank < files; ++rank)
    run.timelines.push_back(report::read_timeline(run.folder, static_cast<int>(rank)));
  const auto fits = [&run](const report::RankTimeline& of) {
    return of.step == run.timelines.front().step && static_cast<std::size_t>(of.ranks) == run.timelines.size();
  };
  if (std::ranges::all_of(run.timelines, fits)) return;
  run.timelines.clear();
  run.notes.push_back("the timelines are not those of all ranks in one step; they are left out");
}

void read_checkpoint(ReportedRun& run) {
  const std::vector<checkpoint::FoundCheckpoint> found =
      checkpoint::checkpoints_in(run.folder / config::kCheckpointFolder);
  if (!found.empty()) run.checkpoint = found.back().step;
}

/// A part that cannot be read does not end the report.
void read_part(ReportedRun& run, const std::function<void(ReportedRun&)>& read) {
  try {
    read(run);
  } catch (const Error& error) {
    run.notes.push_back(text("{}: {}", error.where(), error.message()));
  }
}

} // namespace

std::string ReportedRun::value(const std::string& key) const {
  const auto found = std::ranges::find(keys, key, &std::pair<std::string, std::string>::first);
  return found == keys.end() ? std::string() : found->second;
}

std::int64_t ReportedRun::planned_steps() const {
  const std::string written = value("train.steps");
  std::int64_t out = 0;
  std::from_chars(written.data(), written.data() + written.size(), out);
  return out;
}

bool is_comparison(const fs::path& folder) {
  return is_file(folder / "compare.json");
}

ReportedRun read_run(const std::string& folder) {
  std::error_code unknown;
  const fs::path path(folder);
  if (!fs::exists(path, unknown))
    throw Error("does not exist", folder, "name the folder of a run: run.dir, by default runs/ and the TOML's name");
  if (!fs::is_directory(path, unknown))
    throw Error("is not a folder", folder, "name the folder of a run: run.dir, by default runs/ and the TOML's name");
  if (is_comparison(path))
    throw Error("is the folder of a comparison", folder,
                text("compare.json has its result; the runs of its sides are {} and {}", (path / "a").string(),
                     (path / "b").string()));
  if (!is_file(path / config::kResolvedFile) && !is_file(path / kMetricsName))
    throw Error(text("is not the folder of a run: it has neither {} nor {}", config::kResolvedFile, kMetricsName),
                folder, "triax train writes them once all ranks have joined");
  ReportedRun out;
  out.name = folder;
  while (out.name.size() > 1 && out.name.back() == '/') out.name.pop_back();
  out.folder = path;
  out.is_running = os::is_locked(path);
  for (const auto& read : {read_keys, read_records, read_memory, read_failure, read_timelines, read_checkpoint})
    read_part(out, read);
  return out;
}

} // namespace triax::app
