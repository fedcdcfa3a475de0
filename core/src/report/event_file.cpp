// SPDX-License-Identifier: Apache-2.0
#include "report/event_file.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <system_error>
#include <utility>

#include "report/event_encoding.hpp"
#include "report/timeline_file.hpp"
#include "triax/text.hpp"

namespace triax::report {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEventPrefix = "events.out.tfevents.";
constexpr const char* kEvalLoss = "eval_loss";

double now_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// The seconds in the name of the newest event file; 0 if there are none.
std::int64_t newest_in(const fs::path& folder) {
  std::int64_t out = 0;
  std::error_code unreadable;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, unreadable)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kEventPrefix)) continue;
    std::int64_t seconds = 0;
    std::from_chars(name.data() + kEventPrefix.size(), name.data() + name.size(), seconds);
    out = std::max(out, seconds);
  }
  return out;
}

/// "events.out.tfevents.1767225600.host.4711": ten digits, so that names are in the order of time.
fs::path new_file(const fs::path& folder) {
  const std::int64_t seconds = std::max(static_cast<std::int64_t>(now_s()), newest_in(folder) + 1);
  std::string host = this_machine().host;
  std::ranges::replace(host, '/', '-');
  return folder / text("{}{}.{}.{}", std::string(kEventPrefix), seconds, host, ::getpid());
}

std::vector<Scalar> scalars_of(const StepRecord& record) {
  std::vector<Scalar> out;
  const auto add = [&out](const std::string& tag, double value) {
    if (std::isfinite(value)) out.push_back({tag, value});
  };
  add("loss", record.loss);
  if (record.eval_loss) add(kEvalLoss, *record.eval_loss);
  add("grad_norm", record.grad_norm);
  add("lr", record.lr);
  add("tokens_per_s", record.tokens_per_s);
  add("step_ms", record.step_ms);
  add("bubble_rate", record.bubble_rate);
  if (record.loss_scale) add("loss_scale", *record.loss_scale);
  for (const GroupTraffic& group : record.comm) add("bytes_out/" + group.group, static_cast<double>(group.bytes_out));
  return out;
}

} // namespace

EventFile::EventFile(const fs::path& folder, std::int64_t step, os::AppendFile::Observer observer)
    : folder_(folder), observer_(std::move(observer)) {
  std::error_code failed;
  fs::create_directories(folder, failed); // a failure shows in the next line
  try {
    file_.emplace(new_file(folder), observer_);
  } catch (const Error& error) {
    if (observer_)
      observer_(Error(error.message(), error.where(), "the run continues without TensorBoard's file"), true);
    return;
  }
  append(version_event(now_s()), "the version");
  append(start_event(now_s(), step), "the start");
}

void EventFile::write(const StepRecord& record) {
  write(record.step, scalars_of(record), "record");
}

void EventFile::write_evaluation(const StepRecord& record) {
  if (record.eval_loss && std::isfinite(*record.eval_loss))
    write(record.step, {{kEvalLoss, *record.eval_loss}}, "evaluation");
}

void EventFile::write(std::int64_t step, const std::vector<Scalar>& scalars, std::string_view what) {
  if (!file_) {
    ++unwritten_;
    return;
  }
  append(scalar_event(now_s(), step, scalars), text("the {} of step {}", what, step));
}

void EventFile::append(const std::string& event, const std::string& what) {
  file_->append_bytes(event_record(event), what);
}

void EventFile::check() {
  if (file_) file_->check();
}

std::int64_t EventFile::missing() const {
  return unwritten_ + (file_ ? file_->lost_lines() + file_->deleted_lines() : 0);
}

} // namespace triax::report
