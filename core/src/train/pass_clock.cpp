#include "train/pass_clock.hpp"

#include <chrono>

namespace triax::train {

namespace {

double ms(Clock::duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

} // namespace

PassClock::PassClock(const schedule::Program& program, std::int64_t step, executor::WalkObserver* next)
    : program_(program), step_(step), next_(next) {
  passes_.reserve(program.actions().size());
}

void PassClock::walk_begins(std::int64_t step) {
  running_ = step == step_;
  if (next_) next_->walk_begins(step);
}

void PassClock::ran(ActionId action, const executor::PassTime& time) {
  if (running_) {
    const schedule::ProgramAction& of = program_.actions()[action];
    passes_.push_back(
        {{of.kind, of.stage, of.microbatch, ms(time.began.time_since_epoch()), ms(time.ended.time_since_epoch())},
         ms(time.waited)});
  }
  if (next_) next_->ran(action, time);
}

void PassClock::walk_ends(std::int64_t step) {
  running_ = false;
  if (next_) next_->walk_ends(step);
}

} // namespace triax::train
