// SPDX-License-Identifier: Apache-2.0
#include "support/fibers.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "triax/error.hpp"

namespace triax::test {

void Fibers::run(int count, const std::function<void(int)>& body) {
  body_ = &body;
  ended_ = 0;
  error_ = nullptr;
  stack_of_.assign(static_cast<std::size_t>(count), nullptr);
  ready_.clear();
  for (int i = 0; i < count; ++i) ready_.push_back(i);
  const std::size_t choices[] = {1, 8, ready_.size(), ready_.size()};
  choice_ = choices[random_() % std::size(choices)];
  if (count > 0) leave(main_, next());
  if (!error_ && ended_ == count) return;
  give_up();
  if (error_) std::rethrow_exception(error_);
  throw Error(text("{} of {} threads wait for others that do not come", count - ended_, count));
}

/// Picks a ready function. If there is none, control returns to run().
int Fibers::next() {
  if (ready_.empty()) return kNone;
  const std::size_t of = std::min(choice_, ready_.size());
  const std::size_t pick = ready_.size() - 1 - (std::uint64_t{random_()} * of >> 32); // faster than a division
  const int to = ready_[pick];
  ready_[pick] = ready_.back();
  ready_.pop_back();
  return to;
}

void Fibers::wait(int self) {
  if (const int to = next(); to != self) leave(*stack_of_[static_cast<std::size_t>(self)], to);
}

void Fibers::leave(Stack& mine, int to) {
  if (to == kNone) return Stack::change(mine, main_);
  Stack*& stack = stack_of_[static_cast<std::size_t>(to)];
  if (!stack) {
    beginning_ = to;
    stack = &take_stack();
  }
  Stack::change(mine, *stack);
}

Stack& Fibers::take_stack() {
  if (idle_.empty()) return *stacks_.emplace_back(std::make_unique<Stack>(&Fibers::enter, this, stacks_.size()));
  Stack& stack = *idle_.back();
  idle_.pop_back();
  return stack;
}

void Fibers::enter(void* all) {
  auto& fibers = *static_cast<Fibers*>(all);
  fibers.work(*fibers.stack_of_[static_cast<std::size_t>(fibers.beginning_)]);
}

/// Body of a stack: runs one function after another.
void Fibers::work(Stack& mine) {
  for (;;) {
    try {
      (*body_)(beginning_);
    } catch (...) {
      if (!error_) error_ = std::current_exception();
      ready_.clear(); // back to run()
    }
    ++ended_;
    const int to = next();
    if (to != kNone && !stack_of_[static_cast<std::size_t>(to)]) {
      beginning_ = to;
      stack_of_[static_cast<std::size_t>(to)] = &mine;
      continue;
    }
    idle_.push_back(&mine);
    leave(mine, to);
  }
}

/// After an error, the stacks of waiting functions are not used again.
void Fibers::give_up() {
  idle_.clear();
  stacks_.clear();
}

} // namespace triax::test
