// Functions that take turns on one thread: each runs until it lets another go on.
//
// Threads: one. Ownership: owns stacks. Blocking: never. Errors: what a function throws comes out of run(), and run()
// throws Error where all that have not ended wait.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <random>
#include <vector>

namespace triax::fused {

class Fibers {
 public:
  Fibers(int count, std::mt19937& random);
  ~Fibers();
  Fibers(const Fibers&) = delete;
  Fibers& operator=(const Fibers&) = delete;

  /// Calls body(0), body(1)..., each on a stack of its own, until all have ended.
  void run(const std::function<void(int)>& body);

  // Called by a function that runs.
  void wait(int self); // until another wakes it
  void wake(int fiber) { ready_.push_back(fiber); }

 private:
  struct Fiber;
  static void enter(unsigned high, unsigned low);
  void start(int fiber);
  void next(int self);
  void switch_to(int from, int to, bool ends);

  static constexpr int kMain = -1;
  std::mt19937& random_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::unique_ptr<Fiber> main_;
  const std::function<void(int)>* body_ = nullptr;
  std::vector<int> ready_;
  int ended_ = 0;
  int starting_ = kMain, from_ = kMain; // of the switch that was made last
  std::exception_ptr error_;
};

} // namespace triax::fused
