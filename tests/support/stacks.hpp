// SPDX-License-Identifier: Apache-2.0
// A stack to run on, and the switch between stacks.
//
// Threads: one at a time; while a function is on a stack, the stack stays with its thread. Ownership: owns the memory.
// Errors: no exception may leave a function on its own stack. On x86-64 a switch takes a dozen instructions; elsewhere
// it uses ucontext, with a system call each time. The sanitizers are informed of each switch.
#pragma once

#include <cstddef>
#include <memory>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace triax::test {

class Stack {
 public:
  using Entry = void (*)(void* argument);

  /// Stands for the calling thread's original stack.
  Stack() = default;
  /// A stack that starts with entry(argument), which must not return. `number`: stacks with different numbers start at
  /// different offsets in a page, so that the tops of many fit in a cache.
  Stack(Entry entry, void* argument, std::size_t number);
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;
  ~Stack();

  /// Continues `to` where it was left, or starts it; returns when something switches to `from`.
  static void change(Stack& from, Stack& to);

 private:
  static void begin(void* stack);
  void arrived();

  std::unique_ptr<std::byte[]> memory_;
  Entry entry_ = nullptr;
  void* argument_ = nullptr;
#if defined(__x86_64__)
  void* top_ = nullptr; // stack pointer when it was left
#else
  static void begin_halves(unsigned high, unsigned low);
  ucontext_t context_{};
#endif
  const void* bottom_ = nullptr; // for the address sanitizer
  std::size_t size_ = 0;
  void* fake_stack_ = nullptr;
  void* thread_ = nullptr; // for the thread sanitizer
  Stack* came_from_ = nullptr;
};

} // namespace triax::test
