// SPDX-License-Identifier: Apache-2.0
// Functions that take turns on one thread. Each runs until it waits or ends; then a ready one continues: any of them,
// or in other runs one of those that became ready last, so that a few functions run far ahead of the rest.
//
// Ownership: owns stacks, and reuses them from run to run. Errors: run() rethrows what a function throws, and throws
// Error if all functions that have not ended wait.
// A function that does not wait costs one call: the next one starts on the same stack.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "support/stacks.hpp"

namespace triax::test {

class Fibers {
 public:
  /// `random` chooses the function that continues.
  explicit Fibers(std::mt19937& random) : random_(random) {}
  Fibers(const Fibers&) = delete;
  Fibers& operator=(const Fibers&) = delete;

  /// Calls body(0), body(1)... body(count - 1); returns when all have ended.
  void run(int count, const std::function<void(int)>& body);

  // Called by a running function.
  void wait(int self); // until another wakes it
  void wake(int fiber) { ready_.push_back(fiber); }

 private:
  static constexpr int kNone = -1;
  static void enter(void* all);
  void work(Stack& mine);
  int next();
  void leave(Stack& mine, int to);
  Stack& take_stack();
  void give_up();

  std::mt19937& random_;
  const std::function<void(int)>* body_ = nullptr;
  std::vector<int> ready_;       // includes functions that have not started
  std::size_t choice_ = 1;       // chooses among this many that became ready last
  std::vector<Stack*> stack_of_; // of each function; null: not started
  std::vector<std::unique_ptr<Stack>> stacks_;
  std::vector<Stack*> idle_; // without a function
  Stack main_;               // of run()
  int ended_ = 0;
  int beginning_ = kNone; // function to start on the next stack
  std::exception_ptr error_;
};

} // namespace triax::test
