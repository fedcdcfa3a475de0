// Functions that take turns on one thread: each runs until it waits or ends, and then one that is ready goes on: any of
// them, or in other runs of the last ones that became ready, so that a few are far ahead of the rest.
//
// Threads: one at a time. Ownership: owns stacks, and keeps them from run to run. Blocking: never. Errors: what a
// function throws comes out of run(), and run() throws Error where all that have not ended wait.
// A function that does not wait costs a call: the next one is begun on the same stack.
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
  /// `random` decides who goes on.
  explicit Fibers(std::mt19937& random) : random_(random) {}
  Fibers(const Fibers&) = delete;
  Fibers& operator=(const Fibers&) = delete;

  /// Calls body(0), body(1)... body(count - 1), until all have ended.
  void run(int count, const std::function<void(int)>& body);

  // Called by a function that runs.
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
  std::vector<int> ready_;       // those not begun among them
  std::size_t choice_ = 1;       // of how many that became ready last
  std::vector<Stack*> stack_of_; // of each function; null: not begun
  std::vector<std::unique_ptr<Stack>> stacks_;
  std::vector<Stack*> idle_; // on which nothing has begun
  Stack main_;               // of run()
  int ended_ = 0;
  int beginning_ = kNone; // what the stack that is changed to is to begin
  std::exception_ptr error_;
};

} // namespace triax::test
