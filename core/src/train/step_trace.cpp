// SPDX-License-Identifier: Apache-2.0
#include "train/step_trace.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "triax/text.hpp"

namespace triax::train {

namespace {

double ms(Clock::time_point time) {
  return std::chrono::duration<double, std::milli>(time.time_since_epoch()).count();
}

double ms(Clock::duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

/// Sorts the waits and removes overlaps: a wait starts after the previous one has ended. Drops waits that become empty.
std::vector<report::MeasuredWait> disjoint(std::vector<report::MeasuredWait> waits) {
  std::ranges::stable_sort(waits, {}, &report::MeasuredWait::start);
  std::vector<report::MeasuredWait> out;
  for (report::MeasuredWait& wait : waits) {
    if (!out.empty()) wait.start = std::max(wait.start, out.back().end);
    if (wait.end > wait.start) out.push_back(std::move(wait));
  }
  return out;
}

} // namespace

StepTrace::StepTrace(const schedule::Program& program, std::int64_t step, bool behind, executor::WalkObserver* next)
    : program_(program), step_(step), behind_(behind), next_(next) {
  actions_.reserve(program.actions().size());
}

void StepTrace::set_step(std::int64_t step) {
  step_ = step;
  actions_.clear();
  calls_before_ = std::exchange(calls_, std::deque<Call>(calls_.size()));
  used_ = 0;
}

void StepTrace::walk_begins(std::int64_t step) {
  if (step == step_ && calls_posted_ > calls_.size()) calls_.resize(calls_posted_); // as many as in the previous step
  calls_posted_ = 0;
  running_ = step == step_;
  if (next_) next_->walk_begins(step);
  if (running_) began_ = Clock::now();
}

void StepTrace::ran(ActionId action, const executor::ActionTime& time) {
  if (running_) actions_.push_back({action, time});
  if (next_) next_->ran(action, time);
}

void StepTrace::walk_ends(std::int64_t step) {
  if (running_) ended_ = Clock::now();
  running_ = false;
  if (next_) next_->walk_ends(step);
}

void StepTrace::called(const CallShape& shape, Clock::time_point posted, const Work& work, Stream& stream) {
  if (used_ == calls_.size()) calls_.emplace_back();
  Call& call = calls_[used_++];
  call.shape = shape;
  call.work = work;
  call.posted = posted;
  call.completed = Clock::now();
  call.awaited = &stream == compute_;
  if (!behind_) stream.post(call);
}

report::MeasuredCall StepTrace::measured(const Call& call) const {
  report::MeasuredCall out;
  out.call = call.shape.name;
  out.axis = call.shape.axis;
  if (call.work.action < program_.actions().size()) out.action = program_.label(call.work.action);
  out.peer = call.shape.peer;
  out.bytes = call.shape.bytes;
  out.posted = ms(call.posted);
  out.completed = ms(call.completed);
  out.awaited = call.awaited;
  return out;
}

/// The wait before an action, with the transfer that arrived last of those that the action needs.
report::MeasuredWait StepTrace::wait_before(const Action& action) const {
  report::MeasuredWait out{ms(action.time.began - action.time.waited), ms(action.time.began), "posted work"};
  const std::vector<ActionId>& needed = program_.actions()[action.id].waits;
  Clock::time_point last;
  for (std::size_t at = 0; at < used_; ++at) {
    const Call& call = calls_[at];
    if (std::ranges::find(needed, call.work.action) == needed.end() || call.completed < last) continue;
    last = call.completed;
    out.reason = program_.label(call.work.action);
    out.peer = call.shape.peer;
  }
  return out;
}

std::vector<report::MeasuredWait> StepTrace::waits() const {
  std::vector<report::MeasuredWait> out;
  for (const Action& action : actions_)
    if (action.time.waited.count() > 0) out.push_back(wait_before(action));
  for (std::size_t at = 0; at < used_; ++at) {
    const Call& call = calls_[at];
    if (!call.awaited || behind_) continue;
    out.push_back(
        {ms(call.posted), ms(call.completed), text("{} of {}", call.shape.name, call.shape.axis), call.shape.peer});
  }
  if (!actions_.empty()) out.push_back({ms(actions_.back().time.ended), ms(ended_), "the end of the step"});
  return disjoint(std::move(out));
}

report::RankTimeline StepTrace::timeline() const {
  report::RankTimeline out;
  out.step = step_;
  out.start = ms(began_);
  out.end = ms(ended_);
  for (const Action& action : actions_) {
    const schedule::ProgramAction& of = program_.actions()[action.id];
    std::vector<schedule::MeasuredPass>& list = schedule::runs_layers(of.kind) ? out.passes : out.actions;
    list.push_back(
        {{of.kind, of.stage, of.microbatch, ms(action.time.began), ms(action.time.ended)}, ms(action.time.waited)});
  }
  for (std::size_t at = 0; at < used_; ++at) out.calls.push_back(measured(calls_[at]));
  out.waits = waits();
  return out;
}

bool StepTrace::write(const std::filesystem::path& folder, int rank, int ranks, Log& log) const {
  try {
    report::RankTimeline out = timeline();
    out.rank = rank;
    out.ranks = ranks;
    out.machine = report::this_machine();
    report::write_timeline(folder, out);
    return true;
  } catch (const Error& error) {
    log.error("{}", error.what());
    return false;
  }
}

} // namespace triax::train
