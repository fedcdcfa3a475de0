// SPDX-License-Identifier: Apache-2.0
#include "compare/side.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <sstream>
#include <utility>

#include "base/printable.hpp"
#include "report/metrics_reader.hpp"
#include "report/units.hpp"
#include "train/turns.hpp"
#include "triax/text.hpp"

namespace triax::compare {

namespace {

constexpr int kPollPeriod_ms = 20;
constexpr std::size_t kKeptOutput = 4000; // bytes of output that an error repeats
constexpr const char* kMetrics = "metrics.jsonl";

/// Unique among the processes of this machine.
std::string server_name(const std::string& side) {
  return text("triax-turns-{}-{}", ::getpid(), side);
}

std::vector<std::string> arguments_of(const SideRequest& request) {
  return {"train",
          "--set",
          "run.dir=" + request.folder.string(),
          "--set",
          "log.metrics=" + (request.folder / kMetrics).string(),
          "--",
          request.file};
}

/// Each line after two spaces.
std::string indented(const std::string& lines) {
  std::string out;
  std::istringstream in(lines);
  for (std::string line; std::getline(in, line);) out += "\n  " + line;
  return out;
}

/// The peak of a process's resident memory in bytes; 0 if it is not known.
std::uint64_t peak_of(std::int64_t process) {
  std::ifstream status(text("/proc/{}/status", process));
  std::string line;
  while (std::getline(status, line)) {
    constexpr std::string_view kPeak = "VmHWM:";
    if (line.starts_with(kPeak)) return std::stoull(line.substr(kPeak.size())) * 1024;
  }
  return 0;
}

} // namespace

Side::Side(SideRequest request) : request_(std::move(request)), server_(server_name(request_.name), request_.ranks) {
  std::error_code why; // the log reports it, too
  std::filesystem::create_directories(request_.folder, why);
  log_.open(request_.folder / "output.log");
  if (!log_)
    throw Error("cannot be written", (request_.folder / "output.log").string(), "choose another folder with --dir");
  std::vector<os::Variable> variables = request_.variables;
  variables.push_back({train::kTurnsVariable, server_.name()});
  child_.emplace(arguments_of(request_), variables);
  await_turn();
  first_ = done_ = ranks_.front().next_step - 1;
}

Side::~Side() = default;

void Side::take_output() {
  for (const std::string& line : child_->lines()) {
    heard_ = Clock::now();
    log_ << line << std::endl; // at once: it may be read while the side runs
    last_output_ += printable(line) + '\n';
  }
  if (last_output_.size() > kKeptOutput)
    last_output_.erase(0, last_output_.find('\n', last_output_.size() - kKeptOutput) + 1);
}

void Side::report_end() {
  take_output();
  const int status = child_->status();
  const bool refused = done_ == first_ && WIFEXITED(status) && WEXITSTATUS(status) == 2;
  const std::string what = refused ? "cannot start" : (WIFSIGNALED(status) ? "was " : "") + os::how_it_ended(status);
  throw SideEnded(text("side {} {}; its output ends with:{}", request_.name, what, indented(last_output_)), {},
                  text("all its output is in {}", (request_.folder / "output.log").string()), refused);
}

/// A process that is stopped, or that waits for something outside of the job.
void Side::check_silence() {
  std::error_code none;
  const std::uintmax_t bytes = std::filesystem::file_size(request_.folder / kMetrics, none);
  if (!none && bytes != records_bytes_) heard_ = Clock::now();
  if (!none) records_bytes_ = bytes;
  const double silent_s = std::chrono::duration<double>(Clock::now() - heard_).count();
  if (silent_s < request_.silent_s) return;
  throw Error(
      text("side {} has ended no step and written nothing for {} s", request_.name, report::decimals_text(silent_s, 0)),
      "comparison", text("its output is in {}", (request_.folder / "output.log").string()));
}

void Side::check_stopped() const {
  if (request_.is_stopped && request_.is_stopped()) throw Stopped();
}

void Side::await_turn() {
  heard_ = Clock::now();
  while (!server_.poll(kPollPeriod_ms)) {
    const bool ended = child_->ended(); // before its output: nothing follows
    take_output();
    // Before its end is reported: a terminal's Ctrl-C reaches the side, too.
    check_stopped();
    if (ended) report_end();
    check_silence();
  }
  ranks_ = server_.waiting();
}

std::vector<SideStep> Side::new_steps() {
  const std::filesystem::path file = request_.folder / kMetrics;
  const report::MetricsRecords read = report::read_metrics(file, records_read_);
  if (read.damaged_lines > 0) throw Error("has a line that is not the record of a step", file.string());
  records_read_ = read.end;
  std::vector<SideStep> out;
  out.reserve(read.records.size());
  for (const report::StepRecord& of : read.records) out.push_back({of.step, of.loss, of.grad_norm, of.step_ms});
  return out;
}

std::vector<SideStep> Side::run(std::int64_t steps, bool timeline) {
  server_.give({done_ + steps, timeline ? done_ + steps : 0});
  await_turn();
  done_ += steps;
  std::vector<SideStep> out = new_steps();
  if (std::ssize(out) != steps)
    throw Error(text("has {} records of a turn of {} steps", out.size(), steps), (request_.folder / kMetrics).string(),
                "was the file changed, or the disk full?");
  return out;
}

void Side::end() {
  server_.give({done_, 0});
  while (!child_->ended()) {
    server_.poll(kPollPeriod_ms);
    take_output();
    check_stopped();
  }
  take_output();
  if (const int status = child_->status(); !WIFEXITED(status) || WEXITSTATUS(status) != 0) report_end();
}

std::uint64_t Side::peak_resident() const {
  std::set<std::int64_t> processes;
  for (const report::WaitingRank& rank : ranks_) processes.insert(rank.process);
  std::uint64_t out = 0;
  for (const std::int64_t process : processes) out += peak_of(process);
  return out;
}

std::vector<report::RankTimeline> Side::timelines() const {
  std::vector<report::RankTimeline> out;
  out.reserve(static_cast<std::size_t>(request_.ranks));
  for (int rank = 0; rank < request_.ranks; ++rank) out.push_back(report::read_timeline(request_.folder, rank));
  return out;
}

} // namespace triax::compare
